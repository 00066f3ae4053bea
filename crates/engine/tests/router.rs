//! The routing rules, case by case: who is tried, in which order, and why.

use serde_json::{Value, json};
use toolhub_core::lang::Lang;
use toolhub_core::source::SourceKind;
use toolhub_core::{RawJson, Say as _, ServerId};
use toolhub_engine::router::route;
use toolhub_engine::{Catalog, Policy, Request};
use toolhub_testkit::FakeHost;

/// Tools: `shared` everywhere, `only_b` on server b, `only_native` in the hub.
fn catalog() -> Catalog {
    let strict = json!({"inputSchema": {"type": "object", "required": ["path"]}});
    let native = FakeHost::native().tool("shared", json!({}), &[]).tool("only_native", json!({}), &[]);
    let a = FakeHost::server("a").tool("shared", strict, &[]);
    let b = FakeHost::server("b").tool("shared", json!({}), &[]).tool("only_b", json!({}), &[]);
    Catalog::new([native, b, a].iter().flat_map(FakeHost::tools).cloned())
}

fn policy() -> Policy {
    Policy { servers: vec![ServerId::new("a"), ServerId::new("b")], ..Policy::default() }
}

/// The candidates' sources and all reasons, or the error.
fn decide(
    tool: &str,
    source: Option<&str>,
    arguments: Option<Value>,
) -> Result<(Vec<String>, String), String> {
    let arguments = arguments.map(RawJson::from);
    let request = Request { tool, source, arguments: arguments.as_ref() };
    let route = route(request, &catalog(), &policy()).map_err(|error| error.to_string())?;
    let sources = route.candidates.iter().map(|candidate| candidate.source().to_string()).collect();
    let reasons = route.reasons.iter().map(|reason| reason.say(Lang::En)).collect::<Vec<_>>().join("; ");
    Ok((sources, reasons))
}

#[test]
fn the_three_way_rule() {
    let check = |source: Option<&str>, expect: &[&str], why: &str| {
        let (sources, reasons) = decide("shared", source, None).unwrap();
        assert_eq!(sources, expect, "{source:?}");
        assert!(reasons.contains(why), "{source:?}: {reasons}");
    };
    // Absent: MCP in the order of the config, then native.
    check(None, &["a", "b", "native"], "tried in the order mcp, skill, native");
    // A model's guess: MCP first all the same, and it says why.
    check(Some("native"), &["a", "b", "native"], "source `native` is often a model's guess");
    check(Some("appflowy"), &["a", "b", "native"], "source `appflowy` is often a model's guess");
    // A configured server: only that one.
    check(Some("b"), &["b"], "only that server is asked");
    // Anything else: as if absent, with a warning.
    check(Some("moon"), &["a", "b", "native"], "warning: there is no source `moon`");
}

#[test]
fn unknown_tools_get_a_way_on() {
    let check = |tool: &str, source: Option<&str>, expect: &str| {
        assert_eq!(decide(tool, source, None).unwrap_err(), expect);
    };
    check("only_nativ", None, "there is no tool `only_nativ`; did you mean `only_native`?");
    check("zzz", None, "there is no tool `zzz`; `toolhub tools` lists what there is");
    check(
        "only_b",
        Some("a"),
        "server `a` has no tool `only_b`; it exists in `b`: leave out the source, or name that one",
    );
    check("share", Some("a"), "server `a` has no tool `share`; did you mean `shared`?");
}

#[test]
fn arguments_decide_who_is_in_the_group() {
    let (sources, reasons) = decide("shared", None, Some(json!({}))).unwrap();
    assert_eq!(sources, ["b", "native"]);
    assert!(reasons.contains("a is left out, as the arguments do not fit its schema"), "{reasons}");
    assert_eq!(decide("shared", None, Some(json!({"path": 1}))).unwrap().0, ["a", "b", "native"]);
    let error = decide("shared", Some("a"), Some(json!({}))).unwrap_err();
    assert!(error.starts_with("wrong arguments for `shared`: `path` is missing"), "{error}");
}

#[test]
fn the_order_is_policy() {
    let policy = Policy { order: vec![SourceKind::Native, SourceKind::Mcp], ..policy() };
    let request = Request { tool: "shared", source: None, arguments: None };
    let found = route(request, &catalog(), &policy).unwrap();
    let sources: Vec<_> = found.candidates.iter().map(|candidate| candidate.source().to_string()).collect();
    assert_eq!(sources, ["native", "a", "b"]);
    let without_native = Policy { order: vec![SourceKind::Mcp], ..policy };
    let request = Request { tool: "only_native", source: None, arguments: None };
    assert!(route(request, &catalog(), &without_native).is_err());
}
