//! Tool statistics: counts are added to the stored ones, so that several hubs may share one database. All of them
//! lock rows in the same order, which prevents deadlocks.

use std::collections::BTreeMap;

use futures_util::future::try_join3;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row, Statement};
use toolhub_core::statistics::{
    CallTally, Day, LatencyHistogram, StatisticsSummary, SummaryQuery, ToolStatistics,
};
use toolhub_core::{Source, ToolName};

use super::replace_nul;
use super::session::Session;
use crate::pending_statistics::PendingStatistics;
use crate::rows::{Columns as _, from_micros, unix_micros};

const DAYS: &str = "INSERT INTO statistics
    SELECT source, tool, day, sum(successes), sum(failures)
    FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[])
        AS new (source, tool, day, successes, failures)
    GROUP BY 1, 2, 3 ORDER BY source COLLATE \"C\", tool COLLATE \"C\", 3
    ON CONFLICT (source, tool, day) DO UPDATE SET
        successes = statistics.successes + excluded.successes, failures = statistics.failures + excluded.failures";
const STEPS: &str = "INSERT INTO latencies
    SELECT source, tool, step, sum(count)
    FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) AS new (source, tool, step, count)
    GROUP BY 1, 2, 3 ORDER BY source COLLATE \"C\", tool COLLATE \"C\", 3
    ON CONFLICT (source, tool, step) DO UPDATE SET count = latencies.count + excluded.count";
const LAST: &str = "INSERT INTO last_uses
    SELECT source, tool, max(success), max(failure)
    FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) AS new (source, tool, success, failure)
    GROUP BY 1, 2 ORDER BY source COLLATE \"C\", tool COLLATE \"C\"
    ON CONFLICT (source, tool) DO UPDATE SET
        last_success = greatest(last_uses.last_success, excluded.last_success),
        last_failure = greatest(last_uses.last_failure, excluded.last_failure)";

/// The prepared statements.
pub(super) struct Statements {
    days: Statement,
    steps: Statement,
    last: Statement,
}

impl Statements {
    pub(super) async fn prepare(client: &Client) -> Result<Self, Error> {
        let (days, steps, last) =
            try_join3(client.prepare(DAYS), client.prepare(STEPS), client.prepare(LAST)).await?;
        Ok(Self { days, steps, last })
    }
}

/// Adds statistics.
pub(super) async fn add(
    client: &Client,
    statements: &Statements,
    counted: &PendingStatistics,
) -> Result<(), Error> {
    let mut of_days = (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut of_steps = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut of_last = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for entry in counted.sorted() {
        let source = replace_nul(&entry.source.to_string()).into_owned();
        let tool = replace_nul(entry.tool.as_str()).into_owned();
        for (day, tally) in &entry.days {
            of_days.0.push(source.clone());
            of_days.1.push(tool.clone());
            of_days.2.push(day.0);
            of_days.3.push(tally.successes.cast_signed());
            of_days.4.push(tally.failures.cast_signed());
        }
        for (step, count) in entry.latency.buckets() {
            of_steps.0.push(source.clone());
            of_steps.1.push(tool.clone());
            of_steps.2.push(i64::from(step));
            of_steps.3.push(count.cast_signed());
        }
        of_last.0.push(source);
        of_last.1.push(tool);
        of_last.2.push(entry.last_success.map(unix_micros));
        of_last.3.push(entry.last_failure.map(unix_micros));
    }
    let Statements { days, steps, last } = statements;
    try_join3(
        client.execute(days, &[&of_days.0, &of_days.1, &of_days.2, &of_days.3, &of_days.4]),
        client.execute(steps, &[&of_steps.0, &of_steps.1, &of_steps.2, &of_steps.3]),
        client.execute(last, &[&of_last.0, &of_last.1, &of_last.2, &of_last.3]),
    )
    .await?;
    Ok(())
}

/// The statistics of all tools, sorted by source and name.
pub(super) async fn all(session: &Session) -> Result<Vec<ToolStatistics>, Error> {
    let client = &session.client;
    let (last, days, steps) = try_join3(
        client.query("SELECT source, tool, last_success, last_failure FROM last_uses", &[]),
        client.query("SELECT source, tool, day, successes, failures FROM statistics", &[]),
        client.query("SELECT source, tool, step, count FROM latencies", &[]),
    )
    .await?;
    let mut totals = PendingStatistics::default();
    let name = |row: &Row| -> Result<_, Error> {
        Ok((Source::from_name(&row.text(0)?), ToolName::new(row.text(1)?)))
    };
    for row in &last {
        let (source, tool) = name(row)?;
        let entry = totals.of(&source, &tool);
        entry.last_success = row.maybe_int(2)?.map(from_micros);
        entry.last_failure = row.maybe_int(3)?.map(from_micros);
    }
    for row in &days {
        let (source, tool) = name(row)?;
        let day = totals.of(&source, &tool).days.entry(Day(row.int(2)?)).or_default();
        day.successes = row.int(3)?.unsigned_abs();
        day.failures = row.int(4)?.unsigned_abs();
    }
    for row in &steps {
        let (source, tool) = name(row)?;
        let step = u8::try_from(row.int(2)?).unwrap_or(u8::MAX);
        totals.of(&source, &tool).latency.add(step, row.int(3)?.unsigned_abs());
    }
    Ok(totals.into_sorted())
}

/// The statistics of one tool at one source; `None` if it was never used.
pub(super) async fn of_tool(
    session: &Session,
    source: &Source,
    tool: &ToolName,
) -> Result<Option<ToolStatistics>, Error> {
    let (source_name, tool_name) = (source.to_string(), tool.to_string());
    let (source_name, tool_name) = (replace_nul(&source_name), replace_nul(&tool_name));
    let values: [&(dyn ToSql + Sync); 2] = [&source_name, &tool_name];
    let client = &session.client;
    let (last, days, steps) = try_join3(
        client.query(
            "SELECT last_success, last_failure FROM last_uses WHERE source = $1 AND tool = $2",
            &values,
        ),
        client.query(
            "SELECT day, successes, failures FROM statistics WHERE source = $1 AND tool = $2",
            &values,
        ),
        client.query("SELECT step, count FROM latencies WHERE source = $1 AND tool = $2", &values),
    )
    .await?;
    let Some(last) = last.first() else { return Ok(None) };
    Ok(Some(ToolStatistics {
        days: days_of(&days)?,
        latency: latency_of(&steps)?,
        last_success: last.maybe_int(0)?.map(from_micros),
        last_failure: last.maybe_int(1)?.map(from_micros),
        ..ToolStatistics::new(source.clone(), tool.clone())
    }))
}

/// Sums over all tools. A sum of integers is a decimal number unless it is cast.
pub(super) async fn summary(session: &Session, query: SummaryQuery) -> Result<StatisticsSummary, Error> {
    let client = &session.client;
    let limit = i64::try_from(query.tools).unwrap_or(i64::MAX);
    let (days, steps, names) = try_join3(
        client.query(
            "SELECT day, sum(successes)::bigint, sum(failures)::bigint FROM statistics WHERE day >= $1 GROUP BY day",
            &[&query.since.0],
        ),
        client.query("SELECT step, sum(count)::bigint FROM latencies GROUP BY step", &[]),
        client.query(
            "SELECT source, tool FROM statistics GROUP BY source, tool
             ORDER BY sum(successes) + sum(failures) DESC, source COLLATE \"C\", tool COLLATE \"C\" LIMIT $1",
            &[&limit],
        ),
    )
    .await?;
    let mut most_used = Vec::with_capacity(names.len());
    for row in &names {
        let (source, tool) = (Source::from_name(&row.text(0)?), ToolName::new(row.text(1)?));
        most_used.extend(of_tool(session, &source, &tool).await?);
    }
    Ok(StatisticsSummary { days: days_of(&days)?, latency: latency_of(&steps)?, most_used })
}

/// Rows of day, successes and failures.
fn days_of(rows: &[Row]) -> Result<BTreeMap<Day, CallTally>, Error> {
    let day = |row: &Row| -> Result<_, Error> {
        let tally = CallTally { successes: row.int(1)?.unsigned_abs(), failures: row.int(2)?.unsigned_abs() };
        Ok((Day(row.int(0)?), tally))
    };
    rows.iter().map(day).collect()
}

/// Rows of bucket and count.
fn latency_of(rows: &[Row]) -> Result<LatencyHistogram, Error> {
    let mut latency = LatencyHistogram::default();
    for row in rows {
        latency.add(u8::try_from(row.int(0)?).unwrap_or(u8::MAX), row.int(1)?.unsigned_abs());
    }
    Ok(latency)
}
