//! Errors and warnings in rules, names and digests.

use serde_json::{Value, json};
use toolhub_access::{RuleSet, RuleSpec};
use toolhub_core::lang::{Lang, Localize as _};

use crate::support::rules;

#[test]
fn invalid_rules_name_their_position_and_key() {
    let check = |rule: Value, key: &str, words: &str| {
        let specs: Vec<RuleSpec> = serde_json::from_value(json!([{"effect": "allow"}, rule])).unwrap();
        let error = RuleSet::compile(specs).unwrap_err();
        assert_eq!((error.index, error.key), (1, key), "{error}");
        assert!(error.to_string().starts_with(&format!("`[[auth.rules]]` 2, `{key}`: ")), "{error}");
        assert!(error.to_string().contains(words), "{error}");
        assert_ne!(error.localize(Lang::Zh), error.to_string());
    };
    check(
        json!({"effect": "allow", "roles": ["admin"]}),
        "roles",
        "unknown role `admin`: use `viewer`, `caller`",
    );
    check(json!({"effect": "allow", "roles": ["Owner"]}), "roles", "unknown role `Owner`");
    check(json!({"effect": "allow", "tools": [""]}), "tools", "an empty text");
    check(json!({"effect": "forbid", "tools": ["write "]}), "tools", "white space");
    check(json!({"effect": "allow", "servers": ["a", ""]}), "servers", "an empty text");
    check(json!({"effect": "forbid", "groups": ["staff*"]}), "groups", "`*` has a meaning in");
    check(json!({"effect": "forbid", "profiles": ["*"]}), "profiles", "`*` has a meaning in");
    check(json!({"effect": "forbid", "principals": ["key:*"]}), "principals", "`*` has a meaning in");
    check(
        json!({"effect": "forbid", "principals": ["user:ann"]}),
        "principals",
        "`user:ann` is not a principal",
    );
    check(
        json!({"effect": "forbid", "principals": ["oidc:https://idp"]}),
        "principals",
        "is not a principal",
    );
    check(json!({"effect": "forbid", "principals": ["key:"]}), "principals", "is not a principal");
    check(json!({"effect": "allow", "name": " "}), "name", "an empty name");
    check(json!({"effect": "allow", "name": "rule 1"}), "name", "is the name of another rule");
    check(json!({"effect": "allow", "scope": ""}), "scope", "is not a scope");
    check(json!({"effect": "allow", "scope": "a\"b"}), "scope", "is not a scope");
    let arguments = |schema: Value| json!({"effect": "allow", "arguments": schema});
    check(arguments(json!("x")), "arguments", "not an object");
    check(arguments(json!({"path": {}})), "arguments", "unknown keyword `path`");
    check(arguments(json!({"type": "string"})), "arguments", "never matches");
    check(arguments(json!({"required": "path"})), "arguments", "invalid JSON Schema at `/required`");
    check(arguments(json!({"properties": {"a": {"pattern": "("}}})), "arguments", "invalid JSON Schema");
    check(arguments(json!({"properties": {"a": {"format": "no-such"}}})), "arguments", "invalid JSON Schema");
    check(arguments(json!({"$ref": "https://example.org/s"})), "arguments", "`$ref` is not supported");
    // Look-around and back-references need an engine that can take exponential time.
    check(arguments(json!({"properties": {"a": {"pattern": "(?!a)b"}}})), "arguments", "invalid JSON Schema");
    check(arguments(json!({"properties": {"a": {"pattern": "(a)\\1"}}})), "arguments", "invalid JSON Schema");
    let deep = (0..200).fold(json!({}), |inner, _| json!({"not": inner}));
    check(arguments(deep), "arguments", "deep");
}

#[test]
fn unknown_keys_and_values_are_rejected() {
    for text in [
        r#"{"effect": "allow", "tool": ["x"]}"#,
        r#"{"effect": "deny"}"#,
        r#"{"tools": ["x"]}"#,
        r#"{"effect": "allow", "hints": {"readonly": true}}"#,
        r#"{"effect": "allow", "kinds": ["tools"]}"#,
    ] {
        assert!(serde_json::from_str::<RuleSpec>(text).is_err(), "{text}");
    }
}

#[test]
fn digest_changes_with_the_content_only() {
    let base =
        json!([{"effect": "allow", "arguments": {"required": ["a"], "type": "object"}}, {"effect": "ask"}]);
    let same =
        json!([{"arguments": {"type": "object", "required": ["a"]}, "effect": "allow"}, {"effect": "ask"}]);
    assert_eq!(rules(base.clone()).digest(), rules(same).digest());
    // A stored digest stays valid across versions of the program.
    assert_eq!(rules(base.clone()).digest(), 3322802225573041490);
    let mut other = base.clone();
    other[0]["effect"] = json!("forbid");
    assert_ne!(rules(base.clone()).digest(), rules(other).digest());
    assert_ne!(rules(base).digest(), RuleSet::default().digest());
}

#[test]
fn warns_about_grants_that_are_wider_than_they_look() {
    let rules = rules(json!([
        {"effect": "allow", "arguments": {"properties": {"path": {"pattern": "^/data/"}}}},
        {"effect": "forbid", "scope": "x"},
        {"effect": "allow", "arguments": {
            "properties": {"path": {"type": "string", "pattern": "^/data/"}}, "required": ["path"],
        }},
    ]));
    let found: Vec<(usize, &str)> =
        rules.warnings().iter().map(|warning| (warning.index, warning.key)).collect();
    assert_eq!(found, [(0, "arguments"), (0, "arguments"), (1, "scope")]);
    assert!(rules.warnings()[0].localize(Lang::En).contains("allows calls without `path`"));
}
