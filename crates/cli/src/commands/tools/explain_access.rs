//! `toolhub explain TOOL --as NAME`: whether a principal may see and call a tool through the gateway, and which rule decides.

use toolhub::Hub;
use toolhub::keys::find_key;
use toolhub::settings::DEFAULT_PROFILE;
use toolhub_access::{Action, Decision, Explanation, Resource, RuleSet, explain, tool_names};
use toolhub_core::principal::LOCAL;
use toolhub_core::{Localize as _, Principal, RawJson, RawObject};
use toolhub_engine::Entry;

use crate::app::App;
use crate::exit::{Exit, UsageError};
use crate::render::screen::{BAD, BOLD, DIM, GOOD, ODD};

/// A question about permissions.
pub(crate) struct AccessQuestion<'a> {
    pub(crate) tool: &'a str,
    /// The name or id of the principal.
    pub(crate) principal: &'a str,
    pub(crate) profile: Option<&'a str>,
    pub(crate) arguments: Option<&'a RawJson>,
}

pub(crate) fn run(app: &App, hub: &Hub, question: &AccessQuestion<'_>) -> anyhow::Result<Exit> {
    let lang = app.lang();
    let auth = &hub.settings().auth;
    let name = question.principal.strip_prefix("key:").unwrap_or(question.principal);
    let principal = match question.principal {
        LOCAL => Principal::local(),
        _ => find_key(auth, name)
            .map(|token| (*token.key().principal).clone())
            .map_err(|error| UsageError(error.text(name).localize(lang)))?,
    };
    let rules = RuleSet::compile(auth.rules.clone());
    let rules = rules.map_err(|error| UsageError(error.text.localize(lang)))?;
    let catalog = hub.catalog();
    let entries: Vec<_> = catalog.named(question.tool).collect();
    if entries.is_empty() {
        let tool = question.tool;
        let text = lang.choose(
            format!("there is no tool `{tool}`: `toolhub tools` lists them"),
            format!("没有工具 `{tool}`：可用 `toolhub tools` 查看"),
        );
        return Err(UsageError(text).into());
    }
    let mut json = Vec::new();
    for entry in entries {
        let [see, call] = [Action::See, Action::Call]
            .map(|action| explain_entry(&rules, &principal, (entry, action), question));
        if app.screen.json {
            json.push(as_json(app, entry, &see, &call));
        } else {
            show(app, (entry, principal.id()), &see, &call);
        }
    }
    if app.screen.json {
        let all = RawObject::default()
            .with("tool", question.tool)
            .with("principal", &**principal.id())
            .with("profile", question.profile.unwrap_or(DEFAULT_PROFILE))
            .with("sources", RawJson::of(&json));
        app.screen.json(&all.into_raw());
    }
    Ok(Exit::Done)
}

fn explain_entry(
    rules: &RuleSet,
    principal: &Principal,
    (entry, action): (&Entry, Action<'_>),
    question: &AccessQuestion<'_>,
) -> Explanation {
    let names = tool_names(&entry.tool);
    let resource = Resource::of_tool(&entry.tool, &names).with_tags(entry.tags());
    let mut resource = resource.in_profile(question.profile.unwrap_or(DEFAULT_PROFILE));
    resource.arguments = question.arguments;
    explain(rules, principal, action, &resource)
}

fn decision_name(decision: &Decision) -> &'static str {
    match decision {
        Decision::Allow { .. } => "allow",
        Decision::Ask { .. } => "ask",
        Decision::Forbid { .. } => "forbid",
        Decision::NeedScope { .. } => "need_scope",
    }
}

fn as_json(app: &App, entry: &Entry, see: &Explanation, call: &Explanation) -> RawObject {
    let decided = |explanation: &Explanation| {
        RawObject::default()
            .with("decision", decision_name(&explanation.decision))
            .with("rule", RawJson::of(&explanation.decision.rule().map(|rule| rule.name.to_string())))
            .with("reason", explanation.summary.localize(app.lang()))
    };
    let rules: Vec<String> = call.rules.iter().map(|rule| rule.localize(app.lang())).collect();
    RawObject::default()
        .with("source", entry.tool.source.to_string())
        .with("see", decided(see))
        .with("call", decided(call))
        .with("rules", RawJson::of(&rules))
}

fn show(app: &App, (entry, principal): (&Entry, &str), see: &Explanation, call: &Explanation) {
    let (lang, tool, source) = (app.lang(), entry.tool.name(), &entry.tool.source);
    app.screen.line(&format!("{BOLD}{tool}{BOLD:#}  {DIM}{source}, {principal}{DIM:#}"));
    for (label, explanation) in [(lang.choose("see", "可见"), see), (lang.choose("call", "调用"), call)] {
        let style = match &explanation.decision {
            Decision::Allow { .. } => GOOD,
            Decision::Ask { .. } | Decision::NeedScope { .. } => ODD,
            Decision::Forbid { .. } => BAD,
        };
        let decision = decision_name(&explanation.decision);
        let summary = explanation.summary.localize(lang);
        app.screen.line(&format!("  {label}: {style}{decision}{style:#}  {summary}"));
    }
    for rule in &call.rules {
        app.screen.line(&format!("  - {}", rule.localize(lang)));
    }
}
