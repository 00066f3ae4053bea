//! `keys`, `rules` and `access:simulate`: who may do what, and what a change of the rules would do.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::body::Body;
use http::{Response, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolhub::KnownKey;
use toolhub::keys::{self, KeyError, NewKey};
use toolhub::settings::{DEFAULT_PROFILE, parse_time};
use toolhub_access::{AccessResource, Action, Decision, RuleSet, RuleSpec, explain, tool_names};
use toolhub_core::audit::{AuditAction, AuditEvent, ChangeEvent, ChangeKind, ChangedObject};
use toolhub_core::call_log::{CallQuery, CallRecord};
use toolhub_core::lang::LocalizedText;
use toolhub_core::millis::DAY;
use toolhub_core::principal::PrincipalOrigin;
use toolhub_core::{Localize as _, Principal, RawJson, Role};
use toolhub_engine::CatalogEntry;

use super::overview::usable_profiles;
use super::own_edit::record_own_edit;
use super::server_edit::{APPLY_POLL, check_editable};
use super::{Empty, Page, timestamp};
use crate::problem::Problem;
use crate::request::{ConsoleContext, bounded_number};
use crate::route::json_response;

/// How long a request waits until the hub has applied a change of the keys. A revocation fails then: the key is still accepted.
const KEYS_TIMEOUT: Duration = Duration::from_secs(8);
/// Maximum number of recorded calls in a simulation.
const MAX_SIMULATED_CALLS: usize = 20_000;
/// Maximum number of listed calls in its result.
const MAX_LISTED_CALLS: usize = 200;
const DEFAULT_DAYS: u32 = 7;
const MAX_DAYS: u32 = 365;

/// A key, without its secret.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) roles: Vec<String>,
    /// The profiles that it opens; all if it is missing.
    pub(crate) profiles: Option<Vec<String>>,
    pub(crate) expires: Option<String>,
    pub(crate) is_expired: bool,
    /// Maximum number of calls per day.
    pub(crate) per_day: Option<u64>,
    /// When it was revoked; missing for a key in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) revoked: Option<String>,
}

/// The settings of a new key.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct KeyRequest {
    name: String,
    /// `caller` if it is empty.
    #[serde(default)]
    roles: Vec<String>,
    /// All profiles if it is empty.
    #[serde(default)]
    profiles: Vec<String>,
    /// A date such as `2027-01-31`, or a time.
    #[serde(default)]
    expires: Option<String>,
    #[serde(default)]
    per_day: Option<u64>,
    /// The name of a revoked key is refused unless this is `true`: the key is for the same person, who gets access to the calls,
    /// responses and approvals under that name again.
    #[serde(default)]
    same_person: bool,
}

/// A new secret. It is not shown again.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct NewSecret {
    name: String,
    key: String,
}

/// A rule.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Rule {
    pub(crate) name: String,
    /// `allow`, `ask` or `forbid`.
    pub(crate) effect: String,
    /// The rule as in the configuration.
    #[schemars(with = "serde_json::Value")]
    pub(crate) definition: RawJson,
}

/// A simulation: what a principal may do with a tool, or which recorded calls other rules would refuse.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct SimulateRequest {
    /// Rules as in `[[auth.rules]]`, as JSON; those in force if it is missing.
    #[serde(default)]
    #[schemars(with = "Option<Vec<serde_json::Value>>")]
    rules: Option<Vec<RuleSpec>>,
    /// The number of days of recorded calls, 7 if it is missing. They are decided as calls of the profile `default`.
    #[serde(default)]
    #[schemars(range(min = 1, max = MAX_DAYS))]
    days: Option<u32>,
    /// The id of a principal, such as `key:ci`: what it may do with `tool`.
    #[serde(default)]
    principal: Option<String>,
    /// The name of a tool in the catalog.
    #[serde(default)]
    tool: Option<String>,
    #[serde(default)]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    arguments: Option<RawJson>,
    #[serde(default)]
    profile: Option<String>,
}

/// A decision about a tool at one source.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct SourceDecision {
    source: String,
    /// `allow`, `ask`, `forbid`, `need_scope`, or `depends` on arguments.
    see: String,
    call: String,
    reason: String,
}

/// A recorded call that the rules would not allow.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct RefusedCall {
    id: String,
    at: String,
    principal: String,
    tool: String,
    decision: String,
    rule: Option<String>,
}

/// The result of a simulation.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub(crate) struct Simulation {
    /// For a principal and a tool.
    decisions: Vec<SourceDecision>,
    /// How many recorded calls were checked.
    checked: usize,
    /// How many of them the rules would refuse or hold.
    refused: usize,
    /// Calls of principals or tools that are not known any more, or with shortened arguments.
    skipped: usize,
    /// The first of the refused calls, newest first.
    calls: Vec<RefusedCall>,
}

pub(crate) fn list_keys(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    let mut items = read_keys(context);
    if context.query.flag("all")? {
        items.extend(context.gateways.access().revoked_keys().into_iter().map(|key| Key {
            name: key.name,
            roles: Vec::new(),
            profiles: None,
            expires: None,
            is_expired: false,
            per_day: None,
            revoked: Some(key.at),
        }));
    }
    Ok(json_response(StatusCode::OK, &Page { items, next: None }))
}

/// The keys in force.
pub(crate) fn read_keys(context: &ConsoleContext<'_>) -> Vec<Key> {
    let key = |known: KnownKey| Key {
        name: known.principal.display.clone(),
        roles: known.principal.roles.iter().map(|role| role.name().to_owned()).collect(),
        profiles: known.principal.profiles.clone(),
        expires: known.expires.map(timestamp),
        is_expired: known.expires.is_some_and(|at| at <= SystemTime::now()),
        per_day: known.per_day,
        revoked: None,
    };
    context.gateways.access().keys().into_iter().map(key).collect()
}

fn key_problem(error: &KeyError, name: &str) -> Problem {
    let (status, kind) = match error {
        KeyError::Unknown => (StatusCode::NOT_FOUND, "not-found"),
        KeyError::Exists | KeyError::Revoked(_) | KeyError::Inline | KeyError::Config(_) => {
            (StatusCode::CONFLICT, "config")
        }
        KeyError::NoRandomness => (StatusCode::INTERNAL_SERVER_ERROR, "no-randomness"),
    };
    Problem::new(status, kind, error.text(name))
}

pub(crate) async fn create_key(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    let new: KeyRequest = context.json()?;
    let name = new.name.trim().to_owned();
    if name.is_empty() || name.chars().any(char::is_control) {
        return Err(Problem::bad_request(
            "a key needs the name of the person or program that uses it",
            "密钥需要使用者（人或程序）的名称",
        ));
    }
    if let Some(role) = new.roles.iter().find(|role| Role::from_name(role).is_none()) {
        let known = Role::ALL.map(Role::name).join(", ");
        return Err(Problem::bad_request(
            format!("there is no role `{role}`; there are: {known}"),
            format!("没有角色 `{role}`；现有：{known}"),
        ));
    }
    let expires = new.expires.filter(|expires| !expires.trim().is_empty());
    if let Some(expires) = expires.as_deref().filter(|expires| parse_time(expires).is_none()) {
        return Err(Problem::bad_request(
            format!("`{expires}` is no date or time such as 2027-01-31"),
            format!("`{expires}` 不是日期或时间，应如 2027-01-31"),
        ));
    }
    let is_past = |expires: &str| parse_time(expires).is_some_and(|at| at <= SystemTime::now());
    if expires.as_deref().is_some_and(is_past) {
        return Err(Problem::bad_request(
            "this date is over: the key would be refused at once",
            "该日期已过：密钥会立即失效",
        ));
    }
    let profiles = usable_profiles(context);
    if let Some(unknown) = new.profiles.iter().find(|profile| !profiles.contains(profile)) {
        let known = profiles.join(", ");
        return Err(Problem::bad_request(
            format!("there is no profile `{unknown}`; there are: {known}"),
            format!("没有配置方案 `{unknown}`；现有：{known}"),
        ));
    }
    if new.per_day.is_some_and(|limit| limit == 0 || i64::try_from(limit).is_err()) {
        return Err(Problem::bad_request(
            "`per_day` is a number from 1 to 2^63 - 1",
            "`per_day` 应为 1 到 2^63 - 1 之间的数字",
        ));
    }
    let new = NewKey {
        name,
        roles: new.roles,
        profiles: new.profiles,
        expires,
        per_day: new.per_day,
        same_person: new.same_person,
    };
    let config = &context.hub().paths().config;
    check_editable(context, config)?;
    if read_keys(context).iter().any(|key| key.name == new.name) {
        return Err(key_problem(&KeyError::Exists, &new.name));
    }
    let revoked = context.gateways.access().revoked_keys().into_iter().find(|key| key.name == new.name);
    if let Some(key) = revoked.filter(|_| !new.same_person) {
        return Err(key_problem(&KeyError::Revoked(key.at), &new.name));
    }
    record_key(context, &new.name, ChangeKind::Created).await?;
    let created = record_own_edit(context, config, || keys::create(config, &new))?;
    let key = created.map_err(|error| key_problem(&error, &new.name))?;
    await_keys(context, |keys| keys.iter().any(|key| key.principal.display == new.name)).await;
    Ok(json_response(StatusCode::OK, &NewSecret { name: new.name, key }))
}

pub(crate) async fn rotate_key(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    let known = known_key(context)?;
    let (name, config) = (known.display.clone(), &context.hub().paths().config);
    check_editable(context, config)?;
    record_key(context, &name, ChangeKind::Updated).await?;
    let rotated = record_own_edit(context, config, || keys::rotate(config, &name))?;
    let key = rotated.map_err(|error| key_problem(&error, &name))?;
    await_keys(context, |keys| !keys.iter().any(|key| Arc::ptr_eq(&key.principal, &known))).await;
    Ok(json_response(StatusCode::OK, &NewSecret { name, key }))
}

pub(crate) async fn revoke_key(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    let known = known_key(context)?;
    let (name, config) = (known.display.clone(), &context.hub().paths().config);
    check_editable(context, config)?;
    record_key(context, &name, ChangeKind::Deleted).await?;
    let revoked = record_own_edit(context, config, || keys::revoke(config, &name))?;
    revoked.map_err(|error| key_problem(&error, &name))?;
    if !await_keys(context, |keys| !keys.iter().any(|key| Arc::ptr_eq(&key.principal, &known))).await {
        let file = config.display();
        return Err(Problem::new(
            StatusCode::CONFLICT,
            "not-applied",
            LocalizedText::new(
                format!(
                    "`{name}` is removed from `{file}`, but the hub still accepts the key, since it cannot use the file as it is: see what `toolhub serve` prints, or restart it"
                ),
                format!(
                    "`{name}` 已从 `{file}` 中删除，但 hub 无法采用该文件，因此仍接受此密钥：请查看 `toolhub serve` 的输出，或重新启动它"
                ),
            ),
        ));
    }
    // The key is refused already; logins without a key cannot be used.
    let _ = context.hub().forget_logins(&PrincipalOrigin::Key { name }.to_string()).await;
    Ok(json_response(StatusCode::OK, &Empty {}))
}

/// The principal of the key that the path names.
fn known_key(context: &ConsoleContext<'_>) -> Result<Arc<Principal>, Problem> {
    let name = context.id();
    let mut keys = context.gateways.access().keys().into_iter().map(|known| known.principal);
    keys.find(|principal| principal.display == name).ok_or_else(|| key_problem(&KeyError::Unknown, name))
}

/// Waits until the hub has applied a change of the keys, for a limited time. Returns whether it has.
async fn await_keys(context: &ConsoleContext<'_>, is_applied: impl Fn(&[KnownKey]) -> bool) -> bool {
    let deadline = tokio::time::Instant::now() + KEYS_TIMEOUT;
    loop {
        if is_applied(&context.gateways.access().keys()) {
            return true;
        }
        if tokio::time::Instant::now() >= deadline {
            return false;
        }
        tokio::time::sleep(APPLY_POLL).await;
    }
}

async fn record_key(context: &ConsoleContext<'_>, name: &str, change: ChangeKind) -> Result<(), Problem> {
    let object = ChangedObject::Key;
    let detail = Some(format!("{} in the console", change.name()));
    let event = ChangeEvent { object, name: name.to_owned(), change, sha256: None, detail };
    let event = AuditEvent::now(context.principal().id(), AuditAction::Change(event));
    Ok(context.hub().record_audit(event).await?)
}

pub(crate) fn list_rules(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    Ok(json_response(StatusCode::OK, &Page { items: read_rules(context), next: None }))
}

/// The rules in force, in the order of the configuration.
pub(crate) fn read_rules(context: &ConsoleContext<'_>) -> Vec<Rule> {
    let rules = context.gateways.access().rules();
    let rule = |(index, spec): (usize, &RuleSpec)| Rule {
        name: spec.name.clone().unwrap_or_else(|| format!("rule {}", index + 1)),
        effect: spec.effect.name().to_owned(),
        definition: RawJson::of(spec),
    };
    rules.specs().iter().enumerate().map(rule).collect()
}

pub(crate) async fn simulate(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    let request: SimulateRequest = context.json()?;
    if request.arguments.as_ref().is_some_and(|arguments| arguments.object().is_none()) {
        return Err(Problem::bad_request("`arguments` is a JSON object", "`arguments` 应为 JSON 对象"));
    }
    let days = bounded_number("days", request.days.unwrap_or(DEFAULT_DAYS), MAX_DAYS)?;
    let rules = match &request.rules {
        Some(specs) => RuleSet::compile(specs.clone())
            .map_err(|error| Problem::new(StatusCode::BAD_REQUEST, "rules", error.text))?,
        None => context.gateways.access().rules(),
    };
    let principals = principals(context);
    let simulation = match (&request.principal, &request.tool) {
        (Some(principal), Some(tool)) => {
            let found = principals.get(principal.as_str()).ok_or_else(|| {
                Problem::not_found(
                    format!("there is no principal `{principal}`: write `local` or `key:NAME`"),
                    format!("没有主体 `{principal}`：请写 `local` 或 `key:名称`"),
                )
            })?;
            Simulation {
                decisions: decide_tool(context, &rules, found, tool, &request)?,
                ..Simulation::default()
            }
        }
        // Rules about arguments would reveal the arguments of recorded calls.
        _ if !context.reads_all_calls() => {
            return Err(Problem::forbidden(
                "a simulation of recorded calls needs the role `auditor`",
                "对已记录的调用进行模拟需要 `auditor` 角色",
            ));
        }
        _ => simulate_history(context, &rules, &principals, days).await?,
    };
    Ok(json_response(StatusCode::OK, &simulation))
}

/// The known principals, by id.
fn principals(context: &ConsoleContext<'_>) -> HashMap<String, Arc<Principal>> {
    let of_keys = context.gateways.access().keys().into_iter().map(|known| known.principal);
    let all = of_keys.chain([Arc::new(Principal::local())]);
    all.map(|principal| (principal.id().to_string(), principal)).collect()
}

fn decide_tool(
    context: &ConsoleContext<'_>,
    rules: &RuleSet,
    principal: &Principal,
    tool: &str,
    request: &SimulateRequest,
) -> Result<Vec<SourceDecision>, Problem> {
    let catalog = context.hub().catalog();
    let profile = request.profile.as_deref().unwrap_or(DEFAULT_PROFILE);
    let decisions = catalog.named(tool).map(|entry| {
        let [see, call] = [Action::See, Action::Call].map(|action| {
            let names = tool_names(&entry.tool);
            let mut resource =
                AccessResource::of_tool(&entry.tool, &names).with_tags(entry.tags()).in_profile(profile);
            resource.arguments = request.arguments.as_ref();
            let explained = explain(rules, principal, action, &resource);
            let name =
                if explained.depends_on.is_empty() { decision_name(&explained.decision) } else { "depends" };
            (name, explained.summary.localize(context.lang))
        });
        SourceDecision {
            source: entry.tool.source.to_string(),
            see: see.0.to_owned(),
            call: call.0.to_owned(),
            reason: call.1,
        }
    });
    let decisions: Vec<SourceDecision> = decisions.collect();
    if decisions.is_empty() {
        return Err(Problem::not_found(format!("there is no tool `{tool}`"), format!("没有工具 `{tool}`")));
    }
    Ok(decisions)
}

fn decision_name(decision: &Decision) -> &'static str {
    match decision {
        Decision::Allow { .. } => "allow",
        Decision::Ask { .. } => "ask",
        Decision::Forbid { .. } => "forbid",
        Decision::NeedScope { .. } => "need_scope",
    }
}

/// Which of the recorded calls the rules would not allow.
async fn simulate_history(
    context: &ConsoleContext<'_>,
    rules: &RuleSet,
    principals: &HashMap<String, Arc<Principal>>,
    days: u32,
) -> Result<Simulation, Problem> {
    let since = SystemTime::now().checked_sub(DAY * days);
    let query = CallQuery { since, limit: Some(MAX_SIMULATED_CALLS), ..CallQuery::default() };
    let records = context.hub().calls(query).await?;
    let catalog = context.hub().catalog();
    let mut simulation = Simulation::default();
    for record in &records {
        let principal = principals.get(&*record.start.authorization.principal);
        let entry = catalog.named(record.start.tool.as_str()).find(|entry| {
            record.sources.contains(&entry.tool.source)
                || (record.sources.is_empty() && record.start.candidates.contains(&entry.tool.source))
        });
        // Only the beginning of long arguments is stored, which rules about arguments cannot read.
        let is_shortened = record.start.arguments.object().is_some_and(|all| all.contains("$truncated"));
        let (Some(principal), Some(entry), false) = (principal, entry, is_shortened) else {
            simulation.skipped += 1;
            continue;
        };
        simulation.checked += 1;
        let decision = decide_call(rules, principal, entry, record);
        if matches!(decision, Decision::Allow { .. }) {
            continue;
        }
        simulation.refused += 1;
        if simulation.calls.len() < MAX_LISTED_CALLS {
            simulation.calls.push(RefusedCall {
                id: record.start.record.to_string(),
                at: timestamp(record.start.at),
                principal: principal.id().to_string(),
                tool: record.start.tool.to_string(),
                decision: decision_name(&decision).to_owned(),
                rule: decision.rule().map(|rule| rule.name.to_string()),
            });
        }
    }
    Ok(simulation)
}

fn decide_call(
    rules: &RuleSet,
    principal: &Principal,
    entry: &CatalogEntry,
    record: &CallRecord,
) -> Decision {
    let names = tool_names(&entry.tool);
    let mut resource =
        AccessResource::of_tool(&entry.tool, &names).with_tags(entry.tags()).in_profile(DEFAULT_PROFILE);
    resource.arguments = Some(&record.start.arguments);
    rules.for_principal(principal).decide_for(principal.id(), Action::Call, &resource)
}
