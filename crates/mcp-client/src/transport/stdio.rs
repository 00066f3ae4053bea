//! stdio transport: one task owns the child and reads its lines; `mux` matches responses to requests.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, BufReader};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;
use toolhub_client_config::StdioSpec;
use toolhub_core::lang::LocalizedText;
use toolhub_core::{BoxFuture, RawJson};
use toolhub_mcp_wire::McpError;
use toolhub_mcp_wire::wire::{self, on_one_line};

use super::lines::{Line, Lines, MAX_LINE_BYTES};
use super::mux::{Callers, Mux};
use super::pipe_writer::{PipeWriter, Stuck};
use super::process::{Manners, Process};
use super::{Inbox, OutgoingRequest, StderrRing, Transport};
use crate::config::Permitted;

/// How long the child may leave its stdin unread.
const WRITE_DEADLINE: Duration = Duration::from_secs(30);
/// How long to wait for the exit status of a child that has closed its stdout.
const STATUS_PATIENCE: Duration = Duration::from_millis(500);

/// The transport to a child process.
#[derive(Debug)]
pub(crate) struct Stdio {
    callers: Callers<Arc<PipeWriter<ChildStdin>>>,
    pub(crate) stderr: StderrRing,
}

impl Stdio {
    /// Starts the child; `tasks` owns its background tasks. Dropping the transport terminates the child.
    pub(crate) fn start(
        spec: &Permitted<StdioSpec>,
        inbox: Arc<dyn Inbox>,
        tasks: &TaskTracker,
    ) -> Result<Self, McpError> {
        #[cfg(target_os = "linux")]
        super::sweep::once(tasks);
        let mut process = Process::start(spec)?;
        let stderr = StderrRing::default();
        let pipes = (process.child.stdin.take(), process.child.stdout.take(), process.child.stderr.take());
        let (Some(stdin), Some(stdout), Some(errors)) = pipes else {
            return Err(McpError::connect(LocalizedText::new(
                "its pipes could not be opened",
                "无法打开它的管道",
            )));
        };
        let outbox = Arc::new(PipeWriter::new(stdin));
        let (callers, mux) = Callers::new(Arc::clone(&outbox), inbox);
        let (failed, write_failure) = oneshot::channel();
        let (drained, stderr_drained) = oneshot::channel();
        tasks.spawn(write(outbox, failed));
        tasks.spawn(collect(errors, stderr.clone(), drained, spec.log_file.clone()));
        let lines = Lines::new(BufReader::with_capacity(64 << 10, stdout), MAX_LINE_BYTES);
        let actor = Actor { lines, mux, write_failure };
        let ending = Ending { process, stderr: stderr.clone(), stderr_drained };
        tasks.spawn(actor.run(ending));
        Ok(Self { callers, stderr })
    }

    fn gone(&self) -> McpError {
        McpError::Connect {
            cause: LocalizedText::new("its process has ended", "它的进程已结束"),
            stderr: self.stderr.tail(),
            lasting: false,
        }
    }
}

impl Transport for Stdio {
    fn request<'a>(&'a self, mut request: OutgoingRequest<'a>) -> BoxFuture<'a, Result<RawJson, McpError>> {
        request.body = on_one_line(request.body);
        self.callers.request(request, || self.gone())
    }

    fn notify(&self, body: String) -> BoxFuture<'_, Result<(), McpError>> {
        Box::pin(std::future::ready(self.callers.notify(body, || self.gone())))
    }

    fn is_open(&self) -> bool {
        self.callers.is_open()
    }
}

struct Actor {
    lines: Lines<BufReader<ChildStdout>>,
    mux: Mux<Arc<PipeWriter<ChildStdin>>>,
    write_failure: oneshot::Receiver<LocalizedText>,
}

struct Ending {
    process: Process,
    stderr: StderrRing,
    stderr_drained: oneshot::Receiver<()>,
}

/// The reason why the reader task ends.
enum End {
    /// The transport was dropped.
    Unneeded,
    /// The child closed its stdout.
    Closed,
    /// The child does not read its stdin.
    Deaf(LocalizedText),
}

impl Actor {
    async fn run(mut self, mut ending: Ending) {
        let mut heard = false;
        let unneeded = self.mux.unneeded();
        let unneeded = unneeded.cancelled();
        tokio::pin!(unneeded);
        let end = loop {
            tokio::select! {
                () = &mut unneeded => break End::Unneeded,
                line = self.lines.next() => match line {
                    Line::Whole(line) => {
                        heard = true;
                        // Lines that are not messages are added to the stderr log: they show why the program is not a working
                        // server.
                        if let Some(noise) = self.mux.receive(&line.into()) {
                            ending.stderr.push(format!("(on stdout) {noise}\n").as_bytes());
                        }
                    }
                    Line::TooLong(start) => {
                        let detail = format!("a line of more than {} MiB", MAX_LINE_BYTES >> 20);
                        self.mux.misread(wire::guess_id(&start), detail);
                    }
                    Line::End => break End::Closed,
                },
                Ok(failure) = &mut self.write_failure => break End::Deaf(failure),
            }
        };
        self.mux.end();
        if !matches!(end, End::Unneeded) {
            let status = tokio::time::timeout(STATUS_PATIENCE, ending.process.child.wait()).await;
            let _ = tokio::time::timeout(STATUS_PATIENCE, &mut ending.stderr_drained).await;
            let status = status.ok().and_then(Result::ok);
            let cause = match end {
                End::Deaf(failure) => failure,
                _ => why_ended(status),
            };
            let stderr = ending.stderr.tail();
            let cause = ending.process.explain(cause, status, &stderr.join("\n"));
            let error = McpError::Lost { cause, stderr, exit: status.and_then(|status| status.code()) };
            self.mux.fail_all(&error);
        }
        // After the queued messages are written.
        self.mux.outlet().close();
        drop(self);
        ending.process.stop(if heard { Manners::Gentle } else { Manners::Brisk }).await;
    }
}

fn why_ended(status: Option<ExitStatus>) -> LocalizedText {
    match status {
        Some(status) => match status.code() {
            Some(code) => LocalizedText::new(
                format!("its process ended with exit code {code}"),
                format!("它的进程已结束，退出码 {code}"),
            ),
            None => LocalizedText::new(
                format!("its process was ended by {status}"),
                format!("它的进程被终止：{status}"),
            ),
        },
        None => LocalizedText::new("it closed its output", "它关闭了输出"),
    }
}

/// Writes the bytes that the child does not accept immediately, until its stdin is closed.
async fn write(outbox: Arc<PipeWriter<ChildStdin>>, failed: oneshot::Sender<LocalizedText>) {
    let failure = match outbox.drive(WRITE_DEADLINE).await {
        Ok(()) => return,
        Err(Stuck::Broken(error)) => LocalizedText::new(
            format!("it does not take any input: {error}"),
            format!("它不接收输入：{error}"),
        ),
        Err(Stuck::Deaf) => {
            let seconds = WRITE_DEADLINE.as_secs();
            LocalizedText::new(
                format!("it did not read its input for {seconds} s"),
                format!("它有 {seconds} 秒没有读取输入"),
            )
        }
    };
    // The exit status describes a crashed child better, and the reader observes it immediately.
    tokio::time::sleep(STATUS_PATIENCE).await;
    let _ = failed.send(failure);
}

async fn collect(
    mut stderr: ChildStderr,
    ring: StderrRing,
    drained: oneshot::Sender<()>,
    log_file: Option<PathBuf>,
) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
        ring.push(&buffer[..count]);
    }
    let _ = drained.send(());
    if let Some(file) = log_file {
        // A log that cannot be written is not an error.
        let _ = tokio::task::spawn_blocking(move || ring.keep(&file)).await;
    }
}
