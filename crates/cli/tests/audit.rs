//! The audit log on the command line: on or off, verified, exported, and tampering found.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed expectation fails the test with its message"
)]

use std::fs;

use serde_json::{Value, json};
use toolhub_testkit::CommandLine;
use toolhub_testkit::scripted::Script;

fn cli(settings: &str) -> CommandLine {
    let cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    fs::write(cli.folder().join("toolhub.toml"), settings).unwrap();
    cli
}

fn records(cli: &CommandLine, more: &[&str]) -> Vec<Value> {
    let ran = cli.run(&[&["audit", "show", "--json"], more].concat());
    ran.json().as_array().unwrap_or_else(|| panic!("{ran:?}")).clone()
}

#[test]
fn calls_and_changes_are_recorded_and_verified() {
    let cli = cli("[audit]\nenabled = true\nkeep = \"30d\"\n");
    for expression in ["1+1", "2+2", "1/0"] {
        cli.run(&["call", "calculate", &format!("expression={expression}")]);
    }
    let made = cli.run(&["keys", "new", "ci", "--json"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let all = records(&cli, &[]);
    let kinds: Vec<&str> = all.iter().map(|record| record["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["key_change", "call", "call", "call"], "newest first: {all:?}");
    assert_eq!(records(&cli, &["--kind", "call", "--by", "local", "-n", "2"]).len(), 2);
    let without_show = cli.run(&["audit", "-n", "2", "--kind", "call", "--json"]);
    assert_eq!(without_show.json().as_array().map(Vec::len), Some(2), "{without_show:?}");
    let misplaced = cli.run(&["audit", "-n", "2", "verify"]);
    assert!(misplaced.code == Some(2) && misplaced.stderr.contains("audit show -n 5"), "{misplaced:?}");
    assert_eq!(cli.run(&["audit", "--json", "verify"]).json()["intact"], true);
    let reference = all[1]["reference"].as_str().unwrap();
    assert_eq!(records(&cli, &["--reference", reference]).len(), 1);
    // Neither the key nor the arguments are in the log.
    let export = cli.folder().join("audit.jsonl");
    let exported = cli.run(&["audit", "export", export.to_str().unwrap()]);
    assert_eq!(exported.code, Some(0), "{exported:?}");
    let text = fs::read_to_string(&export).unwrap();
    assert!(!text.contains(made.json()["key"].as_str().unwrap()) && !text.contains("1/0"), "{text}");
    let verified = cli.run(&["audit", "verify", "--json"]).json();
    assert!(verified["intact"] == true && verified["records"] == 4, "{verified}");
    let path = export.to_str().unwrap();
    assert_eq!(cli.run(&["audit", "verify", path, "--json"]).json()["intact"], true);
    for (from, to) in [("key_change", "rule_change"), ("succeeded", "failed"), ("local", "other")] {
        assert!(text.contains(from), "{text}");
        fs::write(&export, text.replacen(from, to, 1)).unwrap();
        let verified = cli.run(&["audit", "verify", path]);
        assert_eq!(verified.code, Some(1), "{from}: {verified:?}");
    }
    let removed = text.lines().position(|line| line.contains("succeeded")).unwrap();
    let without_one: Vec<&str> =
        text.lines().enumerate().filter(|(index, _)| *index != removed).map(|(_, line)| line).collect();
    fs::write(&export, without_one.join("\n") + "\n").unwrap();
    assert_eq!(cli.run(&["audit", "verify", path]).code, Some(1));
}

#[test]
fn changes_of_the_database_are_found() {
    for statement in [
        "DELETE FROM audit_batches WHERE first_seq = (SELECT MIN(first_seq) FROM audit_batches)",
        "DELETE FROM audit_batches WHERE last_seq = (SELECT MAX(last_seq) FROM audit_batches)",
        "UPDATE audit_batches SET entries = zeroblob(length(entries)) WHERE first_seq = 1",
    ] {
        let cli = cli("[audit]\nenabled = true\n");
        for _ in 0..3 {
            cli.run(&["call", "calculate", "expression=1+1"]);
        }
        assert_eq!(cli.run(&["audit", "verify"]).code, Some(0), "{statement}");
        let database = rusqlite::Connection::open(cli.folder().join("home/toolhub.db")).unwrap();
        assert_eq!(database.execute(statement, []).unwrap(), 1, "{statement}");
        drop(database);
        let verified = cli.run(&["audit", "verify"]);
        assert_eq!(verified.code, Some(1), "{statement}: {verified:?}");
    }
}

#[test]
fn audit_is_off_without_keys() {
    let cli = cli("");
    cli.run(&["call", "calculate", "expression=1+1"]);
    let ran = cli.run(&["audit"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("the audit log is off"), "{ran:?}");
    cli.run(&["keys", "new", "ci"]);
    let ran = cli.run(&["audit", "verify"]);
    assert!(ran.code == Some(0) && ran.stdout.contains("intact: 1 records"), "{ran:?}");
}

/// A server with a tool, a resource and a prompt.
fn with_server(settings: &str) -> CommandLine {
    let mut cli = cli(settings);
    let script = Script::both()
        .plain_tool("t")
        .set("capabilities", json!({"tools": {}, "resources": {}, "prompts": {}}))
        .on("resources/list", json!([{"reply": {"resources": [{"uri": "note://x/a", "name": "a"}]}}]))
        .on("resources/templates/list", json!([{"reply": {"resourceTemplates": []}}]))
        .on("resources/read", json!([{"reply": {"contents": [{"uri": "note://x/a", "text": "text"}]}}]))
        .on("prompts/list", json!([{"reply": {"prompts": [{"name": "hello"}]}}]))
        .on("prompts/get", json!([{"reply": {"messages": []}}]));
    cli.server("s", &script);
    cli
}

/// Without a running hub, each change, read, prompt and approval of a command is recorded as one of the local user.
#[test]
fn changes_reads_and_approvals_of_commands_are_recorded() {
    let cli = with_server("[audit]\nenabled = true\n");
    for (command, object, state) in [
        (&["servers", "add", "extra", "--no-test", "echo", "hi"][..], "extra", "created: added"),
        (&["servers", "disable", "extra"], "extra", "updated: disabled"),
        (&["servers", "enable", "extra"], "extra", "updated: enabled"),
        (&["servers", "remove", "extra"], "extra", "deleted: removed"),
        (&["servers", "read", "s", "note://x/a"], "note://x/a", "read"),
        (&["servers", "prompt", "s", "hello"], "hello", "get prompt"),
        (&["tools", "approve", "t", "--yes"], "s", "updated: approved the definition "),
        (&["tools", "approve", "t", "--revoke"], "s", "updated: revoked the approval of `t`"),
    ] {
        let before = records(&cli, &["-n", "200"]).len();
        let ran = cli.run(command);
        assert_eq!(ran.code, Some(0), "{command:?}: {ran:?}");
        let after = records(&cli, &["-n", "200"]);
        assert_eq!(after.len(), before + 1, "{command:?}: {after:?}");
        let newest = &after[0];
        assert_eq!((&newest["object"], &newest["principal"]), (&json!(object), &json!("local")), "{newest}");
        assert!(newest["state"].as_str().unwrap().starts_with(state), "{command:?}: {newest}");
    }
    // The controls: what changes and reads nothing, and an item that the server does not have.
    let before = records(&cli, &["-n", "200"]).len();
    for command in
        [&["servers"][..], &["tools", "approve", "--list"], &["servers", "offers", "s"], &["tools"]]
    {
        assert_eq!(cli.run(command).code, Some(0), "{command:?}");
    }
    assert_ne!(cli.run(&["servers", "remove", "nothing"]).code, Some(0));
    assert_eq!(records(&cli, &["-n", "200"]).len(), before);
    assert_eq!(cli.run(&["audit", "verify"]).code, Some(0));
}

/// The control: without an audit log the same commands work and record nothing.
#[test]
fn commands_work_without_an_audit_log() {
    let cli = with_server("");
    for command in [
        &["servers", "add", "extra", "--no-test", "echo", "hi"][..],
        &["servers", "remove", "extra"],
        &["servers", "read", "s", "note://x/a"],
        &["tools", "approve", "t", "--yes"],
    ] {
        let ran = cli.run(command);
        assert_eq!(ran.code, Some(0), "{command:?}: {ran:?}");
    }
    assert!(cli.run(&["audit"]).stderr.contains("the audit log is off"));
}
