//! Implements the sandbox interface of `toolhub_core` with `toolhub_sandbox`; these crates do not depend on each other.

use std::error::Error as _;
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, ExitStatus};

use toolhub_core::lang::LocalizedText;
use toolhub_core::{HUB_MARK_VARIABLE, ProcessSandbox, SandboxedProcess};
use toolhub_sandbox::{Confinement, SandboxError, SandboxPolicy, SandboxProgram, confine};

/// Sandboxes a server's process with the owner's policy.
#[derive(Debug)]
pub(crate) struct Sandbox(pub(crate) SandboxPolicy);

impl ProcessSandbox for Sandbox {
    fn enclose(&self, command: &mut Command) -> Result<Box<dyn SandboxedProcess>, LocalizedText> {
        // Servers that outlive their hub are found by this mark. Sandboxed processes have another mark, and need not identify
        // their hub.
        command.env_remove(HUB_MARK_VARIABLE);
        let mut policy = self.0.clone();
        policy.programs.extend(program(command));
        policy.read.extend(paths_in_arguments(command));
        let confinement = confine(&policy, command).map_err(|error| refusal(&error))?;
        Ok(Box::new(ConfinedProcess(confinement)))
    }
}

#[derive(Debug)]
struct ConfinedProcess(Confinement);

impl SandboxedProcess for ConfinedProcess {
    fn verdict(&self, status: ExitStatus, stderr_tail: &str) -> Option<LocalizedText> {
        let stop = self.0.verdict(status, stderr_tail)?;
        Some(LocalizedText::new(stop.english(), stop.chinese()))
    }
}

fn refusal(error: &SandboxError) -> LocalizedText {
    let cause = error.source().map(|cause| format!(" ({cause})")).unwrap_or_default();
    LocalizedText::new(
        format!("it was not started: {error}{cause}"),
        format!("没有启动它：{}", error.chinese()),
    )
}

/// Paths that the command line grants implicitly, besides the program: the working directory, and files among the arguments.
/// Folders among the arguments must be granted explicitly: they contain the data that the server works on.
fn paths_in_arguments(command: &Command) -> Vec<PathBuf> {
    let folder = command.get_current_dir();
    let resolve = |path: &OsStr| match folder {
        Some(folder) => Some(folder.join(path)),
        // Without a working directory the process starts in an empty one, so relative paths do not resolve.
        None => Path::new(path).is_absolute().then(|| PathBuf::from(path)),
    };
    let files = command.get_args().filter_map(resolve).filter(|path| path.is_file());
    files.chain(folder.map(Path::to_path_buf)).collect()
}

/// The program that the command resolves to; `None` if starting it will fail.
fn program(command: &Command) -> Option<SandboxProgram> {
    let name = Path::new(command.get_program());
    if name.components().count() > 1 {
        return without_parents(&std::path::absolute(name).ok()?).map(SandboxProgram::of_owner);
    }
    let path = command.get_envs().find(|(variable, _)| *variable == "PATH").and_then(|(_, value)| value)?;
    let mut folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    folders.find_map(|folder| without_parents(&folder.join(name))).map(SandboxProgram::of_owner)
}

/// The path of an existing file without `..`. Symbolic links in the file name are kept: a program locates its virtual environment
/// by its own path.
fn without_parents(file: &Path) -> Option<PathBuf> {
    let path = match file.components().any(|part| part == Component::ParentDir) {
        true => file.parent()?.canonicalize().ok()?.join(file.file_name()?),
        false => file.to_path_buf(),
    };
    path.is_file().then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_files_named_on_the_command_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, "").unwrap();
            path
        };
        let (server, tool) = (file("server.py"), file("tool"));
        std::fs::create_dir(folder.path().join("data")).unwrap();
        let mut command = Command::new("tool");
        command.env("PATH", folder.path()).arg(&server).args(["--port", "1", "server.py"]);
        command.arg(folder.path().join("data"));
        let granted = |command: &Command| {
            let mut granted: Vec<PathBuf> =
                paths_in_arguments(command).iter().map(|path| path.canonicalize().unwrap()).collect();
            granted.sort();
            granted.dedup();
            granted
        };
        let real = |path: &Path| path.canonicalize().unwrap();
        assert_eq!(granted(&command), [real(&server)]);
        assert_eq!(program(&command).unwrap().path, tool);
        command.current_dir(folder.path());
        assert_eq!(granted(&command), [real(folder.path()), real(&server)]);
    }
}
