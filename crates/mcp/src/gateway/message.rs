//! Messages of clients: the envelope is read, the rest stays as it was sent.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use bytestring::ByteString;
use serde::de::{DeserializeSeed, Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use toolhub_core::caller::Answer;
use toolhub_core::json::{MAX_DEPTH, too_deep};
use toolhub_core::{RawJson, RawObject};

use super::backend::{INVALID_REQUEST, PARSE_ERROR, RpcError};
pub(crate) use crate::wire::on_one_line as one_line;

/// One message of a client.
#[derive(Debug)]
pub(crate) enum Message {
    /// It wants something.
    Request(Request, Params),
    /// It tells something.
    Notification { method: String, params: Option<RawJson> },
    /// It answers a question of ours.
    Answer { id: u64, answer: Answer },
}

/// A request of a client.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// What the client calls it: a string or a number, as it was written.
    pub(crate) id: RawJson,
    pub(crate) method: String,
}

/// The params of a request, looked into once.
#[derive(Debug, Default)]
pub(crate) struct Params {
    /// All of them, without `_meta`.
    pub(crate) members: RawObject,
    /// What goes along.
    pub(crate) meta: RawObject,
}

impl Params {
    fn of(params: Option<&RawJson>) -> Self {
        let mut members = params.and_then(RawJson::object).unwrap_or_default();
        let meta = members.get("_meta").and_then(RawJson::object).unwrap_or_default();
        members.remove("_meta");
        Self { members, meta }
    }

    /// A member that is a text.
    pub(crate) fn text(&self, key: &str) -> Option<Cow<'_, str>> {
        self.members.get(key)?.text()
    }
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: Option<String>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<Failure>,
}

#[derive(Deserialize)]
struct Failure {
    #[serde(default)]
    code: i64,
    #[serde(default)]
    message: String,
}

/// What is said of several messages in one.
pub(crate) const ONE_AT_A_TIME: &str =
    "send one message at a time: batches were removed from the protocol with revision 2025-06-18";

/// A request as nearly all of them are, read in one go: what is other is read again, with more patience.
#[derive(Deserialize)]
struct Usual<'a> {
    #[serde(borrow)]
    jsonrpc: &'a RawValue,
    #[serde(borrow)]
    id: &'a RawValue,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: Given<'a>,
}

type Members<'a> = Vec<(Cow<'a, str>, &'a RawValue)>;

/// The params of a usual request.
struct Given<'a> {
    members: Members<'a>,
    meta: Members<'a>,
}

#[derive(Deserialize)]
#[serde(transparent)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Given<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(GivenVisitor { depth: 0 })
    }
}

/// Reads the members of params, and of what goes along with them.
struct GivenVisitor {
    depth: u8,
}

impl<'de> DeserializeSeed<'de> for GivenVisitor {
    type Value = Given<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Given<'de>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for GivenVisitor {
    type Value = Given<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Given<'de>, A::Error> {
        let mut given = Given { members: Vec::with_capacity(4), meta: Vec::new() };
        while let Some(Name(name)) = map.next_key()? {
            if self.depth == 0 && name == "_meta" {
                if !given.meta.is_empty() {
                    return Err(A::Error::custom("twice `_meta`"));
                }
                given.meta = map.next_value_seed(Self { depth: 1 })?.members;
            } else {
                given.members.push((name, map.next_value()?));
            }
        }
        Ok(given)
    }
}

/// Reads a request, where it is a usual one.
fn read_usual(text: &ByteString) -> Option<(Request, Params)> {
    let Usual { jsonrpc, id, method, params } = serde_json::from_str(text).ok()?;
    let named = matches!(id.get().as_bytes().first(), Some(b'"' | b'-' | b'0'..=b'9'));
    if jsonrpc.get() != "\"2.0\"" || !named {
        return None;
    }
    let request = Request { id: RawJson::part(text, id), method: method.into_owned() };
    let (members, meta) = (RawObject::part(text, params.members), RawObject::part(text, params.meta));
    Some((request, Params { members, meta }))
}

/// Why a message was refused, and the id it came under, where it shows one.
pub(crate) type Refused = (Option<RawJson>, RpcError);

/// Reads one message.
pub(crate) fn read(text: &ByteString) -> Result<Message, Refused> {
    if too_deep(text).is_some() {
        return Err((None, RpcError::new(PARSE_ERROR, format!("nested more than {MAX_DEPTH} deep"))));
    }
    if let Some((request, params)) = read_usual(text) {
        return Ok(Message::Request(request, params));
    }
    let envelope: Envelope<'_> = serde_json::from_str(text).map_err(|error| {
        let code = if error.is_data() { INVALID_REQUEST } else { PARSE_ERROR };
        (None, RpcError::new(code, format!("this is no message: {error}")))
    })?;
    let Envelope { jsonrpc, id, method, params, result, error } = envelope;
    let part = |value: &RawValue| RawJson::part(text, value);
    let id = id.map(part).filter(|id| id.get() != "null");
    let refuse = |id: Option<RawJson>, why: &str| Err((id, RpcError::new(INVALID_REQUEST, why)));
    if jsonrpc.is_none_or(|version| version.get() != "\"2.0\"") {
        return refuse(id, "`jsonrpc` must be \"2.0\"");
    }
    if id.as_ref().is_some_and(|id| id.get().starts_with(['{', '[', 't', 'f'])) {
        return refuse(None, "an id is a string or a number");
    }
    let params = params.map(part).filter(|params| params.get() != "null");
    match (method, id) {
        (Some(_), id) if params.as_ref().is_some_and(|params| !params.is_object()) => {
            refuse(id, "`params` must be an object")
        }
        (Some(method), Some(id)) => Ok(Message::Request(Request { id, method }, Params::of(params.as_ref()))),
        (Some(method), None) => Ok(Message::Notification { method, params }),
        (None, id) => {
            let answer = match (result, error) {
                (Some(result), None) => Ok(part(result)),
                (_, Some(Failure { code, message })) => Err((code, message)),
                (None, None) => return refuse(id, "there is neither `method`, `result` nor `error`"),
            };
            // Questions of ours have numbers; whatever else is answered was never asked.
            match id.as_ref().and_then(|id| id.decode().ok()) {
                Some(id) => Ok(Message::Answer { id, answer }),
                None => refuse(id, "that was never asked"),
            }
        }
    }
}

/// The text of an answer to a request.
pub(crate) fn response(id: &RawJson, outcome: &Result<RawJson, RpcError>) -> String {
    match outcome {
        Ok(result) => {
            let (id, result) = (id.get(), result.get());
            let mut text = String::with_capacity(id.len() + result.len() + 40);
            for part in [r#"{"jsonrpc":"2.0","id":"#, id, r#","result":"#, result, "}"] {
                text.push_str(part);
            }
            text
        }
        Err(error) => refusal(Some(id), error),
    }
}

/// The same text of a result in pieces, of which the result is where it was.
pub(crate) fn pieces(id: &RawJson, result: &RawJson) -> [Bytes; 3] {
    let head = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"#);
    [Bytes::from(head), result.clone().into_bytes(), Bytes::from_static(b"}")]
}

/// The text of an error.
pub(crate) fn refusal(id: Option<&RawJson>, error: &RpcError) -> String {
    let id = id.map_or("null", RawJson::get);
    let message = RawJson::of(&error.message);
    let data = error.data.as_ref().map(|data| format!(r#","data":{data}"#)).unwrap_or_default();
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{},"message":{message}{data}}}}}"#, error.code)
}

/// The text of a notification.
pub(crate) fn notification(method: &str, params: Option<&RawJson>) -> String {
    let method = RawJson::of(method);
    let params = params.map(|params| format!(r#","params":{params}"#)).unwrap_or_default();
    format!(r#"{{"jsonrpc":"2.0","method":{method}{params}}}"#)
}

/// The text of a question to a client.
pub(crate) fn question(id: u64, method: &str, params: Option<&RawJson>) -> String {
    let method = RawJson::of(method);
    let params = params.map(|params| format!(r#","params":{params}"#)).unwrap_or_default();
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method}{params}}}"#)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a text is read as, by whichever way.
    fn shown(text: &str) -> String {
        match read(&text.into()) {
            Ok(Message::Request(request, params)) => {
                let Params { members, meta } = params;
                format!("{} {} {} {}", request.id, request.method, members.into_raw(), meta.into_raw())
            }
            Ok(other) => format!("{other:?}"),
            Err((id, error)) => format!("{id:?} {}", error.code),
        }
    }

    #[test]
    fn requests_are_read_alike_whether_usual_or_not() {
        let check = |text: &str, expect: &str| assert_eq!(shown(text), expect, "{text}");
        let usual =
            r#"{"jsonrpc":"2.0","id":7,"method":"m","params":{"b":1e2,"_meta":{"k":[1]},"a":{"_meta":1}}}"#;
        check(usual, r#"7 m {"b":1e2,"a":{"_meta":1}} {"k":[1]}"#);
        // In another order, with members that nobody knows, and with escapes.
        check(
            r#"{"params":{"\u0061":1,"_meta":{"_meta":2}},"x":{},"method":"\u006d","id":"7","jsonrpc":"2.0"}"#,
            r#""7" m {"a":1} {"_meta":2}"#,
        );
        check(r#"{"jsonrpc":"2.0","id":-1,"method":"m"}"#, "-1 m {} {}");
        check(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":null}"#, "1 m {} {}");
        check(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":3}}"#, "1 m {} {}");
        check(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}"#, "Some(1) -32600");
        check(r#"{"jsonrpc":"2.0","id":{},"method":"m","params":{}}"#, "None -32600");
        check(r#"{"jsonrpc":"2","id":1,"method":"m","params":{}}"#, "Some(1) -32600");
        check(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{}} x"#, "None -32700");
        check(
            r#"{"jsonrpc":"2.0","id":null,"method":"m","params":{"a":1}}"#,
            r#"Notification { method: "m", params: Some({"a":1}) }"#,
        );
    }
}
