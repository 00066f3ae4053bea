//! Requests that try to use up the processor, the memory or the store of the hub.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpSocket;
use toolhub_testkit::model::{Act, ModelServer, ScriptedReply};

use crate::attacks::{MODEL, respond, send};
use crate::served_hub::ServedHub;

/// The time that a request of the maximum size may take in a debug build on a busy machine.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);

fn hub_with(settings: &str, model: ModelServer) -> ServedHub {
    let settings = format!("{settings}\n[llm]\nurl = \"{}/v1\"\nmodel = \"scripted\"\n", model.url);
    ServedHub::start(&settings, Some(model))
}

fn hub(settings: &str) -> ServedHub {
    hub_with(settings, ModelServer::start([ScriptedReply::text("Noted.").act()]))
}

async fn stored(hub: &ServedHub, body: Value) -> String {
    let (status, response) = respond(hub, &hub.key, body).await;
    assert_eq!(status, 200, "{response}");
    response["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn long_chains_are_refused_and_not_followed_for_ever() {
    let hub = hub("");
    let mut last = stored(&hub, json!({"input": "0"})).await;
    for number in 1..200 {
        last = stored(&hub, json!({"input": number.to_string(), "previous_response_id": last})).await;
    }
    // All 200 earlier responses are read, and the model has their messages.
    let end = stored(&hub, json!({"input": "200", "previous_response_id": last})).await;
    let messages = hub.model_requests().last().unwrap()["messages"].as_array().unwrap().len();
    assert!(messages > 400, "{messages}");
    let since = Instant::now();
    let (status, refused) =
        respond(&hub, &hub.key, json!({"input": "201", "previous_response_id": end})).await;
    assert_eq!(
        (status, refused["error"]["param"].as_str()),
        (400, Some("previous_response_id")),
        "{refused}"
    );
    assert!(since.elapsed() < REQUEST_TIMEOUT);
}

/// The work for a request grows with its size, and not with the square of it.
#[tokio::test]
async fn requests_of_many_items_take_linear_time() {
    const COUNT: usize = 20_000;
    let hub = hub("");
    let first = stored(&hub, json!({"input": "a"})).await;
    let (_, list) = send(&hub, "GET", &format!("responses/{first}/input_items"), &hub.key, None).await;
    let item = list["data"][0]["id"].clone();
    let message = |_| json!({"role": "user", "content": "x"});
    let reference = |_| json!({"type": "item_reference", "id": item});
    let call = |number| json!({"type": "function_call", "call_id": format!("c{number}"), "name": "f", "arguments": "{}"});
    let output =
        |number| json!({"type": "function_call_output", "call_id": format!("c{number}"), "output": "x"});
    let references: Vec<Value> = (0..COUNT).map(message).chain((0..COUNT).map(reference)).collect();
    let calls: Vec<Value> =
        [message(0)].into_iter().chain((0..COUNT).map(call)).chain((0..COUNT).map(output)).collect();
    for (name, input) in [("references", references), ("calls", calls)] {
        let since = Instant::now();
        // The model is not reached by a request that is refused at the end: what is measured is the hub.
        let body =
            json!({"model": MODEL, "input": input, "tools": [{"type": "mcp", "server_label": "none"}]});
        let (status, refused) = send(&hub, "POST", "responses", &hub.key, Some(body)).await;
        assert_eq!(
            (status, refused["error"]["param"].as_str()),
            (400, Some("tools.server_label")),
            "{refused}"
        );
        assert!(since.elapsed() < REQUEST_TIMEOUT, "{name}: {:?}", since.elapsed());
    }
    // Many servers: each would list its tools in the response.
    let servers = vec![json!({"type": "mcp", "server_label": "sheets"}); 50_000];
    let since = Instant::now();
    let (status, refused) = respond(&hub, &hub.key, json!({"input": "x", "tools": servers})).await;
    assert!(status == 400 && since.elapsed() < REQUEST_TIMEOUT, "{refused}");
}

/// Background responses of one principal do not keep another one waiting.
#[tokio::test]
async fn a_flood_of_background_responses_leaves_room_for_others() {
    let hub = hub_with(
        "[serve]\nmax_concurrent = 20\n",
        ModelServer::by_request(|body| match body.to_string().contains("for ever") {
            true => Act::Hang,
            false => ScriptedReply::text("Noted.").act(),
        }),
    );
    let flood = (0..200).map(|_| respond(&hub, &hub.key, json!({"input": "for ever", "background": true})));
    let answers = join_all(flood).await;
    let accepted = answers.iter().filter(|(status, _)| *status == 200).count();
    assert!(answers.iter().all(|(status, _)| [200, 429].contains(status)) && accepted <= 20, "{accepted}");
    let since = Instant::now();
    let (status, other) = respond(&hub, &hub.other_key, json!({"input": "hi"})).await;
    assert!(status == 200 && since.elapsed() < REQUEST_TIMEOUT, "{other}");
}

/// The number of background responses of one principal is limited; further ones are refused with an error.
#[tokio::test]
async fn background_responses_of_one_principal_are_limited() {
    const LIMIT: usize = 64;
    let hub = hub_with("", ModelServer::by_request(|_| Act::Hang));
    let flood = (0..LIMIT + 20).map(|_| respond(&hub, &hub.key, json!({"input": "x", "background": true})));
    let answers = join_all(flood).await;
    assert_eq!(answers.iter().filter(|(status, _)| *status == 200).count(), LIMIT);
    for (_, refused) in answers.iter().filter(|(status, _)| *status != 200) {
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains("one caller may run 64 background responses"), "{refused}");
        assert_eq!(refused["error"]["code"], "rate_limit_exceeded", "{refused}");
    }
    let (status, other) = respond(&hub, &hub.other_key, json!({"input": "x", "background": true})).await;
    assert_eq!(status, 200, "{other}");
    // One that ends makes room.
    let (_, running) = answers.iter().find(|(status, _)| *status == 200).unwrap();
    let path = format!("responses/{}/cancel", running["id"].as_str().unwrap());
    assert_eq!(send(&hub, "POST", &path, &hub.key, None).await.1["status"], "cancelled");
    let (status, next) = respond(&hub, &hub.key, json!({"input": "x", "background": true})).await;
    assert_eq!(status, 200, "{next}");
}

/// A model that does not stop writing: the response ends, has what was written before, and says why.
#[tokio::test]
async fn the_output_of_a_turn_is_limited() {
    const LIMIT: usize = 16 << 20;
    let piece = json!({"choices": [{"index": 0, "delta": {"content": "x".repeat(64 << 10)}}]});
    let body = format!("data: {piece}\n\n").repeat(400);
    let hub = hub_with("", ModelServer::by_request(move |_| Act::events(body.clone())));
    let (status, response) = respond(&hub, &hub.key, json!({"input": "x", "store": false})).await;
    assert_eq!((status, response["status"].as_str()), (200, Some("incomplete")));
    let why = response["incomplete_details"]["message"].as_str().unwrap();
    assert!(why.contains("16777216 bytes"), "{why}");
    let text = response["output"][0]["content"][0]["text"].as_str().unwrap().len();
    assert!(text <= LIMIT && text > LIMIT - (128 << 10), "{text}");
    let chat = json!({"model": MODEL, "messages": [{"role": "user", "content": "x"}]});
    let (_, chat) = send(&hub, "POST", "chat/completions", &hub.key, Some(chat)).await;
    assert_eq!(chat["choices"][0]["finish_reason"], "length");
}

/// What a client does not read waits in the model, and not in the memory of the hub.
#[tokio::test]
async fn slow_readers_do_not_fill_the_memory() {
    const STREAMS: usize = 20;
    const PIECE: usize = 64 << 10;
    const PIECES: usize = 200;
    /// The kernel keeps as much as it likes for a socket without a set size: megabytes on some machines.
    const RECEIVE_BUFFER: u32 = 64 << 10;
    let piece = json!({"choices": [{"index": 0, "delta": {"content": "x".repeat(PIECE)}}]});
    let mut body = format!("data: {piece}\n\n").repeat(PIECES);
    body.push_str(
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
    );
    let hub = hub_with("", ModelServer::by_request(move |_| Act::events(body.clone())));
    stored(&hub, json!({"input": "warm up", "store": false})).await;
    let before = hub.memory();
    let mut streams = Vec::new();
    for number in 0..STREAMS {
        let (path, body) = match number % 2 {
            0 => ("responses", json!({"model": MODEL, "input": "x", "stream": true, "store": false})),
            _ => (
                "chat/completions",
                json!({"model": MODEL, "messages": [{"role": "user", "content": "x"}], "stream": true}),
            ),
        };
        let body = body.to_string();
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(RECEIVE_BUFFER).unwrap();
        let mut stream = socket.connect(hub.address().parse().unwrap()).await.unwrap();
        let request = format!(
            "POST /v1/{path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncontent-length: {}\r\n\r\n{body}",
            hub.address(),
            hub.key,
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        streams.push(stream);
    }
    let mut most = 0;
    for _ in 0..30 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        most = most.max(hub.memory());
    }
    let whole = (STREAMS * PIECE * PIECES) as u64;
    let grown = most.saturating_sub(before);
    assert!(grown < whole / 2, "{} MB of {} MB", grown >> 20, whole >> 20);
    // Others are served meanwhile.
    let (status, _) = send(&hub, "GET", "models", &hub.other_key, None).await;
    assert_eq!(status, 200);
}

/// The store is purged when it is full, and not only from time to time.
#[tokio::test]
async fn the_store_does_not_grow_without_bound() {
    const INPUT: usize = 100_000;
    let hub = hub("[openai]\nmax_size = \"1MB\"\n");
    // The oldest response, of another principal.
    let (_, others) = respond(&hub, &hub.other_key, json!({"input": "y".repeat(INPUT)})).await;
    let others = format!("responses/{}", others["id"].as_str().unwrap());
    let mut ids = Vec::new();
    for number in 0..40 {
        ids.push(stored(&hub, json!({"input": format!("{number} {}", "x".repeat(INPUT))})).await);
    }
    let since = Instant::now();
    loop {
        let mut found = Vec::new();
        for id in &ids {
            found.push(send(&hub, "GET", &format!("responses/{id}"), &hub.key, None).await.0 == 200);
        }
        let count = found.iter().filter(|found| **found).count();
        assert!(found[ids.len() - 1], "the newest response was deleted");
        // The maximum, and the part by which it may be exceeded between two purges.
        if count <= 12 {
            assert!(count >= 5 && !found[0], "{found:?}");
            let (status, _) = send(&hub, "GET", &others, &hub.other_key, None).await;
            assert_eq!(status, 200, "a flood displaces the responses of others");
            return;
        }
        assert!(since.elapsed() < REQUEST_TIMEOUT, "{count} responses of {INPUT} bytes are stored");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
