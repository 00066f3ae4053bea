//! One caller exhausts a budget: the error names the budget, and another caller is still served.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolhub_testkit::scripted::{HttpServer, Script};

use crate::access::{two_principals_before, two_principals_with};
use crate::raw_client::{Era, RawClient};
use crate::serving::{Serving, TEST_TIMEOUT, holding, hub};
use crate::wire::{Wire, bearer, call, chunked, echoed, message, meta, request};

fn echo() -> Script {
    Script::both().plain_tool("echo")
}

fn serves(serving: &Serving, token: &str, text: &str) {
    let mut wire = Wire::to(serving);
    wire.send(&call(text, &bearer(token)));
    assert!(wire.receive().text() == echoed(text), "a call of {} bytes is not served", text.len());
}

#[tokio::test]
async fn unknown_argument_error_has_bounded_length() {
    let schema = json!({"type": "object", "additionalProperties": false, "properties": {
        "filepath": {"type": "string"}, "sheet_name": {"type": "string"}}});
    let script = Script::both().tool(json!({"name": "closed", "inputSchema": schema}));
    let names: Vec<String> = (0..250_000).map(|number| format!(r#""n{number}":1"#)).collect();
    let many = format!("{{{}}}", names.join(","));
    for settings in ["", "[profiles.default]\ncoerce_arguments = true\n"] {
        let serving = Serving::before(&script, settings);
        let client = RawClient::connect(&serving.url(), Era::Modern).await;
        let answer = client.call("closed", &many).await;
        let text = answer.text();
        assert!(text.len() < 4 << 10 && answer.result().len() < 8 << 10, "{} bytes", text.len());
        assert!(text.contains("there is no argument `n0`") && text.contains("and 249992 more"), "{text}");
        let text = client.call("closed", r#"{"filepth":"a","sheet_name":1}"#).await.text();
        assert!(text.contains("did you mean `filepath`?") || settings.contains("mend"), "{text}");
    }
}

/// An unknown tool name that fills the longest allowed message.
#[tokio::test]
async fn suggests_nothing_for_name_of_megabytes() {
    let serving = Serving::before(&echo(), "");
    let client = RawClient::connect(&serving.url(), Era::Legacy).await;
    let name = "echo_".repeat(200_000);
    let refused = client.call(&name, "{}").await;
    assert!(refused.last().error.is_some(), "{refused:?}");
    assert_eq!(client.call("echo", "{}").await.text(), "{}");
}

#[test]
fn idle_uploads_do_not_use_body_budget_of_others() {
    let (serving, [ann, bob]) = two_principals_with(&echo(), "");
    let long = "x".repeat(3 << 20);
    let announced = call(&long, &bearer(&ann));
    let head = announced.find("\r\n\r\n").unwrap() + 4;
    // An announced `Content-Length` alone uses no budget, not even that of the caller.
    let mut held = Vec::new();
    for _ in 0..40 {
        let mut wire = Wire::to(&serving);
        wire.send(&announced[..head + 10]);
        held.push(wire);
    }
    serves(&serving, &bob, &long);
    serves(&serving, &ann, &long);
}

#[test]
fn uploads_count_against_sender_budget() {
    let (serving, [ann, bob]) = two_principals_with(&echo(), "[serve.limits]\nupload_bytes = 5000000\n");
    let long = "x".repeat(3 << 20);
    let announced = call(&long, &bearer(&ann));
    let mut held: Vec<Wire> = (0..3).map(|_| Wire::to(&serving)).collect();
    for wire in &mut held {
        wire.stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        wire.send(&announced[..2 << 20]);
    }
    let since = Instant::now();
    let refused = loop {
        let refused = held.iter().position(|wire| wire.stream.peek(&mut [0]).is_ok());
        assert!(since.elapsed() < TEST_TIMEOUT, "more is taken than may be");
        if let Some(index) = refused {
            break index;
        }
    };
    // The caller is refused immediately, and the rest of its body is discarded.
    let mut refused = held.swap_remove(refused);
    refused.stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    let response = refused.receive();
    assert_eq!((response.status, response.header("retry-after")), (503, Some("1")), "{response:?}");
    assert!(response.body.contains("upload_bytes"), "{response:?}");
    serves(&serving, &bob, &long);
    serves(&serving, &ann, "short");
    drop(held);
    let since = Instant::now();
    loop {
        let mut wire = Wire::to(&serving);
        wire.send(&announced);
        if wire.receive().status == 200 {
            return;
        }
        assert!(since.elapsed() < TEST_TIMEOUT, "the room is not given back");
    }
}

#[tokio::test]
async fn describes_repeatedly_named_tool_once() {
    let long = "d".repeat(60_000);
    let script = Script::both()
        .tool(json!({"name": "big", "description": long, "inputSchema": {"type": "object"}}))
        .plain_tool("echo");
    let (serving, [ann, bob]) = two_principals_with(
        &script,
        "[profiles.default]\nlossless = true\n[serve.limits]\nunread_bytes = 50000\n",
    );
    let big = r#""big""#;
    for era in [Era::Modern, Era::Legacy] {
        let client = RawClient::with_token(&serving.url(), era, Some(&ann)).await;
        client.call("echo", "{}").await.text();
        let before = resident(&serving);
        for names in [big.to_owned(), [big; 20_000].join(",")] {
            let refused = client.ask("1", "tools/describe", &format!(r#""names":[{names}]"#)).await;
            assert!(refused.error() == -32000 && format!("{refused:?}").contains("unread_bytes"), "{era:?}");
        }
        let grown = resident(&serving).saturating_sub(before);
        assert!(grown < 64 << 20, "{} MiB more", grown >> 20);
        // Control: a request within the limit is served; each tool is described once, in the order of the names.
        let names = [r#""echo""#; 5_000].join(",");
        let described =
            client.ask("1", "tools/describe", &format!(r#""names":[{names},"calculate","echo"]"#)).await;
        let described: Value = serde_json::from_str(described.result()).unwrap();
        let names: Vec<_> = described["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
        assert_eq!(names, ["echo", "calculate"], "{era:?}");
    }
    serves(&serving, &bob, "meanwhile");
}

/// Lists are built for each request, too.
#[tokio::test]
async fn counts_long_lists_as_unread_before_assembly() {
    let resources: Vec<_> =
        (0..500).map(|n| json!({"uri": format!("r://{n}"), "name": "n".repeat(200)})).collect();
    let script = Script::legacy()
        .set("capabilities", json!({"tools": {}, "resources": {}}))
        .plain_tool("echo")
        .on("resources/list", json!([{"reply": {"resources": resources}}]))
        .on("resources/templates/list", json!([{"reply": {"resourceTemplates": []}}]));
    for (limit, fits) in [(50_000, false), (500_000, true)] {
        let settings = format!("[serve.limits]\nunread_bytes = {limit}\n");
        let (serving, [ann, _]) = two_principals_with(&script, &settings);
        let client = RawClient::with_token(&serving.url(), Era::Modern, Some(&ann)).await;
        let answer = client.ask("1", "resources/list", "").await;
        assert_eq!(answer.last().result.is_some(), fits, "{limit}");
        assert!(
            fits || answer.error() == -32000 && !format!("{answer:?}").contains("was executed"),
            "{answer:?}"
        );
    }
}

/// Request ids are stored with streams and repeated in all messages on them.
#[tokio::test]
async fn rejects_ids_and_progress_tokens_of_megabytes() {
    let (serving, [ann, _]) = two_principals_with(&echo(), "");
    let long = "i".repeat(3 << 20);
    for era in [Era::Modern, Era::Legacy] {
        let client = RawClient::with_token(&serving.url(), era, Some(&ann)).await;
        let listen = r#""notifications":{"toolsListChanged":true}"#;
        let call = r#""name":"echo","arguments":{}"#;
        for (method, params) in [("subscriptions/listen", listen), ("tools/call", call), ("ping", "")] {
            let refused = client.ask(&format!("\"{long}\""), method, params).await;
            assert_eq!((refused.status, refused.error()), (400, -32600), "{method} {era:?}");
            assert!(format!("{refused:?}").len() < 1_000, "what is refused is not repeated");
        }
        let plain = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "echo", "arguments": {}, "_meta": {"progressToken": long}}});
        let refused = client.post(plain.to_string()).send().await.unwrap();
        assert_eq!(refused.status(), 400);
        assert!(refused.text().await.unwrap().contains("`progressToken` is too long"), "{era:?}");
        // Control: an id of ordinary length, and a long text elsewhere.
        let id = format!("\"{}\"", "i".repeat(1_000));
        let answer =
            client.ask(&id, "tools/call", &format!(r#""name":"echo","arguments":{{"t":"{long}"}}"#)).await;
        assert_eq!(answer.last().id.as_ref().unwrap().as_str().unwrap().len(), 1_000);
        assert!(answer.text().len() > long.len());
    }
}

/// The resident memory of the gateway, in bytes.
fn resident(serving: &Serving) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", serving.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().trim().parse::<usize>().unwrap() << 10
}

const LARGE: usize = 12 << 20;

/// A gateway for two callers, with a tool whose result is longer than the socket buffers.
fn with_large_answers(limits: &str) -> (HttpServer, Serving, [String; 2]) {
    let script = Script::both()
        .plain_tool("large")
        .on("tools/call:large", json!([{"text": "x".repeat(LARGE)}]))
        .plain_tool("echo");
    let server = HttpServer::start(&script);
    let mut cli = hub("");
    cli.entry("s", json!({"url": server.url}));
    let mut settings = format!("[serve.limits]\n{limits}\n");
    let tokens = ["ann", "bob"].map(|name| {
        let made = cli.run(&["serve", "--new-token", name, "--json"]).json();
        settings.push_str(&format!("[[auth.tokens]]\nname = \"{name}\"\nsha256 = {}\n", made["sha256"]));
        made["token"].as_str().unwrap().to_owned()
    });
    fs::write(cli.folder().join("toolhub.toml"), &settings).unwrap();
    (server, Serving::start(cli), tokens)
}

fn large(token: &str) -> String {
    message("large", &json!({"name": "large", "arguments": {}, "_meta": meta()}), &bearer(token))
}

#[test]
fn bounds_unread_responses_per_caller() {
    let limit = 30 << 20;
    let (_server, serving, [ann, bob]) =
        with_large_answers(&format!("unread_bytes = {limit}\nwrite_timeout = \"10m\""));
    let mut wire = Wire::to(&serving);
    wire.send(&large(&bob));
    assert_eq!(wire.receive().text().len(), LARGE);
    let before = resident(&serving);
    let (mut unread, mut dropped) = (Vec::new(), 0);
    for number in 0..16 {
        let mut wire = Wire::to(&serving);
        wire.send(&if number % 2 == 0 { large(&ann) } else { chunked(&large(&ann)) });
        // The head has arrived; the body of a long response is not read.
        let mut response = wire.head();
        assert_eq!(response.status, 200, "{response:?}");
        if response.header("content-length").unwrap().parse::<usize>().unwrap() < LARGE {
            dropped += 1;
            wire.body_of(&mut response);
            let refusal = &response.body;
            assert!(refusal.contains("unread_bytes") && refusal.contains("was executed"), "{refusal}");
            assert!(refusal.contains(r#""id":1,"error":"#), "{refusal}");
        }
        unread.push(wire);
    }
    assert_eq!(dropped, 14, "two of them fit");
    let grown = resident(&serving).saturating_sub(before);
    // All responses together would be 192 MiB. Each call temporarily needs memory in addition to the unread responses.
    assert!(grown < limit + (90 << 20), "{} MiB more", grown >> 20);
    // The other caller gets the same long result, and the first one still gets short results.
    wire.send(&large(&bob));
    assert_eq!(wire.receive().text().len(), LARGE);
    serves(&serving, &ann, "short");
    // A closed connection releases its share.
    drop(unread);
    let since = Instant::now();
    loop {
        let mut wire = Wire::to(&serving);
        wire.send(&large(&ann));
        if wire.receive().body.len() > LARGE {
            return;
        }
        assert!(since.elapsed() < TEST_TIMEOUT, "what was given up still counts");
    }
}

#[test]
fn aborts_response_that_is_not_read() {
    let (_server, serving, [ann, _]) =
        with_large_answers("unread_bytes = 15000000\nwrite_timeout = \"500ms\"");
    for way in [large(&ann), chunked(&large(&ann))] {
        let mut unread = Wire::to(&serving);
        unread.send(&way);
        assert!(unread.status_line().starts_with("HTTP/1.1 200"));
        // The gateway closes the connection and releases its budget, although the client keeps it open.
        let since = Instant::now();
        loop {
            let mut wire = Wire::to(&serving);
            wire.send(&large(&ann));
            if wire.receive().body.len() > LARGE {
                break;
            }
            assert!(since.elapsed() < TEST_TIMEOUT, "it is still held");
            std::thread::sleep(Duration::from_millis(50));
        }
        drop(unread);
    }
}

#[tokio::test]
async fn sessions_of_one_caller_do_not_end_those_of_another() {
    let (serving, [ann, bob]) = two_principals_with(&echo(), "[serve.limits]\nsessions = 20\n");
    let url = serving.url();
    let others = RawClient::with_token(&url, Era::Legacy, Some(&bob)).await;
    let mut own = Vec::new();
    for _ in 0..50 {
        own.push(RawClient::with_token(&url, Era::Legacy, Some(&ann)).await);
    }
    assert_eq!(others.call("echo", "{}").await.text(), "{}");
    assert_eq!(own[49].call("echo", "{}").await.text(), "{}");
    assert_eq!(own[30].call("echo", "{}").await.text(), "{}", "the newest twenty are kept");
    assert_eq!(own[29].request("1", "tools/list", "").send().await.unwrap().status(), 404);
}

#[test]
fn bounds_streams_per_caller() {
    let (serving, [ann, bob]) = two_principals_with(&echo(), "[serve.limits]\nstreams = 2\n");
    let listen = |token: &str| {
        let params = json!({"notifications": {"toolsListChanged": true}, "_meta": meta()});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params});
        let headers = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\n";
        request("POST", "/mcp", &format!("{}{headers}", bearer(token)), &body.to_string())
    };
    let open = |message: &str| {
        let mut wire = Wire::to(&serving);
        wire.send(message);
        let first = wire.status_line();
        (first.contains(" 200 "), wire)
    };
    let old = |token: &str| request("GET", "/sse", &bearer(token), "");
    let (first, held) = open(&listen(&ann));
    let (second, _held) = open(&old(&ann));
    assert!(first && second);
    for message in [listen(&ann), old(&ann)] {
        let mut wire = Wire::to(&serving);
        wire.send(&message);
        let response = wire.receive();
        assert!(response.status == 429 && response.body.contains("streams"), "{response:?}");
        assert_eq!(response.header("retry-after"), Some("1"), "{response:?}");
    }
    let others = [open(&listen(&bob)), open(&old(&bob))];
    assert!(others.iter().all(|(open, _)| *open));
    serves(&serving, &ann, "meanwhile");
    drop(held);
    let since = Instant::now();
    while !open(&listen(&ann)).0 {
        assert!(since.elapsed() < TEST_TIMEOUT, "a stream that was closed still counts");
    }
}

/// A call with a streamed response counts until it ends.
#[test]
fn streaming_calls_count_until_they_end() {
    let folder = tempfile::tempdir().unwrap();
    let script = holding(&folder.path().join("journal")).plain_tool("echo");
    let (serving, [ann, bob]) = two_principals_with(&script, "[serve]\nmax_concurrent = 2\n");
    let mut hold_meta = meta();
    hold_meta["progressToken"] = json!("p");
    let hold = message("hold", &json!({"name": "hold", "arguments": {}, "_meta": hold_meta}), &bearer(&ann));
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut wire = Wire::to(&serving);
        wire.send(&hold);
        assert!(wire.status_line().contains(" 200 "));
        wire.event_line("event: message");
        held.push(wire);
    }
    let mut wire = Wire::to(&serving);
    wire.send(&hold);
    let response = wire.receive();
    assert!(response.body.contains("-32000") && response.body.contains("max_concurrent"), "{response:?}");
    serves(&serving, &bob, "meanwhile");
    drop(held);
    let since = Instant::now();
    loop {
        wire.send(&call("again", &bearer(&ann)));
        if wire.receive().body.contains("again") {
            return;
        }
        assert!(since.elapsed() < TEST_TIMEOUT, "what was given up still counts");
    }
}

#[tokio::test]
async fn pending_requests_of_one_caller_do_not_cancel_those_of_another() {
    let question = json!({"method": "elicitation/create", "params": {
        "message": "who?", "requestedSchema": {"type": "object", "properties": {}}}});
    let script = Script::legacy()
        .plain_tool("ask")
        .on("tools/call:ask", json!([{"request": question}, {"answer": true}]));
    // Over HTTP a server request arrives on the stream of its call, so that its origin is unambiguous.
    let server = HttpServer::start(&script.set("sse", true));
    let (serving, [ann, bob]) =
        two_principals_before(json!({"url": server.url}), "[serve.limits]\npending_input = 3\n");
    let url = serving.url();
    let others = RawClient::with_token(&url, Era::Modern, Some(&bob)).await;
    let own = RawClient::with_token(&url, Era::Modern, Some(&ann)).await;
    let state = |answer: crate::raw_client::RawResponse| {
        serde_json::from_str::<Value>(answer.result()).unwrap()["requestState"].to_string()
    };
    let theirs = state(others.call("ask", "{}").await);
    let mut mine = Vec::new();
    for _ in 0..8 {
        mine.push(state(own.call("ask", "{}").await));
    }
    let again = |state: &str| {
        let answers = json!({"question-1": {"action": "accept", "content": {"name": "x"}}});
        format!(r#""name":"ask","arguments":{{}},"inputResponses":{answers},"requestState":{state}"#)
    };
    assert!(others.ask("2", "tools/call", &again(&theirs)).await.text().contains("accept"));
    let answered = own.ask("2", "tools/call", &again(&mine[7])).await;
    assert!(answered.text().contains("accept"), "{answered:?}");
    assert_eq!(own.ask("2", "tools/call", &again(&mine[0])).await.error(), -32602);
}

/// Without tokens all local clients are one principal, and each address has its own budget.
#[test]
fn without_tokens_each_address_has_a_budget() {
    let serving = Serving::before(&echo(), "[serve.limits]\nstreams = 1\n");
    let old = request("GET", "/sse", "", "");
    let mut first = Wire::to(&serving);
    first.send(&old);
    assert!(first.status_line().contains(" 200 "));
    let mut second = Wire::to(&serving);
    second.send(&old);
    assert_eq!(second.receive().status, 429);
    let mut other = Wire::from_address(&serving, [127, 0, 0, 2]);
    other.send(&old);
    assert!(other.status_line().contains(" 200 "));
}
