//! The owner's own servers in the folder of a project: trust in it covers what they load, as it was shown; in other folders they
//! load nothing of the project or of earlier starts.

use std::fs;
use std::process::Output;

use serde_json::{Value, json};

use super::hostile::Victim;
use super::unknown_programs::installed;

fn own_servers(victim: &Victim, servers: &Value) {
    let folder = victim.home.path().join(".config/toolhub");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("mcp.json"), json!({"mcpServers": servers}).to_string()).unwrap();
}

#[track_caller]
fn trust(victim: &Victim) {
    let ran = victim.run(&["trust", "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

/// Entries of the owner that load files of the current folder, and these files.
fn dependent() -> Vec<(Value, &'static str)> {
    vec![
        (json!({"command": "sh", "args": ["${PWD:-.}/run.sh"]}), "run.sh"),
        (json!({"command": "./run.sh"}), "run.sh"),
        (json!({"command": "sh", "args": ["run.sh"], "cwd": "sub"}), "sub/run.sh"),
        (json!({"command": "sh", "args": ["-c", ". conf/load.inc"]}), "conf/load.inc"),
    ]
}

fn project(entry: &Value, file: &str) -> Victim {
    use std::os::unix::fs::PermissionsExt as _;
    let victim = Victim::new();
    own_servers(&victim, &json!({"own": entry}));
    victim.write("package.json", "{}");
    victim.write(".mcp.json", "{}");
    let file = victim.write(file, "#!/bin/sh\nexit 1\n");
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
    victim
}

#[test]
fn trust_binds_what_own_servers_load_from_the_folder() {
    for (entry, file) in dependent() {
        let victim = project(&entry, file);
        let shown = victim.run(&["trust"]).stdout;
        assert!(shown.contains("Your own servers that would start in it"), "{entry}: {shown}");
        trust(&victim);
        victim.evil_program(file);
        for args in [&["tools", "--refresh"][..], &["servers", "test", "own"], &["doctor"]] {
            victim.run(args);
            victim.assert_unharmed(&format!("{entry} {args:?}"));
        }
        // Control: the change is not covered before the folder is trusted again.
        trust(&victim);
        victim.run(&["servers", "test", "own"]);
        assert!(victim.was_run(), "{entry}");
    }
}

#[test]
fn own_servers_that_were_not_shown_do_not_load_files_of_a_trusted_folder() {
    for (entry, file) in dependent() {
        let victim = project(&entry, file);
        victim.evil_program(file);
        own_servers(&victim, &json!({}));
        trust(&victim);
        own_servers(&victim, &json!({"own": entry}));
        victim.run(&["tools", "--refresh"]);
        victim.run(&["servers", "test", "own"]);
        victim.assert_unharmed(&format!("{entry} was added later"));
        trust(&victim);
        victim.run(&["servers", "test", "own"]);
        assert!(victim.was_run(), "the control: {entry}");
    }
}

/// A config that is named on the command line has servers of its own, which are reviewed with it.
#[test]
fn trust_covers_own_servers_of_a_named_config() {
    for (entry, file) in dependent() {
        let victim = project(&entry, file);
        own_servers(&victim, &json!({}));
        let config = victim.beside("hub").join("toolhub.toml").display().to_string();
        fs::create_dir(victim.beside("hub")).unwrap();
        fs::write(&config, "").unwrap();
        fs::write(victim.beside("hub/mcp.json"), json!({"mcpServers": {"own": entry}}).to_string()).unwrap();
        let named = |args: &[&str]| victim.run(&[&["--config", &config][..], args].concat());
        trust(&victim);
        victim.evil_program(file);
        named(&["servers", "test", "own"]);
        victim.assert_unharmed(&format!("{entry} was not shown"));
        let shown = named(&["trust", "--yes"]);
        assert!(shown.stdout.contains("Your own servers that would start in it"), "{entry}: {shown:?}");
        named(&["servers", "test", "own"]);
        assert!(victim.was_run(), "{entry}");
        victim.forget_runs();
        // A review of the user's own config does not withdraw it, and a change does.
        trust(&victim);
        named(&["servers", "test", "own"]);
        assert!(victim.was_run(), "{entry} after a review of another config");
        victim.forget_runs();
        victim.write(file, &format!("#!/bin/sh\n{}\nexit 1\n", victim.trace()));
        named(&["servers", "test", "own"]);
        victim.assert_unharmed(&format!("{entry} has changed"));
    }
}

/// An own server that may load any file, in a folder with too many of them.
#[test]
fn review_names_own_servers_that_trust_cannot_cover() {
    let victim = Victim::new();
    let program = installed(&victim, "acme-mcp");
    own_servers(&victim, &json!({"own": {"command": program, "args": ["--root", "."]}}));
    victim.write(".mcp.json", "{}");
    victim.write("conf/load.inc", &format!("{}\n", victim.trace()));
    for number in 0..10_001 {
        victim.write(&format!("many/{}/{number}.txt", number % 100), "");
    }
    for _ in 0..2 {
        let ran = victim.run(&["trust", "--yes"]);
        assert_eq!(ran.code, Some(0), "the folder itself can be trusted: {ran:?}");
        assert!(ran.stdout.contains("Your own servers that trust cannot cover"), "{ran:?}");
        assert!(ran.stdout.contains("`own`") && ran.stdout.contains("absolute paths"), "{ran:?}");
        victim.run(&["servers", "test", "own"]);
        victim.assert_unharmed("a server whose files are not bound");
    }
    victim.run(&["--trust", "servers", "test", "own"]);
    assert!(victim.was_run(), "the control");
}

/// A program from elsewhere that works on the folder does not run what `git` writes at each commit and fetch.
#[test]
fn commits_do_not_change_what_own_servers_load() {
    let victim = Victim::new();
    let program = installed(&victim, "acme-mcp");
    own_servers(&victim, &json!({"own": {"command": program, "args": ["--root", "."]}}));
    victim.write(".git/HEAD", "ref: refs/heads/main\n");
    victim.write("conf/load.inc", &format!("{}\n", victim.trace()));
    trust(&victim);
    for file in [".git/FETCH_HEAD", ".git/refs/heads/main", ".git/logs/HEAD"] {
        victim.write(file, "a\n");
    }
    victim.run(&["servers", "test", "own"]);
    assert!(victim.was_run(), "a commit does not count");
    victim.forget_runs();
    for file in [".git/hooks/post-commit", "node_modules/plugin/index.js", "conf/other.inc"] {
        victim.write(file, "");
        victim.run(&["servers", "test", "own"]);
        victim.assert_unharmed(file);
        trust(&victim);
    }
}

/// What a program of an earlier start has left in the folder.
#[test]
fn own_servers_load_nothing_that_an_earlier_start_has_left() {
    let victim = Victim::new();
    victim.write("package.json", "{}");
    let code = format!(
        "test -e left && {}; echo x > left; pwd > {}; exit 1",
        victim.trace(),
        victim.beside("where").display()
    );
    own_servers(&victim, &json!({"own": {"command": "sh", "args": ["-c", code]}}));
    let mut folders = Vec::new();
    for _ in 0..3 {
        victim.run(&["servers", "test", "own"]);
        victim.assert_unharmed("a file of an earlier start");
        folders.push(fs::read_to_string(victim.beside("where")).unwrap());
    }
    assert!(folders.iter().all(|folder| folder.contains("/toolhub/work/")), "{folders:?}");
}

#[test]
fn empty_folders_are_removed_when_their_server_ends() {
    let victim = Victim::new();
    victim.write("package.json", "{}");
    let code = format!("pwd > {}; exit 1", victim.beside("where").display());
    own_servers(&victim, &json!({"own": {"command": "sh", "args": ["-c", code]}}));
    victim.run(&["servers", "test", "own"]);
    let folder = fs::read_to_string(victim.beside("where")).unwrap();
    let (work, _) = folder.trim().split_at(folder.find("/work/").unwrap() + "/work".len());
    assert!(fs::read_dir(work).unwrap().next().is_none(), "{folder} remains");
}

/// `PATH` with folders of the clone, as of an activated environment or in a script of a package manager.
#[test]
fn own_servers_are_not_found_in_path_of_a_clone() {
    for sub in ["", "sub"] {
        let victim = Victim::new();
        victim.write(".git/HEAD", "");
        victim.write("sub/notes.md", "");
        for program in ["acme", "python3", "env", "sh"] {
            victim.evil_program(&format!("node_modules/.bin/{program}"));
        }
        let here = victim.project().join(sub);
        let system = std::env::var("PATH").unwrap();
        let inside = victim.project().join("node_modules/.bin").display().to_string();
        let run = |args: &[&str], path: &str| -> Output {
            victim.command_in(&here, args).env("PATH", format!("{path}:{system}")).output().unwrap()
        };
        for entry in [
            json!({"command": "acme"}),
            json!({"command": "/usr/bin/env", "args": ["acme"]}),
            json!({"command": "python3", "args": ["-V"]}),
            json!({"command": "acme", "cwd": "/"}),
        ] {
            own_servers(&victim, &json!({"own": entry}));
            for path in [&inside, "node_modules/.bin", "../node_modules/.bin", "."] {
                for args in [&["servers", "test", "own"][..], &["tools", "--refresh"], &["doctor"]] {
                    run(args, path);
                    victim.assert_unharmed(&format!("{entry} {args:?} with `{path}` in {sub:?}"));
                }
            }
        }
        own_servers(&victim, &json!({"own": {"command": "acme"}}));
        run(&["--trust", "servers", "test", "own"], &inside);
        assert!(victim.was_run(), "the control in {sub:?}");
    }
}
