//! Real MCP servers, written by others, through the real program, in every era and over every transport they have.
//! `cargo xtask peers` installs them.
//!
//! | peer | stdio | Streamable HTTP | HTTP+SSE |
//! |---|---|---|---|
//! | Excel 0.1.8 | legacy | legacy | legacy |
//! | Excel 2.2.2 | both | both | has no such mode |
//! | Python SDK 2.3.0 | both | both | legacy |
//! | FastMCP 4.1.2 | both | both | legacy |
//! | server-everything 2026.8.31 | legacy | legacy | legacy |
//! | rmcp 3.8 (`crates/testkit/tests/rmcp.rs`) | both | both | has no such transport |
//!
//! Excel 0.1.8 and server-everything use SDKs older than 2026-07-28 and reject `server/discover`; a test checks that. HTTP+SSE
//! is the transport of 2024-11-05: no later revision describes it, so that no server is modern over it.

#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolhub_testkit::CommandLine;

/// The folder of the installed peers.
fn peers() -> PathBuf {
    let named = std::env::var_os("TOOLHUB_PEERS").map(PathBuf::from);
    let beside = || std::env::current_exe().unwrap().ancestors().nth(3).unwrap().join("peers");
    let folder = named.unwrap_or_else(beside);
    assert!(folder.is_dir(), "no peers in {}: run `cargo xtask peers` first", folder.display());
    folder
}

fn program(peer: &str) -> String {
    peers().join(peer).to_str().unwrap().to_owned()
}

fn everything() -> String {
    program("everything/node_modules/@modelcontextprotocol/server-everything/dist/index.js")
}

/// A peer that listens on a port; killed at the end of the test.
struct Listening {
    child: Child,
    port: u16,
}

impl Listening {
    fn start(start: impl FnOnce(u16) -> Command) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child =
            start(port).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(started.elapsed() < Duration::from_secs(60), "the peer does not listen");
            std::thread::sleep(Duration::from_millis(50));
        }
        Self { child, port }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    fn sse_url(&self) -> String {
        format!("http://127.0.0.1:{}/sse", self.port)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(program: String, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args);
    command
}

fn cli(entry: Value) -> CommandLine {
    let mut cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    cli.entry("peer", entry);
    cli
}

/// The configured era of a server that supports both, and the era that is used.
const ERAS_OF_BOTH: [(Option<&str>, &str); 3] =
    [(None, "modern"), (Some("modern"), "modern"), (Some("legacy"), "legacy")];

/// The program with one server of this configured era.
fn cli_in(era: Option<&str>, entry: &Value) -> CommandLine {
    let cli = cli(entry.clone());
    if let Some(era) = era {
        let settings = format!("[[servers]]\nid = \"peer\"\nera = \"{era}\"\n");
        fs::write(cli.folder().join("toolhub.toml"), settings).unwrap();
    }
    cli
}

fn assert_met_in(cli: &CommandLine, era: &str) {
    let listed = cli.run(&["servers", "list", "--json"]).json();
    assert_eq!(listed[0]["era"], era, "{listed}");
}

fn ok(cli: &CommandLine, args: &[&str]) -> String {
    let ran = cli.run(args);
    assert_eq!(ran.code, Some(0), "{args:?} {ran:?}");
    ran.stdout
}

/// Lists the 25 tools, then creates, fills and reads a workbook with Chinese names.
fn work_with_excel(cli: &CommandLine, file: &str) {
    let tools: Value = serde_json::from_str(&ok(cli, &["tools", "--source", "peer", "--json"])).unwrap();
    assert_eq!(tools.as_array().unwrap().len(), 25);
    let file = format!("filepath={file}");
    ok(cli, &["call", "create_workbook", &file]);
    ok(cli, &["call", "create_worksheet", &file, "sheet_name=一季度"]);
    let rows = r#"data=[["城市","金额"],["北京",12.5],["上海",30]]"#;
    ok(cli, &["call", "write_data_to_excel", &file, "sheet_name=一季度", rows]);
    let read = cli.run(&["call", "read_data_from_excel", &file, "sheet_name=一季度", "--json"]).json();
    assert_eq!(read["_meta"]["source"], "peer");
    let text = read["result"].as_str().unwrap();
    let sheet: Value = serde_json::from_str(text).unwrap();
    let values: Vec<&Value> = sheet["cells"].as_array().unwrap().iter().map(|cell| &cell["value"]).collect();
    assert_eq!(json!(values), json!(["城市", "金额", "北京", 12.5, "上海", 30]));
    let missing = cli.run(&["call", "read_data_from_excel", "filepath=没有.xlsx", "sheet_name=甲"]);
    assert_eq!(missing.code, Some(1), "{missing:?}");
    assert!(missing.stderr.contains("没有.xlsx"), "{missing:?}");
    let explained = cli.run(&["explain", "read_data_from_excel", "--source", "appflowy", "--json"]).json();
    assert_eq!(explained["candidates"][0]["source"], "peer");
    let why = explained["reasons"].to_string();
    assert!(why.contains("source `appflowy` is often a model's guess, so MCP servers come first"), "{why}");
    assert_met_in(cli, "legacy");
}

#[test]
fn excel_server_over_stdio() {
    let program = program("excel-0.1.8/bin/excel-mcp-server");
    let cli = cli(json!({"command": program, "args": ["stdio"]}));
    let file = cli.folder().join("销售 数据.xlsx");
    work_with_excel(&cli, file.to_str().unwrap());
    assert!(file.is_file());
}

/// Streamable HTTP, HTTP+SSE, and HTTP+SSE found by fallback.
#[test]
fn excel_server_over_http() {
    for (mode, path, entry) in [
        ("streamable-http", "mcp", json!({"type": "http"})),
        ("sse", "sse", json!({"type": "sse"})),
        ("sse", "sse", json!({})),
    ] {
        let files = tempfile::tempdir().unwrap();
        let server = Listening::start(|port| {
            let mut command = command(program("excel-0.1.8/bin/excel-mcp-server"), &[mode]);
            command.env("FASTMCP_HOST", "127.0.0.1").env("FASTMCP_PORT", port.to_string());
            command.env("EXCEL_FILES_PATH", files.path());
            command
        });
        let mut entry = entry;
        entry["url"] = json!(format!("http://127.0.0.1:{}/{path}", server.port));
        let cli = cli(entry);
        work_with_excel(&cli, "销售 数据.xlsx");
        assert!(files.path().join("销售 数据.xlsx").is_file());
    }
}

#[test]
fn newer_excel_server_in_both_eras_over_stdio_and_http() {
    let folder = tempfile::tempdir().unwrap();
    let allow = folder.path().to_str().unwrap();
    let excel = program("excel-2.2.2/bin/excel-mcp-server");
    let server = Listening::start(|port| {
        let port = port.to_string();
        let args = ["streamable-http", "--allow-dir", allow, "--host", "127.0.0.1", "--port", &port];
        command(excel.clone(), &args)
    });
    let stdio = json!({"command": excel, "args": ["stdio", "--allow-dir", allow]});
    for (transport, entry) in [("stdio", stdio), ("http", json!({"url": server.url()}))] {
        for (configured_era, met) in ERAS_OF_BOTH {
            let cli = cli_in(configured_era, &entry);
            let file = folder.path().join(format!("{transport} {configured_era:?} 销售.xlsx"));
            let path = format!("path={}", file.display());
            ok(&cli, &["call", "create_workbook", &path, r#"sheets=["一季度"]"#]);
            assert!(file.is_file());
            let rows = r#"rows=[["城市","金额"],["北京",12.5]]"#;
            ok(&cli, &["call", "write_range", &path, "sheet=一季度", "at=A1", rows]);
            let read = ok(&cli, &["call", "read_range", &path, "sheet=一季度"]);
            assert!(read.contains("北京") && read.contains("12.5"), "{read}");
            let listed = cli.run(&["servers", "list", "--json"]).json();
            assert_eq!((&listed[0]["era"], &listed[0]["tools"]), (&json!(met), &json!(46)), "{listed}");
        }
    }
}

fn everything_on(mode: &str) -> Listening {
    Listening::start(|port| {
        let mut command = command("node".to_owned(), &[&everything(), mode]);
        command.env("PORT", port.to_string());
        command
    })
}

/// stdio, Streamable HTTP, HTTP+SSE, and HTTP+SSE found by fallback.
#[test]
fn reference_server_over_all_transports() {
    let (http, sse) = (everything_on("streamableHttp"), everything_on("sse"));
    for entry in [
        json!({"command": "node", "args": [everything(), "stdio"]}),
        json!({"url": http.url()}),
        json!({"type": "sse", "url": sse.sse_url()}),
        json!({"url": sse.sse_url()}),
    ] {
        let cli = cli(entry);
        assert_eq!(ok(&cli, &["call", "echo", "message=你好"]), "Echo: 你好\n");
        assert!(ok(&cli, &["call", "get-sum", "a=2", "b=40"]).contains("42"));
        let image = cli.run(&["call", "get-tiny-image", "--json"]).json();
        assert!(image["content"].to_string().contains("image/png"), "{image}");
        let offers = cli.run(&["servers", "offers", "peer", "--json"]).json();
        for key in ["resources", "resourceTemplates", "prompts"] {
            assert!(!offers[key].as_array().unwrap().is_empty(), "{key} {offers}");
        }
        let slow = cli.run(&["call", "trigger-long-running-operation", "duration=1", "steps=3", "--trace"]);
        assert_eq!(slow.code, Some(0), "{slow:?}");
        assert!(slow.stderr.contains("progress 3/3"), "{slow:?}");
        assert_met_in(&cli, "legacy");
    }
}

/// The two legacy-only servers fail if they are configured as modern.
#[test]
fn legacy_only_server_is_not_treated_as_modern() {
    let http = everything_on("streamableHttp");
    let excel = program("excel-0.1.8/bin/excel-mcp-server");
    for entry in [
        json!({"command": excel, "args": ["stdio"]}),
        json!({"command": "node", "args": [everything(), "stdio"]}),
        json!({"url": http.url()}),
    ] {
        let cli = cli_in(Some("modern"), &entry);
        let ran = cli.run(&["servers", "test", "peer"]);
        assert_eq!(ran.code, Some(3), "{ran:?}");
        assert!(ran.stdout.contains("`era = \"modern\"`"), "{ran:?}");
    }
}

#[test]
fn python_sdk_in_both_eras_over_all_transports() {
    greeted_by("python-sdk", "from mcp.server import MCPServer as Server", "Error executing tool fail");
}

#[test]
fn fastmcp_in_both_eras_over_all_transports() {
    greeted_by("fastmcp", "from fastmcp import FastMCP as Server", "on purpose");
}

/// A small server written with a Python library: in both eras over stdio and Streamable HTTP, and over HTTP+SSE.
fn greeted_by(peer: &str, import: &str, failure: &str) {
    let script = tempfile::tempdir().unwrap();
    let file = script.path().join("server.py");
    fs::write(&file, PYTHON_SERVER.replace("IMPORT", import)).unwrap();
    let file = file.to_str().unwrap();
    let python = program(&format!("{peer}/bin/python"));
    let on = |mode: &str| Listening::start(|port| command(python.clone(), &[file, mode, &port.to_string()]));
    let (http, sse) = (on("streamable-http"), on("sse"));
    let old = [json!({"type": "sse", "url": sse.sse_url()}), json!({"url": sse.sse_url()})];
    let dual = [json!({"command": python, "args": [file, "stdio"]}), json!({"url": http.url()})];
    let dual =
        dual.iter().flat_map(|entry| ERAS_OF_BOTH.map(|(configured_era, met)| (entry, configured_era, met)));
    for (entry, configured_era, met) in dual.chain(old.iter().map(|entry| (entry, None, "legacy"))) {
        let cli = cli_in(configured_era, entry);
        assert_eq!(ok(&cli, &["call", "greet", "name=世界"]), "你好，世界\n");
        let failed = cli.run(&["call", "fail"]);
        assert!(failed.code == Some(1) && failed.stderr.contains(failure), "{failed:?}");
        assert_met_in(&cli, met);
    }
}

const PYTHON_SERVER: &str = r#"
import sys
IMPORT

server = Server("greeter")

@server.tool()
def greet(name: str) -> str:
    return f"你好，{name}"

@server.tool()
def fail() -> str:
    raise ValueError("on purpose")

mode = sys.argv[1]
if mode == "stdio":
    server.run(transport=mode)
else:
    server.run(transport=mode, host="127.0.0.1", port=int(sys.argv[2]))
"#;
