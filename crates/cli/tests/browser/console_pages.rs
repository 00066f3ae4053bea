//! Every page in both languages, both themes and two widths: accessibility, errors, the content policy and overflow.

use serde_json::json;
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

#[test]
fn pages_have_no_problems() {
    let mut cli = command_line(SETTINGS);
    let script = |description: &str| {
        Script::legacy()
            .tool(draw())
            .tool(sheet(description))
            .plain_tool("write_sheet")
            .plain_tool("fail")
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
        "",
        "tools",
        "tools?q=add+two+numbers",
        "tools?source=sheets",
        "tools/calculate",
        "tools/draw",
        "tools/sheet",
        "tools/none",
        "servers",
        "servers/sheets",
        "servers/broken",
        "calls",
        "calls?tool=none",
        "waiting",
        "waiting?all=true",
        "ask",
        "skills",
        "profiles",
        "clients",
        "access",
        "audit",
        "audit?kind=call",
        "nothing/here/at/all",
    ];
    let details =
        json!({"key": key, "heldTool": "write_sheet", "paths": paths, "bareLinks": ["tools", "open/x"]});
    hub.run_scenario("pages", details, no_requests);
}

#[test]
fn pages_of_empty_hub_have_no_problems() {
    let mut hub = ConsoleHub::start(command_line(""));
    let paths = [
        "",
        "ask",
        "tools",
        "tools?q=zzzzzz",
        "servers",
        "calls",
        "waiting",
        "skills",
        "profiles",
        "clients",
        "access",
        "audit",
    ];
    hub.run_scenario("pages", json!({"paths": paths, "bareLinks": [], "prefix": "empty-hub-"}), no_requests);
}

/// The other tests could not fail if the checks found nothing.
#[test]
fn checks_find_problems() {
    let mut hub = ConsoleHub::start(command_line(""));
    hub.run_scenario("controls", json!({}), no_requests);
}
