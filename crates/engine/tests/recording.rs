//! The records of a call, with a call log that has room or is full.

#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test with its message")]

use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use serde_json::json;
use toolhub_core::call_log::{CallEnd, CallLog, CallStart, CallStatus};
use toolhub_core::outcome::AttemptRecord;
use toolhub_core::ports::{NullSink, StoreError};
use toolhub_core::{
    BoxFuture, CallContext, CallId, Lang, Localize as _, NestedBudget, Outcome, RawJson, Source, Tool,
    ToolCall, ToolDefinition, ToolError, ToolHost, ToolOutput,
};
use toolhub_engine::{Deadlines, Engine, RoutingPolicy};

/// A host that fails on demand.
struct Host;

impl ToolHost for Host {
    fn source(&self) -> Source {
        Source::Native
    }

    fn call<'a>(
        &'a self,
        _: &'a Tool,
        arguments: &'a RawJson,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let fails = arguments.get().contains("fail");
        let count = arguments.object().and_then(|members| members.get("bytes")?.decode::<usize>().ok());
        let text = count.map_or_else(|| "done".to_owned(), |count| "x".repeat(count));
        Box::pin(async move { if fails { Err(ToolError::failed("no")) } else { Ok(ToolOutput::text(text)) } })
    }
}

/// The written records, one word each.
#[derive(Default)]
struct Log {
    has_capacity: bool,
    starts: Mutex<Vec<CallStart>>,
    written: Mutex<Vec<String>>,
    errors: Mutex<Vec<String>>,
    outputs: Mutex<Vec<RawJson>>,
}

impl Log {
    fn write(&self, word: String) {
        self.written.lock().unwrap().push(word);
    }
}

impl CallLog for Log {
    fn begin(&self, start: CallStart) -> BoxFuture<'_, Result<(), StoreError>> {
        self.starts.lock().unwrap().push(start);
        self.write("begun".to_owned());
        Box::pin(std::future::ready(Ok(())))
    }

    fn finish(&self, end: CallEnd) -> BoxFuture<'_, Result<(), StoreError>> {
        self.write(format!("ended: {}", end.status.name()));
        self.outputs.lock().unwrap().extend(end.output);
        Box::pin(std::future::ready(Ok(())))
    }

    fn record_finished(&self, start: CallStart, end: CallEnd) {
        assert_eq!(start.record, end.record);
        let tried = end.attempts.len();
        self.write(format!("noted: {}, {tried}", end.status.name()));
        self.errors.lock().unwrap().extend(end.error.map(|(_, text)| text.localize(Lang::En)));
        self.outputs.lock().unwrap().extend(end.output);
        self.starts.lock().unwrap().push(start);
    }

    fn should_store_details(&self) -> bool {
        self.has_capacity
    }

    fn count(&self, attempts: &[AttemptRecord], _: SystemTime) {
        self.write(format!("counted: {}", attempts.len()));
    }
}

async fn called(has_capacity: bool, read_only: bool, arguments: serde_json::Value) -> (Outcome, Vec<String>) {
    let log = Arc::new(Log { has_capacity, ..Log::default() });
    let outcome = call_of(&log, read_only, ToolCall::new("t", arguments)).await;
    let written = log.written.lock().unwrap().clone();
    (outcome, written)
}

async fn call_of(log: &Arc<Log>, read_only: bool, call: ToolCall) -> Outcome {
    call_with_hints(log, &json!({"readOnlyHint": read_only}), call).await
}

async fn call_with_hints(log: &Arc<Log>, hints: &serde_json::Value, call: ToolCall) -> Outcome {
    let engine =
        Engine::new(RoutingPolicy::default(), Arc::new(NullSink)).with_call_log(Arc::clone(log) as _);
    let host: Arc<dyn ToolHost> = Arc::new(Host);
    engine.add_host(&host, Deadlines::default());
    let definition = json!({"name": "t", "annotations": hints});
    let definition = ToolDefinition::parse(RawJson::from(definition)).unwrap();
    engine.set_tools(&Source::Native, &[Tool::new(Source::Native, definition)]);
    engine.call(call).await
}

/// A record of a call with any arguments has a bounded size and still describes them.
#[tokio::test]
async fn records_of_large_calls_have_a_bounded_size() {
    for read_only in [true, false] {
        let log = Arc::new(Log { has_capacity: true, ..Log::default() });
        let (small, large) = (json!({"text": "x".repeat(1_000)}), json!({"text": "长".repeat(1 << 20)}));
        for arguments in [&small, &large] {
            assert!(call_of(&log, read_only, ToolCall::new("t", arguments.clone())).await.success());
        }
        let mut unknown = ToolCall::new("n".repeat(1 << 20), json!({}));
        unknown.id = CallId::new("i".repeat(1 << 20));
        unknown.parent = Some(CallId::new("p".repeat(1 << 20)));
        unknown.conversation = Some("c".repeat(1 << 20).into());
        unknown.request = Some("r".repeat(1 << 20));
        assert!(!call_of(&log, read_only, unknown).await.success());
        let starts = log.starts.lock().unwrap();
        let [first, second, third] = &starts[..] else { panic!("{} records", starts.len()) };
        assert_eq!(first.arguments.value(), small);
        let cut = &second.arguments.value()["$truncated"];
        assert_eq!(cut["bytes"], json!(large.to_string().len()));
        assert_eq!(cut["sha256"].as_str().map(str::len), Some(64));
        assert!(cut["prefix"].as_str().unwrap().starts_with(r#"{"text":"长长"#));
        assert!(second.arguments.get().len() < 16 << 10);
        let parent = third.parent.as_ref().unwrap().as_str();
        let texts = [third.tool.as_str(), third.call.as_str(), parent].map(str::len).into_iter();
        let more = [&third.conversation, &third.request].into_iter().flatten().map(String::len);
        assert!(texts.chain(more).all(|len| len <= 8 << 10));
        assert!(log.errors.lock().unwrap().iter().all(|error| error.len() <= 8 << 10));
    }
}

/// Calls of one script share the bytes that are stored of their results; what is beyond them is stored shortened.
#[tokio::test]
async fn results_of_one_script_are_stored_up_to_a_limit() {
    for read_only in [true, false] {
        let log = Arc::new(Log { has_capacity: true, ..Log::default() });
        let budget = NestedBudget::new(100, 1 << 20, std::time::Duration::from_secs(1));
        for bytes in [600_000, 600_000, 400_000, 100] {
            let budget = Some(Arc::clone(&budget));
            let call = ToolCall { budget, ..ToolCall::new("t", json!({"bytes": bytes})) };
            let outcome = call_of(&log, read_only, call).await;
            // The caller gets the whole result.
            assert_eq!(outcome.result.unwrap().texts().0[0].len(), bytes);
        }
        let outputs = log.outputs.lock().unwrap();
        let lengths: Vec<usize> = outputs.iter().map(|output| output.get().len()).collect();
        let [first, second, third, small] = lengths[..] else { panic!("{lengths:?}") };
        assert!(first > 600_000 && second < 10_000 && third > 400_000 && small > 100, "{lengths:?}");
        let cut = outputs[1].value();
        assert!(cut["_meta"]["toolhub/truncated"]["bytes"].as_u64().unwrap() > 600_000, "{cut}");
        assert!(cut["content"][0]["text"].as_str().unwrap().starts_with("xxx"), "{cut}");
    }
}

/// A call that a tool makes is recorded with the call of that tool.
#[tokio::test]
async fn records_the_parent_of_a_nested_call() {
    for read_only in [true, false] {
        let log = Arc::new(Log { has_capacity: true, ..Log::default() });
        for parent in [None, Some(CallId::new("call_1"))] {
            let call = ToolCall { parent, ..ToolCall::new("t", json!({})) };
            assert!(call_of(&log, read_only, call).await.success());
        }
        let starts = log.starts.lock().unwrap();
        let parents: Vec<_> = starts.iter().map(|start| start.parent.clone()).collect();
        assert_eq!(parents, [None, Some(CallId::new("call_1"))]);
    }
}

#[tokio::test]
async fn successful_read_only_calls_are_only_counted_when_the_log_is_full() {
    let check = |(outcome, written): (Outcome, Vec<String>), handle: bool, expect: &[&str]| {
        assert_eq!(written, expect);
        assert_eq!(outcome.handle.is_some(), handle, "{outcome:?}");
    };
    let (fine, fails) = (json!({}), json!({"how": "fail"}));
    let noted = format!("noted: {}, 1", CallStatus::Succeeded.name());
    check(called(true, true, fine.clone()).await, true, &[&noted]);
    check(called(false, true, fine.clone()).await, false, &["counted: 1"]);
    // A failure is recorded in detail although a success would only be counted.
    let (outcome, written) = called(false, true, fails.clone()).await;
    assert!(!outcome.success());
    assert_eq!(written, [format!("noted: {}, 1", CallStatus::Failed.name())]);
    // A call that may have an effect is always recorded, with or without room.
    for has_capacity in [true, false] {
        check(called(has_capacity, false, fine.clone()).await, true, &["begun", "ended: succeeded"]);
        let (_, written) = called(has_capacity, false, fails.clone()).await;
        assert_eq!(written, ["begun", "ended: failed"]);
    }
}

/// Only `readOnlyHint` exempts a tool: an idempotent tool has an effect the first time.
#[tokio::test]
async fn tool_that_is_not_read_only_is_recorded_before_it_runs() {
    let changing = [
        json!({}),
        json!({"idempotentHint": true}),
        json!({"idempotentHint": true, "readOnlyHint": false}),
        json!({"destructiveHint": false}),
    ];
    for hints in changing {
        let log = Arc::new(Log { has_capacity: true, ..Log::default() });
        assert!(call_with_hints(&log, &hints, ToolCall::new("t", json!({}))).await.success());
        assert_eq!(*log.written.lock().unwrap(), ["begun", "ended: succeeded"], "{hints}");
    }
    let log = Arc::new(Log { has_capacity: true, ..Log::default() });
    let hints = json!({"idempotentHint": true, "readOnlyHint": true});
    assert!(call_with_hints(&log, &hints, ToolCall::new("t", json!({}))).await.success());
    assert_eq!(*log.written.lock().unwrap(), ["noted: succeeded, 1"]);
}
