//! Concurrent candidates, with fake hosts on a paused clock: the winner, the cancelled ones, and the next candidates.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use toolhub_core::lang::Lang;
use toolhub_core::outcome::AttemptEnd;
use toolhub_core::ports::{MergeRequest, Synthesizer};
use toolhub_core::{BoxFuture, Effect, Localize as _, Outcome, ServerId, ToolCall, ToolError, ToolHost};
use toolhub_engine::{Deadlines, Engine, RoutingPolicy, Strategy};
use toolhub_testkit::Recorder;
use toolhub_testkit::fake::{Act, FakeHost};

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn read_only() -> Value {
    json!({"annotations": {"readOnlyHint": true}})
}

fn after(seconds: u64, text: &'static str) -> Vec<Act> {
    vec![Act::Wait(secs(seconds)), Act::Reply(text)]
}

fn fails_after(seconds: u64) -> Vec<Act> {
    vec![Act::Wait(secs(seconds)), Act::Fail(ToolError::failed("no"))]
}

struct Bench {
    engine: Engine,
    hosts: Vec<Arc<FakeHost>>,
    events: Arc<Recorder>,
}

/// Servers a, b, c, … that share one tool.
fn bench(tool: &str, definition: &Value, acts: &[Vec<Act>]) -> Bench {
    let definitions = vec![definition.clone(); acts.len()];
    bench_of(tool, &definitions, acts)
}

/// Like `bench`, with a separate definition for each server.
fn bench_of(tool: &str, definitions: &[Value], acts: &[Vec<Act>]) -> Bench {
    let ids = ["a", "b", "c", "d", "e"];
    let hosts: Vec<Arc<FakeHost>> = ids
        .iter()
        .zip(definitions.iter().zip(acts))
        .map(|(id, (definition, acts))| Arc::new(FakeHost::server(id).tool(tool, definition.clone(), acts)))
        .collect();
    let events = Arc::new(Recorder::default());
    let mut policy = RoutingPolicy::equivalent_servers(ids.map(ServerId::new));
    policy.strategies.insert("translate".to_owned(), Strategy::First);
    let engine = Engine::new(policy, events.clone());
    for host in &hosts {
        engine.add_host(&(Arc::clone(host) as Arc<dyn ToolHost>), Deadlines::default());
        engine.set_tools(&host.source(), host.tools());
    }
    Bench { engine, hosts, events }
}

impl Bench {
    async fn call(&self, tool: &str) -> (Outcome, u64) {
        let started = Instant::now();
        let outcome = self.engine.call(ToolCall::new(tool, json!({}))).await;
        (outcome, started.elapsed().as_secs())
    }

    fn calls(&self) -> Vec<usize> {
        self.hosts.iter().map(|host| host.calls()).collect()
    }

    fn dropped(&self) -> Vec<usize> {
        self.hosts.iter().map(|host| host.dropped()).collect()
    }
}

fn text(outcome: &Outcome) -> String {
    outcome.result.as_ref().map_or_else(ToString::to_string, |output| output.texts().0.join("|"))
}

fn sources(outcome: &Outcome) -> Vec<String> {
    outcome.sources.iter().map(ToString::to_string).collect()
}

#[tokio::test(start_paused = true)]
async fn race_returns_first_success_and_cancels_the_others() {
    let bench = bench("calculate", &read_only(), &[after(5, "slow"), after(1, "fast"), after(9, "slower")]);
    let (outcome, took) = bench.call("calculate").await;
    assert_eq!((text(&outcome).as_str(), took), ("fast", 1));
    assert_eq!(sources(&outcome), ["b"]);
    assert_eq!((bench.calls(), bench.dropped()), (vec![1, 1, 1], vec![1, 0, 1]));
    let cancelled = outcome.attempts.iter().filter(|attempt| matches!(attempt.end, AttemptEnd::Cancelled));
    assert_eq!(cancelled.count(), 2);
    let messages = bench.events.texts();
    assert!(messages.iter().any(|text| text.starts_with("a cancelled after 1000 ms")), "{messages:?}");
    assert!(
        messages.iter().any(|text| text.contains("(race)") && text.contains("`calculate` tools: race")),
        "{messages:?}"
    );
    // A lost race does not count as a failure.
    assert_eq!(bench.engine.scores().of(&bench.hosts[0].source(), &"calculate".into()).tally.total(), 0);
}

#[tokio::test(start_paused = true)]
async fn failure_does_not_hide_pending_success() {
    for tool in ["calculate", "search"] {
        let bench = bench(tool, &read_only(), &[fails_after(1), after(6, "late but right")]);
        let (outcome, took) = bench.call(tool).await;
        assert_eq!((text(&outcome).as_str(), took), ("late but right", 6), "{tool}");
        assert_eq!(sources(&outcome), ["b"]);
        let outcome_json = outcome.to_json(Lang::En).into_raw().value();
        assert_eq!(outcome_json["_meta"]["failed"][0]["source"], "a");
        assert_eq!(outcome_json["_meta"]["synthesized"], false);
    }
}

#[tokio::test(start_paused = true)]
async fn merge_waits_for_all_and_names_sources() {
    let bench = bench("search", &read_only(), &[after(4, "four"), after(2, "two")]);
    let (outcome, took) = bench.call("search").await;
    assert_eq!((text(&outcome).as_str(), took), ("[a] four\n\n[b] two", 4));
    assert_eq!(sources(&outcome), ["a", "b"]);
    let outcome_json = outcome.to_json(Lang::En).into_raw().value();
    assert_eq!(outcome_json["_meta"]["synthesized"], true);
    assert_eq!(outcome_json["_meta"]["source_count"], 2);
    assert_eq!(outcome_json["_meta"]["sources"], json!(["a", "b"]));
    assert_eq!(outcome_json["structuredContent"]["parts"][1]["source"], "b");
}

#[tokio::test(start_paused = true)]
async fn merges_equal_results_into_one() {
    let bench = bench("thing", &read_only(), &[after(1, "42"), after(2, "42.0")]);
    let (outcome, _) = bench.call("thing").await;
    assert_eq!(text(&outcome), "42");
    let note = outcome.synthesis.as_ref().map(|synthesis| synthesis.note.localize(Lang::En));
    assert_eq!(note.as_deref(), Some("2 sources agree: a, b"));
}

#[tokio::test(start_paused = true)]
async fn flags_different_numbers() {
    let bench = bench("thing", &read_only(), &[after(1, "42"), after(2, "43")]);
    let (outcome, _) = bench.call("thing").await;
    let outcome_json = outcome.to_json(Lang::Zh).into_raw().value();
    assert_eq!(outcome_json["_meta"]["conflict"], true);
    assert_eq!(outcome_json["_meta"]["synthesis"], "来源之间不一致：a: 42, b: 43");
}

#[tokio::test(start_paused = true)]
async fn hanging_candidate_does_not_delay_a_merge() {
    let bench = bench("search", &read_only(), &[after(2, "here"), vec![Act::Hang]]);
    let (outcome, took) = bench.call("search").await;
    assert_eq!((text(&outcome).as_str(), took), ("here", 12));
    assert_eq!(bench.dropped(), [0, 1]);
}

#[tokio::test(start_paused = true)]
async fn tries_remaining_candidates_sequentially_after_failed_batch() {
    let acts = [fails_after(1), fails_after(2), fails_after(3), fails_after(1), after(1, "the last")];
    for tool in ["calculate", "search"] {
        let bench = bench(tool, &read_only(), &acts);
        let (outcome, took) = bench.call(tool).await;
        // Three run concurrently until the slowest fails, then the other two one after another.
        assert_eq!((text(&outcome).as_str(), took), ("the last", 5), "{tool}");
        assert_eq!(bench.calls(), [1, 1, 1, 1, 1]);
        assert_eq!(outcome.attempts.len(), 5);
    }
}

#[tokio::test(start_paused = true)]
async fn remaining_candidates_are_not_called_after_success() {
    let bench = bench("search", &read_only(), &[after(1, "x"), after(1, "y"), fails_after(1), after(1, "z")]);
    let (outcome, _) = bench.call("search").await;
    assert_eq!(sources(&outcome), ["a", "b"]);
    assert_eq!(bench.calls(), [1, 1, 1, 0]);
}

#[tokio::test(start_paused = true)]
async fn tools_without_hints_run_once_and_not_concurrently() {
    let effects = [
        json!({}),
        json!({"annotations": {"destructiveHint": true}}),
        json!({"annotations": {"readOnlyHint": false}}),
    ];
    for definition in effects {
        let bench = bench("calculate", &definition, &[fails_after(1), after(1, "other")]);
        let (outcome, _) = bench.call("calculate").await;
        // The first candidate failed after it ran: its effect is unknown, so no other one is called.
        assert!(!outcome.success());
        assert_eq!(bench.calls(), [1, 0]);
    }
}

fn idempotent() -> Value {
    json!({"annotations": {"idempotentHint": true}})
}

fn lost(effect: Effect) -> Vec<Act> {
    let (server, cause) = (ServerId::new("a"), "lost".into());
    let error = ToolError::ConnectionFailed { server, cause, stderr: Vec::new(), effect, permanent: false };
    vec![Act::Fail(error)]
}

/// ARCHITECTURE.md: the next candidate is tried only if the call certainly had no effect, or the tool is read-only. An
/// idempotent tool may be repeated at the same server, but another server would execute the effect a second time.
#[tokio::test(start_paused = true)]
async fn next_candidate_is_not_tried_after_unknown_effect_unless_read_only() {
    let cases = [
        (idempotent(), fails_after(1), [1, 0]),
        (idempotent(), lost(Effect::Unknown), [1, 0]),
        (idempotent(), lost(Effect::None), [1, 1]),
        (read_only(), fails_after(1), [1, 1]),
        (read_only(), lost(Effect::Unknown), [1, 1]),
    ];
    for (definition, fails, expect) in cases {
        // Sequential because of the policy.
        let by_policy = bench("translate", &definition, &[fails.clone(), after(1, "other")]);
        let (outcome, _) = by_policy.call("translate").await;
        assert_eq!((by_policy.calls(), outcome.success()), (expect.to_vec(), expect[1] == 1), "{definition}");
        // Sequential because the second server gives no hints.
        let mixed = bench_of("thing", &[definition.clone(), json!({})], &[fails, after(1, "other")]);
        let (outcome, _) = mixed.call("thing").await;
        assert_eq!((mixed.calls(), outcome.success()), (expect.to_vec(), expect[1] == 1), "{definition}");
    }
}

/// The same after a concurrent batch.
#[tokio::test(start_paused = true)]
async fn rest_is_not_tried_after_a_batch_with_unknown_effect_unless_read_only() {
    for (definition, fails, expect) in [
        (idempotent(), fails_after(1), [1, 1, 0]),
        (read_only(), fails_after(1), [1, 1, 1]),
        (idempotent(), vec![Act::Fail(ToolError::NotRecorded { cause: "".into() })], [1, 1, 1]),
    ] {
        let definitions = [definition.clone(), definition.clone(), json!({})];
        let bench = bench_of("thing", &definitions, &[fails.clone(), fails, after(1, "other")]);
        let (outcome, _) = bench.call("thing").await;
        assert_eq!((bench.calls(), outcome.success()), (expect.to_vec(), expect[2] == 1), "{definition}");
    }
}

#[tokio::test(start_paused = true)]
async fn retries_unreachable_batch() {
    let connection_failed = ToolError::ConnectionFailed {
        server: ServerId::new("a"),
        cause: "gone".into(),
        stderr: Vec::new(),
        effect: Effect::None,
        permanent: false,
    };
    let bench = bench(
        "search",
        &read_only(),
        &[vec![Act::Fail(connection_failed.clone())], vec![Act::Fail(connection_failed)]],
    );
    let (outcome, _) = bench.call("search").await;
    assert!(!outcome.success());
    // Each once in the batch; then the first once more, and the last up to three attempts.
    assert_eq!(bench.calls(), [2, 3]);
}

#[tokio::test(start_paused = true)]
async fn batch_is_retried_after_the_requested_pause() {
    let busy = |seconds: u64| ToolError::HttpStatus {
        server: ServerId::new("a"),
        status: 429,
        body: String::new(),
        retry_after: Some(secs(seconds)),
        effect: Effect::None,
    };
    let started = Instant::now();
    let bench = bench("search", &read_only(), &[vec![Act::Fail(busy(20))], vec![Act::Fail(busy(7))]]);
    let (outcome, _) = bench.call("search").await;
    assert!(!outcome.success());
    // The second after 7 s; the first after 20 s, and once more after 20 s.
    assert_eq!((bench.calls(), started.elapsed().as_secs()), (vec![3, 2], 40));
    // A pause that is longer than the time of the call is not begun.
    let call = ToolCall::new("search", json!({})).within(secs(5));
    let (started, before) = (Instant::now(), bench.calls());
    assert!(!bench.engine.call(call).await.success());
    let calls: Vec<usize> = bench.calls().iter().zip(before).map(|(now, before)| now - before).collect();
    assert_eq!((calls, started.elapsed().as_secs()), (vec![1, 1], 0));
}

#[tokio::test(start_paused = true)]
async fn caller_timeout_applies_to_all_candidates() {
    let acts = [fails_after(2), fails_after(2), fails_after(2), vec![Act::Hang], vec![Act::Hang]];
    let bench = bench("calculate", &read_only(), &acts);
    let started = Instant::now();
    let outcome = bench.engine.call(ToolCall::new("calculate", json!({})).within(secs(5))).await;
    assert_eq!(started.elapsed().as_secs(), 5);
    assert!(matches!(outcome.result, Err(ToolError::TimedOut { .. })), "{outcome:?}");
    assert_eq!(bench.calls(), [1, 1, 1, 1, 0]);
}

#[tokio::test(start_paused = true)]
async fn dropping_the_call_cancels_all_candidates() {
    let bench = bench("calculate", &read_only(), &[vec![Act::Hang], vec![Act::Hang]]);
    assert!(tokio::time::timeout(secs(1), bench.call("calculate")).await.is_err());
    assert_eq!(bench.dropped(), [1, 1]);
}

#[tokio::test(start_paused = true)]
async fn merge_is_independent_of_completion_order() {
    let mut seen = None;
    for delays in [[1, 2, 3], [1, 3, 2], [2, 1, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1], [1, 1, 1]] {
        let acts = [after(delays[0], "one"), after(delays[1], "two"), after(delays[2], "three")];
        let bench = bench("search", &read_only(), &acts);
        let (outcome, _) = bench.call("search").await;
        let outcome_json = (text(&outcome), sources(&outcome), outcome.synthesis.clone());
        assert_eq!(*seen.get_or_insert(outcome_json.clone()), outcome_json, "{delays:?}");
    }
}

/// A model that answers or fails after a delay.
struct Model(Duration, Result<&'static str, &'static str>);

impl Synthesizer for Model {
    fn merge(&self, request: MergeRequest) -> BoxFuture<'_, Result<String, ToolError>> {
        Box::pin(async move {
            tokio::time::sleep(self.0).await;
            assert_eq!(request.texts.len(), 2);
            self.1.map(str::to_owned).map_err(ToolError::failed)
        })
    }
}

#[tokio::test(start_paused = true)]
async fn model_merges_only_within_its_timeout() {
    let plain = "[a] one\n\n[b] two";
    let cases = [
        (Model(secs(3), Ok("one and two")), "one and two", 4),
        (Model(secs(60), Ok("too late")), plain, 11),
        (Model(secs(1), Err("out of tokens")), plain, 2),
        (Model(secs(0), Ok("  ")), plain, 1),
    ];
    for (model, expect, seconds) in cases {
        let Bench { engine, .. } = bench("search", &read_only(), &[after(1, "one"), after(1, "two")]);
        let engine = engine.with_synthesizer(Arc::new(model));
        let started = Instant::now();
        let outcome = engine.call(ToolCall::new("search", json!({}))).await;
        assert_eq!((text(&outcome).as_str(), started.elapsed().as_secs()), (expect, seconds));
        assert_eq!(sources(&outcome), ["a", "b"]);
    }
}
