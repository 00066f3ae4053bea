//! Routing in a catalog of ten thousand tools, and a swap of that catalog while readers route.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use serde_json::json;
use toolhub_core::{CallBy, RawJson, ServerId, Source, Tool, ToolDefinition};
use toolhub_engine::router::route;
use toolhub_engine::{Catalog, CatalogCell, RouteRequest, RoutingContext, RoutingPolicy, Scores};

const SERVERS: usize = 50;
const TOOLS: usize = 10_000;

/// Fifty servers of two hundred tools; one tool in ten is shared by all servers.
fn tools() -> Vec<Tool> {
    (0..TOOLS)
        .map(|number| {
            let (server, index) = (number % SERVERS, number / SERVERS);
            let name =
                if index % 10 == 0 { format!("shared_{index}") } else { format!("search_{server}_{index}") };
            let definition = RawJson::from(json!({
                "name": name,
                "description": "Finds rows of a table by a condition. Gives them as JSON.",
                "inputSchema": {
                    "type": "object",
                    "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
                    "required": ["query"]
                },
                "annotations": {"readOnlyHint": true}
            }));
            let definition =
                ToolDefinition::parse(definition).unwrap_or_else(|error| unreachable!("{error}"));
            Tool::new(Source::Server(ServerId::new(format!("server_{server}"))), definition)
        })
        .collect()
}

fn policy() -> RoutingPolicy {
    let servers = (0..SERVERS).map(|server| ServerId::new(format!("server_{server}"))).collect();
    RoutingPolicy { servers, ..RoutingPolicy::default() }
}

fn routing(criterion: &mut Criterion) {
    let (catalog, policy, scores) = (Catalog::new(tools()), policy(), Scores::default());
    let arguments = RawJson::from(json!({"query": "rust", "limit": 5}));
    let known = RoutingContext { catalog: &catalog, policy: &policy, scores: &scores };
    let mut group = criterion.benchmark_group("route among 10,000 tools");
    group.bench_function("a name that one server has", |bencher| {
        let request = RouteRequest { arguments: Some(&arguments), ..RouteRequest::named("search_7_3") };
        bencher.iter(|| black_box(route(black_box(request), known)));
    });
    group.bench_function("a name that fifty servers have", |bencher| {
        let request = RouteRequest { arguments: Some(&arguments), ..RouteRequest::named("shared_10") };
        bencher.iter(|| black_box(route(black_box(request), known)));
    });
    group.bench_function("a capability that nine thousand tools have", |bencher| {
        let request = RouteRequest {
            by: CallBy::Capability,
            arguments: Some(&arguments),
            ..RouteRequest::named("search")
        };
        bencher.iter(|| black_box(route(black_box(request), known)));
    });
    group.finish();
}

/// Readers take a snapshot while another thread swaps the catalog over and over: a reader never waits for it.
fn swapping(criterion: &mut Criterion) {
    let all = tools();
    let first: Vec<Tool> =
        all.iter().filter(|tool| tool.source == Source::from_name("server_0")).cloned().collect();
    let cell = Arc::new(CatalogCell::default());
    for server in 0..SERVERS {
        let source = Source::from_name(&format!("server_{server}"));
        let own: Vec<Tool> = all.iter().filter(|tool| tool.source == source).cloned().collect();
        cell.replace_source(&source, &own);
    }
    let mut group = criterion.benchmark_group("catalog of 10,000 tools");
    group.bench_function("snapshot, no swaps", |bencher| bencher.iter(|| black_box(cell.snapshot())));
    let (stop, swaps) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let writer = std::thread::spawn({
        let (cell, stop, swaps, first) =
            (Arc::clone(&cell), Arc::clone(&stop), Arc::clone(&swaps), first.clone());
        move || {
            while !stop.load(Ordering::Relaxed) {
                cell.replace_source(&Source::from_name("server_0"), &first);
                swaps.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    group.bench_function("snapshot, while another thread swaps", |bencher| {
        bencher.iter(|| black_box(cell.snapshot()));
    });
    stop.store(true, Ordering::Relaxed);
    let _ = writer.join();
    assert!(swaps.load(Ordering::Relaxed) > 0);
    group.bench_function("swap of one server's tools", |bencher| {
        let source = Source::from_name("server_0");
        bencher.iter_batched(
            || first.clone(),
            |tools| cell.replace_source(&source, &tools),
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

criterion_group!(benches, routing, swapping);
criterion_main!(benches);
