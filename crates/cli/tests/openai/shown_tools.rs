//! The model of an agent sees the tools as clients of the profile see them: with the texts of the owner, the schemas that rules narrow,
//! and without the arguments that the owner fixes.

use serde_json::json;
use toolhub_testkit::model::{ModelServer, ScriptedReply};

use crate::attacks::respond;
use crate::served_hub::ServedHub;

/// A hub whose model calls `read_sheet` once and then answers.
fn hub(arguments: &'static str, settings: &str) -> ServedHub {
    let model = ModelServer::by_request(move |body| {
        let last = body["messages"].as_array().unwrap().last().unwrap();
        match last["role"].as_str() {
            Some("tool") => ScriptedReply::text("Done.").act(),
            _ => ScriptedReply::text("").call("read_sheet", arguments).act(),
        }
    });
    let settings = format!("{settings}\n[llm]\nurl = \"{}/v1\"\nmodel = \"scripted\"\n", model.url);
    ServedHub::start_with(&settings, Some(model), 0, &[])
}

#[tokio::test]
async fn the_model_sees_the_definitions_of_the_profile() {
    let hub = hub(
        "{}",
        "[profiles.default.overrides.read_sheet]\ndescription = \"Reads the ledger\"\narguments = { row = 9 }\n\
         [[auth.rules]]\neffect = \"allow\"\ntools = [\"read_sheet\"]\n",
    );
    for servers in
        [json!([]), json!([{"type": "mcp", "server_label": "sheets", "require_approval": "never"}])]
    {
        let body = json!({"input": "Read the sheet.", "tools": servers});
        let (status, body) = respond(&hub, &hub.key, body).await;
        assert_eq!(status, 200, "{body}");
    }
    for request in hub.model_requests() {
        let tools = json!([request["tools"], request["messages"][0]]).to_string();
        assert!(tools.contains("Reads the ledger") && !tools.contains("of a table"), "{tools}");
        assert!(!tools.contains("\"row") && !tools.contains("write_sheet"), "{tools}");
    }
    assert_eq!(hub.called_arguments(), [json!({"row": 9}), json!({"row": 9})]);
}

/// The schema that rules narrow is the one that calls are described and checked by.
#[tokio::test]
async fn the_model_sees_narrowed_schemas() {
    let hub = hub(
        r#"{"row": 3}"#,
        "[[auth.rules]]\neffect = \"allow\"\ntools = [\"read_sheet\"]\n\
         arguments = { properties = { row = { maximum = 7 } }, required = [\"row\"] }\n",
    );
    let (status, body) = respond(&hub, &hub.key, json!({"input": "Read row 3 of the sheet."})).await;
    assert_eq!(status, 200, "{body}");
    let requests = hub.model_requests();
    let tools = json!([requests[0]["tools"], requests[0]["messages"][0]]).to_string();
    assert!(tools.contains("\"maximum\":7") || tools.contains("\\\"maximum\\\":7"), "{tools}");
    assert_eq!(hub.called(), ["read_sheet"]);
}
