//! Clients that others wrote, in every era and over every transport they have, through the gateway to one server that
//! tells its progress and asks questions, and to one that never answers.
//!
//! | client | stdio | Streamable HTTP | HTTP+SSE |
//! |---|---|---|---|
//! | Python SDK 2.3.0 | both | both | legacy |
//! | FastMCP 4.1.2 | both | both | legacy |
//! | TypeScript SDK 1.32.2 | legacy | legacy | legacy |
//! | TypeScript SDK 2.4.0 | modern | modern | has no such era |
//! | rmcp 3.8 (`rust_sdk.rs`) | both | both | has no such transport |
//! | inspector 2.12.0 | legacy | both | legacy |

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use toolhub_testkit::CommandLine;

use crate::serving::{Serving, await_cancelled, fixture, holding, hub};

/// The folder with the peers.
fn peers() -> PathBuf {
    let named = std::env::var_os("TOOLHUB_PEERS").map(PathBuf::from);
    let beside = || std::env::current_exe().unwrap().ancestors().nth(3).unwrap().join("peers");
    let folder = named.unwrap_or_else(beside);
    assert!(folder.is_dir(), "no peers in {}: run `cargo xtask peers` first", folder.display());
    folder
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gateway/clients").join(name)
}

/// A hub with the fixture server and one that holds its calls.
pub(crate) fn hub_with_both() -> (CommandLine, PathBuf) {
    let mut cli = hub("[profiles.default]\nservers = [\"fixture\", \"s\"]\nexpose = \"all\"\n");
    let journal = cli.folder().join("journal");
    cli.entry("fixture", fixture());
    cli.server("s", &holding(&journal));
    (cli, journal)
}

/// The ways to a gateway.
const TRANSPORTS: [&str; 3] = ["http", "sse", "stdio"];

/// Has a client go through everything over one transport; what it reports.
fn report(client: &mut Command, transport: &str) -> Value {
    let (cli, journal) = hub_with_both();
    let ran = match transport {
        "stdio" => {
            let serve = cli.command(&["serve", "--stdio"]);
            client.arg(serve.get_program()).args(serve.get_args());
            let ran = with_place(client, &cli).output().unwrap();
            await_cancelled(&journal, 1);
            ran
        }
        _ => {
            let serving = Serving::start(cli);
            let path = if transport == "sse" { "sse" } else { "mcp" };
            client.arg(format!("{}/{path}", serving.root));
            let ran = with_place(client, &serving.cli).output().unwrap();
            await_cancelled(&journal, 1);
            ran
        }
    };
    let (said, words) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{transport}: {said}\n{words}");
    serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error} in {said}\n{words}"))
}

/// The folder and the environment of the hub: a client that starts it hands them on. No proxy is on the way.
fn with_place<'a>(client: &'a mut Command, cli: &CommandLine) -> &'a mut Command {
    let folder = cli.folder();
    client.current_dir(folder).env_clear().env("HOME", folder).env("TOOLHUB_HOME", folder.join("home"));
    client.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("PYTHONUTF8", "1")
}

/// What every client must report.
fn check(who: &str, report: &Value) {
    let tools = report["tools"].as_array().unwrap();
    for expected in ["greet", "test_sampling", "hold"] {
        assert!(tools.contains(&json!(expected)), "{who}: no `{expected}` in {tools:?}");
    }
    let mut told = report.clone();
    told.as_object_mut().unwrap().retain(|key, _| key != "tools" && key != "version");
    let expected = json!({
        "called": "Hello, 世界!",
        "unknown": -32602,
        "progress": [0, 50, 100],
        "sampled": "LLM response: heard: hello",
        "elicited": "User response: action=\"accept\", content={\"username\":\"ada\",\"email\":\"ada@example.org\"}",
        "cancelled": true,
        "after": "Hello, again!",
    });
    assert_eq!(normal(&told), normal(&expected), "{who}");
}

/// Whole numbers however they are written, and members in any order.
fn normal(report: &Value) -> Value {
    let mut report = report.clone();
    let numbers = report["progress"].as_array().unwrap().iter();
    report["progress"] = numbers.map(|number| json!(number.as_f64())).collect();
    report.sort_all_objects();
    report
}

fn python(peer: &str, file: &str) -> Command {
    let mut command = Command::new(peers().join(peer).join("bin/python"));
    command.arg(script(file));
    command
}

#[test]
fn the_python_sdk_in_both_eras_over_all_three() {
    for transport in TRANSPORTS {
        for (mode, version) in [("auto", "2026-07-28"), ("legacy", "2025-11-25")] {
            let told = report(python("python-sdk", "python_sdk.py").args([mode, transport]), transport);
            check(&format!("Python SDK, {mode}, {transport}"), &told);
            // Over HTTP+SSE the newer revision can be spoken too, since it is a stream of messages each way.
            assert_eq!(told["version"], version, "{mode} {transport}");
        }
    }
}

#[test]
fn fastmcp_in_both_eras_over_all_three() {
    for transport in TRANSPORTS {
        for mode in ["auto", "legacy"] {
            let told = report(python("fastmcp", "fastmcp_client.py").args([mode, transport]), transport);
            check(&format!("FastMCP, {mode}, {transport}"), &told);
        }
    }
}

#[test]
fn the_typescript_sdk_over_all_three() {
    let sdk = peers().join("typescript-sdk/node_modules/@modelcontextprotocol/sdk");
    for transport in TRANSPORTS {
        let mut node = Command::new("node");
        node.arg(script("typescript_sdk.mjs")).arg(&sdk).arg(transport);
        check(&format!("TypeScript SDK, {transport}"), &report(&mut node, transport));
    }
}
