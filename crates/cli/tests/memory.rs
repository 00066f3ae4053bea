//! The call log through the real program: history, statistics, full results, recommendations, and recovery after a crash.

use std::io::{BufRead as _, BufReader};
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};
use toolhub::ToolCall;
use toolhub_core::CallId;
use toolhub_core::call_log::{CallLog as _, CallQuery, CallRecord, RecordId};
use toolhub_core::ports::HubStore as _;
use toolhub_store::SqliteStore;
use toolhub_testkit::scripted::{Journal, Script};
use toolhub_testkit::{CommandLine, TestHub, recorded_call};

const MINUTE: Duration = Duration::from_secs(60);

fn cli() -> CommandLine {
    CommandLine::new(env!("CARGO_BIN_EXE_toolhub"))
}

fn ok(cli: &CommandLine, args: &[&str]) -> String {
    let ran = cli.run(args);
    assert_eq!(ran.code, Some(0), "{args:?} {ran:?}");
    ran.stdout
}

fn json_of(cli: &CommandLine, args: &[&str]) -> Value {
    cli.run(&[args, &["--json"]].concat()).json()
}

#[test]
fn records_calls_and_finds_them() {
    let cli = cli();
    ok(&cli, &["call", "calculate", "expression=6*7", "--for", "六乘七是多少"]);
    ok(&cli, &["call", "get_time"]);
    assert_eq!(cli.run(&["call", "calculate", "expression=1/"]).code, Some(1));
    let all = json_of(&cli, &["history"]);
    let tools: Vec<&str> =
        all.as_array().unwrap().iter().map(|call| call["tool"].as_str().unwrap()).collect();
    assert_eq!(tools, ["calculate", "get_time", "calculate"]);
    assert_eq!((&all[0]["status"], &all[2]["status"]), (&json!("failed"), &json!("succeeded")));
    assert_eq!(all[2]["arguments"], json!({"expression": "6*7"}));
    let count = |args: &[&str]| json_of(&cli, &[&["history"], args].concat()).as_array().unwrap().len();
    assert_eq!(count(&["--tool", "calculate"]), 2);
    assert_eq!(count(&["--status", "failed"]), 1);
    assert_eq!(count(&["--text", "六乘"]), 1);
    assert_eq!(count(&["--text", "EXPRESSION"]), 2);
    assert_eq!(count(&["--since", "1h", "-n", "1"]), 1);
    assert_eq!(count(&["--source", "native"]), 3);
    // The full result by its handle.
    let handle = all[2]["id"].as_str().unwrap();
    assert_eq!(ok(&cli, &["result", handle]), "42\n");
    let missing = cli.run(&["result", "nonsense"]);
    assert_eq!(missing.code, Some(1));
    assert!(missing.stderr.contains("no result `nonsense`"), "{missing:?}");
    // Statistics and recommendations.
    let stats = json_of(&cli, &["stats", "calculate"]);
    assert_eq!((&stats[0]["successes"], &stats[0]["failures"]), (&json!(1), &json!(1)));
    assert!(stats[0]["latency_ms"]["p50"].as_f64().unwrap() > 0.0);
    assert!(ok(&cli, &["stats"]).contains("get_time"));
    assert_eq!(json_of(&cli, &["recommend", "七乘八是多少"])[0]["tool"], "calculate");
    assert_eq!(json_of(&cli, &["recommend", "--after", "calculate"])[0]["tool"], "get_time");
    assert!(cli.run(&["recommend", "book a table"]).stderr.contains("no request like this"));
    // Export as JSON Lines.
    ok(&cli, &["history", "--export", "all.jsonl"]);
    let lines = std::fs::read_to_string(cli.folder().join("all.jsonl")).unwrap();
    let read: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(read.len(), 3);
    // A symbolic link is followed, and a target that is not a regular file is not replaced.
    #[cfg(target_os = "linux")]
    {
        let link = cli.folder().join("link.jsonl");
        std::fs::write(cli.folder().join("all.jsonl"), "").unwrap();
        std::os::unix::fs::symlink("all.jsonl", &link).unwrap();
        ok(&cli, &["history", "--export", "link.jsonl"]);
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::read_to_string(cli.folder().join("all.jsonl")).unwrap(), lines);
        assert_eq!(ok(&cli, &["history", "--export", "/proc/self/fd/1"]), lines);
    }
}

#[test]
fn shortens_long_result_for_model_and_stores_it_whole() {
    let mut cli = cli();
    let long = "这是一个句子。".repeat(2_000);
    let script = Script::legacy().plain_tool("tell").on("tools/call:tell", json!([{"text": long}]));
    cli.server("s", &script);
    assert_eq!(ok(&cli, &["call", "tell"]).trim_end(), long);
    let output = json_of(&cli, &["call", "tell", "--brief"]);
    let text = output["result"].as_str().unwrap();
    assert!(text.chars().count() <= 500 && text.ends_with('。'), "{text}");
    assert_eq!(output["_meta"]["truncated"], true);
    let handle = output["_meta"]["handle"].as_str().unwrap();
    assert_eq!(ok(&cli, &["result", handle]).trim_end(), long);
    let page = json_of(&cli, &["result", handle, "--page", "2"]);
    assert_eq!(page["pages"], 4);
    assert!(page["text"].as_str().unwrap().ends_with('。'));
    // The same with the tool `read_result`.
    let page = ok(&cli, &["call", "read_result", &format!("handle={handle}"), "page=4"]);
    assert!(page.contains("(page 4 of 4, the last)"), "{page}");
    let missing = cli.run(&["call", "read_result", &format!("handle={handle}"), "page=5"]);
    assert!(missing.stderr.contains("page 5 does not exist: there are 4"), "{missing:?}");
    let plain = cli.run(&["call", "tell", "--brief"]);
    assert!(plain.stderr.contains("toolhub result "), "{plain:?}");
}

#[test]
fn calls_in_flight_at_crash_are_recorded_as_unknown() {
    let mut cli = cli();
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let script = Script::legacy()
        .plain_tool("send_mail")
        .on("tools/call:send_mail", json!([{"ignore": true}]))
        .journal(&journal);
    cli.server("mail", &script);
    let mut child = cli.command(&["call", "send_mail"]).spawn().unwrap();
    Journal::read(&journal).wait_for(|seen| seen.count_method("tools/call") == 1, Duration::from_secs(20));
    // A running call becomes visible with a short delay.
    let started = Instant::now();
    while json_of(&cli, &["history"])[0]["status"] != "running" {
        assert!(started.elapsed() < Duration::from_secs(10), "it is not seen");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let call = &json_of(&cli, &["history"])[0];
    assert_eq!((&call["status"], &call["tool"]), (&json!("unknown"), &json!("send_mail")), "{call}");
    assert_eq!(json_of(&cli, &["history", "--status", "unknown"]).as_array().unwrap().len(), 1);
    // Children of the killed hub are swept by the next one that starts servers.
    cli.run(&["servers", "test", "mail"]);
}

#[test]
fn records_interrupted_call() {
    // A read-only call has no effect that could be unknown.
    for (hints, status) in [(json!({}), "unknown"), (json!({"readOnlyHint": true}), "failed")] {
        let mut cli = cli();
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("journal");
        let script = Script::legacy()
            .tool(json!({"name": "slow", "inputSchema": {"type": "object"}, "annotations": hints}))
            .on("tools/call:slow", json!([{"ignore": true}]))
            .journal(&journal);
        cli.server("s", &script);
        let mut child = cli.command(&["call", "slow"]).spawn().unwrap();
        Journal::read(&journal)
            .wait_for(|seen| seen.count_method("tools/call") == 1, Duration::from_secs(20));
        let pid = child.id().to_string();
        assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(130));
        let call = &json_of(&cli, &["history"])[0];
        assert_eq!((&call["status"], &call["error_kind"]), (&json!(status), &json!("cancelled")), "{call}");
    }
}

#[test]
fn history_follow_prints_new_calls() {
    let cli = cli();
    ok(&cli, &["call", "calculate", "expression=1"]);
    let mut follower = cli.command(&["history", "--follow", "--json"]).spawn().unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(next()["arguments"]["expression"], "1");
    ok(&cli, &["call", "calculate", "expression=2"]);
    ok(&cli, &["call", "calculate", "expression=3"]);
    assert_eq!(next()["arguments"]["expression"], "2");
    assert_eq!(next()["arguments"]["expression"], "3");
    let stopped =
        std::process::Command::new("kill").args(["-INT", &follower.id().to_string()]).status().unwrap();
    assert!(stopped.success());
    assert_eq!(follower.wait().unwrap().code(), Some(0));
}

#[test]
fn verifies_results_against_earlier_ones() {
    let mut cli = cli();
    let answers = json!([
        [{"text": "Berlin has 3.7 million people"}],
        [{"text": "Berlin has 3.7 million people"}],
        [{"text": "<html>please log in on 2026-02-31</html>"}],
    ]);
    let tool =
        json!({"name": "facts", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}});
    // Scripted replies advance within one server process only, so each run gets its own script.
    for (run, answer) in answers.as_array().unwrap().iter().enumerate() {
        let script = Script::legacy().tool(tool.clone()).on("tools/call:facts", answer);
        cli.server("s", &script);
        let output = json_of(&cli, &["call", "facts", "--verify"]);
        let (verified, issues) =
            (&output["_meta"]["verified"], output["_meta"]["issues"].as_array().unwrap());
        match run {
            0 | 1 => assert_eq!((verified, issues.len()), (&json!(true), 0), "{output}"),
            _ => {
                assert_eq!((verified, issues.len()), (&json!(false), 2), "{output}");
                assert!(output["_meta"]["confidence"].as_f64().unwrap() < 0.3, "{output}");
            }
        }
    }
}

#[test]
fn does_not_run_calls_that_cannot_be_recorded() {
    let mut cli = cli();
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let tool = |name: &str, hints: Value| json!({"name": name, "inputSchema": {"type": "object"}, "annotations": hints});
    let script = Script::legacy()
        .tool(tool("send_mail", json!({})))
        .tool(tool("look", json!({"readOnlyHint": true})))
        .on("tools/call:look", json!([{"text": "seen"}]))
        .journal(&journal);
    cli.server("mail", &script);
    ok(&cli, &["tools"]);
    // Another process keeps the database open, so that the write-ahead log is not checkpointed. Then the log may not grow any
    // more: writes fail, as on a full disk.
    let mut follower = cli.command(&["history", "--follow"]).spawn().unwrap();
    for _ in 0..5 {
        ok(&cli, &["call", "calculate", "expression=1"]);
    }
    let grown = std::fs::metadata(cli.folder().join("home/toolhub.db-wal")).unwrap().len();
    assert!(grown > 33 * 1024, "{grown}");
    let limited = |args: &[&str]| {
        let command = cli.command(args);
        let mut shell = std::process::Command::new("bash");
        shell
            .args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "bash"])
            .arg(command.get_program())
            .args(args);
        shell.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell.current_dir(cli.folder()).output().unwrap()
    };
    let ran = limited(&["call", "look"]);
    assert_eq!(String::from_utf8_lossy(&ran.stdout).trim_end(), "seen", "{ran:?}");
    let ran = limited(&["call", "send_mail"]);
    let stderr = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!(ran.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("not executed: the call log is unavailable"), "{stderr}");
    let sent = Journal::read(&journal)
        .messages()
        .into_iter()
        .filter(|message| message["params"]["name"] == "send_mail")
        .count();
    assert_eq!(sent, 0);
    // With disk space available again, calls succeed.
    follower.kill().unwrap();
    follower.wait().unwrap();
    ok(&cli, &["call", "send_mail"]);
    assert_eq!(json_of(&cli, &["history"])[0]["tool"], "send_mail");
}

#[test]
fn does_not_run_changing_calls_without_data_directory() {
    let mut cli = cli();
    std::fs::write(cli.folder().join("home"), "a file where the folder should be").unwrap();
    let tool = |name: &str, hints: Value| json!({"name": name, "inputSchema": {"type": "object"}, "annotations": hints});
    let script =
        Script::legacy().tool(tool("send_mail", json!({}))).tool(tool("look", json!({"readOnlyHint": true})));
    cli.server("mail", &script);
    assert_eq!(cli.run(&["call", "look"]).code, Some(0));
    let refused = cli.run(&["call", "send_mail"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("not executed: the call log is unavailable"), "{refused:?}");
    std::fs::write(cli.folder().join("toolhub.toml"), "[store]\nrequired = false\n").unwrap();
    assert_eq!(cli.run(&["call", "send_mail"]).code, Some(0));
}

/// A call that a tool made is recorded with its parent.
#[tokio::test]
async fn nested_call_is_recorded_with_its_parent() {
    let hub = TestHub::builder().build().await;
    let parent = CallId::new("call_of_a_script");
    for (parent, expression) in [(None, "1+1"), (Some(parent.clone()), "6*7")] {
        let call = ToolCall { parent, ..ToolCall::new("calculate", json!({"expression": expression})) };
        assert!(hub.call(call).await.success());
    }
    let query = CallQuery { parent: Some(parent.to_string()), ..CallQuery::default() };
    let found = hub.calls(query).await.unwrap();
    let [nested] = &found[..] else { panic!("{found:?}") };
    assert_eq!(nested.start.arguments.value(), json!({"expression": "6*7"}));
    assert_eq!(nested.start.parent, Some(parent));
    assert!(hub.parent_call(nested).await.unwrap().is_none(), "it was never recorded");
    hub.close().await;
}

/// The calls that a call made, and the call that made one, are found by id and time: ids may be repeated.
#[tokio::test]
async fn nested_calls_and_parents_are_found() {
    let hub = TestHub::builder().build().await;
    let store = SqliteStore::open(&hub.folder().join("home")).unwrap();
    let now = SystemTime::now();
    let generated = CallId::generate();
    let repeated = CallId::new("call_0");
    // Three scripts: the first two with the same id, the last one long after its id was generated.
    let mut scripts: Vec<(RecordId, Vec<RecordId>)> = Vec::new();
    let runs =
        [(&repeated, now - 90 * MINUTE), (&repeated, now - 30 * MINUTE), (&generated, now + 5 * MINUTE)];
    for (id, at) in runs {
        let (mut start, mut end) = recorded_call("run_script", json!({}), at);
        start.call = id.clone();
        end.took = MINUTE;
        let mut nested = Vec::new();
        for second in [0, 59, 20] {
            let (mut start, end) = recorded_call("t", json!({}), at + Duration::from_secs(second));
            start.parent = Some(id.clone());
            nested.push(start.record.clone());
            store.record_finished(start, end);
        }
        // Another principal used the same id at the same time.
        let (mut other, other_end) = recorded_call("t", json!({}), at + Duration::from_secs(30));
        (other.parent, other.authorization.principal) = (Some(id.clone()), "key:other".into());
        store.record_finished(other, other_end);
        nested.sort_unstable();
        scripts.push((start.record.clone(), nested));
        store.record_finished(start, end);
    }
    // A script that never ended: what was made within an hour belongs to it.
    let (mut lost, _) = recorded_call("run_script", json!({}), now - 600 * MINUTE);
    (lost.may_change, lost.call) = (true, CallId::new("call_lost"));
    let within = [1, 59, 61].map(|minutes| {
        let (mut start, end) = recorded_call("t", json!({}), now - 600 * MINUTE + minutes * MINUTE);
        start.parent = Some(lost.call.clone());
        let record = start.record.clone();
        store.record_finished(start, end);
        record
    });
    scripts.push((lost.record.clone(), within[..2].to_vec()));
    store.begin(lost).await.unwrap();
    store.flush().await.unwrap();
    drop(store);
    let ids = |calls: Vec<CallRecord>| -> Vec<RecordId> {
        calls.into_iter().map(|call| call.start.record).collect()
    };
    for (script, nested) in &scripts {
        let call = hub.call_record(script).await.unwrap().unwrap();
        assert_eq!(&ids(hub.nested_calls(&call).await.unwrap()), nested, "{call:?}");
        assert!(hub.parent_call(&call).await.unwrap().is_none());
        for nested in nested {
            let call = hub.call_record(nested).await.unwrap().unwrap();
            let parent = hub.parent_call(&call).await.unwrap().unwrap();
            assert_eq!(parent.start.record, *script, "{call:?}");
            assert!(ids(hub.nested_calls(&call).await.unwrap()).is_empty());
        }
    }
    hub.close().await;
}
