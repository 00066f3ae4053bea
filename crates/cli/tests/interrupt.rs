//! Ctrl-C during a slow call: one clear message, the right exit code, a cancellation to the server, no process left.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::json;
use toolhub_testkit::scripted::{HttpServer, Journal, Script};
use toolhub_testkit::{CommandLine, processes};

const TEST_TIMEOUT: Duration = Duration::from_secs(20);

fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args([name, &pid]).status().unwrap().success());
}

fn slow(actions: serde_json::Value) -> Script {
    Script::legacy().plain_tool("slow").on("tools/call:slow", actions)
}

#[test]
fn interrupt_over_stdio_ends_grandchild() {
    for (name, stubborn) in [("-INT", "clean"), ("-TERM", "clean"), ("-INT", "ignore_term")] {
        let mut cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
        let journal = cli.folder().join("journal");
        let script = slow(json!([{"spawn_child": true}, {"delay_ms": 60000}])).set("shutdown", stubborn);
        cli.server("s", &script.journal(&journal));
        let child = cli.command(&["call", "slow"]).stderr(Stdio::piped()).spawn().unwrap();
        let mut seen = Journal::read(&journal);
        seen.wait_for(|journal| !journal.events("child").is_empty(), TEST_TIMEOUT);
        signal(&child, name);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130));
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "error: cancelled\n");
        seen.refresh();
        assert_eq!(seen.count_method("notifications/cancelled"), 1, "{seen:?}");
        let grandchild = u32::try_from(seen.events("child")[0]["child"].as_u64().unwrap()).unwrap();
        assert!(processes::gone_within(grandchild, Duration::from_secs(5)));
        // Dropping `cli` checks that the server process is gone, too.
    }
}

#[test]
fn interrupt_over_http_in_both_eras() {
    for (script, reported) in [(slow(json!([{"delay_ms": 60000}])), "cancelled"), (modern(), "disconnect")] {
        let mut cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
        let journal = cli.folder().join("journal");
        let server = HttpServer::start(&script.journal(&journal));
        cli.entry("s", json!({"type": "http", "url": server.url}));
        let child = cli.command(&["call", "slow", "--json"]).spawn().unwrap();
        let mut seen = Journal::read(&journal);
        seen.wait_for(|journal| journal.count_method("tools/call") == 1, TEST_TIMEOUT);
        signal(&child, "-INT");
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130));
        let outcome: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(
            (outcome["success"].as_bool(), outcome["error"].as_str()),
            (Some(false), Some("cancelled"))
        );
        seen.wait_for(
            |journal| match reported {
                "cancelled" => journal.count_method("notifications/cancelled") == 1,
                _ => !journal.events("disconnect").is_empty(),
            },
            TEST_TIMEOUT,
        );
    }
}

fn modern() -> Script {
    Script::modern().plain_tool("slow").on("tools/call:slow", json!([{"delay_ms": 60000}]))
}

#[test]
fn interrupt_while_connecting() {
    let mut cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    let journal = cli.folder().join("journal");
    let script = Script::legacy().plain_tool("t").on("initialize", json!([{"ignore": true}]));
    cli.server("s", &script.on("server/discover", json!([{"ignore": true}])).journal(&journal));
    let child = cli.command(&["call", "t"]).spawn().unwrap();
    Journal::read(&journal).wait_for(|journal| journal.count_method("server/discover") == 1, TEST_TIMEOUT);
    signal(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
}

#[test]
fn second_interrupt_exits_immediately() {
    let mut cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    let journal = cli.folder().join("journal");
    let script = slow(json!([{"delay_ms": 60000}])).set("shutdown", "ignore_term");
    cli.server("s", &script.journal(&journal));
    let child = cli.command(&["call", "slow"]).spawn().unwrap();
    let mut seen = Journal::read(&journal);
    seen.wait_for(|journal| journal.count_method("tools/call") == 1, TEST_TIMEOUT);
    signal(&child, "-INT");
    seen.wait_for(|journal| journal.count_method("notifications/cancelled") == 1, TEST_TIMEOUT);
    let second = std::time::Instant::now();
    signal(&child, "-INT");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
    assert!(second.elapsed() < Duration::from_millis(1400), "{:?}", second.elapsed());
}

/// After SIGKILL a hub cannot clean up; the next one ends its leftover processes.
#[test]
fn next_run_ends_children_of_killed_hub() {
    let mut cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    let journal = cli.folder().join("journal");
    let script = slow(json!([{"spawn_child": true}, {"delay_ms": 60000}])).set("shutdown", "ignore_term");
    cli.server("s", &script.plain_tool("quick").journal(&journal));
    let mut child = cli.command(&["call", "slow"]).spawn().unwrap();
    let mut seen = Journal::read(&journal);
    seen.wait_for(|journal| !journal.events("child").is_empty(), TEST_TIMEOUT);
    let left: Vec<u32> = seen.pids();
    let grandchild = u32::try_from(seen.events("child")[0]["child"].as_u64().unwrap()).unwrap();
    signal(&child, "-KILL");
    child.wait().unwrap();
    assert!(processes::alive(grandchild), "its hub was killed and could not end it");
    assert_eq!(cli.run(&["call", "quick"]).code, Some(0));
    for pid in left.into_iter().chain([grandchild]) {
        assert!(processes::gone_within(pid, Duration::from_secs(5)), "{pid} is still there");
    }
}

/// Scripts of skills end immediately: a reaper process outlives the hub.
#[test]
fn skill_script_does_not_outlive_killed_hub() {
    let cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    let own = cli.folder().join("skills/sleeper");
    std::fs::create_dir_all(own.join("scripts")).unwrap();
    let text = "---\nname: sleeper\ndescription: Sleeps. Use it to wait.\nmetadata:\n  toolhub:\n    tools:\n      - {name: sleep_long, description: Sleeps long, script: scripts/sleep.sh}\n---\n";
    std::fs::write(own.join("SKILL.md"), text).unwrap();
    // An unusual duration, which identifies the process.
    let seconds = format!("60.{}", std::process::id());
    std::fs::write(own.join("scripts/sleep.sh"), format!("sleep {seconds} &\nsleep {seconds}\n")).unwrap();
    assert_eq!(cli.run(&["skills", "approve", "sleeper", "--yes"]).code, Some(0));
    let sleepers = || {
        let listed = std::process::Command::new("ps").args(["-eo", "pid=,stat=,args="]).output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        let asleep = format!("sleep {seconds}");
        listed.lines().filter(|line| line.ends_with(&asleep) && !line.contains('Z')).count()
    };
    let wait_for = |count: usize| {
        let begun = std::time::Instant::now();
        while sleepers() != count {
            assert!(begun.elapsed() < TEST_TIMEOUT, "{} of them are there", sleepers());
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let mut child = cli.command(&["call", "sleep_long"]).spawn().unwrap();
    wait_for(2);
    signal(&child, "-KILL");
    child.wait().unwrap();
    wait_for(0);
}

/// JSON output keeps its structure after an interrupt, with the steps that were started.
#[test]
fn json_output_keeps_shape_on_interrupt() {
    let mut cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    std::fs::write(cli.folder().join("toolhub.toml"), "[llm]\nenabled = false\n").unwrap();
    let journal = cli.folder().join("journal");
    let tool = json!({"name": "list_greetings", "description": "Lists all greetings.", "inputSchema": {"type": "object"}});
    let script = Script::legacy().tool(tool).on("tools/call:list_greetings", json!([{"delay_ms": 60000}]));
    cli.server("s", &script.journal(&journal));
    let mut command = cli.command(&["ask", "list all greetings", "--json"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    Journal::read(&journal).wait_for(|journal| journal.count_method("tools/call") == 1, TEST_TIMEOUT);
    signal(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let reported: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&reported["success"], &reported["error"]),
        (&json!(false), &json!("interrupted")),
        "{reported}"
    );
    assert_eq!(
        (&reported["steps"][0]["tool"], &reported["steps"][0]["success"]),
        (&json!("list_greetings"), &json!(false)),
        "{reported}"
    );
}

/// The printed address means that the gateway is ready: a signal directly after it causes an orderly shutdown.
#[test]
fn gateway_handles_signals_once_address_is_printed() {
    use std::io::{BufRead as _, BufReader};
    for _ in 0..10 {
        let cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
        let mut child = cli
            .command(&["serve", "--bind", "127.0.0.1:0", "--json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains("/mcp"), "{line}");
        signal(&child, "-TERM");
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(0), "{status}");
    }
}

/// What a script had called is printed and recorded, and no further call reaches a server.
#[test]
fn interrupted_script_names_its_calls_and_starts_no_more() {
    let mut cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    std::fs::write(cli.folder().join("toolhub.toml"), "[llm]\nenabled = false\n").unwrap();
    let journal = cli.folder().join("journal");
    let server = slow(json!([{"ignore": true}])).plain_tool("quick").journal(&journal);
    cli.server("s", &server);
    let file = cli.folder().join("script.js");
    let code = "await tools.s.quick({});
        await Promise.all([1,2,3,4,5,6,7,8,9,10].map(() => tools.s.slow({})));
        await tools.s.quick({})";
    std::fs::write(&file, code).unwrap();
    let file = file.to_str().unwrap();
    for json in [false, true] {
        let _ = std::fs::remove_file(&journal);
        let args: Vec<&str> = ["script", file].into_iter().chain(json.then_some("--json")).collect();
        let child = cli.command(&args).stderr(Stdio::piped()).spawn().unwrap();
        let mut seen = Journal::read(&journal);
        seen.wait_for(|journal| journal.count_method("tools/call") == 9, TEST_TIMEOUT);
        signal(&child, "-INT");
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130));
        let said = String::from_utf8(if json { output.stdout } else { output.stderr }).unwrap();
        for text in [
            "ended: 1. `quick` (succeeded)",
            "in flight: 2. `slow` (cancelled, may have run)",
            "not started: 10. `slow` (not sent), 11. `slow` (not sent)",
        ] {
            assert!(said.contains(text), "{text}: {said}");
        }
        seen.refresh();
        assert_eq!(seen.count_method("tools/call"), 9, "no call begins after the interruption");
        assert_eq!(seen.count_method("notifications/cancelled"), 8);
    }
    let scripts = cli.run(&["history", "--tool", "run_script", "--json"]).json();
    assert_eq!(scripts.as_array().unwrap().len(), 2);
    for script in scripts.as_array().unwrap() {
        let id = script["handle"].as_str().or_else(|| script["id"].as_str()).unwrap();
        let shown = cli.run(&["history", id]).stdout;
        assert!(shown.contains("in flight: 2. `slow`"), "{shown}");
    }
}
