//! A runner with the real host, tools that count their calls, and short ways to check results.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use toolhub_core::lang::Lang;
use toolhub_core::{BoxFuture, RawJson};
use toolhub_sandbox::Isolation;
use toolhub_script::protocol::{COMMAND, ToolPath};
use toolhub_script::{
    FailureKind, HostConfig, INVALID_ARGUMENTS, RunnerConfig, Script, ScriptCall, ScriptLimits, ScriptReport,
    ScriptRunner, ScriptTool, ScriptToolError, ScriptTools,
};

/// The host program of this crate.
pub(crate) fn host() -> HostConfig {
    HostConfig {
        program: PathBuf::from(env!("CARGO_BIN_EXE_script-host")),
        arguments: vec![COMMAND.into()],
        isolation: Isolation::Auto,
        allow_missing: Vec::new(),
        protected: Vec::new(),
    }
}

pub(crate) fn config() -> RunnerConfig {
    RunnerConfig { warm_hosts: 0, ..RunnerConfig::new(host()) }
}

pub(crate) fn runner() -> ScriptRunner {
    ScriptRunner::new(config())
}

/// Limits that end a bomb soon.
pub(crate) fn short() -> ScriptLimits {
    ScriptLimits {
        cpu: Duration::from_secs(1),
        wall: Duration::from_secs(40),
        memory: 24 << 20,
        ..ScriptLimits::default()
    }
}

/// Tools for tests: what they were called with, and how many ran at the same time.
#[derive(Debug, Default)]
pub(crate) struct TestTools {
    pub(crate) calls: Mutex<Vec<(String, Value)>>,
    /// How often the tools were listed.
    pub(crate) listings: AtomicUsize,
    running: AtomicUsize,
    pub(crate) most_running: AtomicUsize,
    /// Calls whose future was dropped before its end.
    pub(crate) dropped: Arc<AtomicUsize>,
}

/// Counts a call that is dropped before its end.
struct DropCounter(Option<Arc<AtomicUsize>>);

impl Drop for DropCounter {
    fn drop(&mut self) {
        if let Some(dropped) = &self.0 {
            dropped.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl TestTools {
    pub(crate) fn names(&self) -> Vec<String> {
        self.calls.lock().unwrap().iter().map(|(name, _)| name.clone()).collect()
    }
}

fn tool(server: &str, name: &str) -> ScriptTool {
    ScriptTool {
        path: ToolPath {
            name: format!("{server}_{name}"),
            member: Some((server.to_owned(), name.to_owned())),
        },
        read_only: false,
    }
}

impl ScriptTools for TestTools {
    fn tools(&self) -> BoxFuture<'_, Vec<ScriptTool>> {
        self.listings.fetch_add(1, Ordering::Relaxed);
        let mut tools: Vec<ScriptTool> = ["echo", "fail", "slow", "never", "panic", "big", "text", "deep"]
            .map(|name| tool("test", name))
            .into();
        tools.push(tool("my-server", "get-item"));
        tools.push(ScriptTool {
            path: ToolPath { name: "calculate".to_owned(), member: None },
            read_only: true,
        });
        Box::pin(std::future::ready(tools))
    }

    fn signature(&self, tool: &str) -> Option<String> {
        let (server, name) = tool.split_once('_')?;
        Some(format!("tools.{server}.{name}(args: {{ value?: string }}): Promise<unknown>"))
    }

    fn call(&self, call: ScriptCall) -> BoxFuture<'_, Result<RawJson, ScriptToolError>> {
        Box::pin(async move {
            let arguments = call.arguments.value();
            self.calls.lock().unwrap().push((call.tool.clone(), arguments.clone()));
            let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
            self.most_running.fetch_max(running, Ordering::SeqCst);
            let mut counter = DropCounter(Some(Arc::clone(&self.dropped)));
            let answer = answer(&call.tool, &arguments).await;
            counter.0 = None;
            self.running.fetch_sub(1, Ordering::SeqCst);
            answer
        })
    }
}

async fn answer(tool: &str, arguments: &Value) -> Result<RawJson, ScriptToolError> {
    match tool {
        "test_fail" => {
            let kind = arguments.get("kind").and_then(Value::as_str).unwrap_or("timeout");
            let error = ScriptToolError::new(kind, "the tool did not work");
            Err(if kind == INVALID_ARGUMENTS { error } else { error.with_hint("try later") })
        }
        "test_slow" => {
            let ms = arguments.get("ms").and_then(Value::as_u64).unwrap_or(100);
            tokio::time::sleep(Duration::from_millis(ms)).await;
            Ok(RawJson::of(&json!({ "slept": ms })))
        }
        "test_never" => std::future::pending().await,
        "test_panic" => panic!("a tool panics"),
        "test_big" => {
            let bytes = arguments.get("bytes").and_then(Value::as_u64).unwrap_or(1) as usize;
            Ok(RawJson::of(&"x".repeat(bytes)))
        }
        "test_text" => Ok(RawJson::of("plain text\nwith \"lines\"\u{2028}")),
        "test_deep" => {
            let depth = arguments.get("depth").and_then(Value::as_u64).unwrap_or(1) as usize;
            Ok(RawJson::parse(format!("{}{}", "[".repeat(depth), "]".repeat(depth))).unwrap())
        }
        "calculate" => Ok(RawJson::of(&42)),
        _ => Ok(RawJson::of(arguments)),
    }
}

/// Runs a script with the default limits and no input.
pub(crate) async fn run(code: &str) -> ScriptReport {
    runner().run(&Script::new(code), &TestTools::default(), None).await
}

/// Runs a script with other limits.
pub(crate) async fn run_within(code: &str, limits: ScriptLimits) -> ScriptReport {
    let script = Script { limits: Some(limits), ..Script::new(code) };
    runner().run(&script, &TestTools::default(), None).await
}

/// The value of a report.
pub(crate) fn value(report: &ScriptReport) -> Value {
    match report.value() {
        Some(value) => value.value(),
        None => panic!("{}", report.notes(Lang::En)),
    }
}

/// Runs a script and checks its value.
pub(crate) async fn check(code: &str, expect: Value) {
    let report = run(code).await;
    assert!(report.failure().is_none(), "{code}\n{}", report.notes(Lang::En));
    assert_eq!(value(&report), expect, "{code}");
}

/// Checks that a report has a failure of this kind, and returns its text.
pub(crate) fn failed(report: &ScriptReport, kind: FailureKind) -> String {
    let notes = report.notes(Lang::En);
    let failure = report.failure().unwrap_or_else(|| panic!("it returned {:?}", report.value()));
    assert_eq!(failure.kind, kind, "{notes}");
    assert!(!report.notes(Lang::Zh).is_empty());
    notes
}
