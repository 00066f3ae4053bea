//! Attempts to use what a rule forbids. Each one is a single decision with its expected result.

use serde_json::json;
use toolhub_access::{AccessResource, Action, ItemKind};
use toolhub_core::{Hints, Principal, Role, Source};

use crate::support::{caller, decide, decide_call, decide_tool, key, person, rules, word};

#[test]
fn a_prohibition_wins_in_any_position() {
    let forbid = json!({"effect": "forbid", "tools": ["write"]});
    let (ask, allow) = (json!({"effect": "ask"}), json!({"effect": "allow", "tools": ["files__write"]}));
    for list in [json!([forbid, ask, allow]), json!([ask, allow, forbid]), json!([allow, forbid, ask])] {
        assert_eq!(decide_tool(&rules(list), &caller(), Action::Call, "files/write"), "forbid");
    }
    assert_eq!(decide_tool(&rules(json!([allow, ask])), &caller(), Action::Call, "files/write"), "ask");
}

#[test]
fn nothing_matched_means_forbidden_once_there_is_a_rule() {
    let some = rules(json!([{"effect": "allow", "tools": ["read"]}]));
    assert_eq!(decide_tool(&some, &caller(), Action::Call, "files/write"), "forbid");
    assert_eq!(decide_tool(&some, &caller(), Action::See, "files/write"), "forbid");
    assert_eq!(decide_tool(&rules(json!([])), &caller(), Action::Call, "files/write"), "allow");
    let other_tools = rules(json!([{"effect": "forbid", "tools": ["send"]}]));
    assert_eq!(decide_tool(&other_tools, &caller(), Action::Call, "files/write"), "forbid");
}

#[test]
fn letter_case_does_not_escape_a_prohibition_and_does_not_grant() {
    let allow_all = json!({"effect": "allow"});
    for forbid in [
        json!({"effect": "forbid", "tools": ["WRITE"]}),
        json!({"effect": "forbid", "tools": ["Files__*"]}),
        json!({"effect": "forbid", "servers": ["FILES"]}),
        json!({"effect": "forbid", "principals": ["CI"]}),
        json!({"effect": "forbid", "principals": ["key:Ci"]}),
        json!({"effect": "forbid", "groups": ["staff"]}),
        json!({"effect": "forbid", "tags": ["DISK"]}),
        json!({"effect": "forbid", "profiles": ["office"]}),
    ] {
        let rules = rules(json!([allow_all, forbid]));
        let (source, tags) = (Source::from_name("files"), ["disk".to_owned()]);
        let mut ci = caller();
        ci.groups = vec!["Staff".to_owned()];
        let resource = AccessResource::tool(&source, &["write"]).in_profile("OFFICE").with_tags(&tags);
        assert!(decide(&rules, &ci, Action::Call, &resource).is_forbidden(), "{forbid}");
        let mut allow = forbid.clone();
        allow["effect"] = json!("allow");
        let rules = crate::support::rules(json!([allow]));
        assert!(decide(&rules, &ci, Action::Call, &resource).is_forbidden(), "{allow}");
        // Held, if something else grants it; not granted by the rule that asks.
        let mut ask = forbid.clone();
        ask["effect"] = json!("ask");
        assert_eq!(
            word(&decide(&crate::support::rules(json!([ask])), &ci, Action::Call, &resource)),
            "forbid"
        );
        let rules = crate::support::rules(json!([ask, allow_all]));
        assert_eq!(word(&decide(&rules, &ci, Action::Call, &resource)), "ask");
    }
}

#[test]
fn an_alias_of_the_name_does_not_escape() {
    let source = Source::from_name("files");
    let names = ["remove_2", "delete"];
    for pattern in ["delete", "remove_2", "files__delete", "files__*", "*delete*", "DEL*"] {
        let rules = rules(json!([{"effect": "allow"}, {"effect": "forbid", "tools": [pattern]}]));
        let resource = AccessResource::tool(&source, &names);
        assert!(decide(&rules, &caller(), Action::Call, &resource).is_forbidden(), "{pattern}");
        assert!(decide(&rules, &caller(), Action::See, &resource).is_forbidden(), "{pattern}");
    }
}

#[test]
fn arguments_that_a_server_may_read_in_another_way_are_not_granted() {
    let schema =
        json!({"properties": {"path": {"type": "string", "pattern": "^/data/"}}, "required": ["path"]});
    let allow = rules(json!([{"effect": "allow", "arguments": schema}]));
    let check = |arguments: Option<&str>, expect: &str| {
        assert_eq!(decide_call(&allow, &caller(), arguments), expect, "{arguments:?}");
    };
    check(Some(r#"{"path": "/data/a"}"#), "allow");
    check(Some(r#"{"path": "\u002fdata/a"}"#), "allow");
    check(Some(r#"{"path": "/etc/passwd"}"#), "forbid");
    check(Some(r#"{"path": "\u002fetc/passwd"}"#), "forbid");
    check(Some(r#"{"path": ["/data/a"]}"#), "forbid");
    check(Some("{}"), "forbid");
    check(None, "forbid");
    check(Some("null"), "forbid");
    check(Some(r#"["/data/a"]"#), "forbid");
    check(Some(r#"{"path": "/data/a", "path": "/etc/passwd"}"#), "forbid");
    check(Some(r#"{"path": "/etc/passwd", "path": "/data/a"}"#), "forbid");
    check(Some(r#"{"path": "/data/a", "p\u0061th": "/etc/passwd"}"#), "forbid");
    check(Some(r#"{"path": "/data/a", "PATH": "/etc/passwd"}"#), "forbid");
    check(Some(r#"{"path": "/data/a", "x": {"y": 1, "y": 2}}"#), "forbid");
    check(Some(r#"{"path": "/data/a", "x": "\ud800"}"#), "forbid");
    check(Some(r#"{"path": "/data/a", "n": 1e999}"#), "forbid");
    let deep = format!(r#"{{"path": "/data/a", "x": {}1{}}}"#, "[".repeat(200), "]".repeat(200));
    check(Some(&deep), "forbid");
}

#[test]
fn unreadable_arguments_match_what_holds_and_forbids() {
    let schema = json!({"properties": {"force": {"const": true}}, "required": ["force"]});
    for (effect, expect) in [("forbid", "forbid"), ("ask", "ask")] {
        let rules = rules(json!([{"effect": "allow"}, {"effect": effect, "arguments": schema}]));
        let check = |arguments: Option<&str>, expect: &str| {
            assert_eq!(decide_call(&rules, &caller(), arguments), expect, "{effect} {arguments:?}");
        };
        check(Some(r#"{"force": false}"#), "allow");
        check(Some("{}"), "allow");
        check(Some(r#"{"force": true}"#), expect);
        check(Some(r#"{"forc\u0065": true}"#), expect);
        check(Some(r#"{"force": false, "force": true}"#), expect);
        check(Some(r#"{"Force": true}"#), expect);
        check(Some("[]"), expect);
        check(None, expect);
    }
}

#[test]
fn argument_rules_do_not_hide_a_tool() {
    let schema = json!({"properties": {"path": {"pattern": "^/data/"}}});
    let see = |list| decide_tool(&rules(list), &caller(), Action::See, "files/write");
    assert_eq!(see(json!([{"effect": "allow", "arguments": schema}])), "allow");
    assert_eq!(see(json!([{"effect": "ask", "arguments": schema}])), "allow");
    assert_eq!(see(json!([{"effect": "allow"}, {"effect": "forbid", "arguments": schema}])), "allow");
    assert_eq!(see(json!([{"effect": "forbid", "arguments": schema}])), "forbid");
}

#[test]
fn missing_hints_count_as_dangerous() {
    let decide_hints = |list: serde_json::Value, hints: Hints| {
        let source = Source::from_name("files");
        word(&decide(
            &rules(list),
            &caller(),
            Action::Call,
            &AccessResource::tool(&source, &["x"]).with_hints(hints),
        ))
    };
    let unknown = Hints::default();
    let read_only = Hints { read_only: Some(true), ..unknown };
    let both = Hints { read_only: Some(true), destructive: Some(true), ..unknown };
    let forbid = json!([{"effect": "allow"}, {"effect": "forbid", "hints": {"destructive": true}}]);
    assert_eq!(decide_hints(forbid.clone(), unknown), "forbid");
    assert_eq!(decide_hints(forbid.clone(), read_only), "allow");
    assert_eq!(decide_hints(forbid, both), "forbid");
    let allow = json!([{"effect": "allow", "hints": {"read_only": true}}]);
    assert_eq!(decide_hints(allow.clone(), unknown), "forbid");
    assert_eq!(decide_hints(allow.clone(), read_only), "allow");
    assert_eq!(decide_hints(allow, both), "forbid");
    let open = json!([{"effect": "allow", "hints": {"open_world": true}}]);
    assert_eq!(decide_hints(open, unknown), "forbid");
}

#[test]
fn the_local_user_is_bound_only_by_rules_that_name_it() {
    let local = Principal::local();
    let call = |list, tool| decide_tool(&rules(list), &local, Action::Call, tool);
    assert_eq!(call(json!([{"effect": "forbid"}]), "files/write"), "allow");
    assert_eq!(call(json!([{"effect": "forbid", "roles": ["owner"]}]), "files/write"), "allow");
    assert_eq!(call(json!([{"effect": "forbid", "principals": ["Local"]}]), "files/write"), "forbid");
    assert_eq!(
        call(json!([{"effect": "ask", "principals": ["local"], "tools": ["w*"]}]), "files/write"),
        "ask"
    );
    assert_eq!(
        call(json!([{"effect": "ask", "principals": ["local"], "tools": ["w*"]}]), "files/read"),
        "allow"
    );
    // A key of that name is another principal.
    let named = rules(json!([{"effect": "allow"}, {"effect": "forbid", "principals": ["local"]}]));
    let key_local = key("local", &[Role::Caller]);
    assert_eq!(decide_tool(&named, &key_local, Action::Call, "files/write"), "allow");
    let of_key = rules(json!([{"effect": "allow"}, {"effect": "forbid", "principals": ["key:local"]}]));
    assert_eq!(decide_tool(&of_key, &key_local, Action::Call, "files/write"), "forbid");
    assert_eq!(decide_tool(&of_key, &local, Action::Call, "files/write"), "allow");
}

#[test]
fn names_of_principals_do_not_cross_origins() {
    let rules = rules(json!([{"effect": "allow", "principals": ["ann"]}]));
    assert_eq!(decide_tool(&rules, &key("ann", &[Role::Caller]), Action::Call, "files/read"), "allow");
    // The display name of a person is no identity.
    assert_eq!(decide_tool(&rules, &person("ann", &[]), Action::Call, "files/read"), "forbid");
    let mut disguised = person("eve", &[]);
    disguised.display = "key:ann".to_owned();
    assert_eq!(decide_tool(&rules, &disguised, Action::Call, "files/read"), "forbid");
}

#[test]
fn rules_about_tools_do_not_grant_other_kinds() {
    let source = Source::from_name("files");
    let check = |rule: serde_json::Value, visible: [bool; 4]| {
        let rules = rules(json!([rule]));
        for (kind, visible) in ItemKind::ALL.into_iter().zip(visible) {
            let resource = AccessResource::item(kind, &source, &["report"]);
            let decision = decide(&rules, &caller(), Action::See, &resource);
            assert_eq!(decision.is_allowed(), visible, "{rule} {kind:?}");
        }
    };
    check(json!({"effect": "allow"}), [true; 4]);
    check(json!({"effect": "allow", "servers": ["files"]}), [true; 4]);
    check(json!({"effect": "allow", "tools": ["report"]}), [true, false, false, false]);
    check(json!({"effect": "allow", "arguments": {}}), [true, false, false, false]);
    check(
        json!({"effect": "allow", "tools": ["rep*"], "kinds": ["prompt", "skill"]}),
        [false, true, false, true],
    );
}

#[test]
fn a_cached_decision_follows_roles_groups_and_scopes() {
    let rules = rules(json!([
        {"effect": "allow", "groups": ["staff"]},
        {"effect": "allow", "scope": "files", "tools": ["read"]},
    ]));
    let cache = toolhub_access::PermissionCache::new(rules);
    let source = Source::from_name("files");
    let resource = AccessResource::tool(&source, &["read"]);
    let call = |principal: &Principal| word(&cache.decide(principal, Action::Call, &resource));
    let mut ann = person("ann", &[]);
    ann.groups = vec!["staff".to_owned()];
    assert_eq!(call(&ann), "allow");
    ann.groups.clear();
    assert_eq!(call(&ann), "scope files");
    ann.scopes = vec!["files".to_owned()];
    assert_eq!(call(&ann), "allow");
    ann.roles = Role::Viewer.into();
    assert_eq!(call(&ann), "forbid");
    ann.roles = Role::Caller.into();
    assert_eq!(call(&ann), "allow");
}
