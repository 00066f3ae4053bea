//! Queries about past calls.

use tokio_postgres::Error;
use toolhub_core::call_log::{CallHistory, CallQuery, CallRecord, RecordId};
use toolhub_core::ports::StoreError;
use toolhub_core::statistics::{StatisticsSummary, SummaryQuery, ToolStatistics};
use toolhub_core::{BoxFuture, RawJson, Source, ToolName};

use super::session::Session;
use super::{PgStore, blocks, run_query, statistics};
use crate::blocks::part::BlockPart;
use crate::owner::OwnerId;
use crate::query::{self as sql_query, Dialect, SqlValue};
use crate::rows::{Columns as _, call_of, stored_json};

impl CallHistory for PgStore {
    fn calls(&self, query: CallQuery) -> BoxFuture<'_, Result<Vec<CallRecord>, StoreError>> {
        let owner = self.owner;
        Box::pin(async move {
            // Makes queued calls visible; if they cannot be written, the stored ones are still returned.
            let _ = self.queue.settle().await;
            self.read(move |session| {
                let query = query.clone();
                async move {
                    let rows = calls(&session, &query, &dead(&session, owner).await?).await?;
                    blocks::merge(&session, query, rows).await
                }
            })
            .await
        })
    }

    fn output<'a>(&'a self, handle: &'a RecordId) -> BoxFuture<'a, Result<Option<RawJson>, StoreError>> {
        Box::pin(async move {
            let _ = self.queue.settle().await;
            let handle = handle.clone();
            self.read(move |session| {
                let handle = handle.clone();
                async move {
                    let record = vec![SqlValue::Text(handle.as_str().to_owned())];
                    let rows =
                        run_query(&session, "SELECT output FROM results WHERE record = $1", record).await?;
                    let output_text = match rows.first() {
                        Some(row) => Some(row.text(0)?),
                        None => blocks::output(&session, &handle).await?,
                    };
                    Ok(output_text.map(stored_json))
                }
            })
            .await
        })
    }

    fn statistics(&self) -> BoxFuture<'_, Result<Vec<ToolStatistics>, StoreError>> {
        Box::pin(async move {
            let _ = self.queue.settle().await;
            self.read(|session| async move { statistics::all(&session).await }).await
        })
    }

    fn part_start(
        &self,
        before: Option<RecordId>,
        calls: usize,
    ) -> BoxFuture<'_, Result<Option<RecordId>, StoreError>> {
        Box::pin(async move {
            let _ = self.queue.settle().await;
            self.read(move |session| {
                let before = before.clone();
                async move { part_start(&session, before.as_ref(), calls).await }
            })
            .await
        })
    }

    fn tool_statistics<'a>(
        &'a self,
        source: &'a Source,
        tool: &'a ToolName,
    ) -> BoxFuture<'a, Result<Option<ToolStatistics>, StoreError>> {
        Box::pin(async move {
            let _ = self.queue.settle().await;
            let names = (source.clone(), tool.clone());
            self.read(move |session| {
                let (source, tool) = names.clone();
                async move { statistics::of_tool(&session, &source, &tool).await }
            })
            .await
        })
    }

    fn statistics_summary(
        &self,
        query: SummaryQuery,
    ) -> BoxFuture<'_, Result<StatisticsSummary, StoreError>> {
        Box::pin(async move {
            let _ = self.queue.settle().await;
            self.read(move |session| async move { statistics::summary(&session, query).await }).await
        })
    }
}

async fn calls(session: &Session, call_query: &CallQuery, dead: &[i64]) -> Result<Vec<CallRecord>, Error> {
    let (sql, values) = sql_query::calls(Dialect::Postgres, call_query, dead);
    run_query(session, &sql, values).await?.iter().map(call_of).collect()
}

async fn part_start(
    session: &Session,
    before: Option<&RecordId>,
    calls: usize,
) -> Result<Option<RecordId>, Error> {
    let (sql, values) = sql_query::part_of_calls(Dialect::Postgres, before, calls);
    let single = run_query(session, &sql, values).await?;
    let single = single.first().map(|row| row.text(0)).transpose()?;
    let (sql, values) = sql_query::part_of_blocks(Dialect::Postgres, before, calls);
    let mut part = BlockPart::new(calls);
    for row in run_query(session, &sql, values).await? {
        if part.is_full_with(row.text(0)?, row.int(1)?) {
            break;
        }
    }
    Ok(part.start(single))
}

/// The dead owners that left calls without an end.
pub(super) async fn dead(session: &Session, owner: OwnerId) -> Result<Vec<i64>, Error> {
    session.dead_owners("calls WHERE status = 'running'", owner).await
}
