//! Keys of `[serve]` and `[profiles]` that change the responses to a client.

use serde_json::{Value, json};
use toolhub_testkit::scripted::Script;

use crate::raw_client::{ERAS, RawClient, http};
use crate::serving::Serving;

fn counting() -> Script {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    Script::both().tool(json!({"name": "count", "inputSchema": schema}))
}

#[tokio::test]
async fn rejects_body_longer_than_body_bytes() {
    let serving = Serving::before(&counting(), "[serve]\nbody_bytes = 4096\n");
    for (length, expect) in [(1_000, 200), (4_500, 413), (100_000, 413)] {
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "x".repeat(length), "version": "1"}
        });
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
        let answer = http()
            .post(serving.url())
            .header("accept", "application/json, text/event-stream")
            .json(&body)
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status().as_u16(), expect, "{length} bytes");
    }
}

/// With `coerce_arguments` a numeric string is sent as a number; without it the call is refused.
#[tokio::test]
async fn coerces_arguments_only_if_enabled() {
    for (settings, is_mended) in [("", false), ("[profiles.default]\ncoerce_arguments = true\n", true)] {
        let serving = Serving::before(&counting(), settings);
        for era in ERAS {
            let client = RawClient::connect(&serving.url(), era).await;
            let answer = client.call("count", r#"{"n":"5"}"#).await;
            let result: Value = match &answer.last().result {
                Some(result) => serde_json::from_str(result.get()).unwrap(),
                None => answer.last().error.clone().unwrap(),
            };
            let has_failed = answer.last().error.is_some() || result["isError"] == json!(true);
            assert_eq!(!has_failed, is_mended, "{era:?}: {result}");
            assert_eq!(result.to_string().contains("{\\\"n\\\":5}"), is_mended, "{era:?}: {result}");
        }
    }
}
