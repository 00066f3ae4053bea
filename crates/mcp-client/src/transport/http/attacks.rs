//! Tests with servers that answer another request, or send more than was requested, for both HTTP clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::TaskTracker;
use toolhub_core::Secret;
use toolhub_core::error::Effect;

use super::*;
use crate::config::NeedsConsent as _;
use crate::transport::test_inbox::TestInbox;

/// Provides no token, but keeps requests from the direct client.
struct NoToken;

impl Authorizer for NoToken {
    fn token(&self) -> BoxFuture<'_, Result<Option<Secret>, McpError>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    fn has_no_token(&self) -> bool {
        false
    }

    fn on_refusal(
        &self,
        _: toolhub_oauth::RequestRefusal,
    ) -> BoxFuture<'_, Result<Option<Secret>, McpError>> {
        Box::pin(std::future::ready(Ok(None)))
    }
}

/// The behaviour of the server on the first request. All others are answered correctly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FirstResponse {
    Right,
    RightStream,
    WrongId,
    WrongIdInStream,
    /// Correct, followed by the response to the next request.
    Ahead,
    /// The correct response twice.
    Twice,
    /// Correct, with the response to the next request in the same stream.
    StreamAhead,
    /// Correct, with a body longer than `Content-Length`.
    Longer,
    /// Status 204 with a body.
    NoContentWithBody,
    /// Informational (1xx) responses without end.
    Informational,
    NotJson,
}

fn json(id: u64, result: &str) -> String {
    let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"{result}":{id}}}}}"#);
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
}

fn stream(events: &[(u64, &str)]) -> String {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let mut text = head.to_owned();
    for (id, result) in events {
        let event = format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"{result}\":{id}}}}}\n\n");
        text += &format!("{:x}\r\n{event}\r\n", event.len());
    }
    text + "0\r\n\r\n"
}

fn first_answer(first: FirstResponse, id: u64) -> String {
    match first {
        FirstResponse::Right => json(id, "own"),
        FirstResponse::RightStream => stream(&[(id, "own")]),
        FirstResponse::WrongId => json(id + 1, "stolen"),
        FirstResponse::WrongIdInStream => stream(&[(id + 1, "stolen"), (id, "own")]),
        FirstResponse::Ahead => json(id, "own") + &json(id + 1, "stolen"),
        FirstResponse::Twice => json(id, "own") + &json(id, "own"),
        FirstResponse::StreamAhead => stream(&[(id, "own"), (id + 1, "stolen")]),
        FirstResponse::Longer => json(id, "own") + r#"{"jsonrpc":"2.0"}"#,
        FirstResponse::NoContentWithBody => {
            let rest = json(id + 1, "stolen");
            format!("HTTP/1.1 204 No Content\r\ncontent-length: {}\r\n\r\n{rest}", rest.len())
        }
        FirstResponse::Informational => "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(40) + &json(id, "own"),
        FirstResponse::NotJson => json(id, "own").replace("{\"jsonrpc\"", "?\"jsonrpc\""),
    }
}

/// Reads one request and returns its id.
async fn request(stream: &mut TcpStream, received: &mut Vec<u8>) -> Option<u64> {
    loop {
        if let Some(head) = received.windows(4).position(|four| four == b"\r\n\r\n") {
            let text = String::from_utf8_lossy(&received[..head]).to_ascii_lowercase();
            let length = text.lines().find_map(|line| line.strip_prefix("content-length: "))?;
            let end = head + 4 + length.parse::<usize>().ok()?;
            if received.len() >= end {
                let id = jsonrpc::extract_id(&received[head..end]);
                received.drain(..end);
                return id;
            }
        }
        if stream.read_buf(received).await.ok()? == 0 {
            return None;
        }
    }
}

/// Sends two requests. Returns their results and the number of connections used.
async fn exchange(first: FirstResponse, direct: bool) -> ([Result<RawJson, McpError>; 2], usize) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let (tasks, connections, requests) = (TaskTracker::new(), Arc::<AtomicUsize>::default(), Arc::default());
    let (serving, counted) = (tasks.clone(), Arc::clone(&connections));
    let server = tasks.spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            let requests: Arc<AtomicUsize> = Arc::clone(&requests);
            serving.spawn(async move {
                let mut received = Vec::new();
                while let Some(id) = request(&mut stream, &mut received).await {
                    let answer = match requests.fetch_add(1, Ordering::Relaxed) {
                        0 => first_answer(first, id),
                        _ => json(id, "own"),
                    };
                    if stream.write_all(answer.as_bytes()).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    let spec = HttpSpec { url, headers: Vec::new() };
    let spec = spec.permitted(&toolhub_core::Consent::of_owner()).unwrap();
    let authorizer = (!direct).then(|| Arc::new(NoToken) as Arc<dyn Authorizer>);
    let http = Http::new(&spec, authorizer, Arc::<TestInbox>::default(), &TaskTracker::new()).unwrap();
    let ask = async |id: u64| {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call"}}"#);
        let (headers, repeat) = (&[], Repeat::IfUnprocessed);
        let request = OutgoingRequest {
            id,
            method: "tools/call",
            name: None,
            body,
            headers,
            listener: None,
            repeat,
            principal: None,
            client: None,
        };
        http.request(request).await
    };
    let answers = [ask(7).await, ask(8).await];
    server.abort();
    (answers, connections.load(Ordering::Relaxed))
}

#[tokio::test]
async fn drops_connection_after_mismatched_response() {
    let wrong = [
        FirstResponse::WrongId,
        FirstResponse::WrongIdInStream,
        FirstResponse::NoContentWithBody,
        FirstResponse::Informational,
        FirstResponse::NotJson,
    ];
    for direct in [true, false] {
        for first in wrong {
            // The general client skips a bounded number of informational responses.
            if !direct && first == FirstResponse::Informational {
                continue;
            }
            let ([one, other], connections) = exchange(first, direct).await;
            let error = one.map(|result| result.get().to_owned()).unwrap_err();
            let error = error.into_tool_error(&toolhub_core::ServerId::new("s"));
            assert_eq!(error.effect(), Effect::Unknown, "{first:?} {direct}: {error}");
            assert_eq!(other.unwrap().get(), r#"{"own":8}"#, "{first:?} {direct}");
            assert_eq!(connections, 2, "{first:?} {direct}");
        }
    }
}

#[tokio::test]
async fn drops_connection_with_trailing_bytes() {
    for direct in [true, false] {
        for first in
            [FirstResponse::Ahead, FirstResponse::Twice, FirstResponse::StreamAhead, FirstResponse::Longer]
        {
            let ([one, other], connections) = exchange(first, direct).await;
            assert_eq!(one.unwrap().get(), r#"{"own":7}"#, "{first:?} {direct}");
            assert_eq!(other.unwrap().get(), r#"{"own":8}"#, "{first:?} {direct}");
            assert_eq!(connections, 2, "{first:?} {direct}");
        }
    }
}

#[tokio::test]
async fn reuses_connection_after_matching_response() {
    for direct in [true, false] {
        for first in [FirstResponse::Right, FirstResponse::RightStream] {
            // The general client drains a stream while the next request is sent.
            if !direct && first == FirstResponse::RightStream {
                continue;
            }
            // The general client returns a connection to its pool in a separate task, possibly after the next request.
            let mut reused = false;
            for _ in 0..if direct { 1 } else { 20 } {
                let (answers, connections) = exchange(first, direct).await;
                for (answer, expect) in answers.into_iter().zip([r#"{"own":7}"#, r#"{"own":8}"#]) {
                    assert_eq!(answer.unwrap().get(), expect);
                }
                reused |= connections == 1;
            }
            assert!(reused, "{first:?} {direct}");
        }
    }
}
