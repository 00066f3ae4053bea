//! Parsing of replies: the result does not depend on chunk boundaries, on the style of the endpoint, or on streaming.

use toolhub_core::model::{ReplyDelta, StopReason, TokenUsage};
use toolhub_llm::WireFormat;
use toolhub_testkit::model::{Act, CallStyle, Ending, ModelServer, Pacing, ScriptedReply};

use super::support::{BOTH, ask, ask_streaming, client, render, request};

const DIGITS: &str = r#"{"city": "京都", "n": 1234567890123456789012345678901234567890}"#;

fn reply() -> ScriptedReply {
    ScriptedReply::text("Let me look: 看一下。")
        .thinking("They ask for the weather.")
        .call("weather", DIGITS)
        .call("weather", r#"{"city":"Osaka"}"#)
        .with_usage(120, 100, 42)
}

#[tokio::test]
async fn parses_equally_at_any_chunk_boundary() {
    for api in BOTH {
        let unsplit = {
            let server = ModelServer::start([reply().act()]);
            render(&ask(&client(&server, api), &request()).await.unwrap())
        };
        assert!(
            unsplit.contains(DIGITS) && unsplit.contains("看一下。") && unsplit.contains("Osaka"),
            "{unsplit}"
        );
        let expected = TokenUsage { input: 120, cached: 100, output: 42 };
        assert!(unsplit.contains(&format!("{expected:?}")), "{unsplit}");

        // Split in two at every 25th byte, also past the end; then split after every byte.
        let acts = (0..4_000).step_by(25).map(|at| reply().paced(Pacing::SplitAt(at)).act());
        let acts: Vec<Act> = acts.chain([reply().paced(Pacing::EveryByte).act()]).collect();
        let count = acts.len();
        let server = ModelServer::start(acts);
        let client = client(&server, api);
        for at in 0..count {
            let response = render(&ask(&client, &request()).await.unwrap());
            assert_eq!(response, unsplit, "{api:?}, case {at}");
        }
    }
}

#[tokio::test]
async fn streams_text_thoughts_and_calls() {
    for api in BOTH {
        let server = ModelServer::start([reply().act()]);
        let (response, deltas) = ask_streaming(&client(&server, api), &request()).await;
        let joined =
            |pick: fn(&ReplyDelta) -> Option<&str>| deltas.iter().filter_map(pick).collect::<String>();
        let text = joined(|delta| match delta {
            ReplyDelta::Text(text) => Some(text),
            _ => None,
        });
        let thought = joined(|delta| match delta {
            ReplyDelta::Thought(text) => Some(text),
            _ => None,
        });
        let response = response.unwrap();
        assert_eq!((text.as_str(), thought.as_str()), (response.text.as_str(), "They ask for the weather."));
        assert_eq!(response.text, "Let me look: 看一下。");
        let started_calls =
            deltas.iter().filter(|delta| **delta == ReplyDelta::ToolCallStarted("weather".into())).count();
        assert_eq!(
            (started_calls, response.calls.len(), response.stop),
            (2, 2, StopReason::Calls),
            "{api:?}"
        );
        let ids: Vec<&str> = response.calls.iter().map(|call| call.id.as_str()).collect();
        assert_eq!(ids, ["call_1", "call_2"]);
    }
}

#[tokio::test]
async fn parses_calls_in_every_endpoint_style() {
    let plain = || {
        ScriptedReply::default().call("weather", r#"{"city":"Kyoto"}"#).call("weather", r#"{"city":"Osaka"}"#)
    };
    let styles = [
        CallStyle::Streamed,
        CallStyle::Whole,
        CallStyle::WholeObject,
        CallStyle::SameIndex,
        CallStyle::Repeated,
    ];
    for style in styles {
        let server = ModelServer::start([plain().with_style(style).act()]);
        let (response, deltas) = ask_streaming(&client(&server, WireFormat::OpenAi), &request()).await;
        let expect = r#"Calls  | weather({"city":"Kyoto"}) weather({"city":"Osaka"}) |  | None"#;
        let response = response.unwrap();
        assert_eq!(render(&response), expect, "{style:?}");
        assert_eq!(deltas.len(), 2, "{style:?}: {deltas:?}");
        assert_ne!(response.calls[0].id, response.calls[1].id, "{style:?}");
    }
}

#[tokio::test]
async fn accepts_single_document_instead_of_stream() {
    for api in BOTH {
        let streamed = ModelServer::start([reply().act()]);
        let unsplit = ModelServer::start([reply().unstreamed().act()]);
        let (streamed, _) = ask_streaming(&client(&streamed, api), &request()).await;
        let (unsplit, deltas) = ask_streaming(&client(&unsplit, api), &request()).await;
        assert_eq!(render(&unsplit.unwrap()), render(&streamed.unwrap()), "{api:?}");
        assert!(deltas.iter().any(|delta| matches!(delta, ReplyDelta::Text(_))), "{deltas:?}");
    }
    // A single document is also accepted with the content type of an event stream.
    let body = r#"{"choices": [{"message": {"content": "hello"}, "finish_reason": "length"}]}"#;
    let server = ModelServer::start([Act::events(body)]);
    assert_eq!(
        render(&ask(&client(&server, WireFormat::OpenAi), &request()).await.unwrap()),
        "Length hello |  |  | None"
    );
}

#[tokio::test]
async fn reports_arguments_that_are_not_json() {
    for api in BOTH {
        let broken = ScriptedReply::default().call("weather", r#"{"city": "Ky"#).call("weather", "[1]");
        let server = ModelServer::start([broken.act()]);
        let response = ask(&client(&server, api), &request()).await.unwrap();
        assert!(response.calls.is_empty());
        let messages: Vec<String> = response.unreadable.iter().map(ToString::to_string).collect();
        assert!(messages[0].contains("`weather`") && messages[0].contains("EOF"), "{messages:?}");
        assert!(messages[1].contains("no object"), "{messages:?}");
    }
}

#[tokio::test]
async fn maps_invalid_wire_names_back_to_tool_names() {
    for api in BOTH {
        let recording_server = ModelServer::start([ScriptedReply::text("x").act()]);
        ask(&client(&recording_server, api), &request()).await.unwrap();
        let body = &recording_server.bodies()[0];
        let name = match api {
            WireFormat::OpenAi => body["tools"][1]["function"]["name"].clone(),
            WireFormat::Anthropic => body["tools"][1]["name"].clone(),
        };
        let wire = name.as_str().unwrap();
        assert!(wire.is_ascii() && !wire.contains(' '), "{wire}");
        let server = ModelServer::start([ScriptedReply::default().call(wire, "").act()]);
        let response = ask(&client(&server, api), &request()).await.unwrap();
        assert_eq!(
            render(&response),
            "Calls  | 读表 / read({}) |  | ".to_owned() + none_or_zero(api),
            "{api:?}"
        );
    }
}

fn none_or_zero(api: WireFormat) -> &'static str {
    match api {
        WireFormat::OpenAi => "None",
        WireFormat::Anthropic => "Some(TokenUsage { input: 0, cached: 0, output: 0 })",
    }
}

#[tokio::test]
async fn maps_stop_reasons() {
    let cases =
        [("stop", StopReason::End), ("length", StopReason::Length), ("content_filter", StopReason::Filtered)];
    for api in BOTH {
        for (word, stop) in cases {
            let reply = ScriptedReply { stop: word.to_owned(), ..ScriptedReply::text("x") };
            let server = ModelServer::start([reply.act()]);
            assert_eq!(ask(&client(&server, api), &request()).await.unwrap().stop, stop, "{api:?} {word}");
        }
    }
}

#[tokio::test]
async fn accepts_disconnect_after_finish_reason() {
    // The connection closes after the event with `finish_reason`.
    let events = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\n";
    let ending = Ending::CutAfter(events.len());
    let server =
        ModelServer::start([Act::Raw { kind: "text/event-stream", body: events.to_owned(), ending }]);
    assert_eq!(ask(&client(&server, WireFormat::OpenAi), &request()).await.unwrap().text, "hi");
}
