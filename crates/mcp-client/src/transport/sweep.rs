//! Kills child processes of a hub that was killed. They are found by an environment variable at the next start.

use std::path::Path;
use std::sync::OnceLock;

use rustix::process::{Pid, Signal, kill_process};
use tokio_util::task::TaskTracker;
use toolhub_core::HUB_MARK_VARIABLE;

/// The mark for this hub's children; `None` if `/proc` does not provide the values.
pub(crate) fn hub_mark() -> Option<&'static str> {
    static MARK: OnceLock<Option<String>> = OnceLock::new();
    let mark = MARK.get_or_init(|| {
        let pid = std::process::id();
        let process = RecordedProcess::read(pid)?;
        Some(format!("{pid}:{}:{}", process.started, process.session))
    });
    mark.as_deref()
}

static DONE: OnceLock<()> = OnceLock::new();

/// Searches for such children once per process, in a background task.
pub(crate) fn sweep_once(tasks: &TaskTracker) {
    if DONE.set(()).is_ok() {
        tasks.spawn_blocking(sweep);
    }
}

/// Searches now, if not done yet.
pub(crate) fn sweep_now() {
    if DONE.set(()).is_ok() {
        sweep();
    }
}

struct RecordedProcess {
    started: u64,
    session: u32,
}

impl RecordedProcess {
    /// Parses `/proc/PID/stat`. The process name may contain anything, so the fields after the last `)` are used.
    fn read(pid: u32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        Some(Self { session: fields.get(3)?.parse().ok()?, started: fields.get(19)?.parse().ok()? })
    }
}

fn sweep() {
    let Ok(folder) = std::fs::read_dir("/proc") else { return };
    let pids = folder.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    for pid in pids.filter(|pid| is_orphan(*pid)) {
        if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// Whether a process is the child of a hub that no longer runs. A process with a session of its own is a daemon and is kept.
fn is_orphan(pid: u32) -> bool {
    let Some(hub_mark) = process_mark(pid) else { return false };
    let mut parts = hub_mark.split(':').map(str::parse::<u64>);
    let (Some(Ok(hub)), Some(Ok(started)), Some(Ok(session))) = (parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let alive = u32::try_from(hub)
        .ok()
        .and_then(RecordedProcess::read)
        .is_some_and(|process| process.started == started);
    !alive && RecordedProcess::read(pid).is_some_and(|process| u64::from(process.session) == session)
}

fn process_mark(pid: u32) -> Option<String> {
    let environment = std::fs::read(Path::new("/proc").join(pid.to_string()).join("environ")).ok()?;
    let prefix = format!("{HUB_MARK_VARIABLE}=");
    let variable =
        environment.split(|byte| *byte == 0).find_map(|variable| variable.strip_prefix(prefix.as_bytes()));
    String::from_utf8(variable?.to_vec()).ok()
}
