//! Runs small programs in the real sandbox and returns their exit status, output and verdict.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use tempfile::TempDir;
use toolhub_sandbox::{Confinement, Isolation, SandboxPolicy, SandboxProgram, StopReason, confine};

/// Both isolation methods; every escape is tried with each.
pub(crate) const ISOLATIONS: [Isolation; 2] = [Isolation::Builtin, Isolation::Bubblewrap];

/// The result of a run.
#[derive(Debug)]
pub(crate) struct RunResult {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) stop: Option<StopReason>,
}

impl RunResult {
    /// Asserts that the program failed and that the verdict is `expect`.
    pub(crate) fn assert_stopped_by(&self, expect: &StopReason) {
        assert!(!self.status.success(), "{self:#?}");
        assert_eq!(self.stop.as_ref(), Some(expect), "{self:#?}");
    }

    /// Asserts that the program succeeded and printed `expect`.
    pub(crate) fn printed(&self, expect: &str) {
        assert!(self.status.success() && self.stop.is_none(), "{self:#?}");
        assert_eq!(self.stdout.trim(), expect, "{self:#?}");
    }

    /// Asserts that no escape succeeded. Programs print `tried` for each attempt and `escaped` for each that succeeds.
    pub(crate) fn assert_no_escape(&self) {
        assert!(!self.stdout.contains("escaped"), "{self:#?}");
        assert!(self.stdout.contains("tried"), "it did not get as far as trying: {self:#?}");
    }
}

/// Runs `command` under `policy`, and ends all its remaining processes.
pub(crate) fn run(policy: &SandboxPolicy, command: Command) -> RunResult {
    let (result, confinement) = run_and_keep(policy, command);
    confinement.finish();
    result
}

/// Runs `command` and returns the confinement, so that the caller decides when it is finished.
pub(crate) fn run_and_keep(policy: &SandboxPolicy, mut command: Command) -> (RunResult, Confinement) {
    let mut confinement = confine(policy, &mut command).unwrap();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    confinement.started(child.id());
    let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let stdout = std::thread::spawn(|| std::io::read_to_string(stdout).unwrap());
    let stderr = std::thread::spawn(|| std::io::read_to_string(stderr).unwrap());
    let status = child.wait().unwrap();
    confinement.end_rest();
    let (stdout, stderr) = (stdout.join().unwrap(), stderr.join().unwrap());
    let stop = confinement.verdict(status, &stderr);
    (RunResult { status, stdout, stderr, stop }, confinement)
}

/// The command that runs the Python program `code` with `arguments`.
pub(crate) fn python(code: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(interpreter("python3"));
    command.args(["-I", "-c", code]).args(arguments);
    command
}

/// The default policy with `isolation`, and Python, Node and Bash as programs.
pub(crate) fn policy(isolation: Isolation) -> SandboxPolicy {
    let programs = ["python3", "node", "bash"].map(|name| SandboxProgram::of_owner(interpreter(name)));
    SandboxPolicy { programs: programs.into(), isolation, ..SandboxPolicy::default() }
}

/// The path of an interpreter. `/usr/bin` comes first, because version managers install wrapper scripts in `PATH`.
pub(crate) fn interpreter(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = [PathBuf::from("/usr/bin")].into_iter().chain(std::env::split_paths(&path));
    let mut places = folders.map(|folder| folder.join(name));
    places.find(|path| path.is_file()).unwrap_or_else(|| panic!("`{name}` is not installed"))
}

/// A folder that is not granted, with a secret in it.
pub(crate) struct Outside {
    pub(crate) folder: TempDir,
    pub(crate) secret: PathBuf,
}

pub(crate) const SECRET: &str = "the-secret-that-must-stay";

impl Outside {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let secret = folder.path().join("secret.txt");
        fs::write(&secret, SECRET).unwrap();
        Self { folder, secret }
    }

    pub(crate) fn path(&self) -> &str {
        self.folder.path().to_str().unwrap()
    }

    /// Asserts that nothing was added, removed or changed.
    pub(crate) fn assert_untouched(&self) {
        let names: Vec<_> =
            fs::read_dir(&self.folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["secret.txt"]);
        assert_eq!(fs::read_to_string(&self.secret).unwrap(), SECRET);
        let mode =
            std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&self.secret).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o644);
    }
}

/// A process outside the sandbox, as the target of attacks.
pub(crate) struct Victim(std::process::Child);

impl Victim {
    pub(crate) fn new() -> Self {
        Self(Command::new("sleep").arg("300").env("VICTIM_SECRET", SECRET).spawn().unwrap())
    }

    pub(crate) fn pid(&self) -> String {
        self.0.id().to_string()
    }

    pub(crate) fn assert_unharmed(&mut self) {
        let exit_status = self.0.try_wait().unwrap();
        assert!(
            exit_status.is_none(),
            "ended by signal {:?}",
            exit_status.and_then(|status| status.signal())
        );
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap();
        assert!(status.contains("TracerPid:\t0") && !status.contains("State:\tT"), "{status}");
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A random word, to find the processes that have it on their command line.
pub(crate) fn token() -> String {
    format!("escape-{:016x}", fastrand::u64(..))
}

/// Running processes with `token` on their command line, as `/proc` paths.
pub(crate) fn processes_with(token: &str) -> Vec<String> {
    let pids = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let lines = pids.filter_map(|path| Some((fs::read(path.join("cmdline")).ok()?, path)));
    lines
        .filter(|(line, _)| String::from_utf8_lossy(line).contains(token))
        .filter(|(_, path)| is_running(path))
        .map(|(_, path)| path.display().to_string())
        .collect()
}

fn is_running(process: &Path) -> bool {
    let status = fs::read_to_string(process.join("status")).unwrap_or_default();
    !status.is_empty() && !status.contains("State:\tZ") && !status.contains("State:\tX")
}
