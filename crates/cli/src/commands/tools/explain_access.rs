//! `toolhub explain TOOL --as NAME`: whether a principal may see and call a tool through the gateway, and which rule decides.

use std::time::SystemTime;

use toolhub::Hub;
use toolhub::keys::find_key;
use toolhub::settings::{DEFAULT_PROFILE, TokenSettings, parse_time};
use toolhub_access::{AccessResource, Action, Decision, Explanation, RuleSet, explain, tool_names};
use toolhub_core::lang::LocalizedText;
use toolhub_core::principal::LOCAL;
use toolhub_core::{Localize as _, Principal, RawJson, RawObject};
use toolhub_engine::CatalogEntry;

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

pub(crate) async fn run(app: &App, hub: &Hub, question: &AccessQuestion<'_>) -> anyhow::Result<Exit> {
    let lang = app.lang();
    let auth = &hub.settings().auth;
    let name = question.principal.strip_prefix("key:").unwrap_or(question.principal);
    let token = match question.principal {
        LOCAL => None,
        _ => Some(find_key(auth, name).map_err(|error| UsageError(error.text(name).localize(lang)))?),
    };
    let principal = token.map_or_else(Principal::local, |token| (*token.key().principal).clone());
    let key = match token {
        Some(token) => KeyState::of(hub, token, &principal).await?,
        None => KeyState::default(),
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
        let [mut see, mut call] = [Action::See, Action::Call]
            .map(|action| explain_entry(&rules, &principal, entry, action, question));
        for (explanation, problem) in [(&mut see, key.expiry()), (&mut call, key.problem())] {
            if let Some(problem) = problem {
                explanation.decision = Decision::Forbid { rule: None };
                explanation.summary = problem;
                explanation.depends_on.clear();
            }
        }
        if app.screen.json {
            json.push(as_json(app, entry, &see, &call));
        } else {
            show(app, entry, principal.id(), &see, &call);
        }
    }
    if app.screen.json {
        let all = RawObject::default()
            .with("tool", question.tool)
            .with("principal", &**principal.id())
            .with("profile", question.profile.unwrap_or(DEFAULT_PROFILE))
            .with("expires", RawJson::of(&key.expires))
            .with("per_day", RawJson::of(&key.per_day))
            .with("calls_today", RawJson::of(&key.calls_today))
            .with("sources", RawJson::of(&json));
        app.screen.json(&all.into_raw());
    }
    if let (Some(limit), Some(calls), false) = (key.per_day, key.calls_today, app.screen.json) {
        app.screen.line(&lang.choose(
            format!("  {calls} of {limit} calls of this day (`per_day`)"),
            format!("  今日已用 {calls} 次，共 {limit} 次（`per_day`）"),
        ));
    }
    Ok(Exit::Done)
}

/// What limits a key beside the rules.
#[derive(Default)]
struct KeyState {
    expires: Option<String>,
    is_expired: bool,
    per_day: Option<u64>,
    /// The number of calls since midnight UTC, if they are limited.
    calls_today: Option<u64>,
}

impl KeyState {
    async fn of(hub: &Hub, token: &TokenSettings, principal: &Principal) -> anyhow::Result<Self> {
        let expires = token.expires.clone();
        let is_expired = expires.as_deref().and_then(parse_time).is_some_and(|at| at <= SystemTime::now());
        let calls_today = match token.per_day {
            Some(limit) => Some(hub.calls_today(principal.id(), limit).await?),
            None => None,
        };
        Ok(Self { expires, is_expired, per_day: token.per_day, calls_today })
    }

    /// Why every request is refused.
    fn expiry(&self) -> Option<LocalizedText> {
        let at = self.expires.as_deref().filter(|_| self.is_expired)?;
        Some(LocalizedText::new(
            format!("forbidden: the key expired at {at}; `toolhub keys new` makes another"),
            format!("禁止：密钥已于 {at} 过期；可用 `toolhub keys new` 生成新的密钥"),
        ))
    }

    /// Why every call is refused.
    fn problem(&self) -> Option<LocalizedText> {
        self.expiry().or_else(|| {
            let limit = self.per_day.filter(|limit| self.calls_today.is_some_and(|calls| calls >= *limit))?;
            Some(LocalizedText::new(
                format!("forbidden: the {limit} calls of this day are used up (`per_day`)"),
                format!("禁止：今日的 {limit} 次调用已用完（`per_day`）"),
            ))
        })
    }
}

fn explain_entry(
    rules: &RuleSet,
    principal: &Principal,
    entry: &CatalogEntry,
    action: Action<'_>,
    question: &AccessQuestion<'_>,
) -> Explanation {
    let names = tool_names(&entry.tool);
    let resource = AccessResource::of_tool(&entry.tool, &names).with_tags(entry.tags());
    let mut resource = resource.in_profile(question.profile.unwrap_or(DEFAULT_PROFILE));
    resource.arguments = question.arguments;
    explain(rules, principal, action, &resource)
}

/// The decision in output; `depends` if it depends on arguments that were not given.
fn decision_name(explanation: &Explanation) -> &'static str {
    match &explanation.decision {
        _ if !explanation.depends_on.is_empty() => "depends",
        Decision::Allow { .. } => "allow",
        Decision::Ask { .. } => "ask",
        Decision::Forbid { .. } => "forbid",
        Decision::NeedScope { .. } => "need_scope",
    }
}

fn as_json(app: &App, entry: &CatalogEntry, see: &Explanation, call: &Explanation) -> RawObject {
    let decided = |explanation: &Explanation| {
        RawObject::default()
            .with("decision", decision_name(explanation))
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

fn show(app: &App, entry: &CatalogEntry, principal: &str, see: &Explanation, call: &Explanation) {
    let (lang, tool, source) = (app.lang(), entry.tool.name(), &entry.tool.source);
    app.screen.line(&format!("{BOLD}{tool}{BOLD:#}  {DIM}{source}, {principal}{DIM:#}"));
    for (label, explanation) in [(lang.choose("see", "可见"), see), (lang.choose("call", "调用"), call)] {
        let style = match &explanation.decision {
            _ if !explanation.depends_on.is_empty() => ODD,
            Decision::Allow { .. } => GOOD,
            Decision::Ask { .. } | Decision::NeedScope { .. } => ODD,
            Decision::Forbid { .. } => BAD,
        };
        let decision = decision_name(explanation);
        let mut summary = explanation.summary.localize(lang);
        if !explanation.depends_on.is_empty() {
            summary.push_str(lang.choose("; give them with `--args`", "；请用 `--args` 给出参数"));
        }
        app.screen.line(&format!("  {label}: {style}{decision}{style:#}  {summary}"));
    }
    for rule in &call.rules {
        app.screen.line(&format!("  - {}", rule.localize(lang)));
    }
}
