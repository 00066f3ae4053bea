//! JSON-RPC with raw payloads: parses the envelope, and keeps params and results unchanged.

mod request;

use bytes::Bytes;
use bytestring::ByteString;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use toolhub_core::{RawJson, RawObject};

use crate::error::McpError;
use crate::scan::{self, JsonScanner};

pub use request::{ModernMeta, RequestContent, RequestMeta, serialize_request};

/// Maximum length of a request id and of a progress token in bytes. Both are kept in memory as long as the request.
pub const MAX_ID_BYTES: usize = 1 << 10;

/// A message from a server.
#[derive(Debug)]
pub enum ServerMessage {
    /// The response to one of our requests.
    Response {
        /// The id of the request.
        id: u64,
        /// The result, unchanged, or the error.
        outcome: Result<RawJson, McpError>,
    },
    /// A request of the server.
    Request {
        /// The id that the response has to repeat.
        id: RawJson,
        /// The method.
        method: String,
        /// The params, unchanged.
        params: Option<RawJson>,
    },
    /// A notification.
    Notification {
        /// The method.
        method: String,
        /// The params, unchanged.
        params: Option<RawJson>,
    },
}

/// Why a message is invalid.
#[derive(Debug, PartialEq, Eq)]
pub enum MessageError {
    /// It is not JSON: a banner or a log line.
    NotJsonRpc,
    /// It is JSON, but not a protocol message.
    Malformed {
        /// The id it seems to answer, if it contains one.
        id: Option<u64>,
        /// The reason.
        detail: String,
    },
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

/// Parses one message.
pub fn read(bytes: &Bytes) -> Result<ServerMessage, MessageError> {
    match ByteString::try_from(bytes.clone()) {
        Ok(text) => read_fast(&text).map_or_else(|| read_general(bytes), Ok),
        Err(_) => read_general(bytes),
    }
}

/// Fast path for common responses: a single pass over the text. Anything else is parsed again by `read_general`.
fn read_fast(text: &ByteString) -> Option<ServerMessage> {
    let (mut id, mut result, mut has_jsonrpc) = (None, None, false);
    let mut scan = JsonScanner::new(text);
    scan.members(|scan, name| {
        let twice = match name {
            "jsonrpc" => {
                has_jsonrpc = true;
                scan.value().is_none()
            }
            "id" => id.replace(scan.value()?).is_some(),
            "result" => result.replace(scan.value()?).is_some(),
            "method" | "params" | "error" => return None,
            _ => scan.value().is_none(),
        };
        (!twice).then_some(())
    })?;
    // The scanner limits the depth of values.
    let result = result.filter(|result| *result != "null" && scan.is_at_end() && has_jsonrpc)?;
    Some(ServerMessage::Response {
        id: id?.parse().ok()?,
        outcome: Ok(RawJson::part(text, scan::found(result)?)),
    })
}

/// The member that every message has (JSON-RPC 2.0, 4: request object).
const JSONRPC_KEY: &[u8] = b"\"jsonrpc\"";

/// Parses any message; errors state the reason.
fn read_general(bytes: &Bytes) -> Result<ServerMessage, MessageError> {
    let looks_like_json = bytes.trim_ascii_start().first() == Some(&b'{');
    // Some servers log JSON to stdout. A line without `"jsonrpc"` concerns no request.
    let has_jsonrpc = bytes.windows(JSONRPC_KEY.len()).any(|part| part == JSONRPC_KEY);
    let noise = |detail: String| match looks_like_json && has_jsonrpc {
        true => MessageError::Malformed { id: extract_id(bytes), detail },
        false => MessageError::NotJsonRpc,
    };
    let text = ByteString::try_from(bytes.clone()).map_err(|error| noise(format!("not UTF-8: {error}")))?;
    let envelope: Envelope<'_> = serde_json::from_str(&text).map_err(|error| noise(error.to_string()))?;
    let part = |value: &RawValue| RawJson::part(&text, value);
    let raw = |value: Option<&RawValue>| value.map(part);
    match (envelope.method, envelope.id) {
        (Some(_), _) if !has_jsonrpc => Err(MessageError::NotJsonRpc),
        (Some(_), Some(id)) if id.get().len() > MAX_ID_BYTES => Err(MessageError::Malformed {
            id: None,
            detail: format!("a request whose id has more than {MAX_ID_BYTES} bytes"),
        }),
        (Some(method), Some(id)) => {
            Ok(ServerMessage::Request { id: part(id), method, params: raw(envelope.params) })
        }
        (Some(method), None) => Ok(ServerMessage::Notification { method, params: raw(envelope.params) }),
        (None, id) => {
            let outcome = match (envelope.result, envelope.error) {
                (Some(result), _) if has_jsonrpc || result.get().starts_with('{') => checked(part(result)),
                (None, Some(error)) if has_jsonrpc || has_numeric_code(error) => Err(rpc_error(error)),
                (Some(_), _) | (None, Some(_)) => return Err(MessageError::NotJsonRpc),
                (None, None) => {
                    let detail = "neither `method`, `result` nor `error`".to_owned();
                    return Err(match has_jsonrpc {
                        true => MessageError::Malformed { id: id.and_then(request_id), detail },
                        false => MessageError::NotJsonRpc,
                    });
                }
            };
            match id.and_then(request_id) {
                Some(id) => Ok(ServerMessage::Response { id, outcome }),
                None => {
                    let detail = match &outcome {
                        Err(error) => error.to_string(),
                        Ok(_) => "an answer to a request that was never made".to_owned(),
                    };
                    Err(if has_jsonrpc {
                        MessageError::Malformed { id: None, detail }
                    } else {
                        MessageError::NotJsonRpc
                    })
                }
            }
        }
    }
}

/// The JSON-RPC error in the body of an HTTP error status, and the id of our request, if it contains one. Other protocols, such
/// as OAuth, use an `error` member too; only one with a numeric code counts.
pub fn error_in(bytes: &[u8]) -> Option<(McpError, Option<u64>)> {
    let envelope: Envelope<'_> = serde_json::from_str(std::str::from_utf8(bytes).ok()?).ok()?;
    let id = envelope.id.and_then(request_id);
    envelope.error.filter(|error| has_numeric_code(error)).map(|error| (rpc_error(error), id))
}

/// Whether an error has a numeric code, as in JSON-RPC.
fn has_numeric_code(error: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct NumericCode {
        #[serde(rename = "code")]
        _code: i64,
    }
    serde_json::from_str::<NumericCode>(error.get()).is_ok()
}

/// Whether a message is the successful response to that request.
pub fn is_result_of(bytes: &[u8], request: u64) -> bool {
    let read = read(&Bytes::copy_from_slice(bytes));
    matches!(read, Ok(ServerMessage::Response { id, outcome: Ok(_) }) if id == request)
}

fn request_id(id: &RawValue) -> Option<u64> {
    serde_json::from_str(id.get()).ok()
}

fn checked(result: RawJson) -> Result<RawJson, McpError> {
    match result.too_deep() {
        Some(depth) => Err(McpError::TooDeep { depth, result }),
        None => Ok(result),
    }
}

fn rpc_error(error: &RawValue) -> McpError {
    let RpcError { code, message, data } = serde_json::from_str(error.get()).unwrap_or_default();
    let message = if message.is_empty() { error.get().to_owned() } else { message };
    McpError::Rpc { code, message, data }
}

/// Extracts the id from an invalid message, so that its call fails at once instead of at its deadline. Only a top-level member
/// counts: results contain ids of other things.
pub fn extract_id(bytes: &[u8]) -> Option<u64> {
    let (mut depth, mut index) = (0_usize, 0);
    while let Some(byte) = bytes.get(index) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.checked_sub(1).filter(|depth| *depth > 0)?,
            b'"' => {
                let end = index + 1 + string_length(bytes.get(index + 1..)?)?;
                if depth == 1 && &bytes[index..=end] == b"\"id\"" {
                    let rest = bytes[end + 1..].trim_ascii_start();
                    if let Some(value) = rest.strip_prefix(b":") {
                        return whole_number(value.trim_ascii_start());
                    }
                }
                index = end;
            }
            _ => {}
        }
        index += 1;
    }
    None
}

/// The number of bytes before the closing quote of a string.
fn string_length(bytes: &[u8]) -> Option<usize> {
    let mut index = 0;
    loop {
        match bytes.get(index)? {
            b'"' => return Some(index),
            b'\\' => index += 2,
            _ => index += 1,
        }
    }
}

/// The number at the start of the bytes, unless it continues as another value.
fn whole_number(bytes: &[u8]) -> Option<u64> {
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let ends = bytes.get(digits).is_none_or(|byte| byte.is_ascii_whitespace() || matches!(byte, b',' | b'}'));
    let text = std::str::from_utf8(bytes.get(..digits)?).ok()?;
    text.parse().ok().filter(|_| ends)
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

/// Serializes a notification.
pub fn notification(method: &str, params: &RawObject) -> String {
    let params = (!params.is_empty()).then_some(params);
    write(&Outgoing { method: Some(method), params, ..EMPTY })
}

/// Serializes a request to a client.
pub fn server_request(id: u64, method: &str, params: Option<&RawJson>) -> String {
    let method = RawJson::of(method);
    let params = params.map(|params| format!(r#","params":{params}"#)).unwrap_or_default();
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method}{params}}}"#)
}

/// Serializes the response to a server's request.
pub fn answer(id: RawJson, outcome: &Result<RawJson, (i64, String)>) -> String {
    let error = outcome.as_ref().err().map(|(code, message)| {
        RawObject::default().with("code", RawJson::of(code)).with("message", message.clone())
    });
    write(&Outgoing { id: Some(id), result: outcome.as_ref().ok(), error, ..EMPTY })
}

fn write(message: &Outgoing<'_>) -> String {
    on_one_line(serde_json::to_string(message).unwrap_or_default())
}

/// Replaces newlines, which would end the line early on stdio. In valid JSON they occur only as whitespace.
#[inline]
pub fn on_one_line(text: String) -> String {
    // Checks 64 bytes at a time, which vectorizes and is faster than a search for the first one.
    let is_break = |byte: &u8| u8::from(*byte == b'\n') | u8::from(*byte == b'\r');
    let breaks = |bytes: &[u8]| bytes.iter().fold(0, |found, byte| found | is_break(byte)) != 0;
    let (pieces, rest) = text.as_bytes().as_chunks::<64>();
    let broken = pieces.iter().any(|piece| breaks(piece)) || breaks(rest);
    if broken { text.replace(['\n', '\r'], " ") } else { text }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::scan::tests::json_text::{any_text, broken};

    #[test]
    fn preserves_results_byte_for_byte() {
        let text =
            r#"{"jsonrpc":"2.0","id":7,"result":{"z":1e2,"big":1234567890123456789012345678901234567890}}"#;
        let Ok(ServerMessage::Response { id: 7, outcome: Ok(result) }) = read(&Bytes::from(text)) else {
            panic!()
        };
        assert_eq!(result.get(), r#"{"z":1e2,"big":1234567890123456789012345678901234567890}"#);
    }

    #[test]
    fn distinguishes_log_lines_from_malformed_messages() {
        let check_invalid = |id, text: &[u8]| match read(&Bytes::copy_from_slice(text)) {
            Err(MessageError::Malformed { id: found, .. }) => {
                assert_eq!(found, id, "{}", String::from_utf8_lossy(text));
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(read(&Bytes::from_static(b"INFO starting")).unwrap_err(), MessageError::NotJsonRpc);
        assert_eq!(read(&Bytes::from_static(b"\xff\xfe")).unwrap_err(), MessageError::NotJsonRpc);
        for log in [
            r#"{"level":"info","msg":"starting"}"#,
            r#"{"id":7,"level":"info"}"#,
            r#"{"method":"GET","path":"/"}"#,
            r#"{"id":"req-1","method":"GET"}"#,
            r#"{"error":"connection refused"}"#,
            r#"{"id":7,"error":"connection refused"}"#,
            r#"{"id":7,"result":"ok"}"#,
            "{not json}",
            r#"{"level":"info","msg":"#,
        ] {
            assert_eq!(
                read(&Bytes::from_static(log.as_bytes())).unwrap_err(),
                MessageError::NotJsonRpc,
                "{log}"
            );
        }
        check_invalid(Some(3), b"{\"jsonrpc\":\"2.0\",\"id\": 3, \"result\": \"\xff\"}");
        check_invalid(Some(4), br#"{"jsonrpc":"2.0","id":4,"result":{"cut":"#);
        check_invalid(Some(5), br#"{"jsonrpc":"2.0","id":5}"#);
        check_invalid(None, br#"{"jsonrpc":"2.0","id":"foreign","result":{}}"#);
    }

    #[test]
    fn ignores_error_bodies_of_other_protocols() {
        let check = |text: &str, expect: Option<&str>| {
            let found = error_in(text.as_bytes()).map(|(error, _)| error.to_string());
            assert_eq!(found.as_deref(), expect, "{text}");
        };
        check(r#"{"error":{"code":-32022,"message":"no"},"id":null}"#, Some("MCP error -32022: no"));
        check(r#"{"error":"insufficient_scope","error_description":"more"}"#, None);
        check(r#"{"error":{"type":"auth","message":"who are you"}}"#, None);
        check("<html>", None);
    }

    #[test]
    fn extracts_id_of_broken_message_from_top_level_only() {
        let check =
            |text: &str, expect: Option<u64>| assert_eq!(extract_id(text.as_bytes()), expect, "{text}");
        check(r#"{"jsonrpc":"2.0","id":7,"result":{"content":["#, Some(7));
        check(r#"{"id" : 7"#, Some(7));
        check(r#"{"result":{"a":"}\"id\":1"},"id":7"#, Some(7));
        check(r#"{"result":{"id":8,"x":"#, None);
        check(r#"{"result":[{"id":8}],"#, None);
        check(r#"{"result":"\"id\":8","#, None);
        check(r#"{"x":"id","y":8"#, None);
        for other in ["7.5", "7e2", "\"7\"", "null", "-7", ""] {
            check(&format!(r#"{{"id":{other},"result":{{"#), None);
        }
        check(r#"{"a":1}{"id":8"#, None);
        check(r#"{"a\"#, None);
        check("", None);
    }

    #[test]
    fn rejects_server_requests_with_long_ids() {
        let read_request = |length: usize| {
            read(&Bytes::from(format!(
                r#"{{"jsonrpc":"2.0","id":"{}","method":"ping"}}"#,
                "i".repeat(length)
            )))
        };
        assert!(matches!(read_request(MAX_ID_BYTES - 2), Ok(ServerMessage::Request { .. })));
        assert!(matches!(read_request(MAX_ID_BYTES), Err(MessageError::Malformed { id: None, .. })));
    }

    #[test]
    fn deep_nesting_fails_the_matching_call() {
        let deep =
            format!(r#"{{"jsonrpc":"2.0","id":1,"result":{}{}}}"#, "[".repeat(200_000), "]".repeat(200_000));
        let Ok(ServerMessage::Response { id: 1, outcome: Err(error) }) = read(&Bytes::from(deep)) else {
            panic!()
        };
        assert!(error.to_string().contains("nested 200000 deep"));
    }

    #[test]
    fn fast_path_accepts_common_responses() {
        let usual = |text: &str| read_fast(&text.into()).is_some();
        assert!(usual("{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"a\":\"\\n\"}}\n"));
        assert!(!usual(r#"{"id":7,"result":{}} {}"#) && !usual(r#"{"id":7,"error":{},"result":{}}"#));
    }

    proptest! {
        #[test]
        fn fast_path_and_general_parser_agree(
            members in prop::collection::vec(any_member(), 0..5),
            at in any::<prop::sample::Index>(),
            with in prop::option::of("[\\[\\]{}\",:\\\\0-9a-z\u{0}\n ]{0,2}"),
        ) {
            let text = format!("{{{}}}", members.join(", "));
            let text = with.map_or(text.clone(), |with| broken(&text, at, &with));
            let text = Bytes::from(text);
            prop_assert_eq!(format!("{:?}", read(&text)), format!("{:?}", read_general(&text)), "{:?}", text);
        }
    }

    /// Members of messages, valid and invalid ones.
    fn any_member() -> impl Strategy<Value = String> {
        prop_oneof![
            2 => Just(r#""jsonrpc":"2.0""#.to_owned()),
            4 => (0..u64::MAX).prop_map(|id| format!(r#""id":{id}"#)),
            1 => any_text().prop_map(|id| format!(r#""id" : {id}"#)),
            4 => any_text().prop_map(|result| format!(r#""result":{result}"#)),
            1 => any_text().prop_map(|error| format!(r#""error":{error}"#)),
            1 => any_text().prop_map(|params| format!(r#""params":{params}"#)),
            1 => Just(r#""method":"m""#.to_owned()),
            1 => any_text().prop_map(|other| format!(r#""\u0069d":{other}"#)),
            1 => any_text().prop_map(|other| format!(r#""x":{other}"#)),
        ]
    }
}
