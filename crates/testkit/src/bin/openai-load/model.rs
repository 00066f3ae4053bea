//! A model server with minimal work: it streams the tokens of the plan in the last message, each in a write of its own.

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::chunked::Connection;
use crate::plan::Plan;

const EVENTS: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

#[expect(clippy::print_stdout, reason = "the benchmark that starts it reads the address")]
pub(crate) async fn serve() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (stream, _) = accepted?;
                // A client that goes away ends its connection.
                connections.spawn(async move { drop(answer_all(stream).await) });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn answer_all(stream: TcpStream) -> Result<()> {
    let mut connection = Connection::of(stream)?;
    while let Some(head) = connection.head().await? {
        if head.first_line.starts_with("GET") {
            let models =
                json!({"object": "list", "data": [{"id": "scripted", "object": "model"}]}).to_string();
            let response = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{models}",
                models.len()
            );
            connection.stream.get_mut().write_all(response.as_bytes()).await?;
            continue;
        }
        let body = connection.body(&head).await?;
        let body: Value = serde_json::from_slice(&body)?;
        let messages = body["messages"].as_array().context("no messages")?;
        let last = messages.last().context("no message")?;
        let plan = Plan::parse(last["content"].as_str().context("no text")?)?;
        write(connection.stream.get_mut(), plan).await?;
    }
    Ok(())
}

async fn write(stream: &mut TcpStream, plan: Plan) -> Result<()> {
    stream.write_all(EVENTS.as_bytes()).await?;
    let mut due = Instant::now();
    for number in 0..plan.tokens {
        send(stream, &chunk(&json!({"content": Plan::token(number)}), None)).await?;
        due += Duration::from_micros(plan.pause_micros);
        if number == 0 {
            due += Duration::from_millis(plan.hold_millis);
        }
        tokio::time::sleep_until(due).await;
    }
    let mut usage = chunk(&json!({}), None);
    usage["choices"] = json!([]);
    usage["usage"] =
        json!({"prompt_tokens": 1, "completion_tokens": plan.tokens, "total_tokens": plan.tokens + 1});
    send(stream, &chunk(&json!({}), Some("stop"))).await?;
    send(stream, &usage).await?;
    stream.write_all(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n").await?;
    Ok(())
}

fn chunk(delta: &Value, reason: Option<&str>) -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "scripted",
        "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]
    })
}

async fn send(stream: &mut TcpStream, chunk: &Value) -> Result<()> {
    let event = format!("data: {chunk}\n\n");
    let framed = format!("{:x}\r\n{event}\r\n", event.len());
    Ok(stream.write_all(framed.as_bytes()).await?)
}
