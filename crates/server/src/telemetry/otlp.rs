//! Spans in the JSON encoding of OTLP 1 (`ExportTraceServiceRequest`): ids are hexadecimal, 64-bit integers are strings.

use std::time::SystemTime;

use serde_json::{Value, json};

use super::span::{AttributeValue, Span};

/// The resource that the spans belong to.
#[derive(Debug)]
pub(super) struct OtlpResource {
    pub(super) service: String,
}

impl OtlpResource {
    /// Serializes spans as one export request.
    pub(super) fn message(&self, spans: &[Span]) -> String {
        let version = env!("CARGO_PKG_VERSION");
        let own = [("service.name", self.service.as_str()), ("service.version", version)];
        let own: Vec<Value> =
            own.iter().map(|(key, text)| json!({"key": key, "value": {"stringValue": text}})).collect();
        let spans: Vec<Value> = spans.iter().map(span_json).collect();
        let scope = json!({"name": "toolhub", "version": version});
        json!({"resourceSpans": [{
            "resource": {"attributes": own},
            "scopeSpans": [{"scope": scope, "spans": spans}],
        }]})
        .to_string()
    }
}

fn span_json(span: &Span) -> Value {
    let attributes: Vec<Value> = span
        .attributes
        .iter()
        .map(|(key, attribute)| json!({"key": key, "value": value(attribute)}))
        .collect();
    let mut span_json = json!({
        "traceId": format!("{:032x}", span.trace),
        "spanId": format!("{:016x}", span.number),
        "name": span.name,
        "kind": span.kind as u8,
        "startTimeUnixNano": nanos(span.began),
        "endTimeUnixNano": nanos(span.ended),
        "attributes": attributes,
        "flags": 1,
    });
    if let Some(parent) = span.parent {
        span_json["parentSpanId"] = format!("{parent:016x}").into();
    }
    if let Some(state) = &span.state {
        span_json["traceState"] = state.as_ref().into();
    }
    if let Some(error) = &span.error {
        span_json["status"] = json!({"code": 2, "message": error});
    }
    span_json
}

fn value(attribute: &AttributeValue) -> Value {
    match attribute {
        AttributeValue::Text(text) => json!({"stringValue": text}),
        AttributeValue::Number(number) => json!({"intValue": number.to_string()}),
        AttributeValue::Flag(flag) => json!({"boolValue": flag}),
        AttributeValue::List(list) => {
            let values: Vec<Value> = list.iter().map(|text| json!({"stringValue": text})).collect();
            json!({"arrayValue": {"values": values}})
        }
    }
}

fn nanos(at: SystemTime) -> String {
    at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos().to_string()
}
