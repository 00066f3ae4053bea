//! Import and export of the server entries of other clients, with the real program.

#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolhub_testkit::{CommandLine, CommandOutput};

/// The program in a temporary folder, with a home folder beside its files.
struct TestHome {
    cli: CommandLine,
}

impl TestHome {
    fn new() -> Self {
        let cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
        fs::create_dir(cli.folder().join("user")).unwrap();
        Self { cli }
    }

    fn home(&self) -> PathBuf {
        self.cli.folder().join("user")
    }

    fn run(&self, args: &[&str]) -> CommandOutput {
        let output = self.cli.command(args).env("HOME", self.home()).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        CommandOutput { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// Runs `servers` with these arguments and `--json`.
    fn json(&self, args: &[&str]) -> Value {
        self.run(&[&["servers"], args, &["--json"]].concat()).json()
    }

    fn write(&self, path: &str, text: &str) -> PathBuf {
        let file = self.cli.folder().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        file
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.cli.folder().join(path)).unwrap_or_default()
    }

    fn own(&self) -> Value {
        serde_json::from_str::<Value>(&self.read("mcp.json")).unwrap()["mcpServers"].clone()
    }

    /// All files with their contents.
    fn everything(&self) -> Vec<(PathBuf, String)> {
        let mut found = Vec::new();
        collect(self.cli.folder(), &mut found);
        found.sort();
        found
    }
}

fn collect(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        if entry.path().is_dir() {
            collect(&entry.path(), found);
        } else {
            found.push((entry.path(), fs::read_to_string(entry.path()).unwrap_or_default()));
        }
    }
}

/// The id of each server and the action taken.
fn actions(report: &Value) -> Vec<(String, String)> {
    let text = |server: &Value, key: &str| server[key].as_str().unwrap_or_default().to_owned();
    let servers = report["servers"].as_array().unwrap();
    servers.iter().map(|server| (text(server, "id"), text(server, "action"))).collect()
}

/// The config files of the clients in their own formats, each with a secret.
const FILES: [(&str, &str, &str); 7] = [
    (
        "claude-desktop",
        "user/.config/Claude/claude_desktop_config.json",
        r#"{"mcpServers": {"表格": {"command": "uvx", "args": ["excel", "stdio"], "env": {"KEY": "s3cret"}}}}"#,
    ),
    (
        "claude-code",
        "user/.claude.json",
        r#"{"numStartups": 3, "mcpServers": {"api": {"type": "http", "url": "https://x.example/mcp?k=s3cret",
            "headers": {"Authorization": "Bearer ${TOKEN:-s3cret}"}, "timeout": 90000}}}"#,
    ),
    (
        "cursor",
        "user/.cursor/mcp.json",
        "{\n  // mine\n  \"mcpServers\": {\"cur\": {\"command\": \"run\", \"env\": {\"A\": \"${env:A}\", \"B\": \"s3cret\"}}}\n}\n",
    ),
    (
        "vscode",
        "user/.config/Code/User/mcp.json",
        r#"{"inputs": [{"type": "promptString", "id": "api-key"}],
            "servers": {"ask": {"type": "stdio", "command": "npx", "env": {"K": "${input:api-key}", "S": "s3cret"}}}}"#,
    ),
    (
        "codex",
        "user/.codex/config.toml",
        "model = \"x\" # mine\n\n[mcp_servers.docs]\ncommand = \"npx\"\nenv_vars = [\"TOKEN\"]\nenv = { S = \"s3cret\" }\ntool_timeout_sec = 90\nenabled_tools = [\"read\"]\nrequired = true\n",
    ),
    (
        "gemini",
        "user/.gemini/settings.json",
        r#"{"theme": "x", "mcpServers": {"gem": {"httpUrl": "https://g.example/mcp", "headers": {"K": "$KEY s3cret"}, "timeout": 5000, "trust": true}}}"#,
    ),
    (
        "goose",
        "user/.config/goose/config.yaml",
        "GOOSE_MODEL: x # mine\nextensions:\n  developer:\n    enabled: true\n    type: builtin\n    name: developer\n  gs:\n    enabled: false\n    type: stdio\n    name: gs\n    cmd: run\n    args: [a]\n    envs: {S: s3cret}\n    timeout: 60\n",
    ),
];

#[test]
fn imports_every_client_from_default_path() {
    let test_home = TestHome::new();
    for (_, path, text) in FILES {
        test_home.write(path, text);
    }
    let listed = test_home.run(&["servers", "import"]);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    for word in
        ["Claude Desktop", "Claude Code", "Cursor", "VS Code", "Codex", "Gemini CLI", "goose", "表格", "docs"]
    {
        assert!(listed.stdout.contains(word), "{word} in {listed:?}");
    }
    assert!(listed.stderr.contains("nothing was imported: name a client"), "{listed:?}");
    assert!(!test_home.cli.folder().join("mcp.json").exists());

    for (client, path, _) in FILES {
        let report = test_home.json(&["import", client]);
        assert_eq!(report["client"], client, "{report}");
        assert!(report["file"].as_str().unwrap().ends_with(path), "{report}");
        let added = actions(&report).into_iter().filter(|(_, action)| action == "added").count();
        assert_eq!(added, 1, "{report}");
    }
    let own = test_home.own();
    assert_eq!(own["表格"], json!({"command": "uvx", "args": ["excel", "stdio"], "env": {"KEY": "s3cret"}}));
    assert_eq!(
        own["api"],
        json!({"type": "http", "url": "https://x.example/mcp?k=s3cret",
            "headers": {"Authorization": "Bearer ${TOKEN:-s3cret}"}})
    );
    assert_eq!(own["cur"]["env"], json!({"A": "${A}", "B": "s3cret"}));
    assert_eq!(own["ask"]["env"], json!({"K": "${API_KEY}", "S": "s3cret"}));
    assert_eq!(own["docs"], json!({"command": "npx", "env": {"S": "s3cret"}}));
    assert_eq!(own["gem"]["headers"], json!({"K": "${KEY} s3cret"}));
    assert_eq!(own["gs"]["disabled"], true);
    let settings = test_home.read("toolhub.toml");
    let docs =
        "[[servers]]\nid = \"docs\"\ncall_timeout = \"90s\"\ntools = [\"read\"]\nenv_pass = [\"TOKEN\"]\n";
    assert!(settings.contains(docs), "{settings}");
    // toolhub reads the written file.
    let servers = test_home.json(&["list"]);
    assert_eq!(servers.as_array().unwrap().len(), 7, "{servers}");
    for (_, path, text) in FILES {
        assert_eq!(test_home.read(path), text, "the client's own file is left alone");
    }
}

#[test]
fn dry_run_writes_nothing_and_hides_values() {
    let test_home = TestHome::new();
    for (_, path, text) in FILES {
        test_home.write(path, text);
    }
    let before = test_home.everything();
    for (client, ..) in FILES {
        for language in ["en", "zh"] {
            let ran = test_home.run(&["servers", "import", client, "--dry-run", "--lang", language]);
            assert_eq!(ran.code, Some(0), "{ran:?}");
            assert!(!format!("{ran:?}").contains("s3cret"), "{ran:?}");
            assert!(
                ran.stderr.contains(if language == "zh" { "未写入" } else { "nothing was written" }),
                "{ran:?}"
            );
        }
        let ran = test_home.run(&["servers", "import", client, "--dry-run", "--json"]);
        assert!(ran.json()["dry_run"] == true && !ran.stdout.contains("s3cret"), "{ran:?}");
    }
    assert_eq!(test_home.everything(), before);
    let ran = test_home.run(&["servers", "import", "cursor", "--dry-run"]);
    assert!(ran.stdout.contains("✓  cur  to add  run; env: A, B"), "{ran:?}");
    let ran = test_home.run(&["servers", "import", "gemini"]);
    assert!(ran.stdout.contains("not carried over: trust") && !ran.stdout.contains("s3cret"), "{ran:?}");
    let before = test_home.everything();
    for (client, ..) in FILES {
        let ran = test_home.run(&["servers", "export", client, "--dry-run"]);
        assert!(!format!("{ran:?}").contains("s3cret"), "{ran:?}");
    }
    assert_eq!(test_home.everything(), before);
}

#[test]
fn export_and_import_round_trip() {
    for (client, path, text) in FILES {
        let test_home = TestHome::new();
        test_home.write(path, text);
        assert_eq!(test_home.run(&["servers", "import", client]).code, Some(0));
        let (own, settings) = (test_home.own(), test_home.read("toolhub.toml"));
        fs::remove_file(test_home.cli.folder().join(path)).unwrap();
        let exported =
            test_home.run(&["servers", "export", client, own.as_object().unwrap().keys().next().unwrap()]);
        assert_eq!(exported.code, Some(0), "{client}: {exported:?}");
        fs::remove_file(test_home.cli.folder().join("mcp.json")).unwrap();
        test_home.write("toolhub.toml", "");
        let back = test_home.run(&["servers", "import", client]);
        assert_eq!(back.code, Some(0), "{client}: {back:?}");
        assert_eq!(test_home.own(), own, "{client}\n{}", test_home.read(path));
        assert_eq!(test_home.read("toolhub.toml"), settings, "{client}\n{}", test_home.read(path));
    }
}

#[test]
fn export_keeps_existing_content() {
    let test_home = TestHome::new();
    test_home.write(
        "mcp.json",
        r#"{"mcpServers": {
            "cur": {"command": "new"}, "docs": {"command": "new"}, "gs": {"command": "new"},
            "搜索": {"type": "http", "url": "https://x/mcp", "headers": {"K": "${K}"}},
            "data": {"command": "d", "args": ["-y", "数据"]}
        }}"#,
    );
    for (client, path, text) in
        FILES.iter().filter(|(client, ..)| ["cursor", "codex", "goose"].contains(client))
    {
        test_home.write(path, text);
        let report = test_home.json(&["export", client]);
        let kept: Vec<_> = actions(&report).into_iter().filter(|(_, action)| action == "kept").collect();
        assert_eq!(kept.len(), 1, "{report}");
        let after = test_home.read(path);
        assert!(after.contains("mine") && after.contains("s3cret") && after.contains("数据"), "{after}");
        for line in text.lines().filter(|line| line.len() > 3 && !line.contains("mcpServers")) {
            assert!(after.contains(line), "{client}: {line:?} is lost in\n{after}");
        }
        let skipped = actions(&report).contains(&("搜索".to_owned(), "skipped".to_owned()));
        assert_eq!(skipped, *client == "codex", "Codex has no such names: {report}");
        // A second run changes nothing.
        assert_eq!(test_home.run(&["servers", "export", client]).code, Some(0));
        assert_eq!(test_home.read(path), after, "{client}");
        let replaced = test_home.json(&["export", client, "--replace"]);
        assert!(actions(&replaced).iter().any(|(_, action)| action == "replaced"), "{replaced}");
        assert!(!test_home.read(path).contains("s3cret") && test_home.read(path).contains("mine"));
    }
}

#[test]
fn import_keeps_existing_content() {
    let test_home = TestHome::new();
    let own = "{\n  // mine\n  \"mcpServers\": {\n    \"a\": {\"command\": \"old\", \"vendor\": 12345678901234567890123} // and me\n  },\n  \"other\": 1.50\n}\n";
    test_home.write("mcp.json", own);
    let file = test_home.write(
        "backup.json",
        r#"{"mcpServers": {"a": {"command": "new"}, "b": {"command": "x"}, "native": {"command": "x"},
            "self": {"command": "/opt/toolhub", "args": ["serve", "--stdio"]}}}"#,
    );
    let file = file.to_str().unwrap();
    let report = test_home.json(&["import", file]);
    let expect = [("a", "kept"), ("b", "added"), ("native", "skipped"), ("self", "skipped")];
    assert_eq!(actions(&report), expect.map(|(id, action)| (id.to_owned(), action.to_owned())));
    assert_eq!(report["servers"][1]["left_out"], json!([]));
    assert!(report["servers"][2]["why"].as_str().unwrap().contains("cannot be a server's name"), "{report}");
    let after = test_home.read("mcp.json");
    for part in ["// mine", "\"vendor\": 12345678901234567890123}", "// and me", "\"other\": 1.50", "\"b\""] {
        assert!(after.contains(part), "{part} in {after}");
    }
    let report = test_home.json(&["import", file, "--replace"]);
    assert_eq!(actions(&report)[0].1, "replaced", "{report}");
    assert!(test_home.read("mcp.json").contains("\"command\": \"new\""));
    let nothing = test_home.run(&["servers", "import", "nothing.json"]);
    assert_eq!(nothing.code, Some(2), "{nothing:?}");
    test_home.write("empty.json", "{\"a\": 1}");
    let nothing = test_home.run(&["servers", "import", "empty.json"]);
    assert!(nothing.code == Some(2) && nothing.stderr.contains("contains no servers"), "{nothing:?}");
}

#[test]
fn distinguishes_project_and_user_files() {
    let test_home = TestHome::new();
    test_home.write(".vscode/mcp.json", r#"{"servers": {"both": {"command": "node", "args": ["./server.js"]}, "here": {"command": "${workspaceFolder}/x"}}}"#);
    test_home.write(
        "user/.config/Code/User/mcp.json",
        r#"{"servers": {"both": {"command": "other"}, "far": {"command": "y"}}}"#,
    );
    let report = test_home.json(&["import", "vscode"]);
    let expect = [("both", "added"), ("here", "added"), ("both", "skipped"), ("far", "added")];
    assert_eq!(actions(&report), expect.map(|(id, action)| (id.to_owned(), action.to_owned())));
    let folder = test_home.cli.folder().canonicalize().unwrap();
    let folder = folder.to_str().unwrap();
    assert_eq!(test_home.own()["both"], json!({"command": "node", "args": ["./server.js"], "cwd": folder}));
    assert_eq!(test_home.own()["here"]["command"], format!("{folder}/x"));
    // `.mcp.json` of this folder is read by toolhub itself.
    test_home.write(".mcp.json", r#"{"mcpServers": {"shared": {"command": "z"}}}"#);
    let claude = json!({"projects": {folder: {"mcpServers": {"mine": {"command": "m"}}}, "/other": {"mcpServers": {"no": {"command": "n"}}}}});
    test_home.write("user/.claude.json", &claude.to_string());
    let report = test_home.json(&["import", "claude-code"]);
    let expect = [("shared", "kept"), ("mine", "added")];
    assert_eq!(actions(&report), expect.map(|(id, action)| (id.to_owned(), action.to_owned())), "{report}");
}

#[test]
fn imports_from_all_clients() {
    let test_home = TestHome::new();
    for (_, path, text) in FILES {
        test_home.write(path, text);
    }
    test_home.write("user/.cursor/mcp.json", r#"{"mcpServers": {"api": {"command": "same name"}}}"#);
    let ran = test_home.run(&["servers", "import", "--all", "--json"]);
    let reports = ran.json();
    assert_eq!(reports.as_array().unwrap().len(), 7, "{reports}");
    let cursor = &reports[2]["servers"][0];
    assert_eq!((&cursor["id"], &cursor["action"]), (&json!("api"), &json!("skipped")), "{reports}");
    assert!(cursor["why"].as_str().unwrap().contains(".claude.json"), "{reports}");
    assert_eq!(test_home.own().as_object().unwrap().len(), 6);
}

#[test]
fn reports_position_in_invalid_file_and_keeps_it() {
    let check = |client: &str, path: &str, text: &str, says: &str| {
        let test_home = TestHome::new();
        test_home.write("mcp.json", r#"{"mcpServers": {"a": {"command": "x"}}}"#);
        test_home.write(path, text);
        let before = test_home.everything();
        for args in
            [&["servers", "import", client][..], &["servers", "export", client], &["servers", "import"]]
        {
            let ran = test_home.run(args);
            assert_eq!(ran.code, Some(2), "{args:?} {ran:?}");
            assert!(ran.stderr.contains(says) || ran.stdout.contains(says), "{args:?} {ran:?}");
        }
        assert_eq!(test_home.everything(), before);
    };
    check(
        "cursor",
        "user/.cursor/mcp.json",
        "{\n  \"mcpServers\": {,}\n}",
        "mcp.json`, line 2, column 18: not valid JSON",
    );
    check(
        "codex",
        "user/.codex/config.toml",
        "a = 1\nb = \n",
        "config.toml`, line 2, column 5: not valid TOML",
    );
    check(
        "goose",
        "user/.config/goose/config.yaml",
        "a: [1\nb: 2\n",
        "config.yaml`, line 2, column 2: not valid YAML",
    );
}

#[test]
fn invalid_own_config_stops_import_and_export() {
    let test_home = TestHome::new();
    test_home.write("user/.cursor/mcp.json", FILES[2].2);
    let file = test_home.write("mcp.json", "{ broken");
    for args in [&["servers", "import", "cursor"][..], &["servers", "export", "cursor"]] {
        assert_eq!(test_home.run(args).code, Some(2));
    }
    assert_eq!(fs::read_to_string(file).unwrap(), "{ broken");
}

#[test]
fn prints_snippet_for_uneditable_file() {
    let test_home = TestHome::new();
    let own = r#"{"mcpServers": {"表格": {"command": "uvx", "args": ["x"], "env": {"KEY": "s3cret"}}}}"#;
    test_home.write("mcp.json", own);
    let text = "extensions: {developer: {enabled: true, type: builtin}}\n";
    test_home.write("user/.config/goose/config.yaml", text);
    let ran = test_home.run(&["servers", "export", "goose"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stdout.starts_with("extensions:\n  表格:\n    enabled: true\n    type: stdio\n"), "{ran:?}");
    assert!(ran.stdout.contains("KEY: \"<KEY>\"") && !ran.stdout.contains("s3cret"), "{ran:?}");
    assert_eq!(test_home.read("user/.config/goose/config.yaml"), text);
    let ran = test_home.run(&["servers", "export", "goose", "--file", "other.yaml", "--lang", "zh"]);
    assert!(ran.code == Some(0) && ran.stdout.contains("已添加"), "{ran:?}");
    assert!(test_home.read("other.yaml").contains("s3cret"));
}

#[test]
fn reports_settings_unsupported_by_client() {
    let test_home = TestHome::new();
    test_home.write(
        "mcp.json",
        r#"{"mcpServers": {"far": {"type": "sse", "url": "https://x/sse"}, "off": {"command": "x", "disabled": true},
            "full": {"command": "x", "cwd": "/srv", "env": {"K": "${K}"}}}}"#,
    );
    test_home.write(
        "toolhub.toml",
        "[[servers]]\nid = \"full\"\ntools = [\"a\"]\nhints = { a = { read_only = true } }\n",
    );
    let report = test_home.json(&["export", "claude-desktop"]);
    let expect = [("far", "skipped"), ("full", "added"), ("off", "skipped")];
    assert_eq!(actions(&report), expect.map(|(id, action)| (id.to_owned(), action.to_owned())), "{report}");
    assert_eq!(report["servers"][1]["left_out"], json!(["hints", "env.K", "cwd", "tools"]), "{report}");
    let named = test_home.json(&["export", "claude-desktop", "off"]);
    assert_eq!(named["servers"][0]["left_out"], json!(["disabled"]), "{named}");
    let only = test_home.run(&["servers", "export", "codex", "far"]);
    assert!(only.code == Some(1) && only.stdout.contains("does not speak `sse`"), "{only:?}");
    let check = |args: &[&str], says: &str| {
        let ran = test_home.run(args);
        assert!(ran.code == Some(2) && ran.stderr.contains(says), "{args:?} {ran:?}");
    };
    check(&["servers", "export", "cursor", "ful"], "there is no server `ful`; did you mean `full`?");
    check(&["servers", "import", "cursr"], "`cursr` is neither a client nor a file; did you mean `cursor`?");
    check(&["servers", "import", "cursor"], "there is no file of Cursor: looked for");
    check(&["servers", "export", "emacs"], "emacs");
}

/// The exported path is the symbolic link that the program was started by, since its target changes with the next version.
#[cfg(unix)]
#[test]
fn exports_gateway_with_its_invocation_path() {
    let cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    let links = cli.folder().join("links");
    fs::create_dir(&links).unwrap();
    let link = links.join("toolhub");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_toolhub"), &link).unwrap();
    let export = ["servers", "export", "cursor", "--file", "mcp.json", "--gateway"];
    let own = cli.command(&export);
    for (program, path) in [(link.as_path(), None), (Path::new("toolhub"), Some(&links))] {
        let mut command = std::process::Command::new(program);
        command.env_clear().envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if let Some(path) = path {
            command.env("PATH", path);
        }
        let ran = command.args(export).current_dir(cli.folder()).output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
        let written = fs::read_to_string(cli.folder().join("mcp.json")).unwrap();
        let written: Value = serde_json::from_str(&written).unwrap();
        assert_eq!(written["mcpServers"]["toolhub"]["command"], link.display().to_string());
        fs::remove_file(cli.folder().join("mcp.json")).unwrap();
    }
    let ran = cli.run(&export);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let written: Value =
        serde_json::from_str(&fs::read_to_string(cli.folder().join("mcp.json")).unwrap()).unwrap();
    assert_eq!(written["mcpServers"]["toolhub"]["command"], env!("CARGO_BIN_EXE_toolhub"));
}
