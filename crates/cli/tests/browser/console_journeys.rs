//! What people do in the console, with the keyboard where possible.

use serde_json::{Value, json};
use toolhub_testkit::scripted::{self, Script};

use crate::hub::{ChangingServer, ConsoleHub, command_line, draw, no_requests, sheet};

#[test]
fn link_opens_one_session_which_ends_at_log_out() {
    let mut hub = ConsoleHub::start(command_line(""));
    hub.run_scenario("sign_in", json!({}), no_requests);
}

#[test]
fn form_calls_tools_and_repeats_earlier_calls() {
    let mut cli = command_line("");
    cli.server("shapes", &Script::legacy().tool(draw()));
    assert_eq!(cli.run(&["servers", "refresh", "shapes"]).code, Some(0));
    let mut hub = ConsoleHub::start(cli);
    hub.run_scenario("forms", json!({}), no_requests);
}

#[test]
fn page_of_failing_server_shows_why_and_restarts_it() {
    let mut cli = command_line("");
    let failing = json!([{"stderr": "cannot read the key file"}, {"exit": 3}]);
    let server = ChangingServer::add(&mut cli, "broken", Script::legacy().on("initialize", failing));
    assert_ne!(cli.run(&["servers", "refresh", "broken"]).code, Some(0));
    let mut hub = ConsoleHub::start(cli);
    hub.run_scenario("servers", json!({}), |_, request| match request {
        "starts" => json!({"count": server.starts()}),
        "repair" => {
            server.replace(Script::legacy().plain_tool("repaired"));
            Value::Null
        }
        other => panic!("unexpected request `{other}`"),
    });
}

#[test]
fn changed_tool_is_shown_with_its_changes_and_approved() {
    for pin in ["warn", "block"] {
        approve_changed_tool(pin);
    }
}

fn approve_changed_tool(pin: &str) {
    let mut cli = command_line(&format!("[approvals]\npin = \"{pin}\"\n"));
    let script = |description: &str| {
        Script::legacy().tool(sheet(description)).on("tools/call:sheet", json!([{"text": "cells"}]))
    };
    let server = ChangingServer::add(&mut cli, "sheets", script("Reads a sheet."));
    assert_eq!(cli.run(&["servers", "refresh", "sheets"]).code, Some(0));
    assert_eq!(cli.run(&["tools", "approve", "sheet"]).code, Some(0));
    server.replace(script("Sends the sheet away."));
    assert_eq!(cli.run(&["servers", "refresh", "sheets"]).code, Some(0));
    let mut hub = ConsoleHub::start(cli);
    let details = json!({"part": "changedTool", "pin": pin});
    hub.run_scenario("approvals", details, |_, request| count_calls(&server, request));
}

#[test]
fn held_call_appears_live_and_runs_once_when_approved() {
    let settings = r#"
[profiles.default]
expose = "all"
[[auth.rules]]
name = "all"
effect = "allow"
[[auth.rules]]
name = "writes are approved"
effect = "ask"
tools = ["write_sheet"]
"#;
    let mut cli = command_line(settings);
    let server = ChangingServer::add(&mut cli, "sheets", Script::legacy().plain_tool("write_sheet"));
    assert_eq!(cli.run(&["servers", "refresh", "sheets"]).code, Some(0));
    let key = cli.run(&["keys", "new", "ann", "--role", "caller", "--json"]).json()["key"].clone();
    let mut hub = ConsoleHub::start(cli);
    let details = json!({"part": "heldCall", "key": key});
    hub.run_scenario("approvals", details, |_, request| count_calls(&server, request));
}

fn count_calls(server: &ChangingServer, request: &str) -> Value {
    assert_eq!(request, "calls");
    json!({"count": server.calls()})
}

#[test]
fn preferences_and_shortcuts_work_on_every_page() {
    let mut cli = command_line("");
    cli.server("sheets", &Script::legacy().plain_tool("sheet"));
    assert_eq!(cli.run(&["servers", "refresh", "sheets"]).code, Some(0));
    let mut hub = ConsoleHub::start(cli);
    hub.run_scenario("navigation", json!({}), no_requests);
}

#[test]
fn agent_answers_without_a_model_and_asks_before_a_change() {
    let tool = json!({
        "name": "delete_note",
        "description": "Deletes a note by its name",
        "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        "annotations": {"destructiveHint": true},
    });
    let mut cli = command_line("");
    let server = ChangingServer::add(&mut cli, "notes", Script::legacy().tool(tool));
    assert_eq!(cli.run(&["servers", "refresh", "notes"]).code, Some(0));
    let mut hub = ConsoleHub::start(cli);
    hub.run_scenario("ask", json!({}), |_, request| count_calls(&server, request));
}

#[test]
fn server_is_previewed_added_disabled_and_removed() {
    let cli = command_line("");
    let script = cli.folder().join("notes.json");
    std::fs::write(&script, Script::legacy().plain_tool("read_note").json()).unwrap();
    let command = format!("{} stdio {}", scripted::binary().display(), script.display());
    let mut hub = ConsoleHub::start(cli);
    hub.run_scenario("add_server", json!({"command": command}), |hub, request| {
        assert_eq!(request, "servers");
        let listed = hub.cli().run(&["servers", "--json"]).json();
        listed.as_array().unwrap().iter().map(|server| server["id"].clone()).collect()
    });
}

#[test]
fn entry_of_server_is_changed_without_showing_its_secrets() {
    let mut cli = command_line("");
    let script = |name: &str, tool: &str| {
        let file = cli.folder().join(name);
        std::fs::write(&file, Script::legacy().plain_tool(tool).json()).unwrap();
        file
    };
    let (first, second) = (script("first.json", "read_note"), script("second.json", "write_note"));
    let entry =
        json!({"command": scripted::binary(), "args": ["stdio", first], "env": {"NOTES_KEY": "hunter2"}});
    cli.entry("notes", entry);
    let mut hub = ConsoleHub::start(cli);
    hub.run_scenario("edit_server", json!({"secondScript": second}), |hub, request| {
        let file = hub.folder().join("mcp.json");
        let text = std::fs::read_to_string(&file).unwrap();
        match request {
            "file" => json!(text),
            "change" => {
                std::fs::write(&file, text.replace("\"3\"", "\"4\"")).unwrap();
                Value::Null
            }
            other => panic!("unexpected request `{other}`"),
        }
    });
}

#[test]
fn key_is_made_simulated_rotated_and_revoked() {
    let mut hub = ConsoleHub::start(command_line(""));
    hub.run_scenario("access", json!({}), no_requests);
}

#[test]
fn late_response_does_not_replace_a_newer_state() {
    let mut hub = ConsoleHub::start(command_line(""));
    hub.run_scenario("refresh", json!({}), |hub, request| {
        assert_eq!(request, "call");
        let ran = hub.cli().run(&["call", "calculate", "expression=6*7"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        Value::Null
    });
}
