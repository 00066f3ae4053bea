//! Finds processes that outlive the program that started them, by an environment variable or by their working
//! directory.
use std::{
    fs,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

/// The environment variable that marks the processes of one run.
pub(super) const MARKER: &str = "TOOLHUB_PEERS_RUN";
/// Maximum time for processes to exit after their parent.
const GRACE: Duration = Duration::from_secs(2);
const BETWEEN_SCANS: Duration = Duration::from_millis(50);

/// Waits until no marked process is left or the grace period is over. Kills the remaining processes and returns their
/// command lines. Empty on systems without `/proc`.
pub(super) fn collect(mark: &str, folder: &Path) -> Vec<String> {
    let deadline = Instant::now() + GRACE;
    loop {
        let leftover = marked(mark, folder);
        if leftover.is_empty() || Instant::now() > deadline {
            return leftover.into_iter().map(Process::kill).collect();
        }
        thread::sleep(BETWEEN_SCANS);
    }
}

struct Process {
    pid: Pid,
    command_line: String,
}

impl Process {
    fn kill(self) -> String {
        // It may have exited in the meantime.
        let _ = kill_process(self.pid, Signal::KILL);
        self.command_line
    }
}

fn marked(mark: &str, folder: &Path) -> Vec<Process> {
    let variable = format!("{MARKER}={mark}").into_bytes();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
    processes.filter_map(|process| read(&process, &variable, folder)).collect()
}

fn read(process: &Path, variable: &[u8], folder: &Path) -> Option<Process> {
    let pid = Pid::from_raw(process.file_name()?.to_str()?.parse().ok()?)?;
    let environment = fs::read(process.join("environ")).unwrap_or_default();
    let has_variable = environment.split(|byte| *byte == 0).any(|entry| entry == variable);
    let works_inside = || {
        let cwd: Option<PathBuf> = fs::read_link(process.join("cwd")).ok();
        cwd.is_some_and(|cwd| cwd.starts_with(folder))
    };
    // A zombie has neither an environment nor a working directory.
    if !has_variable && !works_inside() {
        return None;
    }
    let words = fs::read(process.join("cmdline")).ok()?;
    let command_line = String::from_utf8_lossy(&words).replace('\0', " ");
    Some(Process { pid, command_line: command_line.trim_end().to_owned() })
}
