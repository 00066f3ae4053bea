//! `toolhub init` and `toolhub init --undo` with the real program and a temporary home folder: no file of a client is damaged,
//! no server is lost, no secret is printed, and no program but the hub itself is started.

#![cfg(unix)]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};
use toolhub_testkit::CommandOutput;

/// A temporary home folder, initially without clients.
struct Machine {
    folder: tempfile::TempDir,
}

const CURSOR: &str = ".cursor/mcp.json";
const CLAUDE_CODE: &str = ".claude.json";
const CODEX: &str = ".codex/config.toml";
const GOOSE: &str = ".config/goose/config.yaml";
const TOOLHUB_SERVERS: &str = ".config/toolhub/mcp.json";
const SETTINGS: &str = ".config/toolhub/toolhub.toml";
const RECORD: &str = ".local/share/toolhub/init.json";

const CURSOR_TEXT: &str = "{\n  // mine\n  \"theme\": 1.0,\n  \"mcpServers\": {\n    \"files\": {\"command\": \"run-files\", \"env\": {\"KEY\": \"s3cret\"}}, // all of them\n    \"api\": {\"url\": \"https://x.example/mcp?k=s3cret\"}\n  }\n}\n";
const CODEX_TEXT: &str = "# mine\nmodel = \"x\"\n\n[mcp_servers.docs]\ncommand = \"run-docs\"\nenv = { S = \"s3cret\" }\ntool_timeout_sec = 90\n";
const GOOSE_TEXT: &str = "GOOSE_MODEL: x # mine\nextensions:\n  developer:\n    enabled: true\n    type: builtin\n    name: developer\n  gs:\n    enabled: true\n    type: stdio\n    name: gs\n    cmd: run-gs\n    args: []\n    envs: {}\n    timeout: 60\n";

impl Machine {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("user")).unwrap();
        fs::create_dir(folder.path().join("work")).unwrap();
        Self { folder }
    }

    /// With the config files of Cursor, Codex and goose.
    fn with_clients() -> Self {
        let machine = Self::new();
        machine.write(CURSOR, CURSOR_TEXT);
        machine.write(CODEX, CODEX_TEXT);
        machine.write(GOOSE, GOOSE_TEXT);
        machine
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("user")
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolhub"));
        command
            .current_dir(self.folder.path().join("work"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home())
            .env("LANG", "C.UTF-8")
            .args(args)
            .stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> CommandOutput {
        let output = self.command(args).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let ran = CommandOutput {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        };
        assert!(!(ran.stdout.clone() + &ran.stderr).contains("s3cret"), "{ran:?}");
        ran
    }

    fn file(&self, path: &str) -> PathBuf {
        self.home().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let file = self.file(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.file(path)).unwrap()
    }

    fn own(&self) -> Value {
        serde_json::from_str::<Value>(&self.read(TOOLHUB_SERVERS)).unwrap()["mcpServers"].clone()
    }

    /// The contents of the config files and of the undo record.
    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        for path in [CURSOR, CLAUDE_CODE, CODEX, GOOSE, TOOLHUB_SERVERS, SETTINGS, RECORD] {
            if let Ok(bytes) = fs::read(self.file(path)) {
                found.insert(PathBuf::from(path), bytes);
            }
        }
        found
    }
}

fn ids(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// The server names in a JSON file with comments on separate lines or at the end of lines.
fn json_ids(text: &str) -> Vec<String> {
    let plain: String =
        text.lines()
            .map(|line| {
                if let Some((code, _)) = line.split_once(" //") {
                    code
                } else {
                    line.trim_start_matches("//")
                }
            })
            .filter(|line| !line.trim_start().starts_with("//"))
            .collect::<Vec<_>>()
            .join("\n");
    let value: Value = serde_json::from_str(&plain).unwrap_or_else(|error| panic!("{error}: {text}"));
    value["mcpServers"].as_object().unwrap().keys().cloned().collect()
}

#[test]
fn moves_servers_to_the_hub_and_undo_restores_every_byte() {
    let machine = Machine::with_clients();
    fs::set_permissions(machine.file(CURSOR), fs::Permissions::from_mode(0o640)).unwrap();
    let before = machine.files();
    let ran = machine.run(&["init", "--all", "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ids(&machine.own()), ["files", "api", "docs", "gs"]);
    assert_eq!(machine.own()["files"]["env"]["KEY"], "s3cret");
    assert!(machine.read(SETTINGS).contains("call_timeout = \"90s\""));
    let cursor = machine.read(CURSOR);
    assert_eq!(json_ids(&cursor), ["toolhub"], "{cursor}");
    assert!(cursor.contains("// mine") && cursor.contains("\"theme\": 1.0"), "{cursor}");
    let codex = machine.read(CODEX);
    assert!(codex.contains("# mine") && codex.contains("[mcp_servers.toolhub]"), "{codex}");
    assert!(!codex.contains("run-docs"), "{codex}");
    let goose = machine.read(GOOSE);
    assert!(goose.contains("developer") && goose.contains("toolhub") && !goose.contains("run-gs"), "{goose}");
    let mode = |path: &str| fs::metadata(machine.file(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(CURSOR), mode(RECORD), mode(TOOLHUB_SERVERS)), (0o640, 0o600, 0o600));
    assert!(ran.stdout.contains("= 42"), "{ran:?}");
    assert!(ran.stdout.contains("toolhub servers test") && ran.stderr.contains("init --undo"), "{ran:?}");

    let undone = machine.run(&["init", "--undo"]);
    assert_eq!(undone.code, Some(0), "{undone:?}");
    assert_eq!(machine.files(), before);
    assert_eq!(mode(CURSOR), 0o640);
    assert!(undone.stdout.contains("restored byte for byte"), "{undone:?}");
    let again = machine.run(&["init", "--undo"]);
    assert_eq!((again.code, machine.files()), (Some(0), before));
    assert!(again.stderr.contains("nothing to undo"), "{again:?}");
}

#[test]
fn client_entry_starts_hub_with_imported_servers() {
    let machine = Machine::new();
    machine.write(CURSOR, "{\"mcpServers\": {\"files\": {\"command\": \"run-files\"}}}");
    assert_eq!(machine.run(&["init", "--client", "cursor", "--yes"]).code, Some(0));
    let cursor: Value = serde_json::from_str(&machine.read(CURSOR)).unwrap();
    let entry = &cursor["mcpServers"]["toolhub"];
    let args: Vec<&str> = entry["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap()).collect();
    let config = machine.file(SETTINGS);
    assert_eq!(args, ["--config", config.to_str().unwrap(), "serve", "--stdio"]);
    assert!(Path::new(entry["command"].as_str().unwrap()).is_absolute());
}

#[test]
fn a_second_run_changes_nothing_and_undo_still_restores() {
    let machine = Machine::with_clients();
    let before = machine.files();
    assert_eq!(machine.run(&["init", "--all", "--yes"]).code, Some(0));
    let once = machine.files();
    let twice = machine.run(&["init", "--all", "--yes"]);
    assert_eq!((twice.code, machine.files()), (Some(0), once));
    assert!(twice.stderr.contains("no file was changed"), "{twice:?}");
    // A client that is installed later is added by a second run.
    let code = "{\"numStartups\": 3, \"mcpServers\": {\"late\": {\"command\": \"run-late\"}}}\n";
    machine.write(CLAUDE_CODE, code);
    assert_eq!(machine.run(&["init", "--client", "claude-code", "--yes"]).code, Some(0));
    assert_eq!(ids(&machine.own()), ["files", "api", "docs", "gs", "late"]);
    assert_eq!(machine.run(&["init", "--undo"]).code, Some(0));
    assert_eq!(machine.read(CLAUDE_CODE), code);
    fs::remove_file(machine.file(CLAUDE_CODE)).unwrap();
    assert_eq!(machine.files(), before);
}

#[test]
fn undo_keeps_what_was_added_or_changed_since() {
    let machine = Machine::with_clients();
    assert_eq!(machine.run(&["init", "--all", "--yes"]).code, Some(0));
    let edited = machine.read(CURSOR).replace("\"theme\": 1.0", "\"theme\": 2.0").replacen(
        "\"mcpServers\": {",
        "\"mcpServers\": {\n    \"mine\": {\"command\": \"run-mine\"},",
        1,
    );
    machine.write(CURSOR, &edited);
    let added = machine.run(&["servers", "add", "own", "--no-test", "run-own"]);
    assert_eq!(added.code, Some(0), "{added:?}");
    let settings = machine.read(SETTINGS) + "\n[limits]\ncall = \"5s\" # mine\n";
    machine.write(SETTINGS, &settings);
    let undone = machine.run(&["init", "--undo", "--json"]);
    assert_eq!(undone.code, Some(0), "{undone:?}");
    let actions: Vec<String> = undone.json()["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["action"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(actions, ["edited", "restored", "restored", "edited", "edited"]);
    let cursor = machine.read(CURSOR);
    let mut found = json_ids(&cursor);
    found.sort();
    assert_eq!(found, ["api", "files", "mine"], "{cursor}");
    assert!(cursor.contains("\"theme\": 2.0") && cursor.contains("// mine"), "{cursor}");
    assert_eq!(machine.read(CODEX), CODEX_TEXT);
    assert_eq!(ids(&machine.own()), ["own"]);
    let settings = machine.read(SETTINGS);
    assert!(settings.contains("call = \"5s\" # mine") && !settings.contains("docs"), "{settings}");
}

#[test]
fn undo_keeps_and_names_entry_changed_since() {
    let machine = Machine::new();
    machine.write(CURSOR, "{\"mcpServers\": {\"files\": {\"command\": \"run-files\"}}}\n");
    assert_eq!(machine.run(&["init", "--all", "--yes"]).code, Some(0));
    let changed = machine.read(TOOLHUB_SERVERS).replace("run-files", "run-other");
    machine.write(TOOLHUB_SERVERS, &changed);
    let undone = machine.run(&["init", "--undo"]);
    assert!(undone.stdout.contains("changed since, so kept as they are: files"), "{undone:?}");
    assert_eq!(machine.own()["files"]["command"], "run-other");
    assert_eq!(json_ids(&machine.read(CURSOR)), ["files"]);
}

#[test]
fn undo_keeps_servers_in_hub_until_client_is_restored() {
    let machine = Machine::with_clients();
    assert_eq!(machine.run(&["init", "--all", "--yes"]).code, Some(0));
    let whole = machine.read(CURSOR);
    machine.write(CURSOR, "{ broken");
    let undone = machine.run(&["init", "--undo"]);
    assert_eq!(undone.code, Some(1), "{undone:?}");
    assert!(undone.stdout.contains("was not undone") && undone.stdout.contains("mcp.json"), "{undone:?}");
    assert_eq!(machine.read(CURSOR), "{ broken");
    assert_eq!(ids(&machine.own()), ["files", "api"]);
    assert_eq!((machine.read(CODEX), machine.read(GOOSE)), (CODEX_TEXT.to_owned(), GOOSE_TEXT.to_owned()));
    // After the file is repaired, undo completes.
    machine.write(CURSOR, &whole);
    assert_eq!(machine.run(&["init", "--undo"]).code, Some(0));
    assert_eq!(machine.read(CURSOR), CURSOR_TEXT);
    assert!(!machine.file(TOOLHUB_SERVERS).exists() && !machine.file(RECORD).exists());
    // Undo does not recreate the file of a removed client, and keeps its servers.
    assert_eq!(machine.run(&["init", "--all", "--yes"]).code, Some(0));
    fs::remove_file(machine.file(CURSOR)).unwrap();
    assert_eq!(machine.run(&["init", "--undo"]).code, Some(0));
    assert!(!machine.file(CURSOR).exists());
    assert_eq!(ids(&machine.own()), ["files", "api"]);
}

#[test]
fn reports_invalid_client_file_and_sets_up_others() {
    for (lang, message) in [("en", "not valid JSON"), ("zh", "JSON")] {
        let machine = Machine::with_clients();
        machine.write(CURSOR, "{ \"mcpServers\": s3cret");
        let ran = machine.run(&["init", "--all", "--yes", "--lang", lang]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stdout.contains(".cursor/mcp.json") && ran.stdout.contains(message), "{ran:?}");
        assert_eq!(machine.read(CURSOR), "{ \"mcpServers\": s3cret");
        assert_eq!(ids(&machine.own()), ["docs", "gs"]);
        assert!(machine.read(CODEX).contains("[mcp_servers.toolhub]"));
        // An invalid config file of the hub stops the run before any client is changed.
        machine.write(TOOLHUB_SERVERS, "{ broken");
        let codex = machine.read(CODEX);
        let refused = machine.run(&["init", "--all", "--yes", "--lang", lang]);
        assert_eq!(
            (refused.code, machine.read(TOOLHUB_SERVERS), machine.read(CODEX)),
            (Some(2), "{ broken".to_owned(), codex)
        );
    }
}

#[test]
fn requires_flags_without_terminal() {
    let machine = Machine::with_clients();
    let before = machine.files();
    for (args, flags) in [
        (&["init"][..], &["--all", "--client", "--yes", "--dry-run", "cursor, codex, goose"][..]),
        (&["init", "--yes"], &["--all", "--client"]),
        (&["init", "--all"], &["--yes", "--dry-run"]),
        (&["init", "--client", "cursor"], &["--yes"]),
        (&["init", "--json"], &["--all"]),
        (&["init", "--lang", "zh"], &["没有可用于提示的终端", "--all", "--client", "--yes"]),
        (&["init", "--all", "--lang", "zh"], &["没有可用于提示的终端", "--yes"]),
    ] {
        let ran = machine.run(args);
        assert_eq!(ran.code, Some(2), "{args:?} {ran:?}");
        assert!(flags.iter().all(|flag| ran.stderr.contains(flag)), "{args:?} {ran:?}");
        assert_eq!(machine.files(), before);
    }
    let absent = machine.run(&["init", "--client", "gemini", "--yes"]);
    assert_eq!(absent.code, Some(2));
    assert!(absent.stderr.contains("Gemini CLI is not on this machine"), "{absent:?}");
    assert_eq!(machine.files(), before);
}

#[test]
fn dry_run_shows_all_changes_and_writes_nothing() {
    let machine = Machine::with_clients();
    let before = machine.files();
    for (lang, phrases) in
        [("en", ["to move to toolhub", "nothing was changed"]), ("zh", ["将移到 toolhub", "未做任何改动"])]
    {
        let ran = machine.run(&["init", "--dry-run", "--lang", lang]);
        assert_eq!((ran.code, machine.files()), (Some(0), before.clone()), "{ran:?}");
        let output = ran.stdout.clone() + &ran.stderr;
        assert!(phrases.iter().all(|word| output.contains(word)), "{ran:?}");
        assert!(["Cursor", "Codex", "goose", "files", "docs", "gs"].iter().all(|word| output.contains(word)));
    }
    assert_eq!(machine.run(&["init", "--all", "--yes"]).code, Some(0));
    let after = machine.files();
    let ran = machine.run(&["init", "--undo", "--dry-run"]);
    assert_eq!((ran.code, machine.files()), (Some(0), after), "{ran:?}");
}

#[test]
fn reports_missing_clients_with_next_step() {
    let machine = Machine::new();
    for (lang, phrases) in [
        ("en", ["no MCP client was found", "toolhub servers add", "next:"]),
        ("zh", ["没有找到 MCP 客户端", "toolhub servers add", "接下来"]),
    ] {
        let ran = machine.run(&["init", "--lang", lang]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(phrases.iter().all(|word| ran.stdout.contains(word)), "{ran:?}");
    }
    let output = machine.run(&["init", "--all", "--yes", "--json"]).json();
    assert_eq!(output["clients"], json!([]));
    assert!(machine.files().is_empty());
}

#[test]
fn json_report_lists_changes() {
    let machine = Machine::with_clients();
    let output = machine.run(&["init", "--all", "--yes", "--json"]).json();
    assert_eq!((&output["imported"], &output["changed"]), (&json!(4), &json!(true)));
    assert_eq!(output["trial"]["success"], true, "{output}");
    assert!(output["trial"]["result"].as_str().unwrap().contains("42"));
    let cursor = &output["clients"][0];
    assert_eq!((&cursor["client"], &cursor["hub"]), (&json!("cursor"), &json!("added")));
    let actions: Vec<&Value> =
        cursor["servers"].as_array().unwrap().iter().map(|server| &server["action"]).collect();
    assert_eq!(actions, ["moved", "moved"]);
    let undone = machine.run(&["init", "--undo", "--json"]).json();
    assert_eq!((&undone["complete"], &undone["files"][0]["action"]), (&json!(true), &json!("restored")));
    assert_eq!(machine.run(&["init", "--undo", "--json"]).json()["files"], json!([]));
}

/// A program that creates a marker file when it is started.
fn marking(machine: &Machine) -> (PathBuf, PathBuf) {
    let (program, mark) = (machine.folder.path().join("mark.sh"), machine.folder.path().join("started"));
    fs::write(&program, format!("#!/bin/sh\ntouch '{}'\ncat\n", mark.display())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    (program, mark)
}

#[test]
fn init_starts_no_server() {
    let machine = Machine::new();
    let (program, mark) = marking(&machine);
    let text = json!({"mcpServers": {"m": {"command": program}}}).to_string();
    machine.write(CURSOR, &text);
    let ran = machine.run(&["init", "--all", "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("= 42") && !mark.exists(), "{ran:?}");
    assert_eq!(machine.run(&["init", "--undo"]).code, Some(0));
    assert!(!mark.exists());
    // Control: `servers test` starts the same program, which creates the marker.
    machine.run(&["init", "--all", "--yes"]);
    machine.run(&["servers", "test", "m"]);
    assert!(mark.exists());
}

#[test]
fn keeps_conflicting_or_unsupported_servers_in_their_client() {
    let machine = Machine::new();
    machine.write(
        CURSOR,
        "{\"mcpServers\": {\"same\": {\"command\": \"one\"}, \"clash\": {\"command\": \"one\"}}}\n",
    );
    machine.write(
        CLAUDE_CODE,
        "{\"mcpServers\": {\"same\": {\"command\": \"one\"}, \"clash\": {\"command\": \"two\"}, \"all\": {\"command\": \"x\"}, \"bad\": {\"neither\": 1}}}\n",
    );
    let vscode = ".config/Code/User/mcp.json";
    machine.write(
        vscode,
        "{\"inputs\": [{\"type\": \"promptString\", \"id\": \"key\"}], \"servers\": {\"ask\": {\"command\": \"npx\", \"env\": {\"K\": \"${input:key}\"}}}}\n",
    );
    let ran = machine.run(&["init", "--all", "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    // Clients are processed in a fixed order: Claude Code before Cursor.
    assert_eq!(machine.own()["clash"]["command"], "two");
    assert_eq!(json_ids(&machine.read(CURSOR)), ["clash", "toolhub"]);
    let code = json_ids(&machine.read(CLAUDE_CODE));
    assert!(code.contains(&"bad".to_owned()) && !code.contains(&"same".to_owned()), "{code:?}");
    // VS Code prompts its user for a value: the server stays in both files until that value is set.
    assert_eq!(machine.own()["ask"]["env"]["K"], "${KEY}");
    let code: Value = serde_json::from_str(&machine.read(vscode)).unwrap();
    assert_eq!(ids(&code["servers"]), ["ask", "toolhub"]);
    assert!(ran.stdout.contains("copied to toolhub") && ran.stdout.contains("KEY"), "{ran:?}");
}

#[test]
fn does_not_follow_symlinks_out_of_home() {
    let machine = Machine::with_clients();
    let outside = machine.folder.path().join("shared.json");
    fs::write(&outside, "{\"mcpServers\": {\"x\": {\"command\": \"x\"}}}").unwrap();
    fs::remove_file(machine.file(CURSOR)).unwrap();
    symlink(&outside, machine.file(CURSOR)).unwrap();
    let ran = machine.run(&["init", "--all", "--yes"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stdout.contains("shared.json") && ran.stdout.contains("not followed"), "{ran:?}");
    assert_eq!(fs::read_to_string(&outside).unwrap(), "{\"mcpServers\": {\"x\": {\"command\": \"x\"}}}");
    assert_eq!(ids(&machine.own()), ["docs", "gs"]);
    assert_eq!(machine.run(&["init", "--undo"]).code, Some(0));
    // A symbolic link within the home folder is kept, and undo does not write to a target that was changed later.
    let dotfiles = machine.file("dotfiles.json");
    fs::write(&dotfiles, CURSOR_TEXT).unwrap();
    fs::remove_file(machine.file(CURSOR)).unwrap();
    symlink(&dotfiles, machine.file(CURSOR)).unwrap();
    assert_eq!(machine.run(&["init", "--client", "cursor", "--yes"]).code, Some(0));
    assert!(machine.file(CURSOR).is_symlink());
    assert_eq!(json_ids(&fs::read_to_string(&dotfiles).unwrap()), ["toolhub"]);
    let other = machine.file("other.json");
    fs::write(&other, "{}").unwrap();
    fs::remove_file(machine.file(CURSOR)).unwrap();
    symlink(&other, machine.file(CURSOR)).unwrap();
    assert_eq!(machine.run(&["init", "--undo"]).code, Some(1));
    assert_eq!(fs::read_to_string(&other).unwrap(), "{}");
    fs::remove_file(machine.file(CURSOR)).unwrap();
    symlink(&dotfiles, machine.file(CURSOR)).unwrap();
    assert_eq!(machine.run(&["init", "--undo"]).code, Some(0));
    assert_eq!(fs::read_to_string(&dotfiles).unwrap(), CURSOR_TEXT);
}

#[test]
fn keeps_existing_hub_entry_and_server_of_its_name() {
    let machine = Machine::new();
    let own = "{\"mcpServers\": {\"hub\": {\"command\": \"toolhub\", \"args\": [\"serve\", \"--stdio\", \"--profile\", \"p\"]}}}\n";
    machine.write(CURSOR, own);
    let other = "{\"mcpServers\": {\"toolhub\": {\"command\": \"other\"}, \"x\": {\"command\": \"x\"}}}\n";
    machine.write(CLAUDE_CODE, other);
    let ran = machine.run(&["init", "--all", "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!((machine.read(CURSOR), machine.read(CLAUDE_CODE)), (own.to_owned(), other.to_owned()));
    assert!(ran.stdout.contains("in another way") && ran.stdout.contains("another server named"), "{ran:?}");
    assert!(ids(&machine.own()).contains(&"x"));
}

#[test]
fn keeps_servers_of_client_that_would_ignore_the_hub() {
    let machine = Machine::new();
    let gemini = ".gemini/settings.json";
    let text = "{\"mcp\": {\"allowed\": [\"a\"]}, \"mcpServers\": {\"a\": {\"command\": \"run-a\"}}}\n";
    machine.write(gemini, text);
    let ran = machine.run(&["init", "--all", "--yes"]);
    assert_eq!((ran.code, machine.read(gemini)), (Some(0), text.to_owned()), "{ran:?}");
    assert!(ran.stdout.contains("rule out `toolhub`"), "{ran:?}");
    assert_eq!(ids(&machine.own()), ["a"]);
    machine.write(gemini, &text.replace("[\"a\"]", "[\"a\", \"toolhub\"]"));
    assert_eq!(machine.run(&["init", "--all", "--yes"]).code, Some(0));
    assert!(machine.read(gemini).contains("serve") && !machine.read(gemini).contains("run-a"));
}

#[test]
fn import_and_connection_are_optional() {
    let machine = Machine::with_clients();
    let ran = machine.run(&["init", "--client", "cursor", "--yes", "--no-import"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(json_ids(&machine.read(CURSOR)), ["files", "api", "toolhub"]);
    assert!(!machine.file(TOOLHUB_SERVERS).exists());
    assert_eq!(machine.run(&["init", "--undo"]).code, Some(0));
    assert_eq!(machine.read(CURSOR), CURSOR_TEXT);
    let ran = machine.run(&["init", "--client", "cursor", "--yes", "--no-connect"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!((machine.read(CURSOR), ids(&machine.own()).len()), (CURSOR_TEXT.to_owned(), 2));
    assert_eq!(machine.run(&["init", "--no-import", "--no-connect"]).code, Some(2));
}

#[test]
fn creates_missing_client_file_and_undo_removes_it() {
    let machine = Machine::new();
    fs::create_dir(machine.file(".cursor")).unwrap();
    assert_eq!(machine.run(&["init", "--all", "--yes"]).code, Some(0));
    assert_eq!(json_ids(&machine.read(CURSOR)), ["toolhub"]);
    assert_eq!(machine.run(&["init", "--undo"]).code, Some(0));
    assert!(machine.files().is_empty());
}

#[test]
fn does_not_mix_project_servers_with_user_servers() {
    let machine = Machine::with_clients();
    let project = machine.folder.path().join("work");
    fs::write(project.join("toolhub.toml"), "").unwrap();
    fs::write(project.join("mcp.json"), "{\"mcpServers\": {}}").unwrap();
    fs::write(project.join(".mcp.json"), "{\"mcpServers\": {\"p\": {\"command\": \"p\"}}}").unwrap();
    assert_eq!(machine.run(&["trust", "--yes"]).code, Some(0));
    assert_eq!(machine.run(&["init", "--all", "--yes"]).code, Some(0));
    assert_eq!(fs::read_to_string(project.join("mcp.json")).unwrap(), "{\"mcpServers\": {}}");
    assert_eq!(ids(&machine.own()), ["files", "api", "docs", "gs"]);
}

/// Without an undo record nothing is changed.
#[test]
fn changes_nothing_if_record_is_not_writable() {
    let machine = Machine::with_clients();
    machine.write(RECORD, "{ broken");
    let before = machine.files();
    for args in [&["init", "--all", "--yes"][..], &["init", "--undo"], &["init", "--undo", "--lang", "zh"]] {
        let ran = machine.run(args);
        assert_eq!((ran.code, machine.files()), (Some(2), before.clone()), "{args:?} {ran:?}");
        assert!(ran.stderr.contains("init.json") && ran.stderr.contains("before"), "{args:?} {ran:?}");
    }
    let machine = Machine::with_clients();
    machine.write(".local/share/toolhub", "a file where the data folder should be");
    let before = machine.files();
    let ran = machine.run(&["init", "--all", "--yes"]);
    assert!(ran.code != Some(0) && ran.stderr.contains("toolhub"), "{ran:?}");
    assert_eq!(machine.files(), before);
}

#[test]
fn init_output_is_localized() {
    let machine = Machine::with_clients();
    let ran = machine.run(&["init", "--all", "--yes", "--lang", "zh"]);
    let output = ran.stdout.clone() + &ran.stderr;
    let phrases =
        ["已移到 toolhub", "已像客户端那样试调用", "接下来", "可撤销以上全部改动", "个客户端使用 toolhub"];
    assert!(phrases.iter().all(|word| output.contains(word)), "{ran:?}");
    let again = machine.run(&["init", "--all", "--yes", "--lang", "zh"]);
    assert!(again.stderr.contains("未改动任何文件"), "{again:?}");
    let undone = machine.run(&["init", "--undo", "--lang", "zh"]);
    assert!(undone.stdout.contains("已逐字节恢复"), "{undone:?}");
    let nothing = machine.run(&["init", "--undo", "--lang", "zh"]);
    assert!(nothing.stderr.contains("没有可撤销的内容"), "{nothing:?}");
}

/// After SIGKILL at any moment, every file has its old or its new contents, every server is in the file of a client or in
/// `mcp.json`, and undo restores everything.
#[test]
fn killed_run_can_be_undone() {
    let whole = Machine::with_clients();
    let before = whole.files();
    let began = Instant::now();
    assert_eq!(whole.run(&["init", "--all", "--yes"]).code, Some(0));
    let step = began.elapsed() / 20;
    let servers = [("files", CURSOR), ("api", CURSOR), ("docs", CODEX), ("gs", GOOSE)];
    let (mut untouched, mut finished) = (0, 0);
    for delay in 0..25 {
        let machine = Machine::with_clients();
        let mut child = machine
            .command(&["init", "--all", "--yes"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // The kills are spread over the run time; there is no event to wait for.
        std::thread::sleep(step * delay);
        if delay < 24 {
            child.kill().unwrap();
        }
        child.wait().unwrap();
        let own = fs::read_to_string(machine.file(TOOLHUB_SERVERS)).unwrap_or_default();
        for (path, text) in [(CURSOR, CURSOR_TEXT), (CODEX, CODEX_TEXT), (GOOSE, GOOSE_TEXT)] {
            let now = machine.read(path);
            let is_whole = now == text || now.contains("serve") && now.trim_end().len() > 20;
            assert!(is_whole, "{path} after {delay}: {now}");
            let kept = servers.iter().filter(|(_, file)| *file == path);
            for (id, _) in kept {
                assert!(now == text || own.contains(&format!("\"{id}\"")), "`{id}` is lost after {delay}");
            }
            if now == text {
                untouched += 1;
            } else {
                finished += 1;
            }
        }
        let undone = machine.run(&["init", "--undo"]);
        assert_eq!((undone.code, machine.files()), (Some(0), before.clone()), "after {delay}: {undone:?}");
    }
    assert!(untouched > 0 && finished > 0, "{untouched} files were not reached, {finished} were written");
}
