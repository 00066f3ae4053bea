//! Reads the envelope of a JSON-RPC message: whether it is a batch, and, only for access records and traces, its id and method. The
//! gateway parses the message independently.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use toolhub_core::TraceContext;

/// Maximum length of a recorded string in characters.
const MAX_RECORDED_CHARS: usize = 200;

/// Returns whether a body is a JSON-RPC batch.
pub(crate) fn is_batch(body: &[u8]) -> bool {
    body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[')
}

/// The envelope of a JSON-RPC message.
#[derive(Debug, Default)]
pub(crate) struct Envelope {
    /// The request id as raw JSON.
    pub(crate) id: Option<String>,
    pub(crate) method: Option<String>,
    /// The tool name of a `tools/call`.
    pub(crate) tool: Option<String>,
    /// The error code of an error response.
    pub(crate) error: Option<i64>,
    /// The trace context in `_meta`.
    pub(crate) trace: Option<TraceContext>,
}

#[derive(Deserialize)]
struct RawEnvelope<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Meta<'a> {
    #[serde(borrow, default)]
    traceparent: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    tracestate: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Failure {
    code: i64,
}

impl Envelope {
    /// Reads the envelope. Returns an empty one if the message is invalid.
    pub(crate) fn read(text: &[u8]) -> Self {
        if text.trim_ascii_start().starts_with(b"[") {
            return Self { method: Some("batch".to_owned()), ..Self::default() };
        }
        let Ok(raw) = serde_json::from_slice::<RawEnvelope<'_>>(text) else { return Self::default() };
        let calls = raw.method.as_deref() == Some("tools/call");
        let params = raw.params;
        let params = params.and_then(|params| serde_json::from_str::<Params<'_>>(params.get()).ok());
        let meta = params.as_ref().and_then(|params| params.meta);
        let meta = meta.and_then(|meta| serde_json::from_str::<Meta<'_>>(meta.get()).ok());
        let trace = meta.and_then(|meta| TraceContext::parse(&meta.traceparent?, meta.tracestate.as_deref()));
        let failure = raw.error.and_then(|error| serde_json::from_str::<Failure>(error.get()).ok());
        Self {
            id: raw.id.map(|id| id.get().to_owned()),
            method: raw.method.as_deref().map(truncate),
            tool: params.filter(|_| calls).and_then(|params| params.name).as_deref().map(truncate),
            error: failure.map(|failure| failure.code),
            trace,
        }
    }
}

fn truncate(word: &str) -> String {
    word.chars().take(MAX_RECORDED_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_envelope_only() {
        let check = |text: &str, method: Option<&str>, tool: Option<&str>| {
            let found = Envelope::read(text.as_bytes());
            assert_eq!((found.method.as_deref(), found.tool.as_deref()), (method, tool), "{text}");
        };
        check(r#"{"id":1,"method":"tools/list","params":{"name":"x"}}"#, Some("tools/list"), None);
        check(
            r#"{"id":1,"method":"tools/call","params":{"name":"e\u0063ho"}}"#,
            Some("tools/call"),
            Some("echo"),
        );
        check(r#"{"id":1,"method":"tools/call","params":[1]}"#, Some("tools/call"), None);
        check(r#" [{"id":1,"method":"ping"}]"#, Some("batch"), None);
        check("no JSON", None, None);
        let answer = Envelope::read(br#"{"id":"a","error":{"code":-32602,"message":"no"}}"#);
        assert_eq!((answer.id.as_deref(), answer.error), (Some("\"a\""), Some(-32602)));
        let long = format!(r#"{{"method":"{}"}}"#, "x".repeat(5_000));
        assert_eq!(
            Envelope::read(long.as_bytes()).method.map(|method| method.len()),
            Some(MAX_RECORDED_CHARS)
        );
    }
}
