//! What must never happen at the OpenAI-compatible endpoint: a response or an approval that reaches another principal, a call
//! that runs twice, or without the approval that it needs, or goes on without its client.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use serde_json::{Value, json};
use toolhub_testkit::model::{ModelServer, ScriptedReply};

use crate::served_hub::{ServedHub, TEST_TIMEOUT};

pub(crate) const MODEL: &str = "toolhub/default";

/// Plays a model that calls one tool, and then repeats its result.
pub(crate) fn model(tool: &'static str) -> ModelServer {
    ModelServer::by_request(move |body| {
        let messages = body["messages"].as_array().unwrap();
        let last = messages.last().unwrap();
        match last["role"].as_str() {
            Some("tool") => ScriptedReply::text(&format!("It says: {}", last["content"])).act(),
            _ => ScriptedReply::text("").call(tool, r#"{"row":7}"#).act(),
        }
    })
}

pub(crate) fn hub(tool: &'static str, settings: &str) -> ServedHub {
    let model = model(tool);
    let settings = format!("{settings}\n[llm]\nurl = \"{}/v1\"\nmodel = \"scripted\"\n", model.url);
    ServedHub::start(&settings, Some(model))
}

/// A request with its method, path, key and body, and its response with the status.
pub(crate) async fn send(
    hub: &ServedHub,
    method: &str,
    path: &str,
    key: &str,
    body: Option<Value>,
) -> (u16, Value) {
    let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
    let mut request = hub.client.request(method, format!("{}/{path}", hub.base_url())).bearer_auth(key);
    if let Some(body) = body {
        request = request.header("content-type", "application/json").body(body.to_string());
    }
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    (status, serde_json::from_str(&response.text().await.unwrap()).unwrap())
}

pub(crate) async fn respond(hub: &ServedHub, key: &str, mut body: Value) -> (u16, Value) {
    body["model"] = MODEL.into();
    send(hub, "POST", "responses", key, Some(body)).await
}

pub(crate) fn approve(request: &Value) -> Value {
    json!([{"type": "mcp_approval_response", "approval_request_id": request, "approve": true}])
}

/// Waits until a response has ended.
pub(crate) async fn ended(hub: &ServedHub, id: &str) -> Value {
    for _ in 0..600 {
        let (status, body) = send(hub, "GET", &format!("responses/{id}"), &hub.key, None).await;
        assert_eq!(status, 200, "{body}");
        if !["queued", "in_progress"].contains(&body["status"].as_str().unwrap()) {
            return body;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{id} does not end: {}", hub.stderr());
}

#[tokio::test]
async fn responses_and_approvals_belong_to_their_principal() {
    let hub = hub("write_sheet", "");
    let (status, parked) = respond(&hub, &hub.key, json!({"input": "Write row 7."})).await;
    assert_eq!(status, 200, "{parked}");
    let (id, item) = (parked["id"].as_str().unwrap(), &parked["output"][0]);
    assert_eq!(item["type"], "mcp_approval_request", "{parked}");
    let other = &hub.other_key;
    for (method, path) in [
        ("GET", format!("responses/{id}")),
        ("DELETE", format!("responses/{id}")),
        ("POST", format!("responses/{id}/cancel")),
        ("GET", format!("responses/{id}/input_items")),
    ] {
        let (status, body) = send(&hub, method, &path, other, None).await;
        assert_eq!(
            (status, body["error"]["code"].as_str()),
            (404, Some("not_found")),
            "{method} {path}: {body}"
        );
    }
    let approval = approve(&item["id"]);
    let foreign = json!({"input": approval, "previous_response_id": id});
    assert_eq!(respond(&hub, other, foreign).await.0, 404);
    // The items are known to the attacker, and sent as a conversation of their own.
    let mut whole = vec![json!({"role": "user", "content": "Write row 7."}), item.clone()];
    whole.extend(approval.as_array().unwrap().iter().cloned());
    let (status, body) = respond(&hub, other, json!({"input": whole})).await;
    assert_eq!(status, 400, "{body}");
    let reference = json!([{"type": "item_reference", "id": item["id"]}, {"role": "user", "content": "?"}]);
    assert_eq!(respond(&hub, other, json!({"input": reference})).await.0, 404);
    assert!(hub.called().is_empty(), "{:?}", hub.called());
    // The owner still has all of it.
    let (status, body) =
        respond(&hub, &hub.key, json!({"input": approval, "previous_response_id": id})).await;
    assert_eq!((status, body["status"].as_str()), (200, Some("completed")), "{body}");
    assert_eq!(hub.called(), ["write_sheet"]);
}

#[tokio::test]
async fn an_approval_runs_one_call() {
    let hub = hub("write_sheet", "");
    let (_, parked) = respond(&hub, &hub.key, json!({"input": "Write row 7."})).await;
    let body = json!({"input": approve(&parked["output"][0]["id"]), "previous_response_id": parked["id"]});
    let answers = join_all((0..8).map(|_| respond(&hub, &hub.key, body.clone()))).await;
    let mut statuses: Vec<u16> = answers.iter().map(|(status, _)| *status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 400, 400, 400, 400, 400, 400, 400], "{answers:?}");
    assert_eq!(hub.called(), ["write_sheet"]);
    // A denied call does not run, and cannot be approved later.
    let (_, parked) = respond(&hub, &hub.key, json!({"input": "Write row 7."})).await;
    let mut denial = approve(&parked["output"][0]["id"]);
    denial[0]["approve"] = false.into();
    let (status, denied) =
        respond(&hub, &hub.key, json!({"input": denial, "previous_response_id": parked["id"]})).await;
    assert!(status == 200 && denied.to_string().contains("did not approve"), "{denied}");
    assert_eq!(hub.called(), ["write_sheet"]);
}

#[tokio::test]
async fn chat_runs_nothing_that_needs_approval() {
    let chat = json!({"model": MODEL, "messages": [{"role": "user", "content": "Write row 7."}]});
    let strict = hub("write_sheet", "");
    let (status, body) = send(&strict, "POST", "chat/completions", &strict.key, Some(chat.clone())).await;
    assert_eq!(status, 200, "{body}");
    assert!(body.to_string().contains("approved_tools"), "{body}");
    assert!(strict.called().is_empty());
    let lenient = hub("write_sheet", "[openai]\napproved_tools = [\"sheets__write_*\"]\n");
    let (status, body) = send(&lenient, "POST", "chat/completions", &lenient.key, Some(chat)).await;
    assert_eq!(status, 200, "{body}");
    assert_eq!(lenient.called(), ["write_sheet"]);
    assert_eq!(body["choices"][0]["message"]["toolhub"]["steps"][0]["tool"], "write_sheet", "{body}");
}

#[tokio::test]
async fn rules_apply_to_the_calls_of_an_agent() {
    let rules = "[[auth.rules]]\nname = \"read\"\neffect = \"allow\"\ntools = [\"read_*\"]\n";
    let hub = hub("write_sheet", &format!("[openai]\napproved_tools = [\"*\"]\n{rules}"));
    let (status, body) = respond(&hub, &hub.key, json!({"input": "Write row 7."})).await;
    assert_eq!(status, 200, "{body}");
    assert!(hub.called().is_empty(), "{body}");
    // The model is not told of it, either.
    let offered = hub.model_requests()[0]["tools"].to_string();
    assert!(offered.contains("read_sheet") && !offered.contains("write_sheet"), "{offered}");
    let tools = json!([{"type": "mcp", "server_label": "skill"}]);
    let (status, body) = respond(&hub, &hub.key, json!({"input": "Hello.", "tools": tools})).await;
    assert_eq!(status, 400, "a source without a visible tool does not exist: {body}");
}

/// A model names a tool that the principal of the request may not see. The control: a tool that does not exist.
#[tokio::test]
async fn hidden_tool_that_a_model_calls_is_in_the_audit_log() {
    let rules = "[[auth.rules]]\neffect = \"allow\"\ntools = [\"read_*\"]\n";
    for (tool, is_recorded) in [("write_sheet", true), ("no_such_tool", false)] {
        let hub = hub(tool, &format!("[openai]\napproved_tools = [\"*\"]\n{rules}"));
        let (status, body) = respond(&hub, &hub.key, json!({"input": "Write row 7."})).await;
        assert_eq!(status, 200, "{body}");
        // Refusals are appended a moment later.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let shown = hub.run(&["audit", "show", "--kind", "refusal", "--by", "ann", "--json"]).json();
        let shown = shown.as_array().unwrap();
        let count = usize::from(is_recorded);
        assert_eq!(shown.len(), count, "{tool}: {shown:?}");
        assert!(shown.iter().all(|record| record["object"] == tool && record["state"] == "call refused"));
    }
}

#[tokio::test]
async fn a_client_that_goes_away_ends_its_turn() {
    let hub = hub("hold_write", "");
    for stream in [true, false] {
        let body = json!({"model": MODEL, "input": "Write row 7.", "stream": stream});
        let request = hub.client.post(format!("{}/responses", hub.base_url())).bearer_auth(&hub.key);
        let request = request.header("content-type", "application/json").body(body.to_string());
        let sent = async {
            let response = request.send().await.unwrap();
            response.bytes_stream().for_each(|_| std::future::ready(())).await;
        };
        let number = if stream { 1 } else { 2 };
        tokio::select! {
            () = sent => panic!("the call ended"),
            () = hub.await_called("hold_write", number) => {}
        }
        let since = std::time::Instant::now();
        let cancelled =
            || hub.received().iter().filter(|method| *method == "notifications/cancelled").count();
        while cancelled() < number {
            assert!(since.elapsed() < TEST_TIMEOUT, "stream {stream}: {:?}", hub.received());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

#[tokio::test]
async fn background_response_of_killed_hub_does_not_repeat_a_change() {
    let mut hub = hub("hold_write", "");
    let (status, queued) =
        respond(&hub, &hub.key, json!({"input": "Write row 7.", "background": true})).await;
    assert_eq!((status, queued["status"].as_str()), (200, Some("queued")), "{queued}");
    hub.await_called("hold_write", 1).await;
    hub.kill_and_restart();
    let failed = ended(&hub, queued["id"].as_str().unwrap()).await;
    assert_eq!(failed["status"], "failed", "{failed}");
    let why = failed["error"]["message"].as_str().unwrap();
    assert!(why.contains("`hold_write`") && why.contains("not known"), "{why}");
    assert_eq!(failed["output"][0]["status"], "failed", "{failed}");
    assert_eq!(hub.called(), ["hold_write"]);
}

#[tokio::test]
async fn background_response_of_killed_hub_goes_on_if_it_only_read() {
    let requests = AtomicUsize::new(0);
    let model = ModelServer::by_request(move |body| match requests.fetch_add(1, Ordering::Relaxed) {
        0 => ScriptedReply::text("").call("read_sheet", r#"{"row":3}"#).act(),
        1 => ScriptedReply::text("One more.").call("hold_read", r#"{"row":4}"#).act(),
        _ => {
            let messages = body["messages"].as_array().unwrap();
            let results = messages.iter().filter(|message| message["role"] == "tool").count();
            ScriptedReply::text(&format!("{results} result")).act()
        }
    });
    let settings = format!("[llm]\nurl = \"{}/v1\"\nmodel = \"scripted\"\n", model.url);
    let mut hub = ServedHub::start(&settings, Some(model));
    let (_, queued) = respond(&hub, &hub.key, json!({"input": "Read both.", "background": true})).await;
    hub.await_called("hold_read", 1).await;
    hub.kill_and_restart();
    let done = ended(&hub, queued["id"].as_str().unwrap()).await;
    assert_eq!(done["status"], "completed", "{done}");
    assert!(done.to_string().contains("2 result"), "{done}");
    // The call that was cut off is named as failed, to the model too.
    assert!(done["output"][2]["error"].as_str().unwrap().contains("stopped"), "{done}");
    assert_eq!(hub.called(), ["read_sheet", "hold_read"]);
    // It is a response like any other: it can be continued.
    let (status, body) =
        respond(&hub, &hub.key, json!({"input": "And?", "previous_response_id": done["id"]})).await;
    assert_eq!(status, 200, "{body}");
}

#[tokio::test]
async fn background_response_is_cancelled_with_its_call() {
    let hub = hub("hold_write", "");
    let (_, queued) = respond(&hub, &hub.key, json!({"input": "Write row 7.", "background": true})).await;
    hub.await_called("hold_write", 1).await;
    let path = format!("responses/{}/cancel", queued["id"].as_str().unwrap());
    let (status, cancelled) = send(&hub, "POST", &path, &hub.key, None).await;
    assert_eq!((status, cancelled["status"].as_str()), (200, Some("cancelled")), "{cancelled}");
    assert!(cancelled["output"][0]["error"].as_str().unwrap().contains("not known"), "{cancelled}");
    // Again: nothing changes.
    let (status, again) = send(&hub, "POST", &path, &hub.key, None).await;
    assert_eq!((status, again), (200, cancelled));
}

#[tokio::test]
async fn a_revoked_key_ends_its_turn() {
    let hub = hub("hold_write", "");
    let turn = respond(&hub, &hub.key, json!({"input": "Write row 7."}));
    let revoke = async {
        hub.await_called("hold_write", 1).await;
        let revoked = hub.run(&["keys", "revoke", "ann"]);
        assert_eq!(revoked.code, Some(0), "{revoked:?}");
    };
    let ((status, body), ()) = tokio::join!(turn, revoke);
    assert_eq!((status, body["status"].as_str()), (200, Some("failed")), "{body}");
    assert!(body["error"]["message"].as_str().unwrap().contains("revoked"), "{body}");
}

#[tokio::test]
async fn errors_have_the_form_of_the_api() {
    let settings = "[serve]\nbody_bytes = 65536\n";
    let hub = hub("read_sheet", settings);
    let error = |(status, body): (u16, Value)| {
        let error = &body["error"];
        assert!(error["message"].is_string() && error["type"].is_string(), "{body}");
        assert!(error.get("param").is_some() && error.get("code").is_some(), "{body}");
        (
            status,
            error["code"].as_str().unwrap_or_default().to_owned(),
            error["param"].as_str().map(str::to_owned),
        )
    };
    let wrong_key = send(&hub, "GET", "models", "wrong", None).await;
    assert_eq!(error(wrong_key), (401, "invalid_api_key".to_owned(), None));
    assert_eq!(error(send(&hub, "GET", "files", &hub.key, None).await).0, 404);
    assert_eq!(error(send(&hub, "PUT", "responses", &hub.key, None).await).0, 405);
    assert_eq!(error(send(&hub, "GET", "responses", &hub.key, None).await).0, 405);
    let long = json!({"model": MODEL, "input": "x".repeat(80 << 10)});
    assert_eq!(error(send(&hub, "POST", "responses", &hub.key, Some(long)).await).0, 413);
    for (body, param) in [
        (json!({"input": "hi"}), "model"),
        (json!({"model": MODEL}), "input"),
        (json!({"model": MODEL, "input": "hi", "n_best": 2}), "n_best"),
        (json!({"model": MODEL, "input": "hi", "top_p": 0.1}), "top_p"),
        (json!({"model": MODEL, "input": "hi", "temperature": 3}), "temperature"),
        (json!({"model": MODEL, "input": [{"type": "magic"}]}), "input[0]"),
        (json!({"model": MODEL, "input": "hi", "background": true, "store": false}), "store"),
        (json!({"model": MODEL, "input": "hi", "tools": [{"type": "web_search"}]}), "tools[0].type"),
        (
            json!({"model": MODEL, "input": "hi", "tool_choice": {"type": "function", "name": "x"}}),
            "tool_choice",
        ),
    ] {
        let (status, _, found) = error(send(&hub, "POST", "responses", &hub.key, Some(body.clone())).await);
        assert_eq!((status, found.as_deref()), (400, Some(param)), "{body}");
    }
    assert!(hub.called().is_empty());
}

#[tokio::test]
async fn too_many_turns_are_told_when_to_come_again() {
    let hub = hub("hold_write", "[serve]\nmax_concurrent = 4\n");
    let start = || respond(&hub, &hub.key, json!({"input": "Write row 7.", "background": true}));
    let mut refused = None;
    for _ in 0..8 {
        let (status, body) = start().await;
        if status != 200 {
            refused = Some((status, body));
            break;
        }
    }
    let (status, body) = refused.expect("eight turns at once");
    assert_eq!((status, body["error"]["code"].as_str()), (429, Some("rate_limit_exceeded")), "{body}");
    // Another principal is not affected.
    let (status, _) = send(&hub, "GET", "models", &hub.other_key, None).await;
    assert_eq!(status, 200);
}
