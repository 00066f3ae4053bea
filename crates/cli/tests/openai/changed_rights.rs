//! Background responses whose key was revoked, has expired or lost a permission, and approvals of tools that are others now:
//! nothing goes on with the rights of before.

use serde_json::{Value, json};
use toolhub_testkit::model::ModelServer;

use crate::attacks::{approve, ended, hub, respond};
use crate::served_hub::{ServedHub, TEST_TIMEOUT};

const PROFILE: &str = "[profiles.ops]\nservers = [\"sheets\"]\n";

/// A background response whose call only reads: it would go on after a restart.
async fn running(hub: &ServedHub) -> String {
    let (status, queued) = respond(hub, &hub.key, json!({"input": "Read row 7.", "background": true})).await;
    assert_eq!(status, 200, "{queued}");
    hub.await_called("hold_read", 1).await;
    queued["id"].as_str().unwrap().to_owned()
}

/// A stored response as a client with access to the profile `ops` reads it.
async fn read(hub: &ServedHub, key: &str, id: &str) -> Option<Value> {
    let request = hub.client.get(format!("{}/responses/{id}", hub.base_url())).bearer_auth(key);
    let response = request.header("openai-project", "ops").send().await.unwrap();
    let body: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    let is_final = !["queued", "in_progress"].contains(&body["status"].as_str()?);
    is_final.then_some(body)
}

async fn failure(hub: &ServedHub, key: &str, id: &str) -> String {
    for _ in 0..600 {
        if let Some(body) = read(hub, key, id).await {
            assert_eq!(body["status"], "failed", "{body}");
            return body["error"]["message"].as_str().unwrap().to_owned();
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("{id} does not end: {}", hub.stderr());
}

/// The failure of a response that no key can read any more.
async fn stored_failure(hub: &ServedHub, id: &str) -> String {
    let database = rusqlite::Connection::open(hub.folder().join("home/toolhub.db")).unwrap();
    for _ in 0..600 {
        let row = database.query_row("SELECT status, body FROM responses WHERE id = ?1", [id], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
        });
        let (status, body) = row.unwrap();
        if !["queued", "in_progress"].contains(&status.as_str()) {
            assert_eq!(status, "failed", "{body}");
            let body: Value = serde_json::from_str(&body).unwrap();
            return body["error"]["message"].as_str().unwrap().to_owned();
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("{id} does not end: {}", hub.stderr());
}

#[tokio::test]
async fn a_key_that_lost_its_profile_does_not_go_on() {
    for is_killed in [true, false] {
        let mut hub = hub("hold_read", PROFILE);
        let id = running(&hub).await;
        if is_killed {
            hub.kill();
        }
        hub.edit_settings("name = \"ann\"", "name = \"ann\"\nprofiles = [\"ops\"]");
        if is_killed {
            hub.restart();
        }
        let why = failure(&hub, &hub.key, &id).await;
        // A running hub treats a changed key as a new one.
        assert!(why.contains("profile") || (!is_killed && why.contains("its rights were changed")), "{why}");
        assert_eq!((hub.called(), hub.model_requests().len()), (vec!["hold_read".to_owned()], 1));
    }
}

#[tokio::test]
async fn an_expired_key_does_not_go_on_after_a_restart() {
    let mut hub = hub("hold_read", PROFILE);
    let id = running(&hub).await;
    hub.kill();
    hub.edit_settings("name = \"ann\"", "name = \"ann\"\nexpires = \"2020-01-01\"");
    hub.restart();
    let why = stored_failure(&hub, &id).await;
    assert!(why.contains("the key of this request has expired"), "{why}");
    assert_eq!((hub.called(), hub.model_requests().len()), (vec!["hold_read".to_owned()], 1));
}

/// It neither goes on nor stays in the store.
#[tokio::test]
async fn a_revoked_key_does_not_go_on() {
    for is_killed in [true, false] {
        let mut hub = hub("hold_read", PROFILE);
        running(&hub).await;
        if is_killed {
            hub.kill();
        }
        assert_eq!(hub.run(&["keys", "revoke", "ann"]).code, Some(0));
        if is_killed {
            hub.restart();
        }
        let database = rusqlite::Connection::open(hub.folder().join("home/toolhub.db")).unwrap();
        let stored = || database.query_row("SELECT count(*) FROM responses", [], |row| row.get::<_, i64>(0));
        let since = std::time::Instant::now();
        while stored().unwrap() > 0 {
            assert!(since.elapsed() < TEST_TIMEOUT, "it stays in the store: {}", hub.stderr());
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        assert_eq!((hub.called(), hub.model_requests().len()), (vec!["hold_read".to_owned()], 1));
    }
}

#[tokio::test]
async fn an_unchanged_key_goes_on() {
    let requests = std::sync::atomic::AtomicUsize::new(0);
    let model = ModelServer::by_request(move |_| {
        use toolhub_testkit::model::ScriptedReply;
        match requests.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            0 => ScriptedReply::text("").call("hold_read", r#"{"row":3}"#).act(),
            _ => ScriptedReply::text("Done.").act(),
        }
    });
    let settings = format!("{PROFILE}[llm]\nurl = \"{}/v1\"\nmodel = \"scripted\"\n", model.url);
    let mut hub = ServedHub::start(&settings, Some(model));
    let id = running(&hub).await;
    hub.kill_and_restart();
    assert_eq!(ended(&hub, &id).await["status"], "completed");
}

#[tokio::test]
async fn an_approval_is_for_the_tool_as_it_was() {
    for is_replaced in [false, true] {
        let mut hub = hub("write_sheet", "");
        let (_, parked) = respond(&hub, &hub.key, json!({"input": "Write row 7."})).await;
        assert_eq!(parked["output"][0]["type"], "mcp_approval_request", "{parked}");
        hub.kill();
        if is_replaced {
            hub.replace_server();
        }
        hub.restart();
        let answer =
            json!({"input": approve(&parked["output"][0]["id"]), "previous_response_id": parked["id"]});
        let (status, body) = respond(&hub, &hub.key, answer).await;
        assert_eq!(status, 200, "{body}");
        let expected: &[&str] = if is_replaced { &[] } else { &["write_sheet"] };
        assert_eq!(hub.called(), expected, "{body}");
        if is_replaced {
            assert!(hub.model_requests().last().unwrap().to_string().contains("has changed since"), "{body}");
        }
    }
}

#[tokio::test]
async fn a_tool_name_without_its_server_approves_nothing() {
    for (name, runs) in [
        ("write_sheet", false),
        ("*_sheet", false),
        ("other__write_sheet", false),
        ("sheets__write_sheet", true),
        ("sheets__*", true),
    ] {
        let hub = hub("write_sheet", &format!("[openai]\napproved_tools = [\"{name}\"]\n"));
        let (_, body) = respond(&hub, &hub.key, json!({"input": "Write row 7."})).await;
        assert_eq!(!hub.called().is_empty(), runs, "{name}: {body}");
        let is_noted = hub.stderr().contains("approves nothing");
        assert_eq!(is_noted, !name.contains("__"), "{name}: {}", hub.stderr());
    }
}
