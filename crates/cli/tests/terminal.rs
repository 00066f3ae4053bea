//! Interactive use: the real program on a pseudo-terminal with simulated input.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::fs::File;
use std::io::{BufRead as _, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;
use toolhub_testkit::CommandLine;
use toolhub_testkit::model::{ModelServer, ScriptedReply};
use toolhub_testkit::scripted::{Journal, Script};

const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// A program on a new pseudo-terminal.
struct Session {
    child: Child,
    master: File,
    screen: Arc<(Mutex<String>, Condvar)>,
}

impl Session {
    fn start(cli: &CommandLine, args: &[&str]) -> Self {
        Self::start_at(cli, 120, args)
    }

    fn start_at(cli: &CommandLine, width: usize, args: &[&str]) -> Self {
        let master =
            rustix::pty::openpt(rustix::pty::OpenptFlags::RDWR | rustix::pty::OpenptFlags::NOCTTY).unwrap();
        rustix::pty::grantpt(&master).unwrap();
        rustix::pty::unlockpt(&master).unwrap();
        let name = rustix::pty::ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let side = || File::options().read(true).write(true).open(Path::new(&name)).unwrap();
        let mut command: Command = cli.command(args);
        command
            .env("TERM", "xterm")
            .env("COLUMNS", width.to_string())
            .stdin(side())
            .stdout(side())
            .stderr(side());
        let child = command.spawn().unwrap();
        let master = File::from(master);
        let screen = Arc::new((Mutex::new(String::new()), Condvar::new()));
        let (mut reader, transcript) = (master.try_clone().unwrap(), Arc::clone(&screen));
        std::thread::spawn(move || {
            let mut some = [0; 4096];
            while let Ok(many) = reader.read(&mut some) {
                if many == 0 {
                    break;
                }
                transcript.0.lock().unwrap().push_str(&String::from_utf8_lossy(&some[..many]));
                transcript.1.notify_all();
            }
        });
        Self { child, master, screen }
    }

    /// Waits until the terminal shows `text` after offset `from`. Returns the offset of its end.
    fn wait_for(&self, text: &str, from: usize) -> usize {
        let end = Instant::now() + TEST_TIMEOUT;
        let mut screen = self.screen.0.lock().unwrap();
        loop {
            if let Some(at) = screen.get(from..).and_then(|rest| rest.find(text)) {
                return from + at + text.len();
            }
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "`{text}` was not shown: {screen:?}");
            screen = self.screen.1.wait_timeout(screen, left).unwrap().0;
        }
    }

    fn enter(&mut self, text: &str) {
        self.master.write_all(text.as_bytes()).unwrap();
    }

    fn interrupt(&self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    }

    fn end(mut self) -> (Option<i32>, String) {
        let code = self.child.wait().unwrap().code();
        std::thread::sleep(Duration::from_millis(50));
        let screen = self.screen.0.lock().unwrap().clone();
        (code, screen)
    }
}

fn cli() -> CommandLine {
    let cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    std::fs::write(cli.folder().join("toolhub.toml"), "[llm]\nenabled = false\n").unwrap();
    cli
}

fn editor(journal: &Path) -> Script {
    let tool = json!({"name": "delete_entry", "description": "Deletes an entry of a file.",
        "annotations": {"destructiveHint": true},
        "inputSchema": {"type": "object", "required": ["path", "entry"],
            "properties": {"path": {"type": "string"}, "entry": {"type": "string"}}}});
    Script::legacy().tool(tool).journal(journal)
}

/// `toolhub init` prompts for the clients, and again before it changes a file. It needs a terminal and changes nothing without
/// a confirmation.
#[test]
fn init_asks_which_clients_and_before_it_changes_a_file() {
    let cli = cli();
    let text = "{\"mcpServers\": {\"files\": {\"command\": \"run-files\"}}}\n";
    let clients = [cli.folder().join(".cursor/mcp.json"), cli.folder().join(".claude.json")];
    std::fs::create_dir(cli.folder().join(".cursor")).unwrap();
    clients.iter().for_each(|file| std::fs::write(file, text).unwrap());
    let read = |file: &Path| std::fs::read_to_string(file).unwrap();
    for (which, agrees, code) in
        [("0\n", None, 1), ("9\n0\n", None, 1), ("2\n", Some("n\n"), 1), ("9\n2\n", Some("y\n"), 0)]
    {
        let mut session = Session::start(&cli, &["init", "--color", "never"]);
        session.wait_for("1  Claude Code", 0);
        session.wait_for("2  Cursor", 0);
        session.wait_for("Which of them should use toolhub?", 0);
        for answer in which.split_inclusive('\n') {
            session.enter(answer);
            if answer == "9\n" {
                session.wait_for("`9` is not in the list", 0);
            }
        }
        if let Some(agrees) = agrees {
            session.wait_for("to move to toolhub", 0);
            session.wait_for("Go ahead? [y/N]", 0);
            session.enter(agrees);
        }
        let (ended, screen) = session.end();
        assert_eq!(ended, Some(code), "{screen}");
        assert_eq!(read(&clients[0]).contains("toolhub"), code == 0, "{screen}");
        assert_eq!(read(&clients[1]), text, "{screen}");
    }
    let mut session =
        Session::start(&cli, &["init", "--client", "claude-code", "--lang", "zh", "--color", "never"]);
    session.wait_for("将移到 toolhub", 0);
    session.wait_for("继续吗？[y/N]", 0);
    session.enter("n\n");
    let (ended, screen) = session.end();
    assert!(ended == Some(1) && screen.contains("未做任何改动"), "{screen}");
    assert_eq!(read(&clients[1]), text);
}

const REQUEST: &str = "delete_entry path=notes.txt entry=old";

#[test]
fn confirmation_names_target_of_deletion() {
    let mut cli = cli();
    let journal = cli.folder().join("journal");
    cli.server("s", &editor(&journal));
    for (answer, calls) in [("n\n", 0), ("\n", 0), ("y\n", 1)] {
        let mut session = Session::start(&cli, &["ask", REQUEST]);
        session.wait_for("`delete_entry` will DELETE data: notes.txt", 0);
        session.wait_for("Run it? [y/N/a]", 0);
        session.enter(answer);
        let (code, screen) = session.end();
        assert_eq!(code, Some(if calls == 1 { 0 } else { 1 }), "{screen}");
        assert_eq!(Journal::read(&journal).count_method("tools/call"), calls, "{screen}");
    }
}

#[test]
fn time_at_a_confirmation_is_not_counted() {
    let mut cli = cli();
    let journal = cli.folder().join("journal");
    cli.server("s", &editor(&journal));
    // Lists the tools first, so that only the call is measured.
    assert_eq!(cli.run(&["tools"]).code, Some(0));
    let thinking = Duration::from_secs(3);
    let mut session = Session::start(&cli, &["ask", REQUEST]);
    session.wait_for("Run it? [y/N/a]", 0);
    std::thread::sleep(thinking);
    session.enter("y\n");
    let (code, screen) = session.end();
    assert_eq!(code, Some(0), "{screen}");
    let plain = anstream::adapter::strip_str(&screen).to_string();
    let step = plain.lines().find(|line| line.contains('✓')).unwrap_or_else(|| panic!("{plain}"));
    let seconds: f64 = step
        .split_whitespace()
        .rev()
        .nth(1)
        .and_then(|word| word.parse().ok())
        .unwrap_or_else(|| panic!("{step}"));
    assert!(seconds < thinking.as_secs_f64(), "{step}");
    let history = cli.run(&["history", "--json"]).json();
    let recorded = history[0]["duration_ms"].as_u64().unwrap();
    assert!(u128::from(recorded) < thinking.as_millis(), "{history}");
}

#[test]
fn answer_all_confirms_rest_of_request() {
    let call = |entry: &str| {
        ScriptedReply::text("")
            .call("delete_entry", &format!(r#"{{"path": "notes.txt", "entry": "{entry}"}}"#))
            .act()
    };
    let server = ModelServer::start([call("a"), call("b"), ScriptedReply::text("Both are gone.").act()]);
    let mut cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    let settings = format!("[llm]\nurl = \"{}/v1\"\nmodel = \"scripted\"\n", server.url);
    std::fs::write(cli.folder().join("toolhub.toml"), settings).unwrap();
    let journal = cli.folder().join("journal");
    cli.server("s", &editor(&journal));
    let mut session = Session::start(&cli, &["ask", "delete entries a and b of notes.txt"]);
    session.wait_for("Run it? [y/N/a]", 0);
    session.enter("a\n");
    let (code, screen) = session.end();
    assert_eq!(code, Some(0), "{screen}");
    assert_eq!(screen.matches("Run it?").count(), 1, "{screen}");
    assert_eq!(Journal::read(&journal).count_method("tools/call"), 2, "{screen}");
}

#[test]
fn interrupted_prompt_consumes_no_input_line() {
    let mut cli = cli();
    let journal = cli.folder().join("journal");
    cli.server("s", &editor(&journal));
    let mut session = Session::start(&cli, &["chat"]);
    let at = session.wait_for("> ", 0);
    session.enter(&format!("{REQUEST}\r"));
    let at = session.wait_for("Run it? [y/N/a]", at);
    session.interrupt();
    let at = session.wait_for("interrupted", at);
    let at = session.wait_for("> ", at);
    session.enter("23*47\r");
    let at = session.wait_for("1081", at);
    // An empty line is ignored.
    let at = session.wait_for("> ", at);
    session.enter("\r");
    let at = session.wait_for("> ", at);
    // The previous line is in the history.
    session.enter("\u{1b}[A\r");
    let at = session.wait_for("1081", at);
    session.wait_for("> ", at);
    session.enter("\u{4}");
    let (code, screen) = session.end();
    assert_eq!(code, Some(0), "{screen}");
    assert_eq!(Journal::read(&journal).count_method("tools/call"), 0, "{screen}");
}

#[test]
fn pasted_lines_form_one_request_and_history_is_stored() {
    let cli = cli();
    let mut session = Session::start(&cli, &["chat"]);
    let at = session.wait_for("> ", 0);
    session.enter("\u{1b}[200~what is\n23*47\u{1b}[201~\r");
    let at = session.wait_for("1081", at);
    session.wait_for("> ", at);
    session.enter("/quit\r");
    assert_eq!(session.end().0, Some(0));
    let mut session = Session::start(&cli, &["chat"]);
    let at = session.wait_for("> ", 0);
    // Two lines up: `/quit` was the last one.
    session.enter("\u{1b}[A\u{1b}[A\r");
    session.wait_for("1081", at);
    session.enter("/quit\r");
    assert_eq!(session.end().0, Some(0));
}

/// A server that requests input during its calls.
fn asking() -> Script {
    let form = json!({"method": "elicitation/create", "params": {"message": "Who are you?",
        "requestedSchema": {"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string", "title": "Your name"}, "age": {"type": "integer"}}}}});
    let address = json!({"method": "elicitation/create", "params": {"mode": "url", "message": "Sign in.",
        "url": "https://example.com/login", "elicitationId": "1"}});
    Script::legacy()
        .plain_tool("form")
        .plain_tool("visit")
        .on("tools/call:form", json!([{"request": form}, {"answer": true}]))
        .on("tools/call:visit", json!([{"request": address}, {"answer": true}]))
}

#[test]
fn prompts_for_elicitation_forms_and_urls() {
    let mut cli = cli();
    cli.server("s", &asking());
    answer_questions(&cli);
}

/// The server belongs to `toolhub serve`; its requests for input appear at the terminal of the call.
#[test]
fn elicitations_through_running_hub_prompt_at_calling_terminal() {
    let mut cli = cli();
    let journal = cli.folder().join("journal");
    cli.server("s", &asking().journal(&journal));
    let mut serving = cli.command(&["serve", "--json", "--bind", "127.0.0.1:0"]).spawn().unwrap();
    let mut line = String::new();
    std::io::BufReader::new(serving.stdout.take().unwrap()).read_line(&mut line).unwrap();
    answer_questions(&cli);
    assert_eq!(Journal::read(&journal).pids().len(), 1, "the hub's process alone");
    assert!(Command::new("kill").arg(serving.id().to_string()).status().unwrap().success());
    assert_eq!(serving.wait().unwrap().code(), Some(0));
}

fn answer_questions(cli: &CommandLine) {
    let mut session = Session::start(cli, &["call", "form"]);
    session.wait_for("Who are you?", 0);
    let at = session.wait_for("Your name", 0);
    session.enter("Ann\n");
    session.wait_for("age (integer, optional)", at);
    session.enter("33\n");
    let (code, screen) = session.end();
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains(r#""name":"Ann""#) && screen.contains(r#""age":33"#), "{screen}");
    let mut session = Session::start(cli, &["call", "visit"]);
    session.wait_for("https://example.com/login", 0);
    session.wait_for("Open this address? [y/N]", 0);
    session.enter("n\n");
    let (_, screen) = session.end();
    assert!(screen.contains("decline"), "{screen}");
    // Without a terminal the error explains how to answer.
    let ran = cli.run(&["call", "form"]);
    assert!(ran.stderr.contains("run the command at a terminal to answer"), "{ran:?}");
}

/// The output of a command on a terminal of this width.
fn shown_at(cli: &CommandLine, width: usize, args: &[&str]) -> Vec<String> {
    let session = Session::start_at(cli, width, args);
    let (code, screen) = session.end();
    assert_eq!(code, Some(0), "{screen}");
    let plain = anstream::adapter::strip_str(&screen).to_string();
    plain.lines().map(|line| line.trim_end().to_owned()).collect()
}

#[test]
fn tables_fit_narrow_terminals_without_truncation() {
    let mut cli = cli();
    let long = "read_data_from_a_rather_long_tool_name";
    let description =
        "Reads the cells of a range, and says for each of them what it holds and how it is shown.";
    let tool = json!({"name": long, "description": description, "inputSchema": {"type": "object"}});
    cli.server("spreadsheet-server", &Script::legacy().tool(tool));
    cli.entry("gone", json!({"command": "toolhub-test-none"}));
    assert_eq!(cli.run(&["call", long, "--source", "spreadsheet-server"]).code, Some(0));
    cli.run(&["servers", "test", "gone"]);
    let record = cli.run(&["history", "--json"]).json()[0]["id"].as_str().unwrap().to_owned();
    for width in [60, 80] {
        for args in [&["tools", "--cached"][..], &["servers"], &["history"], &["stats"]] {
            let screen = shown_at(&cli, width, &[args, &["--quiet"]].concat());
            let wide: Vec<&String> = screen
                .iter()
                .filter(|line| unicode_width::UnicodeWidthStr::width(line.as_str()) > width)
                .collect();
            assert!(wide.is_empty(), "{args:?} at {width}: {wide:#?}");
            let all = screen.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
            let essential: &[&str] = match args[0] {
                "servers" => &["spreadsheet-server", "install it, or give its full path"],
                "history" => &[long, &record, "ok"],
                _ => &[long, "spreadsheet-server"],
            };
            assert!(essential.iter().all(|text| all.contains(text)), "{args:?} at {width}: {screen:#?}");
        }
    }
    let counted = cli.run(&["stats"]);
    assert!(counted.stderr.contains("1 attempt of 1 tool,"), "{counted:?}");
    let listed = cli.run(&["tools", "--cached", "--source", "spreadsheet-server"]);
    assert!(listed.stderr.contains("1 tool from 1 source"), "{listed:?}");
}

#[test]
fn sheet_cells_print_as_table_only_on_terminal() {
    let mut cli = cli();
    let cell = |value: &str, row: u64, column: u64| {
        json!({"address": "x", "value": value, "row": row, "column": column,
            "validation": {"has_validation": false}})
    };
    let cells = [cell("City", 1, 1), cell("Sales", 1, 2), cell("Kyoto", 2, 1), cell("12", 2, 2)];
    let answer = json!({"range": "A1:B2", "sheet_name": "S", "cells": cells}).to_string();
    cli.server("s", &Script::legacy().plain_tool("read").on("tools/call:read", json!([{"text": answer}])));
    let screen = shown_at(&cli, 80, &["call", "read", "--quiet"]);
    assert!(screen.iter().any(|line| line == "1  City   Sales"), "{screen:#?}");
    assert_eq!(cli.run(&["call", "read"]).stdout.trim_end(), answer, "a pipe gets what the tool gave");
}

/// A script may ask for several confirmations at once. They are shown one after another, so that each answer belongs to the
/// question above it.
#[test]
fn confirmations_of_a_script_are_asked_one_after_another() {
    let entries = ["kept-1", "gone-2", "kept-3", "gone-4"];
    let code = format!(
        "return (await Promise.allSettled({entries:?}.map((entry) => tools.s.delete_entry({{ path: 'notes.txt', entry }})))).length"
    );
    let script = ScriptedReply::text("").call("run_script", &json!({ "code": code }).to_string()).act();
    let server = ModelServer::start([script, ScriptedReply::text("Done.").act()]);
    let mut cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    let settings = format!("[llm]\nurl = \"{}/v1\"\nmodel = \"scripted\"\n", server.url);
    std::fs::write(cli.folder().join("toolhub.toml"), settings).unwrap();
    let journal = cli.folder().join("journal");
    cli.server("s", &editor(&journal));
    let mut session =
        Session::start(&cli, &["-v", "ask", "--mode", "code", "delete some entries of notes.txt"]);
    let mut seen = 0;
    for _ in entries {
        let asked = session.wait_for("Run it? [y/N/a]", seen);
        let screen = session.screen.0.lock().unwrap().clone();
        let question = &screen[seen..asked];
        // Exactly one question is open.
        assert_eq!(question.matches("will DELETE data").count(), 1, "{question}");
        let (_, question) = question.split_once("will DELETE data").unwrap();
        let answer = if question.contains("gone-") { "y\n" } else { "n\n" };
        seen = asked;
        session.enter(answer);
    }
    let (code, screen) = session.end();
    assert_eq!(code, Some(0), "{screen}");
    let calls = Journal::read(&journal);
    let mut deleted: Vec<String> = calls
        .messages()
        .iter()
        .filter(|message| message["method"] == "tools/call")
        .map(|call| call["params"]["arguments"]["entry"].as_str().unwrap().to_owned())
        .collect();
    deleted.sort_unstable();
    assert_eq!(deleted, ["gone-2", "gone-4"], "{screen}");
}
