//! The process tree of a child on systems without process groups. On Windows, `taskkill` ends it. A process that outlives its
//! parent no longer belongs to the tree and is not ended.

use std::process::Stdio;

use tokio::process::{Child, Command};

/// The root of a process tree, until its exit is observed.
#[derive(Debug)]
pub(super) struct ProcessGroup(Option<u32>);

impl ProcessGroup {
    pub(super) fn prepare(_: &mut Command) {}

    /// The process tree of a child.
    pub(super) fn of(child: &Child) -> Self {
        Self(child.id())
    }

    /// Kills the tree: console programs have no equivalent of SIGTERM, and their stdin is closed already. The root is still
    /// running, so its PID has not been reused.
    pub(super) fn terminate(&self) {
        let Some(root) = self.0.filter(|_| cfg!(windows)) else { return };
        let system = std::env::var_os("SYSTEMROOT").unwrap_or_else(|| r"C:\Windows".into());
        let mut taskkill =
            std::process::Command::new(std::path::Path::new(&system).join(r"System32\taskkill.exe"));
        taskkill.args(["/T", "/F", "/PID"]).arg(root.to_string());
        taskkill.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // Fails if the tree has exited already, which is fine.
        let _ = taskkill.status();
    }

    /// Does nothing: the root may have exited, and its PID may have been reused.
    pub(super) fn kill(&self) {}

    pub(super) fn disarm(&mut self) {
        self.0 = None;
    }
}
