//! The first contact of a new user: `toolhub` without arguments, servers added by a relative path, and the notice about an
//! untrusted folder.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolhub_testkit::CommandOutput;

/// A home folder and a working folder, without a config.
struct Machine {
    folder: tempfile::TempDir,
}

impl Machine {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("user")).unwrap();
        fs::create_dir(folder.path().join("work")).unwrap();
        Self { folder }
    }

    fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    fn command(&self, folder: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolhub"));
        command
            .current_dir(folder)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.folder.path().join("user"))
            .env("LANG", "C.UTF-8")
            .args(args)
            .stdin(Stdio::null());
        command
    }

    fn run_in(&self, folder: &Path, args: &[&str]) -> CommandOutput {
        let output = self.command(folder, args).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        CommandOutput { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    fn run(&self, args: &[&str]) -> CommandOutput {
        self.run_in(&self.work(), args)
    }

    fn servers(&self) -> Value {
        let file = self.folder.path().join("user/.config/toolhub/mcp.json");
        serde_json::from_str::<Value>(&fs::read_to_string(file).unwrap()).unwrap()["mcpServers"].clone()
    }

    /// A program that creates a marker file when it is started.
    fn marking_program(&self) -> (String, PathBuf) {
        let (program, mark) = (self.folder.path().join("mark.sh"), self.folder.path().join("started"));
        fs::write(&program, format!("#!/bin/sh\ntouch '{}'\ncat\n", mark.display())).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        (program.to_str().unwrap().to_owned(), mark)
    }
}

/// The server of the examples.
const STOCK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/servers/stock.py");

#[test]
fn bare_command_suggests_init_without_configuration() {
    let machine = Machine::new();
    for lang in ["en", "zh"] {
        let ran = machine.run(&["--lang", lang]);
        let commands: Vec<&str> =
            ran.stdout.lines().filter(|line| line.trim_start().starts_with("toolhub ")).skip(1).collect();
        assert!(commands[0].trim_start().starts_with("toolhub init"), "{ran:?}");
    }
    let output = machine.run(&["--json"]).json();
    assert_eq!((&output["configured"], &output["next"][0]), (&json!(false), &json!("toolhub init")));
    assert!(!machine.folder.path().join("user/.config").exists(), "looking makes no config");
}

#[test]
fn bare_command_shows_status_and_starts_nothing() {
    let machine = Machine::new();
    let (program, mark) = machine.marking_program();
    let added = machine.run(&["servers", "add", "stock", "python3", STOCK]);
    assert_eq!(added.code, Some(0), "{added:?}");
    assert_eq!(machine.run(&["servers", "add", "m", "--no-test", &program]).code, Some(0));
    assert_eq!(machine.run(&["call", "get_stock", "item=bolts"]).code, Some(0));
    let _ = fs::remove_file(&mark);
    for (lang, phrases) in [
        (
            "en",
            [
                "servers (2)",
                "ready",
                "new",
                "last calls",
                "get_stock",
                "hub: not running",
                "next",
                "toolhub servers test",
            ],
        ),
        (
            "zh",
            [
                "服务器（2）",
                "就绪",
                "未连接过",
                "最近的调用",
                "get_stock",
                "hub：未运行",
                "接下来",
                "toolhub servers test",
            ],
        ),
    ] {
        let ran = machine.run(&["--lang", lang]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(phrases.iter().all(|word| ran.stdout.contains(word)), "{}", ran.stdout);
    }
    let output = machine.run(&["--json"]).json();
    assert_eq!(output["tools"]["servers"], 3, "{output}");
    assert_eq!((&output["configured"], &output["running_hubs"]), (&json!(true), &json!(0)));
    assert_eq!(output["calls"][0]["tool"], "get_stock");
    let states: Vec<&Value> =
        output["servers"].as_array().unwrap().iter().map(|server| &server["state"]).collect();
    assert_eq!(states, ["ready", "new"]);
    assert!(!mark.exists(), "a server was started");
}

#[test]
fn bare_command_reports_unreadable_config() {
    let machine = Machine::new();
    let file = machine.folder.path().join("user/.config/toolhub/toolhub.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "nonsense = [").unwrap();
    let ran = machine.run(&[]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("toolhub.toml"), "{ran:?}");
}

#[test]
fn bare_command_reports_running_hub() {
    let machine = Machine::new();
    machine.run(&["servers", "add", "stock", "--no-test", "python3", STOCK]);
    let mut serving = machine
        .command(&machine.work(), &["serve", "--bind", "127.0.0.1:0", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(serving.stdout.take().unwrap()), &mut line)
        .unwrap();
    let output = machine.run(&["--json"]).json();
    let text = machine.run(&[]);
    serving.kill().unwrap();
    serving.wait().unwrap();
    assert_eq!(output["running_hubs"], 1, "{output}");
    assert!(text.stdout.contains("hub: running (1)"), "{text:?}");
}

#[test]
fn servers_add_makes_relative_paths_absolute() {
    let machine = Machine::new();
    let scripts = machine.work().join("servers");
    fs::create_dir(&scripts).unwrap();
    fs::copy(STOCK, scripts.join("stock.py")).unwrap();
    fs::write(machine.work().join("stdio"), "").unwrap();
    let added = machine.run(&["servers", "add", "stock", "python3", "servers/stock.py"]);
    assert_eq!(added.code, Some(0), "{added:?}");
    let full_path = scripts.join("stock.py").canonicalize().unwrap();
    assert_eq!(machine.servers()["stock"]["args"], json!([full_path]));
    assert!(added.stderr.contains("is kept as"), "{added:?}");
    // From another folder, without the cached list.
    let other = machine.folder.path().join("user");
    let tested = machine.run_in(&other, &["servers", "test", "stock"]);
    assert_eq!(tested.code, Some(0), "{tested:?}");
    // Arguments of the program are not changed even if a file has the same name; nor are options, nor anything if a folder is
    // given.
    machine.run(&[
        "servers",
        "add",
        "words",
        "--no-test",
        "run",
        "stdio",
        "--file=servers/stock.py",
        "absent/x.py",
        ".",
    ]);
    let work = machine.work().canonicalize().unwrap();
    assert_eq!(
        machine.servers()["words"]["args"],
        json!(["stdio", "--file=servers/stock.py", "absent/x.py", work])
    );
    machine.run(&["servers", "add", "there", "--no-test", "--cwd", "servers", "python3", "stock.py"]);
    assert_eq!(machine.servers()["there"]["args"], json!(["stock.py"]));
    let chinese =
        machine.run(&["servers", "add", "zh", "--no-test", "--lang", "zh", "python3", "servers/stock.py"]);
    assert!(chinese.stderr.contains("保存为"), "{chinese:?}");
}

#[test]
fn untrusted_folder_note_names_programs_and_appears_once() {
    let machine = Machine::new();
    for file in ["LICENSE-MIT", "LICENSE-APACHE", "README.md"] {
        fs::write(machine.work().join(file), "").unwrap();
    }
    let note = "in an empty folder";
    let added = machine.run(&["servers", "add", "stock", "python3", STOCK]);
    assert!(!added.stderr.contains(note), "{added:?}");
    fs::write(machine.work().join("Makefile"), "").unwrap();
    fs::write(machine.work().join("package.json"), "{}").unwrap();
    for args in [
        &["servers", "add", "stock", "--replace", "python3", STOCK][..],
        &["servers", "test"],
        &["call", "get_stock", "item=bolts"],
        &["doctor"],
    ] {
        let ran = machine.run(args);
        let output = ran.stdout.clone() + &ran.stderr;
        assert_eq!(output.matches(note).count(), 1, "{args:?} {ran:?}");
        assert!(output.contains("`package.json`") && !output.contains("LICENSE"), "{args:?} {ran:?}");
    }
    // No server is started.
    for args in
        [&["tools"][..], &["call", "calculate", "expression=1"], &["servers", "list"], &["history"], &[]]
    {
        let ran = machine.run(args);
        assert!(!(ran.stdout.clone() + &ran.stderr).contains(note), "{args:?} {ran:?}");
    }
}

#[test]
fn running_hub_prints_untrusted_folder_note_once_across_reloads() {
    let machine = Machine::new();
    fs::write(machine.work().join("package.json"), "{}").unwrap();
    let add = |id: &str| machine.run(&["servers", "add", id, "--no-test", "--quiet", "python3", STOCK]);
    add("one");
    let log = machine.folder.path().join("log");
    let mut serving = machine
        .command(&machine.work(), &["serve", "--bind", "127.0.0.1:0", "--json"])
        .stdout(Stdio::piped())
        .stderr(fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(serving.stdout.take().unwrap()), &mut line)
        .unwrap();
    // The routing changes: the same servers start in the same folder, so that no new notice is printed. If the hub reads a
    // change as part of its first configuration, no reload happens, so the file is changed until one does.
    let settings = machine.folder.path().join("user/.config/toolhub/toolhub.toml");
    let mut log_text = String::new();
    for batch in 4..20 {
        if log_text.contains("routing reloaded") {
            break;
        }
        fs::write(&settings, format!("[routing]\nbatch = {batch}\n")).unwrap();
        let end = Instant::now() + Duration::from_secs(3);
        while !log_text.contains("routing reloaded") && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(50));
            log_text = fs::read_to_string(&log).unwrap();
        }
    }
    serving.kill().unwrap();
    serving.wait().unwrap();
    assert!(log_text.contains("routing reloaded"), "{log_text}");
    assert_eq!(log_text.matches("in an empty folder").count(), 1, "{log_text}");
}
