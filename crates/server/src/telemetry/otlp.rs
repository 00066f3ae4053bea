//! Spans in the JSON encoding of OTLP 1 (`ExportTraceServiceRequest`): ids are hexadecimal, 64-bit integers are strings.

use std::time::SystemTime;

use serde_json::{Value, json};

use super::span::{Fact, Span};

/// The resource that the spans belong to.
#[derive(Debug)]
pub(super) struct Resource {
    pub(super) service: String,
}

impl Resource {
    /// Serializes spans as one export request.
    pub(super) fn message(&self, spans: &[Span]) -> String {
        let version = env!("CARGO_PKG_VERSION");
        let own = [("service.name", self.service.as_str()), ("service.version", version)];
        let own: Vec<Value> =
            own.iter().map(|(key, text)| json!({"key": key, "value": {"stringValue": text}})).collect();
        let spans: Vec<Value> = spans.iter().map(written).collect();
        let scope = json!({"name": "toolhub", "version": version});
        json!({"resourceSpans": [{
            "resource": {"attributes": own},
            "scopeSpans": [{"scope": scope, "spans": spans}],
        }]})
        .to_string()
    }
}

fn written(span: &Span) -> Value {
    let facts: Vec<Value> =
        span.facts.iter().map(|(key, fact)| json!({"key": key, "value": value(fact)})).collect();
    let mut written = json!({
        "traceId": format!("{:032x}", span.trace),
        "spanId": format!("{:016x}", span.number),
        "name": span.name,
        "kind": span.kind as u8,
        "startTimeUnixNano": nanos(span.began),
        "endTimeUnixNano": nanos(span.ended),
        "attributes": facts,
        "flags": 1,
    });
    if let Some(parent) = span.parent {
        written["parentSpanId"] = format!("{parent:016x}").into();
    }
    if let Some(state) = &span.state {
        written["traceState"] = state.as_ref().into();
    }
    if let Some(error) = &span.error {
        written["status"] = json!({"code": 2, "message": error});
    }
    written
}

fn value(fact: &Fact) -> Value {
    match fact {
        Fact::Text(text) => json!({"stringValue": text}),
        Fact::Number(number) => json!({"intValue": number.to_string()}),
        Fact::Flag(flag) => json!({"boolValue": flag}),
        Fact::List(list) => {
            let values: Vec<Value> = list.iter().map(|text| json!({"stringValue": text})).collect();
            json!({"arrayValue": {"values": values}})
        }
    }
}

fn nanos(at: SystemTime) -> String {
    at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos().to_string()
}
