//! `toolhub explain`: the route of a call and its reasons, without running it.

use serde::Deserialize;
use toolhub::{Hub, Route, RouteRequest};
use toolhub_core::lang::LocalizedText;
use toolhub_core::{CallBy, Lang, Localize as _, RawJson, RawObject, Source};
use toolhub_engine::Candidate;

use crate::app::App;
use crate::args::ExplainArgs;
use crate::args::tool_arguments;
use crate::commands::tools::call::source_filter;
use crate::commands::tools::explain_access::{self, AccessQuestion};
use crate::exit::Exit;
use crate::render::screen::{BOLD, DIM, NAME};
use crate::render::table::{Cell, Overflow, row_lines};

pub(crate) async fn run(app: &App, args: ExplainArgs) -> anyhow::Result<Exit> {
    let given = args
        .args
        .as_deref()
        .map(|text| tool_arguments::parse_json_arguments(text, app.lang()))
        .transpose()?;
    let hub = app.hub().await?;
    if let Some(principal) = &args.principal {
        let question = AccessQuestion {
            tool: args.tool.as_deref().unwrap_or_default(),
            principal,
            profile: args.profile.as_deref(),
            arguments: given.as_ref(),
        };
        return explain_access::run(app, hub, &question).await;
    }
    let (by, tool) = match (&args.capability, &args.tool) {
        (Some(capability), _) => (CallBy::Capability, capability.as_str()),
        (None, tool) => (CallBy::Name, tool.as_deref().unwrap_or_default()),
    };
    let (source, sources) = source_filter(hub, tool, args.source.as_deref());
    let request =
        RouteRequest { by, source, sources, arguments: given.as_ref(), ..RouteRequest::named(tool) };
    match app.interruptible(hub.explain(request)).await? {
        Ok(mut route) => {
            route.reasons.extend(in_place_of_builtin(hub, &route));
            ExplainedRoute::new(&route, app.lang()).show(app, tool);
        }
        Err(error) => {
            let exit = Exit::from(&error);
            if app.screen.json {
                let json = RawObject::default()
                    .with("tool", tool)
                    .with("success", false)
                    .with("error", error.localize(app.lang()))
                    .with("error_kind", error.kind());
                app.screen.json(&json.into_raw());
            } else {
                app.screen.error(&error.localize(app.lang()));
            }
            return Ok(exit);
        }
    }
    Ok(Exit::Done)
}

/// A note if the tool of a skill takes precedence over the native tool of the same name.
fn in_place_of_builtin(hub: &Hub, route: &Route) -> Option<LocalizedText> {
    let first = route.candidates.first().filter(|first| *first.source() == Source::Skill)?;
    let name = first.entry.tool.name();
    let native =
        |candidate: &Candidate| *candidate.source() == Source::Native && candidate.entry.tool.name() == name;
    route.candidates.iter().find(|candidate| native(candidate))?;
    let snapshot = hub.skills();
    let skill = &snapshot.with_tool(name.as_str())?.0.skill.name;
    Some(LocalizedText::new(
        format!(
            "`{name}` of the skill `{skill}` is called in place of the native tool; `[routing] order` can change that"
        ),
        format!("技能 `{skill}` 的 `{name}` 代替同名的内置工具被调用；可用 `[routing] order` 改变"),
    ))
}

/// A route as it is shown.
#[derive(Debug, Deserialize)]
pub(crate) struct ExplainedRoute {
    /// `first`, `race` or `merge`.
    strategy: String,
    /// How many candidates start at the same time.
    batch: usize,
    candidates: Vec<ExplainedCandidate>,
    reasons: Vec<String>,
}

/// A candidate of a route as it is shown.
#[derive(Debug, Deserialize)]
struct ExplainedCandidate {
    source: String,
    tool: String,
    why: String,
}

impl ExplainedRoute {
    fn new(route: &Route, lang: Lang) -> Self {
        let candidate = |candidate: &Candidate| ExplainedCandidate {
            source: candidate.source().to_string(),
            tool: candidate.entry.tool.name().to_string(),
            why: candidate.why.localize(lang),
        };
        Self {
            strategy: route.strategy.name().to_owned(),
            batch: route.batch,
            candidates: route.candidates.iter().map(candidate).collect(),
            reasons: route.reasons.iter().map(|reason| reason.localize(lang)).collect(),
        }
    }

    pub(crate) fn show(&self, app: &App, tool: &str) {
        match app.screen.json {
            true => app.screen.json(&self.as_json(tool)),
            false => self.print(app, tool),
        }
    }

    fn as_json(&self, tool: &str) -> RawJson {
        let candidate = |candidate: &ExplainedCandidate| {
            RawObject::default()
                .with("source", candidate.source.as_str())
                .with("name", candidate.tool.as_str())
                .with("why", candidate.why.as_str())
        };
        let candidates: Vec<RawObject> = self.candidates.iter().map(candidate).collect();
        RawObject::default()
            .with("tool", tool)
            .with("strategy", self.strategy.as_str())
            .with("batch", self.batch as u64)
            .with("candidates", RawJson::of(&candidates))
            .with("reasons", RawJson::of(&self.reasons))
            .into_raw()
    }

    fn print(&self, app: &App, tool: &str) {
        let lang = app.lang();
        let strategy = match self.strategy.as_str() {
            "race" => lang.choose("side by side, the first success counts", "同时运行，先成功者为准"),
            "merge" => lang.choose("side by side, put together", "同时运行，合并结果"),
            _ => lang.choose("one after another", "依次尝试"),
        };
        app.screen.line(&format!("{BOLD}{tool}{BOLD:#}  {DIM}{} ({strategy}){DIM:#}", self.strategy));
        let row = |(index, candidate): (usize, &ExplainedCandidate)| {
            vec![
                Cell::from(format!("{}.", index + 1)),
                Cell::new(candidate.source.as_str(), NAME),
                Cell::from(candidate.why.as_str()),
            ]
        };
        let rows: Vec<Vec<Cell>> = self.candidates.iter().enumerate().map(row).collect();
        for line in row_lines(&rows, "  ", app.screen.width(), Overflow::Fold).concat() {
            app.screen.line(&line);
        }
        if !self.reasons.is_empty() {
            app.screen.line(lang.choose("why:", "原因："));
        }
        for reason in &self.reasons {
            app.screen.line(&format!("  - {reason}"));
        }
    }
}
