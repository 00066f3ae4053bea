//! Minimal JSON-RPC for the scripted server: input is parsed leniently, output is built as text, so that raw JSON is
//! kept verbatim.

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

/// A message from the client: a request, a notification, or a response to a server request.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Message {
    pub(super) id: Option<Box<RawValue>>,
    pub(super) method: Option<String>,
    params: Option<Box<RawValue>>,
}

impl Message {
    /// Represents an HTTP request that is not a message.
    pub(super) fn named(method: &str) -> Self {
        Self { method: Some(method.to_owned()), ..Self::default() }
    }

    pub(super) fn method(&self) -> &str {
        self.method.as_deref().unwrap_or_default()
    }

    pub(super) fn id(&self) -> Option<&str> {
        self.id.as_deref().map(RawValue::get)
    }

    /// A response to a server request has an id and no method.
    pub(super) fn is_answer(&self) -> bool {
        self.method.is_none()
    }

    /// Parameters of an unexpected type are ignored.
    pub(super) fn params(&self) -> Params {
        let params = self.params.as_deref().and_then(|raw| serde_json::from_str(raw.get()).ok());
        params.unwrap_or_default()
    }
}

/// The parameters of all methods.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Params {
    pub(super) name: Option<String>,
    pub(super) uri: Option<String>,
    pub(super) arguments: Option<Box<RawValue>>,
    pub(super) cursor: Option<String>,
    pub(super) request_id: Option<Box<RawValue>>,
    pub(super) protocol_version: Option<String>,
    pub(super) notifications: Option<Value>,
    #[serde(default, rename = "_meta")]
    pub(super) meta: Meta,
}

/// The metadata of a request.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Meta {
    #[serde(rename = "progressToken")]
    pub(super) progress_token: Option<Box<RawValue>>,
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    pub(super) version: Option<String>,
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities")]
    pub(super) capabilities: Option<Box<RawValue>>,
}

/// A JSON-RPC error and its HTTP status.
#[derive(Debug, Clone)]
pub(super) struct Fault {
    pub(super) status: u16,
    pub(super) code: i64,
    pub(super) message: String,
    pub(super) data: Option<String>,
}

impl Fault {
    pub(super) fn new(status: u16, code: i64, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), data: None }
    }

    pub(super) fn with_data(self, data: &Value) -> Self {
        Self { data: Some(data.to_string()), ..self }
    }

    /// The error response; without an id if that of the request is unknown.
    pub(super) fn response(&self, id: Option<&str>) -> String {
        let id = id.map(|id| format!(r#""id":{id},"#)).unwrap_or_default();
        let (code, message) = (self.code, quote(&self.message));
        let data = self.data.as_deref().map(|data| format!(r#","data":{data}"#)).unwrap_or_default();
        format!(r#"{{"jsonrpc":"2.0",{id}"error":{{"code":{code},"message":{message}{data}}}}}"#)
    }
}

pub(super) fn result(id: &str, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

pub(super) fn notification(method: &str, params: Option<&str>) -> String {
    let (method, params) = (quote(method), member("params", params));
    format!(r#"{{"jsonrpc":"2.0","method":{method}{params}}}"#)
}

pub(super) fn request(id: u64, method: &str, params: Option<&str>) -> String {
    let (method, params) = (quote(method), member("params", params));
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method}{params}}}"#)
}

/// A tool's result with one text block.
pub(super) fn text_result(text: &str, is_error: bool) -> String {
    let text = quote(text);
    format!(r#"{{"content":[{{"type":"text","text":{text}}}],"isError":{is_error}}}"#)
}

/// Raw JSON on one line. A raw newline can only occur between tokens, never inside a JSON string.
pub(super) fn one_line(json: &str) -> String {
    json.replace(['\n', '\r'], " ")
}

pub(super) fn quote(text: &str) -> String {
    Value::from(text).to_string()
}

fn member(name: &str, value: Option<&str>) -> String {
    value.map(|value| format!(r#","{name}":{value}"#)).unwrap_or_default()
}
