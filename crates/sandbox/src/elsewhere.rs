//! Systems other than Linux: only a clean environment and a private folder. All other protections are reported as
//! missing.

use std::path::Path;
use std::process::{Command, ExitStatus};

use crate::environment;
use crate::error::SandboxError;
use crate::policy::{Isolation, SandboxPolicy};
use crate::protection::{MissingProtection, Protection};
use crate::stop_reason::StopReason;
use crate::support::SandboxSupport;

/// The protections that work on every system.
const PRESENT: [Protection; 2] = [Protection::CleanEnvironment, Protection::PrivateTemporary];

/// Returns the protections that this system supports.
pub fn support() -> SandboxSupport {
    let absent = Protection::ALL.into_iter().filter(|protection| !PRESENT.contains(protection));
    let system = std::env::consts::OS;
    let english = format!("only on Linux; this is {system}");
    let chinese = format!("仅限 Linux；此系统为 {system}");
    let missing: Vec<MissingProtection> = absent
        .map(|protection| MissingProtection::new(protection, english.as_str(), chinese.as_str()))
        .collect();
    let builtin =
        missing.iter().filter(|entry| entry.protection != Protection::Bubblewrap).cloned().collect();
    SandboxSupport {
        builtin,
        bubblewrap: missing,
        auto: Isolation::Builtin,
        bubblewrap_program: None,
        landlock: 0,
        mount_namespace: false,
    }
}

/// Always `false`: there is no guard process on this system.
pub fn run_guard_if_requested() -> bool {
    false
}

/// Always an error: this system has no filter of system calls.
pub fn restrict_to_computation() -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// Does nothing: there is no guard process on this system.
pub fn stop_guard() {}

/// Gives `command` a clean environment and a private folder, if the policy allows all other protections to be missing.
pub fn confine(policy: &SandboxPolicy, command: &mut Command) -> Result<Confinement, SandboxError> {
    let support = support();
    let missing = support.missing(policy.isolation).iter();
    let refused: Vec<MissingProtection> =
        missing.filter(|entry| !policy.allow_missing.contains(&entry.protection)).cloned().collect();
    if !refused.is_empty() {
        return Err(SandboxError::Missing(refused));
    }
    let temporary = tempfile::Builder::new().prefix("toolhub-").tempdir();
    let temporary =
        temporary.map_err(|source| SandboxError::Temporary { path: std::env::temp_dir(), source })?;
    environment::clean(command, policy, temporary.path());
    if command.get_current_dir().is_none() {
        command.current_dir(temporary.path());
    }
    Ok(Confinement { temporary })
}

/// The private folder of a process.
#[derive(Debug)]
pub struct Confinement {
    temporary: tempfile::TempDir,
}

impl Confinement {
    /// Call this after the process has been spawned. Does nothing on this system.
    pub fn started(&mut self, _pid: u32) {}

    /// Its path.
    pub fn temporary(&self) -> &Path {
        self.temporary.path()
    }

    /// Always `None`: nothing on this system stops the process.
    pub fn verdict(&self, _status: ExitStatus, _stderr_tail: &str) -> Option<StopReason> {
        None
    }

    /// Does nothing: descendants are not tracked on this system.
    pub fn end_rest(&self) {}

    /// Removes the private folder.
    pub fn finish(self) {}
}
