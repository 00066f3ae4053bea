//! Finds the Python interpreter behind a command. The command runs outside the sandbox, so it inherits neither the
//! environment nor the current folder of this process: both may come from an untrusted project.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use toolhub_core::lang::LocalizedText;
use toolhub_sandbox::SandboxProgram;

use crate::interpreter;

/// Timeout of the query to the interpreter.
pub(super) const INTERPRETER_TIMEOUT: Duration = Duration::from_secs(20);

/// Working directory of an interpreter: version managers read files of the current folder, which may be untrusted.
const WORK_FOLDER: &str = "/";
const PROBE_CODE: &str = "import sys, json; print(json.dumps([sys.executable, sys.prefix, sys.base_prefix]))";

/// Runs the interpreter to get its real path: the command may be a wrapper script. Folders of `PATH` inside `excluded`, an untrusted
/// project, are not searched.
pub(super) async fn locate(
    requested: &str,
    excluded: Option<&Path>,
) -> Result<SandboxProgram, LocalizedText> {
    let none = |english: &str, chinese: &str| {
        LocalizedText::new(
            format!("there is no Python to run it with: `{requested}` {english}"),
            format!("没有可用的 Python：`{requested}` {chinese}"),
        )
    };
    let failed = |why: &str| none(why, why);
    let command = command_path(requested, excluded).map_err(|why| match why {
        CommandError::Missing => none(
            "is not installed: install it, or correct `[skills] python`",
            "未安装：请安装，或更正 `[skills] python`",
        ),
        CommandError::Relative => {
            none("is a relative path: write the absolute path", "是相对路径：请写绝对路径")
        }
    })?;
    let mut command = Command::new(command);
    command.args(["-I", "-c", PROBE_CODE]).stdin(Stdio::null()).kill_on_drop(true);
    command.env_clear().envs(variables(excluded)).current_dir(WORK_FOLDER);
    let answer = tokio::time::timeout(INTERPRETER_TIMEOUT, command.output()).await;
    let answer = answer
        .map_err(|_| none("did not answer", "没有回应"))?
        .map_err(|error| failed(&error.to_string()))?;
    let paths: [String; 3] = serde_json::from_slice(&answer.stdout)
        .map_err(|_| failed(String::from_utf8_lossy(&answer.stderr).trim()))?;
    let [program, prefix, base] = paths.map(PathBuf::from);
    // The configured path may contain `..`. Symbolic links are kept, because a virtual environment is found by them.
    let has_parents = program.components().any(|part| part == Component::ParentDir);
    let program = if has_parents { canonical_place(&program) } else { program };
    Ok(SandboxProgram { prefixes: vec![prefix, base], ..SandboxProgram::of_owner(program) })
}

/// Why a command cannot be started.
#[derive(Debug, PartialEq, Eq)]
enum CommandError {
    Missing,
    /// A relative path: it would resolve to another program in each folder.
    Relative,
}

/// Resolves a command to a path that does not depend on the current folder.
fn command_path(requested: &str, excluded: Option<&Path>) -> Result<PathBuf, CommandError> {
    let path = Path::new(requested);
    if path.is_absolute() {
        return Ok(path.to_owned());
    }
    if requested.contains(std::path::is_separator) {
        return Err(CommandError::Relative);
    }
    // Windows resolves commands with implicit file extensions.
    if cfg!(windows) {
        return Ok(path.to_owned());
    }
    interpreter::on_path_outside(requested, excluded).ok_or(CommandError::Missing)
}

/// The environment variables that version managers need: the same as for scripts, with the values of this process.
/// `PATH` excludes relative folders and those of an untrusted project.
fn variables(excluded: Option<&Path>) -> Vec<(&'static str, OsString)> {
    let names: &[&str] =
        if cfg!(windows) { &["LANG", "USERPROFILE", "SYSTEMROOT", "PATHEXT"] } else { &["LANG", "HOME"] };
    let own = names.iter().filter_map(|name| Some((*name, std::env::var_os(name)?)));
    let path = std::env::join_paths(interpreter::path_folders(excluded)).ok();
    own.chain(path.map(|path| ("PATH", path))).collect()
}

/// Canonicalizes the folder of a file, but not the file itself, which may be a symbolic link.
pub(super) fn canonical_place(file: &Path) -> PathBuf {
    let absolute = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let folder = absolute.parent().and_then(|folder| folder.canonicalize().ok());
    folder.zip(absolute.file_name()).map_or(absolute.clone(), |(folder, name)| folder.join(name))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn commands_do_not_depend_on_the_current_folder() {
        for relative in ["./python", "venv/bin/python", "../python", "python/"] {
            assert_eq!(command_path(relative, None), Err(CommandError::Relative), "{relative}");
        }
        assert_eq!(command_path("no-such-python", None), Err(CommandError::Missing));
        assert_eq!(command_path("/opt/python", None), Ok("/opt/python".into()));
        assert!(command_path("sh", None).unwrap().is_absolute());
        let path =
            variables(None).into_iter().find_map(|(name, value)| (name == "PATH").then_some(value)).unwrap();
        assert!(std::env::split_paths(&path).all(|folder| folder.is_absolute()));
        // A folder of `PATH` that lies in an untrusted project.
        let shell = command_path("sh", None).unwrap();
        assert_ne!(command_path("sh", shell.parent()), Ok(shell));
    }
}
