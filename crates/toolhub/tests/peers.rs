//! Real MCP servers, written by others, through the real program. `cargo xtask peers` installs them.

#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolhub_testkit::CommandLine;

/// The folder with the peers.
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

/// A peer that listens on a port, ended with the test.
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
    cli.entry("excel", entry);
    cli
}

fn ok(cli: &CommandLine, args: &[&str]) -> String {
    let ran = cli.run(args);
    assert_eq!(ran.code, Some(0), "{args:?} {ran:?}");
    ran.stdout
}

/// Lists the 25 tools, then makes, fills and reads a workbook whose names are Chinese.
fn work_with_excel(cli: &CommandLine, file: &str) {
    let tools: Value = serde_json::from_str(&ok(cli, &["tools", "--source", "excel", "--json"])).unwrap();
    assert_eq!(tools.as_array().unwrap().len(), 25);
    let file = format!("filepath={file}");
    ok(cli, &["call", "create_workbook", &file]);
    ok(cli, &["call", "create_worksheet", &file, "sheet_name=一季度"]);
    let rows = r#"data=[["城市","金额"],["北京",12.5],["上海",30]]"#;
    ok(cli, &["call", "write_data_to_excel", &file, "sheet_name=一季度", rows]);
    let read = cli.run(&["call", "read_data_from_excel", &file, "sheet_name=一季度", "--json"]).json();
    assert_eq!(read["_meta"]["source"], "excel");
    let text = read["result"].as_str().unwrap();
    let sheet: Value = serde_json::from_str(text).unwrap();
    let values: Vec<&Value> = sheet["cells"].as_array().unwrap().iter().map(|cell| &cell["value"]).collect();
    assert_eq!(json!(values), json!(["城市", "金额", "北京", 12.5, "上海", 30]));
    let missing = cli.run(&["call", "read_data_from_excel", "filepath=没有.xlsx", "sheet_name=甲"]);
    assert_eq!(missing.code, Some(1), "{missing:?}");
    assert!(missing.stderr.contains("没有.xlsx"), "{missing:?}");
    let explained = cli.run(&["explain", "read_data_from_excel", "--source", "appflowy", "--json"]).json();
    assert_eq!(explained["candidates"][0]["source"], "excel");
    let why = explained["reasons"].to_string();
    assert!(why.contains("source `appflowy` is often a model's guess, so MCP servers come first"), "{why}");
}

#[test]
fn the_excel_server_over_stdio() {
    let program = program("excel-0.1.8/bin/excel-mcp-server");
    let cli = cli(json!({"command": program, "args": ["stdio"]}));
    let file = cli.folder().join("销售 数据.xlsx");
    work_with_excel(&cli, file.to_str().unwrap());
    assert!(file.is_file());
}

/// Streamable HTTP, the old HTTP+SSE, and the old one found by falling back to it.
#[test]
fn the_excel_server_over_http() {
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
fn a_modern_excel_server_over_both() {
    let folder = tempfile::tempdir().unwrap();
    let allow = folder.path().to_str().unwrap();
    let server = Listening::start(|port| {
        let port = port.to_string();
        let args = ["streamable-http", "--allow-dir", allow, "--host", "127.0.0.1", "--port", &port];
        command(program("excel-2.2.2/bin/excel-mcp-server"), &args)
    });
    let stdio = json!({"command": program("excel-2.2.2/bin/excel-mcp-server"), "args": ["stdio", "--allow-dir", allow]});
    for (entry, name) in [(stdio, "甲.xlsx"), (json!({"url": server.url()}), "乙.xlsx")] {
        let cli = cli(entry);
        let file = folder.path().join(name);
        let path = format!("path={}", file.display());
        ok(&cli, &["call", "create_workbook", &path]);
        let listed = cli.run(&["servers", "list", "--json"]).json();
        assert_eq!((&listed[0]["era"], &listed[0]["tools"]), (&json!("modern"), &json!(46)), "{listed}");
        assert!(file.is_file());
    }
}

#[test]
fn the_reference_server_over_both() {
    let server = Listening::start(|port| {
        let mut command = command("node".to_owned(), &[&everything(), "streamableHttp"]);
        command.env("PORT", port.to_string());
        command
    });
    let stdio = json!({"command": "node", "args": [everything(), "stdio"]});
    for entry in [stdio, json!({"url": server.url()})] {
        let cli = cli(entry);
        assert_eq!(ok(&cli, &["call", "echo", "message=你好"]), "Echo: 你好\n");
        assert!(ok(&cli, &["call", "get-sum", "a=2", "b=40"]).contains("42"));
        let image = cli.run(&["call", "get-tiny-image", "--json"]).json();
        assert!(image["content"].to_string().contains("image/png"), "{image}");
        let offers = cli.run(&["servers", "offers", "excel", "--json"]).json();
        for key in ["resources", "resourceTemplates", "prompts"] {
            assert!(!offers[key].as_array().unwrap().is_empty(), "{key} {offers}");
        }
        let slow = cli.run(&["call", "trigger-long-running-operation", "duration=1", "steps=3", "--trace"]);
        assert_eq!(slow.code, Some(0), "{slow:?}");
        assert!(slow.stderr.contains("progress 3/3"), "{slow:?}");
    }
}

#[test]
fn the_python_sdk_over_both() {
    greeted_by("python-sdk", "from mcp.server import MCPServer as Server", "Error executing tool fail");
}

#[test]
fn fastmcp_over_both() {
    greeted_by("fastmcp", "from fastmcp import FastMCP as Server", "on purpose");
}

/// A small server written with a Python library, over stdio and HTTP.
fn greeted_by(peer: &str, import: &str, failure: &str) {
    let script = tempfile::tempdir().unwrap();
    let file = script.path().join("server.py");
    fs::write(&file, PYTHON_SERVER.replace("IMPORT", import)).unwrap();
    let file = file.to_str().unwrap();
    let python = program(&format!("{peer}/bin/python"));
    let server = Listening::start(|port| command(python.clone(), &[file, &port.to_string()]));
    for entry in [json!({"command": python, "args": [file]}), json!({"url": server.url()})] {
        let cli = cli(entry);
        assert_eq!(ok(&cli, &["call", "greet", "name=世界"]), "你好，世界\n");
        let failed = cli.run(&["call", "fail"]);
        assert!(failed.code == Some(1) && failed.stderr.contains(failure), "{failed:?}");
        let listed = cli.run(&["servers", "list", "--json"]).json();
        assert_eq!(listed[0]["era"], "modern", "{listed}");
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

if len(sys.argv) > 1:
    server.run(transport="streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
else:
    server.run(transport="stdio")
"#;
