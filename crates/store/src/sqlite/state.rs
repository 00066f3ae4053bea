//! State that processes on this machine share.

use std::time::{Duration, SystemTime};

use rusqlite::{Connection, OptionalExtension as _, params, params_from_iter};
use toolhub_core::BoxFuture;
use toolhub_core::ports::StoreError;
use toolhub_core::shared_state::{
    ChangeVersions, ChangedPart, CounterIncrement, EntryFilter, EntryReplacement, EntryRevision, NewEntry,
    ReplicaId, SharedState, StateEntry, StateKind,
};

use super::SqliteStore;
use crate::journal::folder::is_dead;
use crate::owner::OwnerId;
use crate::rows::unix_micros;
use crate::state::{
    CHANGE, ENTRIES, ENTRIES_OF, ENTRY, ENTRY_IN_SLOT, MAX_PURGED_ENTRIES, PURGE, StateWrite, VERSIONS,
    check_entry, entry_of, new_revision, version_of,
};
use crate::write::{Write, WriteAnswer};

/// Interval at which the versions are read while a caller waits for a change.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

impl SharedState for SqliteStore {
    fn replica(&self) -> ReplicaId {
        // If this fails, other processes treat this one as dead, as it is for calls.
        let _ = self.journals.show_alive();
        ReplicaId(self.owner.0)
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn is_alive(&self, replica: ReplicaId) -> BoxFuture<'_, Result<bool, StoreError>> {
        let (folder, owner) = (self.folder.clone(), self.owner);
        Box::pin(self.run(move |_| Ok(replica.0 == owner.0 || !is_dead(&folder, OwnerId(replica.0)))))
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
        Box::pin(self.select_entry(ENTRY, kind, id.to_owned()))
    }

    fn entry_in_slot<'a>(
        &'a self,
        kind: StateKind,
        slot: &'a str,
    ) -> BoxFuture<'a, Result<Option<StateEntry>, StoreError>> {
        Box::pin(self.select_entry(ENTRY_IN_SLOT, kind, slot.to_owned()))
    }

    fn entries<'a>(&'a self, filter: EntryFilter<'a>) -> BoxFuture<'a, Result<Vec<StateEntry>, StoreError>> {
        let EntryFilter { kind, scope, prefix, since, limit } = filter;
        let (scope, prefix) = (scope.map(str::to_owned), prefix.to_owned());
        let (now, since) = (unix_micros(SystemTime::now()), unix_micros(since));
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        Box::pin(self.run(move |connection| match scope {
            Some(scope) => {
                let mut select = connection.prepare_cached(ENTRIES_OF)?;
                let rows = select
                    .query_map(params![kind.name(), scope, now, since, prefix, limit], |row| entry_of(row))?;
                rows.collect()
            }
            None => {
                let mut select = connection.prepare_cached(ENTRIES)?;
                let rows =
                    select.query_map(params![kind.name(), now, since, prefix, limit], |row| entry_of(row))?;
                rows.collect()
            }
        }))
    }

    fn replace_entry(
        &self,
        replacement: EntryReplacement,
    ) -> BoxFuture<'_, Result<Option<EntryRevision>, StoreError>> {
        Box::pin(async move {
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
        Box::pin(self.run(|connection| versions(connection)))
    }

    fn changed<'a>(
        &'a self,
        seen_versions: &'a ChangeVersions,
    ) -> BoxFuture<'a, Result<ChangeVersions, StoreError>> {
        Box::pin(async move {
            loop {
                let now = self.versions().await?;
                if now != *seen_versions {
                    return Ok(now);
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        })
    }
}

impl SqliteStore {
    async fn write_state(&self, write: StateWrite) -> WriteAnswer {
        self.write_counted(Write::State(write)).await
    }

    async fn select_entry(
        &self,
        sql: &'static str,
        kind: StateKind,
        key: String,
    ) -> Result<Option<StateEntry>, StoreError> {
        let now = unix_micros(SystemTime::now());
        self.run(move |connection| {
            let mut select = connection.prepare_cached(sql)?;
            select.query_row(params![kind.name(), key, now], |row| entry_of(row)).optional()
        })
        .await
    }
}

fn versions(connection: &Connection) -> rusqlite::Result<ChangeVersions> {
    let mut select = connection.prepare_cached(VERSIONS)?;
    let mut rows = select.query([])?;
    let mut versions = Vec::new();
    while let Some(row) = rows.next()? {
        versions.extend(version_of(row)?);
    }
    Ok(versions.into_iter().collect())
}

/// Executes a write.
pub(super) fn apply(connection: &Connection, write: &StateWrite) -> rusqlite::Result<u64> {
    let mut rows = 0;
    for statement in write.statements(SystemTime::now()) {
        let mut prepared = connection.prepare_cached(&statement.sql)?;
        rows = prepared.execute(params_from_iter(&statement.values))? as u64;
    }
    if let Some(part) = write.part(rows) {
        note_change(connection, part)?;
    }
    Ok(rows)
}

/// Increments the version of a part.
pub(super) fn note_change(connection: &Connection, part: ChangedPart) -> rusqlite::Result<()> {
    connection.prepare_cached(CHANGE)?.execute([part.name()]).map(drop)
}

/// Deletes expired rows. Returns how many were deleted.
pub(super) fn purge(connection: &Connection) -> rusqlite::Result<usize> {
    let now = unix_micros(SystemTime::now());
    let mut deleted = 0;
    for sql in PURGE {
        deleted += connection.prepare_cached(sql)?.execute([now, MAX_PURGED_ENTRIES])?;
    }
    Ok(deleted)
}
