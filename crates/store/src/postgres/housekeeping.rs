//! Periodic cleanup: deletes old calls and results, and marks the calls of dead hubs.

use std::time::SystemTime;

use tokio_postgres::Error;
use toolhub_audit::PendingRecords;

use super::transact::{WriteSession, in_transaction};
use super::{audit, history, liveness, state};
use crate::options::Retention;
use crate::owner::OwnerId;
use crate::query::delete_results;
use crate::retention::{MAX_STEP_BLOCKS, MAX_STEP_ROWS};
use crate::rows::{cutoff_micros, unix_micros};

/// Whether another step is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    More,
    Done,
}

/// Performs one step.
pub(super) async fn keep(
    session: &WriteSession,
    owner: OwnerId,
    retention: &Retention,
) -> Result<Progress, Error> {
    let client = session.client();
    let now = SystemTime::now();
    // Only one of several hubs cleans up per interval. It releases the claim after each step until nothing is left to do.
    let take = "INSERT INTO housekeeping VALUES ('kept_house_at', $1)
        ON CONFLICT (name) DO UPDATE SET value = excluded.value
        WHERE housekeeping.value < $2 OR housekeeping.value > excluded.value";
    if client.execute(take, &[&unix_micros(now), &cutoff_micros(now, retention.every)]).await? == 0 {
        return Ok(Progress::Done);
    }
    let dead = history::dead(session.session(), owner).await?;
    in_transaction(session, async {
        let mut records = PendingRecords::default();
        audit::adopt_orphans(&session.audit(), &dead, &mut records).await?;
        // The writer makes the next checkpoint the head.
        audit::append(&session.audit(), &records).await
    })
    .await?;
    let sizes = client.query_one(SIZES, &[]).await?;
    let bytes = |column| sizes.try_get::<_, i64>(column).map(i64::unsigned_abs);
    let too_large = bytes(1)?.saturating_sub(retention.max_bytes);
    let excess = too_large.max(bytes(0)?.saturating_sub(retention.result_bytes));
    let excess = i64::try_from(excess).unwrap_or(i64::MAX);
    let before = cutoff_micros(now, retention.result_age());
    let mut deleted = client.query(DELETE_OUTPUTS, &[&MAX_STEP_BLOCKS, &before, &excess]).await?.len() as u64;
    if deleted == 0 {
        deleted = client.query(DELETE_RESULTS, &[&MAX_STEP_ROWS, &before, &excess]).await?.len() as u64;
    }
    // Calls are deleted because of size only if no result is left to delete.
    let before = if too_large > 0 && deleted == 0 { i64::MAX } else { cutoff_micros(now, retention.calls) };
    deleted += client.execute(DELETE_BLOCKS, &[&MAX_STEP_BLOCKS, &before]).await?;
    deleted += client.execute(DELETE_CALLS, &[&MAX_STEP_ROWS, &before]).await?;
    if let Some(auditor) = &session.auditor {
        let before = cutoff_micros(now, auditor.retention());
        deleted += in_transaction(session, audit::prune(&session.audit(), auditor, before)).await?;
    }
    deleted += state::purge(client).await? + liveness::purge(client).await?;
    if deleted == 0 {
        return Ok(Progress::Done);
    }
    client.execute("DELETE FROM housekeeping WHERE name = 'kept_house_at'", &[]).await?;
    Ok(Progress::More)
}

/// The size of results, and of all stored data of calls, in bytes.
const SIZES: &str = "SELECT results, results + calls FROM (SELECT
        (SELECT coalesce(sum(bytes), 0)::bigint FROM results)
            + (SELECT coalesce(sum(bytes), 0)::bigint FROM block_outputs) AS results,
        pg_relation_size('calls') + (SELECT coalesce(sum(bytes), 0)::bigint FROM call_blocks) AS calls) AS sizes";
const DELETE_OUTPUTS: &str = delete_results!("block_outputs", "id", ["$1", "$2", "$3::bigint"]);
const DELETE_RESULTS: &str = delete_results!("results", "record", ["$1", "$2", "$3::bigint"]);
const DELETE_BLOCKS: &str =
    "DELETE FROM call_blocks WHERE began_last < $2 AND id IN (SELECT id FROM call_blocks ORDER BY id LIMIT $1)
    AND NOT EXISTS (SELECT 1 FROM block_outputs WHERE block_outputs.id = call_blocks.id)";
const DELETE_CALLS: &str =
    "DELETE FROM calls WHERE began < $2 AND record IN (SELECT record FROM calls ORDER BY record LIMIT $1)
    AND status <> 'running' AND NOT EXISTS (SELECT 1 FROM results WHERE results.record = calls.record)";
