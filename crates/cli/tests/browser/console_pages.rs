//! Every page in both languages, both themes and two widths: accessibility, errors, the content policy and overflow.

use serde_json::{Map, Value, json};
use toolhub_testkit::scripted::Script;

use crate::hub::{ChangingServer, ConsoleHub, command_line, draw, no_requests, sheet};

const SETTINGS: &str = r#"
[audit]
enabled = true
[approvals]
pin = "warn"
[[auth.rules]]
name = "all"
effect = "allow"
[[auth.rules]]
name = "writes are approved"
effect = "ask"
tools = ["write_sheet"]
"#;

/// Paths below the console with the expected status.
fn statuses(paths: &[(&str, u16)]) -> Value {
    paths.iter().map(|(path, status)| ((*path).to_owned(), json!(status))).collect::<Map<_, _>>().into()
}

/// A tool with very many parameters.
fn settings_tool() -> Value {
    let parameter = |number: usize| {
        let description = format!("Value of the setting number {number}.");
        (format!("setting_{number}"), json!({"type": "string", "description": description}))
    };
    let parameters: Map<String, Value> = (0..200).map(parameter).collect();
    let schema =
        json!({"type": "object", "properties": parameters, "required": ["setting_3", "setting_150"]});
    json!({"name": "configure", "description": "Sets many settings at once.", "inputSchema": schema})
}

#[test]
fn pages_have_no_problems() {
    let mut cli = command_line(SETTINGS);
    let script = |description: &str| {
        Script::legacy()
            .tool(draw())
            .tool(sheet(description))
            .plain_tool("write_sheet")
            .plain_tool("fail")
            .tool(settings_tool())
            .on("tools/call:fail", json!([{"tool_error": "no such sheet: Budget 2026"}]))
            .set("stderr", ["reading the configuration"])
    };
    let sheets = ChangingServer::add(&mut cli, "sheets", script("Reads a sheet."));
    let broken = Script::legacy().on("initialize", json!([{"stderr": "no key file"}, {"exit": 3}]));
    cli.server("broken", &broken);
    let key = cli.run(&["keys", "new", "ann", "--json"]).json()["key"].clone();
    for args in [
        &["servers", "refresh", "sheets"][..],
        &["tools", "approve", "--server", "sheets"],
        &["call", "calculate", "expression=6*7"],
    ] {
        let ran = cli.run(args);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    // These fail on purpose.
    cli.run(&["call", "fail"]);
    cli.run(&["servers", "refresh", "broken"]);
    sheets.replace(script("Sends the sheet away."));
    assert_eq!(cli.run(&["servers", "refresh", "sheets"]).code, Some(0));
    let mut hub = ConsoleHub::start(cli);
    let paths = [
        ("", 200),
        ("tools", 200),
        ("tools?q=add+two+numbers", 200),
        ("tools?source=sheets", 200),
        ("tools/calculate", 200),
        ("tools/draw", 200),
        ("tools/sheet", 200),
        ("tools/configure", 200),
        ("tools/none", 404),
        ("servers", 200),
        ("servers/sheets", 200),
        ("servers/broken", 200),
        ("calls", 200),
        ("calls?tool=none", 200),
        ("waiting", 200),
        ("waiting?all=true", 200),
        ("ask", 200),
        ("skills", 200),
        ("profiles", 200),
        ("clients", 200),
        ("cluster", 200),
        ("access", 200),
        ("audit", 200),
        ("settings", 200),
        ("audit?kind=call", 200),
        ("nothing/here/at/all", 404),
    ];
    let details = json!({
        "key": key,
        "heldTool": "write_sheet",
        "paths": statuses(&paths),
        "pathsWithoutSession": statuses(&[("tools", 401), ("open/x", 403)]),
    });
    hub.run_scenario("pages", details, no_requests);
}

#[test]
fn pages_of_empty_hub_have_no_problems() {
    let mut hub = ConsoleHub::start(command_line(""));
    let paths = [
        ("", 200),
        ("ask", 200),
        ("tools", 200),
        ("tools?q=zzzzzz", 200),
        ("servers", 200),
        ("calls", 200),
        ("waiting", 200),
        ("skills", 200),
        ("profiles", 200),
        ("clients", 200),
        ("cluster", 200),
        ("access", 200),
        ("audit", 200),
        ("settings", 200),
    ];
    let details = json!({"paths": statuses(&paths), "pathsWithoutSession": {}, "prefix": "empty-hub-"});
    hub.run_scenario("pages", details, no_requests);
}

/// The other tests could not fail if the checks found nothing.
#[test]
fn checks_find_problems() {
    let mut hub = ConsoleHub::start(command_line(""));
    hub.run_scenario("controls", json!({}), no_requests);
}
