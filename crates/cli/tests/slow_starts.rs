//! Servers that start slowly are connected in the right era.

#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use serde_json::json;
use toolhub_testkit::CommandLine;
use toolhub_testkit::scripted::{Journal, Script};

/// The connect timeout: if the probe is unanswered after half of it, `initialize` follows.
const SETTINGS: &str = "[[servers]]\nid = \"s\"\nconnect_timeout = \"8s\"\n";

fn list_server(script: &Script) -> (CommandLine, Journal) {
    let mut cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    let journal = cli.folder().join("journal");
    cli.server("s", &script.clone().plain_tool("echo").journal(&journal));
    std::fs::write(cli.folder().join("toolhub.toml"), SETTINGS).unwrap();
    let ran = cli.run(&["call", "echo", "n:=1"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "{\"n\":1}\n"), "{ran:?}");
    let seen = Journal::read(&journal);
    assert_eq!(seen.events("start").len(), 1, "a process that lives is not started again");
    assert_eq!(seen.count_method("initialize"), 1, "{:?}", seen.methods());
    (cli, seen)
}

fn era(cli: &CommandLine) -> serde_json::Value {
    cli.run(&["servers", "list", "--json"]).json()[0]["era"].clone()
}

/// The response to `server/discover` arrives after `initialize` was sent.
#[test]
fn uses_late_probe_response() {
    for script in [Script::modern(), Script::both()] {
        let (cli, seen) = list_server(&script.set("start_delay_ms", 5000));
        assert_eq!(seen.count_method("server/discover"), 1);
        assert_eq!(era(&cli), "modern");
    }
}

/// The probe is lost, and the rejection of `initialize` lists the modern version.
#[test]
fn error_with_modern_version_selects_modern_era() {
    let first_is_lost = json!([[{"ignore": true}], [{"default": true}]]);
    // The first answers the ping immediately, the second answers nothing in time.
    for script in [Script::modern(), Script::modern().set("start_delay_ms", 5000)] {
        let (cli, seen) = list_server(&script.on("server/discover", &first_is_lost));
        assert_eq!(seen.count_method("server/discover"), 2);
        assert_eq!(era(&cli), "modern");
    }
}

/// A server that starts slowly and answers `initialize` but not the probe may be of either era: the era is not recorded.
#[test]
fn does_not_cache_uncertain_era() {
    let lost = json!([[{"ignore": true}], [{"default": true}]]);
    let script = Script::both().set("start_delay_ms", 5000).on("server/discover", lost);
    let (cli, _) = list_server(&script.on("ping", json!([{"delay_ms": 3000}])));
    assert_eq!(era(&cli), json!(null));
    // A legacy server that rejects the probe is unambiguous.
    let (cli, _) = list_server(&Script::legacy().set("start_delay_ms", 5000));
    assert_eq!(era(&cli), "legacy");
}
