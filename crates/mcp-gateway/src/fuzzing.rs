//! Fuzz targets for the messages of clients, and for session and event ids.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytestring::ByteString;
use futures_util::Stream as _;
use serde_json::Value;
use toolhub_core::{RawJson, RawObject};
use toolhub_mcp_wire::fuzzing::{Members, repeated_key};
use toolhub_mcp_wire::headers::encode_header_value;
use toolhub_mcp_wire::{Era, jsonrpc};

use crate::client_handle::ClientInfo;
use crate::event_log::{StreamId, parse_event_id};
use crate::message::{
    ClientMessage, RequestParams, error_response, one_line, parse_message, serialize_notification,
    serialize_response,
};
use crate::modern::{check_supported, decode_header, version_of};
use crate::rpc_error::RpcError;
use crate::session::{NewSession, Session, Sessions};
use crate::{PrincipalHandle, random_token};

/// If the parser accepts a message, `serde_json` reads the same values; any response is one JSON object on one line.
pub fn gateway_messages(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let body = ByteString::from(text);
    header_values(text);
    let message = match parse_message(&body) {
        Ok(message) => message,
        Err((id, error)) => {
            assert!(id.as_ref().is_none_or(is_id), "{id:?} is no id");
            is_object(&error_response(id.as_ref(), &error));
            return;
        }
    };
    assert_eq!(repeated_key(text), None, "a key occurs twice in an object");
    let all = Members::of(text);
    assert!(all.is_some(), "this is no object");
    let Some(all) = all else { return };
    let member = |name: &str| {
        let mut named = all.iter().filter(|(other, _)| other == name).map(|(_, value)| value.as_str());
        let value = named.next();
        assert!(named.next().is_none(), "`{name}` occurs twice");
        value.filter(|value| *value != "null")
    };
    assert_eq!(member("jsonrpc"), Some("\"2.0\""));
    let is_method = |actual: &str| {
        assert_eq!(
            member("method").and_then(|method| serde_json::from_str::<String>(method).ok()).as_deref(),
            Some(actual)
        );
    };
    match message {
        ClientMessage::Request(request, params) => {
            assert_eq!(member("id"), Some(request.id.get()));
            assert!(
                request.id.get().starts_with(['"', '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'])
            );
            is_method(&request.method);
            same_params(member("params"), &params);
            answered(&request.id, &params);
        }
        ClientMessage::Notification { method, params } => {
            assert_eq!(member("id"), None);
            is_method(&method);
            assert_eq!(member("params"), params.as_ref().map(RawJson::get));
            is_object(&one_line(serialize_notification(&method, params.as_ref())));
            is_object(&one_line(jsonrpc::server_request(7, &method, params.as_ref())));
        }
        ClientMessage::Response { id, answer } => {
            assert_eq!(member("id").and_then(|actual| serde_json::from_str(actual).ok()), Some(id));
            assert!(member("method").is_none());
            match answer {
                Ok(result) => assert_eq!(
                    Some(result.get()),
                    all.iter().find(|(name, _)| name == "result").map(|(_, value)| value.as_str())
                ),
                Err(_) => assert!(member("error").is_some()),
            }
        }
    }
}

/// The parsed params have exactly the members of the text.
fn same_params(text: Option<&str>, params: &RequestParams) {
    let pairs = |object: &RawObject| -> Vec<(String, String)> {
        object.iter().map(|(name, value)| (name.to_owned(), value.get().to_owned())).collect()
    };
    let all = text.map(Members::of).unwrap_or_default().unwrap_or_default();
    let (meta, rest): (Vec<_>, Vec<_>) = all.into_iter().partition(|(name, _)| name == "_meta");
    assert_eq!(pairs(&params.members), rest);
    let meta = meta.first().and_then(|(_, meta)| Members::of(meta)).unwrap_or_default();
    assert_eq!(pairs(&params.meta), meta);
    let version = version_of(params);
    let actual = meta.iter().find(|(name, _)| name == super::client_handle::VERSION).map(|(_, value)| value);
    assert_eq!(
        version.as_deref(),
        actual.and_then(|actual| serde_json::from_str::<String>(actual).ok()).as_deref()
    );
    if let Err(error) = check_supported(&version.unwrap_or_default()) {
        is_object(&error_response(None, &error));
    }
}

/// For any id and result, a response is one object with both, on one line.
fn answered(id: &RawJson, params: &RequestParams) {
    let result = params.members.clone().into_raw();
    let text = one_line(serialize_response(id, &Ok(result.clone())));
    is_object(&text);
    let all = Members::of(&text).unwrap_or_default();
    let actual: Vec<(&str, Option<Value>)> =
        all.iter().map(|(name, value)| (name.as_str(), serde_json::from_str(value).ok())).collect();
    let same = |raw: &RawJson| serde_json::from_str::<Value>(raw.get()).ok();
    assert_eq!(actual[1..], [("id", same(id)), ("result", same(&result))]);
    let error = RpcError::new(-32000, result.get()).with_data(result);
    is_object(&one_line(serialize_response(id, &Err(error))));
}

fn is_id(id: &RawJson) -> bool {
    id.get().starts_with(|first: char| matches!(first, '"' | '-') || first.is_ascii_digit())
}

fn is_object(text: &str) {
    assert!(!text.contains(['\n', '\r']), "{text:?} is more than one line");
    assert!(Members::of(text).is_some(), "{text:?} is no object");
}

/// Any text survives encoding as a header value.
fn header_values(text: &str) {
    let encoded = encode_header_value(text);
    assert!(http::HeaderValue::from_str(&encoded).is_ok(), "{encoded:?}");
    assert_eq!(encoded.trim_matches([' ', '\t']), encoded);
    assert_eq!(decode_header(&encoded).as_deref(), Some(text));
    let _ = decode_header(text);
}

/// Ids identify exactly the objects that they were issued for.
///
/// The first line of the input is used as ids that a client sends, the other lines are events.
pub fn gateway_ids(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut lines = text.split('\n');
    let input = lines.next().unwrap_or_default();
    event_id(input);
    sessions(input);
    events(input, &lines.take(32).collect::<Vec<_>>());
}

/// Every id has exactly one spelling.
fn event_id(input: &str) {
    if let Some((stream, count)) = parse_event_id(input) {
        assert_eq!(format!("{stream}-{count}"), input);
    }
    let number = input.bytes().fold(7_u64, |number, byte| number.rotate_left(9) ^ u64::from(byte));
    for (stream, count) in [(0, number), (number, 0), (number, u64::MAX), (number >> 40, number >> 50)] {
        for epoch in [0, 1, number, u64::MAX] {
            let stream = StreamId { epoch, number: stream };
            assert_eq!(parse_event_id(&format!("{stream}-{count}")), Some((stream, count)));
        }
    }
}

fn session(id: &str, owner: &str) -> Arc<Session> {
    let info = ClientInfo {
        number: 1,
        era: Era::Legacy,
        capabilities: RawJson::empty_object(),
        server_requests: Arc::default(),
        level: Arc::default(),
    };
    Arc::new(Session::new(NewSession {
        id: id.to_owned(),
        stamp: None,
        epoch: 0,
        principal: PrincipalHandle::new(toolhub_core::Principal::of_key(owner)),
        version: "2025-11-25",
        info,
    }))
}

/// A session is found only by its own id and its own principal.
fn sessions(input: &str) {
    let (sessions, ids) =
        (Sessions::default(), [random_token(), random_token()].map(Option::unwrap_or_default));
    assert_ne!(ids[0], ids[1]);
    let owners = ["ann", "bob"];
    for (id, owner) in ids.iter().zip(owners) {
        assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
        sessions.insert(session(id, owner));
    }
    let cut = input.char_indices().map(|(at, _)| at).nth(input.len() / 2).unwrap_or_default();
    let near = [
        input.to_owned(),
        format!("{}{input}", ids[0]),
        format!("{input}{}", ids[0]),
        ids[0].to_uppercase() + &input[..cut],
        ids[0][..cut.min(32)].to_owned(),
    ];
    for owner in owners {
        let principal = PrincipalHandle::new(toolhub_core::Principal::of_key(owner));
        for id in near.iter().chain(&ids) {
            let found = sessions.get(id, &principal).map(|found| (found.id.clone(), found.principal.clone()));
            let own = ids.iter().zip(owners).any(|(one, whose)| one == id && whose == owner);
            assert_eq!(found, own.then(|| (id.clone(), principal.clone())), "{id:?}");
        }
        assert!(
            sessions
                .get(
                    &ids[0],
                    &PrincipalHandle::new(toolhub_core::Principal::of_key(&format!("{owner}{input}x")))
                )
                .is_none()
        );
    }
    sessions.remove(input);
    assert_eq!(sessions.len(), 2);
}

/// A resumed stream returns the events after the given one, each with its own id.
fn events(input: &str, texts: &[&str]) {
    // The first stream of a session that belongs to a request has the number 1.
    let log = session("s", "ann").open_log();
    let texts: Vec<String> = texts.iter().map(|text| one_line((*text).to_owned())).collect();
    for text in &texts {
        log.push(text);
    }
    log.finish();
    let after = parse_event_id(input).map_or(0, |(_, count)| count);
    let mut events = pin!(log.read(after));
    let mut context = Context::from_waker(Waker::noop());
    let skipped = usize::try_from(after).unwrap_or(usize::MAX);
    for (index, text) in texts.iter().enumerate().skip(skipped) {
        let Poll::Ready(Some(event)) = events.as_mut().poll_next(&mut context) else {
            assert!(index > texts.len(), "event {index} is missing");
            return;
        };
        let id = event.lines().next().and_then(|line| line.strip_prefix("id: "));
        assert_eq!(
            id.and_then(parse_event_id),
            Some((StreamId { epoch: 0, number: 1 }, index as u64 + 1)),
            "{event:?}"
        );
        let data: Vec<&str> = event.split('\n').filter_map(|line| line.strip_prefix("data:")).collect();
        assert_eq!(data, [if text.is_empty() { String::new() } else { format!(" {text}") }]);
        assert!(event.ends_with("\n\n") && event.matches("\n\n").count() == 1, "{event:?}");
    }
    assert!(matches!(events.poll_next(&mut context), Poll::Ready(None)));
}

#[cfg(test)]
#[path = "../../../fuzz/shared/mutator.rs"]
mod mutator;
#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn accepts_only_canonical_event_ids() {
        let stream = |epoch, number| StreamId { epoch, number };
        assert_eq!(parse_event_id("0-0"), Some((stream(0, 0), 0)));
        assert_eq!(parse_event_id("3-18446744073709551615"), Some((stream(0, 3), u64::MAX)));
        assert_eq!(parse_event_id("7-0-3"), Some((stream(7, 0), 3)));
        for id in [
            "", "-", "1", "1-", "-1", "+1-2", "1-+2", "01-2", "1-02", "1--2", "0-2-3", "01-2-3", "1-2-3-4",
            "1-2-", "-1-2", " 1-2", "1-2 ",
        ] {
            assert_eq!(parse_event_id(id), None, "{id:?}");
        }
        assert_eq!(parse_event_id("1-18446744073709551616"), None);
    }

    /// A parser that is not linear would need minutes for each of these.
    #[test]
    fn parses_long_messages_in_linear_time() {
        let keys: String = (0..80_000).map(|number| format!("\"k{number}\":1,")).collect();
        let parts = [
            "[",
            "{\"a\":",
            "\"",
            "\\",
            "\"\\u0070\":1,",
            "{\"a\":1},",
            "\"a\":1,",
            "[],",
            "1",
            " ",
            "-",
            "é",
            "\\\"",
            &keys,
        ];
        for part in parts {
            let text = part.repeat((1 << 18) / part.len());
            let wrap = |before: &str, after: &str| format!("{before}{text}{after}");
            for message in [
                text.clone(),
                wrap(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"#, r#""z":1}}"#),
                wrap(
                    r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"#,
                    r#""z":1},"arguments":{}}}"#,
                ),
                wrap(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":["#, "]}}"),
                wrap(r#"{"jsonrpc":"2.0","id":1,"method":""#, "\"}"),
            ] {
                let began = Instant::now();
                let _ = parse_message(&message.as_str().into());
                assert!(began.elapsed() < Duration::from_secs(20), "{}", part.get(..20).unwrap_or(part));
            }
        }
    }

    #[test]
    fn gateway_ids_hold_for_mutated_seeds() {
        mutator::run("gateway_ids", 8_000, gateway_ids);
    }

    #[test]
    fn gateway_messages_hold_for_mutated_seeds() {
        mutator::run("gateway_messages", 20_000, gateway_messages);
    }
}
