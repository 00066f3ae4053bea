//! The console of a hub that restarts, and behind a reverse proxy with a path prefix.

use serde_json::{Value, json};
use toolhub_testkit::scripted::Script;

use crate::hub::{ConsoleHub, command_line, no_requests};

#[test]
fn pages_update_after_restart_of_hub() {
    let mut hub = ConsoleHub::start(command_line(""));
    hub.run_scenario("restart", json!({}), |hub, request| {
        match request {
            "stop" => hub.stop(),
            "kill" => hub.kill(),
            "start" => hub.start_again(),
            "call" => {
                let ran = hub.cli().run(&["call", "calculate", "expression=6*7"]);
                assert_eq!(ran.code, Some(0), "{ran:?}");
            }
            other => panic!("unexpected request `{other}`"),
        }
        Value::Null
    });
}

#[test]
fn console_works_below_a_path_prefix() {
    let mut cli = command_line("");
    cli.server("sheets", &Script::legacy().plain_tool("sheet"));
    assert_eq!(cli.run(&["servers", "refresh", "sheets"]).code, Some(0));
    let mut hub = ConsoleHub::start(cli);
    hub.run_scenario("path_prefix", json!({}), no_requests);
}
