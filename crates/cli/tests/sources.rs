//! A call that names a source reaches that source and no other.

#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::io::Write as _;
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::json;
use toolhub::{ToolCall, ToolError};
use toolhub_testkit::scripted::{Journal, Script};
use toolhub_testkit::{CommandLine, CommandOutput, TestHub};

const UNKNOWN: &str = "there is no source `hrdb`, nothing was executed; did you mean `hr-db`?";

/// A command line with two servers that both have `write`, and their common journal.
fn two_databases() -> (CommandLine, PathBuf) {
    let mut cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    let journal = cli.folder().join("journal");
    for id in ["sales", "hr-db"] {
        cli.server(id, &Script::both().plain_tool("write").journal(&journal));
    }
    (cli, journal)
}

fn run_text(cli: &CommandLine, text: &str) -> CommandOutput {
    let mut child = cli.command(&["run"]).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    CommandOutput { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

#[test]
fn rejects_unknown_source_without_execution() {
    let (cli, journal) = two_databases();
    let nested = r#"{"name":"write","source":"hrdb","arguments":{}}"#;
    for args in [
        &["call", "write", "--source", "hrdb"][..],
        &["call", "write", "n:=1", "--source", "hrdb"],
        &["call", "write", "--source", "hrdb", "--json"],
        &["call", "no_such_tool", "--source", "hrdb"],
        &["call", "--capability", "write", "--source", "hrdb"],
        &["call", "call_tool", "--args", nested],
        &["explain", "write", "--source", "hrdb"],
        &["tools", "show", "write", "--source", "hrdb"],
    ] {
        let ran = cli.run(args);
        assert_eq!(ran.code, Some(2), "{args:?}: {ran:?}");
        assert!(ran.stderr.contains(UNKNOWN) || ran.stdout.contains(UNKNOWN), "{args:?}: {ran:?}");
    }
    for text in [
        r#"<tool_call>{"tool_name": "write", "source": "hrdb", "arguments": {}}</tool_call>"#,
        r#"<tool_call>{"tool_name": "call_tool", "arguments": {"name": "write", "source": "hrdb"}}</tool_call>"#,
    ] {
        let ran = run_text(&cli, text);
        assert_eq!(ran.code, Some(2), "{text}: {ran:?}");
        assert!(ran.stdout.contains(UNKNOWN), "{text}: {ran:?}");
    }
    assert!(!journal.exists(), "no server was started");
    // Known names, including those that models often guess, still work.
    for source in ["hr-db", "native", "appflowy", "auto"] {
        let ran = cli.run(&["call", "write", "n:=1", "--source", source]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "{\"n\":1}\n"), "{source}: {ran:?}");
    }
}

#[tokio::test]
async fn library_call_rejects_unknown_source() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let builder = TestHub::builder().server("hr-db", &Script::both().plain_tool("write").journal(&journal));
    let hub = builder.build().await;
    for listed in [false, true] {
        if listed {
            hub.list_server("hr-db").await.unwrap().unwrap();
        }
        let outcome = hub.call(ToolCall::new("write", json!({})).at("HR_DB")).await;
        let Err(ToolError::UnknownSource { name, near }) = &outcome.result else { panic!("{outcome:?}") };
        assert_eq!((name.as_str(), &near[..]), ("HR_DB", &["hr-db".to_owned()][..]));
        assert!(outcome.attempts.is_empty(), "{outcome:?}");
    }
    assert_eq!(Journal::read(&journal).count_method("tools/call"), 0);
    hub.close().await;
}

/// `server__tool` is sent to that server, and no other server is started for it, even if its list has expired.
#[test]
fn qualified_name_starts_only_its_server() {
    let mut cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    let folder = cli.folder().to_owned();
    let never = folder.join("never");
    for id in ["sales", "hr-db"] {
        let script = Script::modern().set("ttlMs", 0).plain_tool("read_query").journal(folder.join(id));
        cli.server(id, &script);
    }
    assert_eq!(cli.run(&["tools", "--refresh"]).code, Some(0));
    cli.server("never", &Script::modern().plain_tool("other").journal(&never));
    let starts = |id: &str| Journal::read(folder.join(id)).events("start").len();
    let before = starts("sales");
    for args in
        [&["call", "hr-db__read_query", "n:=1"][..], &["call", "hr-db__read_query", "--args", "{\"n\":1}"]]
    {
        let ran = cli.run(args);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "{\"n\":1}\n"), "{ran:?}");
    }
    let ran = cli.run(&["call", "hr-db__read_qury"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.stderr.contains("server `hr-db` has no tool `read_qury`; did you mean `hr-db__read_query`?"),
        "{ran:?}"
    );
    assert_eq!(starts("sales"), before, "another server was started");
    assert!(!never.exists(), "a server that was never listed was started");
}

/// An unknown tool name does not start servers that were listed recently.
#[test]
fn mistyped_name_does_not_relist_servers() {
    let mut cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    let journal = cli.folder().join("journal");
    cli.server("hr-db", &Script::modern().set("ttlMs", 0).plain_tool("read_query").journal(&journal));
    assert_eq!(cli.run(&["tools"]).code, Some(0));
    let dead = json!({"command": "no-such-program-anywhere"});
    for (name, expect) in [
        ("hr_db__read_query", "there is no tool `hr_db__read_query`; did you mean `hr-db__read_query`?"),
        ("zzz", "there is no tool `zzz`; `toolhub tools` lists what there is"),
    ] {
        let ran = cli.run(&["call", name]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.stderr.contains(expect), "{ran:?}");
    }
    assert_eq!(Journal::read(&journal).events("start").len(), 1, "it was listed again");
    // The exit code does not depend on other servers.
    cli.entry("dead", dead);
    for name in ["hr_db__read_query", "zzz"] {
        assert_eq!(cli.run(&["call", name]).code, Some(1));
    }
}

#[test]
fn reports_disabled_server_as_source() {
    let (cli, journal) = two_databases();
    assert_eq!(cli.run(&["servers", "disable", "hr-db"]).code, Some(0));
    let ran = cli.run(&["call", "write", "--source", "hr-db"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("server `hr-db` is disabled: enable it"), "{ran:?}");
    assert_eq!(Journal::read(&journal).count_method("tools/call"), 0);
}

/// A server with the names of built-in tools: `servers add` warns, calls by name never mix the two, and `--source native` and
/// `native__TOOL` reach the built-in tool.
#[test]
fn built_in_tool_stays_reachable_beside_server_with_its_name() {
    let mut cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    let hints = json!({"readOnlyHint": true});
    let tool = json!({"name": "calculate", "description": "d", "inputSchema": {"type": "object"}, "annotations": hints});
    cli.server("other", &Script::both().tool(&tool));
    let by_name = cli.run(&["call", "calculate", "expression=2+2", "--json"]).json();
    assert_eq!(by_name["_meta"]["sources"], json!(["other"]), "{by_name}");
    for args in [
        &["call", "calculate", "expression=2+2", "--source", "native", "--json"][..],
        &["call", "native__calculate", "expression=2+2", "--json"],
    ] {
        let answer = cli.run(args).json();
        let sources = &answer["_meta"]["sources"];
        assert_eq!((&answer["result"], sources), (&json!("4"), &json!(["native"])), "{answer}");
    }
    let route = cli.run(&["explain", "calculate", "--source", "native", "--json"]).json();
    assert_eq!(route["candidates"].as_array().unwrap().len(), 1, "{route}");
}
