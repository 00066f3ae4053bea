//! Calls that a rule holds until a person approves: with real clients that can ask their user or cannot, a hundred at once, and
//! across a killed gateway.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolhub_testkit::CommandLine;
use toolhub_testkit::identity_provider::IdentityProvider;
use toolhub_testkit::scripted::Journal;

use crate::console::{Browser, sheets};
use crate::identity_provider::{ProtectedGateway, ProtectedSettings, await_history};
use crate::raw_client::{Era, RawClient};
use crate::serving::{Serving, TEST_TIMEOUT, hub};
use crate::team_access::{HOLDING, NewKey, RealClient, report, team};

fn holding() -> (Serving, PathBuf, String) {
    let (serving, journal, mut keys) = team(HOLDING, &[NewKey { name: "ann", options: &[] }]);
    (serving, journal, keys.remove(0))
}

/// The calls that wait, as JSON.
fn held_calls(cli: &CommandLine) -> Vec<Value> {
    cli.run(&["waiting", "--json"]).json().as_array().unwrap().clone()
}

/// Waits until this many calls wait.
fn await_held_calls(cli: &CommandLine, count: usize) -> Vec<Value> {
    let since = Instant::now();
    loop {
        let calls = held_calls(cli);
        if calls.len() >= count {
            assert_eq!(calls.len(), count);
            return calls;
        }
        assert!(since.elapsed() < TEST_TIMEOUT, "{} of {count} calls wait", calls.len());
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn approve(cli: &CommandLine, call: &Value) {
    let approved = cli.run(&["waiting", "approve", call["id"].as_str().unwrap()]);
    assert_eq!(approved.code, Some(0), "{approved:?}");
}

fn writes(journal: &Path) -> usize {
    Journal::read(journal).count_method("tools/call")
}

/// The single recorded call of `write_sheet` names its principal, its rule and its approver.
fn check_held_record(cli: &CommandLine) {
    let calls = await_history(cli, &["--tool", "write_sheet", "--status", "succeeded"], 1);
    assert_eq!(calls.len(), 1, "{calls:?}");
    let found = ["principal", "rule", "approver"].map(|key| calls[0][key].as_str().unwrap_or_default());
    assert_eq!(found, ["key:ann", "writes are approved", "local"], "{calls:?}");
}

#[test]
fn held_call_of_a_client_without_elicitation_runs_once_when_repeated() {
    for mode in ["auto", "legacy"] {
        let (serving, journal, key) = holding();
        let write = json!(["write_sheet", {"row": 1}]);
        let details = json!({"url": serving.url(), "mode": mode, "key": key, "calls": [write], "after": [write, write]});
        let mut child = RealClient::Python.start(serving.folder(), &details);
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let first: Value = serde_json::from_str(&line).unwrap();
        let calls = await_held_calls(serving.cli(), 1);
        let id = calls[0]["id"].as_str().unwrap();
        let call = &first["calls"][0];
        assert!(call["error"] == true && call["reference"] == id, "{mode}: {first}");
        assert!(call["text"].as_str().unwrap().contains("waits for approval"), "{mode}: {first}");
        assert_eq!(calls[0]["principal"], "key:ann");
        assert_eq!(calls[0]["arguments"], json!({"row": 1}));
        assert_eq!(writes(&journal), 0, "{mode}: it has not run");
        approve(serving.cli(), &calls[0]);
        let again = serving.cli().run(&["waiting", "approve", id]);
        assert_eq!(again.code, Some(2), "{mode}: a call is decided once: {again:?}");
        writeln!(child.stdin.take().unwrap(), "approved").unwrap();
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).unwrap();
        assert!(child.wait().unwrap().success());
        let report: Value = serde_json::from_str(rest.lines().last().unwrap()).unwrap();
        assert_eq!(report["calls"][0]["text"], r#"{"row":1}"#, "{mode}: {report}");
        let second = &report["calls"][1];
        assert!(
            second["error"] == true && second["reference"] != id,
            "{mode}: one approval, one run: {report}"
        );
        assert_eq!(writes(&journal), 1, "{mode}");
        check_held_record(serving.cli());
    }
}

#[test]
fn held_call_of_a_client_with_elicitation_runs_once_when_approved() {
    // The user who never answers is not needed if the approval comes first; a modern client has to answer.
    for (mode, answer) in [("auto", "accept"), ("legacy", "accept"), ("legacy", "wait")] {
        let (serving, journal, key) = holding();
        let write = json!(["write_sheet", {"row": 1}]);
        let details =
            json!({"url": serving.url(), "mode": mode, "key": key, "calls": [write], "elicit": answer});
        let child = RealClient::Python.start(serving.folder(), &details);
        let calls = await_held_calls(serving.cli(), 1);
        assert_eq!(writes(&journal), 0, "{mode} {answer}: it has not run");
        approve(serving.cli(), &calls[0]);
        let report = report(child, serving.folder());
        assert_eq!(report["calls"][0]["text"], r#"{"row":1}"#, "{mode} {answer}: {report}");
        let question = report["seen"][0].as_str().unwrap_or_default();
        assert!(question.contains(calls[0]["id"].as_str().unwrap()), "{mode} {answer}: {report}");
        assert_eq!(writes(&journal), 1, "{mode} {answer}");
        check_held_record(serving.cli());
    }
}

#[test]
fn declined_or_denied_held_call_does_not_run() {
    for mode in ["auto", "legacy"] {
        let (serving, journal, key) = holding();
        let write = json!(["write_sheet", {"row": 1}]);
        let mut details =
            json!({"url": serving.url(), "mode": mode, "key": key, "calls": [write], "elicit": "decline"});
        let declined = RealClient::Python.run(serving.folder(), &details);
        assert!(declined["calls"][0]["text"].as_str().unwrap().contains("withdrawn"), "{mode}: {declined}");
        assert_eq!(held_calls(serving.cli()), [] as [Value; 0], "{mode}: it is withdrawn");
        details["elicit"] = json!("accept");
        let child = RealClient::Python.start(serving.folder(), &details);
        let calls = await_held_calls(serving.cli(), 1);
        let denied = serving.cli().run(&["waiting", "deny", calls[0]["id"].as_str().unwrap()]);
        assert_eq!(denied.code, Some(0), "{denied:?}");
        let report = report(child, serving.folder());
        assert!(report["calls"][0]["text"].as_str().unwrap().contains("denied"), "{mode}: {report}");
        assert_eq!(writes(&journal), 0, "{mode}");
    }
}

/// The rows of all calls that the server received, sorted.
fn rows(journal: &Path) -> Vec<u64> {
    let journal = Journal::read(journal);
    let calls = journal.messages().into_iter().filter(|message| message["method"] == "tools/call");
    let mut rows: Vec<u64> = calls.map(|call| call["params"]["arguments"]["row"].as_u64().unwrap()).collect();
    rows.sort_unstable();
    rows
}

#[test]
fn hundred_held_calls_run_once_each_for_waiting_clients() {
    let (serving, journal, key) = holding();
    let calls: Vec<Value> = (0..100).map(|row| json!(["write_sheet", {"row": row}])).collect();
    let details = json!({"url": serving.url(), "mode": "auto", "key": key, "calls": calls, "elicit": "accept",
        "concurrent": true});
    let child = RealClient::Python.start(serving.folder(), &details);
    let held = await_held_calls(serving.cli(), 100);
    let since = Instant::now();
    for call in &held {
        approve(serving.cli(), call);
    }
    println!("100 approvals took {:?}", since.elapsed());
    let report = report(child, serving.folder());
    for (row, call) in report["calls"].as_array().unwrap().iter().enumerate() {
        assert_eq!(call["text"], json!({"row": row}).to_string(), "{call}");
    }
    assert_eq!(rows(&journal), (0..100).collect::<Vec<u64>>());
    let calls = await_history(serving.cli(), &["--by", "key:ann"], 100);
    assert!(calls.len() == 100 && calls.iter().all(|call| call["approver"] == "local"), "{}", calls.len());
}

/// Each approved call is repeated twice at the same time: one of them runs.
#[tokio::test]
async fn hundred_approvals_are_used_once_each_by_concurrent_repetitions() {
    let (serving, journal, key) = holding();
    let mut client = RawClient::with_token(&serving.url(), Era::Modern, Some(&key)).await;
    client.declare(json!({}));
    let arguments: Vec<String> = (0..100).map(|row| json!({"row": row}).to_string()).collect();
    let call_all = async |times: usize| {
        let calls = arguments.iter().flat_map(|arguments| std::iter::repeat_n(arguments, times));
        futures_util::future::join_all(calls.map(|arguments| client.call("write_sheet", arguments))).await
    };
    call_all(1).await;
    let held = await_held_calls(serving.cli(), 100);
    assert_eq!(writes(&journal), 0);
    for call in &held {
        approve(serving.cli(), call);
    }
    let answers = call_all(2).await;
    let ran = answers.iter().filter(|answer| answer.text().starts_with("{\"row\"")).count();
    assert_eq!(ran, 100);
    assert_eq!(rows(&journal), (0..100).collect::<Vec<u64>>());
}

#[test]
fn held_calls_survive_a_killed_gateway() {
    let (serving, journal, key) = holding();
    let calls: Vec<Value> = (0..5).map(|row| json!(["write_sheet", {"row": row}])).collect();
    let mut details = json!({"url": serving.url(), "mode": "legacy", "key": key, "calls": calls, "elicit": "accept",
        "concurrent": true});
    let mut child = RealClient::Python.start(serving.folder(), &details);
    let before = await_held_calls(serving.cli(), 5);
    let cli = serving.kill();
    let _ = child.kill();
    let _ = child.wait();
    assert_eq!(held_calls(&cli), before, "without a gateway");
    let serving = Serving::start(cli);
    assert_eq!(held_calls(serving.cli()), before, "with the next gateway");
    for call in &before {
        approve(serving.cli(), call);
    }
    assert_eq!(rows(&journal), [] as [u64; 0], "an approval alone runs nothing");
    details["url"] = json!(serving.url());
    let report = RealClient::Python.run(serving.folder(), &details);
    for (row, call) in report["calls"].as_array().unwrap().iter().enumerate() {
        assert_eq!(call["text"], json!({"row": row}).to_string(), "{report}");
    }
    assert_eq!(rows(&journal), [0, 1, 2, 3, 4]);
    // After another crash the approvals stay used.
    let serving = Serving::start(serving.kill());
    let mut without = details;
    without["url"] = json!(serving.url());
    without.as_object_mut().unwrap().remove("elicit");
    let report = RealClient::Python.run(serving.folder(), &without);
    let repeated = report["calls"].as_array().unwrap();
    assert!(repeated.iter().all(|call| call["error"] == true), "{report}");
    assert_eq!(rows(&journal), [0, 1, 2, 3, 4]);
}

/// A gateway before `sheets` that holds writes, whose people log in at a provider.
fn holding_for_people(issuer: &str) -> (ProtectedGateway, PathBuf) {
    let mut cli = hub("");
    let journal = cli.folder().join("journal");
    cli.server("s", &sheets().journal(&journal));
    let rules = HOLDING.split_once("[[auth.rules]]").unwrap().1;
    let sections = format!("[[auth.rules]]{rules}");
    let settings = ProtectedSettings { issuer, sections: &sections, trace: false };
    (ProtectedGateway::before(cli, IdentityProvider::start(), &settings), journal)
}

#[tokio::test(flavor = "multi_thread")]
async fn person_whose_client_opens_urls_gets_the_page_of_the_held_call_once() {
    let (gateway, journal) = holding_for_people("client_id = \"desktop\"");
    let serving = &gateway.serving;
    let tokens = gateway.log_in("ann", &[]).await;
    let token = tokens["access_token"].as_str().unwrap_or_else(|| panic!("{tokens}"));
    let mut client = RawClient::with_token(&serving.url(), Era::Modern, Some(token)).await;
    client.declare(json!({"elicitation": {"url": {}}}));
    let asked = client.call("write_sheet", r#"{"row":1}"#).await;
    let asked: Value = serde_json::from_str(asked.result()).unwrap();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let (question, request) = asked["inputRequests"].as_object().unwrap().iter().next().unwrap();
    let held = &await_held_calls(serving.cli(), 1)[0];
    let page = format!("waiting/{}", held["id"].as_str().unwrap());
    assert_eq!(request["params"]["mode"], "url", "{request}");
    assert_eq!(request["params"]["url"], format!("{}/console/{page}", serving.root), "{request}");
    // The same call is held already, and its page was opened.
    let again = client.call("write_sheet", r#"{"row":1}"#).await.text();
    assert!(again.contains("waits for approval") && again.contains(held["id"].as_str().unwrap()), "{again}");
    let owner = Browser::open(serving).await;
    let shown = owner.page(&page).await;
    assert!(shown.contains("write_sheet") && shown.contains("#ann"), "{shown}");
    let unknown = owner.get("/console/waiting/0123").send().await.unwrap();
    assert_eq!(unknown.status(), 404);
    approve(serving.cli(), held);
    let answers = json!({question.as_str(): {"action": "accept"}});
    let params = format!(
        r#""name":"write_sheet","arguments":{{"row":1}},"inputResponses":{answers},"requestState":{}"#,
        asked["requestState"]
    );
    assert_eq!(client.ask("2", "tools/call", &params).await.text(), r#"{"row":1}"#);
    assert!(owner.page(&page).await.contains("Decided by"));
    assert_eq!(writes(&journal), 1);
}

/// Without logins of people at the console, only the local user could open the page.
#[tokio::test(flavor = "multi_thread")]
async fn person_who_cannot_log_in_at_the_console_gets_the_reference() {
    let (gateway, _) = holding_for_people("");
    let tokens = gateway.log_in("ann", &[]).await;
    let token = tokens["access_token"].as_str().unwrap_or_else(|| panic!("{tokens}"));
    let mut client = RawClient::with_token(&gateway.serving.url(), Era::Modern, Some(token)).await;
    client.declare(json!({"elicitation": {"url": {}}}));
    let refused = client.call("write_sheet", r#"{"row":1}"#).await.text();
    let held = &await_held_calls(gateway.serving.cli(), 1)[0];
    assert!(refused.contains(held["id"].as_str().unwrap()), "{refused}");
}

/// Keys open no pages: a client with a key is shown the form, or the reference.
#[tokio::test(flavor = "multi_thread")]
async fn client_with_a_key_is_not_asked_to_open_the_page() {
    let settings = format!("[auth]\nresource = \"https://hub.example/tools\"\n{HOLDING}");
    let (serving, _, keys) = team(&settings, &[NewKey { name: "ann", options: &[] }]);
    let mut client = RawClient::with_token(&serving.url(), Era::Modern, Some(&keys[0])).await;
    client.declare(json!({"elicitation": {"url": {}}}));
    let refused = client.call("write_sheet", r#"{"row":1}"#).await.text();
    let held = &await_held_calls(serving.cli(), 1)[0];
    assert!(refused.contains(held["id"].as_str().unwrap()), "{refused}");
    client.declare(json!({"elicitation": {"url": {}, "form": {}}}));
    let asked = client.call("write_sheet", r#"{"row":1}"#).await;
    let asked: Value = serde_json::from_str(asked.result()).unwrap();
    let (_, request) = asked["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(request["params"]["mode"], "form", "{asked}");
}

/// An approval outlives the token of the request that it was given for: the next token of the same person uses it, and no other
/// person does.
#[tokio::test(flavor = "multi_thread")]
async fn approval_is_kept_for_the_next_token_of_the_principal() {
    let (gateway, journal) = holding_for_people("");
    let serving = &gateway.serving;
    let client = async |account: &str, parameters: &[(&str, &str)]| {
        let tokens = gateway.log_in(account, parameters).await;
        let token = tokens["access_token"].as_str().unwrap_or_else(|| panic!("{tokens}"));
        RawClient::with_token(&serving.url(), Era::Modern, Some(token)).await
    };
    // The token is valid for 3,600 s, and 60 s more for differing clocks.
    let mut short = client("ann", &[("age", "3657")]).await;
    short.declare(json!({"elicitation": {"form": {}}}));
    let asked = short.call("write_sheet", r#"{"row":1}"#).await;
    let asked: Value = serde_json::from_str(asked.result()).unwrap();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let since = Instant::now();
    let refused = loop {
        let response = short.request("1", "tools/list", "").send().await.unwrap();
        if response.status() == 401 {
            break response;
        }
        assert!(since.elapsed() < TEST_TIMEOUT, "the token does not expire");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let challenge = refused.headers()["www-authenticate"].to_str().unwrap().to_owned();
    assert!(challenge.contains("invalid_token") && challenge.contains("has expired"), "{challenge}");
    let why = refused.text().await.unwrap();
    assert!(why.contains("this token has expired") && why.contains("log in again"), "{why}");
    approve(serving.cli(), &await_held_calls(serving.cli(), 1)[0]);
    let mut other = client("bob", &[]).await;
    other.declare(json!({}));
    assert!(other.call("write_sheet", r#"{"row":1}"#).await.text().contains("waits for approval"));
    let mut next = client("ann", &[]).await;
    next.declare(json!({}));
    assert_eq!(next.call("write_sheet", r#"{"row":1}"#).await.text(), r#"{"row":1}"#);
    assert_eq!(writes(&journal), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn client_that_only_opens_urls_gets_the_reference_if_there_is_no_public_url() {
    let (serving, journal, key) = holding();
    let mut client = RawClient::with_token(&serving.url(), Era::Modern, Some(&key)).await;
    client.declare(json!({"elicitation": {"url": {}}}));
    let refused = client.call("write_sheet", r#"{"row":1}"#).await.text();
    let held = &await_held_calls(serving.cli(), 1)[0];
    assert!(refused.contains(held["id"].as_str().unwrap()), "{refused}");
    approve(serving.cli(), held);
    assert_eq!(client.call("write_sheet", r#"{"row":1}"#).await.text(), r#"{"row":1}"#);
    assert_eq!(writes(&journal), 1);
}
