//! Error messages if a model endpoint fails, and the failures after which a request is retried.

use std::time::Duration;

use toolhub_core::model::{ModelError, ReplyDelta};
use toolhub_core::{Lang, Localize as _};
use toolhub_llm::{ApiKey, Endpoint, ModelClient, WireFormat};
use toolhub_testkit::model::{Act, Ending, ModelServer, ScriptedReply};

use super::support::{BOTH, KEY, ask, ask_streaming, client, request};

fn fine() -> Act {
    ScriptedReply::text("fine").act()
}

#[tokio::test]
async fn retries_transient_errors() {
    for api in BOTH {
        for first in
            [Act::refuse(500, "oops"), Act::refuse(503, "later"), Act::refuse_with_retry_after(429, "0.1")]
        {
            let server = ModelServer::start([first, fine()]);
            assert_eq!(ask(&client(&server, api), &request()).await.unwrap().text, "fine");
            assert_eq!(server.bodies().len(), 2);
        }
    }
}

#[tokio::test]
async fn retries_stream_that_breaks_before_first_token() {
    for api in BOTH {
        for ending in [Ending::CutAfter(9), Ending::EndAfter(0)] {
            let server = ModelServer::start([ScriptedReply::text("fine").ending(ending).act(), fine()]);
            assert_eq!(ask(&client(&server, api), &request()).await.unwrap().text, "fine", "{ending:?}");
            assert_eq!(server.bodies().len(), 2);
        }
    }
}

#[tokio::test]
async fn does_not_retry_after_first_token() {
    for api in BOTH {
        for ending in [Ending::CutAfter(800), Ending::EndAfter(800)] {
            let long = ScriptedReply::text(&"word ".repeat(40)).ending(ending);
            let server = ModelServer::start([long.act(), fine()]);
            let (reply, deltas) = ask_streaming(&client(&server, api), &request()).await;
            let error = reply.unwrap_err();
            assert!(matches!(error, ModelError::Truncated { .. }), "{api:?} {ending:?}: {error:?}");
            assert!(deltas.iter().any(|delta| matches!(delta, ReplyDelta::Text(_))));
            assert_eq!(server.bodies().len(), 1);
        }
    }
}

#[tokio::test]
async fn honours_short_retry_after_and_reports_long_one() {
    let server = ModelServer::start([Act::refuse_with_retry_after(429, "1"), fine()]);
    let started = std::time::Instant::now();
    ask(&client(&server, WireFormat::OpenAi), &request()).await.unwrap();
    assert!(started.elapsed() >= Duration::from_secs(1), "{:?}", started.elapsed());

    let server = ModelServer::start([Act::refuse_with_retry_after(429, "3600")]);
    let started = std::time::Instant::now();
    let error = ask(&client(&server, WireFormat::OpenAi), &request()).await.unwrap_err();
    assert!(started.elapsed() < Duration::from_secs(30));
    let ModelError::Busy { retry_after, .. } = &error else { panic!("{error:?}") };
    assert_eq!(*retry_after, Some(Duration::from_secs(3600)));
    assert!(error.localize(Lang::En).contains("3600 s") && error.localize(Lang::Zh).contains("3600 秒"));
    assert_eq!(server.bodies().len(), 1);
}

#[tokio::test]
async fn gives_up_after_three_attempts() {
    let server = ModelServer::start([Act::refuse(502, "bad gateway")]);
    let error = ask(&client(&server, WireFormat::OpenAi), &request()).await.unwrap_err();
    assert!(matches!(error, ModelError::Refused { status: 502, .. }), "{error:?}");
    assert_eq!(server.bodies().len(), 3);
}

#[tokio::test]
async fn reports_permanent_errors_without_retry() {
    type Kind = fn(&ModelError) -> bool;
    let cases: [(Act, Kind, &str); 5] = [
        (Act::refuse(401, "no such key"), |e| matches!(e, ModelError::Unauthorized { .. }), "no such key"),
        (Act::refuse(403, "not you"), |e| matches!(e, ModelError::Unauthorized { .. }), "not you"),
        (
            Act::refuse(404, "no such model"),
            |e| matches!(e, ModelError::Refused { status: 404, .. }),
            "no such model",
        ),
        (
            Act::Status { status: 400, headers: Vec::new(), body: "<b>nginx</b>".to_owned() },
            |e| matches!(e, ModelError::Refused { status: 400, .. }),
            "nginx",
        ),
        (
            Act::Status {
                status: 429,
                headers: Vec::new(),
                body: r#"{"error":{"message":"pay first","code":"insufficient_quota"}}"#.to_owned(),
            },
            |e| matches!(e, ModelError::Refused { status: 429, .. }),
            "pay first",
        ),
    ];
    for api in BOTH {
        for (act, kind, expected) in &cases {
            let server = ModelServer::start([act.clone(), fine()]);
            let error = ask(&client(&server, api), &request()).await.unwrap_err();
            assert!(kind(&error) && error.to_string().contains(expected), "{error:?}");
            assert_eq!(server.bodies().len(), 1, "{error:?}");
        }
    }
}

#[tokio::test]
async fn reports_invalid_response_body() {
    let raw =
        |kind: &'static str, body: &str| Act::Raw { kind, body: body.to_owned(), ending: Ending::Whole };
    let cases = [
        (raw("text/html", "<html>log in</html>"), "web page"),
        (raw("application/json", "{\"what\": 1}"), "no `c"),
        (raw("application/json", "nonsense"), "expected"),
        (raw("text/event-stream", "data: {\"choices\": 7}\n\n"), "invalid type"),
        (raw("text/event-stream", "data: nonsense\n\n"), "expected"),
    ];
    for (act, expected) in cases {
        let server = ModelServer::start([act]);
        let error = ask(&client(&server, WireFormat::OpenAi), &request()).await.unwrap_err();
        assert!(matches!(error, ModelError::Unreadable { .. }), "{error:?}");
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[tokio::test]
async fn reports_error_event_after_first_token() {
    let word = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n";
    let error = "data: {\"error\":{\"message\":\"out of memory\",\"code\":500}}\n\n";
    let server = ModelServer::start([Act::events(format!("{word}{error}")), fine()]);
    let model_error = ask(&client(&server, WireFormat::OpenAi), &request()).await.unwrap_err();
    assert!(model_error.to_string().contains("out of memory"), "{model_error}");
    assert_eq!(server.bodies().len(), 1);
    // An error before the first text of the stream is retried.
    let server = ModelServer::start([Act::events(error), fine()]);
    assert_eq!(ask(&client(&server, WireFormat::OpenAi), &request()).await.unwrap().text, "fine");

    let busy = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    let server = ModelServer::start([Act::events(busy), fine()]);
    assert_eq!(ask(&client(&server, WireFormat::Anthropic), &request()).await.unwrap().text, "fine");
    let start = "event: x\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"hi\"}}\n\n";
    let server = ModelServer::start([Act::events(format!("{start}{busy}")), fine()]);
    let model_error = ask(&client(&server, WireFormat::Anthropic), &request()).await.unwrap_err();
    assert!(matches!(model_error, ModelError::Busy { .. }), "{model_error:?}");
}

#[tokio::test]
async fn reports_unreachable_endpoint_without_secrets() {
    // A port without a listener.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut endpoint =
        Endpoint::new(WireFormat::OpenAi, &format!("http://u:hunter3@{address}"), "m").unwrap();
    endpoint.key = ApiKey::new(KEY);
    let error = ask(&ModelClient::new(endpoint), &request()).await.unwrap_err();
    assert!(
        matches!(&error, ModelError::Unreachable { cause, .. } if cause.contains("refused")),
        "{error:?}"
    );
    let rendered = format!("{error:?} {error} {}", error.localize(Lang::Zh));
    assert!(!rendered.contains("hunter"), "{rendered}");
}

#[tokio::test]
async fn never_prints_api_key() {
    for api in BOTH {
        for status in [400, 401, 404, 418] {
            let server = ModelServer::start([Act::refuse(status, &format!("your key {KEY} is odd"))]);
            let client = client(&server, api);
            let error = ask(&client, &request()).await.unwrap_err();
            let rendered = format!("{error:?} {error} {} {client:?}", error.localize(Lang::Zh));
            assert!(!rendered.contains("hunter") && rendered.contains("is odd"), "{rendered}");
        }
        let server = ModelServer::start([fine()]);
        ask(&client(&server, api), &request()).await.unwrap();
        let received = &server.received()[0];
        let header = match api {
            WireFormat::OpenAi => received.headers["authorization"].to_str().unwrap(),
            WireFormat::Anthropic => received.headers["x-api-key"].to_str().unwrap(),
        };
        assert!(header.ends_with(KEY) && !received.text.contains(KEY));
    }
}
