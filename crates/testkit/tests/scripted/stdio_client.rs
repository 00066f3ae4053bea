//! A client over pipes that sends and receives lines, without any further part of the protocol.

use std::{
    io::{Read, Write},
    path::PathBuf,
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;
use toolhub_testkit::scripted::{self, Journal, Script};

/// Long enough for a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(20);
/// Long enough to say that nothing comes.
const QUIET: Duration = Duration::from_millis(300);

pub(crate) struct Client {
    pub(crate) child: Child,
    stdin: Option<ChildStdin>,
    stdout: Receiver<Vec<u8>>,
    stderr: Receiver<Vec<u8>>,
    buffer: Vec<u8>,
    folder: TempDir,
}

impl Client {
    /// Starts the script, with a journal.
    pub(crate) fn start(script: &Script) -> Self {
        Self::start_with(script, |_| {})
    }

    pub(crate) fn start_with(script: &Script, prepare: impl Fn(&mut Command)) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let script = script.clone().journal(folder.path().join("journal")).write(folder.path());
        let mut command = Command::new(scripted::binary());
        command.arg("stdio").arg(script);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        prepare(&mut command);
        let mut child = command.spawn().expect("the server starts");
        let stdin = child.stdin.take();
        let stdout = chunks(child.stdout.take().expect("stdout is piped"));
        let stderr = chunks(child.stderr.take().expect("stderr is piped"));
        Self { child, stdin, stdout, stderr, buffer: Vec::new(), folder }
    }

    /// Starts a legacy script and goes through the handshake.
    pub(crate) fn open(script: &Script) -> Self {
        let mut client = Self::start(script);
        client.handshake();
        client
    }

    pub(crate) fn handshake(&mut self) {
        let answer = self.ask(json!("init"), "initialize", json!({"protocolVersion": "2025-11-25"}));
        assert_eq!(answer["id"], "init", "{answer}");
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }

    pub(crate) fn journal_path(&self) -> PathBuf {
        self.folder.path().join("journal")
    }

    pub(crate) fn journal(&self) -> Journal {
        Journal::read(self.journal_path())
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.send_text(&message.to_string());
    }

    pub(crate) fn send_text(&mut self, text: &str) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(format!("{text}\n").as_bytes()).expect("the server reads");
    }

    pub(crate) fn request(&mut self, id: Value, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    pub(crate) fn call(&mut self, id: u64, tool: &str) {
        self.request(json!(id), "tools/call", json!({"name": tool, "arguments": {"n": id}}));
    }

    pub(crate) fn ask(&mut self, id: Value, method: &str, params: Value) -> Value {
        self.request(id, method, params);
        self.message()
    }

    pub(crate) fn message(&mut self) -> Value {
        let line = self.line();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// The next line of stdout, without its newline.
    pub(crate) fn line(&mut self) -> String {
        let end = self.wait(|buffer| buffer.iter().position(|byte| *byte == b'\n'));
        let line: Vec<u8> = self.buffer.drain(..=end).collect();
        String::from_utf8(line).expect("the line is text").trim_end_matches('\n').to_owned()
    }

    /// The next bytes of stdout.
    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        self.wait(|buffer| (buffer.len() >= count).then_some(count));
        self.buffer.drain(..count).collect()
    }

    pub(crate) fn expect_silence(&mut self) {
        match self.stdout.recv_timeout(QUIET) {
            Ok(chunk) => self.buffer.extend(chunk),
            Err(error) => assert_eq!(error, RecvTimeoutError::Timeout, "stdout has ended"),
        }
        assert!(self.buffer.is_empty(), "unexpected: {}", String::from_utf8_lossy(&self.buffer));
    }

    /// What stderr holds once it holds this many bytes.
    pub(crate) fn stderr(&mut self, least: usize) -> String {
        let mut bytes = Vec::new();
        while bytes.len() < least {
            bytes.extend(self.stderr.recv_timeout(LONG).expect("more on stderr"));
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn stdin(&mut self) -> ChildStdin {
        self.stdin.take().expect("stdin is open")
    }

    pub(crate) fn close_input(&mut self) {
        self.stdin = None;
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("the child can be asked").is_none()
    }

    pub(crate) fn wait_exit(&mut self) -> ExitStatus {
        let deadline = Instant::now() + LONG;
        loop {
            if let Some(status) = self.child.try_wait().expect("the child can be asked") {
                return status;
            }
            assert!(Instant::now() < deadline, "the server does not go");
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn wait(&mut self, found: impl Fn(&[u8]) -> Option<usize>) -> usize {
        let deadline = Instant::now() + LONG;
        loop {
            if let Some(place) = found(&self.buffer) {
                return place;
            }
            let remaining = deadline.saturating_duration_since(Instant::now());
            match self.stdout.recv_timeout(remaining) {
                Ok(chunk) => self.buffer.extend(chunk),
                Err(error) => panic!("{error}: {}", String::from_utf8_lossy(&self.buffer)),
            }
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It may be gone already.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

fn chunks(mut source: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(read @ 1..) = source.read(&mut buffer) {
            if sender.send(buffer[..read].to_vec()).is_err() {
                return;
            }
        }
    });
    receiver
}

/// The text of a result's first block.
pub(crate) fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {answer}"))
}
