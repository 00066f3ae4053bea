//! A small MCP client over stdio, independent of the hub's code: `initialize`, requests with a deadline, and a clean
//! shutdown.
use std::{
    io::{BufRead as _, BufReader, Write as _},
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, sync_channel},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow, bail};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

const REVISION: &str = "2025-11-25";
/// Longer than any of the servers needs on a busy machine.
pub(super) const START_TIMEOUT: Duration = Duration::from_secs(120);
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum time for a process to exit after its stdin is closed.
const END_TIMEOUT: Duration = Duration::from_secs(10);
const BETWEEN_POLLS: Duration = Duration::from_millis(10);
/// Capacity of the queue of received messages.
const QUEUED_MESSAGES: usize = 1024;
const METHOD_NOT_FOUND: i32 = -32601;
/// Maximum number of pages of one list.
const MAX_PAGES: usize = 100;

pub(super) struct RpcClient {
    child: Child,
    input: Option<ChildStdin>,
    messages: Receiver<Value>,
    next_id: u64,
    tools_changed: bool,
}

impl RpcClient {
    /// Starts the program in its own process group, with stderr redirected to `log`, and initializes the session.
    pub(super) fn start(mut command: Command, log: &Path) -> Result<Self> {
        let log_file = std::fs::File::create(log)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log_file).process_group(0);
        let mut child = command.spawn().context("it cannot be started")?;
        let output = child.stdout.take().context("no standard output")?;
        let (sender, messages) = sync_channel(QUEUED_MESSAGES);
        // The thread ends at the end of the pipe or when the receiver is dropped.
        thread::spawn(move || {
            let mut lines = BufReader::new(output);
            let mut line = Vec::new();
            while lines.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
                let message = serde_json::from_slice::<Value>(&line).ok().filter(Value::is_object);
                line.clear();
                if message.is_some_and(|message| sender.send(message).is_err()) {
                    return;
                }
            }
        });
        let input = child.stdin.take();
        let mut client = Self { child, input, messages, next_id: 0, tools_changed: false };
        let params = json!({
            "protocolVersion": REVISION,
            "capabilities": {"roots": {}, "sampling": {}, "elicitation": {"form": {}, "url": {}}},
            "clientInfo": {"name": "xtask", "version": "1"},
        });
        client.result("initialize", &params, START_TIMEOUT)?;
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(client)
    }

    /// Returns all pages of `tools/list`.
    pub(super) fn list_tools(&mut self) -> Result<Vec<Value>> {
        let mut tools = Vec::new();
        let mut params = json!({});
        for _ in 0..MAX_PAGES {
            let page = self.result("tools/list", &params, START_TIMEOUT)?;
            let listed = page["tools"].as_array().context("`tools/list` has no `tools`")?;
            tools.extend(listed.iter().cloned());
            match page["nextCursor"].as_str() {
                Some(cursor) => params = json!({"cursor": cursor}),
                None => return Ok(tools),
            }
        }
        bail!("`tools/list` has more than {MAX_PAGES} pages")
    }

    /// Returns the tools as soon as there are any: the hub may respond with an empty list first and send
    /// `notifications/tools/list_changed` later.
    pub(super) fn wait_for_tools(&mut self) -> Result<Vec<Value>> {
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            self.tools_changed = false;
            let tools = self.list_tools()?;
            if !tools.is_empty() || Instant::now() > deadline {
                return Ok(tools);
            }
            while !self.tools_changed {
                let message = self.receive(deadline).context("no tools were announced")?;
                if message.get("method").is_some() {
                    self.respond(&message)?;
                }
            }
        }
    }

    /// Calls a tool. Returns the `result` or `error` member of the response.
    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value> {
        self.answer("tools/call", &json!({"name": tool, "arguments": arguments}), CALL_TIMEOUT)
    }

    fn result(&mut self, method: &str, params: &Value, timeout: Duration) -> Result<Value> {
        let mut answer = self.answer(method, params, timeout)?;
        match answer.get_mut("result") {
            Some(result) => Ok(result.take()),
            None => Err(anyhow!("`{method}` failed: {}", answer["error"])),
        }
    }

    fn answer(&mut self, method: &str, params: &Value, timeout: Duration) -> Result<Value> {
        let deadline = Instant::now() + timeout;
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        loop {
            let mut message = self.receive(deadline).with_context(|| format!("during `{method}`"))?;
            if message.get("method").is_some() {
                self.respond(&message)?;
            } else if message["id"] == id {
                let kind = if message.get("result").is_some() { "result" } else { "error" };
                return Ok(json!({ kind: message[kind].take() }));
            }
        }
    }

    fn receive(&self, deadline: Instant) -> Result<Value> {
        let remaining = deadline.saturating_duration_since(Instant::now());
        self.messages.recv_timeout(remaining).map_err(|error| match error {
            RecvTimeoutError::Timeout => anyhow!("no message before the deadline"),
            RecvTimeoutError::Disconnected => anyhow!("its output has ended"),
        })
    }

    /// Responds to a request of the server, and records a change of its tools. The client declares the same
    /// capabilities as the hub, since some servers list other tools without them, but it has no roots and no user.
    fn respond(&mut self, message: &Value) -> Result<()> {
        if message["method"] == "notifications/tools/list_changed" {
            self.tools_changed = true;
        }
        let Some(id) = message.get("id") else { return Ok(()) };
        let result = match message["method"].as_str() {
            Some("ping") => json!({}),
            Some("roots/list") => json!({"roots": []}),
            _ => {
                let error = json!({"code": METHOD_NOT_FOUND, "message": "not supported"});
                return self.send(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
            }
        };
        self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        let input = self.input.as_mut().context("its input is closed")?;
        let written = writeln!(input, "{message}").and_then(|()| input.flush());
        written.context("its input cannot be written")
    }

    /// Closes stdin and waits for the process to exit. Fails if it does not exit within `END_TIMEOUT`; it is then
    /// killed.
    pub(super) fn close(mut self) -> Result<()> {
        self.input = None;
        let deadline = Instant::now() + END_TIMEOUT;
        while Instant::now() < deadline {
            if self.child.try_wait()?.is_some() {
                return Ok(());
            }
            thread::sleep(BETWEEN_POLLS);
        }
        bail!("it did not end within {} s after its input was closed", END_TIMEOUT.as_secs())
    }
}

impl Drop for RpcClient {
    fn drop(&mut self) {
        // Kills the whole process group: programs such as `npx` start child processes.
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}
