//! The program as its own script host: `toolhub script-host` runs one script in the sandbox.
#![cfg(target_os = "linux")]

use std::io::Write as _;
use std::process::{Command, Stdio};

use toolhub_core::lang::Lang;
use toolhub_core::{BoxFuture, RawJson};
use toolhub_sandbox::Isolation;
use toolhub_script::protocol::{COMMAND, ToolPath};
use toolhub_script::{
    HostConfig, RunnerConfig, Script, ScriptCall, ScriptRunner, ScriptTool, ScriptToolError, ScriptTools,
};

/// One tool, which returns its arguments.
struct Echo;

impl ScriptTools for Echo {
    fn tools(&self) -> BoxFuture<'_, Vec<ScriptTool>> {
        let member = Some(("test".to_owned(), "echo".to_owned()));
        let path = ToolPath { name: "echo".to_owned(), member };
        Box::pin(std::future::ready(vec![ScriptTool { path, read_only: true }]))
    }

    fn signature(&self, _: &str) -> Option<String> {
        None
    }

    fn call(&self, call: ScriptCall) -> BoxFuture<'_, Result<RawJson, ScriptToolError>> {
        Box::pin(std::future::ready(Ok(call.arguments)))
    }
}

#[tokio::test]
async fn the_program_runs_a_script() {
    let host = HostConfig {
        program: env!("CARGO_BIN_EXE_toolhub").into(),
        arguments: vec![COMMAND.into()],
        isolation: Isolation::Auto,
        allow_missing: Vec::new(),
        protected: Vec::new(),
    };
    let runner = ScriptRunner::new(RunnerConfig::new(host));
    let script = Script::new("const { a } = await tools.test.echo({ a: 20 }); a + 1");
    for _ in 0..2 {
        let report = runner.run(&script, &Echo, None).await;
        assert_eq!(report.value().map(RawJson::get), Some("21"), "{}", report.notes(Lang::En));
    }
    runner.shutdown().await;
}

#[test]
fn a_host_ends_with_its_hub_and_is_no_command_of_the_help() {
    let program = env!("CARGO_BIN_EXE_toolhub");
    let mut host = Command::new(program);
    host.arg(COMMAND).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = host.spawn().expect("the program starts");
    drop(child.stdin.take());
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.starts_with("{\"ready\":"), "{output:?}");
    // With further arguments it is an unknown command.
    let mut other = Command::new(program);
    other.args([COMMAND, "extra"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = other.spawn().expect("the program starts");
    let _ = child.stdin.take().map(|mut stdin| stdin.write_all(b"{}"));
    assert!(!child.wait_with_output().expect("it ends").status.success());
    let help = Command::new(program).arg("--help").output().expect("it ends");
    assert!(!String::from_utf8_lossy(&help.stdout).contains(COMMAND));
}
