//! Queries about past calls.

use std::path::Path;

use rusqlite::types::ToSqlOutput;
use rusqlite::{Connection, OptionalExtension as _, ToSql, params_from_iter};
use toolhub_core::call_log::{CallHistory, CallQuery, CallRecord, RecordId};
use toolhub_core::ports::StoreError;
use toolhub_core::statistics::{StatisticsSummary, SummaryQuery, ToolStatistics};
use toolhub_core::{BoxFuture, RawJson, Source, ToolName};

use super::{SqliteStore, blocks, journal, statistics};
use crate::blocks::part::BlockPart;
use crate::journal::folder;
use crate::owner::OwnerId;
use crate::query::{self, Dialect, SqlValue};
use crate::rows::{call_of, stored_json};

impl CallHistory for SqliteStore {
    fn calls(&self, query: CallQuery) -> BoxFuture<'_, Result<Vec<CallRecord>, StoreError>> {
        Box::pin(async move {
            // Makes queued calls visible; if they cannot be written, the stored ones are still returned.
            let _ = self.settle().await;
            let (folder, owner, retention) = (self.folder.clone(), self.owner, self.options.retention);
            self.run(move |connection| {
                // If another process holds the database, the stored calls are still returned.
                let _ = journal::replay(connection, &folder, owner, &retention);
                let rows = calls(connection, &query, &dead(connection, &folder, owner)?)?;
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
                let output_text: Option<String> =
                    select.query_row([handle.as_str()], |row| row.get(0)).optional()?;
                let output_text = match output_text {
                    None => blocks::output(connection, &handle)?,
                    output_text => output_text,
                };
                Ok(output_text.map(stored_json))
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

    fn part_start(
        &self,
        before: Option<RecordId>,
        calls: usize,
    ) -> BoxFuture<'_, Result<Option<RecordId>, StoreError>> {
        Box::pin(async move {
            let _ = self.settle().await;
            self.run(move |connection| part_start(connection, before.as_ref(), calls)).await
        })
    }

    fn tool_statistics<'a>(
        &'a self,
        source: &'a Source,
        tool: &'a ToolName,
    ) -> BoxFuture<'a, Result<Option<ToolStatistics>, StoreError>> {
        Box::pin(async move {
            let _ = self.settle().await;
            let (source, tool) = (source.clone(), tool.clone());
            self.run(move |connection| statistics::of_tool(connection, &source, &tool)).await
        })
    }

    fn statistics_summary(
        &self,
        query: SummaryQuery,
    ) -> BoxFuture<'_, Result<StatisticsSummary, StoreError>> {
        Box::pin(async move {
            let _ = self.settle().await;
            self.run(move |connection| statistics::summary(connection, query)).await
        })
    }
}

fn calls(connection: &Connection, query: &CallQuery, dead: &[i64]) -> rusqlite::Result<Vec<CallRecord>> {
    let (sql, values) = query::calls(Dialect::Sqlite, query, dead);
    let mut select = connection.prepare(&sql)?;
    let rows = select.query_map(params_from_iter(values), |row| call_of(row))?;
    rows.collect()
}

fn part_start(
    connection: &Connection,
    before: Option<&RecordId>,
    calls: usize,
) -> rusqlite::Result<Option<RecordId>> {
    let (sql, values) = query::part_of_calls(Dialect::Sqlite, before, calls);
    let mut select = connection.prepare_cached(&sql)?;
    let single = select.query_row(params_from_iter(values), |row| row.get::<_, String>(0)).optional()?;
    let (sql, values) = query::part_of_blocks(Dialect::Sqlite, before, calls);
    let mut select = connection.prepare_cached(&sql)?;
    let mut rows = select.query(params_from_iter(values))?;
    let mut part = BlockPart::new(calls);
    while let Some(row) = rows.next()? {
        if part.is_full_with(row.get(0)?, row.get(1)?) {
            break;
        }
    }
    Ok(part.start(single))
}

/// The dead owners that left calls without an end.
pub(super) fn dead(connection: &Connection, folder: &Path, owner: OwnerId) -> rusqlite::Result<Vec<i64>> {
    dead_among(connection, "calls WHERE status = 'running'", folder, owner)
}

/// The dead owners among those of the rows `from`.
pub(super) fn dead_among(
    connection: &Connection,
    from: &str,
    folder: &Path,
    owner: OwnerId,
) -> rusqlite::Result<Vec<i64>> {
    let mut select = connection.prepare_cached(&format!("SELECT DISTINCT owner FROM {from}"))?;
    let owners = select.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<i64>>>()?;
    Ok(owners.into_iter().filter(|id| *id != owner.0 && folder::is_dead(folder, OwnerId(*id))).collect())
}

impl ToSql for SqlValue {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match self {
            Self::Text(text) => text.to_sql(),
            Self::Int(number) => number.to_sql(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use toolhub_core::call_log::CallStatus;

    use super::*;
    use crate::sqlite::migrate::migrate;

    /// Filters that match few calls must not read all others.
    #[test]
    fn filters_use_indexes() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        let any = CallQuery { limit: Some(51), ..CallQuery::default() };
        let status = |status| CallQuery { status: Some(status), ..any.clone() };
        let tool = || Some("t".to_owned());
        let cases = [
            (status(CallStatus::Failed), "calls_by_status (status=?)"),
            (status(CallStatus::Running), "calls_by_status (status=?)"),
            (status(CallStatus::Unknown), "calls_by_status (status=?)"),
            (CallQuery { tool: tool(), ..status(CallStatus::Failed) }, "calls_by_tool (tool=?)"),
            (CallQuery { tool: tool(), ..any.clone() }, "calls_by_tool (tool=?)"),
            (CallQuery { parent: tool(), ..any.clone() }, "calls_by_parent (parent=?)"),
            (
                CallQuery { parent: tool(), from: Some(RecordId::generate()), ..any.clone() },
                "calls_by_parent (parent=? AND record>?)",
            ),
            (CallQuery { parent: tool(), ..status(CallStatus::Failed) }, "calls_by_parent (parent=?)"),
            (CallQuery { since: Some(SystemTime::now()), ..any.clone() }, "(record>?)"),
        ];
        for (query, index) in cases {
            for dead in [&[][..], &[7, 8]] {
                let (sql, values) = query::calls(Dialect::Sqlite, &query, dead);
                let mut explain = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
                let mut rows = explain.query(params_from_iter(values)).unwrap();
                let plan: String = rows.next().unwrap().unwrap().get(3).unwrap();
                assert!(plan.contains("SEARCH calls") && plan.contains(index), "{plan}: {sql}");
            }
        }
    }
}
