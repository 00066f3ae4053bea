//! Several `toolhub serve` with one PostgreSQL database: what is asked at one replica is decided and continued at another, what is
//! ended is ended everywhere, and no principal reaches what belongs to another one, at any replica.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolhub_testkit::CommandLine;
use toolhub_testkit::postgres::PostgresServer;
use toolhub_testkit::scripted::{HttpServer, Journal, Script};

use crate::raw_client::{Era, RawClient};
use crate::serving::{Serving, TEST_TIMEOUT, hub};
use crate::team_access::{HOLDING, NewKey, new_key};

const ANN: NewKey = NewKey { name: "ann", options: &[] };
const BOB: NewKey = NewKey { name: "bob", options: &[] };
/// How long a change at one replica may take to reach the others. They learn of it within a second; the rest is for machines that
/// stall.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(8);

/// Replicas with the same settings and keys, each with a folder of its own, before one server over HTTP.
struct Replicas {
    serving: Vec<Serving>,
    keys: Vec<String>,
    server: HttpServer,
    folder: tempfile::TempDir,
}

impl Replicas {
    /// Starts two replicas. The settings of each are `settings` with its own ones behind.
    fn start(script: Script, settings: &str, own: [&str; 2]) -> Self {
        Self::start_with_keys(script, settings, own, |settings| settings)
    }

    /// Like [`Self::start`], with settings that are changed after the keys were added.
    fn start_with_keys(
        script: Script,
        settings: &str,
        own: [&str; 2],
        change: impl FnOnce(String) -> String,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = HttpServer::start(&script.journal(folder.path().join("journal")));
        let store = format!("[store]\nurl = \"{}\"\n", PostgresServer::shared().new_database());
        let first = hub(&format!("{store}{settings}"));
        let keys = [ANN, BOB].iter().map(|key| new_key(&first, key)).collect();
        let all = change(fs::read_to_string(first.folder().join("toolhub.toml")).unwrap());
        let second = hub("");
        let serving = [first, second].into_iter().zip(own).map(|(mut cli, own)| {
            fs::write(cli.folder().join("toolhub.toml"), format!("{all}\n{own}")).unwrap();
            cli.entry("s", json!({"type": "http", "url": server.url}));
            Serving::start(cli)
        });
        Self { serving: serving.collect(), keys, server, folder }
    }

    fn url(&self, replica: usize) -> String {
        self.serving[replica].url()
    }

    fn cli(&self, replica: usize) -> &CommandLine {
        self.serving[replica].cli()
    }

    async fn client(&self, replica: usize, era: Era, key: usize) -> RawClient {
        RawClient::with_token(&self.url(replica), era, Some(&self.keys[key])).await
    }

    /// The same client with the same session, at another replica.
    fn at(&self, client: &RawClient, replica: usize) -> RawClient {
        let mut moved = client.clone();
        moved.move_to(&self.url(replica));
        moved
    }

    /// The arguments of all calls that the server received.
    fn calls(&self) -> Vec<Value> {
        let journal = Journal::read(self.folder.path().join("journal"));
        let messages = journal.messages();
        let calls = messages.into_iter().filter(|message| message["method"] == "tools/call");
        calls.map(|call| call["params"]["arguments"].clone()).collect()
    }

    /// Kills a replica with SIGKILL. Returns its files.
    async fn kill(&mut self, replica: usize) -> CommandLine {
        let killed = self.serving.remove(replica).kill();
        // Its connections to the database end, and with them its lock.
        tokio::time::sleep(Duration::from_millis(300)).await;
        killed
    }
}

fn sheets() -> Script {
    Script::both().plain_tool("read_sheet").plain_tool("write_sheet")
}

fn held_calls(cli: &CommandLine) -> Vec<Value> {
    cli.run(&["waiting", "--json"]).json().as_array().unwrap().clone()
}

/// The statuses of a POST, a GET and a DELETE with the headers of this client. An opened stream is closed.
async fn statuses(client: &RawClient) -> [u16; 3] {
    let status = |sent: Result<reqwest::Response, reqwest::Error>| sent.unwrap().status().as_u16();
    [
        status(client.request("1", "ping", "").send().await),
        status(client.get().send().await),
        status(client.delete().send().await),
    ]
}

/// Waits until a client receives the end of its session, without ending it.
async fn await_end(client: &RawClient, since: Instant) {
    while client.request("1", "ping", "").send().await.unwrap().status() != 404 {
        assert!(since.elapsed() < CHANGE_TIMEOUT, "it is ended everywhere");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(statuses(client).await, [404; 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn held_call_is_approved_at_another_replica_and_runs_once() {
    let replicas = Replicas::start(sheets(), HOLDING, ["", ""]);
    let mut clients = Vec::new();
    for replica in [0, 1] {
        let mut client = replicas.client(replica, Era::Modern, 0).await;
        client.declare(json!({}));
        clients.push(client);
    }
    // The same call at both replicas is one held call.
    let call = async |replica: usize| clients[replica].call("write_sheet", r#"{"row":1}"#).await;
    let (one, other) = tokio::join!(call(0), call(1));
    for answer in [&one, &other] {
        assert!(answer.text().contains("waits for approval"), "{}", answer.text());
    }
    let held = held_calls(replicas.cli(1));
    assert_eq!(held.len(), 1, "{held:?}");
    assert_eq!(held, held_calls(replicas.cli(0)));
    let id = held[0]["id"].as_str().unwrap();
    // Many approve at the same time, at both replicas: one succeeds.
    let approved: Vec<Option<i32>> = std::thread::scope(|scope| {
        let approving: Vec<_> = (0..8)
            .map(|number| {
                let cli = replicas.cli(number % 2);
                scope.spawn(move || cli.run(&["waiting", "approve", id]).code)
            })
            .collect();
        approving.into_iter().map(|approving| approving.join().unwrap()).collect()
    });
    assert_eq!(approved.iter().filter(|code| **code == Some(0)).count(), 1, "{approved:?}");
    assert_eq!(replicas.calls(), [] as [Value; 0], "an approval alone runs nothing");
    // Fifty repetitions at both replicas: one of them runs.
    let repeated = (0..50).map(|number| call(number % 2));
    let answers = futures_util::future::join_all(repeated).await;
    let ran = answers.iter().filter(|answer| answer.text() == r#"{"row":1}"#).count();
    assert_eq!((ran, replicas.calls()), (1, vec![json!({"row": 1})]));
}

#[tokio::test(flavor = "multi_thread")]
async fn held_calls_survive_killed_replicas() {
    let mut replicas = Replicas::start(sheets(), HOLDING, ["", ""]);
    let mut client = replicas.client(0, Era::Modern, 0).await;
    client.declare(json!({}));
    client.call("write_sheet", r#"{"row":1}"#).await;
    let first = replicas.kill(0).await;
    let held = held_calls(replicas.cli(0));
    assert_eq!(held.len(), 1, "{held:?}");
    let id = held[0]["id"].as_str().unwrap().to_owned();
    let approved = first.run(&["waiting", "approve", &id]);
    assert_eq!(approved.code, Some(0), "{approved:?}");
    let second = replicas.kill(0).await;
    assert_eq!(replicas.calls(), [] as [Value; 0]);
    replicas.serving.push(Serving::start(second));
    let mut client = replicas.client(0, Era::Modern, 0).await;
    client.declare(json!({}));
    for expect in [r#"{"row":1}"#, "waits for approval"] {
        let answer = client.call("write_sheet", r#"{"row":1}"#).await.text();
        assert!(answer.contains(expect), "{answer}");
    }
    assert_eq!(replicas.calls().len(), 1);
    // Another principal has its own calls.
    let mut bob = replicas.client(0, Era::Modern, 1).await;
    bob.declare(json!({}));
    assert!(bob.call("write_sheet", r#"{"row":1}"#).await.text().contains("waits for approval"));
    assert_eq!(replicas.calls().len(), 1);
}

/// A client that waits at one replica goes on as soon as its call is approved at another.
#[tokio::test(flavor = "multi_thread")]
async fn waiting_client_goes_on_after_an_approval_at_another_replica() {
    let replicas = Replicas::start(sheets(), HOLDING, ["", ""]);
    let client = replicas.client(0, Era::Legacy, 0).await;
    let calling = client.call("write_sheet", r#"{"row":7}"#);
    let approving = async {
        let since = Instant::now();
        let held = loop {
            let held = held_calls(replicas.cli(1));
            if !held.is_empty() {
                break held;
            }
            assert!(since.elapsed() < TEST_TIMEOUT);
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        let approved = replicas.cli(1).run(&["waiting", "approve", held[0]["id"].as_str().unwrap()]);
        assert_eq!(approved.code, Some(0), "{approved:?}");
        Instant::now()
    };
    let (answer, approved) = tokio::join!(async { (calling.await, Instant::now()) }, approving);
    assert_eq!(answer.0.text(), r#"{"row":7}"#);
    let took = answer.1.saturating_duration_since(approved);
    assert!(took < CHANGE_TIMEOUT, "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn legacy_session_continues_at_another_replica_after_a_kill() {
    let mut replicas = Replicas::start(sheets(), "", ["", ""]);
    let client = replicas.client(0, Era::Legacy, 0).await;
    assert!(client.session().starts_with("v1.") && client.session().len() <= 200, "{}", client.session());
    assert_eq!(client.call("read_sheet", r#"{"n":1}"#).await.text(), r#"{"n":1}"#);
    let first = replicas.kill(0).await;
    let moved = replicas.at(&client, 0);
    // What began at the dead replica cannot be continued: the client starts anew. Until its end is certain, it may try again.
    let (since, mut status) = (Instant::now(), 503);
    while status == 503 {
        assert!(since.elapsed() < TEST_TIMEOUT, "the end of the replica is not noticed");
        let resumed = moved.get().header("last-event-id", "0-1").send().await.unwrap();
        status = resumed.status().as_u16();
    }
    assert_eq!(status, 404);
    let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {}}).to_string();
    assert_eq!(moved.post(answer).send().await.unwrap().status(), 404);
    // Everything else goes on.
    assert_eq!(moved.call("read_sheet", r#"{"n":2}"#).await.text(), r#"{"n":2}"#);
    assert_eq!(replicas.calls(), [json!({"n": 1}), json!({"n": 2})]);
    // The replica that comes back is another one, and the session has an owner.
    replicas.serving.push(Serving::start(first));
    let back = replicas.at(&client, 1);
    assert_eq!(back.call("read_sheet", r#"{"n":3}"#).await.text(), r#"{"n":3}"#);
    moved.end().await;
    await_end(&back, Instant::now()).await;
    assert_eq!(statuses(&moved).await, [404; 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn ended_session_is_ended_at_every_replica() {
    let replicas = Replicas::start(sheets(), "", ["", ""]);
    for (used_elsewhere, ended_at) in [(false, 0), (true, 0), (true, 1)] {
        let client = replicas.client(0, Era::Legacy, 0).await;
        let elsewhere = replicas.at(&client, 1);
        if used_elsewhere {
            assert_eq!(elsewhere.call("read_sheet", "{}").await.text(), "{}");
        }
        replicas.at(&client, ended_at).end().await;
        let since = Instant::now();
        for one in [&client, &elsewhere] {
            await_end(one, since).await;
        }
    }
    // Capabilities that do not fit into an id are found by every replica.
    let mut long = json!({"elicitation": {"form": {}}, "experimental": {}});
    long["experimental"]["x"] = json!({"text": "x".repeat(10_000)});
    let mut client = replicas.client(0, Era::Modern, 0).await;
    client.declare(long.clone());
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": long,
        "clientInfo": {"name": "raw", "version": "1"}});
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    let response = client.post(hello.to_string()).send().await.unwrap();
    let session = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    assert!(session.len() <= 200, "{session}");
    let mut elsewhere = replicas.client(1, Era::Legacy, 0).await;
    elsewhere.set("mcp-session-id", &session);
    assert_eq!(elsewhere.call("read_sheet", "{}").await.text(), "{}");
    let mut thief = replicas.client(1, Era::Legacy, 1).await;
    thief.set("mcp-session-id", &session);
    assert_eq!(statuses(&thief).await, [404; 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_and_altered_sessions_are_refused_at_every_replica() {
    let replicas = Replicas::start(sheets(), "", ["", ""]);
    let client = replicas.client(0, Era::Legacy, 0).await;
    let id = client.session().to_owned();
    for replica in [0, 1] {
        let mut thief = replicas.at(&client, replica);
        thief.set("authorization", &format!("Bearer {}", replicas.keys[1]));
        assert_eq!(statuses(&thief).await, [404; 3], "{replica}");
        let mut nobody = replicas.at(&client, replica);
        nobody.set("authorization", "Bearer wrong");
        assert_eq!(statuses(&nobody).await, [401; 3], "{replica}");
        for at in (0..id.len()).step_by(7) {
            let mut altered = id.clone().into_bytes();
            altered[at] = if altered[at] == b'A' { b'B' } else { b'A' };
            let mut forger = replicas.at(&client, replica);
            forger.set("mcp-session-id", std::str::from_utf8(&altered).unwrap());
            assert_eq!(statuses(&forger).await, [404; 3], "{replica} {at}");
        }
    }
    // Control: none of these requests has ended the session.
    assert_eq!(replicas.at(&client, 1).call("read_sheet", "{}").await.text(), "{}");
    assert_eq!(client.call("read_sheet", "{}").await.text(), "{}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rotated_session_keys_open_ids_while_they_are_listed() {
    let keys =
        ["AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="];
    let old = format!("[cluster]\nsession_keys = [\"{}\"]\n", keys[0]);
    let both = format!("[cluster]\nsession_keys = [\"{}\", \"{}\"]\n", keys[1], keys[0]);
    let mut replicas = Replicas::start(sheets(), "", [&old, &both]);
    let before = replicas.client(0, Era::Legacy, 0).await;
    let after = replicas.client(1, Era::Legacy, 0).await;
    assert_eq!(replicas.at(&before, 1).call("read_sheet", "{}").await.text(), "{}");
    assert_eq!(statuses(&replicas.at(&after, 0)).await, [404; 3], "the new key is not known there");
    // A replica from which the old key was removed.
    let cli = replicas.kill(0).await;
    let settings = fs::read_to_string(cli.folder().join("toolhub.toml")).unwrap().replace(keys[0], keys[1]);
    fs::write(cli.folder().join("toolhub.toml"), settings).unwrap();
    replicas.serving.push(Serving::start(cli));
    assert_eq!(statuses(&replicas.at(&before, 1)).await, [404; 3], "the old key is not known there");
    assert_eq!(replicas.at(&after, 1).call("read_sheet", "{}").await.text(), "{}");
}

#[tokio::test(flavor = "multi_thread")]
async fn daily_budget_counts_over_all_replicas() {
    let replicas = Replicas::start_with_keys(sheets(), "", ["", ""], |settings| {
        let settings = settings.replace("name = \"ann\"", "name = \"ann\"\nper_day = 7");
        assert!(settings.contains("per_day"), "{settings}");
        settings
    });
    let clients = [replicas.client(0, Era::Modern, 0).await, replicas.client(1, Era::Modern, 0).await];
    let calls = (0..30).map(|number| clients[number % 2].call("read_sheet", "{}"));
    let answers = futures_util::future::join_all(calls).await;
    assert_eq!(answers.iter().filter(|answer| answer.text() == "{}").count(), 7);
    assert_eq!(replicas.calls().len(), 7);
    let bob = replicas.client(1, Era::Modern, 1).await;
    assert_eq!(bob.call("read_sheet", "{}").await.text(), "{}", "the budget of another key");
}

#[tokio::test(flavor = "multi_thread")]
async fn task_is_reached_at_every_replica_by_its_principal_alone() {
    let task =
        json!({"taskId": "t-1", "status": "working", "createdAt": "2025-11-25T00:00:00Z", "ttl": 60000});
    let script = Script::legacy()
        .plain_tool("begin")
        .on("tools/call:begin", json!([{"reply": {"task": task}}]))
        .on("tasks/get", json!([{"reply": task}]))
        .on("tasks/result", json!([{"text": "the secret"}]))
        .on("tasks/cancel", json!([{"reply": task}]));
    let mut replicas = Replicas::start(script, "", ["", ""]);
    let ann = replicas.client(0, Era::Legacy, 0).await;
    assert!(ann.call("begin", "{}").await.result().contains("t-1"));
    let listed = async |client: &RawClient| {
        let listing: Value = serde_json::from_str(client.ask("1", "tasks/list", "").await.result()).unwrap();
        listing["tasks"].as_array().unwrap().len()
    };
    for killed in [false, true] {
        if killed {
            drop(replicas.kill(0).await);
        }
        let other = usize::from(!killed);
        let bob = replicas.client(other, Era::Legacy, 1).await;
        for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
            assert_eq!(bob.ask("1", method, r#""taskId":"t-1""#).await.error(), -32602, "{method} {killed}");
        }
        assert_eq!(listed(&bob).await, 0);
        let own = replicas.client(other, Era::Legacy, 0).await;
        assert_eq!(own.ask("1", "tasks/result", r#""taskId":"t-1""#).await.text(), "the secret");
        assert!(own.ask("1", "tasks/get", r#""taskId":"t-1""#).await.result().contains("working"));
        assert_eq!(listed(&own).await, 1);
    }
    // The server gives the same id to another principal: neither has access, at any replica.
    let bob = replicas.client(0, Era::Legacy, 1).await;
    assert!(bob.call("begin", "{}").await.result().contains("t-1"));
    let own = replicas.client(0, Era::Legacy, 0).await;
    for client in [&bob, &own] {
        assert_eq!(client.ask("1", "tasks/result", r#""taskId":"t-1""#).await.error(), -32602);
        assert_eq!(listed(client).await, 0);
    }
    drop(replicas.server);
}
