//! An untrusted folder does not affect the programs, skills and gateway of the user.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use super::hostile::{Victim, initialize, request, talk_stdio};

fn owners_config(victim: &Victim) -> PathBuf {
    let folder = victim.home.path().join(".config/toolhub");
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn own_servers(victim: &Victim, servers: &Value) {
    fs::write(owners_config(victim).join("mcp.json"), json!({"mcpServers": servers}).to_string()).unwrap();
}

/// A stdio server in Python with the tool `greet`, which returns `greeting`.
fn python_server(greeting: &str) -> String {
    format!(
        r#"import json, sys, os
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message: continue
    method = message["method"]
    if method == "initialize":
        result = {{"protocolVersion": "2025-11-25", "capabilities": {{"tools": {{}}}}, "serverInfo": {{"name": "p", "version": "1"}}}}
    elif method == "tools/list":
        result = {{"tools": [{{"name": "greet", "inputSchema": {{"type": "object"}}}}]}}
    elif method == "tools/call":
        result = {{"content": [{{"type": "text", "text": "{greeting} in " + os.getcwd()}}]}}
    else:
        print(json.dumps({{"jsonrpc": "2.0", "id": message["id"], "error": {{"code": -32601, "message": "no"}}}}), flush=True)
        continue
    print(json.dumps({{"jsonrpc": "2.0", "id": message["id"], "result": result}}), flush=True)
"#
    )
}

/// A user whose own server is a Python module, and a clone with a module of the same name.
fn shadowed() -> Victim {
    let victim = Victim::new();
    let lib = victim.home.path().join("lib");
    fs::create_dir_all(&lib).unwrap();
    fs::write(lib.join("my_mcp_server.py"), python_server("own")).unwrap();
    let entry = json!({"command": "python3", "args": ["-m", "my_mcp_server"], "env": {"PYTHONPATH": lib}});
    own_servers(&victim, &json!({"own": entry}));
    victim.write(".git/HEAD", "");
    victim.write("my_mcp_server.py", &python_server("THE CLONE"));
    victim
}

#[test]
fn clone_cannot_replace_programs_of_user_servers() {
    let victim = shadowed();
    for command in [&["call", "greet"][..], &["tools"], &["doctor"], &["servers", "test", "own"]] {
        let ran = victim.run(command);
        assert!(!ran.stdout.contains("THE CLONE"), "{command:?}: {ran:?}");
    }
    let ran = victim.run(&["call", "greet"]);
    assert!(ran.stdout.starts_with("own in "), "{ran:?}");
    assert!(!ran.stdout.contains("project"), "{ran:?}");
    let mentions = ran.stderr.lines().filter(|line| line.contains("`my_mcp_server.py`")).count();
    assert_eq!(mentions, 1, "one line says why: {ran:?}");
    let (answers, _) = talk_stdio(
        victim.command_in(&victim.project(), &["serve", "--stdio"]),
        &[initialize(), request(2, "tools/call", &json!({"name": "greet", "arguments": {}}))],
    );
    assert!(answers[1].to_string().contains("own in "), "{answers:?}");
    // The same for a program that starts another one, independent of the files in the clone.
    let wrapper = victim.home.path().join("own-mcp");
    let lib = victim.home.path().join("lib");
    fs::write(&wrapper, format!("#!/bin/sh\nPYTHONPATH='{}' exec python3 -m my_mcp_server\n", lib.display()))
        .unwrap();
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
    own_servers(&victim, &json!({"wrapped": {"command": wrapper}}));
    assert!(victim.run(&["call", "greet"]).stdout.starts_with("own in "));
    // A relative path in the config of the user does not run a file of the project either.
    victim.evil_program("run.sh");
    own_servers(
        &victim,
        &json!({"relative": {"command": "./run.sh"}, "shell": {"command": "sh", "args": ["run.sh"]}}),
    );
    victim.run(&["tools"]);
    victim.assert_unharmed("a relative command of the owner's config");
}

/// Ways in which code in subfolders could reach the servers of the user: as a plugin, as a package without `__init__.py`, by a
/// relative path, by `PATH`, and by the configuration of a repository, also from a subfolder.
#[test]
fn user_servers_do_not_run_code_in_subfolders_of_clone() {
    let path = std::env::var("PATH").unwrap();
    let load_plugins = "import sys; sys.path.insert(0, '')\nfrom importlib.metadata import entry_points\nfor found in entry_points(group='acme.plugins'): found.load()";
    let shell = "#!/bin/sh\nMARK\n";
    let python = "import os; os.system('MARK')\n";
    let entry_points = "[acme.plugins]\nx = notes.plug\n";
    let moved = "starts in an empty folder of";
    for (name, files, entry, below, note) in [
        (
            "plugin",
            vec![("evil-1.0.dist-info/entry_points.txt", entry_points), ("notes/plug.py", python)],
            json!({"command": "python3", "args": ["-c", load_plugins]}),
            false,
            moved,
        ),
        (
            "namespace package",
            vec![("acme/impl.py", python)],
            json!({"command": "python3", "args": ["-m", "acme.impl"]}),
            false,
            moved,
        ),
        (
            "relative path",
            vec![("sub/run.sh", shell)],
            json!({"command": "sh", "args": ["sub/run.sh"]}),
            false,
            moved,
        ),
        (
            "PATH",
            vec![("bin/python3", shell)],
            json!({"command": "python3", "args": ["-V"], "env": {"PATH": format!("./bin:{path}")}}),
            false,
            "is not started in this folder",
        ),
        (
            "configuration of the repository",
            vec![(".git/config", "[core]\nrepositoryformatversion = 0\nfsmonitor = \"MARK; false\"\n")],
            json!({"command": "git", "args": ["status"]}),
            true,
            moved,
        ),
    ] {
        let victim = Victim::new();
        let folder = victim.project().join(if below { "reports" } else { "" });
        if below {
            victim.write("reports/a.md", "a");
            for args in [&["init", "-q"][..], &["add", "."]] {
                assert!(
                    Command::new("git").args(args).current_dir(victim.project()).status().unwrap().success()
                );
            }
        }
        for (file, text) in &files {
            let file = victim.write(file, &text.replace("MARK", &victim.trace()));
            let mode = if file.parent().unwrap().ends_with("bin") { 0o755 } else { 0o644 };
            fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
        }
        own_servers(&victim, &json!({"own": entry}));
        for folder in [victim.project(), folder.clone()] {
            let ran = victim.run_in(&folder, &["tools", "--refresh"]);
            victim.assert_unharmed(name);
            assert!(ran.stderr.contains(note), "{name}: {ran:?}");
        }
        // Control: in a trusted folder the same server runs the code.
        let ran = victim.run_in(&folder, &["--trust", "tools"]);
        assert!(victim.was_run(), "{name}: {ran:?}");
    }
}

/// Entries of the user that depend on the current folder: in a clone they would run what the clone brings.
#[test]
fn clone_does_not_choose_what_entries_with_relative_folders_run() {
    let victim = Victim::new();
    let server = format!("require('child_process').execSync('{}');\n", victim.trace());
    for file in ["server.js", "sub/server.js"] {
        victim.write(file, &server);
    }
    victim.evil_program("run.sh");
    victim.evil_program("sub/run.sh");
    victim.write("package.json", "{}");
    for entry in [
        json!({"command": "node", "args": ["${PWD:-.}/server.js"]}),
        json!({"command": "./run.sh", "cwd": "."}),
        json!({"command": "./run.sh", "cwd": "sub"}),
        json!({"command": "./run.sh", "cwd": "${PWD:-.}"}),
        json!({"command": "${PWD:-.}/run.sh"}),
        json!({"command": "${PWD:-.}/run.sh", "cwd": "/"}),
        json!({"command": "sh", "args": ["-c", "exec \"$RUN\""], "env": {"RUN": "${PWD:-.}/run.sh"}}),
        json!({"command": "node", "args": ["server.js"], "cwd": "."}),
    ] {
        own_servers(&victim, &json!({"own": entry}));
        for command in [&["tools", "--refresh"][..], &["doctor"], &["call", "calculate", "expression=1"]] {
            victim.run(command);
            victim.assert_unharmed(&format!("{entry} {command:?}"));
        }
        let ran = victim.run(&["servers", "test", "own"]);
        victim.assert_unharmed(&format!("{entry}"));
        let text = format!("{}{}", ran.stdout, ran.stderr);
        assert!(text.contains("`own` is not started in this folder"), "{entry}: {ran:?}");
        assert!(text.contains("toolhub trust") && text.contains("absolute paths"), "{entry}: {ran:?}");
        // Control: in a trusted folder it does run.
        victim.run(&["--trust", "servers", "test", "own"]);
        assert!(victim.was_run(), "{entry}");
        victim.forget_runs();
    }
}

/// An import of the user's own entries, after which every clone would run its own files.
#[test]
fn imported_entries_do_not_run_files_of_a_clone() {
    let victim = Victim::new();
    let cursor = victim.home.path().join(".cursor");
    fs::create_dir_all(&cursor).unwrap();
    let entries = json!({"mcpServers": {
        "workspace": {"command": "sh", "args": ["${workspaceFolder}/run.sh"]},
        "relative": {"command": "./run.sh", "cwd": "."},
    }});
    fs::write(cursor.join("mcp.json"), entries.to_string()).unwrap();
    let imported = victim.run_in(victim.home.path(), &["servers", "import", "cursor"]);
    assert_eq!(imported.code, Some(0), "{imported:?}");
    let text = format!("{}{}", imported.stdout, imported.stderr);
    assert_eq!(text.matches("starts only in folders that you trust").count(), 2, "{imported:?}");
    victim.evil_program("run.sh");
    for command in [&["tools"][..], &["doctor"], &["servers", "test"], &["call", "calculate", "expression=1"]]
    {
        victim.run(command);
        victim.assert_unharmed(&format!("{command:?} after an import"));
    }
    victim.run(&["--trust", "servers", "test"]);
    assert!(victim.was_run(), "the control: in a trusted folder they run");
}

#[test]
fn user_servers_start_in_trusted_or_harmless_folder() {
    let victim = shadowed();
    let plain = victim.beside("plain");
    fs::create_dir(&plain).unwrap();
    fs::write(plain.join("sales.xlsx"), "").unwrap();
    let ran = victim.run_in(&plain, &["call", "greet"]);
    assert!(ran.stdout.contains(&format!("own in {}", plain.display())), "{ran:?}");
    assert_eq!(ran.stderr, "");
    let output = victim.run(&["trust"]);
    assert!(output.stdout.contains("my_mcp_server.py"), "{output:?}");
    assert_eq!(victim.run(&["trust", "--yes"]).code, Some(0));
    let ran = victim.run(&["call", "greet"]);
    assert!(ran.stdout.contains(&format!("in {}", victim.project().display())), "{ran:?}");
}

const SKILL: &str = "---\nname: hello\ndescription: Says hello.\nmetadata:\n  toolhub:\n    tools:\n      - {name: say_hello, description: Says hello, script: scripts/hello.sh}\n---\nSay hello.\n";

/// A skill of a project needs approval, independent of how its settings came into use.
#[test]
fn project_skills_need_approval_even_in_trusted_folder() {
    let victim = Victim::new();
    victim.write("toolhub.toml", "");
    victim.write("skills/hello/SKILL.md", SKILL);
    victim.write("skills/hello/scripts/hello.sh", "echo hello\n");
    let refused = |args: &[&str]| {
        let ran = victim.run(args);
        assert!(ran.code != Some(0) && !ran.stdout.contains("hello\n"), "{args:?}: {ran:?}");
    };
    refused(&["call", "say_hello"]);
    refused(&["--trust", "call", "say_hello"]);
    refused(&["--config", "toolhub.toml", "call", "say_hello"]);
    let listed = victim.run(&["--config", "toolhub.toml", "skills", "list", "--json"]);
    assert!(!listed.stdout.contains("say_hello"), "an explicit config does not bring skills: {listed:?}");
    // Control: after the approval it runs.
    assert_eq!(victim.run(&["--trust", "skills", "approve", "hello", "--yes"]).code, Some(0));
    let ran = victim.run(&["--trust", "call", "say_hello"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "hello\n"), "{ran:?}");
}

/// A gateway whose settings contain access rules does not start without them.
#[test]
fn gateway_does_not_start_without_access_rules_of_untrusted_folder() {
    let victim = Victim::new();
    let token = |rate: usize| {
        let hash = "0".repeat(64);
        format!("[serve]\nper_second = {rate}\n[[auth.tokens]]\nname = \"ann\"\nsha256 = \"{hash}\"\n")
    };
    victim.write("toolhub.toml", &token(5));
    let serve = &["serve", "--bind", "127.0.0.1:0"];
    let refused = || {
        let ran = victim.run(serve);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains("toolhub trust") && ran.stderr.contains("--config"), "{ran:?}");
    };
    refused();
    assert_eq!(victim.run(&["trust", "--yes"]).code, Some(0));
    victim.write("toolhub.toml", &token(100));
    refused();
    // The same if the settings cannot be parsed, are too large, or are missing.
    victim.write("toolhub.toml", "[serve\n");
    refused();
    victim.write("toolhub.toml", &format!("# {}\n", "x".repeat(5 << 20)));
    refused();
    fs::remove_file(victim.project().join("toolhub.toml")).unwrap();
    refused();
    let misplaced = token(5).replace("auth.tokens", "tokens");
    victim.write("toolhub.toml", &misplaced);
    let ran = victim.run(&["--config", "toolhub.toml", "serve", "--bind", "127.0.0.1:0"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("[[auth.tokens]]"), "{ran:?}");
}

/// The tokens of the user's own config are not dropped silently where a trusted project's config replaces it.
#[test]
fn gateway_does_not_start_without_tokens_of_own_config() {
    let victim = Victim::new();
    let hash = "0".repeat(64);
    victim.write_own_config(&format!("[[auth.tokens]]\nname = \"ann\"\nsha256 = \"{hash}\"\n"));
    victim.write("toolhub.toml", "[serve]\nper_second = 5\n");
    assert_eq!(victim.run(&["trust", "--yes"]).code, Some(0));
    let ran = victim.run(&["serve", "--bind", "127.0.0.1:0"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("requires tokens") && ran.stderr.contains("[[auth.tokens]]"), "{ran:?}");
    // A config that cannot be read may require tokens: this one is not UTF-8.
    fs::write(owners_config(&victim).join("toolhub.toml"), [0xff]).unwrap();
    let ran = victim.run(&["serve", "--bind", "127.0.0.1:0"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("cannot be read"), "{ran:?}");
    // A changed file is named as the cause; it says nothing about callers.
    victim.write("toolhub.toml", "[serve]\nper_second = 6\n");
    let ran = victim.run(&["serve", "--bind", "127.0.0.1:0"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("changed after you trusted it"), "{ran:?}");
}
