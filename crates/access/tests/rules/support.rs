//! Short constructors for rules and principals.

use serde_json::Value;
use toolhub_access::{AccessResource, Action, Decision, RuleSet, RuleSpec};
use toolhub_core::principal::{PrincipalKind, PrincipalOrigin};
use toolhub_core::{Principal, RawJson, Role, Roles, Source};

pub(crate) fn rules(list: Value) -> RuleSet {
    let specs: Vec<RuleSpec> = serde_json::from_value(list).unwrap();
    RuleSet::compile(specs).unwrap()
}

pub(crate) fn key(name: &str, roles: &[Role]) -> Principal {
    let mut principal = Principal::of_key(name);
    principal.roles = roles.iter().copied().collect();
    principal
}

pub(crate) fn caller() -> Principal {
    key("ci", &[Role::Caller])
}

/// A person with an access token.
pub(crate) fn person(subject: &str, scopes: &[&str]) -> Principal {
    let origin =
        PrincipalOrigin::Oidc { issuer: "https://idp.example".to_owned(), subject: subject.to_owned() };
    let mut principal = Principal::new(origin, PrincipalKind::Person);
    principal.roles = Roles::from(Role::Caller);
    principal.scopes = scopes.iter().map(ToString::to_string).collect();
    principal
}

pub(crate) fn raw(text: &str) -> RawJson {
    RawJson::parse(text).unwrap()
}

/// The decision for a principal, without a cache.
pub(crate) fn decide(
    rules: &RuleSet,
    principal: &Principal,
    action: Action<'_>,
    resource: &AccessResource<'_>,
) -> Decision {
    rules.for_principal(principal).decide_for(principal.id(), action, resource)
}

/// The decision about a tool `server` / `name` as one word: `allow`, `ask`, `forbid`, or `scope a b`.
pub(crate) fn decide_tool(rules: &RuleSet, principal: &Principal, action: Action<'_>, tool: &str) -> String {
    let (server, name) = tool.split_once('/').unwrap();
    let source = Source::from_name(server);
    word(&decide(rules, principal, action, &AccessResource::tool(&source, &[name])))
}

/// The decision about a call of `files/write` with these arguments.
pub(crate) fn decide_call(rules: &RuleSet, principal: &Principal, arguments: Option<&str>) -> String {
    let source = Source::from_name("files");
    let arguments = arguments.map(raw);
    let resource =
        AccessResource { arguments: arguments.as_ref(), ..AccessResource::tool(&source, &["write"]) };
    word(&decide(rules, principal, Action::Call, &resource))
}

pub(crate) fn word(decision: &Decision) -> String {
    match decision {
        Decision::Allow { .. } => "allow".to_owned(),
        Decision::Ask { .. } => "ask".to_owned(),
        Decision::Forbid { .. } => "forbid".to_owned(),
        Decision::NeedScope { scopes, .. } => format!("scope {}", scopes.join(" ")),
    }
}
