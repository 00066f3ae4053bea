//! Builds and runs the programs in `examples/`; the model of the agent is scripted.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::SystemTime;

use serde_json::json;
use toolhub_testkit::CommandOutput;
use toolhub_testkit::model::{ModelServer, ScriptedReply};

const PROGRAMS: [&str; 3] = ["embed", "tool", "agent"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The folder of the built examples. They are built here if `cargo test` did not: `--test examples` builds none.
fn built() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let test = std::env::current_exe().unwrap();
        let profile = test.parent().unwrap().parent().unwrap().to_owned();
        let folder = profile.join("examples");
        let sources = newest(&root().join("examples")).max(newest_of_the_library());
        let is_current = |name: &&str| Some(folder.join(name)).and_then(modified) >= sources;
        if !PROGRAMS.iter().all(is_current) {
            let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
            // With the whole workspace, dependencies have the features of `cargo test --workspace`, and are not compiled again.
            cargo.current_dir(root()).args(["build", "--quiet", "--workspace", "--target-dir"]);
            cargo.arg(profile.parent().unwrap());
            for name in PROGRAMS {
                cargo.args(["--example", name]);
            }
            if profile.file_name().is_some_and(|name| name != "debug") {
                cargo.arg("--profile").arg(profile.file_name().unwrap());
            }
            assert!(cargo.status().unwrap().success());
        }
        folder
    })
}

fn modified(path: impl AsRef<Path>) -> Option<SystemTime> {
    fs::metadata(path).ok()?.modified().ok()
}

/// When the newest file below a folder was changed.
fn newest(folder: &Path) -> Option<SystemTime> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter_map(|path| if path.is_dir() { newest(&path) } else { modified(path) }).max()
}

/// When the sources of the crates that the library is made of were last changed.
fn newest_of_the_library() -> Option<SystemTime> {
    let crates = fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let parts = crates.filter(|path| !path.ends_with("cli") && !path.ends_with("testkit"));
    parts
        .map(|path| path.join("src"))
        .filter(|sources| sources.is_dir())
        .filter_map(|path| newest(&path))
        .max()
}

/// A command with a temporary home folder.
fn command(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(root())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home)
        .env("LANG", "C.UTF-8")
        .stdin(Stdio::null());
    command
}

fn ran(command: &mut Command) -> CommandOutput {
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    CommandOutput { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

fn example(name: &str, home: &Path) -> Command {
    command(&built().join(name), home)
}

fn toolhub(home: &Path, args: &[&str]) -> CommandOutput {
    ran(command(Path::new(env!("CARGO_BIN_EXE_toolhub")), home).args(args))
}

#[test]
fn library_example_calls_tool_and_rejects_invalid_arguments() {
    let home = tempfile::tempdir().unwrap();
    let output = ran(&mut example("embed", home.path()));
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(
        output.stdout.contains("tools in the catalog") && output.stdout.contains("calculate: 12\n"),
        "{output:?}"
    );
    assert!(output.stdout.contains("refused: ") && output.stdout.contains("expresion"), "{output:?}");
}

#[test]
fn function_example_works_as_tool() {
    let home = tempfile::tempdir().unwrap();
    let output = ran(&mut example("tool", home.path()));
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "Kyoto: sunny for 3 days\n"), "{output:?}");
}

#[test]
fn agent_example_uses_model_or_prints_setup() {
    let home = tempfile::tempdir().unwrap();
    let none = ran(&mut example("agent", home.path()));
    assert_eq!(none.code, Some(2), "{none:?}");
    assert!(none.stderr.contains("OPENAI_BASE_URL") && none.stderr.contains("ollama"), "{none:?}");
    let call = ScriptedReply::text("").call("calculate", r#"{"expression": "5 miles in km"}"#).act();
    let server = ModelServer::start(vec![call, ScriptedReply::text("5 miles are 8.04672 km.").act()]);
    let url = format!("{}/v1", server.url);
    let output = ran(example("agent", home.path())
        .arg("how many km are 5 miles?")
        .env("OPENAI_BASE_URL", url)
        .env("OPENAI_MODEL", "scripted"));
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(output.stdout, "called calculate\n5 miles are 8.04672 km.\n", "{output:?}");
}

#[test]
fn gateway_example_offers_its_profile() {
    let home = tempfile::tempdir().unwrap();
    let config = ["--config", "toolhub.toml"];
    let gateway = |args: &[&str]| {
        let mut command = command(Path::new(env!("CARGO_BIN_EXE_toolhub")), home.path());
        command.current_dir(root().join("examples/gateway")).args(config).args(args);
        command
    };
    let listed = ran(&mut gateway(&["servers", "test"]));
    assert_eq!(listed.code, Some(0), "{listed:?}");
    let requests = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
            "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}),
        json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call",
            "params": {"name": "get_stock", "arguments": {"item": "bolts"}}}),
    ];
    let input = home.path().join("requests");
    fs::write(&input, requests.iter().map(|request| format!("{request}\n")).collect::<String>()).unwrap();
    let mut serve = gateway(&["serve", "--stdio", "--profile", "warehouse"]);
    let output = ran(serve.stdin(fs::File::open(input).unwrap()));
    assert_eq!(output.code, Some(0), "{output:?}");
    let answer = |id: u64| {
        let lines =
            output.stdout.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        lines.into_iter().find(|line| line["id"] == id).unwrap_or_else(|| panic!("{output:?}"))
    };
    let tools = answer(2)["result"]["tools"].clone();
    let mut names: Vec<&str> =
        tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["calculate", "get_stock", "list_items"]);
    assert!(tools.to_string().contains("in our warehouse"), "{tools}");
    assert!(answer(3).to_string().contains("340"), "{output:?}");
}

#[test]
fn skill_example_runs_its_script() {
    let home = tempfile::tempdir().unwrap();
    let skills = home.path().join(".config/toolhub/skills/csv-summary");
    for folder in ["", "scripts", "references"] {
        fs::create_dir_all(skills.join(folder)).unwrap();
        for entry in fs::read_dir(root().join("examples/skills/csv-summary").join(folder)).unwrap().flatten()
        {
            if entry.path().is_file() {
                fs::copy(entry.path(), skills.join(folder).join(entry.file_name())).unwrap();
            }
        }
    }
    let approved = toolhub(home.path(), &["skills", "approve", "csv-summary", "--yes"]);
    assert_eq!(approved.code, Some(0), "{approved:?}");
    let output = toolhub(home.path(), &["skills", "validate", "examples/skills/csv-summary"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let table = home.path().join("work/table.csv");
    fs::create_dir(home.path().join("work")).unwrap();
    fs::write(&table, "item,count\nbolts,340\nscrews,1200\n").unwrap();
    let mut run = command(Path::new(env!("CARGO_BIN_EXE_toolhub")), home.path());
    let output = ran(run.current_dir(home.path().join("work")).args([
        "skills",
        "run",
        "csv-summary",
        "summarise_csv",
        "path=table.csv",
    ]));
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stdout.contains("count") && output.stdout.contains("1200"), "{output:?}");
}

/// The table in the README of the examples lists every example.
#[test]
fn documentation_lists_every_example() {
    let page = fs::read_to_string(root().join("examples/README.md")).unwrap();
    for entry in fs::read_dir(root().join("examples")).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        let heads = page.matches(&format!("]({name}")).count();
        assert!(name == "README.md" || heads >= 2, "`{name}` is not named in both languages");
    }
}
