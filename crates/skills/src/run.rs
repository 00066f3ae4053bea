//! Runs a script of a skill: sandboxed, with the arguments on stdin and bounded output. Dropping the future kills the
//! script and all its descendants.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Child;
use toolhub_core::lang::LocalizedText;
use toolhub_core::skill_jobs::{SkillExit, SkillRunError};
use toolhub_sandbox::{Confinement, SandboxError, SandboxPolicy, StopReason, confine};

use crate::fields::is_name;

/// Maximum size of stdout, in bytes.
pub(crate) const MAX_OUTPUT_BYTES: usize = 1 << 20;
/// Maximum size of stderr, in bytes; more ends the run.
const MAX_STDERR_BYTES: usize = 16 << 20;
/// How many trailing bytes of stderr are kept.
const STDERR_TAIL_BYTES: usize = 8 << 10;
/// How long descendants may keep stdout open after the script has exited.
const EXIT_GRACE: Duration = Duration::from_millis(500);

/// A script run.
#[derive(Debug)]
pub(crate) struct SandboxJob {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    /// The working directory.
    pub(crate) folder: PathBuf,
    pub(crate) policy: SandboxPolicy,
    /// The name of the skill, if the script belongs to one.
    pub(crate) skill: Option<String>,
    /// Written to stdin.
    pub(crate) input: Vec<u8>,
}

/// A job whose sandbox is prepared.
pub(crate) struct ConfinedJob {
    program: PathBuf,
    command: Command,
    confinement: Confinement,
    skill: Option<String>,
    input: Vec<u8>,
}

/// A job that runs. Dropping it kills the process and all its descendants.
pub(crate) struct RunningJob {
    running: RunningScript,
    skill: Option<String>,
    input: Vec<u8>,
}

/// A child process that is killed on drop.
struct RunningScript {
    child: Child,
    confinement: Option<Confinement>,
}

impl Drop for RunningScript {
    fn drop(&mut self) {
        end_group(&mut self.child);
        if let Some(confinement) = self.confinement.take() {
            confinement.finish();
        }
    }
}

/// Kills a process and its process group.
fn end_group(child: &mut Child) {
    #[cfg(unix)]
    if let Some(pid) = child.id().and_then(|pid| rustix::process::Pid::from_raw(pid.cast_signed())) {
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    }
    let _ = child.start_kill();
}

/// Runs a job to its end.
pub(crate) async fn run(job: SandboxJob) -> Result<SkillExit, SkillRunError> {
    let running = job.confine().and_then(ConfinedJob::start).map_err(SkillRunError::NotStarted)?;
    running.finish().await
}

impl SandboxJob {
    /// Prepares the sandbox. Starts nothing.
    pub(crate) fn confine(self) -> Result<ConfinedJob, LocalizedText> {
        let Self { program, arguments, folder, policy, skill, input } = self;
        let mut command = Command::new(&program);
        command.args(&arguments).current_dir(&folder);
        let confinement = confine(&policy, &mut command).map_err(|error| refused(&error))?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(ConfinedJob { program, command, confinement, skill, input })
    }
}

impl ConfinedJob {
    /// Starts the process.
    pub(crate) fn start(self) -> Result<RunningJob, LocalizedText> {
        let Self { program, command, mut confinement, skill, input } = self;
        let mut command = tokio::process::Command::from(command);
        command.kill_on_drop(true);
        let child = command.spawn().map_err(|error| unstarted(&program, &error))?;
        if let Some(pid) = child.id() {
            confinement.started(pid);
        }
        Ok(RunningJob { running: RunningScript { child, confinement: Some(confinement) }, skill, input })
    }
}

impl RunningJob {
    /// Writes the input, and waits for the end of the process.
    pub(crate) async fn finish(self) -> Result<SkillExit, SkillRunError> {
        let Self { running, skill, input } = self;
        finish(running, skill.as_deref(), &input).await
    }
}

async fn finish(
    mut running: RunningScript,
    skill: Option<&str>,
    input: &[u8],
) -> Result<SkillExit, SkillRunError> {
    let (stdin, stdout, stderr) =
        (running.child.stdin.take(), running.child.stdout.take(), running.child.stderr.take());
    let feed = async {
        if let Some(mut stdin) = stdin {
            // An error means that the script does not read its arguments.
            let _ = stdin.write_all(input).await;
            let _ = stdin.shutdown().await;
        }
    };
    let mut output = Vec::new();
    let mut stderr_text = Vec::new();
    let mut overflow = Overflow { output: false, stderr_text: false };
    let status = {
        let read_streams = async {
            let read_stdout = read_stdout(stdout, &mut output, &mut overflow.output);
            let read_stderr = read_stderr(stderr, &mut stderr_text, &mut overflow.stderr_text);
            tokio::join!(feed, read_stdout, read_stderr);
        };
        tokio::pin!(read_streams);
        let mut listening = true;
        loop {
            tokio::select! {
                () = &mut read_streams, if listening => {
                    listening = false;
                }
                status = running.child.wait() => {
                    if listening {
                        // A descendant may keep stdout open indefinitely; it is killed with the confinement.
                        let _ = tokio::time::timeout(EXIT_GRACE, &mut read_streams).await;
                    }
                    break Some(status);
                }
            }
            if !listening {
                break None;
            }
        }
    };
    if overflow.output || overflow.stderr_text {
        return Err(output_too_large(&overflow));
    }
    let status = match status {
        Some(status) => status,
        None => running.child.wait().await,
    };
    let status = status.map_err(|error| SkillRunError::Lost(lost(&error)))?;
    let stderr_text = tail(&stderr_text);
    let stopped =
        running.confinement.as_ref().and_then(|confinement| confinement.verdict(status, &stderr_text));
    let stopped = stopped.map(|stop| explained(&stop, skill));
    Ok(SkillExit {
        success: status.success(),
        exit_reason: exit_reason(status),
        output,
        stderr_text,
        stopped,
    })
}

/// Explains why the script was stopped, and which grant would allow the operation.
fn explained(stop: &StopReason, skill: Option<&str>) -> LocalizedText {
    let paths = |key: &str, path: &Option<PathBuf>| {
        let path = path.as_ref().map_or_else(|| "…".to_owned(), |path| path.display().to_string());
        format!("{key} = [{path:?}]")
    };
    let grant = match stop {
        StopReason::File(path) => Some(paths("read", path)),
        StopReason::ReadOnly(path) => Some(paths("write", path)),
        StopReason::Network => Some("network = true".to_owned()),
        _ => None,
    };
    let Some((grant, skill)) = grant.zip(skill) else {
        return LocalizedText::new(stop.english(), stop.chinese());
    };
    let table = if is_name(skill) { skill.to_owned() } else { format!("{skill:?}") };
    LocalizedText::new(
        format!("{}, with `{grant}` below `[skills.grants.{table}]`", stop.english()),
        format!("{}（在 `[skills.grants.{table}]` 下写 `{grant}`）", stop.chinese()),
    )
}

/// Which streams exceeded their limit.
#[derive(Debug)]
struct Overflow {
    output: bool,
    stderr_text: bool,
}

/// Reads stdout to its end or limit.
async fn read_stdout(
    stream: Option<impl AsyncRead + Unpin>,
    into: &mut Vec<u8>,
    output_too_large: &mut bool,
) {
    let Some(mut stream) = stream else { return };
    let mut some = vec![0; 64 << 10];
    while let Ok(many) = stream.read(&mut some).await {
        if many == 0 {
            return;
        }
        into.extend_from_slice(some.get(..many).unwrap_or_default());
        if into.len() > MAX_OUTPUT_BYTES {
            *output_too_large = true;
            return;
        }
    }
}

/// Reads stderr to its end or limit, and keeps the last bytes.
async fn read_stderr(
    stream: Option<impl AsyncRead + Unpin>,
    into: &mut Vec<u8>,
    output_too_large: &mut bool,
) {
    let Some(mut stream) = stream else { return };
    let mut some = vec![0; 16 << 10];
    let mut all = 0;
    while let Ok(many) = stream.read(&mut some).await {
        if many == 0 {
            return;
        }
        all += many;
        into.extend_from_slice(some.get(..many).unwrap_or_default());
        if into.len() > 2 * STDERR_TAIL_BYTES {
            into.drain(..into.len() - STDERR_TAIL_BYTES);
        }
        if all > MAX_STDERR_BYTES {
            *output_too_large = true;
            return;
        }
    }
}

fn tail(bytes: &[u8]) -> String {
    let start = bytes.len().saturating_sub(STDERR_TAIL_BYTES);
    String::from_utf8_lossy(bytes.get(start..).unwrap_or_default()).into_owned()
}

fn output_too_large(overflow: &Overflow) -> SkillRunError {
    let (en, zh, limit) = match overflow.output {
        true => ("answered", "输出", MAX_OUTPUT_BYTES),
        false => ("wrote to its standard error", "向标准错误写入", MAX_STDERR_BYTES),
    };
    let limit = limit >> 20;
    SkillRunError::OutputTooLarge(LocalizedText::new(
        format!("the script {en} more than {limit} MiB and was stopped: let it write to a file, or say less"),
        format!("脚本{zh}超过 {limit} MiB，已被停止：请改为写入文件，或减少输出"),
    ))
}

fn refused(error: &SandboxError) -> LocalizedText {
    LocalizedText::new(format!("not run: {error}"), format!("未执行：{}", error.chinese()))
}

fn unstarted(program: &Path, error: &std::io::Error) -> LocalizedText {
    let program = program.display();
    LocalizedText::new(
        format!(
            "`{program}` could not be started: {error}; see whether it and its interpreter are there and may be run"
        ),
        format!("无法启动 `{program}`：{error}；请检查它和它的解释器是否存在且可执行"),
    )
}

fn lost(error: &std::io::Error) -> LocalizedText {
    LocalizedText::new(
        format!("how the script ended is not known: {error}"),
        format!("不知道脚本如何结束：{error}"),
    )
}

fn exit_reason(status: std::process::ExitStatus) -> LocalizedText {
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt as _;
        if let Some(signal) = status.signal() {
            return LocalizedText::new(
                format!("it was ended by signal {signal}"),
                format!("它被信号 {signal} 终止"),
            );
        }
    }
    match status.code() {
        Some(code) => {
            LocalizedText::new(format!("it ended with exit code {code}"), format!("退出码为 {code}"))
        }
        None => LocalizedText::new("it ended in an unknown way", "结束方式未知"),
    }
}
