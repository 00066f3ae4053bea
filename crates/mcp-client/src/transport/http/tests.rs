//! Tests of connection reuse, with a server that counts connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::TaskTracker;

use super::*;
use crate::config::NeedsConsent as _;
use crate::transport::test_inbox::TestInbox;

/// The server's behaviour after the event with the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    /// Ends the stream in the same write.
    Together,
    /// Ends the stream a little later.
    Later,
    /// Keeps the stream open.
    Nothing,
    /// Closes the connection.
    Close,
}

/// Answers every request with a stream of one event.
async fn serve(mut stream: TcpStream, after: After) -> std::io::Result<()> {
    let mut received = Vec::new();
    loop {
        let end = loop {
            if let Some(head) = received.windows(4).position(|four| four == b"\r\n\r\n") {
                let text = String::from_utf8_lossy(&received[..head]).to_ascii_lowercase();
                let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
                let end = head + 4 + length.and_then(|length| length.parse::<usize>().ok()).unwrap_or(0);
                if received.len() >= end {
                    break end;
                }
            }
            if stream.read_buf(&mut received).await? == 0 {
                return Ok(());
            }
        };
        received.drain(..end);
        let event = "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":1}}\n\n";
        let (close, last) = match after {
            After::Together => ("", "0\r\n\r\n"),
            After::Later | After::Nothing => ("", ""),
            After::Close => ("connection: close\r\n", "0\r\n\r\n"),
        };
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{close}transfer-encoding: chunked\r\n\r\n"
        );
        let answer = format!("{head}{:x}\r\n{event}\r\n{last}", event.len());
        stream.write_all(answer.as_bytes()).await?;
        match after {
            After::Together => {}
            After::Later => {
                tokio::time::sleep(Duration::from_millis(5)).await;
                stream.write_all(b"0\r\n\r\n").await?;
            }
            After::Nothing => {
                // Waits until the client closes the connection.
                return stream.read_buf(&mut received).await.map(drop);
            }
            After::Close => return Ok(()),
        }
    }
}

/// The number of connections that five sequential requests use.
async fn connections(after: After) -> usize {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let (tasks, count) = (TaskTracker::new(), Arc::new(AtomicUsize::new(0)));
    let (serving, counted) = (tasks.clone(), Arc::clone(&count));
    let server = tasks.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            serving.spawn(serve(stream, after));
        }
    });
    let spec = HttpSpec { url, headers: Vec::new() };
    let spec = spec.permitted(&toolhub_core::Consent::of_owner()).unwrap();
    let http = Http::new(&spec, None, Arc::<TestInbox>::default(), &TaskTracker::new()).unwrap();
    for _ in 0..5 {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.to_owned();
        let (headers, repeat) = (&[], Repeat::Safe);
        let request = OutgoingRequest {
            id: 1,
            method: "ping",
            name: None,
            body,
            headers,
            listener: None,
            repeat,
            principal: None,
            client: None,
        };
        assert_eq!(http.request(request).await.unwrap().get(), r#"{"a":1}"#);
        // Long enough for the end of the stream to arrive, also on a busy machine.
        let wait = if matches!(after, After::Later) { 500 } else { 50 };
        tokio::time::sleep(Duration::from_millis(wait)).await;
    }
    server.abort();
    count.load(Ordering::Relaxed)
}

#[tokio::test]
async fn reuses_connection_after_a_stream_has_ended() {
    assert_eq!(connections(After::Together).await, 1);
    assert_eq!(connections(After::Later).await, 1);
    assert_eq!(connections(After::Close).await, 5);
    assert_eq!(connections(After::Nothing).await, 5);
}

async fn read_head(stream: &mut TcpStream) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        assert!(stream.read_buf(&mut head).await.unwrap() > 0);
    }
}

#[tokio::test]
async fn reopens_the_get_stream_after_a_lost_connection_and_a_bad_gateway() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let server = TaskTracker::new().spawn(async move {
        let (mut lost, _) = listener.accept().await.unwrap();
        read_head(&mut lost).await;
        drop(lost);
        let (mut bad, _) = listener.accept().await.unwrap();
        read_head(&mut bad).await;
        bad.write_all(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            .await
            .unwrap();
        let (mut good, _) = listener.accept().await.unwrap();
        read_head(&mut good).await;
        let event = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n";
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        good.write_all(format!("{head}{event}").as_bytes()).await.unwrap();
        drop(good);
        // A server without the stream is not contacted again.
        let (mut none, _) = listener.accept().await.unwrap();
        read_head(&mut none).await;
        none.write_all(b"HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            .await
            .unwrap();
        tokio::time::timeout(Duration::from_secs(3), listener.accept()).await.is_err()
    });
    let spec = HttpSpec { url, headers: Vec::new() };
    let spec = spec.permitted(&toolhub_core::Consent::of_owner()).unwrap();
    let (sender, mut methods) = tokio::sync::mpsc::channel(8);
    let inbox = TestInbox { notifications: Some(sender), ..TestInbox::default() };
    let http = Http::new(&spec, None, Arc::new(inbox), &TaskTracker::new()).unwrap();
    http.listen();
    let method = tokio::time::timeout(Duration::from_secs(60), methods.recv()).await.unwrap();
    assert_eq!(method.as_deref(), Some("notifications/tools/list_changed"));
    assert!(server.await.unwrap(), "the server was contacted after status 405");
}
