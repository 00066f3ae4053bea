//! Held calls of scripts end with their script: a call that nothing waits for cannot be approved later.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::raw_client::{Era, RawClient};
use crate::scripts::called;
use crate::serving::{Serving, TEST_TIMEOUT};
use crate::team_access::{NewKey, team};
use toolhub_testkit::CommandLine;

const RULES: &str = r#"
[profiles.default]
servers = ["s"]
expose = "code"
[[auth.rules]]
name = "writes are asked for"
effect = "ask"
roles = ["caller"]
tools = ["write_sheet"]
"#;

const ANN: NewKey = NewKey { name: "ann", options: &[] };

fn held_calls(cli: &CommandLine) -> Vec<Value> {
    cli.run(&["waiting", "--json"]).json().as_array().unwrap().clone()
}

/// Waits until this many calls wait for approval, and returns them.
async fn await_held_calls(cli: &CommandLine, count: usize) -> Vec<Value> {
    let since = Instant::now();
    loop {
        let calls = held_calls(cli);
        if calls.len() == count {
            return calls;
        }
        assert!(since.elapsed() < TEST_TIMEOUT, "{count} calls should wait: {calls:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Checks that a call cannot be approved, and that its state and the audit log say why.
async fn check_withdrawn(cli: &CommandLine, id: &str) {
    let approved = cli.run(&["waiting", "approve", id]);
    assert_eq!(approved.code, Some(2), "{approved:?}");
    assert!(approved.stderr.contains("the script that made the call has ended"), "{approved:?}");
    let all = cli.run(&["waiting", "--all", "--json"]).json();
    let call = all.as_array().unwrap().iter().find(|call| call["id"] == id).unwrap().clone();
    assert_eq!(call["state"], "withdrawn");
    assert!(call["script"].is_string(), "{call}");
    let since = Instant::now();
    loop {
        let audit = cli.run(&["audit", "show", "--json"]).stdout;
        let records = audit.lines().filter(|line| line.contains(id)).collect::<Vec<_>>();
        if records.iter().any(|line| line.contains("withdrawn: the script has ended")) {
            return;
        }
        assert!(since.elapsed() < TEST_TIMEOUT, "{audit}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn ann(serving: &Serving, key: &str) -> RawClient {
    let mut client = RawClient::with_token(&serving.url(), Era::Modern, Some(key)).await;
    client.declare(json!({}));
    client
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn held_calls_end_with_their_script() {
    let (serving, journal, keys) = team(RULES, &[ANN]);
    let client = ann(&serving, &keys[0]).await;
    let race = "Promise.race([tools.s.write_sheet({ row: ROW }), sleep(3000)])";
    for (row, code) in [
        (1, format!("await {race}; return 'done'")),
        (2, format!("await {race}; throw new Error('failed')")),
        (3, "await tools.s.write_sheet({ row: ROW })".to_owned()),
    ] {
        let code = code.replace("ROW", &row.to_string());
        let arguments = json!({"code": code, "timeout": if row == 3 { 3 } else { 60 }}).to_string();
        let watch = async { await_held_calls(serving.cli(), 1).await.remove(0) };
        let (answer, held) = tokio::join!(client.call("run_script", &arguments), watch);
        assert_eq!(answer.result().contains("done"), row == 1, "{answer:?}");
        assert!(await_held_calls(serving.cli(), 0).await.is_empty());
        check_withdrawn(serving.cli(), held["id"].as_str().unwrap()).await;
    }
    // The same call, made directly, is another one.
    let direct = client.call("write_sheet", r#"{"row": 1}"#).await;
    assert!(direct.result().contains("waits for approval"), "{direct:?}");
    assert_eq!(await_held_calls(serving.cli(), 1).await.len(), 1);
    assert!(!journal.exists() || called(&journal).is_empty(), "nothing was run");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn held_calls_of_a_client_that_goes_away_are_withdrawn() {
    let (serving, journal, keys) = team(RULES, &[ANN]);
    let client = ann(&serving, &keys[0]).await;
    let arguments = json!({"code": "await tools.s.write_sheet({ row: 1 })"});
    let request =
        client.request("1", "tools/call", &format!(r#""name":"run_script","arguments":{arguments}"#));
    let mut running = Box::pin(request.send());
    let held = tokio::select! {
        _ = &mut running => panic!("the script has ended"),
        mut held = await_held_calls(serving.cli(), 1) => held.remove(0),
    };
    drop(running);
    await_held_calls(serving.cli(), 0).await;
    check_withdrawn(serving.cli(), held["id"].as_str().unwrap()).await;
    assert!(!journal.exists() || called(&journal).is_empty(), "nothing was run");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn held_calls_of_a_killed_hub_are_withdrawn() {
    let (serving, journal, keys) = team(RULES, &[ANN]);
    let client = ann(&serving, &keys[0]).await;
    let arguments = json!({"code": "await tools.s.write_sheet({ row: 1 })"});
    let request =
        client.request("1", "tools/call", &format!(r#""name":"run_script","arguments":{arguments}"#));
    let mut running = tokio::task::JoinSet::new();
    running.spawn(request.send());
    let held = await_held_calls(serving.cli(), 1).await.remove(0);
    let id = held["id"].as_str().unwrap();
    let cli = serving.kill();
    assert!(running.join_next().await.unwrap().unwrap().is_err());
    // Before another hub runs.
    assert!(held_calls(&cli).is_empty());
    assert_eq!(cli.run(&["waiting", "approve", id]).code, Some(2));
    let serving = Serving::start(cli);
    check_withdrawn(serving.cli(), id).await;
    assert!(held_calls(serving.cli()).is_empty());
    assert!(!journal.exists() || called(&journal).is_empty(), "nothing was run");
}
