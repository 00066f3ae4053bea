//! Makes one real call through the hub, which is started with the entry of a client plus `--no-servers`: the call needs no MCP
//! server, and no server is started that the user has not run before.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use toolhub::settings::Paths;
use toolhub_client_config::{ClientServer, TransportSpec};
use toolhub_core::RawJson;
use toolhub_core::millis::duration_millis;
use toolhub_core::text::truncate;

use crate::app::App;

/// Timeout for starting the hub and receiving the result.
const TRIAL_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout for stopping the hub.
const END_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum size of the hub's messages that are shown.
const MAX_STDERR_BYTES: u64 = 4096;
/// The argument of the call, and its expected result.
const EXPRESSION: &str = "6*7";
const EXPECTED: &str = "42";

/// The result of the trial call.
pub(crate) struct Trial {
    pub(crate) duration: Duration,
    /// The result, or an error.
    pub(crate) result: Result<String, String>,
}

impl Trial {
    pub(crate) const TOOL: &str = "calculate";
    pub(crate) const EXPRESSION: &str = EXPRESSION;

    pub(crate) fn as_json(&self) -> Value {
        let (result, error) = match &self.result {
            Ok(result) => (Some(result), None),
            Err(error) => (None, Some(error)),
        };
        json!({
            "tool": Self::TOOL,
            "arguments": {"expression": EXPRESSION},
            "success": self.result.is_ok(),
            "result": result,
            "error": error,
            "duration_ms": duration_millis(self.duration),
        })
    }
}

/// Starts the hub with the entry, and calls a native tool.
pub(crate) async fn run(app: &App, hub: &ClientServer, paths: &Paths) -> anyhow::Result<Trial> {
    let lang = app.lang();
    app.screen.status(lang.choose("trying one call …", "正在试调用 …"));
    let started = Instant::now();
    let work = tokio::time::timeout(TRIAL_TIMEOUT, call(hub, paths));
    let result = match app.interruptible(work).await? {
        Ok(result) => result.map_err(|error| format!("{error:#}")),
        Err(_) => Err(lang.choose(
            format!("no answer within {} s", TRIAL_TIMEOUT.as_secs()),
            format!("{} 秒内没有应答", TRIAL_TIMEOUT.as_secs()),
        )),
    };
    app.screen.hide_status();
    Ok(Trial { duration: started.elapsed(), result })
}

async fn call(hub: &ClientServer, paths: &Paths) -> anyhow::Result<String> {
    let TransportSpec::Stdio(spec) = &hub.transport else { anyhow::bail!("the hub has no program") };
    std::fs::create_dir_all(&paths.data_dir)?;
    let mut child = Command::new(&spec.command)
        .args(&spec.args)
        .arg("--no-servers")
        .current_dir(&paths.data_dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        anyhow::bail!("the hub has no standard input or output")
    };
    let result = converse(stdin, BufReader::new(stdout)).await;
    match result {
        Ok(text) => {
            let _ = tokio::time::timeout(END_TIMEOUT, child.wait()).await;
            Ok(text)
        }
        Err(error) => {
            let messages = last_messages(&mut child).await;
            Err(if messages.is_empty() { error } else { error.context(messages) })
        }
    }
}

/// The beginning of the hub's standard error, as far as available.
async fn last_messages(child: &mut Child) -> String {
    let _ = child.start_kill();
    let mut bytes = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        let mut limited = stderr.take(MAX_STDERR_BYTES);
        let _ = tokio::time::timeout(END_TIMEOUT, limited.read_to_end(&mut bytes)).await;
    }
    let text = String::from_utf8_lossy(&bytes).trim().to_owned();
    truncate(&text, 600).unwrap_or(text)
}

async fn converse(mut stdin: ChildStdin, mut stdout: BufReader<ChildStdout>) -> anyhow::Result<String> {
    let client = json!({"name": "toolhub init", "version": env!("CARGO_PKG_VERSION")});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    send(&mut stdin, &json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})).await?;
    answer(&mut stdout, 1).await?;
    send(&mut stdin, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await?;
    let params = json!({"name": Trial::TOOL, "arguments": {"expression": EXPRESSION}});
    send(&mut stdin, &json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params})).await?;
    let result = answer(&mut stdout, 2).await?;
    let texts = result["content"].as_array().into_iter().flatten().filter_map(|part| part["text"].as_str());
    let text = texts.collect::<Vec<_>>().join("\n");
    if result["isError"] == true || !text.contains(EXPECTED) {
        anyhow::bail!("`{}` gave {}", Trial::TOOL, RawJson::of(&result).get());
    }
    Ok(text)
}

async fn send(stdin: &mut ChildStdin, message: &Value) -> std::io::Result<()> {
    stdin.write_all(format!("{message}\n").as_bytes()).await?;
    stdin.flush().await
}

/// Reads the result of a request and skips other messages.
async fn answer(stdout: &mut BufReader<ChildStdout>, id: u64) -> anyhow::Result<Value> {
    loop {
        let mut line = String::new();
        if stdout.read_line(&mut line).await? == 0 {
            anyhow::bail!("the hub ended without an answer");
        }
        let message: Value = serde_json::from_str(&line)?;
        if message["id"] != id {
            continue;
        }
        if let Some(error) = message.get("error") {
            anyhow::bail!("{}", error["message"].as_str().unwrap_or("the hub refused the request"));
        }
        return Ok(message["result"].clone());
    }
}
