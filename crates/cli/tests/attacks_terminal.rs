//! Attacks on the terminal: servers and skills whose texts all contain control characters, with the real program on a
//! pseudo-terminal. Their texts must not control the terminal, hide content, or imitate output of the program.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde_json::json;
use toolhub_testkit::CommandLine;
use toolhub_testkit::scripted::Script;

/// Inserted into every text: clear screen, set title, C1, backspace, carriage return, bidi, zero width, unusual line breaks, a
/// forged style of the program, and a second line that imitates a success message.
const HOSTILE: &str = "x\u{1b}[2J\u{1b}]0;pwned\u{7}\u{9b}31m\u{8}\u{7f}\rback\u{202e}rtl\u{2066}\u{200b}zero\u{2028}sep\u{2029}\u{fdd0}g\n\u{1b}[32m✓\u{1b}[0m all good";

fn server() -> Script {
    let hostile = |name: &str| format!("{name} {HOSTILE}");
    Script::legacy()
        .set("name", hostile("server"))
        .set("instructions", hostile("instructions"))
        .set("stderr", [hostile("stderr"), hostile("second")])
        .set("capabilities", json!({"tools": {}, "resources": {}, "prompts": {}}))
        .plain_tool("plain")
        .tool(json!({
            "name": format!("evil{HOSTILE}"),
            "title": hostile("title"),
            "description": hostile("description"),
            "inputSchema": {"type": "object", "properties": {(hostile("argument")): {"type": "string", "description": hostile("of")}}},
        }))
        .tool(json!({
            "name": "shown", "title": hostile("title"), "description": hostile("description"),
            "inputSchema": {"type": "object", "properties": {"a": {"type": "string", "description": hostile("of"), "enum": [hostile("value")]}}},
        }))
        .plain_tool("failing")
        .plain_tool("refusing")
        .on("tools/call:failing", [json!({"tool_error": hostile("failed")})])
        .on("tools/call:refusing", [json!({"error": {"code": -32000, "message": hostile("refused"), "data": hostile("data")}})])
        .on("tools/call:plain", [json!({"stderr": hostile("late")}), json!({"text": hostile("result")})])
        .on("resources/list", [json!({"reply": {"resources": [{"uri": hostile("uri:x"), "name": hostile("resource"), "description": hostile("d")}]}})])
        .on("prompts/list", [json!({"reply": {"prompts": [{"name": hostile("prompt"), "description": hostile("d")}]}})])
}

fn cli() -> CommandLine {
    let mut cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    cli.server("bad", &server());
    let broken = Script::legacy()
        .set("stderr", [format!("dying {HOSTILE}")])
        .on("initialize", [json!({"error": {"code": -32603, "message": format!("no {HOSTILE}")}})]);
    cli.server("broken", &broken);
    let skills = cli.folder().join(".claude/skills/evil");
    std::fs::create_dir_all(&skills).unwrap();
    let description = serde_json::to_string(&format!("A skill {HOSTILE}")).unwrap();
    std::fs::write(
        skills.join("SKILL.md"),
        format!("---\nname: evil\ndescription: {description}\nlicense: {description}\n---\n# Title\nbody\u{1b}[2J\u{202e}\u{9b}1m\n"),
    )
    .unwrap();
    std::fs::write(skills.join("file\u{1b}[2J\n\u{1b}[32m✓ name.md"), "text").unwrap();
    cli
}

/// Runs the program on a new pseudo-terminal and returns its output.
fn on_terminal(cli: &CommandLine, args: &[&str]) -> String {
    let master =
        rustix::pty::openpt(rustix::pty::OpenptFlags::RDWR | rustix::pty::OpenptFlags::NOCTTY).unwrap();
    rustix::pty::grantpt(&master).unwrap();
    rustix::pty::unlockpt(&master).unwrap();
    let name = rustix::pty::ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let side = || File::options().read(true).write(true).open(Path::new(&name)).unwrap();
    let mut command = cli.command(args);
    command.env("TERM", "xterm").env("COLUMNS", "120").stdout(side()).stderr(side());
    let mut child = command.spawn().unwrap();
    // Closes the parent's copies of the terminal.
    drop(command);
    let mut master = File::from(master);
    let reading = std::thread::spawn(move || {
        let (mut all, mut some) = (Vec::new(), [0; 4096]);
        // The kernel reports the closed terminal as an error (EIO).
        while let Ok(many) = master.read(&mut some) {
            if many == 0 {
                break;
            }
            all.extend_from_slice(&some[..many]);
        }
        String::from_utf8_lossy(&all).into_owned()
    });
    child.wait().unwrap();
    reading.join().unwrap()
}

/// Removes the sequences that the program itself writes: colours, and the transient status line.
fn without_own(text: &str) -> String {
    let mut text = text.replace("\r\n", "\n").replace("\r\u{1b}[K", "");
    for code in ["0", "1", "2", "31", "32", "33", "36", "4", "1;4"] {
        text = text.replace(&format!("\u{1b}[{code}m"), "");
    }
    text
}

/// Asserts that no foreign text controls the terminal, hides content, or starts a line with a success message.
fn is_harmless(args: &[&str], output: &str) {
    // A colour sent by a server directly before the sign would look like output of the program.
    assert!(!output.contains("\u{1b}[32m✓\u{1b}[0m all good"), "{args:?}: {output}");
    let plain = without_own(output);
    for (at, character) in plain.char_indices() {
        let steers = (character.is_control() && !matches!(character, '\n' | '\t'))
            || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200b}' | '\u{2028}' | '\u{2029}' | '\u{fdd0}');
        let context: String =
            plain[..at].chars().rev().take(60).collect::<Vec<_>>().into_iter().rev().collect();
        assert!(!steers, "{args:?} writes {character:?} after {context:?}");
    }
    assert!(
        !plain.lines().any(|line| line.starts_with('✓') && line.contains("all good")),
        "{args:?}: {plain}"
    );
}

const COMMANDS: &[&[&str]] = &[
    &["servers", "test"],
    &["servers", "test", "bad"],
    &["servers", "test", "broken"],
    &["doctor"],
    &["servers", "list"],
    &["servers", "list", "-v"],
    &["servers", "refresh"],
    &["servers", "logs", "bad"],
    &["servers", "logs", "broken"],
    &["tools"],
    &["tools", "list", "--refresh"],
    &["tools", "show", "shown"],
    &["tools", "search", "description"],
    &["tools", "diff", "shown"],
    &["tools", "approve"],
    &["explain", "shown"],
    &["call", "plain"],
    &["call", "failing"],
    &["call", "refusing"],
    &["call", "shown", "a=wrong"],
    &["call", "shown", "\u{1b}[2J=1"],
    &["call", "no\u{1b}[2Jsuch"],
    &["--trace", "call", "failing"],
    &["result", "last"],
    &["skills", "list"],
    &["skills", "list", "--servers"],
    &["skills", "show", "evil"],
    &["skills", "validate", ".claude/skills/evil"],
    &["history"],
    &["history", "--json"],
    &["stats"],
    &["prompt"],
    &["recommend", "description"],
    &["servers", "test", "--json"],
    &["tools", "--json"],
    &["call", "plain", "--json"],
    &["servers", "offers", "bad"],
    &["doctor", "--json"],
];

#[test]
fn every_command_escapes_control_sequences() {
    let cli = cli();
    for args in COMMANDS {
        let output = on_terminal(&cli, args);
        assert!(!output.is_empty(), "{args:?} writes nothing");
        is_harmless(args, &output);
    }
    // The colours of the program are kept, and hostile characters are shown escaped.
    let output = on_terminal(&cli, &["--color", "always", "servers", "test", "bad"]);
    assert!(output.contains("\u{1b}[32m✓\u{1b}[0m \u{1b}[36mbad\u{1b}[0m"), "{output:?}");
    let output = on_terminal(&cli, &["tools", "show", "shown"]);
    assert!(output.contains("<U+001B>[2J") && output.contains("<U+202E>"), "{output:?}");
    // JSON on a terminal still parses to the same value.
    let output = on_terminal(&cli, &["call", "plain", "--json"]).replace("\r\n", "\n");
    let start = output.find('{').unwrap();
    let value: serde_json::Value = serde_json::from_str(output[start..].trim()).unwrap();
    assert!(value["result"].as_str().unwrap().contains(HOSTILE), "{value}");
}

#[test]
fn escapes_messages_in_pipes_and_keeps_result_bytes() {
    let cli = cli();
    for args in COMMANDS {
        let ran = cli.run(args);
        is_harmless(args, &ran.stderr);
    }
    let ran = cli.run(&["call", "plain"]);
    assert!(ran.stdout.contains(&format!("result {HOSTILE}")), "{ran:?}");
    let ran = cli.run(&["call", "plain", "--json"]);
    assert!(ran.json()["result"].as_str().unwrap().contains(HOSTILE), "{ran:?}");
}

/// Only the sanitizing writer may be used: no other file of the command line opens the standard streams to write text for
/// users.
#[test]
fn only_screen_module_writes_to_standard_streams() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    // Exceptions: the stdio protocol, JSON that is escaped there, and errors of command line parsing.
    let known =
        ["render/screen.rs", "commands/serve/stdio.rs", "commands/text/parse.rs", "args/usage_error.rs"];
    let mut writers = Vec::new();
    for file in rust_files(&folder) {
        let text = std::fs::read_to_string(&file).unwrap();
        let writes = ["stdout().lock()", "stderr().lock()", "anstream::std", "print!", "println!"];
        if writes.iter().any(|write| text.contains(write)) {
            writers.push(file.strip_prefix(&folder).unwrap().to_str().unwrap().to_owned());
        }
    }
    writers.sort();
    let mut known = known.map(str::to_owned);
    known.sort();
    assert_eq!(writers, known, "files that write to the standard streams");
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
    files
}
