//! Requests that are wrong in any part: each is refused with the status and the error object of the API, and reaches no model.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::attacks::{MODEL, hub, send};
use crate::served_hub::ServedHub;

/// A response: its status, its headers and its body.
struct Received {
    status: u16,
    headers: reqwest::header::HeaderMap,
    text: String,
}

impl Received {
    /// The error: its code and its parameter.
    fn error(&self) -> (Option<String>, Option<String>) {
        let body: Value = serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("{}", self.text));
        let error = &body["error"];
        assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{body}");
        assert!(
            error["type"].is_string() && error.get("param").is_some() && error.get("code").is_some(),
            "{body}"
        );
        let text = |name: &str| error[name].as_str().map(str::to_owned);
        (text("code"), text("param"))
    }
}

async fn request(
    hub: &ServedHub,
    method: &str,
    path: &str,
    change: impl FnOnce(reqwest::RequestBuilder) -> reqwest::RequestBuilder,
) -> Received {
    let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
    let request = hub.client.request(method, format!("{}/{path}", hub.base_url())).bearer_auth(&hub.key);
    let response = change(request).send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    Received { status, headers, text: response.text().await.unwrap() }
}

fn chat(text: &str) -> Value {
    json!({"model": MODEL, "messages": [{"role": "user", "content": text}]})
}

#[tokio::test]
async fn bodies_that_are_no_requests() {
    let hub = hub("read_sheet", "");
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep_tool = format!(r#"{{"model":"{MODEL}","input":"x","tools":{deep}}}"#);
    let bodies: [&[u8]; 10] = [
        b"",
        b"{",
        b"null",
        b"[1]",
        b"\"text\"",
        b"\xff\xfe{}",
        b"{\"model\":\"toolhub/default\",\"input\":\"\xc3\"}",
        b"{\"model\":\"toolhub/default\",\"input\":\"\\ud800\"}",
        b"{\"model\":\"toolhub/default\",\"input\":\"x\"} {}",
        deep_tool.as_bytes(),
    ];
    for path in ["responses", "chat/completions"] {
        for body in bodies {
            let received = request(&hub, "POST", path, |request| request.body(body.to_vec())).await;
            let shown = String::from_utf8_lossy(&body[..body.len().min(80)]).into_owned();
            assert_eq!(received.status, 400, "{path} {shown}: {}", received.text);
            assert_eq!(received.error().1.as_deref(), Some("body"), "{path} {shown}");
        }
        let compressed = request(&hub, "POST", path, |request| {
            request.header("content-encoding", "gzip").body(b"\x1f\x8b".to_vec())
        });
        let received = compressed.await;
        assert_eq!(
            (received.status, received.error().0.unwrap().as_str()),
            (415, "unsupported_content_encoding")
        );
    }
    assert!(hub.model_requests().is_empty());
}

/// `curl -d` sends the type of a form, and some clients none at all. A page of a foreign origin can send no request, whatever
/// its type.
#[tokio::test]
async fn the_content_type_does_not_matter_but_the_origin_does() {
    let hub = hub("read_sheet", "");
    let body = chat("hi").to_string();
    for kind in [
        None,
        Some("application/x-www-form-urlencoded"),
        Some("text/plain"),
        Some("application/json; charset=utf-8"),
    ] {
        let received = request(&hub, "POST", "chat/completions", |request| {
            let request = request.body(body.clone());
            kind.into_iter().fold(request, |request, kind| request.header("content-type", kind))
        });
        let received = received.await;
        assert_eq!(received.status, 200, "{kind:?}: {}", received.text);
    }
    let before = hub.model_requests().len();
    for (header, value) in [("origin", "https://evil.example"), ("host", "evil.example")] {
        let received = request(&hub, "POST", "chat/completions", |request| {
            request.header(header, value).body(body.clone())
        })
        .await;
        assert!([403, 421].contains(&received.status), "{header}: {} {}", received.status, received.text);
        received.error();
    }
    assert_eq!(hub.model_requests().len(), before);
}

#[tokio::test]
async fn methods_paths_and_ids() {
    let hub = hub("read_sheet", "");
    let plain = |request: reqwest::RequestBuilder| request;
    for (method, path, allowed) in [
        ("GET", "responses", "POST"),
        ("DELETE", "responses", "POST"),
        ("PUT", "responses", "GET, POST, DELETE"),
        ("PATCH", "chat/completions", "GET, POST, DELETE"),
        ("POST", "models", "GET"),
        ("POST", "responses/resp_1", "GET, DELETE"),
        ("DELETE", "responses/resp_1/input_items", "GET"),
        ("GET", "responses/resp_1/cancel", "POST"),
    ] {
        let received = request(&hub, method, path, plain).await;
        assert_eq!(received.status, 405, "{method} {path}: {}", received.text);
        assert_eq!(received.headers["allow"], allowed, "{method} {path}");
        received.error();
    }
    let long = format!("responses/resp_{}", "a".repeat(6_000));
    for path in [
        "files",
        "responses/a/b/c",
        "chat",
        "responses/resp_none",
        "responses/%00",
        "responses/%ff",
        "responses/..%2f..%2fetc%2fpasswd",
        "responses/resp_%27%20OR%201=1--",
        &long,
        "models/toolhub/none",
        "models/toolhub%2Fnone",
    ] {
        let received = request(&hub, "GET", path, plain).await;
        assert_eq!(received.status, 404, "{path}: {}", received.text);
        assert!(received.text.len() < 5_000, "{path}");
        received.error();
    }
    // The libraries encode the slash in the name of a model.
    for path in ["models/toolhub%2Fdefault", "models/toolhub/default", "models/", "/models"] {
        let received = request(&hub, "GET", path, plain).await;
        assert_eq!(received.status, 200, "{path}: {}", received.text);
        assert!(received.text.contains("toolhub/default"), "{}", received.text);
    }
    for (query, param) in [
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("limit=ten", "limit"),
        ("order=up", "order"),
        ("after=item_none", "after"),
        ("page=2", "page"),
    ] {
        let (_, stored) =
            send(&hub, "POST", "responses", &hub.key, Some(json!({"model": MODEL, "input": "hi"}))).await;
        let path = format!("responses/{}/input_items?{query}", stored["id"].as_str().unwrap());
        let received = request(&hub, "GET", &path, plain).await;
        assert!([400, 404].contains(&received.status), "{query}: {}", received.text);
        assert_eq!(received.error().1.as_deref(), Some(param), "{query}");
    }
}

#[tokio::test]
async fn parameters_are_refused_by_name() {
    let hub = hub("read_sheet", "");
    let long = "x".repeat(1 << 20);
    let function = |name: &str| json!({"type": "function", "name": name});
    let server = |label: &str| json!({"type": "mcp", "server_label": label});
    let many: Vec<Value> = (0..129).map(|number| function(&format!("f{number}"))).collect();
    let metadata: serde_json::Map<String, Value> =
        (0..17).map(|number| (format!("k{number}"), json!("v"))).collect();
    for (member, value, param) in [
        ("model", json!(long), "model"),
        ("model", json!("toolhub/defualt"), "model"),
        ("model", json!(7), "model"),
        ("input", json!([]), "input"),
        ("input", json!({"role": "user"}), "input"),
        ("input", json!([7]), "input[0]"),
        ("input", json!([{"role": "root", "content": "x"}]), "input[0]"),
        (
            "input",
            json!([{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]),
            "input[0]",
        ),
        (
            "input",
            json!([{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}]),
            "input",
        ),
        ("previous_response_id", json!("resp_none"), "previous_response_id"),
        ("previous_response_id", json!("resp_\u{0}"), "previous_response_id"),
        ("stream", json!("yes"), "stream"),
        ("max_output_tokens", json!(0), "max_output_tokens"),
        ("max_output_tokens", json!(1.5), "max_output_tokens"),
        ("max_tool_calls", json!(-1), "max_tool_calls"),
        ("tools", json!(many), "tools"),
        ("tools", json!([function("f"), function("f")]), "tools"),
        ("tools", json!([function("a b")]), "tools[0].name"),
        ("tools", json!([server("sheets"), server("sheets")]), "tools.server_label"),
        ("tools", json!([server("sheet")]), "tools.server_label"),
        ("tools", json!({}), "tools"),
        ("metadata", json!(metadata), "metadata"),
        ("metadata", json!({"a": {}}), "metadata"),
        ("text", json!({"format": {"type": "xml"}}), "text.format"),
        ("include", json!(["secrets"]), "include"),
        ("conversation", json!("conv_1"), "conversation"),
        (&long[..5_000], json!(1), &format!("{}…", &long[..4_096])),
    ] {
        let mut body = json!({"model": MODEL, "input": "hi"});
        body[member] = value;
        let received = request(&hub, "POST", "responses", |request| request.body(body.to_string())).await;
        let shown: String = format!("{member} {}", body[member]).chars().take(200).collect();
        assert!([400, 404].contains(&received.status), "{shown}: {}", received.text);
        assert_eq!(received.error().1.as_deref(), Some(param), "{shown}: {}", received.text);
        assert!(received.text.len() < 16_000, "{shown}");
    }
    for (member, value, param) in [
        ("n", json!(2), "n"),
        ("stop", json!("x"), "stop"),
        ("logprobs", json!(true), "logprobs"),
        ("messages", json!([{"role": "user", "content": [{"type": "image_url"}]}]), "messages[0]"),
        ("messages", json!([{"role": "tool", "content": "x"}]), "messages[0]"),
        ("messages", json!([{"role": "mcp_approval_response", "approve": true}]), "messages[0]"),
        ("stream_options", json!({"include_everything": true}), "stream_options.include_everything"),
        ("tools", json!([{"type": "mcp", "server_label": "sheets"}]), "tools[0].type"),
    ] {
        let mut body = chat("hi");
        body[member] = value;
        let received =
            request(&hub, "POST", "chat/completions", |request| request.body(body.to_string())).await;
        assert_eq!(received.status, 400, "{body}: {}", received.text);
        assert_eq!(received.error().1.as_deref(), Some(param), "{body}: {}", received.text);
    }
    assert!(hub.model_requests().is_empty() && hub.called().is_empty());
}

#[tokio::test]
async fn keys_and_projects() {
    let hub = hub("read_sheet", "");
    let url = format!("{}/models", hub.base_url());
    for (header, value) in [
        ("authorization", hub.key.clone()),
        ("authorization", format!("Basic {}", hub.key)),
        ("authorization", format!("Bearer {}x", hub.key)),
        ("authorization", "Bearer ".to_owned()),
        ("x-api-key", hub.key.clone()),
        ("x-unrelated", "1".to_owned()),
    ] {
        let response = hub.client.get(format!("{url}?api_key={}", hub.key)).header(header, &value).send();
        let response = response.await.unwrap();
        let received = Received {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            text: response.text().await.unwrap(),
        };
        assert_eq!(
            (received.status, received.error().0.as_deref()),
            (401, Some("invalid_api_key")),
            "{header} {value}"
        );
        assert!(!received.text.contains(&hub.key), "the key is repeated: {}", received.text);
    }
    for project in [b"none".as_slice(), b"caf\xe9", "默认".as_bytes()] {
        let received = request(&hub, "GET", "models", |request| {
            request.header("openai-project", reqwest::header::HeaderValue::from_bytes(project).unwrap())
        });
        let received = received.await;
        assert_eq!((received.status, received.error().0.as_deref()), (404, Some("profile_not_found")));
    }
}

/// A base URL without `/v1`, with a slash at its end, or with the path of a request.
#[tokio::test]
async fn wrong_base_urls() {
    let hub = hub("read_sheet", "");
    let root = hub.base_url().replace("/v1", "");
    let post = |url: String| hub.client.post(url).bearer_auth(&hub.key).body(chat("hi").to_string()).send();
    for path in ["/v1//chat/completions", "/v1/chat/completions/"] {
        assert_eq!(post(format!("{root}{path}")).await.unwrap().status(), 200, "{path}");
    }
    // The libraries show only messages in the form of the API.
    for path in
        ["/chat/completions", "/responses", "/models", "/mcp/chat/completions", "//v1/chat/completions"]
    {
        let response = post(format!("{root}{path}")).await.unwrap();
        let (status, text) = (response.status(), response.text().await.unwrap());
        let error: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{path}: {text}"));
        let message = error["error"]["message"].as_str().unwrap();
        assert!(status == 404 && message.contains("/v1"), "{path}: {status} {text}");
    }
    let response = post(format!("{root}/v1beta/nothing")).await.unwrap();
    assert!(response.status() == 404 && response.text().await.unwrap().contains("/v1"));
    for path in ["/v1/v1/chat/completions", "/v1/chat/completions/chat/completions"] {
        let response = post(format!("{root}{path}")).await.unwrap();
        let (status, text) = (response.status(), response.text().await.unwrap());
        assert!(status == 404 && text.contains("/v1/chat/completions"), "{path}: {status} {text}");
    }
}

/// The length may be known before or only afterwards.
#[tokio::test]
async fn bodies_that_are_too_long() {
    let hub = hub("read_sheet", "[serve]\nbody_bytes = 65536\n");
    let long = json!({"model": MODEL, "input": "x".repeat(80 << 10)}).to_string();
    let mut stream = TcpStream::connect(hub.address()).await.unwrap();
    let head = format!(
        "POST /v1/responses HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n",
        hub.address(),
        hub.key
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    for piece in long.as_bytes().chunks(10_000) {
        let framed = [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
        stream.write_all(&framed).await.unwrap();
    }
    stream.write_all(b"0\r\n\r\n").await.unwrap();
    let mut received = String::new();
    stream.read_to_string(&mut received).await.unwrap();
    assert!(received.starts_with("HTTP/1.1 413 "), "{received}");
    assert!(received.contains(r#""code":"request_too_large""#), "{received}");
    let received = request(&hub, "POST", "chat/completions", |request| request.body(long)).await;
    assert_eq!((received.status, received.error().0.as_deref()), (413, Some("request_too_large")));
}

#[tokio::test]
async fn limits_say_when_to_come_again() {
    let hub = hub("hold_write", "[serve]\nmax_concurrent = 2\n");
    let body = json!({"model": MODEL, "input": "Write row 7.", "background": true});
    let mut ids = Vec::new();
    loop {
        let received = request(&hub, "POST", "responses", |request| request.body(body.to_string())).await;
        if received.status != 200 {
            assert_eq!((received.status, received.error().0.as_deref()), (429, Some("rate_limit_exceeded")));
            assert!(received.headers["retry-after"].to_str().unwrap().parse::<u32>().unwrap() >= 1);
            break;
        }
        let response: Value = serde_json::from_str(&received.text).unwrap();
        ids.push(response["id"].as_str().unwrap().to_owned());
        assert!(ids.len() <= 2, "no limit");
    }
    // A chat is refused like a response, and both are accepted when another one has ended.
    let full =
        request(&hub, "POST", "chat/completions", |request| request.body(chat("hi").to_string())).await;
    assert_eq!(full.status, 429, "{}", full.text);
    hub.await_called("hold_write", 1).await;
    for id in &ids {
        let (status, _) = send(&hub, "POST", &format!("responses/{id}/cancel"), &hub.key, None).await;
        assert_eq!(status, 200);
    }
    let (status, body) = send(&hub, "POST", "responses", &hub.key, Some(body)).await;
    assert_eq!(status, 200, "{body}");
}

/// `OPENAI_BASE_URL` of a shell is meant for the clients, and would make the hub its own model.
#[tokio::test]
async fn a_hub_is_not_its_own_model() {
    // The address is known only after the start; a port that was free is used again.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let settings =
        format!("[llm]\nurl = \"http://127.0.0.1:{port}/v1\"\nmodel = \"toolhub/default\"\nkey = \"$KEY\"\n");
    let hub = ServedHub::start_at(&settings, None, port);
    let received =
        request(&hub, "POST", "chat/completions", |request| request.body(chat("hi").to_string())).await;
    assert_eq!(received.status, 502, "{}", received.text);
    assert!(received.text.contains("the hub itself"), "{}", received.text);
}
