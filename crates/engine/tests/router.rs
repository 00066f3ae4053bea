//! The routing rules, case by case: the candidates, their order, and the reasons.

#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use serde_json::{Value, json};
use toolhub_core::lang::Lang;
use toolhub_core::source::SourceKind;
use toolhub_core::{CallBy, Localize as _, RawJson, ServerId};
use toolhub_engine::router::route;
use toolhub_engine::{Catalog, RouteRequest, RoutingContext, RoutingPolicy, Scores};
use toolhub_testkit::FakeHost;

/// The tool `shared` at every source, `only_b` at server b, `only_native` in the hub.
fn catalog() -> Catalog {
    let strict = json!({"inputSchema": {"type": "object", "required": ["path"]}});
    let native = FakeHost::native().tool("shared", json!({}), &[]).tool("only_native", json!({}), &[]);
    let a = FakeHost::server("a").tool("shared", strict, &[]);
    let b = FakeHost::server("b").tool("shared", json!({}), &[]).tool("only_b", json!({}), &[]);
    Catalog::new([native, b, a].iter().flat_map(FakeHost::tools).cloned())
}

fn policy() -> RoutingPolicy {
    RoutingPolicy::equivalent_servers(["a", "b"].map(ServerId::new))
}

/// The candidates' sources and all reasons, or the error.
fn decide(
    tool: &str,
    source: Option<&str>,
    arguments: Option<Value>,
) -> Result<(Vec<String>, String), String> {
    let arguments = arguments.map(RawJson::from);
    let request = RouteRequest { source, arguments: arguments.as_ref(), ..RouteRequest::named(tool) };
    let known = RoutingContext { catalog: &catalog(), policy: &policy(), scores: &Scores::default() };
    let route = route(request, known).map_err(|error| error.to_string())?;
    let sources = route.candidates.iter().map(|candidate| candidate.source().to_string()).collect();
    let reasons = route.reasons.iter().map(|reason| reason.localize(Lang::En)).collect::<Vec<_>>().join("; ");
    Ok((sources, reasons))
}

#[test]
fn source_selects_any_guessed_or_exact_source() {
    let check = |source: Option<&str>, expect: &[&str], why: &str| {
        let (sources, reasons) = decide("shared", source, None).unwrap();
        assert_eq!(sources, expect, "{source:?}");
        assert!(reasons.contains(why), "{source:?}: {reasons}");
    };
    // No source: MCP in the order of the config, then native.
    check(None, &["a", "b", "native"], "tried in the order mcp, skill, native");
    // A source that is often guessed by models: MCP still comes first, and the reason says so.
    check(Some("native"), &["a", "b", "native"], "source `native` is often a model's guess");
    check(Some("appflowy"), &["a", "b", "native"], "source `appflowy` is often a model's guess");
    // A configured server: only that server.
    check(Some("b"), &["b"], "only that server is used");
    // Values that mean "not specified".
    check(Some("auto"), &["a", "b", "native"], "tried in the order mcp, skill, native");
    check(Some(""), &["a", "b", "native"], "tried in the order mcp, skill, native");
}

/// A call never reaches a source that it does not name.
#[test]
fn rejects_unknown_sources_and_suggests_similar_names() {
    let policy =
        RoutingPolicy { servers: ["hr-db", "crm"].map(ServerId::new).into(), ..RoutingPolicy::default() };
    let (catalog, scores) = (catalog(), Scores::default());
    let known = RoutingContext { catalog: &catalog, policy: &policy, scores: &scores };
    for by in [CallBy::Name, CallBy::Capability] {
        for (source, expect) in [
            ("moon", "`toolhub servers list` lists the servers"),
            ("hrdb", "did you mean `hr-db`?"),
            ("HR_DB", "did you mean `hr-db`?"),
            ("hr_db", "did you mean `hr-db`?"),
            ("Native", "did you mean `native`?"),
        ] {
            let request = RouteRequest { by, source: Some(source), ..RouteRequest::named("shared") };
            let error = route(request, known).unwrap_err();
            assert_eq!(error.kind(), "unknown_source");
            let expect = format!("there is no source `{source}`, nothing was executed; {expect}");
            assert_eq!(error.to_string(), expect);
        }
    }
}

#[test]
fn source_skill_selects_only_skills() {
    let error = decide("shared", Some("skill"), None).unwrap_err();
    assert!(error.starts_with("there is no tool `shared`; it exists in `a`"), "{error}");
}

#[test]
fn unknown_tool_error_names_the_next_step() {
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
fn excludes_sources_whose_schema_rejects_the_arguments() {
    let (sources, reasons) = decide("shared", None, Some(json!({}))).unwrap();
    assert_eq!(sources, ["b", "native"]);
    assert!(reasons.contains("a is left out, as the arguments do not fit its schema"), "{reasons}");
    assert_eq!(decide("shared", None, Some(json!({"path": 1}))).unwrap().0, ["a", "b", "native"]);
    let error = decide("shared", Some("a"), Some(json!({}))).unwrap_err();
    assert!(error.starts_with("wrong arguments for `shared`: `path` is missing"), "{error}");
}

/// Tools of the same name at two servers are different tools.
#[test]
fn servers_that_are_not_declared_equivalent_do_not_share_calls() {
    let policy = RoutingPolicy { equivalent: Vec::new(), ..policy() };
    let catalog = catalog();
    let known = RoutingContext { catalog: &catalog, policy: &policy, scores: &Scores::default() };
    let sources = |request: RouteRequest<'_>| -> Vec<String> {
        let candidates = route(request, known).unwrap().candidates;
        candidates.iter().map(|candidate| candidate.source().to_string()).collect()
    };
    assert_eq!(sources(RouteRequest::named("shared")), ["a", "native"]);
    let found = route(RouteRequest::named("shared"), known).unwrap();
    let messages = found.reasons.iter().map(|reason| reason.localize(Lang::En));
    assert!(messages.into_iter().any(|reason| reason.contains("b has a tool of that name, too")));
    assert_eq!(sources(RouteRequest { source: Some("b"), ..RouteRequest::named("shared") }), ["b"]);
    for (name, source) in [("b__shared", "b"), ("a__shared", "a"), ("native__shared", "native")] {
        assert_eq!(sources(RouteRequest::named(name)), [source]);
    }
    assert!(route(RouteRequest::named("c__shared"), known).is_err());
}

#[test]
fn candidate_order_follows_policy() {
    let policy = RoutingPolicy { order: vec![SourceKind::Native, SourceKind::Mcp], ..policy() };
    let known = RoutingContext { catalog: &catalog(), policy: &policy, scores: &Scores::default() };
    let found = route(RouteRequest::named("shared"), known).unwrap();
    let sources: Vec<_> = found.candidates.iter().map(|candidate| candidate.source().to_string()).collect();
    assert_eq!(sources, ["native", "a", "b"]);
    let without_native = RoutingPolicy { order: vec![SourceKind::Mcp], ..policy };
    let known = RoutingContext { catalog: &catalog(), policy: &without_native, scores: &Scores::default() };
    assert!(route(RouteRequest::named("only_native"), known).is_err());
}

/// A catalog in which each of `sources` has a tool `name` with these hints.
fn sharing(name: &str, sources: &[(&str, Value)]) -> Catalog {
    let hosts = sources.iter().map(|(source, hints)| {
        let host = if *source == "native" { FakeHost::native() } else { FakeHost::server(source) };
        let schema = json!({"type": "object", "properties": {"query": {"type": "string"}}});
        host.tool(name, json!({"annotations": hints, "inputSchema": schema}), &[])
    });
    Catalog::new(hosts.flat_map(|host| host.tools().to_vec()).collect::<Vec<_>>())
}

fn servers(ids: &[&str]) -> RoutingPolicy {
    RoutingPolicy::equivalent_servers(ids.iter().map(|id| ServerId::new(*id)))
}

/// The strategy, the number of candidates that start together, and their order.
fn lined_up(name: &str, sources: &[(&str, Value)], scores: &Scores) -> (&'static str, usize, Vec<String>) {
    let ids: Vec<&str> = sources.iter().map(|(id, _)| *id).filter(|id| *id != "native").collect();
    let known = RoutingContext { catalog: &sharing(name, sources), policy: &servers(&ids), scores };
    let found = route(RouteRequest::named(name), known).unwrap();
    let order = found.candidates.iter().map(|candidate| candidate.source().to_string()).collect();
    (found.strategy.name(), found.batch, order)
}

#[test]
fn kind_of_tool_determines_the_strategy() {
    let safe = || json!({"readOnlyHint": true});
    let check = |name: &str, count: usize, expect: (&str, usize)| {
        let sources: Vec<(&str, Value)> =
            ["a", "b", "c", "d"].iter().take(count).map(|id| (*id, safe())).collect();
        let (strategy, batch, _) = lined_up(name, &sources, &Scores::default());
        assert_eq!((strategy, batch), expect, "{name} {count}");
    };
    check("calculate", 2, ("race", 2));
    check("get_time", 3, ("race", 3));
    check("search_web", 2, ("merge", 2));
    check("search_web", 4, ("merge", 3));
    check("extract_text", 3, ("merge", 3));
    // For any other kind of tool, two candidates are merged and more are raced.
    check("thing", 2, ("merge", 2));
    check("thing", 3, ("race", 3));
    check("thing", 4, ("race", 3));
    check("thing", 1, ("first", 1));
}

#[test]
fn only_repeatable_tools_run_concurrently() {
    let (safe, again) = (json!({"readOnlyHint": true}), json!({"idempotentHint": true}));
    let none = Scores::default();
    let check = |sources: &[(&str, Value)], expect: (&str, usize, &[&str])| {
        let (strategy, batch, order) = lined_up("thing", sources, &none);
        assert_eq!(
            (strategy, batch, order.iter().map(String::as_str).collect::<Vec<_>>()),
            (expect.0, expect.1, expect.2.to_vec())
        );
    };
    check(&[("a", json!({})), ("b", json!({}))], ("first", 1, &["a", "b"]));
    check(&[("a", json!({})), ("b", safe.clone())], ("first", 1, &["a", "b"]));
    check(&[("a", safe.clone()), ("b", again)], ("merge", 2, &["a", "b"]));
    check(
        &[("a", json!({"readOnlyHint": false})), ("b", json!({"destructiveHint": true}))],
        ("first", 1, &["a", "b"]),
    );
    // A server and a native tool are equivalent only if they are declared so.
    check(&[("a", safe.clone()), ("native", safe.clone())], ("first", 1, &["a", "native"]));
    // The read-only candidates first, concurrently; the other one only if all of them fail.
    check(&[("a", json!({})), ("b", safe.clone()), ("native", safe)], ("merge", 2, &["native", "b", "a"]));
}

#[test]
fn concurrent_candidates_are_ordered_by_last_success_and_score() {
    let safe = || json!({"readOnlyHint": true});
    let sources = [("a", safe()), ("b", safe()), ("c", safe()), ("native", safe())];
    let name = toolhub_core::ToolName::new("thing");
    let at = |id: &str| toolhub_core::Source::from_name(id);
    let fared = |uses: &[(&str, bool)]| {
        let scores = Scores::default();
        for (id, success) in uses {
            // Keeps timestamps distinct, so that the last success is unambiguous.
            std::thread::sleep(std::time::Duration::from_millis(2));
            scores.count(&at(id), &name, *success, std::time::Duration::from_millis(5));
        }
        lined_up("thing", &sources, &scores).2
    };
    // Without history: native first, then the routing order.
    assert_eq!(fared(&[]), ["native", "a", "b", "c"]);
    // The candidate with the latest success comes first.
    assert_eq!(fared(&[("b", true)]), ["b", "native", "a", "c"]);
    assert_eq!(fared(&[("b", true), ("c", true)]), ["c", "native", "b", "a"]);
    // Among the others, failing candidates move back.
    assert_eq!(fared(&[("native", true), ("a", false)]), ["native", "b", "c", "a"]);
}

#[test]
fn capability_call_requires_declared_arguments() {
    let safe = json!({"readOnlyHint": true});
    let schema = |property: &str| json!({"annotations": safe, "inputSchema": {"type": "object", "properties": {property: {"type": "string"}}}});
    let a = FakeHost::server("a").tool("search_papers", schema("query"), &[]);
    let b = FakeHost::server("b").tool("search_web", schema("query"), &[]).tool("search_x", schema("q"), &[]);
    let catalog = Catalog::new([a, b].iter().flat_map(FakeHost::tools).cloned());
    let known =
        RoutingContext { catalog: &catalog, policy: &servers(&["a", "b"]), scores: &Scores::default() };
    let arguments = RawJson::from(json!({"query": "rust"}));
    let ask = |capability: &'static str, seed: u64| {
        let request = RouteRequest {
            by: CallBy::Capability,
            arguments: Some(&arguments),
            seed,
            ..RouteRequest::named(capability)
        };
        route(request, known)
    };
    let found = ask("search", 1).unwrap();
    assert_eq!((found.strategy.name(), found.batch, found.candidates.len()), ("merge", 2, 2));
    let order = |seed| -> Vec<String> {
        let found = ask("search", seed).unwrap();
        found.candidates.iter().map(|candidate| candidate.source().to_string()).collect()
    };
    // Candidates of equal rank are shuffled; the order depends on the seed only.
    assert_eq!(order(7), order(7));
    assert!((0..20).any(|seed| order(seed) != order(0)));
    let reasons: Vec<String> = found.reasons.iter().map(|reason| reason.localize(Lang::En)).collect();
    assert!(reasons.iter().any(|reason| reason.contains("seed 1")), "{reasons:?}");
    let error = ask("juggle", 1).unwrap_err().to_string();
    assert!(error.starts_with("no tool is known to be good for `juggle`; there is: "), "{error}");
}

proptest::proptest! {
    #[test]
    fn routing_is_deterministic(
        hints in proptest::collection::vec(0_u8..4, 1..6),
        seed in 0_u64..1000,
        by_capability in proptest::bool::ANY,
    ) {
        let kinds = [json!({}), json!({"readOnlyHint": true}), json!({"idempotentHint": true}), json!({"destructiveHint": true})];
        let ids = ["a", "b", "c", "d", "native"];
        let sources: Vec<(&str, Value)> =
            ids.iter().zip(&hints).map(|(id, kind)| (*id, kinds[usize::from(*kind)].clone())).collect();
        let catalog = sharing("search_it", &sources);
        let policy = servers(&ids[..4]);
        let scores = Scores::default();
        let by = if by_capability { CallBy::Capability } else { CallBy::Name };
        let request = RouteRequest { by, seed, ..RouteRequest::named(if by_capability { "search" } else { "search_it" }) };
        let rendered = || {
            let known = RoutingContext { catalog: &catalog, policy: &policy, scores: &scores };
            format!("{:?}", route(request, known).map(|route| (route.strategy, route.batch, route.reasons,
                route.candidates.iter().map(|candidate| (candidate.source().clone(), candidate.why.clone())).collect::<Vec<_>>())))
        };
        proptest::prop_assert_eq!(rendered(), rendered());
    }
}

#[test]
fn changed_tools_warn_and_quarantined_tools_are_excluded() {
    use toolhub_core::CallBy;
    use toolhub_core::tool::{ApprovalStatus, Tool};
    let search = |server: &str, approval: ApprovalStatus| {
        let host = FakeHost::server(server).tool("search_it", json!({}), &[]);
        let tool = host.tools()[0].clone();
        Tool { approval, tags: vec!["search".to_owned()], ..tool }
    };
    let decide = |catalog: &Catalog, by: CallBy, source: Option<&str>| {
        let name = if by == CallBy::Name { "search_it" } else { "search" };
        let known = RoutingContext { catalog, policy: &policy(), scores: &Scores::default() };
        let route = route(RouteRequest { by, source, ..RouteRequest::named(name) }, known);
        route.map_err(|error| error.kind()).map(|route| {
            let sources: Vec<String> = route.candidates.iter().map(|one| one.source().to_string()).collect();
            let warned = route.reasons.iter().any(|reason| reason.to_string().contains("changed since"));
            (sources, warned)
        })
    };
    let one = |source: &str| Ok((vec![source.to_owned()], false));
    for by in [CallBy::Name, CallBy::Capability] {
        let held =
            Catalog::new([search("a", ApprovalStatus::Quarantined), search("b", ApprovalStatus::Approved)]);
        assert_eq!(decide(&held, by, None), one("b"), "another source serves");
        assert_eq!(decide(&held, by, Some("b")), one("b"));
        assert_eq!(decide(&held, by, Some("a")), Err("quarantined"), "also where it is named");
        let alone = Catalog::new([search("a", ApprovalStatus::Quarantined)]);
        assert_eq!(decide(&alone, by, None), Err("quarantined"));
        let changed = Catalog::new([search("a", ApprovalStatus::Changed)]);
        assert_eq!(decide(&changed, by, None), Ok((vec!["a".to_owned()], true)));
    }
}

/// A server whose schema is expensive to check is left out; the other servers still get the call. All checks of a call share
/// one budget.
#[test]
fn costly_schema_excludes_only_its_own_server() {
    let branches: Vec<Value> = (0..5_000).map(|number| json!({"required": [number.to_string()]})).collect();
    let rows = |items: Value| json!({"inputSchema": {"type": "object", "properties": {"rows": {"type": "array", "items": items}}}});
    let mut servers: Vec<FakeHost> = (0..4)
        .map(|number| {
            let costly = rows(json!({"anyOf": branches, "title": number.to_string()}));
            FakeHost::server(&format!("costly{number}")).tool("shared", costly, &[])
        })
        .collect();
    servers.push(FakeHost::server("usual").tool("shared", rows(json!({"minProperties": 1})), &[]));
    let ids = servers.iter().flat_map(FakeHost::tools).map(|tool| tool.source.to_string()).map(ServerId::new);
    let policy = RoutingPolicy::equivalent_servers(ids);
    let catalog = Catalog::new(servers.iter().flat_map(FakeHost::tools).cloned());
    let arguments = RawJson::from(json!({"rows": vec![json!({"4999": 1}); 200]}));
    let request = RouteRequest { arguments: Some(&arguments), ..RouteRequest::named("shared") };
    let route =
        route(request, RoutingContext { catalog: &catalog, policy: &policy, scores: &Scores::default() })
            .unwrap();
    let sources: Vec<String> =
        route.candidates.iter().map(|candidate| candidate.source().to_string()).collect();
    assert_eq!(sources, ["usual"]);
}
