//! Attacks by the path of an interpreter: the folders granted with an interpreter must not include a secret beside it.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use toolhub_sandbox::{Isolation, ProgramRefusal, SandboxError, SandboxPolicy, SandboxProgram, confine};

use crate::harness::{ISOLATIONS, Outside, SECRET, interpreter, run};

/// A folder whose layout the attacker chooses, with a secret in it.
struct Layout {
    folder: TempDir,
}

impl Layout {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("secret.txt"), SECRET).unwrap();
        Self { folder }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    fn folder(&self, name: &str) -> &Self {
        fs::create_dir_all(self.root().join(name)).unwrap();
        self
    }

    /// Copies `/bin/sh` to `name`.
    fn shell(&self, name: &str) -> PathBuf {
        let at = self.root().join(name);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        // Copied by `cp`: a descriptor open for writing in this process, or in a child forked by another test, causes `ETXTBSY`.
        assert!(Command::new("cp").arg("/bin/sh").arg(&at).status().unwrap().success());
        fs::set_permissions(&at, fs::Permissions::from_mode(0o755)).unwrap();
        at
    }

    fn secret(&self) -> PathBuf {
        self.root().join("secret.txt")
    }
}

fn policy(isolation: Isolation, program: &Path) -> SandboxPolicy {
    SandboxPolicy {
        programs: vec![SandboxProgram::of_script(program)],
        isolation,
        ..SandboxPolicy::default()
    }
}

fn refusal(program: &Path, protected: &[PathBuf]) -> ProgramRefusal {
    let policy = SandboxPolicy { protected: protected.to_vec(), ..policy(Isolation::Builtin, program) };
    match confine(&policy, &mut Command::new(program)) {
        Err(SandboxError::Program { refusal, path }) => {
            assert_eq!(path, program);
            refusal
        }
        other => panic!("{program:?}: {other:?}"),
    }
}

/// Checks that a script run by `program` as its interpreter cannot read `secret`.
fn cannot_read(program: &Path, secret: &Path) {
    for isolation in ISOLATIONS {
        let mut command = Command::new(program);
        command.args(["-c", "echo tried; cat \"$1\"", "sh"]).arg(secret);
        let result = run(&policy(isolation, program), command);
        // Bubblewrap makes a system program available at its canonical path only, so that it may not start from this path.
        let is_run = result.stdout.contains("tried") || isolation == Isolation::Bubblewrap;
        assert!(is_run, "it did not run: {result:#?}");
        assert!(
            !result.stdout.contains(SECRET) && !result.status.success(),
            "{program:?} reads {secret:?}: {result:#?}"
        );
    }
}

#[test]
fn rejects_parent_folders_relative_paths_and_kernel_files() {
    let layout = Layout::new();
    let shell = layout.shell("bin/sh");
    let dotted = layout.root().join("bin/../bin/sh");
    let name = shell.file_name().unwrap();
    for (path, expect) in [
        (PathBuf::from("/tmp/../bin/sh"), ProgramRefusal::ParentFolder),
        (dotted, ProgramRefusal::ParentFolder),
        (PathBuf::from("bin").join(name), ProgramRefusal::Relative),
        ("/proc/self/root/bin/sh".into(), ProgramRefusal::KernelFolder),
        ("/proc/self/exe".into(), ProgramRefusal::KernelFolder),
        ("/dev/fd/0".into(), ProgramRefusal::KernelFolder),
        (layout.root().join("bin"), ProgramRefusal::NotFile),
        (layout.secret(), ProgramRefusal::NotExecutable),
    ] {
        assert_eq!(refusal(&path, &[]), expect, "{path:?}");
    }
    assert!(matches!(refusal(&layout.root().join("bin/none"), &[]), ProgramRefusal::Missing(_)));
    // A symlink to `/proc` inside the path is refused as well.
    symlink("/proc/self", layout.root().join("self")).unwrap();
    let led = confine(
        &policy(Isolation::Builtin, &layout.root().join("self/root/etc/passwd")),
        &mut Command::new("/bin/sh"),
    );
    assert!(led.is_err(), "{led:?}");
}

#[test]
fn project_resembling_installation_keeps_secrets() {
    let layout = Layout::new();
    let shell = layout.folder("lib").folder("share").shell("bin/sh");
    fs::write(layout.root().join("pyvenv.cfg"), "home = /\n").unwrap();
    cannot_read(&shell, &layout.secret());
    // Files beside the folders of a recognised installation stay unreadable, too.
    fs::create_dir_all(layout.root().join("lib/python3.12/site-packages")).unwrap();
    cannot_read(&shell, &layout.secret());
    cannot_read(&shell, &layout.root().join("bin/../secret.txt"));
}

#[test]
fn symlinked_library_folder_grants_nothing() {
    let (layout, outside) = (Layout::new(), Outside::new());
    let shell = layout.folder("lib/python3.12/site-packages").shell("bin/sh");
    fs::write(layout.root().join("pyvenv.cfg"), "").unwrap();
    symlink("/", layout.root().join("share")).unwrap();
    symlink(outside.folder.path(), layout.root().join("libexec")).unwrap();
    cannot_read(&shell, &outside.secret);
    cannot_read(&shell, &layout.root().join("libexec/secret.txt"));
}

#[test]
fn symlink_in_interpreter_path_grants_nothing_more() {
    let (layout, outside) = (Layout::new(), Outside::new());
    symlink("/", layout.root().join("all")).unwrap();
    cannot_read(&layout.root().join("all/bin/sh"), &outside.secret);
    symlink("/bin", layout.root().join("bin")).unwrap();
    layout.folder("lib");
    cannot_read(&layout.root().join("bin/sh"), &layout.secret());
}

#[test]
fn rejects_interpreters_that_are_scripts_in_data_or_foreign() {
    let layout = Layout::new();
    let script = layout.root().join("deploy");
    fs::write(&script, format!("#!/bin/sh\nTOKEN={SECRET}\n")).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(refusal(&script, &[]), ProgramRefusal::NotNative);
    let shell = layout.shell("data/bin/sh");
    assert_eq!(refusal(&shell, &[layout.root().join("data")]), ProgramRefusal::Protected);
    // Also through a symlink from outside, and through a symlink to the data folder.
    symlink(&shell, layout.root().join("innocent")).unwrap();
    assert_eq!(
        refusal(&layout.root().join("innocent"), &[layout.root().join("data")]),
        ProgramRefusal::Protected
    );
    symlink("data", layout.root().join("configured")).unwrap();
    assert_eq!(refusal(&shell, &[layout.root().join("configured")]), ProgramRefusal::Protected);
    fs::set_permissions(&shell, fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(refusal(&shell, &[]), ProgramRefusal::Replaceable);
    for lang in [ProgramRefusal::NotNative.english(), ProgramRefusal::Protected.chinese()] {
        assert!(!lang.is_empty());
    }
}

#[test]
fn interpreter_outside_system_folders_works() {
    let layout = Layout::new();
    let shell = layout.shell("tools/sh");
    for isolation in ISOLATIONS {
        for program in [shell.as_path(), Path::new("/bin/sh"), Path::new("/usr/bin/env")] {
            let mut command = Command::new(program);
            match program.ends_with("env") {
                true => command.args(["sh", "-c", "echo works"]),
                false => command.args(["-c", "echo works"]),
            };
            run(&policy(isolation, program), command).printed("works");
        }
    }
}

/// A virtual environment of the installed Python, and a symlink to it as version managers create.
#[test]
fn virtual_environments_and_version_managers_work() {
    let layout = Layout::new();
    let (venv, link) = (layout.root().join("venv"), layout.root().join("current"));
    let made = Command::new(interpreter("python3")).args(["-m", "venv", "--without-pip"]).arg(&venv).status();
    assert!(made.unwrap().success());
    let site = fs::read_dir(venv.join("lib")).unwrap().next().unwrap().unwrap().path().join("site-packages");
    fs::write(site.join("own_module.py"), "answer = 42\n").unwrap();
    symlink("venv", &link).unwrap();
    let code = "import own_module, sys, json, ssl; print(own_module.answer, sys.prefix == sys.base_prefix)";
    let steal = "import sys; print(open(sys.argv[1]).read())";
    for isolation in ISOLATIONS {
        for root in [&venv, &link] {
            let python = root.join("bin/python3");
            let policy = SandboxPolicy {
                programs: vec![SandboxProgram::of_owner(&python)],
                isolation,
                ..SandboxPolicy::default()
            };
            let mut command = Command::new(&python);
            run(&policy, {
                command.args(["-c", code]);
                command
            })
            .printed("42 False");
            let mut command = Command::new(&python);
            command.args(["-c", steal]).arg(layout.secret());
            let result = run(&policy, command);
            assert!(!result.status.success() && !result.stdout.contains(SECRET), "{result:#?}");
        }
    }
}

/// Python reports a home folder as its prefix if there is a `pyvenv.cfg` in it.
#[test]
fn does_not_grant_wide_or_non_installation_prefixes() {
    let layout = Layout::new();
    let python = interpreter("python3");
    let home = std::env::home_dir().unwrap();
    for prefix in [layout.root(), home, "/".into(), "/etc".into(), "/tmp".into()] {
        let program = SandboxProgram { prefixes: vec![prefix], ..SandboxProgram::of_owner(&python) };
        for isolation in ISOLATIONS {
            let policy =
                SandboxPolicy { programs: vec![program.clone()], isolation, ..SandboxPolicy::default() };
            let mut command = Command::new(&python);
            command.args(["-I", "-c", "import sys; print(open(sys.argv[1]).read())"]).arg(layout.secret());
            let result = run(&policy, command);
            assert!(!result.status.success() && !result.stdout.contains(SECRET), "{result:#?}");
        }
    }
}
