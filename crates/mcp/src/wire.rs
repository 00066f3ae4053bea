//! JSON-RPC with raw payloads: the envelope is parsed, params and results stay as they were sent.

use bytes::Bytes;
use bytestring::ByteString;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use toolhub_core::json::MAX_DEPTH;
use toolhub_core::{RawJson, RawObject};

use crate::error::McpError;

/// One message from a server.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// The answer to a request of ours.
    Response { id: u64, outcome: Result<RawJson, McpError> },
    /// A question of the server's own.
    Request { id: RawJson, method: String, params: Option<RawJson> },
    /// Something it wants known.
    Notification { method: String, params: Option<RawJson> },
}

/// Why a message was not understood.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotAMessage {
    /// It is not JSON: a banner or a log line.
    Noise,
    /// It is JSON, but no message of the protocol; the id it seems to answer, where it shows one.
    Odd { id: Option<u64>, detail: String },
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: Option<String>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
struct RpcError {
    #[serde(default)]
    code: i64,
    #[serde(default)]
    message: String,
    #[serde(default)]
    data: Option<RawJson>,
}

/// Reads one message.
pub(crate) fn read(bytes: &Bytes) -> Result<Incoming, NotAMessage> {
    let looks_like_json = bytes.trim_ascii_start().first() == Some(&b'{');
    let noise = |detail: String| {
        if looks_like_json { NotAMessage::Odd { id: guess_id(bytes), detail } } else { NotAMessage::Noise }
    };
    let text = ByteString::try_from(bytes.clone()).map_err(|error| noise(format!("not UTF-8: {error}")))?;
    let envelope: Envelope<'_> = serde_json::from_str(&text).map_err(|error| noise(error.to_string()))?;
    let part = |value: &RawValue| RawJson::part(&text, value);
    let raw = |value: Option<&RawValue>| value.map(part);
    match (envelope.method, envelope.id) {
        (Some(method), Some(id)) => {
            Ok(Incoming::Request { id: part(id), method, params: raw(envelope.params) })
        }
        (Some(method), None) => Ok(Incoming::Notification { method, params: raw(envelope.params) }),
        (None, id) => {
            let outcome = match (envelope.result, envelope.error) {
                (Some(result), _) => checked(part(result)),
                (None, Some(error)) => Err(rpc_error(error)),
                (None, None) => {
                    let detail = "neither `method`, `result` nor `error`".to_owned();
                    return Err(NotAMessage::Odd { id: id.and_then(our_id), detail });
                }
            };
            match id.and_then(our_id) {
                Some(id) => Ok(Incoming::Response { id, outcome }),
                None => {
                    let detail = match &outcome {
                        Err(error) => error.to_string(),
                        Ok(_) => "an answer to a request that was never made".to_owned(),
                    };
                    Err(NotAMessage::Odd { id: None, detail })
                }
            }
        }
    }
}

/// The error in a message, whatever it answers: what an HTTP server says beside an error status. Others than MCP
/// servers write an `error` too, as OAuth does; only one with a code of its own is ours.
pub(crate) fn error_in(bytes: &[u8]) -> Option<McpError> {
    #[derive(Deserialize)]
    struct Coded {
        #[serde(rename = "code")]
        _code: i64,
    }
    let envelope: Envelope<'_> = serde_json::from_str(std::str::from_utf8(bytes).ok()?).ok()?;
    let coded = |error: &&RawValue| serde_json::from_str::<Coded>(error.get()).is_ok();
    envelope.error.filter(coded).map(rpc_error)
}

fn our_id(id: &RawValue) -> Option<u64> {
    serde_json::from_str(id.get()).ok()
}

fn checked(result: RawJson) -> Result<RawJson, McpError> {
    match result.too_deep() {
        Some(depth) => Err(McpError::unreadable(format!("nested {depth} deep, more than {MAX_DEPTH}"))),
        None => Ok(result),
    }
}

fn rpc_error(error: &RawValue) -> McpError {
    let RpcError { code, message, data } = serde_json::from_str(error.get()).unwrap_or_default();
    let message = if message.is_empty() { error.get().to_owned() } else { message };
    McpError::Rpc { code, message, data }
}

/// The id in a message that cannot be read as a whole, so that its call need not wait for the deadline.
pub(crate) fn guess_id(bytes: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(bytes);
    let rest = text.split_once("\"id\"")?.1.trim_start().strip_prefix(':')?.trim_start();
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[derive(Serialize)]
struct Outgoing<'a> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<RawJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a RawObject>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<RawObject>,
}

const EMPTY: Outgoing<'static> =
    Outgoing { jsonrpc: "2.0", id: None, method: None, params: None, result: None, error: None };

/// The text of a request: its params, and with them what goes along. Written by hand, since every call is one.
pub(crate) fn request(id: u64, method: &str, params: &RawObject, meta: &RawObject) -> String {
    let mut text = Vec::with_capacity(400);
    text.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    write_into(&mut text, &id);
    text.extend_from_slice(br#","method":"#);
    write_into(&mut text, method);
    text.extend_from_slice(br#","params":{"#);
    let mut comma = false;
    write_members(&mut text, params.iter().filter(|(key, _)| meta.is_empty() || *key != "_meta"), &mut comma);
    if !meta.is_empty() {
        text.extend_from_slice(if comma { br#","_meta":{"# } else { br#""_meta":{"# });
        write_members(&mut text, meta.iter(), &mut false);
        text.push(b'}');
    }
    text.extend_from_slice(b"}}");
    on_one_line(String::from_utf8(text).unwrap_or_default())
}

fn write_into(text: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    // Writing into memory cannot fail, and neither can what is written here.
    let _ = serde_json::to_writer(text, value);
}

fn write_members<'a>(
    text: &mut Vec<u8>,
    members: impl Iterator<Item = (&'a str, &'a RawJson)>,
    comma: &mut bool,
) {
    for (key, value) in members {
        if std::mem::replace(comma, true) {
            text.push(b',');
        }
        // Hardly any name needs escapes, and most of the text of a call is names.
        if !key.bytes().fold(false, |odd, byte| odd | (byte < b' ') | (byte == b'"') | (byte == b'\\')) {
            text.push(b'"');
            text.extend_from_slice(key.as_bytes());
            text.push(b'"');
        } else {
            write_into(text, key);
        }
        text.push(b':');
        text.extend_from_slice(value.get().as_bytes());
    }
}

/// The text of a notification.
pub(crate) fn notification(method: &str, params: &RawObject) -> String {
    let params = (!params.is_empty()).then_some(params);
    write(&Outgoing { method: Some(method), params, ..EMPTY })
}

/// The text of an answer to a server's request.
pub(crate) fn answer(id: RawJson, outcome: &Result<RawJson, (i64, String)>) -> String {
    let error = outcome.as_ref().err().map(|(code, message)| {
        RawObject::default().with("code", RawJson::of(code)).with("message", message.clone())
    });
    write(&Outgoing { id: Some(id), result: outcome.as_ref().ok(), error, ..EMPTY })
}

fn write(message: &Outgoing<'_>) -> String {
    on_one_line(serde_json::to_string(message).unwrap_or_default())
}

/// A newline inside a raw value would end the line too early on stdio; in JSON it can only be white space.
pub(crate) fn on_one_line(text: String) -> String {
    let bytes = text.as_bytes();
    if bytes.contains(&b'\n') || bytes.contains(&b'\r') { text.replace(['\n', '\r'], " ") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_kept_as_sent() {
        let text =
            r#"{"jsonrpc":"2.0","id":7,"result":{"z":1e2,"big":1234567890123456789012345678901234567890}}"#;
        let Ok(Incoming::Response { id: 7, outcome: Ok(result) }) = read(&Bytes::from(text)) else {
            panic!()
        };
        assert_eq!(result.get(), r#"{"z":1e2,"big":1234567890123456789012345678901234567890}"#);
    }

    #[test]
    fn what_is_no_message_is_told_apart() {
        let odd = |id, text: &[u8]| match read(&Bytes::copy_from_slice(text)) {
            Err(NotAMessage::Odd { id: found, .. }) => {
                assert_eq!(found, id, "{}", String::from_utf8_lossy(text));
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(read(&Bytes::from_static(b"INFO starting")).unwrap_err(), NotAMessage::Noise);
        assert_eq!(read(&Bytes::from_static(b"\xff\xfe")).unwrap_err(), NotAMessage::Noise);
        odd(Some(3), b"{\"id\": 3, \"result\": \"\xff\"}");
        odd(Some(4), br#"{"jsonrpc":"2.0","id":4,"result":{"cut":"#);
        odd(Some(5), br#"{"jsonrpc":"2.0","id":5}"#);
        odd(None, br#"{"jsonrpc":"2.0","id":"foreign","result":{}}"#);
    }

    #[test]
    fn the_errors_of_others_are_not_taken_for_ours() {
        let check = |text: &str, expect: Option<&str>| {
            let found = error_in(text.as_bytes()).map(|error| error.to_string());
            assert_eq!(found.as_deref(), expect, "{text}");
        };
        check(r#"{"error":{"code":-32022,"message":"no"},"id":null}"#, Some("MCP error -32022: no"));
        check(r#"{"error":"insufficient_scope","error_description":"more"}"#, None);
        check(r#"{"error":{"type":"auth","message":"who are you"}}"#, None);
        check("<html>", None);
    }

    #[test]
    fn absurd_nesting_fails_the_call_it_answers() {
        let deep = format!(r#"{{"id":1,"result":{}{}}}"#, "[".repeat(200_000), "]".repeat(200_000));
        let Ok(Incoming::Response { id: 1, outcome: Err(error) }) = read(&Bytes::from(deep)) else {
            panic!()
        };
        assert!(error.to_string().contains("nested 200000 deep"));
    }

    #[test]
    fn a_message_is_one_line() {
        let params = RawObject::default().with("a", RawJson::parse("[1,\n 2]").unwrap());
        assert_eq!(
            request(1, "m", &params, &RawObject::default()),
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":[1,  2]}}"#
        );
        let meta = RawObject::default().with("quo\"te", 1);
        assert_eq!(
            request(2, "m", &params, &meta),
            r#"{"jsonrpc":"2.0","id":2,"method":"m","params":{"a":[1,  2],"_meta":{"quo\"te":1}}}"#
        );
        assert_eq!(
            request(3, "m/\"n", &RawObject::default(), &meta),
            r#"{"jsonrpc":"2.0","id":3,"method":"m/\"n","params":{"_meta":{"quo\"te":1}}}"#
        );
    }
}
