//! `toolhub tools search`: the tools that match a query, and their scores.

use toolhub_core::finder::SearchHit;
use toolhub_core::{Lang, RawJson, RawObject, Tool};

use crate::app::App;
use crate::args::SearchArgs;
use crate::commands::tools::first_line;
use crate::exit::{Exit, UsageError};
use crate::render::listing_progress::show_listing_progress;
use crate::render::screen::{BOLD, DIM, NAME};
use crate::render::table::{Cell, table_lines};

impl SearchArgs {
    /// The maximum number of results, which must not be 0.
    pub(crate) fn checked_limit(&self, lang: Lang) -> Result<usize, UsageError> {
        if self.limit > 0 {
            return Ok(self.limit);
        }
        let message = lang.choose(
            "`--limit 0` would show nothing; give at least 1",
            "`--limit 0` 什么都不会显示；请至少给 1",
        );
        Err(UsageError(message.to_owned()))
    }
}

pub(crate) async fn run(app: &App, args: SearchArgs) -> anyhow::Result<Exit> {
    let limit = args.checked_limit(app.lang())?;
    let hub = app.hub().await?;
    if !args.cached {
        show_listing_progress(app, hub, hub.list_missing()).await?;
    }
    let found = app.interruptible(hub.search(&args.query, limit)).await?;
    // `--explain` and `--all` also show hits that are not relevant.
    let displayed = if args.explain || args.all { found.hits.as_slice() } else { found.fitting() };
    let hits = displayed.iter().map(FoundTool::from).collect();
    let report = SearchReport { hits, confidence: Some(found.confidence), fits: found.fits };
    report.show(app, args.explain);
    Ok(Exit::Done)
}

/// A hit of a search.
pub(crate) struct FoundTool {
    pub(crate) tool: Tool,
    pub(crate) score: f64,
    /// The components of the score: name and value.
    pub(crate) parts: Vec<(String, f64)>,
}

impl From<&SearchHit> for FoundTool {
    fn from(hit: &SearchHit) -> Self {
        let parts = hit.parts.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        Self { tool: hit.tool.clone(), score: hit.score, parts }
    }
}

impl FoundTool {
    /// The components of the score, largest first.
    fn explained(&self) -> String {
        let mut parts: Vec<_> = self.parts.iter().filter(|(_, value)| value.abs() >= 0.005).collect();
        parts.sort_by(|left, right| right.1.abs().total_cmp(&left.1.abs()));
        parts.iter().map(|(name, value)| format!("{name} {value:+.2}")).collect::<Vec<_>>().join("  ")
    }

    /// The tool as in `tools --json`, with its score and the confidence that the first hit matches.
    fn as_json(&self, confidence: Option<f64>, explain: bool) -> RawObject {
        let displayed = self.tool.describe(&self.tool.tags).with("score", RawJson::of(&self.score));
        let mut displayed = displayed.with("confidence", RawJson::of(&confidence));
        if explain {
            let mut parts = RawObject::default();
            for (name, value) in &self.parts {
                parts.set(name.clone(), RawJson::of(value));
            }
            displayed.set("parts", parts);
        }
        displayed
    }
}

/// The result of a search as it is shown.
pub(crate) struct SearchReport {
    pub(crate) hits: Vec<FoundTool>,
    /// The confidence that the best tool fits, if it is known.
    pub(crate) confidence: Option<f64>,
    /// Whether any tool fits.
    pub(crate) fits: bool,
}

impl SearchReport {
    pub(crate) fn show(&self, app: &App, explain: bool) {
        if app.screen.json {
            let all: Vec<RawObject> =
                self.hits.iter().map(|hit| hit.as_json(self.confidence, explain)).collect();
            app.screen.json(&RawJson::of(&all));
            return;
        }
        self.print(app, explain);
        self.verdict(app);
    }

    fn print(&self, app: &App, explain: bool) {
        let row = |hit: &FoundTool| {
            let text = match explain {
                true => hit.explained(),
                false => first_line(hit.tool.definition.description()).to_owned(),
            };
            vec![
                Cell::new(hit.tool.name().as_str(), NAME),
                Cell::new(hit.tool.source.to_string(), DIM),
                Cell::from(format!("{:.2}", hit.score)),
                Cell::from(text),
            ]
        };
        let rows: Vec<Vec<Cell>> = self.hits.iter().map(row).collect();
        for line in table_lines(&rows, "", app.screen.width()) {
            app.screen.line(&line);
        }
    }

    fn verdict(&self, app: &App) {
        let lang = app.lang();
        let percent = self.confidence.map(|confidence| (confidence * 100.0).round());
        if !self.fits {
            let certainty = percent.map_or_else(String::new, |percent| {
                lang.choose(format!(" (confidence {percent}%)"), format!("（置信度 {percent}%）"))
            });
            app.screen.note(&lang.choose(
                format!("{BOLD}no tool fits{BOLD:#}{certainty}; `--all` shows the nearest"),
                format!("{BOLD}没有合适的工具{BOLD:#}{certainty}；`--all` 显示最接近的"),
            ));
        } else if let (Some(percent), false) = (percent, self.hits.is_empty()) {
            app.screen.note(&lang.choose(
                format!("confidence {percent}% that the best one fits"),
                format!("首个结果的匹配置信度：{percent}%"),
            ));
        }
    }
}
