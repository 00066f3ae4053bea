//! Queries about past calls.

use std::path::Path;

use rusqlite::types::ToSqlOutput;
use rusqlite::{Connection, OptionalExtension as _, ToSql, params_from_iter};
use toolhub_core::call_log::{CallHistory, CallQuery, CallRecord, RecordId};
use toolhub_core::ports::StoreError;
use toolhub_core::statistics::ToolStatistics;
use toolhub_core::{BoxFuture, RawJson};

use super::{SqliteStore, blocks, journal, statistics};
use crate::journal::folder;
use crate::owner::OwnerId;
use crate::query::{self, Dialect, Value};
use crate::rows::{call_of, json};

impl CallHistory for SqliteStore {
    fn calls(&self, query: CallQuery) -> BoxFuture<'_, Result<Vec<CallRecord>, StoreError>> {
        Box::pin(async move {
            // Makes queued calls visible; if they cannot be written, the stored ones are still returned.
            let _ = self.settle().await;
            let (folder, own, retention) = (self.folder.clone(), self.owner, self.options.retention);
            self.run(move |connection| {
                // If another process holds the database, the stored calls are still returned.
                let _ = journal::replay(connection, &folder, own, &retention);
                let rows = calls(connection, &query, &dead(connection, &folder, own)?)?;
                blocks::merge(connection, query, rows)
            })
            .await
        })
    }

    fn output<'a>(&'a self, handle: &'a RecordId) -> BoxFuture<'a, Result<Option<RawJson>, StoreError>> {
        Box::pin(async move {
            let _ = self.settle().await;
            let handle = handle.clone();
            self.run(move |connection| {
                let mut select = connection
                    .prepare_cached("SELECT output FROM results JOIN calls USING (id) WHERE record = ?1")?;
                let found: Option<String> =
                    select.query_row([handle.as_str()], |row| row.get(0)).optional()?;
                let found = match found {
                    None => blocks::output(connection, &handle)?,
                    found => found,
                };
                Ok(found.map(json))
            })
            .await
        })
    }

    fn statistics(&self) -> BoxFuture<'_, Result<Vec<ToolStatistics>, StoreError>> {
        Box::pin(async move {
            let _ = self.settle().await;
            self.run(|connection| statistics::all(connection)).await
        })
    }
}

fn calls(connection: &Connection, query: &CallQuery, dead: &[i64]) -> rusqlite::Result<Vec<CallRecord>> {
    let (sql, values) = query::calls(Dialect::Sqlite, query, dead);
    let mut select = connection.prepare(&sql)?;
    let rows = select.query_map(params_from_iter(values), |row| call_of(row))?;
    rows.collect()
}

/// The dead owners that left calls without an end.
pub(super) fn dead(connection: &Connection, folder: &Path, own: OwnerId) -> rusqlite::Result<Vec<i64>> {
    let mut select =
        connection.prepare_cached("SELECT DISTINCT owner FROM calls WHERE status = 'running'")?;
    let owners = select.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<i64>>>()?;
    Ok(owners.into_iter().filter(|id| *id != own.0 && folder::is_dead(folder, OwnerId(*id))).collect())
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match self {
            Self::Text(text) => text.to_sql(),
            Self::Int(number) => number.to_sql(),
        }
    }
}
