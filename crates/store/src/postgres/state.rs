//! State that the replicas of a hub share.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error};
use toolhub_core::BoxFuture;
use toolhub_core::ports::StoreError;
use toolhub_core::shared_state::{
    ChangeVersions, ChangedPart, CounterIncrement, EntryFilter, EntryReplacement, EntryRevision, NewEntry,
    ReplicaId, SharedState, StateEntry, StateKind,
};

use super::session::Session;
use super::{PgStore, run_query};
use crate::query::SqlValue;
use crate::queue::closed_error;
use crate::responses::StatementValue;
use crate::rows::unix_micros;
use crate::state::{
    CHANGE, ENTRIES, ENTRIES_OF, ENTRY, ENTRY_IN_SLOT, MAX_PURGED_ENTRIES, PURGE, StateWrite, VERSIONS,
    check_entry, entry_of, new_revision, version_of,
};
use crate::write::{Write, WriteAnswer};

/// The channel of the notifications of changes.
pub(super) const CHANNEL: &str = "toolhub_changes";

impl SharedState for PgStore {
    fn replica(&self) -> ReplicaId {
        ReplicaId(self.owner.0)
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn is_alive(&self, replica: ReplicaId) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            if replica.0 == self.owner.0 {
                return Ok(true);
            }
            self.read(move |session| async move { session.is_alive(replica.0).await }).await
        })
    }

    fn interruptions(&self) -> u64 {
        self.interruptions.load(Ordering::Acquire)
    }

    fn create_entry(&self, entry: NewEntry) -> BoxFuture<'_, Result<Option<EntryRevision>, StoreError>> {
        Box::pin(async move {
            check_entry(&entry)?;
            let revision = new_revision();
            let created = self.write_state(StateWrite::Create(Box::new(entry), revision.clone())).await? > 0;
            Ok(created.then_some(revision))
        })
    }

    fn entry<'a>(
        &'a self,
        kind: StateKind,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<StateEntry>, StoreError>> {
        Box::pin(self.select_entry(ENTRY, kind, id))
    }

    fn entry_in_slot<'a>(
        &'a self,
        kind: StateKind,
        slot: &'a str,
    ) -> BoxFuture<'a, Result<Option<StateEntry>, StoreError>> {
        Box::pin(self.select_entry(ENTRY_IN_SLOT, kind, slot))
    }

    fn entries<'a>(&'a self, filter: EntryFilter<'a>) -> BoxFuture<'a, Result<Vec<StateEntry>, StoreError>> {
        Box::pin(async move {
            let EntryFilter { kind, scope, prefix, since, limit } = filter;
            if scope.is_some_and(|scope| scope.contains('\0')) || prefix.contains('\0') {
                return Ok(Vec::new());
            }
            let sql = if scope.is_some() { ENTRIES_OF } else { ENTRIES };
            let texts = [Some(kind.name()), scope].into_iter().flatten();
            let mut values: Vec<SqlValue> = texts.map(|text| SqlValue::Text(text.to_owned())).collect();
            values.extend([unix_micros(SystemTime::now()), unix_micros(since)].map(SqlValue::Int));
            values.push(SqlValue::Text(prefix.to_owned()));
            values.push(SqlValue::Int(i64::try_from(limit).unwrap_or(i64::MAX)));
            self.read(move |session| {
                let values = values.clone();
                async move { run_query(&session, sql, values).await?.iter().map(entry_of).collect() }
            })
            .await
        })
    }

    fn replace_entry(
        &self,
        replacement: EntryReplacement,
    ) -> BoxFuture<'_, Result<Option<EntryRevision>, StoreError>> {
        Box::pin(async move {
            if replacement.id.contains('\0') {
                return Ok(None);
            }
            let revision = new_revision();
            let write = StateWrite::Replace(Box::new(replacement), revision.clone());
            Ok((self.write_state(write).await? > 0).then_some(revision))
        })
    }

    fn remove_entry<'a>(
        &'a self,
        kind: StateKind,
        id: &'a str,
        expected: &'a EntryRevision,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            if id.contains('\0') {
                return Ok(false);
            }
            let (id, expected, claim) = (id.to_owned(), expected.clone(), new_revision());
            let claiming = StateWrite::Claim { kind, id: id.clone(), expected, claim: claim.clone() };
            if self.write_state(claiming).await? == 0 {
                return Ok(false);
            }
            // If this fails, the row stays reserved until it expires.
            let _ = self.write_state(StateWrite::DeleteClaimed { kind, id, claim }).await;
            Ok(true)
        })
    }

    fn trim_entries<'a>(
        &'a self,
        kind: StateKind,
        scope: &'a str,
        keep: usize,
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(self.write_state(StateWrite::Trim { kind, scope: scope.to_owned(), keep }))
    }

    fn add_to_counter(&self, counting: CounterIncrement) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move { Ok(self.write_state(StateWrite::Count(counting, new_revision())).await? > 0) })
    }

    fn announce(&self, part: ChangedPart) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move { self.write_state(StateWrite::Announce(part)).await.map(drop) })
    }

    fn versions(&self) -> BoxFuture<'_, Result<ChangeVersions, StoreError>> {
        Box::pin(self.read(|session| async move { read_versions(&session).await }))
    }

    fn changed<'a>(
        &'a self,
        seen_versions: &'a ChangeVersions,
    ) -> BoxFuture<'a, Result<ChangeVersions, StoreError>> {
        Box::pin(async move {
            // The listener may not have read the versions yet that the caller knows.
            let mut receiver = self.changes.subscribe();
            loop {
                let now = receiver.borrow_and_update().clone();
                if let Some(now) = now.filter(|now| now.is_after(seen_versions)) {
                    return Ok(now);
                }
                receiver.changed().await.map_err(|_| closed_error())?;
            }
        })
    }
}

impl PgStore {
    async fn write_state(&self, write: StateWrite) -> WriteAnswer {
        self.queue.write(Write::State(write)).await
    }

    async fn select_entry(
        &self,
        sql: &'static str,
        kind: StateKind,
        key: &str,
    ) -> Result<Option<StateEntry>, StoreError> {
        if key.contains('\0') {
            return Ok(None);
        }
        let texts = [kind.name(), key].map(|text| SqlValue::Text(text.to_owned()));
        let values: Vec<SqlValue> =
            texts.into_iter().chain([SqlValue::Int(unix_micros(SystemTime::now()))]).collect();
        self.read(move |session| {
            let values = values.clone();
            async move { run_query(&session, sql, values).await?.first().map(entry_of).transpose() }
        })
        .await
    }
}

/// Reads the versions of all parts.
pub(super) async fn read_versions(session: &Session) -> Result<ChangeVersions, Error> {
    let mut versions = Vec::new();
    for row in run_query(session, VERSIONS, Vec::new()).await? {
        versions.extend(version_of(&row)?);
    }
    Ok(versions.into_iter().collect())
}

/// Executes a write.
pub(super) async fn apply(client: &Client, write: &StateWrite) -> Result<u64, Error> {
    let mut rows = 0;
    for statement in write.statements(SystemTime::now()) {
        let values: Vec<&(dyn ToSql + Sync)> = statement
            .values
            .iter()
            .map(|value| match value {
                StatementValue::Text(text) => text as &(dyn ToSql + Sync),
                StatementValue::Int(number) => number,
            })
            .collect();
        rows = client.execute(&*statement.sql, &values).await?;
    }
    Ok(rows)
}

/// Increments the versions of these parts, and notifies the other replicas when the transaction is committed.
pub(super) async fn note_changes(client: &Client, parts: &BTreeSet<ChangedPart>) -> Result<(), Error> {
    for part in parts {
        client.execute(CHANGE, &[&part.name()]).await?;
    }
    if !parts.is_empty() {
        client.execute("SELECT pg_notify($1, '')", &[&CHANNEL]).await?;
    }
    Ok(())
}

/// Deletes expired rows. Returns how many were deleted.
pub(super) async fn purge(client: &Client) -> Result<u64, Error> {
    let mut deleted = 0;
    for sql in PURGE {
        deleted += client.execute(sql, &[&unix_micros(SystemTime::now()), &MAX_PURGED_ENTRIES]).await?;
    }
    Ok(deleted)
}
