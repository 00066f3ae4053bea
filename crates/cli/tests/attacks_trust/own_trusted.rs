//! The owner's own servers in the folder of a project: trust in it covers what they load, as it was shown; in other folders they
//! load nothing of the project or of earlier starts.

use std::fs;
use std::process::Output;

use serde_json::{Value, json};

use super::hostile::Victim;

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
