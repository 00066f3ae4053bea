//! Approvals of calls that reach a tool in an unusual way: through `call_tool`, with arguments that are valid only after a
//! correction, or at one of several servers that offer the tool under one name.

use serde_json::{Value, json};
use toolhub_testkit::model::{ModelServer, ScriptedReply};

use crate::attacks::{approve, respond};
use crate::served_hub::ServedHub;

/// A hub whose model makes one call first, and then repeats its result.
fn hub(tool: &'static str, arguments: &'static str, settings: &str, further: &[&str]) -> ServedHub {
    let model = ModelServer::by_request(move |body| {
        let last = body["messages"].as_array().unwrap().last().unwrap();
        match last["role"].as_str() {
            Some("tool") => ScriptedReply::text(&format!("It says: {}", last["content"])).act(),
            _ => ScriptedReply::text("").call(tool, arguments).act(),
        }
    });
    let settings = format!("{settings}\n[llm]\nurl = \"{}/v1\"\nmodel = \"scripted\"\n", model.url);
    ServedHub::start_with(&settings, Some(model), 0, further)
}

fn items<'a>(body: &'a Value, kind: &str) -> Vec<&'a Value> {
    body["output"].as_array().unwrap().iter().filter(|item| item["type"] == kind).collect()
}

/// The approval would be asked for `call_tool`, which needs none, and the corrected call would run.
#[tokio::test]
async fn a_call_that_is_valid_only_after_a_correction_does_not_skip_its_approval() {
    for arguments in [
        r#"{"name": ["write_sheet"], "arguments": {"row": 7}}"#,
        r#"{"name": "write_sheet", "arguments": "{\"row\":7}"}"#,
        r#"{"name": "write_sheet", "arguments": [{"row": 7}]}"#,
        r#"{"tool": "write_sheet", "arguments": {"row": 7}}"#,
        r#"{"name": "write_sheet", "arguments": {"row": 7}, "server": "sheets"}"#,
        r#"{"name": "write_sheet", "arguments": {"row": 7}, "source": ["sheets"]}"#,
        r#"{"name": "call_tool", "arguments": {"name": "write_sheet", "arguments": "{\"row\":7}"}}"#,
        r#""{\"name\": \"write_sheet\", \"arguments\": {\"row\": 7}}""#,
    ] {
        let hub = hub("call_tool", arguments, "", &[]);
        let (status, body) = respond(&hub, &hub.key, json!({"input": "Write row 7."})).await;
        assert_eq!(status, 200, "{arguments}: {body}");
        assert!(hub.called().is_empty(), "{arguments}: {body}");
        // It may be refused, or be asked for under the name of the tool that it reaches.
        for asked in items(&body, "mcp_approval_request") {
            assert_eq!(
                (&asked["name"], &asked["server_label"]),
                (&json!("write_sheet"), &json!("sheets")),
                "{arguments}: {body}"
            );
        }
    }
}

#[tokio::test]
async fn an_approved_call_through_call_tool_runs_once() {
    let hub = hub("call_tool", r#"{"name": "write_sheet", "arguments": {"row": 7}}"#, "", &[]);
    let (_, parked) = respond(&hub, &hub.key, json!({"input": "Write row 7."})).await;
    let asked = items(&parked, "mcp_approval_request");
    assert_eq!(asked.len(), 1, "{parked}");
    assert_eq!((&asked[0]["name"], &asked[0]["server_label"]), (&json!("write_sheet"), &json!("sheets")));
    assert_eq!(
        asked[0]["arguments"].as_str().map(|text| text.replace(' ', "")),
        Some(r#"{"row":7}"#.to_owned())
    );
    assert!(hub.called().is_empty(), "{parked}");
    let answer = json!({"input": approve(&asked[0]["id"]), "previous_response_id": parked["id"]});
    for status in [200, 400] {
        let (answered, body) = respond(&hub, &hub.key, answer.clone()).await;
        assert_eq!(answered, status, "{body}");
        assert_eq!(hub.called(), ["write_sheet"], "{body}");
    }
}

/// The owner has declared both servers interchangeable: the request names one of them, and the approved call goes there.
#[tokio::test]
async fn an_approval_is_for_one_of_several_servers_that_offer_the_tool() {
    let settings = "[routing]\nequivalent = [[\"sheets\", \"twin\"]]\n";
    let hub = hub("write_sheet", r#"{"row": 7}"#, settings, &["twin"]);
    let calls = || [hub.called(), hub.called_at("twin")];
    let (status, parked) = respond(&hub, &hub.key, json!({"input": "Write row 7."})).await;
    assert_eq!(status, 200, "{parked}");
    let asked = items(&parked, "mcp_approval_request");
    assert_eq!(asked.len(), 1, "{parked}");
    assert!(calls().concat().is_empty(), "{parked}");
    let server = asked[0]["server_label"].as_str().unwrap();
    let answer = json!({"input": approve(&asked[0]["id"]), "previous_response_id": parked["id"]});
    let (status, body) = respond(&hub, &hub.key, answer.clone()).await;
    assert_eq!(status, 200, "{body}");
    let expected =
        ["sheets", "twin"].map(|one| if one == server { vec!["write_sheet".to_owned()] } else { Vec::new() });
    assert_eq!(calls(), expected, "{body}");
    assert_eq!(items(&body, "mcp_call")[0]["server_label"], server, "{body}");
    // It is used up, and the same call is asked for anew.
    assert_eq!(respond(&hub, &hub.key, answer).await.0, 400);
    let (_, again) = respond(&hub, &hub.key, json!({"input": "Write row 7."})).await;
    assert_eq!(items(&again, "mcp_approval_request").len(), 1, "{again}");
    assert_eq!(calls(), expected);
}

/// Servers that are not interchangeable: the call must name one, and the approval is for that one.
#[tokio::test]
async fn an_approval_is_for_the_server_that_the_call_names() {
    for (tool, server) in [("sheets__write_sheet", "sheets"), ("twin__write_sheet", "twin")] {
        let hub = hub(tool, r#"{"row": 7}"#, "", &["twin"]);
        let (_, parked) = respond(&hub, &hub.key, json!({"input": "Write row 7."})).await;
        let asked = items(&parked, "mcp_approval_request");
        assert_eq!(asked.len(), 1, "{parked}");
        assert_eq!(asked[0]["server_label"], server, "{parked}");
        let answer = json!({"input": approve(&asked[0]["id"]), "previous_response_id": parked["id"]});
        let (status, body) = respond(&hub, &hub.key, answer).await;
        assert_eq!(status, 200, "{body}");
        let called = |one: &str| if one == "sheets" { hub.called() } else { hub.called_at(one) };
        for one in ["sheets", "twin"] {
            assert_eq!(called(one).len(), usize::from(one == server), "{tool} at {one}: {body}");
        }
    }
}
