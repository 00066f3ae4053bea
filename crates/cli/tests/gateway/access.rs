//! Access control: foreign hosts and origins, missing tokens, and the data of another principal are refused.

use std::fs;

use reqwest::{Method, Response};
use serde_json::{Value, json};
use toolhub_testkit::CommandLine;
use toolhub_testkit::scripted::Script;

use crate::raw_client::{ERAS, Era, RawClient, Stream, http};
use crate::serving::{Serving, hub};

fn echo() -> Script {
    Script::both().plain_tool("echo")
}

async fn get(url: &str, headers: &[(&str, &str)]) -> Response {
    let request = http().request(Method::GET, url).header("accept", "text/event-stream");
    headers.iter().fold(request, |request, (name, value)| request.header(*name, *value)).send().await.unwrap()
}

#[tokio::test]
async fn rejects_foreign_hosts_and_origins() {
    let serving = Serving::before(&echo(), "");
    let client = RawClient::connect(&serving.url(), Era::Modern).await;
    for (name, value, expected) in [
        ("host", "evil.example", 403),
        ("host", "127.0.0.1.evil.example:7460", 403),
        ("origin", "https://evil.example", 403),
        ("origin", "null", 403),
        ("origin", "http://localhost:3000", 200),
    ] {
        let response = client.request("1", "tools/list", "").header(name, value).send().await.unwrap();
        assert_eq!(response.status(), expected, "{name}: {value}");
        let readable = response.headers().get("access-control-allow-origin").is_some();
        assert_eq!(readable, expected == 200, "{name}: {value}");
        if expected == 403 {
            for path in ["sse", "mcp", "metrics"] {
                let refused = get(&format!("{}/{path}", serving.root), &[(name, value)]).await;
                assert_eq!(refused.status(), 403, "/{path} {name}: {value}");
            }
        }
    }
}

/// A non-loopback address requires a token; the error explains how to create one, in both languages.
#[test]
fn refuses_public_bind_without_token() {
    let cli = hub("");
    for address in ["0.0.0.0:0", "[::]:0"] {
        let ran = cli.run(&["serve", "--bind", address]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        let clear = ran.stderr.contains("can be reached from other machines, so callers must show a token")
            && ran.stderr.contains("toolhub keys new NAME");
        assert!(clear && ran.stdout.is_empty(), "{ran:?}");
    }
    let ran = cli.run(&["--lang", "zh", "serve", "--bind", "0.0.0.0:0"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("令牌"), "{ran:?}");
}

#[test]
fn rejects_unknown_default_profile() {
    let cli = hub("[profiles.work]\n");
    for stderr in [
        &["serve", "--profile"][..],
        &["serve", "--stdio", "--profile"],
        &["servers", "export", "cursor", "--file", "mcp.json", "--gateway", "--profile"],
    ] {
        for (name, hint) in [("play", "there are: default, work"), ("wrok", "did you mean `work`?")] {
            let ran = cli.run(&[stderr, &[name]].concat());
            assert_eq!(ran.code, Some(2), "{ran:?}");
            let expected = format!("there is no profile `{name}`; {hint}");
            assert!(ran.stderr.contains(&expected), "{ran:?}");
        }
    }
}

/// A gateway for two principals, with the tokens that the program created for them.
fn two_principals(script: &Script) -> (Serving, [String; 2]) {
    two_principals_with(script, "")
}

/// Like `two_principals`, with settings.
pub(crate) fn two_principals_with(script: &Script, settings: &str) -> (Serving, [String; 2]) {
    let mut cli = hub("");
    cli.server("s", script);
    let (cli, tokens) = two_tokens(cli, settings);
    (Serving::start(cli), tokens)
}

/// Like `two_principals_with`, with `--trace`.
pub(crate) fn two_principals_with_stderr(script: &Script, settings: &str) -> (Serving, [String; 2]) {
    let mut cli = hub("");
    cli.server("s", script);
    let (cli, tokens) = two_tokens(cli, settings);
    (Serving::start_with_stderr(cli), tokens)
}

/// Like `two_principals_with`, with this entry of `mcp.json`.
pub(crate) fn two_principals_before(entry: Value, settings: &str) -> (Serving, [String; 2]) {
    let mut cli = hub("");
    cli.entry("s", entry);
    let (cli, tokens) = two_tokens(cli, settings);
    (Serving::start(cli), tokens)
}

fn two_tokens(cli: CommandLine, settings: &str) -> (CommandLine, [String; 2]) {
    let mut settings = settings.to_owned();
    let tokens = ["ann", "bob"].map(|name| {
        let made = cli.run(&["serve", "--new-token", name, "--json"]).json();
        settings.push_str(&format!("[[auth.tokens]]\nname = \"{name}\"\nsha256 = {}\n", made["sha256"]));
        made["token"].as_str().unwrap().to_owned()
    });
    fs::write(cli.folder().join("toolhub.toml"), &settings).unwrap();
    assert!(!tokens.iter().any(|token| settings.contains(token)), "only hashes are kept");
    (cli, tokens)
}

#[tokio::test]
async fn rejects_missing_or_wrong_token() {
    let (serving, [ann, _]) = two_principals(&echo());
    let client = RawClient::with_token(&serving.url(), Era::Modern, Some(&ann)).await;
    assert_eq!(client.call("echo", "{}").await.text(), "{}");
    for wrong in ["Bearer wrong", "Bearer ", "Basic YW5uOg==", ""] {
        let mut unauthorized = client.clone();
        unauthorized.set("authorization", wrong);
        let response = unauthorized.request("1", "tools/list", "").send().await.unwrap();
        assert_eq!(response.status(), 401, "{wrong}");
        let challenge = response.headers()["www-authenticate"].to_str().unwrap().to_owned();
        assert!(challenge.starts_with("Bearer"), "{challenge}");
        let (invalid_token, text) = (wrong == "Bearer wrong", response.text().await.unwrap());
        assert_eq!(challenge.contains("invalid_token"), invalid_token, "{wrong}: {challenge}");
        assert_eq!(text.contains("this token is not valid here"), invalid_token, "{wrong}: {text}");
        assert_eq!(text.contains("a token is needed"), !invalid_token, "{wrong}: {text}");
        for path in ["sse", "mcp", "metrics"] {
            let refused = get(&format!("{}/{path}", serving.root), &[("authorization", wrong)]).await;
            assert_eq!(refused.status(), 401, "/{path} {wrong}");
        }
    }
    // Liveness and readiness need no token; details of problems do.
    let bearer = format!("Bearer {ann}");
    for path in ["healthz", "readyz"] {
        let url = format!("{}/{path}", serving.root);
        let (anonymous, known) = (get(&url, &[]).await, get(&url, &[("authorization", &bearer)]).await);
        assert_eq!((anonymous.status(), known.status()), (200.try_into().unwrap(), 200.try_into().unwrap()));
        assert!(!anonymous.text().await.unwrap().contains("degraded"));
        assert!(known.text().await.unwrap().contains("degraded"));
    }
    assert!(!serving.stderr().contains(&ann));
}

#[tokio::test]
async fn rejects_sessions_and_streams_of_another_token() {
    // A legacy server sends a request, which a modern client receives as a result to retry with.
    let question = json!({"method": "elicitation/create", "params": {
        "message": "who?", "requestedSchema": {"type": "object", "properties": {}}}});
    let script = Script::legacy()
        .plain_tool("ask")
        .on("tools/call:ask", json!([{"request": question}, {"answer": true}]));
    let (serving, [ann, bob]) = two_principals(&script);

    let owner = RawClient::with_token(&serving.url(), Era::Legacy, Some(&ann)).await;
    let mut thief = owner.clone();
    thief.set("authorization", &format!("Bearer {bob}"));
    let refused = thief.request("1", "tools/list", "").send().await.unwrap();
    assert_eq!(refused.status(), 404, "the session is another's");
    let headers = [("authorization", &*format!("Bearer {bob}")), ("mcp-session-id", owner.session())];
    assert_eq!(get(&serving.url(), &headers).await.status(), 404);
    let delete = http().request(Method::DELETE, serving.url());
    let delete = headers.iter().fold(delete, |request, (name, value)| request.header(*name, *value));
    assert_eq!(delete.send().await.unwrap().status(), 404);
    assert!(owner.tools().await.contains(&"ask".to_owned()), "the owner still has it");

    let bearer = format!("Bearer {ann}");
    let mut sse = get(&format!("{}/sse", serving.root), &[("authorization", &bearer)]).await;
    let first = String::from_utf8(sse.chunk().await.unwrap().unwrap().to_vec()).unwrap();
    let endpoint = first.lines().find_map(|line| line.strip_prefix("data: ")).unwrap().to_owned();
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for (token, expected) in [(&bob, 404), (&ann, 202)] {
        let message = http().request(Method::POST, format!("{}{endpoint}", serving.root)).body(ping);
        let sent = message.header("authorization", format!("Bearer {token}")).send().await.unwrap();
        assert_eq!(sent.status(), expected);
    }

    let owner = RawClient::with_token(&serving.url(), Era::Modern, Some(&ann)).await;
    let input_required: Value = serde_json::from_str(owner.call("ask", "{}").await.result()).unwrap();
    assert_eq!(input_required["resultType"], "input_required", "{input_required}");
    let state = &input_required["requestState"];
    let answers = json!({"question-1": {"action": "accept", "content": {"name": "ann"}}});
    let again = format!(r#""name":"ask","arguments":{{}},"inputResponses":{answers},"requestState":{state}"#);
    let thief = RawClient::with_token(&serving.url(), Era::Modern, Some(&bob)).await;
    assert_eq!(thief.ask("1", "tools/call", &again).await.error(), -32602);
    let text = owner.ask("2", "tools/call", &again).await.text();
    assert!(text.contains(r#""name":"ann""#), "{text}");
}

#[tokio::test]
async fn rejects_oversized_bodies_unknown_paths_and_wrong_media_types() {
    let serving = Serving::before(&echo(), "");
    for era in ERAS {
        let client = RawClient::connect(&serving.url(), era).await;
        let fits = format!(r#"{{"text":"{}"}}"#, "x".repeat(4_000_000));
        assert_eq!(client.call("echo", &fits).await.text(), fits, "{era:?}");
        let too_much = format!(r#""name":"echo","arguments":{{"text":"{}"}}"#, "x".repeat(4 << 20));
        let refused = client.request("1", "tools/call", &too_much).send().await.unwrap();
        assert_eq!(refused.status(), 413, "{era:?}");
        let far_too_much = format!(r#""name":"echo","arguments":{{"text":"{}"}}"#, "x".repeat(32 << 20));
        let refused = client.request("1", "tools/call", &far_too_much).send().await.unwrap();
        assert_eq!(refused.status(), 413, "{era:?}");
        // The refused request does not affect others.
        assert_eq!(client.call("echo", "{}").await.text(), "{}");
    }
    let client = RawClient::connect(&serving.url(), Era::Modern).await;
    for path in ["mcp/nowhere", "mcp/default/more", "mcpx", "api"] {
        let elsewhere = http().request(Method::POST, format!("{}/{path}", serving.root));
        let found = elsewhere.header("content-type", "application/json").body("{}").send().await.unwrap();
        assert_eq!(found.status(), 404, "/{path}");
    }
    for (kind, accept, expected) in
        [("text/plain", "application/json, text/event-stream", 415), ("application/json", "text/html", 406)]
    {
        let mut invalid = client.clone();
        invalid.set("content-type", kind);
        invalid.set("accept", accept);
        let invalid = invalid.request("1", "tools/list", "").send().await.unwrap();
        assert_eq!(invalid.status(), expected, "{kind} {accept}");
    }
    assert_eq!(client.ask("7", "no/such/method", "").await.status, 404);
    // Methods that only modern clients have are not forwarded.
    let legacy = RawClient::connect(&serving.url(), Era::Legacy).await;
    for method in ["server/discover", "subscriptions/listen"] {
        assert_eq!(legacy.ask("8", method, "").await.error(), -32601, "{method}");
    }
}

/// A CORS preflight has no token, and the page may read the reason of a refusal.
#[tokio::test]
async fn allows_cors_requests_of_allowed_origin() {
    let (serving, [ann, _]) = two_principals(&echo());
    let page = "http://localhost:3000";
    let ask = |origin: &str| {
        let request = http().request(Method::OPTIONS, serving.url()).header("origin", origin);
        let request = request.header("access-control-request-method", "POST");
        request.header("access-control-request-headers", "authorization,mcp-param-region").send()
    };
    let answer = ask(page).await.unwrap();
    assert_eq!(answer.status(), 204);
    let header = |answer: &Response, name: &str| answer.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header(&answer, "access-control-allow-origin"), page);
    assert_eq!(header(&answer, "access-control-allow-headers"), "authorization,mcp-param-region");
    assert!(header(&answer, "access-control-allow-methods").contains("POST"));
    assert_eq!(ask("https://evil.example").await.unwrap().status(), 403);

    let mut client = RawClient::with_token(&serving.url(), Era::Modern, Some(&ann)).await;
    client.set("origin", page);
    assert_eq!(client.call("echo", "{}").await.text(), "{}");
    client.set("authorization", "Bearer wrong");
    let refused = client.request("1", "tools/list", "").send().await.unwrap();
    assert_eq!(
        (refused.status().as_u16(), header(&refused, "access-control-allow-origin")),
        (401, page.to_owned())
    );
}

/// A page of an origin that the owner allows may open a stream.
#[tokio::test]
async fn stream_has_cors_headers_for_allowed_origin() {
    let serving = Serving::before(&echo(), "[serve]\norigins = [\"https://app.example\"]\n");
    let client = RawClient::connect(&serving.url(), Era::Modern).await;
    let subscription = r#""notifications":{"toolsListChanged":true}"#;
    let request =
        client.request("1", "subscriptions/listen", subscription).header("origin", "https://app.example");
    let mut stream = Stream::open(request).await;
    let first = stream.message().await.unwrap();
    assert_eq!(first.method.as_deref(), Some("notifications/subscriptions/acknowledged"));
}
