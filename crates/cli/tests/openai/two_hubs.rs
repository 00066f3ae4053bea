//! Two hubs with one store: a response is cancelled and deleted at the hub that runs it, wherever that is requested, a hub that was
//! killed leaves no response without an end, and one that lives keeps its own. Repetitions are refused at both.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use toolhub_testkit::postgres::{PostgresServer, Stop};

use crate::attacks::{MODEL, hub, respond};
use crate::served_hub::{SecondHub, ServedHub, TEST_TIMEOUT};

/// How long a hub is kept from connecting again: longer than the interval in which the other one looks for abandoned responses.
const DELAY: Duration = Duration::from_secs(7);

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

/// The hub that connects first after a restart of the database takes nothing from the one that connects later.
#[tokio::test]
async fn a_response_stays_with_its_hub_while_the_database_restarts() {
    let server = PostgresServer::start();
    let first = hub("hold_write", &format!("[store]\nurl = \"{}\"\n", server.new_database()));
    let second = first.second();
    let path = running(&first).await;
    first.signal(Signal::STOP);
    server.stop(Stop::Immediate);
    server.restart();
    let (since, mut looks) = (Instant::now(), 0);
    while since.elapsed() < DELAY {
        let (status, body) = send(&first, &second.base_url(), "GET", &path).await;
        if status == 200 {
            assert_eq!(body["status"], "in_progress", "{body}");
            looks += 1;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    first.signal(Signal::CONT);
    assert!(looks > 10, "the second hub did not come back: {looks}");
    // The call still runs, and its own hub ends it.
    assert!(!first.received().iter().any(|method| method == "notifications/cancelled"));
    let (_, body) = send(&first, &second.base_url(), "POST", &format!("{path}/cancel")).await;
    assert_eq!(body["status"], "cancelled", "{body}");
    assert_eq!(body["output"][0]["error"], "it is not known whether this call had an effect", "{body}");
    await_cancelled_call(&first).await;
    assert_eq!(first.called(), ["hold_write"]);
}

/// Sends a request that a client library repeats for this time, or that a person sends.
fn request(first: &ServedHub, base: &str, repetition: Option<&str>, key: &str) -> reqwest::RequestBuilder {
    let body = json!({"model": MODEL, "input": "Write row 7."});
    let request = first.client.post(format!("{base}/responses")).bearer_auth(key).body(body.to_string());
    repetition.into_iter().fold(request, |request, count| request.header("x-stainless-retry-count", count))
}

#[tokio::test]
async fn a_repetition_is_refused_at_every_hub_and_after_a_kill() {
    for settings in stores() {
        let mut first = hub("hold_write", &settings);
        let second = first.second();
        let mut waiting = JoinSet::new();
        waiting.spawn(request(&first, &first.base_url(), Some("0"), &first.key).send());
        first.await_called("hold_write", 1).await;
        let refused = async |base: String| {
            let response = request(&first, &base, Some("1"), &first.key).send().await.unwrap();
            let (status, text) = (response.status(), response.text().await.unwrap());
            assert!(status == 424 && text.contains("repeated_after_change"), "{settings}{status} {text}");
        };
        // While the first one runs, and after its client has gone away.
        refused(second.base_url()).await;
        waiting.shutdown().await;
        refused(second.base_url()).await;
        refused(first.base_url()).await;
        assert_eq!(first.called(), ["hold_write"], "{settings}");
        // A request of another principal, and one that a person sends again, are other requests.
        for (repetition, key, count) in [(Some("1"), &first.other_key, 2), (None, &first.key, 3)] {
            let mut other = JoinSet::new();
            other.spawn(request(&first, &second.base_url(), repetition, key).send());
            first.await_called("hold_write", count).await;
            other.shutdown().await;
        }
        first.kill_and_restart();
        let response = request(&first, &first.base_url(), Some("2"), &first.key).send().await.unwrap();
        assert_eq!(response.status(), 424, "{settings}");
        assert_eq!(first.called().len(), 3, "{settings}");
    }
}

/// A turn that was answered is forgotten at every hub.
#[tokio::test]
async fn an_answered_request_may_be_repeated() {
    for settings in stores() {
        let first = hub("write_sheet", &format!("{settings}[openai]\napproved_tools = [\"sheets__*\"]\n"));
        let second = first.second();
        for (base, count) in [(first.base_url(), 1), (second.base_url(), 2), (first.base_url(), 3)] {
            let answered = request(&first, &base, Some("1"), &first.key).send().await.unwrap();
            assert_eq!(answered.status(), 200, "{settings}{}", answered.text().await.unwrap());
            assert_eq!(first.called().len(), count, "{settings}");
        }
    }
}

/// What a revoked key has stored is deleted, also for a new key of the same name, and nothing of others.
#[tokio::test]
async fn responses_of_a_revoked_key_are_deleted() {
    for is_running in [true, false] {
        for settings in stores() {
            let mut first = hub("write_sheet", &settings);
            let mut ids = Vec::new();
            for key in [&first.key, &first.other_key] {
                // It waits for an approval, so that there is one to delete.
                let (status, parked) = respond(&first, key, json!({"input": "Write row 7."})).await;
                assert_eq!(status, 200, "{parked}");
                ids.push(format!("responses/{}", parked["id"].as_str().unwrap()));
            }
            let get = async |first: &ServedHub, key: &str, path: &str| {
                let request = first.client.get(format!("{}/{path}", first.base_url())).bearer_auth(key);
                request.send().await.unwrap().status().as_u16()
            };
            assert_eq!(get(&first, &first.key, &ids[0]).await, 200);
            if !is_running {
                first.kill();
            }
            assert_eq!(first.run(&["keys", "revoke", "ann"]).code, Some(0));
            if !is_running {
                first.restart();
            }
            let since = Instant::now();
            while stored_of(&first, &settings, "key:ann").await > 0 {
                assert!(since.elapsed() < TEST_TIMEOUT, "its rows stay: {settings}{is_running}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            // The next key of that person starts with nothing.
            let made = first.run(&["keys", "new", "ann", "--same-person", "--json"]);
            let key = made.json()["key"].as_str().unwrap_or_else(|| panic!("{made:?}")).to_owned();
            while get(&first, &key, "models").await != 200 {
                assert!(since.elapsed() < TEST_TIMEOUT, "the new key is not accepted");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            assert_eq!(get(&first, &key, &ids[0]).await, 404, "{settings}{is_running}");
            assert_eq!(get(&first, &first.other_key, &ids[1]).await, 200, "{settings}{is_running}");
            assert_eq!(stored_of(&first, &settings, "key:ben").await, 2, "{settings}{is_running}");
        }
    }
}

/// Responses stay when a key is rotated or replaced, and when the entry or all settings are missing for a moment.
#[tokio::test]
async fn responses_of_a_key_that_is_not_revoked_stay() {
    let first = hub("write_sheet", "");
    let (status, parked) = respond(&first, &first.key, json!({"input": "Write row 7."})).await;
    assert_eq!(status, 200, "{parked}");
    let path = format!("responses/{}", parked["id"].as_str().unwrap());
    let status = async |key: &str, path: &str| {
        let request = first.client.get(format!("{}/{path}", first.base_url())).bearer_auth(key);
        request.send().await.unwrap().status().as_u16()
    };
    let await_status = async |key: &str, expected: u16| {
        let since = Instant::now();
        while status(key, "models").await != expected {
            assert!(since.elapsed() < TEST_TIMEOUT, "the status is not {expected}: {}", first.stderr());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert_eq!(status(&first.key, &path).await, 200);
    let file = first.folder().join("toolhub.toml");
    let before = std::fs::read_to_string(&file).unwrap();
    let hash = toolhub_server::hash_of(&first.key);
    assert!(before.contains(&hash), "{before}");
    let replaced = before.replace(&hash, &toolhub_server::hash_of("th_other"));
    let renamed = before.replace("name = \"ann\"", "name = \"ann2\"").replace(&hash, &"0".repeat(64));
    for changed in [
        replaced.clone(),
        replaced.replace("name = \"ann\"", "name = \"ann\"\nroles = [\"caller\", \"viewer\"]"),
        renamed,
        String::new(),
    ] {
        std::fs::write(&file, &changed).unwrap();
        await_status(&first.key, 401).await;
        std::fs::write(&file, &before).unwrap();
        await_status(&first.key, 200).await;
        assert_eq!(status(&first.key, &path).await, 200, "{changed}");
    }
    // The control: a revoked key.
    assert_eq!(first.run(&["keys", "revoke", "ann"]).code, Some(0));
    let since = Instant::now();
    while stored_of(&first, "", "key:ann").await > 0 {
        assert!(since.elapsed() < TEST_TIMEOUT, "its rows stay");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The number of responses and approvals of a principal in the database.
async fn stored_of(hub: &ServedHub, settings: &str, principal: &str) -> i64 {
    let sql = "SELECT (SELECT count(*) FROM responses WHERE principal = $1)
        + (SELECT count(*) FROM response_approvals WHERE principal = $1)";
    let Some(url) = settings.split('"').nth(1) else {
        let database = rusqlite::Connection::open(hub.folder().join("home/toolhub.db")).unwrap();
        return database.query_row(sql, [principal], |row| row.get(0)).unwrap();
    };
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    let mut driving = JoinSet::new();
    driving.spawn(connection);
    client.batch_execute("SET search_path TO toolhub").await.unwrap();
    let count = client.query_one(sql, &[&principal]).await.unwrap().get(0);
    driving.shutdown().await;
    count
}
