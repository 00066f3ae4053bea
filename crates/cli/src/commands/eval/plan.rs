//! `toolhub eval plan`: compares the plans of requests with the expected calls. No tool is called.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use jiff::Zoned;
use jiff::civil::Date;
use serde::Deserialize;
use toolhub_agent::judge::{ExpectedCall, PlanScore, RESULT, judge, judge_offered, wrong_changes};
use toolhub_core::lang::Localize as _;
use toolhub_core::{Lang, RawJson, RawObject, Tool};
use toolhub_engine::Tagger;
use toolhub_planner::Candidates;
use toolhub_planner::plan::{ArgumentSource, Plan, PlanStep};
use toolhub_search::{RankingSettings, ToolIndex};

use crate::app::App;
use crate::args::eval::EvalPlanArgs;
use crate::commands::eval::files::{percent, progress_bar, read_lines, read_tool, wrong_line};
use crate::commands::eval::index_search::search_index;
use crate::commands::eval::model::ModelPlanner;
use crate::exit::{Exit, UsageError};
use crate::render::table::{Cell, table_lines};

/// The number of tools that are searched for each part of a request.
const SEARCH_LIMIT: usize = 10;
/// Update interval of the progress bar.
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);
/// The format of a line in the requests file.
const REQUEST_SHAPE: &str =
    "{\"id\", \"request\", \"expected\": [{\"tool\": [names], \"arguments\": {name: [values]}}]}";

/// A request, and its expected calls.
#[derive(Deserialize)]
struct EvalRequest {
    #[serde(default)]
    id: Option<String>,
    request: String,
    expected: Vec<ExpectedCall>,
}

/// The results of all requests.
#[derive(Default)]
struct Report {
    requests: usize,
    answerable: usize,
    tool_right: usize,
    arguments_right: usize,
    refused_rightly: usize,
    /// Requests whose plan would make an unrequested change, or a change with wrong arguments.
    wrong_changes: usize,
    /// Requests whose correct calls were planned but would not be run.
    needless_refusals: usize,
    /// Requests of which a part was dropped silently.
    dropped: usize,
    /// For each printed confidence: the number of plans that would be run, and how many of them are correct.
    calibration: BTreeMap<u8, (usize, usize)>,
    failures: Vec<Failure>,
    /// Correct plans, if all are to be shown.
    right: Vec<Failure>,
    all: bool,
    slowest: Duration,
    total: Duration,
}

struct Failure {
    id: String,
    request: String,
    plan: Plan,
    verdict: PlanScore,
    wrong_change: bool,
}

pub(crate) async fn run(app: &App, args: &EvalPlanArgs) -> anyhow::Result<Exit> {
    let lang = app.lang();
    let tools = read_tools(args, lang)?;
    let mut case = Vec::new();
    for (number, line) in read_lines(&args.requests, REQUEST_SHAPE, lang)? {
        case.push(
            line.decode::<EvalRequest>()
                .map_err(|_| wrong_line(&args.requests, number, REQUEST_SHAPE, lang))?,
        );
    }
    let index = ToolIndex::new(tools.clone(), RankingSettings::default());
    let planner = match &args.model {
        None => None,
        Some(name) => {
            let model = app.hub().await?.model_named(name).await;
            let model = model.map_err(|none| UsageError(none.why().localize(lang)))?;
            Some(ModelPlanner::new(model, tools, index.clone()))
        }
    };
    let today = Zoned::now().date();
    let mut report = Report { all: args.all, ..Report::default() };
    let mut unplanned = Vec::new();
    let case_count = case.len();
    let mut last_redraw = Instant::now();
    for (done, case) in case.iter().enumerate() {
        if last_redraw.elapsed() >= REDRAW_INTERVAL {
            app.screen.status(&progress_bar(done, case_count));
            last_redraw = Instant::now();
        }
        let started = Instant::now();
        let plan = match &planner {
            None => plan(&case.request, &index, today),
            Some(planner) => {
                let made = app.interruptible(planner.plan(&case.request, today)).await?;
                made.unwrap_or_else(|why| {
                    unplanned.push(why.clone());
                    Plan { problems: vec![why], ..Plan::default() }
                })
            }
        };
        report.add(case, plan, started.elapsed());
    }
    app.screen.hide_status();
    if let Some(why) = unplanned.first() {
        // A missing plan counts as a plan without calls, which may be correct by accident.
        let (count, why) = (unplanned.len(), why.localize(lang));
        app.screen.warn(&lang.choose(
            format!("the model made no plan for {count} of {case_count} requests, first: {why}"),
            format!("{case_count} 个请求中有 {count} 个模型没有给出计划，第一个原因：{why}"),
        ));
    }
    if app.screen.json {
        app.screen.json(&report.json(lang));
    } else {
        report.print(app);
    }
    Ok(Exit::Done)
}

/// The tools, with tags assigned as in the hub.
fn read_tools(args: &EvalPlanArgs, lang: Lang) -> Result<Vec<Tool>, UsageError> {
    let tagger = Tagger::default();
    let mut tools = Vec::new();
    for (number, line) in read_lines(&args.tools, REQUEST_SHAPE, lang)? {
        let (_, mut tool) =
            read_tool(&line).ok_or_else(|| wrong_line(&args.tools, number, REQUEST_SHAPE, lang))?;
        tool.tags = tagger.tags_of(&tool);
        tools.push(tool);
    }
    Ok(tools)
}

fn plan(request: &str, index: &ToolIndex, today: Date) -> Plan {
    let mut candidates = Candidates::default();
    for part in toolhub_planner::sub_requests(request) {
        let search = search_index(index, &part, SEARCH_LIMIT);
        candidates.add(part, search);
    }
    toolhub_planner::plan(request, &candidates, today)
}

impl Report {
    fn add(&mut self, case: &EvalRequest, plan: Plan, took: Duration) {
        self.requests += 1;
        self.total += took;
        self.slowest = self.slowest.max(took);
        let verdict = judge(&plan, &case.expected);
        if case.expected.is_empty() {
            self.refused_rightly += usize::from(verdict.arguments);
        } else {
            self.answerable += 1;
            self.tool_right += usize::from(verdict.tools);
            self.arguments_right += usize::from(verdict.arguments);
        }
        let wrong_change = !wrong_changes(&plan, &case.expected).is_empty();
        self.wrong_changes += usize::from(wrong_change);
        let offered = judge_offered(&plan, &case.expected).arguments;
        self.needless_refusals += usize::from(!case.expected.is_empty() && offered && !verdict.arguments);
        let run = plan.runnable().count();
        self.dropped += usize::from(run > 0 && run < case.expected.len() && !plan.is_withheld());
        if let Some(confidence) = plan.confidence.filter(|_| run > 0 && !plan.is_withheld()) {
            let printed = self.calibration.entry((confidence * 100.0).round() as u8).or_default();
            printed.0 += 1;
            printed.1 += usize::from(verdict.arguments);
        }
        let id = case.id.clone().unwrap_or_else(|| self.requests.to_string());
        let record = Failure { id, request: case.request.clone(), plan, verdict, wrong_change };
        if !verdict.arguments {
            self.failures.push(record);
        } else if self.all {
            self.right.push(record);
        }
    }

    /// The rates; `None` without requests that count for them.
    fn shares(&self) -> [(&'static str, Option<f64>); 3] {
        let share = |part: usize, whole: usize| (whole > 0).then(|| part as f64 / whole as f64);
        [
            ("tool_right", share(self.tool_right, self.answerable)),
            ("arguments_right", share(self.arguments_right, self.answerable)),
            ("refused_rightly", share(self.refused_rightly, self.requests - self.answerable)),
        ]
    }

    fn json(&self, lang: Lang) -> RawJson {
        let mut record = RawObject::default().with("requests", RawJson::of(&self.requests));
        for (name, share) in self.shares() {
            record.set(name, RawJson::of(&share));
        }
        for (name, count) in self.counts() {
            record.set(name, RawJson::of(&count));
        }
        let calibration: Vec<RawObject> = self
            .calibration
            .iter()
            .map(|(percent, (plans, right))| {
                RawObject::default()
                    .with("confidence", RawJson::of(&(f64::from(*percent) / 100.0)))
                    .with("plans", RawJson::of(plans))
                    .with("right", RawJson::of(right))
            })
            .collect();
        record.set("calibration", RawJson::of(&calibration));
        let failures: Vec<RawJson> = self.failures.iter().map(|failure| failure.json(lang)).collect();
        record.set("failures", RawJson::of(&failures));
        if self.all {
            let right: Vec<RawJson> = self.right.iter().map(|plan| plan.json(lang)).collect();
            record.set("right", RawJson::of(&right));
        }
        record.into_raw()
    }

    /// Counts of errors, and of needless refusals.
    fn counts(&self) -> [(&'static str, usize); 3] {
        [
            ("wrong_changes", self.wrong_changes),
            ("dropped_parts", self.dropped),
            ("needless_refusals", self.needless_refusals),
        ]
    }

    fn print(&self, app: &App) {
        let mut rows = vec![vec![Cell::from("requests"), Cell::from(self.requests.to_string())]];
        for (name, share) in self.shares() {
            rows.push(vec![Cell::from(name), Cell::from(share.map_or_else(|| "–".to_owned(), percent))]);
        }
        for (name, count) in self.counts() {
            rows.push(vec![Cell::from(name), Cell::from(count.to_string())]);
        }
        for (percent, (plans, right)) in &self.calibration {
            rows.push(vec![
                Cell::from(format!("right at confidence {:.2}", f64::from(*percent) / 100.0)),
                Cell::from(format!("{right} of {plans}")),
            ]);
        }
        let each = self.total.as_secs_f64() * 1000.0 / self.requests.max(1) as f64;
        rows.push(vec![Cell::from("mean"), Cell::from(format!("{each:.2} ms"))]);
        rows.push(vec![
            Cell::from("slowest"),
            Cell::from(format!("{:.2} ms", self.slowest.as_secs_f64() * 1000.0)),
        ]);
        for line in table_lines(&rows, "", None) {
            app.screen.line(&line);
        }
        if self.all {
            for record in self.failures.iter().chain(&self.right) {
                app.screen.line(&record.json(app.lang()).to_string());
            }
        }
    }
}

impl Failure {
    fn json(&self, lang: Lang) -> RawJson {
        let calls: Vec<RawJson> = self.plan.steps.iter().map(call).collect();
        let problems: Vec<String> = self.plan.problems.iter().map(|problem| problem.localize(lang)).collect();
        let reasons = self.plan.unproven.iter().flat_map(|unproven| &unproven.reasons);
        let reasons: Vec<String> = reasons.map(|reason| reason.localize(lang)).collect();
        RawObject::default()
            .with("id", self.id.as_str())
            .with("request", self.request.as_str())
            .with("tool_right", self.verdict.tools)
            .with("planned", RawJson::of(&calls))
            .with("problems", RawJson::of(&problems))
            .with("run", RawJson::of(&self.plan.runnable().count()))
            .with("wrong_change", self.wrong_change)
            .with("unproven", RawJson::of(&reasons))
            .with("unserved", RawJson::of(&self.plan.unserved))
            .with("confidence", RawJson::of(&self.plan.confidence))
            .into_raw()
    }
}

fn call(step: &PlanStep) -> RawJson {
    let mut arguments = RawObject::default();
    for (name, slot) in &step.arguments {
        arguments.set(
            name.clone(),
            match slot {
                ArgumentSource::Value(value) => value.clone(),
                ArgumentSource::ResultOf(_) => RawJson::from(RESULT),
                ArgumentSource::Template(value) => value.clone(),
            },
        );
    }
    let name = step.tool.as_ref().map_or("", |tool| tool.as_str());
    RawObject::default().with("tool", name).with("arguments", arguments.into_raw()).into_raw()
}
