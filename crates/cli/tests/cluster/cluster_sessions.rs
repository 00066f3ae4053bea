//! Sessions of legacy clients at replicas behind a load balancer: a request at another replica is served at the owner replica of its session
//! over NATS, and by another replica once the owner is dead. Nothing runs twice, and no session sees messages of another one.

use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use rustix::process::Signal;
use serde_json::{Value, json};
use toolhub_server::hash_of;

use crate::test_cluster::{Client, Process, TEST_TIMEOUT, TestCluster};

pub(crate) const KEYS: [&str; 2] = ["secret of ann", "secret of bob"];

pub(crate) fn keys() -> String {
    let key = |name: &str, key: &str| {
        format!("[[auth.tokens]]\nname = \"{name}\"\nsha256 = \"{}\"\n", hash_of(key))
    };
    format!("{}{}", key("ann", KEYS[0]), key("bob", KEYS[1]))
}

/// A legacy client with a session, which can use any replica.
#[derive(Clone)]
pub(crate) struct LegacyClient {
    http: reqwest::Client,
    key: &'static str,
    session: String,
}

impl LegacyClient {
    /// A client with a new session; `None` if it gets none.
    pub(crate) async fn connect(replica: &impl AsRef<str>, key: &'static str) -> Option<Self> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().no_proxy().timeout(TEST_TIMEOUT).build().unwrap();
        let mut client = Self { http, key, session: String::new() };
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {"form": {}}},
            "clientInfo": {"name": "test", "version": "1"}});
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let response = client.request(reqwest::Method::POST, replica).body(hello.to_string()).send().await;
        client.session = response.ok()?.headers().get("mcp-session-id")?.to_str().unwrap().to_owned();
        Some(client)
    }

    fn request(&self, method: reqwest::Method, replica: &impl AsRef<str>) -> reqwest::RequestBuilder {
        let request = self
            .http
            .request(method, replica.as_ref())
            .bearer_auth(self.key)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2025-11-25");
        match self.session.as_str() {
            "" => request,
            session => request.header("mcp-session-id", session),
        }
    }

    async fn post(&self, replica: &impl AsRef<str>, message: &Value) -> reqwest::Response {
        self.request(reqwest::Method::POST, replica).body(message.to_string()).send().await.unwrap()
    }

    async fn status(&self, replica: &impl AsRef<str>, message: &Value) -> u16 {
        self.post(replica, message).await.status().as_u16()
    }

    /// Calls a tool, and returns the answer as text, or the error of the transport.
    pub(crate) async fn call(&self, replica: &impl AsRef<str>, tool: &str, arguments: Value) -> String {
        let request = self.request(reqwest::Method::POST, replica).body(call(1, tool, arguments).to_string());
        match request.send().await {
            Ok(response) => response.text().await.unwrap_or_else(|error| error.to_string()),
            Err(error) => format!("{error:?}"),
        }
    }

    pub(crate) async fn append(&self, replica: &impl AsRef<str>, id: &str) -> String {
        self.call(replica, "append", json!({"id": id})).await
    }

    pub(crate) async fn listen(&self, replica: &impl AsRef<str>) -> Events {
        let response = self.request(reqwest::Method::GET, replica).send().await.unwrap();
        assert_eq!(response.status(), 200);
        Events::of(response)
    }
}

fn call(id: u32, tool: &str, arguments: Value) -> Value {
    let mut params = json!({"name": tool});
    params["arguments"] = arguments;
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

fn answer(question: &Value, name: &str) -> Value {
    let result = json!({"action": "accept", "content": {"name": name}});
    json!({"jsonrpc": "2.0", "id": question["id"], "result": result})
}

/// The messages of a stream.
pub(crate) struct Events {
    stream: futures_util::stream::BoxStream<'static, reqwest::Result<Vec<u8>>>,
    text: String,
}

impl Events {
    fn of(response: reqwest::Response) -> Self {
        let stream = response.bytes_stream().map(|piece| piece.map(|piece| piece.to_vec()));
        Self { stream: stream.boxed(), text: String::new() }
    }

    /// The next message; `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        let limit = Instant::now() + Duration::from_secs(20);
        loop {
            while let Some((line, rest)) = self.text.split_once('\n') {
                let data = line.strip_prefix("data: ").filter(|data| !data.trim().is_empty());
                let message = data.map(|data| serde_json::from_str(data).unwrap());
                self.text = rest.to_owned();
                if message.is_some() {
                    return message;
                }
            }
            let left = limit.saturating_duration_since(Instant::now());
            let piece = tokio::time::timeout(left, self.stream.next()).await.unwrap();
            self.text += std::str::from_utf8(&piece?.ok()?).unwrap();
        }
    }
}

/// Two replicas and a worker that are ready.
async fn ready(cluster: &mut TestCluster) -> ([Process; 2], Process) {
    let (one, other, worker) = (cluster.replica(), cluster.replica(), cluster.worker(&[]));
    for replica in [&one, &other] {
        Client::of(replica).with_key(KEYS[0]).await_ready().await;
    }
    ([one, other], worker)
}

fn ran(cluster: &TestCluster, id: &str) -> usize {
    cluster.ran().iter().filter(|ran| *ran == id).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn session_is_served_at_its_owner_through_every_replica() {
    let mut cluster = TestCluster::new(&keys());
    let ([one, other], _worker) = ready(&mut cluster).await;
    let ann = LegacyClient::connect(&one, KEYS[0]).await.unwrap();
    let bob = LegacyClient::connect(&other, KEYS[1]).await.unwrap();
    for (id, replica) in [("at its owner", &one), ("elsewhere", &other)] {
        let answer = ann.append(replica, id).await;
        assert!(answer.contains("\"result\"") && ran(&cluster, id) == 1, "{answer}");
    }
    // Large messages travel in pieces.
    let text = "x".repeat(3 << 20);
    let answer_text = ann.call(&other, "append", json!({"id": "large", "text": text})).await;
    assert!(answer_text.contains(&text), "{}", answer_text.len());

    // A question of a call at one replica is answered at the other, by its own session alone.
    for (asked, answered) in [(&other, &one), (&one, &other), (&other, &other)] {
        let response = ann.post(asked, &call(7, "ask", json!({"id": "for ann"}))).await;
        let mut events = Events::of(response);
        let question = events.next().await.unwrap();
        assert_eq!(question["params"]["message"], "for ann", "{question}");
        for replica in [&one, &other] {
            // With the session of ann, and with the own one.
            let thief = LegacyClient { key: KEYS[1], ..ann.clone() };
            assert_eq!(thief.status(replica, &answer(&question, "thief")).await, 404);
            assert_eq!(bob.status(replica, &answer(&question, "bob")).await, 202);
        }
        assert_eq!(ann.status(answered, &answer(&question, "ann")).await, 202);
        let result = events.next().await.unwrap().to_string();
        assert!(
            result.contains("\\\"ann\\\"") && !result.contains("thief") && !result.contains("bob"),
            "{result}"
        );
    }

    // The stream of a session at another replica brings its notifications; DELETE there ends it everywhere.
    let mut events = ann.listen(&other).await;
    ann.call(&one, "change", json!({})).await;
    let deleted = ann.request(reqwest::Method::DELETE, &other).send().await.unwrap();
    assert_eq!(deleted.status(), 204);
    while events.next().await.is_some() {}
    for replica in [&one, &other] {
        assert_eq!(ann.status(replica, &call(9, "append", json!({"id": "ended"}))).await, 404);
    }
    assert_eq!(ran(&cluster, "ended"), 0);
    // The other session goes on.
    assert!(bob.append(&one, "bob").await.contains("\"result\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn session_of_a_killed_owner_goes_on_at_another_replica_at_once() {
    let mut cluster = TestCluster::new(&keys());
    let ([mut one, other], _worker) = ready(&mut cluster).await;
    let ann = LegacyClient::connect(&one, KEYS[0]).await.unwrap();
    assert!(ann.append(&other, "before").await.contains("\"result\""));
    let mut events = ann.listen(&other).await;
    one.kill();
    let since = Instant::now();
    let answer = ann.append(&other, "after").await;
    assert!(answer.contains("\"result\""), "{answer}");
    assert!(since.elapsed() < Duration::from_secs(15));
    // Its stream ends, and the client opens a new one.
    while events.next().await.is_some() {}
    drop(ann.listen(&other).await);
    for id in ["before", "after"] {
        assert_eq!(ran(&cluster, id), 1, "{id}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn call_at_a_frozen_owner_is_not_made_again() {
    let mut cluster = TestCluster::new(&keys());
    let ([one, other], _worker) = ready(&mut cluster).await;
    let ann = LegacyClient::connect(&one, KEYS[0]).await.unwrap();
    assert!(ann.append(&other, "before").await.contains("\"result\""));
    one.signal(Signal::STOP);
    let lost = ann.append(&other, "frozen").await;
    assert!(lost.contains("may have had its effect"), "{lost}");
    one.signal(Signal::CONT);
    tokio::time::sleep(Duration::from_secs(2)).await;
    // The owner detected that the request is late.
    assert_eq!(ran(&cluster, "frozen"), 0);
    assert!(ann.append(&other, "later").await.contains("\"result\""));
    assert_eq!(ran(&cluster, "later"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_of_a_session_fails_while_its_owner_ends() {
    let mut cluster = TestCluster::new(&keys());
    let ([mut one, other], _worker) = ready(&mut cluster).await;
    let ann = LegacyClient::connect(&one, KEYS[0]).await.unwrap();
    let calling = async {
        let mut failed = Vec::new();
        for number in 0..40 {
            let arguments = json!({"id": format!("call {number}"), "ms": 50});
            let answer = ann.call(&other, "append", arguments).await;
            if !answer.contains("\"result\"") {
                failed.push(answer);
            }
        }
        failed
    };
    let ending = tokio::task::spawn_blocking(move || {
        std::thread::sleep(Duration::from_millis(500));
        one.terminate();
    });
    let (failed, ended) = tokio::join!(calling, ending);
    ended.unwrap();
    assert_eq!(failed, [""; 0]);
    for number in 0..40 {
        assert_eq!(ran(&cluster, &format!("call {number}")), 1, "{number}");
    }
}

/// A replica that is frozen while its connection to the database is lost counts as ended after a while; it runs on, and connects
/// again.
#[tokio::test(flavor = "multi_thread")]
async fn session_lives_at_one_replica_after_a_lost_connection_to_the_database() {
    let mut cluster = TestCluster::new(&keys());
    let ([one, other], _worker) = ready(&mut cluster).await;
    let ann = LegacyClient::connect(&one, KEYS[0]).await.unwrap();
    let bob = LegacyClient::connect(&one, KEYS[1]).await.unwrap();
    let (mut former, mut kept) = (ann.listen(&one).await, bob.listen(&one).await);
    let adopted = "SELECT count(*) FROM toolhub.shared_state WHERE kind = 'session-home'";
    one.signal(Signal::STOP);
    // All connections to this database that show a process alive; the server has further databases.
    cluster.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted \
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND pid <> pg_backend_pid()",
    );
    let since = Instant::now();
    let mut number = 0;
    while cluster.execute(adopted) != "1" {
        assert!(since.elapsed() < TEST_TIMEOUT, "no replica adopts the session");
        number += 1;
        let _ = ann.append(&other, &format!("meanwhile {number}")).await;
    }
    one.signal(Signal::CONT);
    // The former owner notices, and closes what it still has.
    let since = Instant::now();
    while former.next().await.is_some() {}
    assert!(since.elapsed() < Duration::from_secs(15), "{:?}", since.elapsed());
    for (id, replica) in [("at the former owner", &one), ("at the new owner", &other)] {
        let answer = ann.append(replica, id).await;
        assert!(answer.contains("\"result\"") && ran(&cluster, id) == 1, "{answer}");
    }
    // A question of a call at one replica can be answered at the other: there is one session.
    let mut events = Events::of(ann.post(&one, &call(7, "ask", json!({"id": "which?"}))).await);
    let question = events.next().await.unwrap();
    assert_eq!(ann.status(&other, &answer(&question, "ann")).await, 202);
    assert!(events.next().await.unwrap().to_string().contains("\\\"ann\\\""));
    assert!((1..=number).all(|number| ran(&cluster, &format!("meanwhile {number}")) <= 1));
    // A session that was not adopted stays as it was.
    ann.call(&other, "change", json!({})).await;
    while kept.next().await.expect("the stream stays open")["method"] != "notifications/tools/list_changed" {}
}

#[tokio::test(flavor = "multi_thread")]
async fn revoked_key_ends_a_stream_at_another_replica() {
    let mut cluster = TestCluster::new(&keys());
    let ([one, other], _worker) = ready(&mut cluster).await;
    let ann = LegacyClient::connect(&one, KEYS[0]).await.unwrap();
    let bob = LegacyClient::connect(&one, KEYS[1]).await.unwrap();
    let (mut ended, _open) = (ann.listen(&other).await, bob.listen(&other).await);
    let settings = std::fs::read_to_string(cluster.path("toolhub.toml")).unwrap();
    std::fs::write(cluster.path("toolhub.toml"), settings.replace(&hash_of(KEYS[0]), &hash_of("another")))
        .unwrap();
    let since = Instant::now();
    while ended.next().await.is_some() {}
    assert!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
    for replica in [&one, &other] {
        assert_eq!(ann.status(replica, &call(1, "append", json!({"id": "revoked"}))).await, 401);
    }
    assert!(bob.append(&other, "bob").await.contains("\"result\""));
    assert_eq!(ran(&cluster, "revoked"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_tools_are_announced_to_sessions_at_every_replica() {
    let mut cluster = TestCluster::new(&keys());
    let ([one, other], _worker) = ready(&mut cluster).await;
    let ann = LegacyClient::connect(&one, KEYS[0]).await.unwrap();
    let bob = LegacyClient::connect(&other, KEYS[1]).await.unwrap();
    let mut streams = [ann.listen(&other).await, bob.listen(&other).await];
    let since = Instant::now();
    ann.call(&one, "change", json!({})).await;
    for (index, events) in streams.iter_mut().enumerate() {
        loop {
            let message = events.next().await.expect("the stream stays open");
            if message["method"] == "notifications/tools/list_changed" {
                break;
            }
        }
        assert!(since.elapsed() < Duration::from_secs(15), "{index} {:?}", since.elapsed());
    }
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
    for replica in [&one, &other] {
        let listed = ann.post(replica, &list).await.text().await.unwrap();
        assert!(listed.contains("extra-1"), "{listed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn task_of_a_server_on_a_worker_is_reached_through_every_replica() {
    let mut cluster = TestCluster::new(&keys());
    let ([mut one, other], _worker) = ready(&mut cluster).await;
    let ann = LegacyClient::connect(&one, KEYS[0]).await.unwrap();
    let begun: Value = serde_json::from_str(&ann.call(&one, "begin", json!({})).await).unwrap();
    let task = begun["result"]["task"]["taskId"].as_str().unwrap_or_else(|| panic!("{begun}")).to_owned();
    let request =
        |method: &str| json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"taskId": task}});
    // Through sessions that have nothing in common with the one that began it, also after the end of that replica.
    for is_killed in [false, true] {
        if is_killed {
            one.kill();
        }
        let own = LegacyClient::connect(&other, KEYS[0]).await.unwrap();
        let result = own.post(&other, &request("tasks/result")).await.text().await.unwrap();
        assert!(result.contains("task of "), "{is_killed} {result}");
        let foreign = LegacyClient::connect(&other, KEYS[1]).await.unwrap();
        for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
            let refused = foreign.post(&other, &request(method)).await.text().await.unwrap();
            assert!(refused.contains("-32602"), "{is_killed} {method} {refused}");
        }
    }
}
