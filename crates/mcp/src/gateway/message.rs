//! Messages of clients: the envelope is read, the rest stays as it was sent.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use toolhub_core::caller::Answer;
use toolhub_core::json::{MAX_DEPTH, too_deep};
use toolhub_core::{RawJson, RawObject};

use super::backend::{INVALID_REQUEST, PARSE_ERROR, RpcError};

/// One message of a client.
#[derive(Debug)]
pub(crate) enum Message {
    /// It wants something.
    Request(Request),
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
    pub(crate) params: Option<RawJson>,
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
    pub(crate) fn of(request: &Request) -> Self {
        let mut members = request.params.as_ref().and_then(RawJson::object).unwrap_or_default();
        let meta = members.get("_meta").and_then(RawJson::object).unwrap_or_default();
        members.remove("_meta");
        Self { members, meta }
    }

    /// A member that is a text.
    pub(crate) fn text(&self, key: &str) -> Option<String> {
        self.members.get(key)?.decode().ok()
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

/// Why a message was refused, and the id it came under, where it shows one.
pub(crate) type Refused = (Option<RawJson>, RpcError);

/// Reads one message.
pub(crate) fn read(text: &str) -> Result<Message, Refused> {
    if too_deep(text).is_some() {
        return Err((None, RpcError::new(PARSE_ERROR, format!("nested more than {MAX_DEPTH} deep"))));
    }
    let envelope: Envelope<'_> = serde_json::from_str(text).map_err(|error| {
        let code = if error.is_data() { INVALID_REQUEST } else { PARSE_ERROR };
        (None, RpcError::new(code, format!("this is no message: {error}")))
    })?;
    let Envelope { jsonrpc, id, method, params, result, error } = envelope;
    let id = id.map(RawJson::from).filter(|id| id.get() != "null");
    let refuse = |id: Option<RawJson>, why: &str| Err((id, RpcError::new(INVALID_REQUEST, why)));
    if jsonrpc.is_none_or(|version| version.get() != "\"2.0\"") {
        return refuse(id, "`jsonrpc` must be \"2.0\"");
    }
    if id.as_ref().is_some_and(|id| id.get().starts_with(['{', '[', 't', 'f'])) {
        return refuse(None, "an id is a string or a number");
    }
    let params = params.map(RawJson::from).filter(|params| params.get() != "null");
    match (method, id) {
        (Some(_), id) if params.as_ref().is_some_and(|params| !params.is_object()) => {
            refuse(id, "`params` must be an object")
        }
        (Some(method), Some(id)) => Ok(Message::Request(Request { id, method, params })),
        (Some(method), None) => Ok(Message::Notification { method, params }),
        (None, id) => {
            let answer = match (result, error) {
                (Some(result), None) => Ok(RawJson::from(result)),
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
    [Bytes::from(head), Bytes::from_owner(result.clone()), Bytes::from_static(b"}")]
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

/// The same text on one line: a line break can only be white space in JSON.
pub(crate) fn one_line(text: String) -> String {
    let bytes = text.as_bytes();
    if bytes.contains(&b'\n') || bytes.contains(&b'\r') { text.replace(['\n', '\r'], " ") } else { text }
}
