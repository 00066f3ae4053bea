//! Two hubs with one store: a response is cancelled and deleted at the hub that runs it, wherever that is requested, and a hub
//! that was killed leaves no response without an end.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use toolhub_testkit::postgres::PostgresServer;

use crate::attacks::{hub, respond};
use crate::served_hub::{SecondHub, ServedHub, TEST_TIMEOUT};

/// The settings of each kind of store.
fn stores() -> [String; 2] {
    [String::new(), format!("[store]\nurl = \"{}\"\n", PostgresServer::shared().new_database())]
}

/// A request to a hub with the key of `first`.
async fn send(first: &ServedHub, base: &str, method: &str, path: &str) -> (u16, Value) {
    let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
    let request = first.client.request(method, format!("{base}/{path}")).bearer_auth(&first.key);
    let response = request.send().await.unwrap();
    (response.status().as_u16(), serde_json::from_str(&response.text().await.unwrap()).unwrap())
}

/// A background response whose call does not end, at the first of two hubs.
async fn running(first: &ServedHub) -> String {
    let (status, queued) =
        respond(first, &first.key, json!({"input": "Write row 7.", "background": true})).await;
    assert_eq!(status, 200, "{queued}");
    first.await_called("hold_write", 1).await;
    format!("responses/{}", queued["id"].as_str().unwrap())
}

async fn await_cancelled_call(first: &ServedHub) {
    let since = Instant::now();
    while !first.received().iter().any(|method| method == "notifications/cancelled") {
        assert!(since.elapsed() < TEST_TIMEOUT, "{:?}", first.received());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The response, once it has ended.
async fn ended(first: &ServedHub, second: &SecondHub, path: &str) -> Value {
    let since = Instant::now();
    loop {
        let (status, body) = send(first, &second.base_url(), "GET", path).await;
        assert_eq!(status, 200, "{body}");
        if !["queued", "in_progress"].contains(&body["status"].as_str().unwrap()) {
            return body;
        }
        assert!(since.elapsed() < TEST_TIMEOUT, "{body}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_response_is_cancelled_by_the_hub_that_runs_it() {
    for settings in stores() {
        let first = hub("hold_write", &settings);
        let second = first.second();
        let path = running(&first).await;
        let cancel = ("POST", format!("{path}/cancel"));
        let (status, body) = send(&first, &second.base_url(), cancel.0, &cancel.1).await;
        assert_eq!((status, body["status"].as_str()), (200, Some("cancelled")), "{settings}{body}");
        // Only the hub that ran the turn writes this.
        let error = body["output"][0]["error"].as_str().unwrap();
        assert_eq!(error, "it is not known whether this call had an effect", "{body}");
        await_cancelled_call(&first).await;
        for base in [first.base_url(), second.base_url()] {
            assert_eq!(send(&first, &base, "GET", &path).await, (200, body.clone()), "{settings}");
            assert_eq!(send(&first, &base, cancel.0, &cancel.1).await, (200, body.clone()), "{settings}");
        }
        assert_eq!(first.called(), ["hold_write"]);
    }
}

#[tokio::test]
async fn a_response_that_is_deleted_elsewhere_ends() {
    for settings in stores() {
        let first = hub("hold_write", &settings);
        let second = first.second();
        let path = running(&first).await;
        let (status, deleted) = send(&first, &second.base_url(), "DELETE", &path).await;
        assert_eq!((status, &deleted["deleted"]), (200, &json!(true)), "{deleted}");
        await_cancelled_call(&first).await;
        assert_eq!(send(&first, &first.base_url(), "GET", &path).await.0, 404);
    }
}

#[tokio::test]
async fn a_response_of_a_killed_hub_is_ended_by_the_other() {
    for settings in stores() {
        let mut first = hub("hold_write", &settings);
        let second = first.second();
        let path = running(&first).await;
        first.kill();
        let failed = ended(&first, &second, &path).await;
        assert_eq!(failed["status"], "failed", "{failed}");
        let why = failed["error"]["message"].as_str().unwrap();
        assert!(why.contains("`hold_write`") && why.contains("not known"), "{why}");
        assert_eq!(first.called(), ["hold_write"]);
        first.restart();
    }
}

#[tokio::test]
async fn a_cancelled_response_of_a_killed_hub_stays_cancelled() {
    for settings in stores() {
        let mut first = hub("hold_write", &settings);
        let second = first.second();
        let path = running(&first).await;
        // The hub neither works nor ends: the request is answered with the status that the response has.
        first.signal(Signal::STOP);
        let since = Instant::now();
        let (status, body) = send(&first, &second.base_url(), "POST", &format!("{path}/cancel")).await;
        assert_eq!((status, body["status"].as_str()), (200, Some("in_progress")), "{settings}{body}");
        assert!(since.elapsed() < TEST_TIMEOUT, "{:?}", since.elapsed());
        first.kill();
        let cancelled = ended(&first, &second, &path).await;
        assert_eq!(cancelled["status"], "cancelled", "{settings}{cancelled}");
        first.restart();
        let (_, body) = send(&first, &first.base_url(), "GET", &path).await;
        assert_eq!(body, cancelled, "{settings}");
        assert_eq!(first.called(), ["hold_write"]);
    }
}
