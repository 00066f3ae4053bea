//! Tool statistics: counts are added to the stored ones, so that several hubs may share one database.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension as _, Params, Statement, params, params_from_iter};
use toolhub_core::statistics::{
    CallTally, Day, LatencyHistogram, StatisticsSummary, SummaryQuery, ToolStatistics,
};
use toolhub_core::{Source, ToolName};

use crate::pending_statistics::PendingStatistics;
use crate::rows::{from_micros, unix_micros};

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
                "INSERT INTO last_uses (source, tool, last_success, last_failure, uses)
                 VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO UPDATE SET
                     uses = uses + excluded.uses,
                     last_success = nullif(max(coalesce(last_success, 0), coalesce(excluded.last_success, 0)), 0),
                     last_failure = nullif(max(coalesce(last_failure, 0), coalesce(excluded.last_failure, 0)), 0)",
            )?
            .execute(params![
                source,
                tool,
                entry.last_success.map(unix_micros),
                entry.last_failure.map(unix_micros),
                entry.tally().total().cast_signed()
            ])?;
    }
    add_totals(connection, counted)
}

/// Adds to the sums over all tools.
fn add_totals(connection: &Connection, counted: &PendingStatistics) -> rusqlite::Result<()> {
    let mut totals = StatisticsSummary::default();
    counted.sorted().into_iter().for_each(|entry| totals.add(entry, Day(i64::MIN)));
    let mut days = connection.prepare_cached(
        "INSERT INTO day_totals VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET
             successes = successes + excluded.successes, failures = failures + excluded.failures",
    )?;
    for (day, tally) in &totals.days {
        days.execute(params![day.0, tally.successes.cast_signed(), tally.failures.cast_signed()])?;
    }
    let mut steps = connection.prepare_cached(
        "INSERT INTO latency_totals VALUES (?1, ?2) ON CONFLICT DO UPDATE SET count = count + excluded.count",
    )?;
    for (step, count) in totals.latency.buckets() {
        steps.execute(params![step, count.cast_signed()])?;
    }
    Ok(())
}

/// The statistics of all tools, sorted by source and name.
pub(super) fn all(connection: &Connection) -> rusqlite::Result<Vec<ToolStatistics>> {
    let mut totals = PendingStatistics::default();
    let mut select =
        connection.prepare_cached("SELECT source, tool, last_success, last_failure FROM last_uses")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let entry = totals.of(&Source::from_name(row.get_ref(0)?.as_str()?), &name(row)?);
        entry.last_success = row.get::<_, Option<i64>>(2)?.map(from_micros);
        entry.last_failure = row.get::<_, Option<i64>>(3)?.map(from_micros);
    }
    let mut select =
        connection.prepare_cached("SELECT source, tool, day, successes, failures FROM statistics")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let entry = totals.of(&Source::from_name(row.get_ref(0)?.as_str()?), &name(row)?);
        let day = entry.days.entry(Day(row.get(2)?)).or_default();
        day.successes = row.get::<_, i64>(3)?.unsigned_abs();
        day.failures = row.get::<_, i64>(4)?.unsigned_abs();
    }
    let mut select = connection.prepare_cached("SELECT source, tool, step, count FROM latencies")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let entry = totals.of(&Source::from_name(row.get_ref(0)?.as_str()?), &name(row)?);
        entry.latency.add(row.get(2)?, row.get::<_, i64>(3)?.unsigned_abs());
    }
    Ok(totals.into_sorted())
}

/// The statistics of one tool at one source; `None` if it was never used.
pub(super) fn of_tool(
    connection: &Connection,
    source: &Source,
    tool: &ToolName,
) -> rusqlite::Result<Option<ToolStatistics>> {
    let names = [source.to_string(), tool.to_string()];
    let mut tool_statistics = ToolStatistics::new(source.clone(), tool.clone());
    let last = connection
        .prepare_cached("SELECT last_success, last_failure FROM last_uses WHERE source = ?1 AND tool = ?2")?
        .query_row(params_from_iter(&names), |row| Ok([row.get::<_, Option<i64>>(0)?, row.get(1)?]))
        .optional()?;
    let Some([success, failure]) = last else { return Ok(None) };
    (tool_statistics.last_success, tool_statistics.last_failure) =
        (success.map(from_micros), failure.map(from_micros));
    let mut select = connection
        .prepare_cached("SELECT day, successes, failures FROM statistics WHERE source = ?1 AND tool = ?2")?;
    tool_statistics.days = days(&mut select, params_from_iter(&names))?;
    let mut select =
        connection.prepare_cached("SELECT step, count FROM latencies WHERE source = ?1 AND tool = ?2")?;
    tool_statistics.latency = latency(&mut select, params_from_iter(&names))?;
    Ok(Some(tool_statistics))
}

/// Sums over all tools.
pub(super) fn summary(connection: &Connection, query: SummaryQuery) -> rusqlite::Result<StatisticsSummary> {
    let mut select =
        connection.prepare_cached("SELECT day, successes, failures FROM day_totals WHERE day >= ?1")?;
    let days = days(&mut select, [query.since.0])?;
    let mut select = connection.prepare_cached("SELECT step, count FROM latency_totals")?;
    let latency = latency(&mut select, [])?;
    let mut select = connection
        .prepare_cached("SELECT source, tool FROM last_uses ORDER BY uses DESC, source, tool LIMIT ?1")?;
    let limit = i64::try_from(query.tools).unwrap_or(i64::MAX);
    let names = select
        .query_map([limit], |row| Ok((Source::from_name(row.get_ref(0)?.as_str()?), name(row)?)))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    let most_used = names.iter().map(|(source, tool)| of_tool(connection, source, tool));
    let most_used = most_used.collect::<rusqlite::Result<Vec<_>>>()?.into_iter().flatten().collect();
    Ok(StatisticsSummary { days, latency, most_used })
}

/// The rows of a statement that selects day, successes and failures.
fn days(select: &mut Statement<'_>, values: impl Params) -> rusqlite::Result<BTreeMap<Day, CallTally>> {
    let count = |row: &rusqlite::Row<'_>, column| row.get::<_, i64>(column).map(i64::unsigned_abs);
    let days = select.query_map(values, |row| {
        Ok((Day(row.get(0)?), CallTally { successes: count(row, 1)?, failures: count(row, 2)? }))
    })?;
    days.collect()
}

/// The rows of a statement that selects bucket and count.
fn latency(select: &mut Statement<'_>, values: impl Params) -> rusqlite::Result<LatencyHistogram> {
    let mut latency = LatencyHistogram::default();
    let mut rows = select.query(values)?;
    while let Some(row) = rows.next()? {
        latency.add(row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs());
    }
    Ok(latency)
}

fn name(row: &rusqlite::Row<'_>) -> rusqlite::Result<ToolName> {
    Ok(ToolName::new(row.get_ref(1)?.as_str()?))
}
