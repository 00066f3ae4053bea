//! A hub with one tool that never answers, for tests that kill a hub in the middle of a script.

use std::io::Write as _;

use toolhub_core::{BoxFuture, RawJson};
use toolhub_script::protocol::ToolPath;
use toolhub_script::{
    FileJournal, HostConfig, RunnerConfig, Script, ScriptCall, ScriptRunner, ScriptTool, ScriptToolError,
    ScriptTools,
};

/// `tools.begin()` returns and `tools.wait()` does not; both are written to stdout.
struct Tools;

impl ScriptTools for Tools {
    fn tools(&self) -> BoxFuture<'_, Vec<ScriptTool>> {
        let tool = |name: &str| ScriptTool {
            path: ToolPath { name: name.to_owned(), member: None },
            read_only: false,
        };
        Box::pin(std::future::ready(vec![tool("begin"), tool("wait")]))
    }

    fn signature(&self, _: &str) -> Option<String> {
        None
    }

    fn call(&self, call: ScriptCall) -> BoxFuture<'_, Result<RawJson, ScriptToolError>> {
        Box::pin(async move {
            let _ = writeln!(std::io::stdout(), "{}", call.tool);
            match call.tool.as_str() {
                "wait" => std::future::pending().await,
                _ => Ok(RawJson::null()),
            }
        })
    }
}

/// Runs a script with a journal, and prints its value or the kind of its failure.
pub(crate) fn run(journal: &str, code: &str) -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let report = runtime.block_on(async {
        let mut journal = FileJournal::open(journal.as_ref())?;
        let runner = ScriptRunner::new(RunnerConfig::new(HostConfig::of_current_program()?));
        let report = runner.run(&Script::new(code), &Tools, Some(&mut journal)).await;
        runner.shutdown().await;
        Ok::<_, Box<dyn std::error::Error>>(report)
    })?;
    toolhub_sandbox::stop_guard();
    let mut out = std::io::stdout().lock();
    match report.failure() {
        Some(failure) => writeln!(out, "failed: {}", failure.kind.name())?,
        None => writeln!(out, "value: {}", report.value().map_or("", RawJson::get))?,
    }
    Ok(())
}
