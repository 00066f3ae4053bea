//! Trust is bound to the real path, the owner, and the contents of all files that were shown.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::hostile::{SKILL_TEXT, Victim, initialize, request};

/// Whether the project server is used in a folder.
fn works_in(victim: &Victim, folder: &Path) -> bool {
    victim.run_in(folder, &["call", "greet"]).code == Some(0)
}

fn works(victim: &Victim) -> bool {
    works_in(victim, &victim.project())
}

#[track_caller]
fn trust(victim: &Victim) {
    let ran = victim.run(&["trust", "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[track_caller]
fn asks_again(victim: &Victim) {
    let ran = victim.run(&["servers", "list"]);
    assert!(ran.stderr.contains("changed since you trusted"), "{ran:?}");
    assert!(!works(victim));
}

fn with_good_server() -> Victim {
    let victim = Victim::new().with_good_server();
    assert!(!works(&victim), "not used before it is trusted");
    trust(&victim);
    assert!(works(&victim), "used after it was trusted");
    victim
}

fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap().success());
}

#[test]
fn changed_script_requires_new_trust() {
    let victim = with_good_server();
    let file = victim.project().join("run.sh");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{text}# changed\n")).unwrap();
    asks_again(&victim);
    let stderr = victim.run(&["servers", "list"]).stderr;
    assert!(stderr.contains("`run.sh` changed since you trusted this folder"), "{stderr}");
    let output = victim.run(&["trust", "--json"]).json();
    assert_eq!(output["folders"][0]["changes"], json!([{"file": "run.sh", "change": "modified"}]));
    assert!(victim.run(&["trust", "--list"]).stdout.contains("(changed, not used)"));
    trust(&victim);
    assert!(works(&victim));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    asks_again(&victim);
}

#[test]
fn shifted_argument_boundaries_require_new_trust() {
    let victim = with_good_server();
    for args in [json!(["a", "b"]), json!(["a b", ""])] {
        victim.write(
            ".mcp.json",
            &json!({"mcpServers": {"good": {"command": "./run.sh", "args": args}}}).to_string(),
        );
        asks_again(&victim);
    }
}

#[test]
fn change_behind_symlink_requires_new_trust() {
    let victim = with_good_server();
    let project = victim.project();
    fs::create_dir(project.join("real")).unwrap();
    fs::rename(project.join("run.sh"), project.join("real/one.sh")).unwrap();
    symlink("real/one.sh", project.join("run.sh")).unwrap();
    asks_again(&victim);
    trust(&victim);
    assert!(works(&victim));
    // Different contents behind the same link.
    let text = fs::read_to_string(project.join("real/one.sh")).unwrap();
    fs::write(project.join("real/one.sh"), format!("{text}#\n")).unwrap();
    asks_again(&victim);
    // The same contents behind another link.
    trust(&victim);
    copy(&project.join("real/one.sh"), &project.join("real/two.sh"));
    fs::remove_file(project.join("run.sh")).unwrap();
    symlink("real/two.sh", project.join("run.sh")).unwrap();
    asks_again(&victim);
}

#[test]
fn binds_config_symlink_to_its_target() {
    let victim = with_good_server();
    let outside = victim.beside("outside.json");
    fs::rename(victim.project().join(".mcp.json"), &outside).unwrap();
    symlink(&outside, victim.project().join(".mcp.json")).unwrap();
    asks_again(&victim);
    let output = victim.run(&["trust"]).stdout;
    assert!(output.contains("a link that leads out of the project"), "{output}");
    trust(&victim);
    assert!(works(&victim));
    let text = fs::read_to_string(&outside).unwrap();
    fs::write(&outside, format!("{text} ")).unwrap();
    asks_again(&victim);
}

#[test]
fn trust_does_not_extend_to_copies_or_replaced_folders() {
    let victim = with_good_server();
    let (project, other) = (victim.project(), victim.beside("copy"));
    copy(&project, &other);
    assert!(!works_in(&victim, &other), "a copy elsewhere");
    fs::remove_dir_all(&project).unwrap();
    let hostile = Victim::new().with_shared_servers();
    copy(&hostile.project(), &project);
    victim.run(&["servers", "test"]);
    hostile.assert_unharmed("another folder at the same path");
    // Control: the trusted folder, back at its path.
    fs::remove_dir_all(&project).unwrap();
    copy(&other, &project);
    assert!(works(&victim));
}

#[test]
fn symlink_to_trusted_folder_is_trusted() {
    let victim = with_good_server();
    let link = victim.beside("link");
    symlink(victim.project(), &link).unwrap();
    assert!(works_in(&victim, &link));
    let evil = Victim::new().with_shared_servers();
    fs::remove_file(&link).unwrap();
    symlink(evil.project(), &link).unwrap();
    victim.run_in(&link, &["servers", "test"]);
    evil.assert_unharmed("the link leads to another folder");
}

#[test]
fn trust_does_not_extend_to_nested_folders() {
    let victim = with_good_server();
    let nested = Victim::new().with_shared_servers();
    let inside = victim.project().join("vendor/evil");
    fs::create_dir_all(inside.parent().unwrap()).unwrap();
    copy(&nested.project(), &inside);
    let ran = victim.run_in(&inside, &["servers", "test"]);
    nested.assert_unharmed("a nested folder");
    assert!(ran.stderr.contains("not used until you trust"), "{ran:?}");
}

#[test]
fn trust_variable_covers_only_named_folders() {
    let victim = Victim::new().with_good_server();
    let project = victim.project();
    fs::create_dir(victim.beside("other")).unwrap();
    let with = |value: &str| {
        let mut command = victim.command_in(&project, &["call", "greet"]);
        command.env("TOOLHUB_TRUST", value).output().unwrap().status.code() == Some(0)
    };
    let path = |name: &str| victim.beside(name).display().to_string();
    for (value, trusted) in [
        (String::new(), false),
        ("0".to_owned(), false),
        (".".to_owned(), false),
        (path("other"), false),
        (path(""), false),
        (path("other") + ":" + &path("project"), true),
        ("1".to_owned(), true),
    ] {
        assert_eq!(with(&value), trusted, "TOOLHUB_TRUST={value}");
    }
    assert_eq!(victim.run(&["--trust", "call", "greet"]).code, Some(0));
    assert!(!works(&victim), "trust for one run is not kept");
}

#[test]
fn explicit_config_does_not_trust_rest_of_folder() {
    let victim = Victim::new().with_good_server().with_shared_servers();
    let entry = json!({"mcpServers": {"good": {"command": "./run.sh"}}});
    victim.write("mcp.json", &entry.to_string());
    victim.write("toolhub.toml", "");
    let ran = victim.run(&["--config", "toolhub.toml", "call", "greet"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    victim.run(&["--config", "toolhub.toml", "servers", "test"]);
    victim.assert_unharmed("`.mcp.json` beside an explicit config");
    assert!(ran.stderr.contains("brings .mcp.json, which is not used"), "{ran:?}");
}

#[test]
fn running_gateway_does_not_start_changed_script() {
    let victim = with_good_server();
    let call = request(2, "tools/call", &json!({"name": "greet", "arguments": {}}));
    let evil = Victim::new().with_shared_servers();
    // The tool list is cached, so that no server is started before the call.
    let command = victim.command_in(&victim.project(), &["serve", "--stdio"]);
    let file = victim.project().join("run.sh");
    let change = || fs::copy(evil.project().join("evil.sh"), &file).unwrap();
    let answer = talk_while(command, &call, change);
    evil.assert_unharmed("a script that was replaced under a running gateway");
    assert!(answer.contains("changed since you trusted it"), "{answer}");
}

/// A folder that is trusted again is used without a restart of the gateway.
#[test]
fn running_gateway_uses_newly_trusted_change() {
    let victim = with_good_server();
    let call = request(2, "tools/call", &json!({"name": "greet", "arguments": {}}));
    let command = victim.command_in(&victim.project(), &["serve", "--stdio"]);
    let file = victim.project().join("run.sh");
    let change = || {
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, format!("{text}# changed\n")).unwrap();
        trust(&victim);
        0
    };
    let answer = talk_while(command, &call, change);
    assert!(answer.contains("result") && !answer.contains("changed since"), "{answer}");
}

/// Returns the response to a call that is sent after `change` has run.
fn talk_while(mut command: Command, call: &serde_json::Value, change: impl FnOnce() -> u64) -> String {
    use std::io::{BufRead as _, BufReader, Write as _};
    let mut child =
        command.stdin(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).spawn().unwrap();
    let (mut stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut lines = BufReader::new(stdout).lines();
    let mut answer_to = |id: &serde_json::Value| loop {
        let line = lines.next().unwrap().unwrap();
        if serde_json::from_str::<serde_json::Value>(&line).unwrap().get("id") == Some(id) {
            return line;
        }
    };
    writeln!(stdin, "{}", initialize()).unwrap();
    answer_to(&json!(1));
    change();
    writeln!(stdin, "{}", json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).unwrap();
    writeln!(stdin, "{call}").unwrap();
    let answer = answer_to(&call["id"]);
    drop(stdin);
    child.wait().unwrap();
    answer
}

#[test]
fn skills_in_parent_folders_and_behind_symlinks_need_trust() {
    let victim = Victim::new();
    let outside = victim.beside("outside");
    fs::create_dir_all(outside.join("bad")).unwrap();
    fs::write(outside.join("bad/SKILL.md"), format!("---\nname: bad\ndescription: {SKILL_TEXT}\n---\nx\n"))
        .unwrap();
    fs::create_dir_all(victim.project().join(".git")).unwrap();
    fs::create_dir_all(victim.project().join(".claude")).unwrap();
    symlink(&outside, victim.project().join(".claude/skills")).unwrap();
    let sub = victim.project().join("sub");
    fs::create_dir(&sub).unwrap();
    for folder in [victim.project(), sub.clone()] {
        for args in [&["skills", "list"][..], &["prompt", "x"], &["skills", "show", "bad"]] {
            let ran = victim.run_in(&folder, args);
            assert!(!format!("{}{}", ran.stdout, ran.stderr).contains(SKILL_TEXT), "{args:?} {ran:?}");
        }
    }
    assert!(victim.run_in(&sub, &["tools"]).stderr.contains("brings .claude/skills"));
    // Control, from a subfolder: once the folder with the skills is trusted, they can be approved.
    assert_eq!(victim.run_in(&sub, &["trust", "--yes"]).code, Some(0));
    assert!(victim.run_in(&sub, &["skills", "list"]).stdout.contains("bad"));
    fs::write(outside.join("bad/more.md"), "new").unwrap();
    let ran = victim.run_in(&sub, &["skills", "list"]);
    assert!(ran.stderr.contains("changed since you trusted") && !ran.stdout.contains("bad"), "{ran:?}");
}

#[test]
fn ignores_trust_list_of_the_project() {
    let victim = with_good_server();
    let list = victim.home.path().join(".local/share/toolhub/trust.json");
    assert_eq!(fs::metadata(&list).unwrap().permissions().mode() & 0o777, 0o600);
    fs::create_dir(victim.project().join("data")).unwrap();
    fs::copy(&list, victim.project().join("data/trust.json")).unwrap();
    fs::remove_file(&list).unwrap();
    assert_eq!(victim.run(&["--home", "data", "call", "greet"]).code, Some(1));
    let refused = victim.run(&["--home", "data", "trust", "--yes"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("lies inside the project"), "{refused:?}");
}

#[test]
fn does_not_trust_files_of_another_user() {
    let victim = with_good_server();
    // `chown` requires root.
    if std::os::unix::fs::chown(victim.project().join("run.sh"), Some(12345), None).is_err() {
        return;
    }
    let ran = victim.run(&["tools"]);
    assert!(ran.stderr.contains("another user (uid 12345) owns files there"), "{ran:?}");
    assert!(!works(&victim));
    let refused = victim.run(&["trust", "--yes"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert_eq!(victim.run(&["--trust", "call", "greet"]).code, Some(0), "an explicit choice for one run");
}

/// In `/tmp` every user can create files beside and above the folder that `--trust` is meant for.
#[test]
fn run_trust_ignores_files_of_other_users_in_shared_folder() {
    let victim = Victim::new().with_shared_servers();
    let shared = victim.beside("");
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
    let skill = shared.join(".claude/skills/bad");
    fs::create_dir_all(&skill).unwrap();
    fs::write(skill.join("SKILL.md"), format!("---\nname: bad\ndescription: {SKILL_TEXT}\n---\nx\n"))
        .unwrap();
    fs::create_dir(shared.join(".git")).unwrap();
    let own = |who: &str, files: &[&str]| {
        let files = files.iter().map(|file| shared.join(file));
        Command::new("chown")
            .arg("-R")
            .arg(who)
            .args(files)
            .stderr(std::process::Stdio::null())
            .status()
            .unwrap()
            .success()
    };
    // `chown` requires root.
    if !own("12345", &[".claude", ".git"]) {
        return;
    }
    let lists_skill = |folder: &Path| {
        let ran = victim.run_in(folder, &["--trust", "skills", "list"]);
        format!("{}{}", ran.stdout, ran.stderr).contains(SKILL_TEXT)
    };
    assert!(!lists_skill(&victim.project()), "a repository and skills of another user");
    assert!(own("0", &[".git"]));
    assert!(!lists_skill(&victim.project()), "skills of another user");
    assert!(own("0", &[".claude/skills/bad/SKILL.md"]));
    assert!(!lists_skill(&victim.project()), "a folder of skills of another user");
    assert!(!lists_skill(&shared), "in the folder itself");
    fs::rename(victim.project().join(".mcp.json"), shared.join(".mcp.json")).unwrap();
    victim.evil_program("../evil.sh");
    assert!(own("12345", &[".mcp.json", "evil.sh"]));
    victim.run_in(&shared, &["--trust", "servers", "test"]);
    victim.assert_unharmed("servers of another user in a folder open to all");
    // Control: the same files, owned by the caller.
    assert!(own("0", &[".claude", ".git", ".mcp.json", "evil.sh"]));
    assert!(lists_skill(&victim.project()) && lists_skill(&shared));
    victim.run_in(&shared, &["--trust", "servers", "test"]);
    assert!(victim.was_run());
}

/// Even with umask 0, the folder that decides which programs run is writable by its owner only.
#[test]
fn config_directory_is_private_under_any_umask() {
    let victim = Victim::new();
    let command =
        format!("umask 000; exec '{}' servers add own --no-test -- true", env!("CARGO_BIN_EXE_toolhub"));
    let mut shell = Command::new("sh");
    shell.args(["-c", &command]).env("HOME", victim.home.path()).env_remove("XDG_CONFIG_HOME");
    assert!(shell.current_dir(victim.project()).output().unwrap().status.success());
    let config = victim.home.path().join(".config/toolhub");
    assert!(config.join("mcp.json").exists());
    for folder in [config.as_path(), config.parent().unwrap()] {
        let mode = fs::metadata(folder).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode & 0o022, 0, "{}: {mode:o}", folder.display());
    }
}

#[test]
fn revoked_trust_takes_effect() {
    let victim = with_good_server();
    let listed = victim.run(&["trust", "--list"]).stdout;
    assert_eq!(listed.trim(), victim.project().display().to_string());
    assert_eq!(victim.run(&["trust", "--revoke"]).code, Some(0));
    assert!(!works(&victim));
    trust(&victim);
    assert_eq!(victim.run_in(Path::new("/"), &["trust", "--revoke", listed.trim()]).code, Some(0));
    assert!(!works(&victim));
    assert_eq!(victim.run(&["trust", "--revoke"]).code, Some(1), "there is nothing to revoke");
}

#[test]
fn own_edit_keeps_trust_without_covering_other_changes() {
    let victim = with_good_server();
    victim.write("toolhub.toml", "");
    trust(&victim);
    let added = victim.run(&["servers", "add", "own", "--no-test", "--", "true"]);
    assert_eq!(added.code, Some(0), "{added:?}");
    assert!(victim.run(&["servers", "list"]).stdout.contains("own"));
    assert_eq!(victim.run(&["servers", "remove", "own"]).code, Some(0));
    assert!(works(&victim), "still trusted after two edits by the owner's own commands");
    let new = victim.run(&["skills", "new", "mine"]);
    assert_eq!(new.code, Some(0), "{new:?}");
    assert!(works(&victim), "still trusted with a skill that the owner made");
}

/// Opening a FIFO in place of a file would block.
#[test]
fn does_not_hang_on_fifo_as_config() {
    let victim = Victim::new();
    for name in ["toolhub.toml", ".mcp.json"] {
        assert!(Command::new("mkfifo").arg(victim.project().join(name)).status().unwrap().success());
        let ran = victim.run(&["call", "calculate", "expression=1+1"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "2\n"), "{ran:?}");
        let refused = victim.run(&["trust", "--yes"]);
        assert_eq!(refused.code, Some(2));
        assert!(refused.stderr.contains("is not a regular file"), "{refused:?}");
        fs::remove_file(victim.project().join(name)).unwrap();
    }
}

#[test]
fn importing_project_servers_requires_explicit_file() {
    let victim = Victim::new().with_everything();
    for what in ["--all", "cursor", "vscode"] {
        let ran = victim.run(&["servers", "import", what]);
        assert!(ran.stderr.contains("is not imported unless you name it"), "{what} {ran:?}");
    }
    assert!(!victim.run(&["servers", "list"]).stdout.contains("imported"));
    let named = victim.run(&["servers", "import", ".cursor/mcp.json"]);
    assert_eq!(named.code, Some(0), "{named:?}");
    assert!(victim.run(&["servers", "list"]).stdout.contains("imported"));
    victim.assert_unharmed("an import");
}
