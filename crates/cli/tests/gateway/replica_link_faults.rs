//! Requests between gateways that are lost, come too late, or exceed what a principal may hold: the client is told what is known,
//! and nothing runs twice.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolhub_mcp_gateway::HttpReply;
use toolhub_testkit::network::Network;
use toolhub_testkit::postgres::{PostgresServer, Stop};

use crate::replica_link::{Caller, Linked, call, modern, status, text};
use crate::serving::TEST_TIMEOUT;

async fn start(more: &str) -> Linked {
    let database = PostgresServer::shared().new_database();
    Linked::start_with([&database, &database], more).await
}

/// Two gateways, and the network between the first one and its database.
async fn start_behind_network(server: &PostgresServer) -> (Linked, Network) {
    let network = Network::to(server.port()).await;
    let database = server.new_database();
    let through = database.replace(&format!(":{}/", server.port()), &format!(":{}/", network.port()));
    assert_ne!(through, database);
    (Linked::start_with([&through, &database], "").await, network)
}

/// A request that needs no database.
fn ping(id: u32) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "ping"})
}

/// A client takes 200 or 202 for a message that was received; 503 would be sent again.
#[tokio::test(flavor = "multi_thread")]
async fn lost_messages_are_no_success_and_are_sent_once() {
    let linked = start("").await;
    let mut ann = Caller::new("ann", &linked);
    ann.initialize(&linked, 0).await;
    let second = linked.gateways[1].profile(None).unwrap();
    linked.link.loses_responses.store(true, Ordering::Relaxed);
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"});
    let answer = json!({"jsonrpc": "2.0", "id": 7, "result": {}});
    for (number, message) in [notification, answer].into_iter().enumerate() {
        let lost = linked.post(1, &ann, message.clone()).await;
        assert_eq!((status(&lost), linked.sent()), (504, number + 1), "{message}");
        assert!(text(lost).contains("may have had its effect"), "{message}");
    }
    // A request has an id, under which its client learns the same.
    let lost = linked.post(1, &ann, call(1, "work")).await;
    assert_eq!((status(&lost), linked.sent()), (200, 3));
    let lost: Value = serde_json::from_str(&text(lost)).unwrap();
    let message = lost["error"]["message"].as_str().unwrap();
    assert!(lost["id"] == 1 && message.contains("may have had its effect"), "{lost}");
    assert_eq!(status(&second.get(&ann.headers, &ann.principal).await), 504);
    assert_eq!(status(&second.delete(&ann.headers, &ann.principal).await), 504);
    assert_eq!(linked.sent(), 5);
    // It had its effect.
    linked.link.loses_responses.store(false, Ordering::Relaxed);
    assert_eq!(status(&linked.post(1, &ann, call(2, "work")).await), 404);
    linked.close().await;
}

/// The replica that receives a request counts it; what stays at the home counts there, also if another replica has sent it.
#[tokio::test(flavor = "multi_thread")]
async fn limits_of_a_principal_hold_at_the_home_for_forwarded_requests() {
    let linked = start("[serve.limits]\nstreams = 2\npending_input = 2\n").await;
    let (mut ann, mut bob) = (Caller::new("ann", &linked), Caller::new("bob", &linked));
    ann.initialize(&linked, 0).await;
    bob.initialize(&linked, 0).await;
    // The handles of this test have no limits: those of the home count.
    let second = linked.gateways[1].profile(None).unwrap();
    let mut streams = Vec::new();
    for _ in 0..2 {
        let stream = second.get(&ann.headers, &ann.principal).await;
        assert!(matches!(stream, HttpReply::Events(_)), "{}", status(&stream));
        streams.push(stream);
    }
    assert_eq!(status(&second.get(&ann.headers, &ann.principal).await), 429);
    let foreign = second.get(&bob.headers, &bob.principal).await;
    assert!(matches!(foreign, HttpReply::Events(_)), "another principal has its own limit");
    streams.pop();
    let since = Instant::now();
    while matches!(second.get(&ann.headers, &ann.principal).await, HttpReply::Body { .. }) {
        assert!(since.elapsed() < TEST_TIMEOUT, "a closed stream does not count any more");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    linked.close().await;
}

/// What waits for input ends with its replica. The client is told to begin again, not to try the same for ever.
#[tokio::test(flavor = "multi_thread")]
async fn request_state_of_an_ended_replica_is_not_known() {
    let (linked, network) = start_behind_network(PostgresServer::shared()).await;
    let ann = Caller::new("ann", &linked);
    let (body, caller) = modern(call(1, "ask"), &ann);
    let asked: Value = serde_json::from_str(&text(linked.post(0, &caller, body).await)).unwrap();
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let mut retry = call(2, "ask");
    retry["params"]["requestState"] = asked["result"]["requestState"].clone();
    retry["params"]["inputResponses"] = json!({"question-1": {"action": "decline"}});
    // While the replica is only unreachable, nothing is done.
    let reachable = std::mem::take(&mut *linked.link.gateways.lock().unwrap());
    let (body, caller) = modern(retry.clone(), &ann);
    let refused = linked.post(1, &caller, body).await;
    assert_eq!(status(&refused), 503);
    assert!(text(refused).contains("nothing was done"));
    // As after its end: neither it nor its connection to the database is there any more.
    network.cut();
    let (body, caller) = modern(retry.clone(), &ann);
    let refused = linked.post(1, &caller, body).await;
    assert_eq!(status(&refused), 400);
    assert!(text(refused).contains("make the request again without it"));
    // It was cut off alone: what waits there was neither used nor lost by that.
    network.connect();
    *linked.link.gateways.lock().unwrap() = reachable;
    let (body, caller) = modern(retry, &ann);
    let answered = text(linked.post(1, &caller, body).await);
    assert!(answered.contains("decline"), "{answered}");
    linked.close().await;
}

/// A session whose home lives is not rebuilt elsewhere, though the database has lost all connections and the home is the last to
/// return.
#[tokio::test(flavor = "multi_thread")]
async fn session_stays_at_its_home_while_the_database_restarts() {
    let server = PostgresServer::start();
    let (linked, network) = start_behind_network(&server).await;
    let mut ann = Caller::new("ann", &linked);
    ann.initialize(&linked, 0).await;
    network.cut();
    server.stop(Stop::Fast);
    server.restart();
    let second = linked.gateways[1].profile(None).unwrap();
    let (since, sent) = (Instant::now(), linked.sent());
    for number in 1.. {
        let reply = linked.post(1, &ann, ping(number)).await;
        assert_eq!(second.sessions(), 0, "the session has a second home: {}", status(&reply));
        if since.elapsed() > Duration::from_secs(4) {
            break;
        }
    }
    network.connect();
    while !text(linked.post(1, &ann, ping(99)).await).contains("\"result\"") {
        assert!(since.elapsed() < TEST_TIMEOUT, "the home does not serve its session");
    }
    assert!(linked.sent() > sent);
    assert_eq!(second.sessions(), 0, "the session has a second home");
    linked.close().await;
}
