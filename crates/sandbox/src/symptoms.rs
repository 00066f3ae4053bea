//! Derives the reason of a failure from stderr and the exit status. The kernel does not report denials to the parent:
//! only the messages of the program itself show what was denied.

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use crate::policy::{NetworkAccess, SandboxPolicy};
use crate::stop_reason::StopReason;

const MEMORY: &[&str] = &[
    "memoryerror",
    "cannot allocate memory",
    "out of memory",
    "enomem",
    "bad_alloc",
    "memory allocation of",
    "memory exhausted",
];
const PROCESSES: &[&str] = &[
    "resource temporarily unavailable",
    "eagain",
    "cannot fork",
    "can't start new thread",
    "unable to create thread",
    "retry: no child processes",
];
const OPEN_FILES: &[&str] = &["too many open files", "emfile"];
const FILE_SIZE: &[&str] = &["file too large", "efbig", "file size limit exceeded"];
const NETWORK: &[&str] = &[
    "network is unreachable",
    "enetunreach",
    "name resolution",
    "could not resolve",
    "eai_again",
    "name or service not known",
    "getaddrinfo",
];
const READ_ONLY: &[&str] = &["read-only file system", "erofs"];
const FILE: &[&str] = &["permission denied", "eacces", "errno 13]"];
/// Messages for paths that Bubblewrap hides because they are not granted.
const ABSENT: &[&str] = &["no such file or directory", "enoent"];
const CALL: &[&str] = &["operation not permitted", "eperm", "function not implemented", "enosys"];

/// The view of the file system of the process.
#[derive(Debug)]
pub(crate) struct View {
    /// The readable paths, as given and canonical.
    granted: Vec<PathBuf>,
    /// Whether other paths seem not to exist, instead of being denied.
    hides: bool,
}

impl View {
    pub(crate) fn new(granted: impl Iterator<Item = PathBuf>, hides: bool) -> Self {
        let both = granted.flat_map(|path| [path.canonicalize().ok(), Some(path)].into_iter().flatten());
        Self { granted: both.collect(), hides }
    }

    fn is_granted(&self, path: &Path) -> bool {
        self.granted.iter().any(|granted| path.starts_with(granted))
    }

    /// Returns the path that was hidden or denied: the given one, or its canonical form.
    fn denied_path(&self, path: PathBuf) -> Option<PathBuf> {
        if !self.is_granted(&path) {
            return Some(path);
        }
        path.canonicalize().ok().filter(|real| !self.is_granted(real))
    }

    /// Whether a path exists, or could be created, but is hidden from the process.
    fn conceals(&self, path: &Path) -> bool {
        self.hides && (path.symlink_metadata().is_ok() || path.parent().is_some_and(Path::is_dir))
    }
}

/// Returns the reason why a failed process was stopped, if it can be determined.
pub(crate) fn read(
    policy: &SandboxPolicy,
    view: &View,
    status: ExitStatus,
    words: &str,
) -> Option<StopReason> {
    if status.success() {
        return None;
    }
    let limits = &policy.limits;
    if let Some(signal) = signal(status) {
        match signal {
            libc::SIGXCPU => return Some(StopReason::Cpu(limits.cpu)),
            libc::SIGXFSZ => return Some(StopReason::FileSize(limits.file_size)),
            libc::SIGSYS => return Some(StopReason::Call),
            _ => {}
        }
    }
    // The last line is closest to the failure.
    words.lines().rev().find_map(|line| {
        let line_lower = line.to_lowercase();
        let mentions = |texts: &[&str]| texts.iter().any(|text| line_lower.contains(text));
        if mentions(MEMORY) {
            Some(StopReason::Memory(limits.memory))
        } else if mentions(OPEN_FILES) {
            Some(StopReason::OpenFiles(limits.open_files))
        } else if mentions(FILE_SIZE) {
            Some(StopReason::FileSize(limits.file_size))
        } else if policy.network == NetworkAccess::None && mentions(NETWORK) {
            Some(StopReason::Network)
        } else if mentions(PROCESSES) {
            Some(StopReason::Processes(limits.processes))
        } else if mentions(READ_ONLY) {
            Some(StopReason::ReadOnly(path_in(line)))
        } else if mentions(FILE) {
            let Some(path) = path_in(line) else { return Some(StopReason::File(None)) };
            match view.denied_path(path.clone()) {
                Some(denied_path) => Some(StopReason::File(Some(denied_path))),
                None => Some(StopReason::ReadOnly(Some(path))),
            }
        } else if mentions(ABSENT) {
            path_in(line)
                .filter(|path| view.conceals(path))
                .and_then(|path| view.denied_path(path))
                .map(|path| StopReason::File(Some(path)))
        } else if mentions(CALL) {
            Some(StopReason::Call)
        } else {
            None
        }
    })
}

/// Returns the last absolute path in a line; the first is often that of the program itself.
fn path_in(line: &str) -> Option<PathBuf> {
    let words = line.split(['\'', '"', '`', '‘', '’', ' ', '\t', '(', ')', ',', ';', '>', '<']);
    let paths = words.map(|word| word.trim_end_matches([':', '.', '!'])).filter(|word| word.starts_with('/'));
    paths.map(Path::new).map(Path::to_path_buf).next_back()
}

/// Returns the signal that ended the process, or that of its child as encoded by shells (128 + n).
fn signal(status: ExitStatus) -> Option<i32> {
    status.signal().or_else(|| status.code().filter(|code| *code > 128).map(|code| code - 128))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stderr_tail() {
        let policy = SandboxPolicy::default();
        let limits = policy.limits;
        let view = View::new(["/usr".into(), "/skill".into()].into_iter(), false);
        let exit = |code: i32| ExitStatus::from_raw(code << 8);
        let file = |path: &str| Some(StopReason::File(Some(path.into())));
        for (status, words, expect) in [
            (exit(0), "Permission denied", None),
            (exit(1), "", None),
            (exit(1), "ValueError: no such column", None),
            (exit(1), "PermissionError: [Errno 13] Permission denied: '/etc/shadow'", file("/etc/shadow")),
            (exit(1), "cat: /srv/x: Permission denied\n", file("/srv/x")),
            (
                exit(1),
                "/skill/run.sh: line 1: /skill/out: Permission denied",
                Some(StopReason::ReadOnly(Some("/skill/out".into()))),
            ),
            (
                exit(1),
                "OSError: [Errno 30] Read-only file system: '/usr/x'",
                Some(StopReason::ReadOnly(Some("/usr/x".into()))),
            ),
            (exit(1), "Error: EACCES: permission denied, open '/srv/.ssh/id'", file("/srv/.ssh/id")),
            (exit(1), "OSError: [Errno 101] Network is unreachable", Some(StopReason::Network)),
            (exit(6), "curl: (6) Could not resolve host: example.com", Some(StopReason::Network)),
            (exit(1), "MemoryError", Some(StopReason::Memory(limits.memory))),
            (
                exit(254),
                "bash: fork: Resource temporarily unavailable",
                Some(StopReason::Processes(limits.processes)),
            ),
            (exit(1), "PermissionError: [Errno 1] Operation not permitted", Some(StopReason::Call)),
            (ExitStatus::from_raw(24), "", Some(StopReason::Cpu(limits.cpu))),
            (exit(152), "", Some(StopReason::Cpu(limits.cpu))),
            (ExitStatus::from_raw(25), "", Some(StopReason::FileSize(limits.file_size))),
            (ExitStatus::from_raw(31), "", Some(StopReason::Call)),
            (ExitStatus::from_raw(9), "", None),
        ] {
            assert_eq!(read(&policy, &view, status, words), expect, "{words}");
        }
        let words = "cat: /etc/shells: No such file or directory";
        assert_eq!(read(&policy, &view, exit(1), words), None);
        let hiding = View { hides: true, ..view };
        assert_eq!(read(&policy, &hiding, exit(1), words), file("/etc/shells"));
        assert_eq!(read(&policy, &hiding, exit(1), "cat: /not/there: No such file or directory"), None);
        assert_eq!(read(&policy, &hiding, exit(1), "cat: /usr/x: No such file or directory"), None);
        let free = SandboxPolicy { network: NetworkAccess::All, ..SandboxPolicy::default() };
        assert_eq!(read(&free, &hiding, exit(1), "Network is unreachable"), None);
    }
}
