//! Deadlines of a call with any sequence of events: on a paused clock, with a scripted host.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;
use toolhub_core::ports::NullSink;
use toolhub_core::{
    BoxFuture, CallContext, EventKind, RawJson, Source, Tool, ToolCall, ToolDefinition, ToolError, ToolHost,
    ToolOutput,
};
use toolhub_engine::{Deadlines, Engine, RoutingPolicy};

/// An event, with the second at which it occurs.
#[derive(Clone, Copy)]
enum Step {
    Send,
    Progress,
    Ask,
    Answer,
    Reply,
}

use Step::{Answer, Ask, Progress, Reply, Send};

/// Performs these events in order, then never returns.
struct Script(Vec<(u64, Step)>);

impl ToolHost for Script {
    fn source(&self) -> Source {
        Source::Native
    }

    fn call<'a>(
        &'a self,
        _: &'a Tool,
        _: &'a RawJson,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let start = Instant::now();
            for (at, step) in &self.0 {
                tokio::time::sleep_until(start + Duration::from_secs(*at)).await;
                match step {
                    Send => context.sending(),
                    Progress => {
                        context.emit(EventKind::Progress { progress: 1.0, total: None, message: None });
                    }
                    Ask => context.emit(EventKind::InputRequested { method: "ask".to_owned() }),
                    Answer => context.emit(EventKind::InputReceived),
                    Reply => return Ok(ToolOutput::text("done")),
                }
            }
            std::future::pending().await
        })
    }
}

/// Runs a call with these events. Returns when it ended, in seconds, and whether it succeeded.
async fn ended(tool: &Tool, steps: &[(u64, Step)], timeout: Option<u64>) -> (u64, bool) {
    let engine = Engine::new(RoutingPolicy::default(), Arc::new(NullSink));
    let host: Arc<dyn ToolHost> = Arc::new(Script(steps.to_vec()));
    engine.add_host(&host, Deadlines::default());
    engine.set_tools(&Source::Native, std::slice::from_ref(tool));
    let call = ToolCall { timeout: timeout.map(Duration::from_secs), ..ToolCall::new("t", json!({})) };
    let started = Instant::now();
    let outcome = engine.call(call).await;
    let took = started.elapsed();
    // The accuracy of the runtime clock.
    assert!(outcome.success() || took.subsec_millis() < 20, "{took:?}");
    if let Err(error) = &outcome.result {
        assert!(matches!(error, ToolError::TimedOut { .. }), "{error:?}");
    }
    (took.as_secs(), outcome.success())
}

#[tokio::test(start_paused = true)]
async fn call_ends_at_its_deadline() {
    let definition = ToolDefinition::parse(RawJson::from(json!({"name": "t"}))).unwrap();
    let tool = Tool::new(Source::Native, definition);
    let check = async |steps: &[(u64, Step)], timeout: Option<u64>, expect: (u64, bool)| {
        assert_eq!(ended(&tool, steps, timeout).await, expect);
    };
    check(&[(0, Send)], None, (30, false)).await;
    check(&[(0, Send), (29, Reply)], None, (29, true)).await;
    // The timeout starts when the request is sent, at any time.
    check(&[(3, Send)], None, (33, false)).await;
    check(&[(45, Send)], None, (75, false)).await;
    check(&[(100, Send), (129, Reply)], None, (129, true)).await;
    // A call that is never sent, with a host that never gives up.
    check(&[], None, (300, false)).await;
    // Progress extends the deadline.
    check(&[(0, Send), (25, Progress)], None, (55, false)).await;
    check(&[(0, Send), (25, Progress), (50, Progress), (79, Reply)], None, (79, true)).await;
    // The timeout of the caller starts with the call, and nothing extends it.
    check(&[(0, Send), (4, Progress)], Some(5), (5, false)).await;
    check(&[(4, Send)], Some(5), (5, false)).await;
    check(&[(0, Send), (1, Ask), (50, Answer)], Some(40), (40, false)).await;
    check(&[(0, Send)], Some(500), (500, false)).await;
    // While user input is pending the deadline is suspended; afterwards the full timeout applies again.
    check(&[(0, Send), (10, Ask), (20, Answer)], None, (50, false)).await;
    check(&[(0, Send), (10, Ask), (200, Answer)], None, (230, false)).await;
    check(&[(0, Send), (10, Ask), (3_000, Answer), (3_001, Reply)], None, (3_001, true)).await;
    check(&[(0, Send), (10, Ask), (20, Ask), (100, Answer), (500, Answer)], None, (530, false)).await;
    // Waiting for input does not count towards the cap on extensions by progress.
    let busy = (1..=14).map(|step| (step * 20, Progress));
    let with_question: Vec<_> =
        [(0, Send)].into_iter().chain(busy).chain([(290, Ask), (400, Answer)]).collect();
    check(&with_question, None, (410, false)).await;
}
