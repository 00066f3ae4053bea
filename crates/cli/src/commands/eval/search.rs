//! `toolhub eval search`: evaluates the ranking on a set of tools and queries, optionally comparing two settings.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Deserialize;
use toolhub_core::{Lang, RawJson, RawObject, Tool, ToolDefinition};
use toolhub_search::metrics::{SearchReport, SearchTally, UnanswerableResult};
use toolhub_search::{RankingSettings, SearchRequest, ToolIndex};

use crate::app::App;
use crate::args::eval::EvalSearchArgs;
use crate::commands::eval::files::{percent, progress_bar, read_lines, read_tool, wrong_line};
use crate::exit::{Exit, UsageError};
use crate::render::screen::BOLD;
use crate::render::table::{Cell, table_lines};

/// The number of ranked tools per query.
const MAX_RANK: usize = 10;
/// The format of a line in the queries file.
const QUERY_SHAPE: &str = "{\"query\", \"relevant\": [ids]}";
/// Update interval of the progress bar.
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);

/// A query, and the ids of its relevant tools.
#[derive(Deserialize)]
struct EvalQuery {
    query: String,
    relevant: Vec<String>,
}

/// The data set: tools by id, and queries.
struct QuerySet {
    tools: Vec<Tool>,
    /// The id of each definition.
    ids: HashMap<*const ToolDefinition, String>,
    queries: Vec<EvalQuery>,
}

pub(crate) fn run(app: &App, args: &EvalSearchArgs) -> anyhow::Result<Exit> {
    let lang = app.lang();
    let set = QuerySet::read(args, lang)?;
    for warning in set.warnings(lang) {
        app.screen.warn(&warning);
    }
    let defaults = RankingSettings::default();
    let mut columns = vec![(lang.choose("now", "当前").to_owned(), set.measure(app, defaults)?)];
    if let Some(file) = &args.compare {
        let other = read_settings(file, lang)?;
        columns.push((file.display().to_string(), set.measure(app, other)?));
    }
    app.screen.hide_status();
    if app.screen.json {
        let json = match columns.as_slice() {
            [(_, only)] => RawJson::of(only),
            _ => {
                let mut all = RawObject::default();
                for (name, report) in &columns {
                    all.set(name.clone(), RawJson::of(report));
                }
                all.into_raw()
            }
        };
        app.screen.json(&json);
    } else {
        print(app, &columns);
    }
    Ok(Exit::Done)
}

impl QuerySet {
    fn read(args: &EvalSearchArgs, lang: Lang) -> Result<Self, UsageError> {
        let (mut tools, mut ids) = (Vec::new(), HashMap::new());
        for (number, line) in read_lines(&args.tools, QUERY_SHAPE, lang)? {
            let (id, tool) =
                read_tool(&line).ok_or_else(|| wrong_line(&args.tools, number, QUERY_SHAPE, lang))?;
            ids.insert(Arc::as_ptr(&tool.definition), id);
            tools.push(tool);
        }
        let mut queries = Vec::new();
        for (number, line) in read_lines(&args.queries, QUERY_SHAPE, lang)? {
            let mut query = line
                .decode::<EvalQuery>()
                .map_err(|_| wrong_line(&args.queries, number, QUERY_SHAPE, lang))?;
            // Removes duplicate ids.
            let mut seen = HashSet::new();
            query.relevant.retain(|id| seen.insert(id.clone()));
            queries.push(query);
        }
        for (file, nothing) in [(&args.tools, tools.is_empty()), (&args.queries, queries.is_empty())] {
            if nothing {
                let name = file.display();
                return Err(UsageError(
                    lang.choose(format!("`{name}` has no line"), format!("`{name}` 里一行也没有")),
                ));
            }
        }
        Ok(Self { tools, ids, queries })
    }

    /// Warnings about properties of the data set that distort the results.
    fn warnings(&self, lang: Lang) -> Vec<String> {
        let mut warnings = Vec::new();
        let mut known: HashSet<&str> = HashSet::new();
        let ids = self.tools.iter().filter_map(|tool| self.ids.get(&Arc::as_ptr(&tool.definition)));
        let duplicates: Vec<&str> = ids.map(String::as_str).filter(|id| !known.insert(id)).collect();
        if let Some(first) = duplicates.first() {
            let count = duplicates.len();
            warnings.push(lang.choose(
                format!(
                    "{} of another (such as `{first}`): either counts as found",
                    if count == 1 {
                        "1 tool has the id".to_owned()
                    } else {
                        format!("{count} tools have the id")
                    }
                ),
                format!("{count} 个工具的 id 与其他工具重复（例如 `{first}`）：找到任意一个都算找到"),
            ));
        }
        let relevant = self.queries.iter().flat_map(|query| &query.relevant);
        let unknown: Vec<&String> = relevant.filter(|id| !known.contains(id.as_str())).collect();
        if let Some(first) = unknown.first() {
            let count = unknown.len();
            warnings.push(lang.choose(
                format!(
                    "{count} ids under `relevant` are of no tool (such as `{first}`): they count as not found"
                ),
                format!("`relevant` 里有 {count} 个 id 没有对应的工具（例如 `{first}`）：按未找到计算"),
            ));
        }
        warnings
    }

    fn measure(&self, app: &App, settings: RankingSettings) -> anyhow::Result<SearchReport> {
        let started = Instant::now();
        let index = ToolIndex::new(self.tools.iter().cloned(), settings);
        let building = started.elapsed();
        let mut tally = SearchTally::default();
        let mut last_redraw = Instant::now();
        for (done, query) in self.queries.iter().enumerate() {
            if last_redraw.elapsed() >= REDRAW_INTERVAL {
                app.screen.status(&progress_bar(done, self.queries.len()));
                last_redraw = Instant::now();
            }
            let query_started = Instant::now();
            let ranking = index.rank(&SearchRequest::new(&query.query).limit(MAX_RANK));
            let took = query_started.elapsed();
            if query.relevant.is_empty() {
                let verdict =
                    if ranking.fits { UnanswerableResult::Shown } else { UnanswerableResult::Refused };
                tally.add_unanswerable(verdict, took);
                continue;
            }
            let found: Vec<&str> = ranking
                .hits
                .iter()
                .filter_map(|hit| self.ids.get(&Arc::as_ptr(&hit.tool.definition)))
                .map(String::as_str)
                .collect();
            let right: Vec<&str> = query.relevant.iter().map(String::as_str).collect();
            tally.add(&found, &right, took);
        }
        Ok(tally.report(building))
    }
}

fn print(app: &App, columns: &[(String, SearchReport)]) {
    type Figure = (&'static str, fn(&SearchReport) -> String);
    let figures: [Figure; 10] = [
        ("queries", |report| report.queries.to_string()),
        ("R@1", |report| percent(report.recall_1)),
        ("R@5", |report| percent(report.recall_5)),
        ("R@10", |report| percent(report.recall_10)),
        ("nDCG@10", |report| percent(report.ndcg_10)),
        ("MRR", |report| percent(report.mrr)),
        ("refused", |report| match report.refused {
            Some(share) => format!("{} ({})", percent(share), report.unanswerable),
            None => String::new(),
        }),
        ("p50", |report| format!("{:.3} ms", report.latency_ms.p50)),
        ("p99", |report| format!("{:.3} ms", report.latency_ms.p99)),
        ("index", |report| format!("{:.0} ms", report.index_ms)),
    ];
    let heading =
        std::iter::once(Cell::from("")).chain(columns.iter().map(|(name, _)| Cell::new(name.as_str(), BOLD)));
    let mut rows: Vec<Vec<Cell>> = if columns.len() > 1 { vec![heading.collect()] } else { Vec::new() };
    for (name, figure) in figures {
        // The row exists only if the data set has queries without a relevant tool.
        if name == "refused" && columns.iter().all(|(_, report)| report.refused.is_none()) {
            continue;
        }
        let values = columns.iter().map(|(_, report)| Cell::from(figure(report)));
        rows.push(std::iter::once(Cell::from(name)).chain(values).collect());
    }
    for line in table_lines(&rows, "", None) {
        app.screen.line(&line);
    }
}

/// Reads settings from JSON. Missing members have their defaults.
fn read_settings(file: &Path, lang: Lang) -> Result<RankingSettings, UsageError> {
    let name = file.display();
    let text = std::fs::read_to_string(file).map_err(|error| {
        UsageError(
            lang.choose(format!("`{name}` cannot be read: {error}"), format!("无法读取 `{name}`：{error}")),
        )
    })?;
    serde_json::from_str(&text)
        .map_err(|error| UsageError(lang.choose(format!("`{name}`: {error}"), format!("`{name}`：{error}"))))
}
