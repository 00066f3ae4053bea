//! stdio transport: one task owns the child and reads its lines; `mux` matches responses to requests.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, BufReader};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolhub_client_config::StdioSpec;
use toolhub_core::lang::LocalizedText;
use toolhub_core::{BoxFuture, RawJson};
use toolhub_mcp_wire::McpError;
use toolhub_mcp_wire::jsonrpc::{self, on_one_line};

use super::lines::{LineReader, MAX_LINE_BYTES, ReadLine};
use super::mux::{Mux, MuxHandle};
use super::pipe_writer::{PipeWriter, WriteError};
use super::process::{ChildProcess, StopMode};
use super::{OutgoingRequest, ServerMessageHandler, StderrRing, Transport};
use crate::config::PermittedSpec;

/// How long the child may leave its stdin unread.
const STDIN_WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long to wait for the exit status of a child that has closed its stdout.
const EXIT_STATUS_TIMEOUT: Duration = Duration::from_millis(500);

/// The transport to a child process.
#[derive(Debug)]
pub(crate) struct Stdio {
    handle: MuxHandle<Arc<PipeWriter<ChildStdin>>>,
    pub(crate) stderr: StderrRing,
}

impl Stdio {
    /// Starts the child; `tasks` owns its background tasks. Dropping the transport terminates the child, without a grace period
    /// once `killed` is cancelled.
    pub(crate) fn start(
        spec: &PermittedSpec<StdioSpec>,
        inbox: Arc<dyn ServerMessageHandler>,
        tasks: &TaskTracker,
        killed: &CancellationToken,
    ) -> Result<Self, McpError> {
        #[cfg(target_os = "linux")]
        super::sweep::sweep_once(tasks);
        let mut process = ChildProcess::start(spec)?;
        let stderr = StderrRing::default();
        let pipes = (process.child.stdin.take(), process.child.stdout.take(), process.child.stderr.take());
        let (Some(stdin), Some(stdout), Some(errors)) = pipes else {
            return Err(McpError::connect(LocalizedText::new(
                "its pipes could not be opened",
                "无法打开它的管道",
            )));
        };
        let pipe_writer = Arc::new(PipeWriter::new(stdin));
        let (handle, mux) = MuxHandle::new(Arc::clone(&pipe_writer), inbox);
        let (failed, write_failure) = oneshot::channel();
        let (drained, stderr_drained) = oneshot::channel();
        tasks.spawn(write(pipe_writer, failed));
        tasks.spawn(collect(errors, stderr.clone(), drained, spec.log_file.clone()));
        let lines = LineReader::new(BufReader::with_capacity(64 << 10, stdout), MAX_LINE_BYTES);
        let actor = Actor { lines, mux, write_failure };
        let teardown = Teardown { process, stderr: stderr.clone(), stderr_drained, killed: killed.clone() };
        tasks.spawn(actor.run(teardown));
        Ok(Self { handle, stderr })
    }

    fn closed_error(&self) -> McpError {
        McpError::Connect {
            cause: LocalizedText::new("its process has ended", "服务器进程已退出"),
            stderr: self.stderr.tail(),
            permanent: false,
        }
    }
}

impl Transport for Stdio {
    fn request<'a>(&'a self, mut request: OutgoingRequest<'a>) -> BoxFuture<'a, Result<RawJson, McpError>> {
        request.body = on_one_line(request.body);
        self.handle.request(request, || self.closed_error())
    }

    fn notify(&self, body: String) -> BoxFuture<'_, Result<(), McpError>> {
        Box::pin(std::future::ready(self.handle.notify(body, || self.closed_error())))
    }

    fn is_open(&self) -> bool {
        self.handle.is_open()
    }
}

struct Actor {
    lines: LineReader<BufReader<ChildStdout>>,
    mux: Mux<Arc<PipeWriter<ChildStdin>>>,
    write_failure: oneshot::Receiver<LocalizedText>,
}

struct Teardown {
    process: ChildProcess,
    stderr: StderrRing,
    stderr_drained: oneshot::Receiver<()>,
    killed: CancellationToken,
}

/// The reason why the reader task ends.
enum End {
    /// The transport was dropped.
    HandleDropped,
    /// The child closed its stdout.
    Closed,
    /// The child does not read its stdin.
    NotReading(LocalizedText),
}

impl Actor {
    async fn run(mut self, mut teardown: Teardown) {
        let mut has_output = false;
        let handle_dropped = self.mux.handle_dropped();
        let handle_dropped = handle_dropped.cancelled();
        tokio::pin!(handle_dropped);
        let end = loop {
            tokio::select! {
                () = &mut handle_dropped => break End::HandleDropped,
                line = self.lines.next() => match line {
                    ReadLine::Whole(line) => {
                        has_output = true;
                        // Lines that are not messages are added to the stderr log: they show why the program is not a working
                        // server.
                        if let Some(noise) = self.mux.receive(&line.into()) {
                            teardown.stderr.push(format!("(on stdout) {noise}\n").as_bytes());
                        }
                    }
                    ReadLine::TooLong(start) => {
                        let detail = format!("a line of more than {} MiB", MAX_LINE_BYTES >> 20);
                        self.mux.fail_malformed(jsonrpc::extract_id(&start), detail);
                    }
                    ReadLine::End => break End::Closed,
                },
                Ok(failure) = &mut self.write_failure => break End::NotReading(failure),
            }
        };
        self.mux.end();
        if !matches!(end, End::HandleDropped) {
            let status = tokio::time::timeout(EXIT_STATUS_TIMEOUT, teardown.process.child.wait()).await;
            let _ = tokio::time::timeout(EXIT_STATUS_TIMEOUT, &mut teardown.stderr_drained).await;
            let status = status.ok().and_then(Result::ok);
            let cause = match end {
                End::NotReading(failure) => failure,
                _ => exit_cause(status),
            };
            let stderr = teardown.stderr.tail();
            let cause = teardown.process.explain(cause, status, &stderr.join("\n"));
            let error = McpError::Lost { cause, stderr, exit: status.and_then(|status| status.code()) };
            self.mux.fail_all(&error);
        }
        // After the queued messages are written.
        self.mux.sink().close();
        drop(self);
        let mode = if has_output { StopMode::Graceful } else { StopMode::Fast };
        tokio::select! {
            biased;
            // Dropping the process kills it.
            () = teardown.killed.cancelled() => {}
            _ = teardown.process.stop(mode) => {}
        }
    }
}

fn exit_cause(status: Option<ExitStatus>) -> LocalizedText {
    match status {
        Some(status) => match status.code() {
            Some(code) => LocalizedText::new(
                format!("its process ended with exit code {code}"),
                format!("服务器进程已退出（退出码 {code}）"),
            ),
            None => LocalizedText::new(
                format!("its process was ended by {status}"),
                format!("服务器进程被终止：{status}"),
            ),
        },
        None => LocalizedText::new("it closed its output", "它关闭了输出"),
    }
}

/// Writes the bytes that the child does not accept immediately, until its stdin is closed.
async fn write(pipe_writer: Arc<PipeWriter<ChildStdin>>, failed: oneshot::Sender<LocalizedText>) {
    let failure = match pipe_writer.drive(STDIN_WRITE_TIMEOUT).await {
        Ok(()) => return,
        Err(WriteError::Broken(error)) => LocalizedText::new(
            format!("it does not take any input: {error}"),
            format!("它不接收输入：{error}"),
        ),
        Err(WriteError::NotReading) => {
            let seconds = STDIN_WRITE_TIMEOUT.as_secs();
            LocalizedText::new(
                format!("it did not read its input for {seconds} s"),
                format!("它有 {seconds} 秒没有读取输入"),
            )
        }
    };
    // The exit status describes a crashed child better, and the reader observes it immediately.
    tokio::time::sleep(EXIT_STATUS_TIMEOUT).await;
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
        let _ = tokio::task::spawn_blocking(move || ring.save(&file)).await;
    }
}
