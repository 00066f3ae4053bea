//! Selects the interpreter of a script: by its shebang line, whether or not the file is executable; otherwise by its
//! file extension.

use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use toolhub_core::lang::LocalizedText;
use toolhub_core::path_outside;
use toolhub_sandbox::{ProgramRefusal, SandboxProgram};

use crate::file_set::is_executable;

/// Maximum length of a shebang line, in bytes; operating systems read less.
const MAX_SHEBANG_BYTES: u64 = 4 << 10;

/// How a script is run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Interpreter {
    /// By the configured Python interpreter.
    Python,
    /// By this program, with these arguments before the path of the script.
    Program(PathBuf, Vec<OsString>),
    /// As an executable.
    Executable,
}

/// Why a script cannot be run, and the correction.
#[derive(Debug)]
pub(crate) enum ScriptError {
    /// Neither shebang line nor extension determines an interpreter.
    NoInterpreter(LocalizedText, LocalizedText),
    /// The interpreter is not installed.
    Missing(LocalizedText, LocalizedText),
    /// The interpreter is not allowed.
    Refused(LocalizedText, LocalizedText),
}

/// Why the shebang line yields no interpreter.
enum InterpreterError {
    Missing(String),
    Refused(String, ProgramRefusal),
}

impl ScriptError {
    /// Reason and correction in one sentence.
    pub(crate) fn text(&self) -> LocalizedText {
        use toolhub_core::lang::{Lang, Localize as _};
        let (Self::NoInterpreter(problem, remedy)
        | Self::Missing(problem, remedy)
        | Self::Refused(problem, remedy)) = self;
        let (en, zh) = (Lang::En, Lang::Zh);
        LocalizedText::new(
            format!("{}: {}", problem.localize(en), remedy.localize(en)),
            format!("{}：{}", problem.localize(zh), remedy.localize(zh)),
        )
    }
}

/// Determines how a script is run.
pub(crate) fn of(file: &Path) -> Result<Interpreter, ScriptError> {
    let file_name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if let Some(line) = first_line(file) {
        return from_shebang(&line).map_err(|why| not_found(&file_name, why));
    }
    let end = file.extension().and_then(|end| end.to_str()).unwrap_or_default();
    match end {
        "py" => Ok(Interpreter::Python),
        "sh" => Ok(Interpreter::Program("/bin/sh".into(), Vec::new())),
        "js" | "mjs" | "cjs" => match on_path("node") {
            Some(node) => Ok(Interpreter::Program(node, Vec::new())),
            None => Err(ScriptError::Missing(
                LocalizedText::new("there is no `node` to run it with", "没有 `node`"),
                LocalizedText::new("install Node.js", "请安装 Node.js"),
            )),
        },
        _ if std::fs::metadata(file).is_ok_and(|found| is_executable(&found)) => Ok(Interpreter::Executable),
        _ => Err(ScriptError::NoInterpreter(
            LocalizedText::new(format!("`{file_name}` may not be run"), format!("`{file_name}` 不可执行")),
            LocalizedText::new(
                "name who runs it in its first line (`#!/bin/bash`), or end its name in .py, .sh or .js",
                "请在首行指明解释器（`#!/bin/bash`），或以 .py、.sh、.js 结尾命名",
            ),
        )),
    }
}

/// Returns the shebang line without `#!`, if any.
fn first_line(file: &Path) -> Option<String> {
    let mut start = Vec::new();
    std::fs::File::open(file).ok()?.take(MAX_SHEBANG_BYTES).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line).trim().to_owned();
    (!line.is_empty()).then_some(line)
}

/// Resolves a shebang line.
fn from_shebang(line: &str) -> Result<Interpreter, InterpreterError> {
    let (program, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    if base(program) != "env" {
        // As in the kernel, everything after the program is one argument.
        let words = Some(rest).filter(|rest| !rest.is_empty()).map(Into::into).into_iter().collect();
        return found(program, words);
    }
    let mut words = rest.split_whitespace().peekable();
    // With and without `-S`, each word is a separate argument.
    words.next_if(|word| matches!(*word, "-S" | "--split-string"));
    match words.next() {
        None => Err(InterpreterError::Missing("env".to_owned())),
        // Other options and variable assignments are passed to `env` itself.
        Some(first) if first.starts_with('-') || first.contains('=') => {
            found(program, std::iter::once(first).chain(words).map(Into::into).collect())
        }
        Some(first) => found(first, words.map(Into::into).collect()),
    }
}

fn found(program: &str, words: Vec<OsString>) -> Result<Interpreter, InterpreterError> {
    // A `python3` on the path may be a wrapper script that leads out of the sandbox, and the user may have configured
    // another interpreter.
    if is_python(base(program)) {
        return Ok(Interpreter::Python);
    }
    let path = match program.contains('/') {
        true => {
            let path = PathBuf::from(program);
            SandboxProgram::check_name(&path)
                .map_err(|why| InterpreterError::Refused(program.to_owned(), why))?;
            Some(path).filter(|path| path.is_file())
        }
        false => on_path(program),
    };
    path.map(|path| Interpreter::Program(path, words))
        .ok_or_else(|| InterpreterError::Missing(program.to_owned()))
}

fn base(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Matches `python`, `python3` and `python3.12`, but not `python2`.
fn is_python(name: &str) -> bool {
    let Some(version) = name.strip_prefix("python") else { return false };
    version.is_empty() || version == "3" || version.starts_with("3.")
}

fn not_found(script: &str, why: InterpreterError) -> ScriptError {
    let program = match why {
        InterpreterError::Missing(program) => program,
        InterpreterError::Refused(program, refusal) => {
            return ScriptError::Refused(
                LocalizedText::new(
                    format!(
                        "the first line of `{script}` names `{program}`, which is not used as an interpreter"
                    ),
                    format!("`{script}` 的首行指明 `{program}`，不能用作解释器"),
                ),
                LocalizedText::new(refusal.english(), refusal.chinese()),
            );
        }
    };
    ScriptError::Missing(
        LocalizedText::new(
            format!("the first line of `{script}` names `{program}`, which is not on this machine"),
            format!("`{script}` 的首行指明的 `{program}` 不在这台机器上"),
        ),
        LocalizedText::new("install it, or correct the line", "请安装它，或改正首行"),
    )
}

/// Searches `PATH` for an executable of this name.
pub(crate) fn on_path(program: &str) -> Option<PathBuf> {
    on_path_outside(program, None)
}

/// Searches `PATH`, without the folders inside `excluded`, for an executable of this name.
pub(crate) fn on_path_outside(program: &str, excluded: Option<&Path>) -> Option<PathBuf> {
    let runs = |file: &PathBuf| std::fs::metadata(file).is_ok_and(|at| at.is_file() && is_executable(&at));
    path_folders(excluded).into_iter().map(|folder| folder.join(program)).find(runs)
}

/// Returns the folders of `PATH`, without relative ones (they depend on the current folder, which may be a project's)
/// and those with `..`, and without those inside `excluded`, an untrusted project.
pub(crate) fn path_folders(excluded: Option<&Path>) -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = excluded.map_or(path.clone(), |project| path_outside(&path, project));
    std::env::split_paths(&path).filter(|folder| SandboxProgram::check_name(folder).is_ok()).collect()
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    fn interpreter_for(name: &str, text: &str) -> Result<Interpreter, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        use toolhub_core::lang::{Lang, Localize as _};
        of(&file).map_err(|why| why.text().localize(Lang::En))
    }

    #[test]
    fn selects_interpreter_by_shebang_or_extension() {
        let program = |path: &str, words: &[&str]| {
            Ok(Interpreter::Program(path.into(), words.iter().map(|word| OsString::from(*word)).collect()))
        };
        let sh = on_path("sh").unwrap();
        let sh = sh.to_str().unwrap();
        for (name, text, expect) in [
            ("a.sh", "echo", program("/bin/sh", &[])),
            ("a.sh", "#!/usr/bin/env\tsh\necho", program(sh, &[])),
            ("a.py", "#!/bin/sh -e -u\n", program("/bin/sh", &["-e -u"])),
            ("a", "#! /bin/sh\r\necho", program("/bin/sh", &[])),
            ("a.js", "#!/usr/bin/env -S sh -e -u\n", program(sh, &["-e", "-u"])),
            ("a.sh", "#!/usr/bin/env A=1 sh\n", program("/usr/bin/env", &["A=1", "sh"])),
            ("a.sh", "#!\necho", program("/bin/sh", &[])),
            ("a.sh", "#!/usr/bin/env python3\n", Ok(Interpreter::Python)),
            ("a", "#!/usr/local/bin/python3.12 -u\n", Ok(Interpreter::Python)),
            ("a.py", "print()", Ok(Interpreter::Python)),
        ] {
            assert_eq!(interpreter_for(name, text), expect, "{name} {text}");
        }
        for (name, text, expect) in [
            ("a.sh", "#!/usr/bin/env no-such-shell\n", "the first line of `a.sh` names `no-such-shell`"),
            ("a.sh", "#!/no/such/bash\n", "names `/no/such/bash`, which is not on this machine: install it"),
            ("a.py", "#!/usr/bin/env\n", "names `env`"),
            (
                "a.sh",
                "#!/tmp/../bin/sh\n",
                "names `/tmp/../bin/sh`, which is not used as an interpreter: its path contains `..`",
            ),
            ("a.sh", "#!/usr/bin/env /tmp/../bin/sh\n", "its path contains `..`"),
            ("a.sh", "#!/usr/bin/env -S /tmp/../bin/sh -e\n", "its path contains `..`"),
            ("a.sh", "#!bin/sh\n", "its path is relative: write the absolute path"),
            ("a.sh", "#!./sh\n", "its path is relative"),
            ("a.sh", "#!/proc/self/root/bin/sh\n", "`/proc`, `/sys` and `/dev` hold no interpreters"),
            ("a.sh", "#!/dev/fd/3\n", "`/proc`, `/sys` and `/dev` hold no interpreters"),
            ("a", "echo", "`a` may not be run: name who runs it in its first line"),
        ] {
            let error = interpreter_for(name, text).unwrap_err();
            assert!(error.contains(expect), "{error}");
        }
    }
}
