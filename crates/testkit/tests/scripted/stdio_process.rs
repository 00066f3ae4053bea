//! How the process ends, what it leaves behind, and what the tests see of it.

use std::{
    io::Write,
    os::unix::process::{CommandExt, ExitStatusExt},
    sync::mpsc,
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::json;
use toolhub_testkit::{processes, scripted::Script};

use crate::stdio_client::{Client, LONG, text};

fn pid(client: &Client) -> Pid {
    i32::try_from(client.child.id()).ok().and_then(Pid::from_raw).expect("a process id")
}

/// A process group that goes with the test.
struct Group(Pid);

impl Drop for Group {
    fn drop(&mut self) {
        // It may be gone already.
        _ = kill_process_group(self.0, Signal::KILL);
    }
}

fn terminate(client: &Client) {
    kill_process(pid(client), Signal::TERM).expect("the server runs");
}

#[test]
fn exits_after_earlier_output_is_written() {
    let actions = json!([{"text": "last words"}, {"exit": 7}, {"text": "never"}]);
    let mut client = Client::open(&Script::legacy().plain_tool("t").on("tools/call:t", actions));
    client.call(1, "t");
    assert_eq!(text(&client.message()), "last words");
    assert_eq!(client.wait_exit().code(), Some(7));
    assert_eq!(client.journal().events("exit")[0]["code"], 7);
}

#[test]
fn clean_shutdown_exits_at_eof_and_sigterm() {
    let mut client = Client::open(&Script::legacy());
    client.close_input();
    assert!(client.wait_exit().success());
    let mut client = Client::open(&Script::legacy());
    terminate(&client);
    assert!(client.wait_exit().success());
    assert_eq!(client.journal().events("term").len(), 1);
}

#[test]
fn ignore_eof_exits_only_at_sigterm() {
    let mut client = Client::open(&Script::legacy().set("shutdown", "ignore_eof"));
    client.close_input();
    client.journal().wait_for(|journal| journal.events("eof").len() == 1, LONG);
    assert!(client.is_running());
    terminate(&client);
    assert!(client.wait_exit().success());
}

#[test]
fn ignore_term_exits_only_at_sigkill() {
    let mut client = Client::open(&Script::legacy().set("shutdown", "ignore_term"));
    client.close_input();
    client.journal().wait_for(|journal| journal.events("eof").len() == 1, LONG);
    for count in 1..=2 {
        terminate(&client);
        client.journal().wait_for(|journal| journal.events("term").len() == count, LONG);
    }
    assert!(client.is_running());
    kill_process(pid(&client), Signal::KILL).expect("the server runs");
    assert_eq!(client.wait_exit().signal(), Some(9));
}

#[test]
fn stops_reading_stdin() {
    let script = Script::legacy()
        .plain_tool("t")
        .on("tools/call:t", json!([{"stop_reading": true}, {"text": "deaf"}]));
    let mut client = Client::open(&script);
    client.call(1, "t");
    assert_eq!(text(&client.message()), "deaf");
    let mut stdin = client.stdin();
    let (sender, receiver) = mpsc::channel();
    let writer = thread::spawn(move || {
        let line = format!("{}\n", "x".repeat(4095));
        // More than a pipe and any buffer hold.
        let result = (0..256).try_for_each(|_| stdin.write_all(line.as_bytes()));
        sender.send(result.is_ok()).expect("the test waits");
    });
    assert!(receiver.recv_timeout(Duration::from_millis(500)).is_err(), "the pipe must be full");
    client.child.kill().expect("the server runs");
    assert!(!receiver.recv_timeout(LONG).expect("the writer ends"), "the pipe must break");
    writer.join().expect("the writer does not panic");
}

#[test]
fn grandchild_stays_in_process_group() {
    let marker = format!("marker-{}", std::process::id());
    let actions = json!([{"spawn_child": true}, {"text": "started"}]);
    let script = Script::legacy().plain_tool("t").on("tools/call:t", actions);
    let mut client = Client::start_with(&script, |command| {
        command.process_group(0).env("SCRIPTED_MARKER", &marker);
    });
    let group = Group(pid(&client));
    client.handshake();
    client.call(1, "t");
    client.message();
    let server = client.child.id();
    let journal = client.journal();
    let grandchild = journal.events("child")[0]["child"].as_u64().and_then(|pid| u32::try_from(pid).ok());
    let grandchild = grandchild.expect("the pid is in the journal");
    assert_eq!(processes::children_of(server), [grandchild]);
    assert!(processes::alive(server) && processes::alive(grandchild));
    let mut marked = processes::with_marker("SCRIPTED_MARKER", &marker);
    marked.sort_unstable();
    let mut expected = [server, grandchild];
    expected.sort_unstable();
    assert_eq!(marked, expected);
    // The server alone goes: the grandchild stays, as it would with a careless client.
    client.close_input();
    client.wait_exit();
    assert!(!processes::alive(server));
    assert!(processes::alive(grandchild));
    drop(group);
    assert!(processes::gone_within(grandchild, LONG));
    assert!(processes::with_marker("SCRIPTED_MARKER", &marker).is_empty());
}

#[test]
fn grandchild_can_keep_stdout_open() {
    let script =
        Script::legacy().plain_tool("t").on("tools/call:t", json!([{"spawn_child": "inherit"}, {"exit": 0}]));
    let mut client = Client::start_with(&script, |command| {
        command.process_group(0);
    });
    let _group = Group(pid(&client));
    client.handshake();
    client.call(1, "t");
    client.wait_exit();
    // Not the end of the file, which there would be otherwise.
    client.expect_silence();
}
