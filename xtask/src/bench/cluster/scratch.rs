//! The temporary folder of a run, and the shell that removes it with all processes in it, also if this process is killed.
use std::{
    fs::{self, Permissions},
    io::{BufRead as _, BufReader},
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::{Context, Result, ensure};

use crate::run::program;

/// Waits for the end of its stdin. Then ends all processes whose working directory is in the folder, and removes the folder.
/// PostgreSQL gets SIGQUIT first, so that it releases its shared memory.
const GUARD: &str = r#"trap '' INT TERM HUP
    echo ready
    read -r _
    round=0
    while [ $round -lt 100 ]; do
        found=
        for process in /proc/[0-9]*; do
            directory=$(readlink "$process/cwd" 2>/dev/null) || continue
            case $directory in
                "$0/postgres"*) [ $round -lt 50 ] && signal=QUIT || signal=KILL ;;
                "$0"|"$0"/*) signal=KILL ;;
                *) continue ;;
            esac
            found=yes
            kill -$signal "${process#/proc/}" 2>/dev/null
        done
        [ -z "$found" ] && break
        round=$((round + 1))
        sleep 0.1
    done
    rm -rf "$0""#;

/// The folder in which all processes of a run work. Dropping it ends them and removes it.
pub(super) struct Scratch {
    folder: PathBuf,
    guard: Child,
}

impl Scratch {
    pub(super) fn create() -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("toolhub-bench-cluster-{}", std::process::id()));
        fs::create_dir(&folder).with_context(|| format!("`{}` cannot be created", folder.display()))?;
        // The account of PostgreSQL has a folder in it.
        fs::set_permissions(&folder, Permissions::from_mode(0o711))?;
        // As `/proc` shows it.
        let folder = fs::canonicalize(folder)?;
        let mut shell = program("sh");
        shell.args(["-c", GUARD]).arg(&folder).current_dir("/");
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        // Ctrl-C is for the group of this process.
        let mut guard = shell.process_group(0).spawn().context("`sh` does not start")?;
        let mut line = String::new();
        BufReader::new(guard.stdout.take().context("no stdout")?).read_line(&mut line)?;
        let scratch = Self { folder, guard };
        ensure!(line.trim() == "ready", "the shell that cleans up does not run");
        Ok(scratch)
    }

    pub(super) fn path(&self) -> &Path {
        &self.folder
    }

    /// A new folder in it.
    pub(super) fn folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.folder.join(name);
        fs::create_dir(&folder)?;
        Ok(folder)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}

/// A process that works in the folder. Dropping it kills it.
pub(super) struct Process(pub(super) Child);

impl Process {
    pub(super) fn spawn(command: &mut Command) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        command.spawn().map(Self).with_context(|| format!("`{name}` does not start"))
    }

    pub(super) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Ends it by SIGKILL.
    pub(super) fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn ends_the_processes_in_the_folder_and_removes_it() {
        let scratch = Scratch::create().unwrap();
        let inside = scratch.folder("inside").unwrap();
        let sleeping = |folder: &Path| program("sleep").arg("60").current_dir(folder).spawn().unwrap();
        let (mut child, mut other) = (sleeping(&inside), sleeping(Path::new("/")));
        drop(scratch);
        assert!(!inside.exists());
        assert!(!child.wait().unwrap().success());
        assert!(other.try_wait().unwrap().is_none(), "a process elsewhere was ended");
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
