//! Running a script of a skill to its end: fenced in, fed with its arguments, heard within bounds. Whoever stops waiting
//! ends it, and all that it started.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Child;
use toolhub_core::lang::Text;
use toolhub_sandbox::{Confinement, Policy, SandboxError, Stop, confine};

use crate::fields::is_name;

/// The most that a script may answer.
pub(crate) const MOST_OUTPUT: usize = 1 << 20;
/// The most that it may complain; beyond that it complains without end.
const MOST_COMPLAINT: usize = 16 << 20;
/// How much of a complaint is kept: its end.
const KEPT_COMPLAINT: usize = 8 << 10;
/// How long what it started may keep its answer open once it has ended itself.
const LINGER: Duration = Duration::from_millis(500);

/// What is to be run.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    /// Where it runs.
    pub(crate) folder: PathBuf,
    pub(crate) policy: Policy,
    /// The skill whose script it is, if it is one.
    pub(crate) skill: Option<String>,
    /// What it is given.
    pub(crate) input: Vec<u8>,
}

/// What came of it, where it ended by itself.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) success: bool,
    /// How it ended, in words.
    pub(crate) how: Text,
    pub(crate) output: Vec<u8>,
    /// The end of what it complained of.
    pub(crate) complaint: String,
    /// Why the sandbox stopped it or held it back, if it did.
    pub(crate) stopped: Option<Text>,
}

/// Why nothing came of it.
#[derive(Debug)]
pub(crate) enum RunError {
    /// It was not started.
    NotStarted(Text),
    /// It answered more than it may.
    TooMuch(Text),
    /// It ran, and what became of it is not known.
    Lost(Text),
}

/// A child that is ended when nobody waits for it any more.
struct Running {
    child: Child,
    confinement: Option<Confinement>,
}

impl Drop for Running {
    fn drop(&mut self) {
        end_group(&mut self.child);
        if let Some(confinement) = self.confinement.take() {
            confinement.finish();
        }
    }
}

/// Ends a process and all of its group.
fn end_group(child: &mut Child) {
    #[cfg(unix)]
    if let Some(pid) = child.id().and_then(|pid| rustix::process::Pid::from_raw(pid.cast_signed())) {
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    }
    let _ = child.start_kill();
}

/// Runs it; `sending` is called when it has been started.
pub(crate) async fn run(job: Job, sending: impl FnOnce() + Send) -> Result<Ended, RunError> {
    let mut running = start(&job)?;
    sending();
    let (stdin, stdout, stderr) =
        (running.child.stdin.take(), running.child.stdout.take(), running.child.stderr.take());
    let feed = async {
        if let Some(mut stdin) = stdin {
            // Whoever does not read its arguments does not want them.
            let _ = stdin.write_all(&job.input).await;
            let _ = stdin.shutdown().await;
        }
    };
    let mut output = Vec::new();
    let mut complaint = Vec::new();
    let mut heard = Heard { output: false, complaint: false };
    let status = {
        let hear = async {
            let answers = answers(stdout, &mut output, &mut heard.output);
            let complains = complains(stderr, &mut complaint, &mut heard.complaint);
            tokio::join!(feed, answers, complains);
        };
        tokio::pin!(hear);
        let mut listening = true;
        loop {
            tokio::select! {
                () = &mut hear, if listening => {
                    listening = false;
                }
                status = running.child.wait() => {
                    if listening {
                        // What it left behind may hold its answer open for ever; it is ended with the confinement.
                        let _ = tokio::time::timeout(LINGER, &mut hear).await;
                    }
                    break Some(status);
                }
            }
            if !listening {
                break None;
            }
        }
    };
    if heard.output || heard.complaint {
        return Err(too_much(&heard));
    }
    let status = match status {
        Some(status) => status,
        None => running.child.wait().await,
    };
    let status = status.map_err(|error| RunError::Lost(lost(&error)))?;
    let complaint = tail(&complaint);
    let stopped =
        running.confinement.as_ref().and_then(|confinement| confinement.verdict(status, &complaint));
    let stopped = stopped.map(|stop| explained(&stop, job.skill.as_deref()));
    Ok(Ended { success: status.success(), how: how(status), output, complaint, stopped })
}

fn start(job: &Job) -> Result<Running, RunError> {
    let mut command = Command::new(&job.program);
    command.args(&job.arguments).current_dir(&job.folder);
    let mut confinement =
        confine(&job.policy, &mut command).map_err(|error| RunError::NotStarted(refused(&error)))?;
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut command = tokio::process::Command::from(command);
    command.kill_on_drop(true);
    let child = command.spawn().map_err(|error| RunError::NotStarted(unstarted(&job.program, &error)))?;
    if let Some(pid) = child.id() {
        confinement.started(pid);
    }
    Ok(Running { child, confinement: Some(confinement) })
}

/// Why it was stopped, and where its owner grants what it wanted.
fn explained(stop: &Stop, skill: Option<&str>) -> Text {
    let paths = |key: &str, path: &Option<PathBuf>| {
        let path = path.as_ref().map_or_else(|| "…".to_owned(), |path| path.display().to_string());
        format!("{key} = [{path:?}]")
    };
    let grant = match stop {
        Stop::File(path) => Some(paths("read", path)),
        Stop::ReadOnly(path) => Some(paths("write", path)),
        Stop::Network => Some("network = true".to_owned()),
        _ => None,
    };
    let Some((grant, skill)) = grant.zip(skill) else {
        return Text::new(stop.english(), stop.chinese());
    };
    let table = if is_name(skill) { skill.to_owned() } else { format!("{skill:?}") };
    Text::new(
        format!("{}, with `{grant}` below `[skills.grants.{table}]`", stop.english()),
        format!("{}（在 `[skills.grants.{table}]` 下写 `{grant}`）", stop.chinese()),
    )
}

/// Of what there was too much.
#[derive(Debug)]
struct Heard {
    output: bool,
    complaint: bool,
}

/// Reads an answer to its end; too much of it ends the reading.
async fn answers(stream: Option<impl AsyncRead + Unpin>, into: &mut Vec<u8>, too_much: &mut bool) {
    let Some(mut stream) = stream else { return };
    let mut some = vec![0; 64 << 10];
    while let Ok(many) = stream.read(&mut some).await {
        if many == 0 {
            return;
        }
        into.extend_from_slice(some.get(..many).unwrap_or_default());
        if into.len() > MOST_OUTPUT {
            *too_much = true;
            return;
        }
    }
}

/// Reads a complaint to its end, and keeps the end of it.
async fn complains(stream: Option<impl AsyncRead + Unpin>, into: &mut Vec<u8>, too_much: &mut bool) {
    let Some(mut stream) = stream else { return };
    let mut some = vec![0; 16 << 10];
    let mut all = 0;
    while let Ok(many) = stream.read(&mut some).await {
        if many == 0 {
            return;
        }
        all += many;
        into.extend_from_slice(some.get(..many).unwrap_or_default());
        if into.len() > 2 * KEPT_COMPLAINT {
            into.drain(..into.len() - KEPT_COMPLAINT);
        }
        if all > MOST_COMPLAINT {
            *too_much = true;
            return;
        }
    }
}

fn tail(bytes: &[u8]) -> String {
    let start = bytes.len().saturating_sub(KEPT_COMPLAINT);
    String::from_utf8_lossy(bytes.get(start..).unwrap_or_default()).into_owned()
}

fn too_much(heard: &Heard) -> RunError {
    let (en, zh, most) = match heard.output {
        true => ("answered", "输出", MOST_OUTPUT),
        false => ("wrote to its standard error", "向标准错误写入", MOST_COMPLAINT),
    };
    let most = most >> 20;
    RunError::TooMuch(Text::new(
        format!("the script {en} more than {most} MiB and was stopped: let it write to a file, or say less"),
        format!("脚本{zh}超过 {most} MiB，已被停止：请改为写入文件，或减少输出"),
    ))
}

fn refused(error: &SandboxError) -> Text {
    Text::new(format!("not run: {error}"), format!("未执行：{}", error.chinese()))
}

fn unstarted(program: &Path, error: &std::io::Error) -> Text {
    let program = program.display();
    Text::new(
        format!(
            "`{program}` could not be started: {error}; see whether it and its interpreter are there and may be run"
        ),
        format!("无法启动 `{program}`：{error}；请检查它和它的解释器是否存在且可执行"),
    )
}

fn lost(error: &std::io::Error) -> Text {
    Text::new(format!("how the script ended is not known: {error}"), format!("不知道脚本如何结束：{error}"))
}

fn how(status: std::process::ExitStatus) -> Text {
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt as _;
        if let Some(signal) = status.signal() {
            return Text::new(format!("it was ended by signal {signal}"), format!("它被信号 {signal} 终止"));
        }
    }
    match status.code() {
        Some(code) => Text::new(format!("it ended with exit code {code}"), format!("退出码为 {code}")),
        None => Text::new("it ended in an unknown way", "结束方式未知"),
    }
}
