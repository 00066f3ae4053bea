//! A second implementation of the decision: a plain scan over the rules as configured, written without the code of the
//! crate and without regard to speed.

use serde_json::Value;
use toolhub_access::{AccessResource, Action, ItemKind, RuleEffect, RuleSpec};
use toolhub_core::principal::PrincipalOrigin;
use toolhub_core::{Principal, Role};

/// A decision, with positions of rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Expected {
    Allow(Option<usize>),
    Ask(usize),
    Forbid(Option<usize>),
    NeedScope(usize, Vec<String>),
}

/// 0: no match, 1: presumed, 2: certain.
type Level = u8;

pub(crate) fn decide(
    rules: &[RuleSpec],
    principal: &Principal,
    action: Action<'_>,
    resource: &AccessResource<'_>,
) -> Expected {
    let has = |roles: &[Role]| roles.iter().any(|role| principal.roles.contains(*role));
    let any = has(&Role::ALL);
    let (permitted, kinds): (bool, &[ItemKind]) = match action {
        Action::See => (any, &[ItemKind::Tool, ItemKind::Prompt, ItemKind::Resource, ItemKind::Skill]),
        Action::Call => (has(&[Role::Caller, Role::Owner]), &[ItemKind::Tool]),
        Action::Read | Action::Subscribe => (has(&[Role::Caller, Role::Owner]), &[ItemKind::Resource]),
        Action::GetPrompt => (has(&[Role::Caller, Role::Owner]), &[ItemKind::Prompt]),
        Action::Complete => (has(&[Role::Caller, Role::Owner]), &[ItemKind::Prompt, ItemKind::Resource]),
        Action::UseSkill => (has(&[Role::Caller, Role::Owner]), &[ItemKind::Skill]),
        Action::ViewStates => (any, &[]),
        Action::ManageServers => (has(&[Role::Operator, Role::Owner]), &[]),
        Action::ManageKeys | Action::ManageRules => (has(&[Role::Owner]), &[]),
        Action::ManageOwnKeys => (has(&[Role::Caller, Role::Owner]), &[]),
        Action::DecideHeldCalls | Action::DecideChangedTools => (has(&[Role::Approver, Role::Owner]), &[]),
        Action::ReadAudit => (has(&[Role::Auditor]), &[]),
        Action::ReadPayload { owner } => (has(&[Role::Auditor]) || (any && owner == &**principal.id()), &[]),
    };
    if !permitted {
        return Expected::Forbid(None);
    }
    let profile_fits = match (&principal.profiles, resource.profile) {
        (None, _) => true,
        (Some(_), None) => kinds.is_empty(),
        (Some(_), Some(profile)) => principal.may_use_profile(profile),
    };
    if !profile_fits {
        return Expected::Forbid(None);
    }
    if kinds.is_empty() {
        return Expected::Allow(None);
    }
    if !resource.kind.is_some_and(|kind| kinds.contains(&kind)) {
        return Expected::Forbid(None);
    }
    if rules.is_empty() {
        return Expected::Allow(None);
    }
    let local = principal.origin == PrincipalOrigin::Local;
    let matches: Vec<(usize, &RuleSpec, Level)> = rules
        .iter()
        .enumerate()
        .map(|(position, rule)| (position, rule, match_rule(rule, principal, resource)))
        .filter(|(_, rule, level)| *level > 0 && arguments_match(rule, action, resource))
        .collect();
    let with = |effect: RuleEffect, least: Level| -> Vec<(usize, &RuleSpec)> {
        let fits = |(_, rule, level): &&(usize, &RuleSpec, Level)| rule.effect == effect && *level >= least;
        matches.iter().filter(fits).map(|(position, rule, _)| (*position, *rule)).collect()
    };
    if let Some((position, _)) = with(RuleEffect::Forbid, 1).first() {
        return Expected::Forbid(Some(*position));
    }
    let (holds, asks, allows) =
        (with(RuleEffect::Ask, 1), with(RuleEffect::Ask, 2), with(RuleEffect::Allow, 2));
    if !local && asks.is_empty() && allows.is_empty() {
        return Expected::Forbid(None);
    }
    if action == Action::See {
        let first = asks.iter().chain(&allows).map(|(position, _)| *position).min();
        return Expected::Allow(first);
    }
    let lacking = |rule: &RuleSpec| -> Vec<String> {
        if !matches!(principal.origin, PrincipalOrigin::Oidc { .. }) {
            return Vec::new();
        }
        let scopes = rule.scope.as_deref().unwrap_or_default().split(' ').filter(|scope| !scope.is_empty());
        scopes.filter(|scope| !principal.scopes.iter().any(|held| held == scope)).map(str::to_owned).collect()
    };
    let satisfied = allows.iter().find(|(_, rule)| lacking(rule).is_empty());
    let mut needed: Vec<(usize, &RuleSpec)> = holds.clone();
    if !local && asks.is_empty() && satisfied.is_none() {
        needed.extend(&allows);
    }
    needed.retain(|(_, rule)| !lacking(rule).is_empty());
    needed.sort_by_key(|(position, _)| *position);
    if let Some((position, _)) = needed.first() {
        let mut scopes: Vec<String> = Vec::new();
        for scope in needed.iter().flat_map(|(_, rule)| lacking(rule)) {
            if !scopes.contains(&scope) {
                scopes.push(scope);
            }
        }
        return Expected::NeedScope(*position, scopes);
    }
    match holds.first() {
        Some((position, _)) => Expected::Ask(*position),
        None => Expected::Allow(satisfied.map(|(position, _)| *position)),
    }
}

fn match_rule(rule: &RuleSpec, principal: &Principal, resource: &AccessResource<'_>) -> Level {
    let principals: Vec<String> = rule
        .principals
        .iter()
        .map(|id| match id.as_str() {
            id if lower(id) == "local" => "local".to_owned(),
            id if id.contains(':') => id.to_owned(),
            id => format!("key:{id}"),
        })
        .collect();
    if principal.origin == PrincipalOrigin::Local && !principals.iter().any(|id| id == "local") {
        return 0;
    }
    let selects_tools = !rule.tools.is_empty()
        || !rule.tags.is_empty()
        || rule.arguments.is_some()
        || [rule.hints.read_only, rule.hints.destructive, rule.hints.idempotent, rule.hints.open_world]
            .iter()
            .any(Option::is_some);
    let Some(kind) = resource.kind else { return 0 };
    let kind_fits = match rule.kinds.is_empty() {
        true => !selects_tools || kind == ItemKind::Tool,
        false => rule.kinds.contains(&kind),
    };
    let role_fits = rule.roles.is_empty()
        || rule
            .roles
            .iter()
            .any(|name| Role::from_name(name).is_some_and(|role| principal.roles.contains(role)));
    if !kind_fits || !role_fits {
        return 0;
    }
    let server = resource.source.to_string();
    let server_level = any_of(&rule.servers, std::slice::from_ref(&server), true);
    // A bare name with `__` may look like a tool of another server: it never grants. With its server it has several readings, as
    // has a name that begins with `_`, and grants only for a rule that names the server.
    let is_server = matches!(resource.source, toolhub_core::Source::Server(_));
    let names_server = !rule.servers.is_empty() && server_level == 2;
    let mut names: Vec<String> = Vec::new();
    let mut presumed: Vec<String> = Vec::new();
    for name in resource.names {
        let has_separator = is_server && name.contains("__");
        let has_readings = has_separator || (is_server && name.starts_with('_'));
        let to = if has_separator { &mut presumed } else { &mut names };
        to.push((*name).to_owned());
        let to = if has_readings && !names_server { &mut presumed } else { &mut names };
        to.push(format!("{server}__{name}"));
    }
    let levels = [
        any_of(&principals, &[principal.id().to_string()], false),
        any_of(&rule.groups, &principal.groups, false),
        match resource.profile {
            None if !rule.profiles.is_empty() => 1,
            None => 2,
            Some(profile) => any_of(&rule.profiles, &[profile.to_owned()], false),
        },
        server_level,
        if resource.names.is_empty() && !rule.tools.is_empty() {
            1
        } else {
            any_of(&rule.tools, &names, true).max(any_of(&rule.tools, &presumed, true).min(1))
        },
        any_of(&rule.tags, resource.tags, false),
        hints_level(rule, resource),
    ];
    levels.into_iter().min().unwrap_or(0)
}

fn hints_level(rule: &RuleSpec, resource: &AccessResource<'_>) -> Level {
    let mut hints = resource.hints;
    if hints.read_only == Some(true) && hints.destructive == Some(true) {
        hints.read_only = None;
    }
    if hints.read_only == Some(true) {
        hints.destructive = hints.destructive.or(Some(false));
        hints.idempotent = hints.idempotent.or(Some(true));
    }
    let level = |wanted: Option<bool>, value: Option<bool>, default: bool| match wanted {
        None => 2,
        Some(wanted) if value == Some(wanted) => 2,
        Some(wanted) if value.is_none() && wanted == default => 1,
        Some(_) => 0,
    };
    let levels = [
        level(rule.hints.read_only, hints.read_only, false),
        level(rule.hints.destructive, hints.destructive, true),
        level(rule.hints.idempotent, hints.idempotent, false),
        level(rule.hints.open_world, hints.open_world, true),
    ];
    levels.into_iter().min().unwrap_or(0)
}

fn any_of(patterns: &[String], texts: &[String], wildcards: bool) -> Level {
    if patterns.is_empty() {
        return 2;
    }
    let level = |pattern: &str, text: &str| -> Level {
        let equal = |pattern: &str, text: &str| match wildcards {
            true => glob(&pattern.chars().collect::<Vec<_>>(), &text.chars().collect::<Vec<_>>()),
            false => pattern == text,
        };
        if equal(pattern, text) {
            2
        } else if equal(&lower(pattern), &lower(text)) {
            1
        } else {
            0
        }
    };
    let levels = patterns.iter().flat_map(|pattern| texts.iter().map(move |text| level(pattern, text)));
    levels.max().unwrap_or(0)
}

fn glob(pattern: &[char], text: &[char]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some(('*', rest)) => (0..=text.len()).any(|start| glob(rest, &text[start..])),
        Some((first, rest)) => text.first() == Some(first) && glob(rest, &text[1..]),
    }
}

/// `ſ` is another lower case of `S`.
fn lower(text: &str) -> String {
    text.to_lowercase().replace('ſ', "s")
}

fn arguments_match(rule: &RuleSpec, action: Action<'_>, resource: &AccessResource<'_>) -> bool {
    let Some(schema) = &rule.arguments else { return true };
    if action == Action::See {
        return rule.effect != RuleEffect::Forbid;
    }
    let readable = resource.arguments.and_then(|raw| {
        let value: Value = serde_json::from_str(raw.get()).ok()?;
        let members = value.as_object()?;
        // The texts are flat objects without colons in strings, so that each member has one colon.
        let has_duplicates = members.len() != raw.get().matches(':').count();
        let named = |key: &str| {
            schema["properties"].get(key).is_some()
                || schema["required"].as_array().is_some_and(|names| names.iter().any(|name| name == key))
        };
        let is_variant = |key: &String| !named(key) && named(&key.to_lowercase());
        (!has_duplicates && !members.keys().any(is_variant)).then_some(value)
    });
    match readable {
        Some(value) => jsonschema::is_valid(schema, &value),
        None => rule.effect != RuleEffect::Allow,
    }
}
