//! Tool statistics: counts are added to the stored ones, so that several hubs may share one database.

use rusqlite::{Connection, params};
use toolhub_core::statistics::{Day, ToolStatistics};
use toolhub_core::{Source, ToolName};

use crate::pending_statistics::PendingStatistics;
use crate::rows::{from_micros, micros};

/// Adds statistics.
pub(super) fn add(connection: &Connection, counted: &PendingStatistics) -> rusqlite::Result<()> {
    for entry in counted.sorted() {
        let (source, tool) = (entry.source.to_string(), entry.tool.as_str());
        let mut days = connection.prepare_cached(
            "INSERT INTO statistics VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO UPDATE SET
                 successes = successes + excluded.successes, failures = failures + excluded.failures",
        )?;
        for (day, tally) in &entry.days {
            days.execute(params![
                source,
                tool,
                day.0,
                tally.successes.cast_signed(),
                tally.failures.cast_signed()
            ])?;
        }
        let mut steps = connection.prepare_cached(
            "INSERT INTO latencies VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET count = count + excluded.count",
        )?;
        for (step, count) in entry.latency.buckets() {
            steps.execute(params![source, tool, step, count.cast_signed()])?;
        }
        connection
            .prepare_cached(
                "INSERT INTO last_uses VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO UPDATE SET
                     last_success = nullif(max(coalesce(last_success, 0), coalesce(excluded.last_success, 0)), 0),
                     last_failure = nullif(max(coalesce(last_failure, 0), coalesce(excluded.last_failure, 0)), 0)",
            )?
            .execute(params![source, tool, entry.last_success.map(micros), entry.last_failure.map(micros)])?;
    }
    Ok(())
}

/// The statistics of all tools, sorted by source and name.
pub(super) fn all(connection: &Connection) -> rusqlite::Result<Vec<ToolStatistics>> {
    let mut found = PendingStatistics::default();
    let mut select =
        connection.prepare_cached("SELECT source, tool, last_success, last_failure FROM last_uses")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let entry = found.of(&Source::from_name(row.get_ref(0)?.as_str()?), &name(row)?);
        entry.last_success = row.get::<_, Option<i64>>(2)?.map(from_micros);
        entry.last_failure = row.get::<_, Option<i64>>(3)?.map(from_micros);
    }
    let mut select =
        connection.prepare_cached("SELECT source, tool, day, successes, failures FROM statistics")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let entry = found.of(&Source::from_name(row.get_ref(0)?.as_str()?), &name(row)?);
        let day = entry.days.entry(Day(row.get(2)?)).or_default();
        day.successes = row.get::<_, i64>(3)?.unsigned_abs();
        day.failures = row.get::<_, i64>(4)?.unsigned_abs();
    }
    let mut select = connection.prepare_cached("SELECT source, tool, step, count FROM latencies")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let entry = found.of(&Source::from_name(row.get_ref(0)?.as_str()?), &name(row)?);
        entry.latency.add(row.get(2)?, row.get::<_, i64>(3)?.unsigned_abs());
    }
    Ok(found.into_sorted())
}

fn name(row: &rusqlite::Row<'_>) -> rusqlite::Result<ToolName> {
    Ok(ToolName::new(row.get_ref(1)?.as_str()?))
}
