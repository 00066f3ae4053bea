//! Parsing of replies: the result does not depend on chunk boundaries, on the style of the endpoint, or on streaming.

use toolhub_core::model::{ReplyDelta, StopReason, Usage};
use toolhub_llm::Api;
use toolhub_testkit::model::{Act, CallStyle, Ending, ModelServer, Pacing, ScriptedReply};

use super::support::{BOTH, ask, client, overhear, request, shown};

const DIGITS: &str = r#"{"city": "京都", "n": 1234567890123456789012345678901234567890}"#;

fn reply() -> ScriptedReply {
    ScriptedReply::text("Let me look: 看一下。")
        .thinking("They ask for the weather.")
        .call("weather", DIGITS)
        .call("weather", r#"{"city":"Osaka"}"#)
        .costing(120, 100, 42)
}

#[tokio::test]
async fn split_at_every_byte_it_says_the_same() {
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
async fn everything_is_heard_while_it_is_said() {
    for api in BOTH {
        let server = ModelServer::start([reply().act()]);
        let (said, heard) = overhear(&client(&server, api), &request()).await;
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
async fn calls_as_every_kind_of_endpoint_writes_them() {
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
        let server = ModelServer::start([plain().styled(style).act()]);
        let (said, heard) = overhear(&client(&server, Api::OpenAi), &request()).await;
        let expect = r#"Calls  | weather({"city":"Kyoto"}) weather({"city":"Osaka"}) |  | None"#;
        let said = said.unwrap();
        assert_eq!(shown(&said), expect, "{style:?}");
        assert_eq!(heard.len(), 2, "{style:?}: {heard:?}");
        assert_ne!(said.calls[0].id, said.calls[1].id, "{style:?}");
    }
}

#[tokio::test]
async fn one_document_will_do_for_a_stream() {
    for api in BOTH {
        let streamed = ModelServer::start([reply().act()]);
        let whole = ModelServer::start([reply().in_one_piece().act()]);
        let (streamed, _) = overhear(&client(&streamed, api), &request()).await;
        let (whole, heard) = overhear(&client(&whole, api), &request()).await;
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
async fn arguments_that_are_no_json_are_told() {
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
async fn names_that_no_endpoint_takes_come_back_as_they_were() {
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
async fn why_it_stopped() {
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
async fn a_stream_that_breaks_after_its_end_is_whole() {
    // The connection closes after the event with `finish_reason`.
    let events = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\n";
    let ending = Ending::CutAfter(events.len());
    let server =
        ModelServer::start([Act::Raw { kind: "text/event-stream", body: events.to_owned(), ending }]);
    assert_eq!(ask(&client(&server, Api::OpenAi), &request()).await.unwrap().text, "hi");
}
