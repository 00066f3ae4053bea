//! One script host: a sandboxed child process with bounded lines in both directions. Dropping it kills it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use serde::Serialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use toolhub_core::lang::{Lang, Localize as _, LocalizedText};
use toolhub_core::script_host::{ScriptHostEnd, ScriptHostEndCause};
use toolhub_sandbox::{
    Confinement, Isolation, Protection, SandboxError, SandboxLimits, SandboxPolicy, SandboxProgram,
    StopReason, confine,
};

use crate::limits::ScriptLimits;
use crate::protocol::{self, FromHost};
use crate::violation::Violation;

/// Time for a new process until its first message.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// Time for the exit status after the streams were closed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
/// Bytes of stderr that are kept.
const STDERR_TAIL_BYTES: usize = 4 << 10;
/// Bytes per read.
const READ_BYTES: usize = 16 << 10;
/// Memory of the process beside the script's values: the program, its stack, and messages.
const OWN_MEMORY: u64 = 96 << 20;
/// CPU time beside that of the script. The host stops the script itself; this bound applies if it does not.
const OWN_CPU: Duration = Duration::from_secs(3);

/// `USER_HZ`, the unit of times in `/proc`: part of the interface of the kernel on all supported architectures.
#[cfg(target_os = "linux")]
const TICKS_PER_SECOND: u64 = 100;

/// The niceness of a host: the lowest priority, so that scripts that compute take only the time that the hub leaves. Many
/// hosts at a niceness between that and zero would still delay it.
#[cfg(target_os = "linux")]
const HOST_NICENESS: i32 = 19;

/// How script hosts are started.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// The absolute path of the program.
    pub program: PathBuf,
    /// Its arguments; usually [`protocol::COMMAND`].
    pub arguments: Vec<OsString>,
    /// The isolation method. `Auto` prefers the builtin isolation, which starts faster: after its start a host can open
    /// no file in either.
    pub isolation: Isolation,
    /// Protections that the user allows to be missing. Without them a host is not started where the system lacks one.
    pub allow_missing: Vec<Protection>,
    /// Folders with secrets, which no grant may contain.
    pub protected: Vec<PathBuf>,
}

impl HostConfig {
    /// This program as its own script host, with all protections.
    pub fn of_current_program() -> std::io::Result<Self> {
        Ok(Self {
            program: std::env::current_exe()?,
            arguments: vec![protocol::COMMAND.into()],
            isolation: Isolation::Auto,
            allow_missing: Vec::new(),
            protected: Vec::new(),
        })
    }

    fn policy(&self, limits: &ScriptLimits) -> SandboxPolicy {
        let isolation = match self.isolation {
            Isolation::Auto if toolhub_sandbox::support().builtin.is_empty() => Isolation::Builtin,
            isolation => isolation,
        };
        let answers = u64::try_from(limits.answer).unwrap_or(u64::MAX).saturating_mul(4);
        SandboxPolicy {
            programs: vec![SandboxProgram::of_owner(&self.program)],
            protected: self.protected.clone(),
            // The local time must not depend on the machine.
            environment: vec![("TZ".to_owned(), "UTC".to_owned())],
            limits: SandboxLimits {
                memory: limits.memory.saturating_add(OWN_MEMORY).saturating_add(answers),
                cpu: limits.cpu.saturating_add(OWN_CPU),
                processes: 4,
                open_files: 64,
                file_size: 1 << 20,
                disk: 1 << 20,
            },
            isolation,
            allow_missing: self.allow_missing.clone(),
            ..SandboxPolicy::default()
        }
    }
}

/// Why no host could be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    /// The sandbox refused.
    #[error("the script host was not started: {0}")]
    Sandbox(#[source] SandboxError),
    /// The program could not be executed.
    #[error("the script host `{}` could not be started", program.display())]
    Spawn {
        program: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// It did not say that it is ready.
    #[error("the script host did not start: {0}")]
    NotReady(LocalizedText),
}

impl StartError {
    pub(crate) fn text(&self) -> LocalizedText {
        match self {
            Self::Sandbox(error) => {
                LocalizedText::new(self.to_string(), format!("脚本宿主进程未启动：{}", error.chinese()))
            }
            Self::Spawn { program, source } => LocalizedText::new(
                format!("{self}: {source}"),
                format!("无法启动脚本宿主进程 `{}`：{source}", program.display()),
            ),
            Self::NotReady(text) => text.clone(),
        }
    }
}

/// What a host sent.
#[derive(Debug)]
pub(crate) enum HostEvent {
    /// One line.
    Line(Vec<u8>),
    /// Everything that was queued is written.
    Written,
    /// It sent a line that is too long.
    LineTooLong,
    /// Its stdout ended.
    Closed,
}

/// How a process ended.
#[derive(Debug)]
pub(crate) struct HostExit {
    /// Why the sandbox stopped it, if it did.
    pub(crate) stop_reason: Option<StopReason>,
    /// The exit code or signal.
    pub(crate) status: LocalizedText,
}

/// A running script host.
#[derive(Debug)]
pub(crate) struct HostProcess {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    stderr: Option<ChildStderr>,
    /// Bytes to write; those before `written` are written.
    outgoing: Vec<u8>,
    written: usize,
    /// Bytes that were read and not yet returned; no line break is before `searched`.
    incoming: Vec<u8>,
    searched: usize,
    stdout_buffer: Vec<u8>,
    stderr_buffer: Vec<u8>,
    stderr_tail: Vec<u8>,
    max_line: usize,
    confinement: Option<Confinement>,
}

impl HostExit {
    /// The same without the details of the sandbox.
    pub(crate) fn end(&self) -> ScriptHostEnd {
        let cause = match &self.stop_reason {
            Some(StopReason::Memory(_)) => ScriptHostEndCause::Memory,
            Some(StopReason::Cpu(_)) => ScriptHostEndCause::Cpu,
            _ => ScriptHostEndCause::Other,
        };
        let text = match &self.stop_reason {
            Some(reason) => LocalizedText::new(reason.english(), reason.chinese()),
            None => self.status.clone(),
        };
        ScriptHostEnd { cause, text }
    }
}

impl HostProcess {
    /// Starts a process. Blocks for some milliseconds; must be called within a runtime.
    pub(crate) fn start(config: &HostConfig, limits: &ScriptLimits) -> Result<Self, StartError> {
        let mut command = Command::new(&config.program);
        command.args(&config.arguments);
        let mut confinement = confine(&config.policy(limits), &mut command).map_err(StartError::Sandbox)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut command = tokio::process::Command::from(command);
        command.kill_on_drop(true);
        let failed = |source| StartError::Spawn { program: config.program.clone(), source };
        let mut child = command.spawn().map_err(failed)?;
        if let Some(pid) = child.id() {
            confinement.started(pid);
            lower_priority(pid);
        }
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let stdout = stdout.ok_or_else(|| failed(std::io::ErrorKind::BrokenPipe.into()))?;
        Ok(Self {
            child,
            stdin,
            stdout,
            stderr,
            outgoing: Vec::new(),
            written: 0,
            incoming: Vec::new(),
            searched: 0,
            stdout_buffer: vec![0; READ_BYTES],
            stderr_buffer: vec![0; STDERR_TAIL_BYTES],
            stderr_tail: Vec::new(),
            max_line: limits.host_line(),
            confinement: Some(confinement),
        })
    }

    /// Waits until the process is ready, and checks that it has dropped its permissions.
    pub(crate) async fn ready(&mut self, config: &HostConfig) -> Result<(), StartError> {
        let event = tokio::time::timeout(START_TIMEOUT, self.next()).await;
        let message = match event {
            Ok(HostEvent::Line(line)) => serde_json::from_slice::<FromHost>(&line).ok(),
            Ok(HostEvent::Closed) => {
                let exit = self.exit().await;
                return Err(StartError::NotReady(not_ready(&exit, &self.stderr_tail)));
            }
            Ok(HostEvent::LineTooLong | HostEvent::Written) | Err(_) => None,
        };
        let Some(FromHost::Ready(ready)) = message else {
            return Err(StartError::NotReady(LocalizedText::new(
                "the script host did not start in time, or is another program",
                "脚本宿主进程未及时启动，或不是 toolhub 程序",
            )));
        };
        if ready.version != protocol::VERSION {
            return Err(StartError::NotReady(LocalizedText::new(
                "the script host is another version of toolhub: restart the running hub",
                "脚本宿主进程是另一版本的 toolhub：请重启正在运行的 hub",
            )));
        }
        if !ready.restricted && !config.allow_missing.contains(&Protection::Seccomp) {
            return Err(StartError::NotReady(LocalizedText::new(
                "the script host could not drop its system calls, and `seccomp` is not allowed to be missing",
                "脚本宿主进程无法放弃系统调用权限，且未允许缺少 `seccomp`",
            )));
        }
        Ok(())
    }

    /// Waits until the process has the script that was sent. `false`: the process ended before.
    pub(crate) async fn started(&mut self) -> Result<bool, Violation> {
        let event = loop {
            match self.next().await {
                HostEvent::Written => {}
                event => break event,
            }
        };
        match event {
            HostEvent::Line(line) => match serde_json::from_slice(&line) {
                Ok(FromHost::Started(_)) => Ok(true),
                Ok(_) => Err(Violation::Unexpected),
                Err(_) => Err(Violation::Malformed),
            },
            HostEvent::LineTooLong => Err(Violation::LineTooLong),
            HostEvent::Closed | HostEvent::Written => Ok(false),
        }
    }

    /// Queues a message; `next` writes it.
    pub(crate) fn send(&mut self, message: &impl Serialize) -> Result<(), serde_json::Error> {
        match self.stdin.is_some() {
            true => protocol::append_line(&mut self.outgoing, message),
            false => Ok(()),
        }
    }

    /// Queues lines that are encoded already.
    pub(crate) fn send_lines(&mut self, lines: &[u8]) {
        if self.stdin.is_some() {
            self.outgoing.extend_from_slice(lines);
        }
    }

    /// CPU time that the process has used, by the system; `None` if it is not known.
    pub(crate) fn cpu_time(&self) -> Option<Duration> {
        self.child.id().and_then(cpu_time_of)
    }

    /// Whether the process may still read answers. It has ended otherwise, or soon will.
    pub(crate) fn accepts_answers(&self) -> bool {
        self.stdin.is_some()
    }

    /// Bytes that are queued.
    pub(crate) fn unsent(&self) -> usize {
        self.outgoing.len() - self.written
    }

    /// Writes what is queued until all of it is written or a line has arrived. Cancel-safe.
    pub(crate) async fn next(&mut self) -> HostEvent {
        self.next_if(true).await
    }

    /// As `next`; with `reads` unset no line is taken, so that the host blocks as soon as the pipe is full.
    pub(crate) async fn next_if(&mut self, reads: bool) -> HostEvent {
        loop {
            if let Some(line) = reads.then(|| self.take_line()).flatten() {
                return HostEvent::Line(line);
            }
            if reads && self.incoming.len() > self.max_line {
                return HostEvent::LineTooLong;
            }
            let Self { stdin, stdout, stderr, outgoing, written, stdout_buffer, stderr_buffer, .. } = self;
            let write = async {
                match stdin {
                    Some(stdin) => stdin.write(outgoing.get(*written..).unwrap_or_default()).await,
                    None => Ok(0),
                }
            };
            let read_stderr = async {
                match stderr {
                    Some(stderr) => stderr.read(stderr_buffer).await,
                    None => std::future::pending().await,
                }
            };
            let has_unsent = stdin_has_work(*written, outgoing);
            tokio::select! {
                // The host waits for what is queued. Writing comes first, since there is nothing to read before.
                biased;
                wrote = write, if has_unsent => {
                    self.note_written(wrote.unwrap_or(0));
                    if self.unsent() == 0 {
                        return HostEvent::Written;
                    }
                }
                read = stdout.read(stdout_buffer), if reads => match read {
                    Ok(0) | Err(_) => return HostEvent::Closed,
                    Ok(count) => self.incoming.extend_from_slice(self.stdout_buffer.get(..count).unwrap_or_default()),
                },
                read = read_stderr => self.note_stderr(read.unwrap_or(0)),
            }
        }
    }

    fn take_line(&mut self) -> Option<Vec<u8>> {
        let found = self.incoming.get(self.searched..)?.iter().position(|byte| *byte == b'\n');
        let Some(end) = found.map(|index| self.searched + index) else {
            self.searched = self.incoming.len();
            return None;
        };
        if end > self.max_line {
            return None;
        }
        let rest = self.incoming.split_off(end + 1);
        let mut line = std::mem::replace(&mut self.incoming, rest);
        line.pop();
        self.searched = 0;
        Some(line)
    }

    fn note_written(&mut self, count: usize) {
        self.written += count;
        // A process that no longer reads ends; that is noticed at its stdout.
        if count == 0 {
            self.stdin = None;
        }
        if count == 0 || self.written == self.outgoing.len() {
            self.outgoing.clear();
            // The buffer of a large answer is not kept.
            self.outgoing.shrink_to(READ_BYTES);
            self.written = 0;
        }
    }

    fn note_stderr(&mut self, count: usize) {
        if count == 0 {
            self.stderr = None;
            return;
        }
        self.stderr_tail.extend_from_slice(self.stderr_buffer.get(..count).unwrap_or_default());
        let excess = self.stderr_tail.len().saturating_sub(STDERR_TAIL_BYTES);
        self.stderr_tail.drain(..excess);
    }

    /// How the process ended, after its stdout was closed. A process that still runs is killed.
    pub(crate) async fn exit(&mut self) -> HostExit {
        let status = match tokio::time::timeout(EXIT_TIMEOUT, self.child.wait()).await {
            Ok(status) => status.ok(),
            Err(_) => {
                self.kill();
                self.child.wait().await.ok()
            }
        };
        if let Some(stderr) = &mut self.stderr {
            let _ = tokio::time::timeout(EXIT_TIMEOUT, stderr.read_to_end(&mut self.stderr_tail)).await;
        }
        let tail = String::from_utf8_lossy(&self.stderr_tail).into_owned();
        let stop_reason = status.and_then(|status| self.confinement.as_ref()?.verdict(status, &tail));
        HostExit { stop_reason, status: exit_text(status) }
    }

    fn kill(&mut self) {
        #[cfg(unix)]
        if let Some(pid) = self.child.id().and_then(|pid| rustix::process::Pid::from_raw(pid.cast_signed())) {
            let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        }
        let _ = self.child.start_kill();
    }
}

/// Scripts that compute must not slow down the hub, which serves all callers.
fn lower_priority(pid: u32) {
    #[cfg(target_os = "linux")]
    {
        let pid = rustix::process::Pid::from_raw(pid.cast_signed());
        let _ = rustix::process::setpriority_process(pid, HOST_NICENESS);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = pid;
}

fn stdin_has_work(written: usize, outgoing: &[u8]) -> bool {
    written < outgoing.len()
}

impl Drop for HostProcess {
    fn drop(&mut self) {
        self.kill();
        if let Some(confinement) = self.confinement.take() {
            confinement.finish();
        }
    }
}

#[cfg(target_os = "linux")]
fn cpu_time_of(pid: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before may contain spaces. Fields 14 and 15 of proc(5): user and system time, in ticks.
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks = |index| fields.split_ascii_whitespace().nth(index)?.parse::<u64>().ok();
    Some(Duration::from_millis((ticks(11)? + ticks(12)?).saturating_mul(1000 / TICKS_PER_SECOND)))
}

#[cfg(not(target_os = "linux"))]
fn cpu_time_of(_: u32) -> Option<Duration> {
    None
}

fn not_ready(exit: &HostExit, stderr_tail: &[u8]) -> LocalizedText {
    let tail = String::from_utf8_lossy(stderr_tail);
    let tail = tail.trim();
    let said = if tail.is_empty() { String::new() } else { format!(": {tail}") };
    let text = exit.end().text;
    let (en, zh) = (text.localize(Lang::En), text.localize(Lang::Zh));
    LocalizedText::new(
        format!("the script host ended before it was ready ({en}){said}"),
        format!("脚本宿主进程在就绪前结束（{zh}）{said}"),
    )
}

fn exit_text(status: Option<ExitStatus>) -> LocalizedText {
    #[cfg(unix)]
    if let Some(signal) = status.and_then(|status| std::os::unix::process::ExitStatusExt::signal(&status)) {
        let name = match signal {
            4 => " (SIGILL)",
            6 => " (SIGABRT)",
            7 => " (SIGBUS)",
            9 => " (SIGKILL)",
            11 => " (SIGSEGV)",
            31 => " (SIGSYS)",
            _ => "",
        };
        return LocalizedText::new(
            format!("ended by signal {signal}{name}"),
            format!("被信号 {signal}{name} 终止"),
        );
    }
    match status.and_then(|status| status.code()) {
        Some(code) => LocalizedText::new(format!("exit code {code}"), format!("退出码 {code}")),
        None => LocalizedText::new("exit status unknown", "退出状态未知"),
    }
}
