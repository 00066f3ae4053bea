//! Scopes of access tokens: step-up, and what a missing scope does not do.

use serde_json::json;
use toolhub_access::{Action, Decision};
use toolhub_core::Principal;

use crate::support::{caller, decide_tool, person, rules};

#[test]
fn names_all_missing_scopes_at_once() {
    let rules = rules(json!([
        {"effect": "ask", "tools": ["write"], "scope": "sheets:write"},
        {"effect": "ask", "servers": ["excel"], "scope": "sheets:read sheets:write"},
        {"effect": "allow"},
    ]));
    let call = |scopes: &[&str]| decide_tool(&rules, &person("ann", scopes), Action::Call, "excel/write");
    assert_eq!(call(&[]), "scope sheets:write sheets:read");
    assert_eq!(call(&["sheets:read"]), "scope sheets:write");
    assert_eq!(call(&["sheets:read", "sheets:write"]), "ask");
    assert_eq!(call(&["SHEETS:READ", "sheets:write"]), "scope sheets:read");
}

#[test]
fn a_missing_scope_does_not_avoid_the_approval() {
    let rules = rules(json!([
        {"effect": "allow"},
        {"effect": "ask", "tools": ["write"], "scope": "sheets:write"},
    ]));
    assert_eq!(decide_tool(&rules, &person("ann", &[]), Action::Call, "excel/write"), "scope sheets:write");
    assert_eq!(decide_tool(&rules, &person("ann", &[]), Action::Call, "excel/read"), "allow");
}

#[test]
fn one_grant_with_all_scopes_is_enough() {
    let rules = rules(json!([
        {"effect": "allow", "scope": "admin"},
        {"effect": "allow", "tools": ["read"], "scope": "files:read"},
    ]));
    assert_eq!(decide_tool(&rules, &person("ann", &["files:read"]), Action::Call, "files/read"), "allow");
    assert_eq!(
        decide_tool(&rules, &person("ann", &[]), Action::Call, "files/read"),
        "scope admin files:read"
    );
    assert_eq!(
        decide_tool(&rules, &person("ann", &["files:read"]), Action::Call, "files/write"),
        "scope admin"
    );
}

#[test]
fn scopes_concern_access_tokens_only() {
    let rules = rules(json!([{"effect": "allow", "scope": "admin", "principals": ["ci", "local"]}]));
    assert_eq!(decide_tool(&rules, &caller(), Action::Call, "files/read"), "allow");
    assert_eq!(decide_tool(&rules, &Principal::local(), Action::Call, "files/read"), "allow");
    assert_eq!(decide_tool(&rules, &person("ann", &[]), Action::Call, "files/read"), "forbid");
}

#[test]
fn a_rule_that_forbids_ignores_its_scope() {
    let rules = rules(json!([
        {"effect": "allow", "scope": "a"},
        {"effect": "forbid", "tools": ["write"], "scope": "b"},
    ]));
    for scopes in [&[][..], &["a"], &["b"], &["a", "b"]] {
        assert_eq!(decide_tool(&rules, &person("ann", scopes), Action::Call, "files/write"), "forbid");
    }
}

#[test]
fn a_tool_that_only_lacks_a_scope_is_visible() {
    let rules = rules(json!([{"name": "step up", "effect": "allow", "scope": "admin"}]));
    assert_eq!(decide_tool(&rules, &person("ann", &[]), Action::See, "files/write"), "allow");
    let permissions = rules.for_principal(&person("ann", &["other"]));
    assert_eq!(
        permissions,
        rules.for_principal(&person("bob", &[])),
        "scopes that no rule names do not matter"
    );
    let source = toolhub_core::Source::Native;
    let resource = toolhub_access::AccessResource::tool(&source, &["x"]);
    let Decision::NeedScope { rule, .. } = permissions.decide(Action::Call, &resource) else { panic!() };
    assert_eq!((rule.index, &*rule.name), (0, "step up"));
}
