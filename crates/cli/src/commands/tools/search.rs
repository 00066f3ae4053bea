//! `toolhub tools search`: the tools that match a query, and their scores.

use toolhub_core::finder::{SearchHit, SearchResult};
use toolhub_core::{RawJson, RawObject};

use crate::app::App;
use crate::args::SearchArgs;
use crate::commands::tools::first_line;
use crate::exit::{Exit, UsageError};
use crate::render::listing_progress::listing;
use crate::render::screen::{BOLD, DIM, NAME};
use crate::render::table::{Cell, lines};

pub(crate) async fn run(app: &App, args: SearchArgs) -> anyhow::Result<Exit> {
    if args.limit == 0 {
        let message = app.lang().choose(
            "`--limit 0` would show nothing; give at least 1",
            "`--limit 0` 什么都不会显示；请至少给 1",
        );
        return Err(UsageError(message.to_owned()).into());
    }
    let hub = app.hub().await?;
    if !args.cached {
        listing(app, hub, hub.list_missing()).await?;
    }
    let found = app.interruptible(hub.search(&args.query, args.limit)).await?;
    // `--explain` and `--all` also show hits that are not relevant.
    let displayed = if args.explain || args.all { found.hits.as_slice() } else { found.fitting() };
    if app.screen.json {
        let all: Vec<RawObject> =
            displayed.iter().map(|hit| as_json(hit, found.confidence, args.explain)).collect();
        app.screen.json(&RawJson::of(&all));
        return Ok(Exit::Done);
    }
    print(app, displayed, args.explain);
    verdict(app, &found, displayed.is_empty());
    Ok(Exit::Done)
}

fn print(app: &App, hits: &[SearchHit], explain: bool) {
    let rows: Vec<Vec<Cell>> = hits
        .iter()
        .map(|hit| {
            vec![
                Cell::new(hit.tool.name().as_str(), NAME),
                Cell::new(hit.tool.source.to_string(), DIM),
                Cell::from(format!("{:.2}", hit.score)),
                Cell::from(if explain {
                    parts(hit)
                } else {
                    first_line(hit.tool.definition.description()).to_owned()
                }),
            ]
        })
        .collect();
    for line in lines(&rows, "", app.screen.width()) {
        app.screen.line(&line);
    }
}

/// The components of a score, largest first.
fn parts(hit: &SearchHit) -> String {
    let mut parts: Vec<_> = hit.parts.iter().filter(|(_, value)| value.abs() >= 0.005).collect();
    parts.sort_by(|left, right| right.1.abs().total_cmp(&left.1.abs()));
    parts.iter().map(|(name, value)| format!("{name} {value:+.2}")).collect::<Vec<_>>().join("  ")
}

fn verdict(app: &App, found: &SearchResult, nothing: bool) {
    let percent = (found.confidence * 100.0).round();
    let lang = app.lang();
    if !found.fits {
        app.screen.note(&lang.choose(
            format!("{BOLD}no tool fits{BOLD:#} (confidence {percent}%); `--all` shows the nearest"),
            format!("{BOLD}没有合适的工具{BOLD:#}（置信度 {percent}%）；`--all` 显示最接近的"),
        ));
    } else if !nothing {
        app.screen.note(&lang.choose(
            format!("confidence {percent}% that the best one fits"),
            format!("第一个合适的置信度为 {percent}%"),
        ));
    }
}

/// The tool as in `tools --json`, with its score and the confidence that the first hit matches.
fn as_json(hit: &SearchHit, confidence: f64, explain: bool) -> RawObject {
    let displayed = hit.tool.describe(&hit.tool.tags).with("score", RawJson::of(&hit.score));
    let mut displayed = displayed.with("confidence", RawJson::of(&confidence));
    if explain {
        let mut parts = RawObject::default();
        for (name, value) in &hit.parts {
            parts.set(*name, RawJson::of(value));
        }
        displayed.set("parts", parts);
    }
    displayed
}
