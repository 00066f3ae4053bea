//! Explanations agree with decisions, and name the reason.

use proptest::prelude::*;
use serde_json::json;
use toolhub_access::{AccessResource, Action, Decision, Mismatch, RuleEffect, RuleSet, explain};
use toolhub_core::Source;
use toolhub_core::lang::{Lang, Localize as _};
use toolhub_core::{Principal, Role};

use crate::generate;
use crate::support::{caller, decide, key, person, raw, rules};

#[test]
fn names_the_first_selector_that_differs() {
    let rules = rules(json!([
        {"effect": "allow", "roles": ["owner"]},
        {"effect": "allow", "groups": ["staff"]},
        {"effect": "allow", "principals": ["dev"]},
        {"effect": "allow", "kinds": ["skill"]},
        {"effect": "allow", "profiles": ["office"]},
        {"effect": "allow", "servers": ["mail"]},
        {"effect": "allow", "tools": ["read"]},
        {"effect": "allow", "tags": ["time"]},
        {"effect": "allow", "hints": {"read_only": true}},
        {"effect": "allow", "arguments": {"required": ["a"]}},
        {"effect": "allow", "tools": ["WRITE"]},
        {"name": "final", "effect": "forbid", "tools": ["WRITE"]},
    ]));
    let source = Source::from_name("files");
    let arguments = raw("{}");
    let resource = AccessResource::tool(&source, &["write"]).in_profile("home").with_arguments(&arguments);
    let explained = explain(&rules, &caller(), Action::Call, &resource);
    let reasons: Vec<Option<Mismatch>> = explained.rules.iter().map(|rule| rule.mismatch).collect();
    let expect = [
        Mismatch::Role,
        Mismatch::Group,
        Mismatch::Principal,
        Mismatch::Kind,
        Mismatch::Profile,
        Mismatch::Server,
        Mismatch::Tool,
        Mismatch::Tag,
        Mismatch::Hint,
        Mismatch::Arguments,
        Mismatch::Uncertain,
    ];
    assert_eq!(reasons, expect.into_iter().map(Some).chain([None]).collect::<Vec<_>>());
    assert_eq!(explained.summary.to_string(), "forbidden by `final`");
    assert_eq!(
        explained.rules[0].localize(Lang::En),
        "`rule 1` (allow) does not match: the principal has none of its `roles`"
    );
    assert_eq!(explained.rules[11].localize(Lang::Zh), "`final`（forbid）匹配");
    let local = explain(&rules, &Principal::local(), Action::Call, &resource);
    assert!(local.rules.iter().all(|rule| rule.mismatch == Some(Mismatch::Local)));
    assert_eq!(local.summary.to_string(), "allowed: no rule is needed");
}

#[test]
fn unknown_arguments_make_a_call_conditional_if_a_rule_about_them_decides() {
    let check = |list: serde_json::Value, expect: &[&str]| {
        let (rules, source) = (rules(list.clone()), Source::from_name("files"));
        let resource = AccessResource::tool(&source, &["write"]).in_profile("home");
        let explained = explain(&rules, &caller(), Action::Call, &resource);
        let found: Vec<&str> = explained.depends_on.iter().map(|rule| &*rule.name).collect();
        assert_eq!(found, expect, "{list}");
        assert_eq!(explained.summary.to_string().starts_with("depends on the arguments"), !expect.is_empty());
        // With arguments nothing is left open.
        let arguments = raw("{}");
        let explained = explain(&rules, &caller(), Action::Call, &resource.with_arguments(&arguments));
        assert!(explained.depends_on.is_empty() && !explained.rules.iter().any(|rule| rule.is_conditional));
    };
    let rule = |name: &str, effect: &str| json!({"name": name, "effect": effect});
    let about =
        |name: &str, effect: &str| json!({"name": name, "effect": effect, "arguments": {"required": ["a"]}});
    check(json!([about("some", "allow")]), &["some"]);
    check(json!([about("some", "allow"), rule("all", "allow")]), &[]);
    check(json!([about("some", "allow"), rule("all", "ask")]), &[]);
    check(json!([about("some", "forbid"), rule("all", "allow")]), &["some"]);
    check(json!([about("some", "forbid")]), &[]);
    check(json!([about("held", "ask"), rule("all", "allow"), about("some", "forbid")]), &["held", "some"]);
    check(json!([about("held", "ask"), about("some", "allow"), rule("none", "forbid")]), &[]);
    let other =
        json!({"name": "other", "effect": "allow", "tools": ["read"], "arguments": {"required": ["a"]}});
    check(json!([other]), &[]);
}

#[test]
fn says_which_role_profile_or_scope_is_missing() {
    let source = Source::from_name("files");
    let tool = AccessResource::tool(&source, &["write"]);
    let summary = |rules: &RuleSet, principal: &Principal, action: Action<'_>| {
        explain(rules, principal, action, &tool).summary.to_string()
    };
    let (none, scoped) = (RuleSet::default(), rules(json!([{"effect": "allow", "scope": "a b"}])));
    let viewer = key("ci", &[Role::Viewer]);
    assert_eq!(
        summary(&none, &viewer, Action::Call),
        "forbidden: `key:ci` has none of the roles `caller`, `owner`"
    );
    let mut elsewhere = caller();
    elsewhere.profiles = Some(vec!["office".to_owned()]);
    assert_eq!(summary(&none, &elsewhere, Action::Call), "forbidden: `key:ci` may not use this profile");
    let ann = person("ann", &["b"]);
    assert_eq!(summary(&scoped, &ann, Action::Call), "needs an access token with the scope `a`");
    let explained = explain(&scoped, &ann, Action::Call, &tool);
    assert_eq!(
        explained.rules[0].localize(Lang::En),
        "`rule 1` (allow) matches; the token lacks the scope `a`"
    );
    let other = rules(json!([{"effect": "allow", "tools": ["read"]}]));
    assert_eq!(summary(&other, &ann, Action::Call), "forbidden: no rule allows it");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn matching_rules_lead_to_the_decision(
        specs in generate::rules(6),
        principal in generate::principal(),
        request in generate::request(),
    ) {
        let rules = RuleSet::compile(specs).unwrap();
        for action in generate::ACTIONS {
            let explained = explain(&rules, &principal, action, &request.resource());
            prop_assert_eq!(&explained.decision, &decide(&rules, &principal, action, &request.resource()));
            let matching = |effect: RuleEffect| {
                explained.rules.iter().find(|rule| rule.effect == effect && rule.mismatch.is_none())
            };
            let named = explained.decision.rule().map(|rule| rule.index);
            match &explained.decision {
                Decision::Forbid { rule: Some(_) } => {
                    prop_assert_eq!(matching(RuleEffect::Forbid).map(|rule| rule.rule.index), named);
                }
                Decision::Ask { .. } => {
                    prop_assert_eq!(matching(RuleEffect::Ask).map(|rule| rule.rule.index), named);
                }
                Decision::Allow { rule: Some(rule) } => {
                    prop_assert_eq!(explained.rules[rule.index].mismatch, None);
                }
                _ => {}
            }
        }
    }
}
