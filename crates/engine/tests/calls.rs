//! Calls through the engine with fake hosts on a paused clock: deadlines, panics, fallbacks, cancellation.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;
use toolhub_core::error::Effect;
use toolhub_core::{Outcome, ServerId, ToolCall, ToolError, ToolHost};
use toolhub_engine::{Deadlines, Engine, RoutingPolicy};
use toolhub_testkit::Recorder;
use toolhub_testkit::fake::{Act, FakeHost};

struct Bench {
    engine: Engine,
    events: Arc<Recorder>,
}

fn bench(hosts: &[Arc<FakeHost>]) -> Bench {
    let servers = ["a", "b"].map(ServerId::new).to_vec();
    let events = Arc::new(Recorder::default());
    let engine = Engine::new(RoutingPolicy::equivalent_servers(servers), events.clone());
    for host in hosts {
        engine.add_host(&(Arc::clone(host) as Arc<dyn ToolHost>), Deadlines::default());
        engine.set_tools(&host.source(), host.tools());
    }
    Bench { engine, events }
}

impl Bench {
    async fn call(&self) -> Outcome {
        self.engine.call(ToolCall::new("t", json!({}))).await
    }
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn read_only() -> serde_json::Value {
    json!({"annotations": {"readOnlyHint": true}})
}

fn unreachable_a() -> ToolError {
    ToolError::ConnectionFailed {
        server: ServerId::new("a"),
        cause: "refused".into(),
        stderr: Vec::new(),
        effect: Effect::None,
        permanent: false,
    }
}

#[tokio::test(start_paused = true)]
async fn call_times_out_after_thirty_seconds() {
    let host = Arc::new(FakeHost::native().tool("t", json!({}), &[Act::Hang]));
    let bench = bench(std::slice::from_ref(&host));
    let started = Instant::now();
    let outcome = bench.call().await;
    assert_eq!(started.elapsed().as_secs(), 30);
    assert!(
        matches!(outcome.result, Err(ToolError::TimedOut { effect: Effect::Unknown, .. })),
        "{outcome:?}"
    );
    assert_eq!((host.calls(), host.dropped()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn caller_timeout_counts_from_the_start() {
    let host = Arc::new(FakeHost::native().tool("t", json!({}), &[Act::NeverSent(secs(100))]));
    let bench = bench(&[host]);
    let outcome = bench.engine.call(ToolCall::new("t", json!({})).within(secs(2))).await;
    assert_eq!(outcome.took.as_secs(), 2);
    // The request was never sent, so the call had no effect.
    assert!(matches!(outcome.result, Err(ToolError::TimedOut { effect: Effect::None, .. })), "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn progress_extends_the_deadline_up_to_the_cap() {
    let step = [Act::Wait(secs(20)), Act::Progress];
    let patient: Vec<Act> = step.iter().cycle().take(10).cloned().chain([Act::Reply("late")]).collect();
    let endless: Vec<Act> = step.iter().cycle().take(100).cloned().collect();
    for (acts, expect) in [(patient, Ok(100)), (endless, Err(300))] {
        let bench = bench(&[Arc::new(FakeHost::native().tool("t", json!({}), &acts))]);
        let outcome = bench.call().await;
        let took = outcome.took.as_secs();
        assert_eq!(outcome.result.map(|_| took).map_err(|_| took), expect);
    }
}

#[tokio::test(start_paused = true)]
async fn connection_wait_does_not_count_against_the_deadline() {
    let acts = [Act::NeverSent(secs(45))];
    let bench = bench(&[Arc::new(FakeHost::native().tool("t", json!({}), &acts))]);
    let outcome = bench.call().await;
    assert_eq!(outcome.took.as_secs(), 45);
    assert!(matches!(outcome.result, Err(ToolError::Failed { .. })));
}

#[tokio::test]
async fn panic_fails_only_its_call() {
    let bench = bench(&[Arc::new(FakeHost::native().tool("t", json!({}), &[Act::Panic]))]);
    let outcome = bench.call().await;
    assert!(matches!(outcome.result, Err(ToolError::Panicked)));
    assert!(
        bench.events.texts().iter().any(|text| text.contains("tool `t` panicked: a fake tool was told to"))
    );
}

#[tokio::test]
async fn tool_error_is_a_failure_with_its_text() {
    let bench =
        bench(&[Arc::new(FakeHost::native().tool("t", json!({}), &[Act::OwnError("no such sheet")]))]);
    let outcome = bench.call().await;
    assert_eq!(outcome.result.unwrap_err().to_string(), "no such sheet");
}

#[tokio::test]
async fn next_candidate_is_tried_only_without_effect_or_if_read_only() {
    // The hints and the failure of the first candidate, and the expected calls.
    let lost = ToolError::ConnectionFailed {
        server: ServerId::new("a"),
        cause: "gone".into(),
        stderr: Vec::new(),
        effect: Effect::Unknown,
        permanent: false,
    };
    let cases = [
        (json!({}), unreachable_a(), true),
        (json!({}), lost.clone(), false),
        (json!({}), ToolError::failed("no"), false),
        (read_only(), lost, true),
        (read_only(), ToolError::failed("no"), true),
    ];
    for (hints, failure, falls_back) in cases {
        let a = Arc::new(FakeHost::server("a").tool("t", hints, &[Act::Fail(failure.clone())]));
        let native = Arc::new(FakeHost::native().tool("t", json!({}), &[Act::Reply("from native")]));
        let outcome = bench(&[a, native.clone()]).call().await;
        assert_eq!(outcome.success(), falls_back, "{failure:?}");
        assert_eq!(native.calls(), usize::from(falls_back), "{failure:?}");
    }
}

#[tokio::test]
async fn outcome_lists_all_attempts() {
    let a = Arc::new(FakeHost::server("a").tool("t", json!({}), &[Act::Fail(unreachable_a())]));
    let b = Arc::new(FakeHost::server("b").tool("t", json!({}), &[Act::Reply("from b")]));
    let bench = bench(&[a, b]);
    let outcome = bench.call().await;
    assert_eq!(outcome.source().map(ToString::to_string).as_deref(), Some("b"));
    let outcome_json = outcome.to_json(toolhub_core::Lang::En).into_raw().value();
    assert_eq!(outcome_json["result"], "from b");
    assert_eq!(outcome_json["_meta"]["attempts"], 2);
    assert_eq!(outcome_json["_meta"]["failed"][0]["source"], "a");
    let messages = bench.events.texts();
    assert!(messages.iter().any(|text| text.starts_with("route: a → b (first)")), "{messages:?}");
    assert!(messages.iter().any(|text| text.starts_with("a failed after")), "{messages:?}");
    assert!(messages.iter().any(|text| text.starts_with("b succeeded in")), "{messages:?}");
}

#[tokio::test]
async fn invalid_arguments_never_reach_a_tool() {
    let schema = json!({"inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}}});
    let host = Arc::new(FakeHost::native().tool("t", schema, &[Act::Reply("ran")]));
    let bench = bench(std::slice::from_ref(&host));
    let outcome = bench.engine.call(ToolCall::new("t", json!({"n": "x"}))).await;
    let error = outcome.result.unwrap_err();
    assert!(error.to_string().contains("`n` should be integer, got \"x\""), "{error}");
    assert_eq!(host.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn dropping_a_call_cancels_its_execution() {
    let host = Arc::new(FakeHost::native().tool("t", json!({}), &[Act::Hang]));
    let bench = bench(std::slice::from_ref(&host));
    assert!(tokio::time::timeout(secs(1), bench.call()).await.is_err());
    assert_eq!((host.calls(), host.dropped()), (1, 1));
}

#[tokio::test]
async fn catalog_swap_does_not_change_existing_snapshots() {
    let host = Arc::new(FakeHost::native().tool("t", json!({}), &[]));
    let bench = bench(std::slice::from_ref(&host));
    let before = bench.engine.catalog();
    bench.engine.set_tools(&host.source(), &[]);
    assert_eq!((before.len(), bench.engine.catalog().len()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn unsent_call_is_tried_three_times() {
    let host = Arc::new(FakeHost::server("a").tool("t", json!({}), &[Act::Fail(unreachable_a())]));
    let bench = bench(std::slice::from_ref(&host));
    let started = Instant::now();
    let outcome = bench.call().await;
    assert!(!outcome.success());
    assert_eq!((host.calls(), outcome.attempts.len()), (3, 3));
    // Backoff of 1 s and 2 s, each with a jitter of 25 %.
    let elapsed = started.elapsed().as_secs_f64();
    assert!((2.2..=3.8).contains(&elapsed), "{elapsed}");
}

#[tokio::test(start_paused = true)]
async fn call_with_unknown_effect_is_repeated_only_if_read_only() {
    let lost = ToolError::ConnectionFailed {
        server: ServerId::new("a"),
        cause: "gone".into(),
        stderr: Vec::new(),
        effect: Effect::Unknown,
        permanent: false,
    };
    for (hints, calls) in [(json!({}), 1), (read_only(), 3)] {
        let host = Arc::new(FakeHost::server("a").tool("t", hints, &[Act::Fail(lost.clone())]));
        assert!(!bench(std::slice::from_ref(&host)).call().await.success());
        assert_eq!(host.calls(), calls);
    }
}

#[tokio::test(start_paused = true)]
async fn retries_stay_within_the_callers_limit() {
    let host = Arc::new(FakeHost::server("a").tool("t", json!({}), &[Act::Fail(unreachable_a())]));
    let bench = bench(std::slice::from_ref(&host));
    let started = Instant::now();
    bench.engine.call(ToolCall::new("t", json!({})).within(Duration::from_millis(1500))).await;
    assert_eq!(host.calls(), 2);
    assert!(started.elapsed() < Duration::from_millis(1500));
}

/// Servers use most error codes after execution as well; only an unknown method and the checks of headers and version certainly
/// precede it.
#[tokio::test(start_paused = true)]
async fn changing_call_goes_to_the_next_server_only_after_refusals_that_precede_execution() {
    let refused = |code: i64| {
        let (server, message) = (ServerId::new("a"), "no".to_owned());
        Act::Fail(ToolError::Protocol { server, code, message, data: None })
    };
    let idempotent = json!({"annotations": {"idempotentHint": true}});
    for (definition, certain, others) in [(json!({}), 1, 0), (idempotent, 1, 1), (read_only(), 1, 1)] {
        for (codes, expect) in [
            (&[-32601, -32020, -32022][..], certain),
            (&[-32602, -32600, -32700, -32021, -32603, -32000, -32042, 1][..], others),
        ] {
            for code in codes {
                let a = Arc::new(FakeHost::server("a").tool("t", definition.clone(), &[refused(*code)]));
                let b = Arc::new(FakeHost::server("b").tool("t", definition.clone(), &[Act::Reply("b")]));
                let outcome = bench(&[Arc::clone(&a), Arc::clone(&b)]).call().await;
                assert_eq!((a.calls(), b.calls()), (1, expect), "{code} {definition}");
                assert_eq!(outcome.success(), expect == 1, "{code} {definition}");
            }
        }
    }
}
