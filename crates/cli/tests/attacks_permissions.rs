//! Attacks on the data folder by other local users: modes, links and owners, with the real program.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use toolhub_testkit::scripted::Script;
use toolhub_testkit::{CommandLine, CommandOutput};

fn cli() -> CommandLine {
    let mut cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    let script = Script::legacy().set("stderr", ["a word"]).plain_tool("plain");
    cli.server("s", &script);
    cli
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

/// The entries below a folder that are accessible to other users.
fn open_to_others(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if mode(&path) & 0o077 != 0 {
            found.push(format!("{} {:o}", path.display(), mode(&path)));
        }
        if path.is_dir() {
            found.extend(open_to_others(&path));
        }
    }
    found
}

/// Runs the program with a permissive umask.
fn with_open_umask(mut command: Command) -> CommandOutput {
    let program = command.get_program().to_owned();
    let args: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg("umask 0; exec \"$0\" \"$@\"").arg(program).args(args);
    shell.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(folder) = command.get_current_dir() {
        shell.current_dir(folder);
    }
    command.stdin(std::process::Stdio::null());
    let output = shell.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    CommandOutput { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

#[test]
fn creates_private_files_under_any_umask() {
    let cli = cli();
    for args in [
        &["servers", "test"][..],
        &["call", "plain"],
        &["history"],
        &["call", "write_file", "path=x", "text=y"],
    ] {
        let ran = with_open_umask(cli.command(args));
        assert!(!ran.stderr.contains("tightened"), "{ran:?}");
        let home = cli.folder().join("home");
        assert_eq!(mode(&home), 0o700, "{ran:?}");
        assert_eq!(open_to_others(&home), [""; 0], "{args:?}");
        assert!(home.join("toolhub.db").is_file(), "{args:?}");
    }
}

#[test]
fn tightens_loose_file_modes_and_reports_it_once() {
    let cli = cli();
    assert_eq!(cli.run(&["call", "plain"]).code, Some(0));
    let home = cli.folder().join("home");
    fs::set_permissions(&home, Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(home.join("toolhub.db"), Permissions::from_mode(0o644)).unwrap();
    fs::create_dir_all(home.join("logs")).unwrap();
    fs::write(home.join("logs/s.stderr"), "x").unwrap();
    fs::set_permissions(home.join("logs"), Permissions::from_mode(0o777)).unwrap();
    let ran = cli.run(&["call", "plain"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("permissions of") && ran.stderr.contains("were tightened"), "{ran:?}");
    assert_eq!((mode(&home), open_to_others(&home)), (0o700, Vec::new()));
    let again = cli.run(&["call", "plain"]);
    assert!(again.code == Some(0) && !again.stderr.contains("tightened"), "{again:?}");
}

#[test]
fn keeps_mode_of_shared_directory_and_makes_own_files_private() {
    let cli = cli();
    let shared = cli.folder().join("project");
    fs::create_dir(&shared).unwrap();
    fs::write(shared.join("README.md"), "theirs").unwrap();
    fs::set_permissions(&shared, Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(shared.join("README.md"), Permissions::from_mode(0o644)).unwrap();
    let ran = cli.run(&["--home", "project", "call", "plain"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("holds other files and is open to other users (mode 0755)"), "{ran:?}");
    assert_eq!((mode(&shared), mode(&shared.join("README.md"))), (0o755, 0o644));
    assert_eq!(mode(&shared.join("toolhub.db")), 0o600);
}

#[test]
fn rejects_symlinks_in_place_of_own_files() {
    for (name, target) in [
        ("toolhub.db", "victim"),
        ("tokens.json", "victim"),
        ("running", "folder"),
        ("toolhub.db-wal", "victim"),
    ] {
        let cli = cli();
        let home = cli.folder().join("home");
        fs::create_dir(&home).unwrap();
        let folder = cli.folder();
        fs::write(folder.join("victim"), "").unwrap();
        fs::set_permissions(folder.join("victim"), Permissions::from_mode(0o644)).unwrap();
        fs::create_dir(folder.join("folder")).unwrap();
        symlink(folder.join(target), home.join(name)).unwrap();
        let ran = cli.run(&["call", "plain"]);
        assert_eq!(ran.code, Some(2), "{name}: {ran:?}");
        assert!(ran.stderr.contains("is a link to") && ran.stderr.contains("remove it"), "{name}: {ran:?}");
        let zh = cli.run(&["--lang", "zh", "call", "plain"]);
        assert!(zh.stderr.contains("链接"), "{zh:?}");
        assert_eq!(
            (fs::read(folder.join("victim")).unwrap().len(), mode(&folder.join("victim"))),
            (0, 0o644)
        );
    }
}

#[test]
fn accepts_data_directory_behind_own_symlink() {
    let cli = cli();
    let real = cli.folder().join("elsewhere");
    fs::create_dir(&real).unwrap();
    fs::set_permissions(&real, Permissions::from_mode(0o755)).unwrap();
    symlink(&real, cli.folder().join("home")).unwrap();
    let ran = cli.run(&["call", "plain"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!((mode(&real), open_to_others(&real)), (0o700, Vec::new()));
    assert!(real.join("toolhub.db").is_file());
}

/// Requires root, as in a container.
#[test]
fn rejects_directory_or_file_of_another_user_with_hint() {
    const NOBODY: u32 = 65_534;
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let other = |path: &Path| std::os::unix::fs::lchown(path, Some(NOBODY), None).unwrap();
    let cli = cli();
    let home = cli.folder().join("home");
    fs::create_dir(&home).unwrap();
    other(&home);
    let refused = |cli: &CommandLine| {
        let ran = cli.run(&["call", "plain"]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(
            ran.stderr.contains("belongs to another user (uid 65534)") && ran.stderr.contains("`--home`"),
            "{ran:?}"
        );
    };
    refused(&cli);
    let cli = self::cli();
    let home = cli.folder().join("home");
    fs::create_dir(&home).unwrap();
    fs::write(home.join("toolhub.db"), "").unwrap();
    other(&home.join("toolhub.db"));
    refused(&cli);
    // A symbolic link owned by another user is not followed, even to a folder of the caller.
    let cli = self::cli();
    fs::create_dir(cli.folder().join("mine")).unwrap();
    symlink(cli.folder().join("mine"), cli.folder().join("home")).unwrap();
    other(&cli.folder().join("home"));
    refused(&cli);
    let ran = cli.run(&["--home", "mine", "call", "plain"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}
