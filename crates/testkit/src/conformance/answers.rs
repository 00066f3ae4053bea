//! Responses to requests of the suite's servers: form defaults, no roots, a fixed sampling text.

use serde_json::{Map, Value, json};
use toolhub::{ClientHandler, HandlerAnswer, RawJson};
use toolhub_core::{BoxFuture, ServerId};

/// A user who accepts everything and changes nothing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answers;

impl ClientHandler for Answers {
    fn capabilities(&self) -> RawJson {
        RawJson::from(json!({"elicitation": {"form": {}}, "roots": {}, "sampling": {}}))
    }

    fn request<'a>(
        &'a self,
        _: &'a ServerId,
        method: String,
        params: Option<RawJson>,
    ) -> BoxFuture<'a, HandlerAnswer> {
        Box::pin(async move {
            let params = params.map_or(Value::Null, |params| params.value());
            let answer = match method.as_str() {
                "elicitation/create" => {
                    json!({"action": "accept", "content": defaults(&params["requestedSchema"])})
                }
                "roots/list" => json!({"roots": []}),
                "sampling/createMessage" => {
                    json!({"role": "assistant", "model": "none", "content": {"type": "text", "text": "yes"}})
                }
                _ => return Err((-32601, format!("method not found: {method}"))),
            };
            Ok(RawJson::from(answer))
        })
    }
}

fn defaults(schema: &Value) -> Map<String, Value> {
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties.filter_map(|(name, property)| Some((name.clone(), property.get("default")?.clone()))).collect()
}
