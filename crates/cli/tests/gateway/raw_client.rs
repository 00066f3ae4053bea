//! An MCP client for either era (legacy or modern) that exposes every byte of the responses. It shares no code with the
//! gateway.

use std::sync::OnceLock;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, RequestBuilder, Response};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-11-25";

/// The HTTP client of the current test thread, without a proxy.
pub(crate) fn http() -> &'static Client {
    static CLIENT: OnceLock<()> = OnceLock::new();
    CLIENT.get_or_init(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    thread_local! {
        // A connection pool is bound to the runtime of its test; each test has its own thread and runtime.
        static OF_THREAD: &'static Client =
            Box::leak(Box::new(Client::builder().no_proxy().build().unwrap()));
    }
    OF_THREAD.with(|client| *client)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    Legacy,
    Modern,
}

pub(crate) const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

#[derive(Debug, Clone)]
pub(crate) struct RawClient {
    url: String,
    era: Era,
    http: Client,
    headers: HeaderMap,
    capabilities: Value,
    /// Additional members of `_meta` in each request, as the inside of a JSON object.
    meta: String,
}

/// A JSON-RPC message from the gateway. Its parts keep the text in which they were sent.
#[derive(Debug, Deserialize)]
pub(crate) struct Message {
    #[serde(default)]
    pub(crate) id: Option<Value>,
    #[serde(default)]
    pub(crate) method: Option<String>,
    #[serde(default)]
    pub(crate) params: Option<Value>,
    #[serde(default)]
    pub(crate) result: Option<Box<RawValue>>,
    #[serde(default)]
    pub(crate) error: Option<Value>,
}

/// The complete response to a request.
#[derive(Debug)]
pub(crate) struct RawResponse {
    pub(crate) status: u16,
    pub(crate) messages: Vec<Message>,
}

impl RawResponse {
    /// The last message, which is the response to the request.
    pub(crate) fn last(&self) -> &Message {
        self.messages.last().unwrap_or_else(|| panic!("no message, status {}", self.status))
    }

    /// The `result` of the response, as sent.
    pub(crate) fn result(&self) -> &str {
        self.last().result.as_ref().unwrap_or_else(|| panic!("no result: {self:?}")).get()
    }

    /// The text of the first content block of a tool result.
    pub(crate) fn text(&self) -> String {
        let result: Value = serde_json::from_str(self.result()).unwrap();
        result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result}")).to_owned()
    }

    /// The code of the JSON-RPC error.
    pub(crate) fn error(&self) -> i64 {
        let error = self.last().error.as_ref().unwrap_or_else(|| panic!("no error: {self:?}"));
        error["code"].as_i64().unwrap()
    }
}

impl RawClient {
    /// Connects a client; a legacy client also completes `initialize`.
    pub(crate) async fn connect(url: &str, era: Era) -> Self {
        Self::with_token(url, era, None).await
    }

    /// Connects a legacy client with this protocol revision and these capabilities.
    pub(crate) async fn legacy_with(url: &str, revision: &'static str, capabilities: Value) -> Self {
        let mut client = Self::uninitialized(url, Era::Legacy, None);
        client.capabilities = capabilities;
        client.initialize(revision).await;
        client
    }

    /// Like `connect`, with a bearer token.
    pub(crate) async fn with_token(url: &str, era: Era, token: Option<&str>) -> Self {
        let mut client = Self::uninitialized(url, era, token);
        if era == Era::Legacy {
            client.initialize(LEGACY).await;
        }
        client
    }

    fn uninitialized(url: &str, era: Era, token: Option<&str>) -> Self {
        let mut headers = HeaderMap::new();
        let mut put = |name: &'static str, value: &str| {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        };
        put("content-type", "application/json");
        put("accept", "application/json, text/event-stream");
        if let Some(token) = token {
            put("authorization", &format!("Bearer {token}"));
        }
        let capabilities = json!({"elicitation": {"form": {}}, "sampling": {}});
        Self { url: url.to_owned(), era, http: http().clone(), headers, capabilities, meta: String::new() }
    }

    async fn initialize(&mut self, revision: &'static str) {
        let info = json!({"name": "raw", "version": "1"});
        let params =
            json!({"protocolVersion": revision, "capabilities": self.capabilities, "clientInfo": info});
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let response = self.post(hello.to_string()).send().await.unwrap();
        let session = response.headers()["mcp-session-id"].clone();
        self.headers.insert("mcp-session-id", session);
        self.headers.insert("mcp-protocol-version", HeaderValue::from_static(revision));
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(self.post(ready.to_string()).send().await.unwrap().status(), 202);
    }

    /// The id of its legacy session. Panics if it has none.
    pub(crate) fn session(&self) -> &str {
        self.headers["mcp-session-id"].to_str().unwrap()
    }

    /// A GET of the endpoint, which opens or resumes a stream; not yet sent.
    pub(crate) fn get(&self) -> RequestBuilder {
        self.http.request(Method::GET, &self.url).headers(self.headers.clone())
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// A DELETE of its session; not yet sent.
    pub(crate) fn delete(&self) -> RequestBuilder {
        self.http.request(Method::DELETE, &self.url).headers(self.headers.clone())
    }

    /// Ends its session with DELETE.
    pub(crate) async fn end(&self) {
        assert!(self.delete().send().await.unwrap().status().is_success());
    }

    /// Sends further requests to another URL, with the same headers and session.
    pub(crate) fn move_to(&mut self, url: &str) {
        url.clone_into(&mut self.url);
    }

    /// Replaces a header, such as the session id or the token.
    pub(crate) fn set(&mut self, name: &'static str, value: &str) {
        self.headers.insert(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
    }

    /// Replaces the capabilities, which a modern client sends with each request.
    pub(crate) fn declare(&mut self, capabilities: Value) {
        self.capabilities = capabilities;
    }

    /// Sets the additional members of `_meta`, as the inside of a JSON object.
    pub(crate) fn also(&mut self, members: &str) {
        members.clone_into(&mut self.meta);
    }

    /// A POST of this body to the endpoint; not yet sent.
    pub(crate) fn post(&self, body: String) -> RequestBuilder {
        self.http.request(Method::POST, &self.url).headers(self.headers.clone()).body(body)
    }

    /// A JSON-RPC request, not yet sent; `params` is the inside of a JSON object.
    pub(crate) fn request(&self, id: &str, method: &str, params: &str) -> RequestBuilder {
        let mut meta = r#""progressToken":"p""#.to_owned();
        if !self.meta.is_empty() {
            meta.push_str(&format!(",{}", self.meta));
        }
        let mut named = HeaderMap::new();
        if self.era == Era::Modern {
            let can = &self.capabilities;
            meta.push_str(&format!(
                r#","io.modelcontextprotocol/protocolVersion":"{MODERN}","io.modelcontextprotocol/clientCapabilities":{can}"#
            ));
            named.insert("mcp-protocol-version", HeaderValue::from_static(MODERN));
            named.insert("mcp-method", HeaderValue::from_str(method).unwrap());
        }
        let comma = if params.is_empty() { "" } else { "," };
        let params = format!(r#"{{{params}{comma}"_meta":{{{meta}}}}}"#);
        if self.era == Era::Modern
            && let Ok(Some(name)) = serde_json::from_str::<Value>(&params).map(|all| {
                let name = all.get("name").or_else(|| all.get("uri"));
                name.and_then(Value::as_str).map(str::to_owned)
            })
        {
            let plain = name.chars().all(|c| c.is_ascii_graphic());
            let value = if plain { name } else { encoded(&name) };
            named.insert("mcp-name", HeaderValue::from_str(&value).unwrap());
        }
        let method = json!(method);
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method},"params":{params}}}"#);
        self.post(body).headers(named)
    }

    /// Sends a request and reads its response to the end.
    pub(crate) async fn ask(&self, id: &str, method: &str, params: &str) -> RawResponse {
        let response = self.request(id, method, params).send().await.unwrap();
        let status = response.status().as_u16();
        let events = is_stream(&response);
        let text = response.text().await.unwrap();
        let read = |text: &str| {
            serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {status} {text}"))
        };
        let messages = match events {
            true => text.lines().filter_map(|line| line.strip_prefix("data: ")).map(read).collect(),
            false => vec![read(&text)],
        };
        RawResponse { status, messages }
    }

    /// Calls a tool; `arguments` is JSON text.
    pub(crate) async fn call(&self, tool: &str, arguments: &str) -> RawResponse {
        self.ask("1", "tools/call", &format!(r#""name":{},"arguments":{arguments}"#, json!(tool))).await
    }

    /// The names of the listed tools, in the order of the list.
    pub(crate) async fn tools(&self) -> Vec<String> {
        let listed: Value = serde_json::from_str(self.ask("1", "tools/list", "").await.result()).unwrap();
        let tools = listed["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Opens the stream for messages that belong to no request, and waits until it is established.
    pub(crate) async fn listen(&self) -> Stream {
        let request = match self.era {
            Era::Legacy => self.get(),
            Era::Modern => {
                let subscription = r#""notifications":{"toolsListChanged":true,"promptsListChanged":true}"#;
                self.request("\"listen\"", "subscriptions/listen", subscription)
            }
        };
        let mut stream = Stream::open(request).await;
        if self.era == Era::Modern {
            let first = stream.message().await.unwrap();
            assert_eq!(first.method.as_deref(), Some("notifications/subscriptions/acknowledged"));
        }
        stream
    }
}

/// Encodes a value that a header cannot carry literally, in the form `=?base64?…?=`.
fn encoded(name: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in name.as_bytes().chunks(3) {
        let bits = three.iter().fold(0_usize, |bits, byte| (bits << 8) | usize::from(*byte));
        let bits = bits << (8 * (3 - three.len()));
        for position in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * position)) & 63] as char;
            text.push(if position <= three.len() { letter } else { '=' });
        }
    }
    format!("=?base64?{text}?=")
}

pub(crate) fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("text/event-stream"))
}

/// An SSE stream, read incrementally. Dropping it closes the connection.
pub(crate) struct Stream {
    response: Response,
    read: String,
    position: String,
}

impl Stream {
    /// Sends the request and waits for the response head.
    pub(crate) async fn open(request: RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        assert!(response.status() == 200 && is_stream(&response), "{response:?}");
        Self::of(response)
    }

    /// The stream of a response.
    pub(crate) fn of(response: Response) -> Self {
        Self { response, read: String::new(), position: String::new() }
    }

    /// The next message; `None` at the end of the stream.
    pub(crate) async fn message(&mut self) -> Option<Message> {
        Some(serde_json::from_str(&self.data().await?).unwrap())
    }

    /// The id of the last event.
    pub(crate) fn position(&self) -> &str {
        &self.position
    }

    /// Reads to the end of the stream. Returns whether it ended with an error.
    pub(crate) async fn is_broken(&mut self) -> bool {
        loop {
            match self.response.chunk().await {
                Ok(Some(_)) => {}
                Ok(None) => return false,
                Err(_) => return true,
            }
        }
    }

    /// The unread rest of the stream, as sent.
    pub(crate) async fn rest(mut self) -> String {
        while let Some(chunk) = self.response.chunk().await.unwrap() {
            self.read.push_str(std::str::from_utf8(&chunk).unwrap());
        }
        self.read
    }

    /// The data of the next event.
    pub(crate) async fn data(&mut self) -> Option<String> {
        loop {
            if let Some((event, rest)) = self.read.split_once("\n\n") {
                let data = event.lines().find_map(|line| line.strip_prefix("data: ")).map(str::to_owned);
                if let Some(position) = event.lines().find_map(|line| line.strip_prefix("id: ")) {
                    position.clone_into(&mut self.position);
                }
                self.read = rest.to_owned();
                match data {
                    Some(data) => return Some(data),
                    None => continue,
                }
            }
            let chunk = self.response.chunk().await.unwrap()?;
            self.read.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// Whether no message with this method arrives within 300 ms.
    pub(crate) async fn nothing_more(&mut self, method: &str) -> bool {
        let silence = std::time::Duration::from_millis(300);
        tokio::time::timeout(silence, self.until(method)).await.is_err()
    }

    /// Reads until a message with this method arrives.
    pub(crate) async fn until(&mut self, method: &str) -> Message {
        loop {
            let message = self.message().await.unwrap_or_else(|| panic!("ended before `{method}`"));
            if message.method.as_deref() == Some(method) {
                return message;
            }
        }
    }
}
