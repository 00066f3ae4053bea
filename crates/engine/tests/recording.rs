//! What is written down of a call, with a log that has room or has none.

#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test, and says with what")]

use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use serde_json::json;
use toolhub_core::memory::{CallEnd, CallLog, CallStart, Status};
use toolhub_core::outcome::AttemptRecord;
use toolhub_core::ports::{Silence, StoreError};
use toolhub_core::{
    BoxFuture, CallContext, Outcome, RawJson, Source, Tool, ToolCall, ToolDefinition, ToolError, ToolHost,
    ToolOutput,
};
use toolhub_engine::{Deadlines, Engine, Policy};

/// Fails where it is told to.
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
        Box::pin(
            async move { if fails { Err(ToolError::failed("no")) } else { Ok(ToolOutput::text("done")) } },
        )
    }
}

/// What was written, each a word.
#[derive(Default)]
struct Log {
    room: bool,
    written: Mutex<Vec<String>>,
}

impl Log {
    fn write(&self, word: String) {
        self.written.lock().unwrap().push(word);
    }
}

impl CallLog for Log {
    fn begin(&self, _: CallStart) -> BoxFuture<'_, Result<(), StoreError>> {
        self.write("begun".to_owned());
        Box::pin(std::future::ready(Ok(())))
    }

    fn finish(&self, end: CallEnd) -> BoxFuture<'_, Result<(), StoreError>> {
        self.write(format!("ended: {}", end.status.name()));
        Box::pin(std::future::ready(Ok(())))
    }

    fn note(&self, start: CallStart, end: CallEnd) {
        assert_eq!(start.record, end.record);
        let tried = end.attempts.len();
        self.write(format!("noted: {}, {tried}", end.status.name()));
    }

    fn has_room(&self) -> bool {
        self.room
    }

    fn count(&self, attempts: &[AttemptRecord], _: SystemTime) {
        self.write(format!("counted: {}", attempts.len()));
    }
}

async fn called(room: bool, read_only: bool, arguments: serde_json::Value) -> (Outcome, Vec<String>) {
    let log = Arc::new(Log { room, ..Log::default() });
    let engine = Engine::new(Policy::default(), Arc::new(Silence)).recording(Arc::clone(&log) as _);
    let host: Arc<dyn ToolHost> = Arc::new(Host);
    engine.add_host(&host, Deadlines::default());
    let definition = json!({"name": "t", "annotations": {"readOnlyHint": read_only}});
    let definition = ToolDefinition::parse(RawJson::from(definition)).unwrap();
    engine.set_tools(&Source::Native, &[Tool::new(Source::Native, definition)]);
    let outcome = engine.call(ToolCall::new("t", arguments)).await;
    let written = log.written.lock().unwrap().clone();
    (outcome, written)
}

#[tokio::test]
async fn what_there_is_no_room_for_is_counted() {
    let check = |(outcome, written): (Outcome, Vec<String>), handle: bool, expect: &[&str]| {
        assert_eq!(written, expect);
        assert_eq!(outcome.handle.is_some(), handle, "{outcome:?}");
    };
    let (fine, fails) = (json!({}), json!({"how": "fail"}));
    let noted = format!("noted: {}, 1", Status::Succeeded.name());
    check(called(true, true, fine.clone()).await, true, &[&noted]);
    check(called(false, true, fine.clone()).await, false, &["counted: 1"]);
    // What failed is told of as long as that is possible.
    let (outcome, written) = called(false, true, fails.clone()).await;
    assert!(!outcome.success());
    assert_eq!(written, [format!("noted: {}, 1", Status::Failed.name())]);
    // What may change something is written whatever else there is to write.
    for room in [true, false] {
        check(called(room, false, fine.clone()).await, true, &["begun", "ended: succeeded"]);
        let (_, written) = called(room, false, fails.clone()).await;
        assert_eq!(written, ["begun", "ended: failed"]);
    }
}
