//! stdio: one actor owns the child, its lines and the pending requests, and pairs answers with them.

use std::collections::HashMap;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Deserialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::TaskTracker;
use toolhub_core::{BoxFuture, RawJson, RawObject};

use super::lines::{Line, Lines, MAX_LINE_BYTES};
use super::process::Process;
use super::{Inbox, OnProgress, OutgoingRequest, StderrRing, Transport};
use crate::config::StdioSpec;
use crate::error::McpError;
use crate::wire::{self, Incoming, NotAMessage};

/// Requests under way at most.
const MAX_PENDING: usize = 1024;
/// How long the child may leave its input unread.
const WRITE_DEADLINE: Duration = Duration::from_secs(30);
/// How long the actor waits for the exit status of a child that closed its output.
const STATUS_PATIENCE: Duration = Duration::from_millis(500);

/// The way to a child process.
#[derive(Debug)]
pub(crate) struct Stdio {
    commands: mpsc::Sender<Command>,
    open: Arc<AtomicBool>,
    pub(crate) stderr: StderrRing,
}

enum Command {
    Request {
        id: u64,
        body: String,
        reply: oneshot::Sender<Result<RawJson, McpError>>,
        on_progress: Option<OnProgress>,
    },
    Cancel {
        id: u64,
    },
    Send {
        body: String,
    },
}

struct Pending {
    reply: oneshot::Sender<Result<RawJson, McpError>>,
    on_progress: Option<OnProgress>,
}

impl Stdio {
    /// Starts the child; `tasks` owns what runs for it. Dropping the transport ends the child.
    pub(crate) fn start(
        spec: &StdioSpec,
        inbox: Arc<dyn Inbox>,
        tasks: &TaskTracker,
    ) -> Result<Self, McpError> {
        let mut process = Process::start(spec)?;
        let stderr = StderrRing::default();
        let pipes = (process.child.stdin.take(), process.child.stdout.take(), process.child.stderr.take());
        let (Some(stdin), Some(stdout), Some(errors)) = pipes else {
            return Err(McpError::connect("its pipes could not be opened"));
        };
        let (commands, inbound) = mpsc::channel(MAX_PENDING);
        let (outbound, lines_out) = mpsc::channel(MAX_PENDING);
        let (failed, write_failure) = oneshot::channel();
        let (drained, stderr_drained) = oneshot::channel();
        let open = Arc::new(AtomicBool::new(true));
        let actor = Actor {
            lines: Lines::new(BufReader::with_capacity(64 << 10, stdout), MAX_LINE_BYTES),
            outbound,
            pending: HashMap::new(),
            inbox,
        };
        tasks.spawn(write(stdin, lines_out, failed));
        tasks.spawn(collect(errors, stderr.clone(), drained));
        let ending = Ending { process, stderr: stderr.clone(), stderr_drained, open: Arc::clone(&open) };
        tasks.spawn(actor.run(inbound, write_failure, ending));
        Ok(Self { commands, open, stderr })
    }
}

impl Transport for Stdio {
    fn request(&self, request: OutgoingRequest) -> BoxFuture<'_, Result<RawJson, McpError>> {
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            let OutgoingRequest { id, method, body, on_progress, .. } = request;
            let command = Command::Request { id, body, reply, on_progress };
            self.commands.send(command).await.map_err(|_| self.gone())?;
            // Initialize is the one request that may not be cancelled (2025-11-25, utilities/cancellation).
            let mut guard =
                CancelOnDrop { commands: &self.commands, id: (method != "initialize").then_some(id) };
            let answer = answer.await;
            guard.id = None;
            answer.unwrap_or_else(|_| Err(self.gone()))
        })
    }

    fn notify(&self, body: String) -> BoxFuture<'_, Result<(), McpError>> {
        Box::pin(async move { self.commands.send(Command::Send { body }).await.map_err(|_| self.gone()) })
    }

    fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }
}

impl Stdio {
    fn gone(&self) -> McpError {
        McpError::Connect { cause: "its process has ended".to_owned(), stderr: self.stderr.tail() }
    }
}

/// Tells the actor when a request's caller went away.
struct CancelOnDrop<'a> {
    commands: &'a mpsc::Sender<Command>,
    id: Option<u64>,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            // With the queue full the server is not told; the answer is dropped all the same.
            let _ = self.commands.try_send(Command::Cancel { id });
        }
    }
}

struct Actor {
    lines: Lines<BufReader<ChildStdout>>,
    outbound: mpsc::Sender<String>,
    pending: HashMap<u64, Pending>,
    inbox: Arc<dyn Inbox>,
}

struct Ending {
    process: Process,
    stderr: StderrRing,
    stderr_drained: oneshot::Receiver<()>,
    open: Arc<AtomicBool>,
}

impl Actor {
    async fn run(
        mut self,
        mut commands: mpsc::Receiver<Command>,
        mut write_failure: oneshot::Receiver<String>,
        mut ending: Ending,
    ) {
        let cause = loop {
            tokio::select! {
                command = commands.recv() => match command {
                    Some(command) => self.obey(command),
                    None => break None,
                },
                line = self.lines.next() => match line {
                    Line::Whole(line) => self.receive(&line),
                    Line::TooLong(start) => {
                        let detail = format!("a line of more than {} MiB", MAX_LINE_BYTES >> 20);
                        self.misread(wire::guess_id(&start), detail);
                    }
                    Line::End => break Some(None),
                },
                Ok(failure) = &mut write_failure => break Some(Some(failure)),
            }
        };
        ending.open.store(false, Ordering::Release);
        if let Some(cause) = cause {
            let status = tokio::time::timeout(STATUS_PATIENCE, ending.process.child.wait()).await;
            let _ = tokio::time::timeout(STATUS_PATIENCE, &mut ending.stderr_drained).await;
            let cause = cause.unwrap_or_else(|| why_ended(status.ok().and_then(Result::ok)));
            let error = McpError::Lost { cause, stderr: ending.stderr.tail() };
            for (_, pending) in self.pending.drain() {
                let _ = pending.reply.send(Err(error.clone()));
            }
            // Requests that were queued but never looked at.
            commands.close();
            while let Ok(command) = commands.try_recv() {
                if let Command::Request { reply, .. } = command {
                    let _ = reply.send(Err(error.clone().while_connecting(Vec::new())));
                }
            }
        }
        // The writer ends with its channel, after what is queued, and closes the child's input with that.
        drop(self);
        ending.process.stop().await;
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Request { id, body, reply, on_progress } => {
                if self.pending.len() >= MAX_PENDING {
                    let _ = reply
                        .send(Err(McpError::connect(format!("{MAX_PENDING} calls are under way already"))));
                    return;
                }
                if self.outbound.try_send(body).is_err() {
                    let _ = reply.send(Err(McpError::connect("it does not read what it is sent")));
                    return;
                }
                self.pending.insert(id, Pending { reply, on_progress });
            }
            Command::Cancel { id } => {
                if self.pending.remove(&id).is_some() {
                    let params =
                        RawObject::default().with("requestId", id).with("reason", "the caller went away");
                    let _ = self.outbound.try_send(wire::notification("notifications/cancelled", &params));
                }
            }
            Command::Send { body } => {
                let _ = self.outbound.try_send(body);
            }
        }
    }

    fn receive(&mut self, line: &[u8]) {
        if line.trim_ascii().is_empty() {
            return;
        }
        match wire::read(line) {
            Ok(Incoming::Response { id, outcome }) => match self.pending.remove(&id) {
                Some(pending) => {
                    let _ = pending.reply.send(outcome);
                }
                None => self.inbox.oddity(format!("an answer to request {id}, which nobody waits for")),
            },
            Ok(Incoming::Notification { method, params }) if method == "notifications/progress" => {
                if let Some(params) = params
                    && let Some(on_progress) = self.progress_of(&params)
                {
                    on_progress(&params);
                }
            }
            Ok(Incoming::Notification { method, params }) => {
                self.inbox.notification(&method, params.as_ref());
            }
            Ok(Incoming::Request { id, method, params }) => {
                let outcome = self.inbox.request(&method, params.as_ref());
                let _ = self.outbound.try_send(wire::answer(id, &outcome));
            }
            Err(NotAMessage::Noise) => {
                let text: String = String::from_utf8_lossy(line).chars().take(200).collect();
                self.inbox.oddity(format!("a line on stdout that is no message: {text}"));
            }
            Err(NotAMessage::Odd { id, detail }) => self.misread(id, detail),
        }
    }

    fn progress_of(&self, params: &RawJson) -> Option<&OnProgress> {
        let token = progress_token(params)?;
        self.pending.get(&token)?.on_progress.as_ref()
    }

    /// An answer that cannot be read fails the call it belongs to; with one call under way that is plain enough.
    fn misread(&mut self, id: Option<u64>, detail: String) {
        let sole = (self.pending.len() == 1).then(|| self.pending.keys().next().copied()).flatten();
        let owner = id.filter(|id| self.pending.contains_key(id)).or(sole);
        match owner.and_then(|id| self.pending.remove(&id)) {
            Some(pending) => {
                let _ = pending.reply.send(Err(McpError::unreadable(detail)));
            }
            None => self.inbox.oddity(format!("a message that cannot be read: {detail}")),
        }
    }
}

/// The call that a progress notification is about: its token is our request id.
pub(crate) fn progress_token(params: &RawJson) -> Option<u64> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Token {
        progress_token: u64,
    }
    params.decode::<Token>().ok().map(|token| token.progress_token)
}

fn why_ended(status: Option<ExitStatus>) -> String {
    match status {
        Some(status) => match status.code() {
            Some(code) => format!("its process ended with exit code {code}"),
            None => format!("its process was ended by {status}"),
        },
        None => "it closed its output".to_owned(),
    }
}

async fn write(mut stdin: ChildStdin, mut lines: mpsc::Receiver<String>, failed: oneshot::Sender<String>) {
    while let Some(mut line) = lines.recv().await {
        line.push('\n');
        let written = tokio::time::timeout(WRITE_DEADLINE, async {
            stdin.write_all(line.as_bytes()).await?;
            stdin.flush().await
        });
        let failure = match written.await {
            Ok(Ok(())) => continue,
            Ok(Err(error)) => format!("it does not take any input: {error}"),
            Err(_) => format!("it did not read its input for {} s", WRITE_DEADLINE.as_secs()),
        };
        // A child that has just died is better described by its exit status, which the reader sees at once.
        tokio::time::sleep(STATUS_PATIENCE).await;
        let _ = failed.send(failure);
        return;
    }
}

async fn collect(mut stderr: ChildStderr, ring: StderrRing, drained: oneshot::Sender<()>) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
        ring.push(&buffer[..count]);
    }
    let _ = drained.send(());
}
