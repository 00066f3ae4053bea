//! Calls of "Try it" whose server reports progress and asks questions: the person at the page answers, and no other.

use reqwest::{Method, Response};
use serde_json::{Value, json};
use toolhub_testkit::scripted::{Journal, Script};

use crate::console::{Browser, hub_with_roles, with_key};
use crate::serving::{Serving, TEST_TIMEOUT, hub};
use crate::team_access::{NewKey, new_key};

/// A server whose tool reports progress, asks for a date, and returns the answer that it got.
fn booking() -> Script {
    let question = json!({"method": "elicitation/create", "params": {
        "message": "When? <b>now</b>",
        "requestedSchema": {"type": "object", "properties": {"day": {"type": "string"}}, "required": ["day"]},
    }});
    Script::legacy().plain_tool("book").on(
        "tools/call:book",
        [
            json!({"progress": {"progress": 1, "total": 2, "message": "half"}}),
            json!({"notify": {"method": "notifications/message", "params": {"level": "info", "data": "a note"}}}),
            json!({"request": question}),
            json!({"answer": true}),
        ],
    )
}

/// Reads a stream until an event of this name is complete. Returns its data, and everything that was read.
async fn event_of(stream: &mut Response, name: &str) -> (Value, String) {
    let start = format!("event: {name}\ndata: ");
    let mut read = String::new();
    let reading = async {
        loop {
            let chunk =
                stream.chunk().await.unwrap().unwrap_or_else(|| panic!("the stream has ended: {read}"));
            read.push_str(std::str::from_utf8(&chunk).unwrap());
            let data = read.split(&start).nth(1).and_then(|rest| rest.split_once("\n\n"));
            if let Some((data, _)) = data {
                break serde_json::from_str(data).unwrap();
            }
        }
    };
    let event = tokio::time::timeout(TEST_TIMEOUT, reading).await.unwrap();
    (event, read)
}

/// The id of the question in a stream, and everything before it.
async fn question_of(stream: &mut Response) -> (String, String) {
    let (event, read) = event_of(stream, "ask").await;
    assert_eq!(event["method"], "elicitation/create");
    (event["id"].as_str().unwrap().to_owned(), read)
}

#[tokio::test]
async fn question_of_a_server_is_answered_in_the_page() {
    let mut cli = hub("");
    cli.server("s", &booking());
    let serving = Serving::start(cli);
    let browser = Browser::open(&serving).await;
    let run = || browser.post("tools/book:run", &json!({"arguments": {}})).send();
    let mut stream = run().await.unwrap();
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
    let (id, read) = question_of(&mut stream).await;
    assert!(read.contains("event: progress") && read.contains("half"), "{read}");
    assert!(read.contains("a note"), "{read}");
    let answer = json!({"result": {"action": "accept", "content": {"day": "Monday"}}});
    let path = format!("questions/{id}:answer");
    // An answer that does not fit the schema is refused, and the question stays open.
    for content in [json!({}), json!({"day": 1})] {
        let wrong = json!({"result": {"action": "accept", "content": content}});
        let refused = browser.post(&path, &wrong).send().await.unwrap();
        assert_eq!(refused.status(), 422);
        assert!(refused.text().await.unwrap().contains("day"));
    }
    assert_eq!(browser.post(&path, &answer).send().await.unwrap().status(), 200);
    let (result, _) = event_of(&mut stream, "result").await;
    assert!(result["result"].to_string().contains("Monday"), "{result}");
    // An answer counts once.
    assert_eq!(browser.post(&path, &answer).send().await.unwrap().status(), 404);
    // A refusal reaches the server as an error.
    let mut stream = run().await.unwrap();
    let (id, _) = question_of(&mut stream).await;
    let refused = browser.post(&format!("questions/{id}:answer"), &json!({})).send().await.unwrap();
    assert_eq!(refused.status(), 200);
    let (result, _) = event_of(&mut stream, "result").await;
    assert!(result.to_string().contains("refused"), "{result}");
}

/// A question belongs to the principal of its call, also if another one knows its id.
#[tokio::test]
async fn attack_answer_of_another_principal() {
    let (serving, keys) = hub_with_roles("", &booking());
    let run = with_key(&serving, &keys["caller"], Method::POST, "tools/book:run");
    let mut stream = run.body(r#"{"arguments":{}}"#).send().await.unwrap();
    let (id, _) = question_of(&mut stream).await;
    let path = format!("questions/{id}:answer");
    let answer = json!({"result": {"action": "accept", "content": {"day": "never"}}}).to_string();
    for (role, status) in [("owner", 404), ("viewer", 403), ("caller", 200)] {
        let request = with_key(&serving, &keys[role], Method::POST, &path).body(answer.clone());
        assert_eq!(request.send().await.unwrap().status(), status, "{role}");
    }
}

/// A page that goes away cancels its call and leaves no question behind.
#[tokio::test]
async fn closed_page_cancels_its_call() {
    let mut cli = hub("");
    let journal = cli.folder().join("journal");
    cli.server("s", &booking().journal(&journal));
    let serving = Serving::start(cli);
    let browser = Browser::open(&serving).await;
    let run = browser.post("tools/book:run", &json!({"arguments": {}})).send();
    let mut stream = run.await.unwrap();
    let (id, _) = question_of(&mut stream).await;
    drop(stream);
    let is_cancelled = |journal: &Journal| journal.count_method("notifications/cancelled") > 0;
    Journal::read(&journal).wait_for_async(is_cancelled, TEST_TIMEOUT).await;
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    let late = browser.post(&format!("questions/{id}:answer"), &json!({"result": {"action": "accept"}}));
    assert_eq!(late.send().await.unwrap().status(), 404);
}

/// A call ends with the credential that made it.
#[tokio::test]
async fn revoked_key_ends_its_calls() {
    let mut cli = hub("");
    let journal = cli.folder().join("journal");
    cli.server("s", &booking().journal(&journal));
    let key = new_key(&cli, &NewKey { name: "ann", options: &["--role", "caller"] });
    let serving = Serving::start(cli);
    let run = with_key(&serving, &key, Method::POST, "tools/book:run");
    let mut stream = run.body(r#"{"arguments":{}}"#).send().await.unwrap();
    question_of(&mut stream).await;
    assert_eq!(serving.cli().run(&["keys", "revoke", "ann"]).code, Some(0));
    let rest = async { while stream.chunk().await.unwrap().is_some() {} };
    tokio::time::timeout(TEST_TIMEOUT, rest).await.unwrap();
    let is_cancelled = |journal: &Journal| journal.count_method("notifications/cancelled") > 0;
    Journal::read(&journal).wait_for_async(is_cancelled, TEST_TIMEOUT).await;
}
