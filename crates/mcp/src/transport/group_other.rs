//! A child and all that it started, on systems without process groups: Windows, where `taskkill` ends a tree of processes.
//! What outlives its parent is no part of the tree any more, and is not ended.

use std::process::Stdio;

use tokio::process::{Child, Command};

/// The root of a tree of processes, until it is known to have ended.
#[derive(Debug)]
pub(super) struct Group(Option<u32>);

impl Group {
    pub(super) fn prepare(_: &mut Command) {}

    /// The tree that a child is the root of.
    pub(super) fn of(child: &Child) -> Self {
        Self(child.id())
    }

    /// Ends the tree: there is no signal that would ask console programs to leave, and their input has been closed. The
    /// root still runs, so its number is not another's.
    pub(super) fn ask_to_leave(&self) {
        let Some(root) = self.0.filter(|_| cfg!(windows)) else { return };
        let system = std::env::var_os("SYSTEMROOT").unwrap_or_else(|| r"C:\Windows".into());
        let mut taskkill =
            std::process::Command::new(std::path::Path::new(&system).join(r"System32\taskkill.exe"));
        taskkill.args(["/T", "/F", "/PID"]).arg(root.to_string());
        taskkill.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // The tree may be gone already, which is what is wanted.
        let _ = taskkill.status();
    }

    /// Does nothing: the root may have ended, and its number may be another's.
    pub(super) fn kill(&self) {}

    pub(super) fn forget(&mut self) {
        self.0 = None;
    }
}
