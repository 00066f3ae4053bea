//! A team behind one gateway: principals with different roles and real clients (Python SDK, TypeScript SDKs, inspector), revoked
//! keys, and the login of the clients themselves.

use std::fs::OpenOptions;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolhub_testkit::CommandLine;
use toolhub_testkit::identity_provider::IdentityProvider;
use toolhub_testkit::peers::{node, peers};
use toolhub_testkit::scripted::{Journal, Script};

use crate::identity_provider::{ProtectedGateway, ProtectedSettings, await_history};
use crate::raw_client::{ERAS, Era, RawClient, http};
use crate::serving::{Serving, TEST_TIMEOUT, hub};

/// A server whose changing calls are held for approval.
pub(crate) const HOLDING: &str = r#"
[profiles.default]
servers = ["s"]
expose = "all"
[[auth.rules]]
name = "all"
effect = "allow"
servers = ["s"]
[[auth.rules]]
name = "writes are approved"
effect = "ask"
tools = ["write_sheet"]
"#;

/// How long a revoked key may still be accepted, and a stream stay open.
const REVOCATION_TIMEOUT: Duration = Duration::from_secs(8);
/// How long a client may run.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(120);

const SETTINGS: &str = r#"
[profiles.default]
servers = ["s"]
expose = "all"
[profiles.ops]
servers = ["s"]
expose = "all"
[[auth.rules]]
name = "viewers see"
effect = "allow"
roles = ["viewer"]
tools = ["read_sheet", "write_sheet"]
[[auth.rules]]
name = "callers read"
effect = "allow"
roles = ["caller"]
profiles = ["default"]
tools = ["read_*"]
[[auth.rules]]
name = "operations delete"
effect = "allow"
principals = ["key:ops"]
profiles = ["ops"]
tools = ["delete_sheet"]
[[auth.rules]]
name = "owners"
effect = "allow"
roles = ["owner"]
servers = ["s"]
"#;

pub(crate) fn sheets() -> Script {
    Script::both().plain_tool("read_sheet").plain_tool("write_sheet").plain_tool("delete_sheet")
}

/// A key that `toolhub keys new` makes.
pub(crate) struct NewKey {
    pub(crate) name: &'static str,
    pub(crate) options: &'static [&'static str],
}

const TEAM: [NewKey; 4] = [
    NewKey { name: "viewer", options: &["--role", "viewer"] },
    NewKey { name: "caller", options: &["--role", "caller", "--profile", "default"] },
    NewKey { name: "ops", options: &["--role", "caller", "--profile", "ops"] },
    NewKey { name: "owner", options: &["--role", "owner"] },
];

pub(crate) fn new_key(cli: &CommandLine, key: &NewKey) -> String {
    let made = cli.run(&[&["keys", "new", key.name, "--json"], key.options].concat());
    made.json()["key"].as_str().unwrap_or_else(|| panic!("{made:?}")).to_owned()
}

/// A gateway with the server `s`, these settings and keys. Also returns the journal of the server and the keys.
pub(crate) fn team(settings: &str, keys: &[NewKey]) -> (Serving, PathBuf, Vec<String>) {
    let mut cli = hub(settings);
    let journal = cli.folder().join("journal");
    cli.server("s", &sheets().journal(&journal));
    let keys = keys.iter().map(|key| new_key(&cli, key)).collect();
    (Serving::start(cli), journal, keys)
}

/// A real client.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RealClient {
    Python,
    TypeScript,
}

impl RealClient {
    /// Starts it with these details, which are described in its script.
    pub(crate) fn start(self, folder: &Path, details: &Value) -> Child {
        let script =
            |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gateway/clients").join(name);
        let mut command = match self {
            Self::Python => {
                let mut python = Command::new(peers().join("python-sdk/bin/python"));
                python.arg(script("team_client.py"));
                python
            }
            Self::TypeScript => {
                let mut node = Command::new("node");
                node.arg(script("team_client.mjs")).arg(peers().join("typescript-sdk/node_modules"));
                node
            }
        };
        let errors = OpenOptions::new().create(true).append(true).open(folder.join("client-stderr")).unwrap();
        command.arg(details.to_string()).current_dir(folder).env_clear().env("HOME", folder);
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("PYTHONUTF8", "1");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors).spawn().unwrap()
    }

    /// Runs it and returns its report.
    pub(crate) fn run(self, folder: &Path, details: &Value) -> Value {
        report(self.start(folder, details), folder)
    }
}

/// Waits for a client and returns the last line of its output. A client that does not end is killed.
pub(crate) fn report(mut child: Child, folder: &Path) -> Value {
    let since = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if since.elapsed() > CLIENT_TIMEOUT {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = child.wait_with_output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let last = stdout.lines().last().unwrap_or_default();
    let stderr = || std::fs::read_to_string(folder.join("client-stderr")).unwrap_or_default();
    serde_json::from_str(last).unwrap_or_else(|_| panic!("{:?}: {stdout}\n{}", output.status, stderr()))
}

/// What a client gets for a call.
#[derive(Debug, PartialEq)]
enum Outcome {
    Ran,
    /// The tool is visible, and may not be called.
    Refused,
    /// Like a tool that does not exist.
    Unknown,
}

fn outcome(call: &Value) -> Outcome {
    let text = call["text"].as_str().unwrap_or_default();
    if call["code"] == -32602 && call["message"].as_str().unwrap_or_default().contains("Unknown tool: ") {
        Outcome::Unknown
    } else if call["error"] == true && text.starts_with("this call is not allowed (reference ") {
        Outcome::Refused
    } else {
        assert!(call["error"] == false && text == r#"{"row":1}"#, "{call}");
        Outcome::Ran
    }
}

/// What one principal of the team may do.
struct Expected {
    profile: Option<&'static str>,
    tools: &'static [&'static str],
    /// The outcomes of `read_sheet`, `write_sheet`, `delete_sheet` and a tool that does not exist.
    outcomes: [Outcome; 4],
}

/// In the order of `TEAM`.
const EXPECTED: [Expected; 4] = {
    use Outcome::{Ran, Refused, Unknown};
    [
        Expected {
            profile: None,
            tools: &["read_sheet", "write_sheet"],
            outcomes: [Refused, Refused, Unknown, Unknown],
        },
        Expected { profile: None, tools: &["read_sheet"], outcomes: [Ran, Unknown, Unknown, Unknown] },
        Expected {
            profile: Some("ops"),
            tools: &["delete_sheet"],
            outcomes: [Unknown, Unknown, Ran, Unknown],
        },
        Expected {
            profile: None,
            tools: &["delete_sheet", "read_sheet", "write_sheet"],
            outcomes: [Ran, Ran, Ran, Unknown],
        },
    ]
};

const CALLED: [&str; 4] = ["read_sheet", "write_sheet", "delete_sheet", "no_such_tool"];

fn url_of(serving: &Serving, expected: &Expected) -> String {
    expected.profile.map_or_else(|| serving.url(), |profile| format!("{}/{profile}", serving.url()))
}

/// All four at the same time through one gateway.
fn check_team(client: RealClient, mode: &str) {
    let (serving, journal, keys) = team(SETTINGS, &TEAM);
    let calls: Vec<Value> = CALLED.iter().map(|tool| json!([tool, {"row": 1}])).collect();
    let running: Vec<Child> = EXPECTED
        .iter()
        .zip(&keys)
        .map(|(expected, key)| {
            let details =
                json!({"url": url_of(&serving, expected), "mode": mode, "key": key, "calls": calls});
            client.start(serving.folder(), &details)
        })
        .collect();
    for ((child, expected), key) in running.into_iter().zip(&EXPECTED).zip(&TEAM) {
        let report = report(child, serving.folder());
        let who = format!("{client:?} {mode} {}", key.name);
        assert_eq!(report["tools"], json!(expected.tools), "{who}");
        let outcomes: Vec<Outcome> = report["calls"].as_array().unwrap().iter().map(outcome).collect();
        assert_eq!(outcomes, expected.outcomes, "{who}: {report}");
        for (tool, call) in CALLED.iter().zip(report["calls"].as_array().unwrap()) {
            let message = call["message"].as_str().unwrap_or_default();
            let hidden = CALLED.iter().filter(|name| !expected.tools.contains(name) && *name != tool);
            assert!(hidden.clone().all(|name| !message.contains(name)), "{who}: a hidden name: {message}");
        }
    }
    check_records(&serving, &journal);
}

/// Exactly the permitted calls reached the server, each with its principal and its rule.
fn check_records(serving: &Serving, journal: &Path) {
    assert_eq!(Journal::read(journal).count_method("tools/call"), 5);
    for (key, rule, tools) in [
        ("viewer", "", &[][..]),
        ("caller", "callers read", &["read_sheet"]),
        ("ops", "operations delete", &["delete_sheet"]),
        ("owner", "owners", &["delete_sheet", "read_sheet", "write_sheet"]),
    ] {
        let options = ["--status", "succeeded", "--by", &format!("key:{key}")];
        let calls = await_history(serving.cli(), &options, tools.len());
        let mut found: Vec<_> = calls.iter().map(|call| call["tool"].as_str().unwrap()).collect();
        found.sort_unstable();
        assert_eq!(found, tools, "{key}: {calls:?}");
        assert!(calls.iter().all(|call| call["rule"] == rule), "{key}: {calls:?}");
    }
}

#[test]
fn python_sdk_of_each_role_lists_and_calls_what_rules_allow() {
    for mode in ["auto", "legacy"] {
        check_team(RealClient::Python, mode);
    }
}

#[test]
fn typescript_sdks_of_each_role_list_and_call_what_rules_allow() {
    for mode in ["auto", "legacy"] {
        check_team(RealClient::TypeScript, mode);
    }
}

#[test]
fn inspector_of_each_role_lists_and_calls_what_rules_allow() {
    let (serving, journal, keys) = team(SETTINGS, &TEAM);
    let program = "inspector/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js";
    let inspect = |expected: &Expected, key: &str, args: &[&str]| {
        let mut command = Command::new(node());
        command.arg(peers().join(program)).arg("--cli").arg(url_of(&serving, expected));
        command.args(["--transport", "http", "--protocol-era", "modern"]).args(args);
        command.args(["--header", &format!("Authorization: Bearer {key}")]);
        command.current_dir(serving.folder()).env_clear().env("HOME", serving.folder());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.stdin(Stdio::null()).output().unwrap()
    };
    for ((expected, key), member) in EXPECTED.iter().zip(&keys).zip(&TEAM) {
        let output = inspect(expected, key, &["--method", "tools/list"]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        let tools: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{stderr}"));
        let mut names: Vec<_> =
            tools["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        names.sort_unstable();
        assert_eq!(json!(names), json!(expected.tools), "{}", member.name);
        for (tool, expected_outcome) in CALLED.iter().zip(&expected.outcomes) {
            let call = ["--method", "tools/call", "--tool-name", tool, "--tool-arg", "row=1"];
            let output = inspect(expected, key, &call);
            let result: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            let text = result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
            let found = match (output.status.success(), result["isError"] == true) {
                (true, false) if text == r#"{"row":1}"# => Outcome::Ran,
                (_, true) if text.starts_with("this call is not allowed") => Outcome::Refused,
                // The inspector looks the tool up in the list, and does not send the call.
                (false, false) if result.is_null() => Outcome::Unknown,
                _ => panic!("{} {tool}: {output:?}", member.name),
            };
            assert_eq!(&found, expected_outcome, "{} {tool}: {output:?}", member.name);
        }
    }
    check_records(&serving, &journal);
}

/// The key of one profile does not open another one, nor does any key open more than its own profiles.
#[tokio::test]
async fn key_of_one_profile_does_not_open_another() {
    let (serving, _, keys) = team(SETTINGS, &TEAM);
    let ops = format!("{}/ops", serving.url());
    for (key, url, is_open) in [
        (&keys[1], serving.url(), true),
        (&keys[1], ops.clone(), false),
        (&keys[2], ops.clone(), true),
        (&keys[2], serving.url(), false),
        (&keys[0], ops.clone(), true),
    ] {
        let client = RawClient::with_token(&url, Era::Modern, Some(key)).await;
        let response = client.request("1", "tools/list", "").send().await.unwrap();
        assert_eq!(response.status() == 200, is_open, "{url}: {response:?}");
    }
}

/// An HTTP/1.1 connection that is kept open between requests.
pub(crate) struct KeptConnection {
    stream: TcpStream,
    head: String,
}

impl KeptConnection {
    pub(crate) fn open(serving: &Serving, key: &str) -> Self {
        let address = serving.root.strip_prefix("http://").unwrap();
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{meta}}}}}"#);
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: tools/list\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        Self { stream, head }
    }

    /// The status of a request; `None` if the connection is closed.
    pub(crate) fn status(&mut self) -> Option<u16> {
        self.stream.write_all(self.head.as_bytes()).ok()?;
        let mut reader = BufReader::new(&self.stream);
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let status = line.split(' ').nth(1).unwrap().parse().unwrap();
        let mut length = 0;
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).ok()?;
            if let Some(value) = header.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if header.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        Some(status)
    }
}

#[tokio::test]
async fn revoked_key_ends_its_streams_and_connections_and_no_others() {
    let keys = ["ann", "bob"].map(|name| NewKey { name, options: &[] });
    let (serving, _, keys) = team("[profiles.default]\nexpose = \"all\"\n", &keys);
    let (ann, bob) = (&keys[0], &keys[1]);
    let url = serving.url();
    let mut streams = Vec::new();
    let mut others = Vec::new();
    for era in ERAS {
        streams.push((format!("{era:?}"), RawClient::with_token(&url, era, Some(ann)).await.listen().await));
        others.push(RawClient::with_token(&url, era, Some(bob)).await.listen().await);
    }
    let sse = http().get(format!("{}/sse", serving.root)).header("accept", "text/event-stream");
    let sse = sse.header("authorization", format!("Bearer {ann}"));
    streams.push(("SSE".to_owned(), crate::raw_client::Stream::open(sse).await));
    let mut connections = [ann, bob].map(|key| KeptConnection::open(&serving, key));
    for connection in &mut connections {
        for _ in 0..3 {
            assert_eq!(connection.status(), Some(200));
        }
    }
    let session = RawClient::with_token(&url, Era::Legacy, Some(ann)).await;
    let revoked = serving.cli().run(&["keys", "revoke", "ann"]);
    assert_eq!(revoked.code, Some(0), "{revoked:?}");
    let since = Instant::now();
    while connections[0].status() == Some(200) {
        assert!(since.elapsed() < REVOCATION_TIMEOUT, "the connection still accepts the key");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for (name, stream) in &mut streams {
        let left = REVOCATION_TIMEOUT.saturating_sub(since.elapsed());
        let end = tokio::time::timeout(left, stream.is_broken()).await;
        assert!(end.is_ok(), "{name}: the stream is open after {:?}", since.elapsed());
    }
    println!("streams and connection ended {:?} after the revocation", since.elapsed());
    assert_eq!(session.request("1", "tools/list", "").send().await.unwrap().status(), 401);
    assert_eq!(KeptConnection::open(&serving, ann).status(), Some(401), "on a new connection");
    assert_eq!(connections[1].status(), Some(200), "the connection of the other key");
    for stream in &mut others {
        let ended = tokio::time::timeout(Duration::from_millis(300), stream.is_broken()).await;
        assert!(ended.is_err(), "the stream of the other key has ended");
    }
    let client = RawClient::with_token(&url, Era::Legacy, Some(bob)).await;
    assert_eq!(client.call("read_sheet", "{}").await.text(), "{}");
}

/// Other programs may delay one revocation; a hub that does not notice the change at once delays each.
#[tokio::test]
async fn revocation_takes_effect_within_a_second() {
    let names = ["ann", "bob", "cara", "dan"];
    let (serving, _, keys) =
        team("[profiles.default]\nexpose = \"all\"\n", &names.map(|name| NewKey { name, options: &[] }));
    let mut shortest = Duration::MAX;
    for (name, key) in names.iter().zip(&keys).take(3) {
        let client = RawClient::with_token(&serving.url(), Era::Modern, Some(key)).await;
        let mut stream = client.listen().await;
        let mut connection = KeptConnection::open(&serving, key);
        assert_eq!(connection.status(), Some(200));
        assert_eq!(serving.cli().run(&["keys", "revoke", name]).code, Some(0));
        let since = Instant::now();
        while connection.status() == Some(200) {
            assert!(since.elapsed() < REVOCATION_TIMEOUT, "the connection still accepts the key");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(tokio::time::timeout(REVOCATION_TIMEOUT, stream.is_broken()).await.is_ok(), "{name}");
        shortest = shortest.min(since.elapsed());
    }
    assert!(shortest < Duration::from_secs(1), "{shortest:?}");
}

/// The SDK discovers the provider from the challenge of the gateway, registers itself, and logs its user in with PKCE.
fn check_login(client: RealClient, mode: &str) {
    let mut cli = hub("");
    cli.server("s", &sheets());
    let rules = "[[auth.rules]]\neffect = \"allow\"\ntools = [\"read_sheet\"]\nscope = \"sheets:read\"\n";
    let settings = ProtectedSettings { sections: rules, ..ProtectedSettings::default() };
    let gateway = ProtectedGateway::before(cli, IdentityProvider::start(), &settings);
    let login = json!({"account": "ann", "approve": gateway.provider.url("/test/approve")});
    let calls = json!([["read_sheet", {"row": 1}], ["write_sheet", {"row": 1}]]);
    let details = json!({"url": gateway.serving.url(), "mode": mode, "login": login, "calls": calls});
    let report = client.run(gateway.serving.folder(), &details);
    let who = format!("{client:?} {mode}");
    assert_eq!(report["tools"], json!(["call_tool", "describe_tool", "read_sheet", "search_tools"]), "{who}");
    let outcomes: Vec<Outcome> = report["calls"].as_array().unwrap().iter().map(outcome).collect();
    assert_eq!(outcomes, [Outcome::Ran, Outcome::Unknown], "{who}: {report}");
    let expected = format!("oidc:{}#ann", gateway.provider.issuer);
    let calls = await_history(gateway.serving.cli(), &[], 1);
    assert_eq!(calls[0]["principal"], expected, "{who}: {calls:?}");
    assert!(report["seen"][0].as_str().unwrap_or_default().contains("sheets:read"), "{who}: {report}");
}

#[test]
fn python_sdk_logs_in_at_the_provider() {
    for mode in ["auto", "legacy"] {
        check_login(RealClient::Python, mode);
    }
}

#[test]
fn typescript_sdks_log_in_at_the_provider() {
    for mode in ["auto", "legacy"] {
        check_login(RealClient::TypeScript, mode);
    }
}

/// The user grants one of two scopes. The SDK asks for the other one when the gateway names both in its challenge, and repeats the
/// call.
#[test]
fn python_sdk_asks_for_missing_scopes() {
    for mode in ["auto", "legacy"] {
        let mut cli = hub("");
        cli.server("s", &sheets());
        let rules = "[[auth.rules]]\neffect = \"allow\"\ntools = [\"read_sheet\"]\nscope = \"sheets:read\"\n\
            [[auth.rules]]\neffect = \"allow\"\ntools = [\"write_sheet\"]\nscope = \"sheets:read sheets:write\"\n";
        let settings = ProtectedSettings { sections: rules, ..ProtectedSettings::default() };
        let gateway = ProtectedGateway::before(cli, IdentityProvider::start(), &settings);
        let login = json!({"account": "careful", "approve": gateway.provider.url("/test/approve")});
        let calls = json!([["read_sheet", {"row": 1}], ["write_sheet", {"row": 1}]]);
        let details = json!({"url": gateway.serving.url(), "mode": mode, "login": login, "calls": calls});
        let report = RealClient::Python.run(gateway.serving.folder(), &details);
        let outcomes: Vec<Outcome> = report["calls"].as_array().unwrap().iter().map(outcome).collect();
        assert_eq!(outcomes, [Outcome::Ran, Outcome::Ran], "{mode}: {report}");
        let asked = report["seen"].as_array().unwrap();
        assert_eq!(asked.len(), 2, "{mode}: it logs in twice: {report}");
        let second = asked[1].as_str().unwrap();
        assert!(second.contains("sheets:read") && second.contains("sheets:write"), "{mode}: {report}");
    }
}
