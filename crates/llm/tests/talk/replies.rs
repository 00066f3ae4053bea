//! Parsing of replies: the result does not depend on chunk boundaries, on the style of the endpoint, or on streaming.

use toolhub_core::model::{ReplyDelta, StopReason, Usage};
use toolhub_llm::Api;
use toolhub_testkit::model::{Act, CallStyle, Ending, ModelServer, Pacing, ScriptedReply};

use super::support::{BOTH, ask, ask_streaming, client, request, shown};

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
        let whole = {
            let server = ModelServer::start([reply().act()]);
            shown(&ask(&client(&server, api), &request()).await.unwrap())
        };
        assert!(whole.contains(DIGITS) && whole.contains("看一下。") && whole.contains("Osaka"), "{whole}");
        let expected = Usage { input: 120, cached: 100, output: 42 };
        assert!(whole.contains(&format!("{expected:?}")), "{whole}");

        // Split in two at every 25th byte, also past the end; then split after every byte.
        let acts = (0..4_000).step_by(25).map(|at| reply().paced(Pacing::SplitAt(at)).act());
        let acts: Vec<Act> = acts.chain([reply().paced(Pacing::EveryByte).act()]).collect();
        let count = acts.len();
        let server = ModelServer::start(acts);
        let client = client(&server, api);
        for at in 0..count {
            let said = shown(&ask(&client, &request()).await.unwrap());
            assert_eq!(said, whole, "{api:?}, case {at}");
        }
    }
}

#[tokio::test]
async fn streams_text_thoughts_and_calls() {
    for api in BOTH {
        let server = ModelServer::start([reply().act()]);
        let (said, heard) = ask_streaming(&client(&server, api), &request()).await;
        let joined =
            |pick: fn(&ReplyDelta) -> Option<&str>| heard.iter().filter_map(pick).collect::<String>();
        let text = joined(|spoken| match spoken {
            ReplyDelta::Text(text) => Some(text),
            _ => None,
        });
        let thought = joined(|spoken| match spoken {
            ReplyDelta::Thought(text) => Some(text),
            _ => None,
        });
        let said = said.unwrap();
        assert_eq!((text.as_str(), thought.as_str()), (said.text.as_str(), "They ask for the weather."));
        assert_eq!(said.text, "Let me look: 看一下。");
        let begun =
            heard.iter().filter(|spoken| **spoken == ReplyDelta::ToolCallStarted("weather".into())).count();
        assert_eq!((begun, said.calls.len(), said.stop), (2, 2, StopReason::Calls), "{api:?}");
        let ids: Vec<&str> = said.calls.iter().map(|call| call.id.as_str()).collect();
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
        let (said, heard) = ask_streaming(&client(&server, Api::OpenAi), &request()).await;
        let expect = r#"Calls  | weather({"city":"Kyoto"}) weather({"city":"Osaka"}) |  | None"#;
        let said = said.unwrap();
        assert_eq!(shown(&said), expect, "{style:?}");
        assert_eq!(heard.len(), 2, "{style:?}: {heard:?}");
        assert_ne!(said.calls[0].id, said.calls[1].id, "{style:?}");
    }
}

#[tokio::test]
async fn accepts_single_document_instead_of_stream() {
    for api in BOTH {
        let streamed = ModelServer::start([reply().act()]);
        let whole = ModelServer::start([reply().unstreamed().act()]);
        let (streamed, _) = ask_streaming(&client(&streamed, api), &request()).await;
        let (whole, heard) = ask_streaming(&client(&whole, api), &request()).await;
        assert_eq!(shown(&whole.unwrap()), shown(&streamed.unwrap()), "{api:?}");
        assert!(heard.iter().any(|spoken| matches!(spoken, ReplyDelta::Text(_))), "{heard:?}");
    }
    // A single document is also accepted with the content type of an event stream.
    let body = r#"{"choices": [{"message": {"content": "hello"}, "finish_reason": "length"}]}"#;
    let server = ModelServer::start([Act::events(body)]);
    assert_eq!(
        shown(&ask(&client(&server, Api::OpenAi), &request()).await.unwrap()),
        "Length hello |  |  | None"
    );
}

#[tokio::test]
async fn reports_arguments_that_are_not_json() {
    for api in BOTH {
        let broken = ScriptedReply::default().call("weather", r#"{"city": "Ky"#).call("weather", "[1]");
        let server = ModelServer::start([broken.act()]);
        let said = ask(&client(&server, api), &request()).await.unwrap();
        assert!(said.calls.is_empty());
        let told: Vec<String> = said.unreadable.iter().map(ToString::to_string).collect();
        assert!(told[0].contains("`weather`") && told[0].contains("EOF"), "{told:?}");
        assert!(told[1].contains("no object"), "{told:?}");
    }
}

#[tokio::test]
async fn maps_invalid_wire_names_back_to_tool_names() {
    for api in BOTH {
        let asked = ModelServer::start([ScriptedReply::text("x").act()]);
        ask(&client(&asked, api), &request()).await.unwrap();
        let body = &asked.bodies()[0];
        let name = match api {
            Api::OpenAi => body["tools"][1]["function"]["name"].clone(),
            Api::Anthropic => body["tools"][1]["name"].clone(),
        };
        let wire = name.as_str().unwrap();
        assert!(wire.is_ascii() && !wire.contains(' '), "{wire}");
        let server = ModelServer::start([ScriptedReply::default().call(wire, "").act()]);
        let said = ask(&client(&server, api), &request()).await.unwrap();
        assert_eq!(shown(&said), "Calls  | 读表 / read({}) |  | ".to_owned() + none_or_zero(api), "{api:?}");
    }
}

fn none_or_zero(api: Api) -> &'static str {
    match api {
        Api::OpenAi => "None",
        Api::Anthropic => "Some(Usage { input: 0, cached: 0, output: 0 })",
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
    assert_eq!(ask(&client(&server, Api::OpenAi), &request()).await.unwrap().text, "hi");
}
