//! `toolhub stats`: statistics of tools, as tables and small charts.

use std::time::{Duration, SystemTime};

use toolhub_core::statistics::{Day, ToolStatistics};
use toolhub_core::{RawJson, RawObject};
use toolhub_engine::Score;

use crate::app::App;
use crate::args::history::StatsArgs;
use crate::commands::history::archive::CallArchive;
use crate::exit::Exit;
use crate::render::plural::plural;
use crate::render::screen::{BAD, BOLD, DIM, GOOD, NAME, ODD};
use crate::render::table::{Cell, table_lines};

/// Days in a chart.
const DAYS: i64 = 14;
const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

pub(crate) async fn run(app: &App, archive: &CallArchive<'_>, args: StatsArgs) -> anyhow::Result<Exit> {
    let mut all = archive.statistics().await?;
    all.retain(|entry| {
        args.tool.as_ref().is_none_or(|tool| entry.tool.as_str() == tool)
            && args.source.as_ref().is_none_or(|source| entry.source.to_string() == *source)
    });
    // Most used first, with a deterministic order.
    all.sort_by(|left, right| {
        right.tally().total().cmp(&left.tally().total()).then_with(|| left.tool.cmp(&right.tool))
    });
    if app.screen.json {
        app.screen.json(&RawJson::of(&all.iter().map(as_json).collect::<Vec<_>>()));
        return Ok(Exit::Done);
    }
    if all.is_empty() {
        app.screen.note(
            app.lang().choose("nothing was called yet, or nothing fits", "还没有调用，或没有符合条件的"),
        );
        return Ok(Exit::Done);
    }
    table(app, &all);
    Ok(Exit::Done)
}

fn table(app: &App, all: &[ToolStatistics]) {
    let lang = app.lang();
    let heading = lang.choose(
        ["tool", "source", "attempts", "success", "", "median", "p90", "p99", "last used", "14 days"],
        ["工具", "来源", "次数", "成功率", "", "中位数", "p90", "p99", "最近使用", "14 天"],
    );
    let width = app.screen.width();
    // The bar repeats the percentage, and the chart is optional: a narrow terminal omits them.
    let left_out: &[usize] = match width {
        Some(..100) => &[4, 9],
        Some(100..120) => &[4],
        _ => &[],
    };
    let rendered = |cells: Vec<Cell>| {
        let remaining = cells.into_iter().enumerate().filter(|(column, _)| !left_out.contains(column));
        remaining.map(|(_, cell)| cell).collect::<Vec<_>>()
    };
    let mut rows = vec![rendered(heading.iter().map(|text| Cell::new(*text, BOLD)).collect())];
    rows.extend(all.iter().map(|entry| rendered(row(entry))));
    for line in table_lines(&rows, "", width) {
        app.screen.line(&line);
    }
    let total: u64 = all.iter().map(|entry| entry.tally().total()).sum();
    let good: u64 = all.iter().map(|entry| entry.tally().successes).sum();
    let percent = 100.0 * good as f64 / total.max(1) as f64;
    app.screen.note(&lang.choose(
        format!(
            "{total} {} of {}, {percent:.1}% succeeded (a call that tried two sources counts for both; times within ±20 %)",
            if total == 1 { "attempt" } else { "attempts" },
            plural(all.len(), "tool")
        ),
        format!(
            "{} 个工具，共尝试 {total} 次，成功 {percent:.1}%（一次调用试了两个来源则各计一次；用时误差在 ±20 % 以内）",
            all.len()
        ),
    ));
}

fn row(entry: &ToolStatistics) -> Vec<Cell> {
    let tally = entry.tally();
    let rate = tally.successes as f64 / tally.total().max(1) as f64;
    let style = match rate {
        rate if rate >= 0.95 => GOOD,
        rate if rate >= 0.7 => ODD,
        _ => BAD,
    };
    let time = |share: f64| entry.latency.percentile(share).map(rendered).unwrap_or_default();
    let used = entry.last_used().map(crate::commands::history::local_time).unwrap_or_default();
    vec![
        Cell::new(entry.tool.as_str(), NAME),
        Cell::from(entry.source.to_string()),
        Cell::from(tally.total().to_string()),
        Cell::new(format!("{:.0}%", rate * 100.0), style),
        Cell::new(bar(rate), style),
        Cell::from(time(0.5)),
        Cell::from(time(0.9)),
        Cell::from(time(0.99)),
        Cell::new(used, DIM),
        Cell::from(chart(entry)),
    ]
}

fn rendered(time: Duration) -> String {
    match time.as_secs_f64() {
        small if small < 0.01 => format!("{:.1} ms", small * 1e3),
        medium if medium < 10.0 => format!("{:.0} ms", medium * 1e3),
        large => format!("{large:.0} s"),
    }
}

/// A fraction as a bar of eight characters.
fn bar(share: f64) -> String {
    let full = (share * 8.0).round() as usize;
    "█".repeat(full) + &"░".repeat(8 - full.min(8))
}

/// Calls by day, newest last; a dot is a day without calls.
fn chart(entry: &ToolStatistics) -> String {
    let today = Day::of(SystemTime::now()).0;
    let counts: Vec<u64> = (today - DAYS + 1..=today)
        .map(|day| entry.days.get(&Day(day)).map(|tally| tally.total()).unwrap_or_default())
        .collect();
    let max_count = counts.iter().copied().max().unwrap_or_default().max(1);
    let step = |count: u64| match count {
        0 => '·',
        count => STEPS[usize::try_from((count * 8).div_ceil(max_count) - 1).unwrap_or_default().min(7)],
    };
    counts.into_iter().map(step).collect()
}

fn as_json(entry: &ToolStatistics) -> RawObject {
    let tally = entry.tally();
    let score = Score::from(entry);
    let millis = |share: f64| {
        RawJson::of(&entry.latency.percentile(share).map(|time| (time.as_secs_f64() * 1e5).round() / 100.0))
    };
    let moment = |at: Option<SystemTime>| {
        RawJson::of(&at.and_then(|at| jiff::Timestamp::try_from(at).ok()).map(|at| at.to_string()))
    };
    let days: Vec<RawObject> = entry
        .days
        .iter()
        .map(|(day, tally)| {
            let date = jiff::civil::date(1970, 1, 1).saturating_add(jiff::Span::new().days(day.0));
            RawObject::default()
                .with("day", date.to_string())
                .with("successes", tally.successes)
                .with("failures", tally.failures)
        })
        .collect();
    RawObject::default()
        .with("tool", entry.tool.as_str())
        .with("source", entry.source.to_string())
        .with("calls", tally.total())
        .with("successes", tally.successes)
        .with("failures", tally.failures)
        .with("success_rate", RawJson::of(&(tally.successes as f64 / tally.total().max(1) as f64)))
        .with("score", RawJson::of(&score.value))
        .with(
            "latency_ms",
            RawObject::default().with("p50", millis(0.5)).with("p90", millis(0.9)).with("p99", millis(0.99)),
        )
        .with("last_success", moment(entry.last_success))
        .with("last_failure", moment(entry.last_failure))
        .with("days", RawJson::of(&days))
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolhub_core::{Source, ToolName};

    #[test]
    fn renders_charts_and_bars() {
        let mut entry = ToolStatistics::new(Source::Native, ToolName::new("t"));
        assert_eq!(chart(&entry), "·".repeat(14));
        let now = SystemTime::now();
        for _ in 0..8 {
            entry.count(true, Duration::from_millis(5), now);
        }
        entry.count(false, Duration::from_millis(5), now - Duration::from_secs(86_400));
        assert!(chart(&entry).ends_with("▁█"), "{}", chart(&entry));
        assert_eq!((bar(0.0), bar(1.0), bar(0.5)), ("░░░░░░░░".into(), "████████".into(), "████░░░░".into()));
    }
}
