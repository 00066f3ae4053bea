//! Models that fail, stop or say nothing: each stream ends with the error of its API, and a call that may have changed something
//! is not made again by a client that repeats its request.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt as _};
use serde_json::{Value, json};
use toolhub_testkit::model::{Act, Ending, ModelServer, Pacing, ScriptedReply};

use crate::attacks::MODEL;
use crate::client_library::ClientLibrary;
use crate::raw_streams::{streamed, unstreamed};
use crate::served_hub::ServedHub;
use crate::sse_frames::Frame;
use crate::{chat_stream_rules, stream_rules};

/// The comment that keeps a connection open is sent after 15 seconds.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(25);
const LONG_TEXT: &str =
    "The table has three rows, and the third one says: Grüße, 世界! 👋 That is all there is to say about it.";
/// Chinese, an emoji of several code points, combining characters, and what ends lines in some languages.
const SPLIT_TEXT: &str = "e\u{301}n 数据 👩🏽‍🔬👋 ne\u{308}\u{323}\u{2028}x\r\ny";

fn hub(reply: impl Fn(&str, &Value) -> Act + Send + Sync + 'static) -> ServedHub {
    let model = ModelServer::by_request(move |body| {
        let messages = body["messages"].as_array().unwrap();
        let last = messages.last().unwrap();
        reply(last["content"].as_str().unwrap_or_default(), last)
    });
    let settings = format!(
        "[openai]\napproved_tools = [\"sheets__write_*\"]\n[llm]\nurl = \"{}/v1\"\nmodel = \"scripted\"\n",
        model.url
    );
    ServedHub::start(&settings, Some(model))
}

fn response(text: &str) -> Value {
    json!({"model": MODEL, "input": text})
}

fn chat(text: &str) -> Value {
    json!({"model": MODEL, "messages": [{"role": "user", "content": text}]})
}

/// The status and the body of a request that may fail.
async fn sent(hub: &ServedHub, path: &str, body: &Value) -> (u16, Value) {
    let request = hub.client.post(format!("{}/{path}", hub.base_url())).bearer_auth(&hub.key);
    let response = request.body(body.to_string()).send().await.unwrap();
    let status = response.status().as_u16();
    (status, serde_json::from_str(&response.text().await.unwrap()).unwrap())
}

/// A chat stream that failed: deltas, then one error, and neither a `finish_reason` nor the end of a complete stream.
fn failed_chat(frames: &[Frame]) -> String {
    let (last, before) = frames.split_last().unwrap();
    let error = last.json().unwrap();
    assert!(error["error"]["message"].as_str().is_some_and(|message| !message.is_empty()), "{error}");
    assert_eq!(error["error"]["code"], "model_error", "{error}");
    let delta = |frame: &Frame| {
        let chunk = frame.json().unwrap();
        assert!(chunk["choices"][0]["finish_reason"].is_null(), "{chunk}");
        chunk["choices"][0]["delta"]["content"].as_str().unwrap_or_default().to_owned()
    };
    before.iter().map(delta).collect()
}

#[tokio::test]
async fn a_model_that_fails_ends_every_form_of_the_answer() {
    let hub = hub(|text, _| {
        let long = ScriptedReply::text(LONG_TEXT);
        match text {
            "cut" => long.ending(Ending::CutAfter(1_500)).act(),
            "length" => ScriptedReply { stop: "length".to_owned(), ..long }.act(),
            "end" => long.ending(Ending::EndAfter(1_500)).act(),
            "garbage" => {
                Act::events("data: {\"choices\": [{\"delta\": {\"content\": \"Row\"}}]}\n\ndata: {broken\n\n")
            }
            "error event" => Act::events("data: {\"error\": {\"message\": \"out of memory\"}}\n\n"),
            "page" => Act::Raw { kind: "text/html", body: "<html>".to_owned(), ending: Ending::Whole },
            "nothing" => Act::events(""),
            "refused" => Act::refuse(401, "the model wants a key"),
            other => Act::refuse(400, other),
        }
    });
    // A text that ended at the limit of the model is not a failure, and not complete.
    let (text, frames) = streamed(&hub, "responses", &response("length")).await;
    let checked = stream_rules::check(&frames).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let (whole, message) = (&checked.response, &checked.response["output"][0]);
    assert_eq!(
        (&whole["status"], &message["status"]),
        (&json!("incomplete"), &json!("incomplete")),
        "{text}"
    );
    assert_eq!(whole["incomplete_details"]["reason"], "max_output_tokens", "{text}");
    for fault in ["cut", "end", "garbage", "error event", "page", "nothing", "refused"] {
        let (text, frames) = streamed(&hub, "responses", &response(fault)).await;
        let checked = stream_rules::check(&frames).unwrap_or_else(|error| panic!("{fault}: {error}\n{text}"));
        assert_eq!(checked.response["status"], "failed", "{fault}: {text}");
        assert_eq!(checked.response["error"]["code"], "server_error", "{fault}");
        let why = checked.response["error"]["message"].as_str().unwrap();
        assert!(!why.is_empty(), "{fault}");
        if fault == "cut" {
            let written = checked.deltas.concat();
            assert!(!written.is_empty() && LONG_TEXT.starts_with(&written), "{written}");
            assert_eq!(checked.response["output"][0]["status"], "incomplete", "{text}");
        }
        let (_, frames) = streamed(&hub, "chat/completions", &chat(fault)).await;
        let written = failed_chat(&frames);
        assert!(LONG_TEXT.starts_with(&written) || written == "Row", "{fault}: {written}");

        let (status, body) = sent(&hub, "chat/completions", &chat(fault)).await;
        assert_eq!((status, body["error"]["code"].as_str()), (502, Some("model_error")), "{fault}: {body}");
        let (status, body) = sent(&hub, "responses", &response(fault)).await;
        match status {
            // What was written before the failure is kept.
            200 => {
                assert!(
                    body["status"] == "failed" && body["error"]["message"].is_string(),
                    "{fault}: {body}"
                );
            }
            _ => assert_eq!(
                (status, body["error"]["code"].as_str()),
                (502, Some("model_error")),
                "{fault}: {body}"
            ),
        }
    }
}

#[tokio::test]
async fn a_silent_model_does_not_let_the_connection_look_dead() {
    let hub = hub(|_, _| Act::Hang);
    let open = |path: &'static str, mut body: Value| {
        let hub = &hub;
        async move {
            body["stream"] = true.into();
            let request = hub.client.post(format!("{}/{path}", hub.base_url())).bearer_auth(&hub.key);
            let response = request.body(body.to_string()).send().await.unwrap();
            let (mut stream, mut text, since) = (response.bytes_stream(), String::new(), Instant::now());
            while let Some(piece) = stream.next().await {
                text.push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
                if text.contains("\n: ") {
                    return (since.elapsed(), text);
                }
            }
            panic!("{path} ended: {text}");
        }
    };
    let both = join_all([open("responses", response("hi")), open("chat/completions", chat("hi"))]);
    for (elapsed, text) in tokio::time::timeout(HEARTBEAT_TIMEOUT, both).await.expect("a comment") {
        assert!(elapsed > Duration::from_secs(10), "{elapsed:?}");
        // The first events come at once.
        assert!(text.starts_with("event: response.created\n") || text.starts_with("data: {"), "{text}");
    }
}

/// Wherever the network splits the stream of the model: between two bytes of a character, or of a line.
#[tokio::test]
async fn texts_are_equal_however_the_model_is_split() {
    let hub = hub(|text, _| {
        let reply = ScriptedReply::text(SPLIT_TEXT);
        let pacing = match text.strip_prefix("split ") {
            Some(at) => Pacing::SplitAt(at.parse().unwrap()),
            None => Pacing::EveryByte,
        };
        reply.paced(pacing).act()
    });
    let hub = &hub;
    // The whole reply has about 2,000 bytes.
    let splits = (0..2_200).step_by(3).map(|at| format!("split {at}"));
    let requests: Vec<String> = splits.chain(["every byte".to_owned()]).collect();
    stream::iter(requests.into_iter().enumerate())
        .for_each_concurrent(6, |(number, request)| async move {
            if number % 2 == 0 {
                let (text, frames) = streamed(hub, "chat/completions", &chat(&request)).await;
                let checked =
                    chat_stream_rules::check(&frames, &[]).unwrap_or_else(|error| panic!("{error}: {text}"));
                assert_eq!(checked.deltas.concat(), SPLIT_TEXT, "{request}");
            } else {
                let (text, frames) = streamed(hub, "responses", &response(&request)).await;
                let checked = stream_rules::check(&frames).unwrap_or_else(|error| panic!("{error}: {text}"));
                assert_eq!(checked.deltas.concat(), SPLIT_TEXT, "{request}");
            }
        })
        .await;
    let whole = unstreamed(hub, "chat/completions", &chat("every byte")).await;
    assert_eq!(whole["choices"][0]["message"]["content"], SPLIT_TEXT);
}

/// Writes a row, and fails then.
fn write_and_fail(text: &str, last: &Value) -> Act {
    match (last["role"].as_str(), text) {
        (Some("tool"), _) => Act::refuse(400, "the model failed after the call"),
        (_, "Hold.") => ScriptedReply::text("").call("hold_write", r#"{"row":9}"#).act(),
        _ => ScriptedReply::text("").call("write_sheet", r#"{"row":7}"#).act(),
    }
}

#[tokio::test]
async fn a_repetition_after_a_change_is_refused() {
    let hub = hub(write_and_fail);
    let body = chat("Write.");
    let request = |retry: Option<&'static str>, key: &str| {
        let request = hub.client.post(format!("{}/chat/completions", hub.base_url())).bearer_auth(key);
        let request = request.body(body.to_string());
        retry
            .into_iter()
            .fold(request, |request, count| request.header("x-stainless-retry-count", count))
            .send()
    };
    for (retry, code, called) in [
        (Some("0"), "failed_after_change", 1),
        (Some("1"), "repeated_after_change", 1),
        (Some("2"), "repeated_after_change", 1),
        // Someone has decided to try it again.
        (Some("0"), "failed_after_change", 2),
        (None, "failed_after_change", 3),
    ] {
        let response = request(retry, &hub.key).await.unwrap();
        let (status, should_retry) = (response.status(), response.headers()["x-should-retry"].clone());
        let text = response.text().await.unwrap();
        assert!(
            status == 424 && should_retry == "false" && text.contains(code),
            "{retry:?}: {status} {text}"
        );
        assert_eq!(hub.called().len(), called, "{retry:?}");
    }
    // The request of another principal is another request.
    assert!(
        request(Some("1"), &hub.other_key)
            .await
            .unwrap()
            .text()
            .await
            .unwrap()
            .contains("failed_after_change")
    );
}

/// The libraries repeat failed requests twice by themselves: after errors of the server, and after their own timeouts.
#[test]
fn client_libraries_do_not_repeat_changes() {
    for script in ["client_openai.py", "client_openai.mjs"] {
        let hub = hub(write_and_fail);
        for (api, written, held) in [("chat", 1, 1), ("responses", 2, 2)] {
            let observed = ClientLibrary { script, api }.run(&hub, &["repetitions"]);
            let found = &observed["repetitions"];
            let count = |tool: &str| hub.called().iter().filter(|called| *called == tool).count();
            assert_eq!(
                (count("write_sheet"), count("hold_write")),
                (written, held),
                "{script} {api}: {observed}"
            );
            assert_eq!(found["timeout"]["status"], 424, "{script} {api}: {observed}");
            // A response tells of its failure itself, with the call that was made.
            let failure = if api == "chat" { &found["failure"]["status"] } else { &found["failure"] };
            assert!(*failure == 424 || failure == "failed", "{script} {api}: {observed}");
        }
    }
}
