//! Stdio servers in the sandbox, through the real program: they work, cannot get out, and the errors say why.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::net::TcpListener;
use std::path::{Path, PathBuf};

use serde_json::json;
use tempfile::TempDir;
use toolhub_testkit::CommandLine;

const SECRET: &str = "the-secret-that-must-stay";

/// A server of the old kind with three tools; at its start it may do what it should not. A file that stands alone among
/// its arguments would be granted.
const SERVER: &str = r#"
import json, os, resource, socket, sys
if len(sys.argv) > 1 and sys.argv[1] == "--greedy":
    open(sys.argv[2].removeprefix("--file="))
if len(sys.argv) > 1 and sys.argv[1] == "--hungry":
    hoard = [bytearray(b"x") * (1 << 20) for _ in range(1024)]
def tool(name, **properties):
    return {"name": name, "description": name, "inputSchema": {"type": "object", "properties": properties}}
text = {"type": "string"}
TOOLS = [tool("peek", path=text), tool("reach", port={"type": "integer"}), tool("keep", path=text, text=text)]
def call(name, arguments):
    if name == "peek" and arguments["path"] == "environment": return " ".join(sorted(os.environ))
    if name == "peek" and arguments["path"] == "open files": return str(resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    if name == "peek" and arguments["path"] == "unix socket": socket.socket(socket.AF_UNIX).close(); return "made"
    if name == "peek": return open(arguments["path"]).read()
    if name == "keep":
        open(arguments["path"], "w").write(arguments["text"]); return os.getcwd()
    socket.create_connection(("127.0.0.1", arguments["port"]), 10); return "reached"
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request: continue
    method, params = request["method"], request.get("params", {})
    answer = {"jsonrpc": "2.0", "id": request["id"]}
    if method == "initialize":
        answer["result"] = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    elif method == "tools/list": answer["result"] = {"tools": TOOLS}
    elif method == "ping": answer["result"] = {}
    elif method == "tools/call":
        try: answer["result"] = {"content": [{"type": "text", "text": call(params["name"], params["arguments"])}]}
        except Exception as error: answer["result"] = {"isError": True, "content": [{"type": "text", "text": repr(error)}]}
    else: answer["error"] = {"code": -32601, "message": "not found"}
    print(json.dumps(answer), flush=True)
"#;

struct Setting {
    cli: CommandLine,
    /// Outside of everything that is granted.
    outside: TempDir,
    granted: TempDir,
    _program: TempDir,
}

impl Setting {
    /// `sandbox` is what the settings say; the server is started with `arguments` behind its file.
    fn new(sandbox: &str, arguments: &[&str]) -> Self {
        let (outside, granted, program) = (folder(), folder(), folder());
        std::fs::write(outside.path().join("secret"), SECRET).unwrap();
        std::fs::write(granted.path().join("data"), "42").unwrap();
        let file = program.path().join("server.py");
        std::fs::write(&file, SERVER).unwrap();
        let outer = outside.path().join("secret").display().to_string();
        let mut all = vec!["-I".to_owned(), file.display().to_string()];
        all.extend(arguments.iter().map(|argument| argument.replace("SECRET", &outer)));
        let mut cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
        cli.entry("s", json!({"command": python(), "args": all}));
        let sandbox = sandbox.replace("GRANTED", &granted.path().display().to_string());
        let settings = format!("[[servers]]\nid = \"s\"\nsandbox = {sandbox}\n");
        std::fs::write(cli.folder().join("toolhub.toml"), settings).unwrap();
        Self { cli, outside, granted, _program: program }
    }

    fn call(&self, tool: &str, arguments: &serde_json::Value) -> (Option<i32>, String) {
        let ran = self.cli.run(&["call", tool, "--args", &arguments.to_string()]);
        (ran.code, ran.stdout + &ran.stderr)
    }
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// The system's own: a version manager's is a script that needs more than the program.
fn python() -> PathBuf {
    let system = Path::new("/usr/bin/python3");
    if system.is_file() { system.to_path_buf() } else { "python3".into() }
}

#[test]
fn sandboxed_server_works_and_cannot_escape() {
    for isolation in ["builtin", "bubblewrap"] {
        let sandbox = format!("{{ read = [\"GRANTED\"], isolation = \"{isolation}\" }}");
        let setting = Setting::new(&sandbox, &[]);
        let tested = setting.cli.run(&["servers", "test", "s"]);
        assert_eq!(tested.code, Some(0), "{isolation}: {}{}", tested.stdout, tested.stderr);
        let path = |folder: &TempDir, name: &str| folder.path().join(name).display().to_string();
        let (code, output) = setting.call("peek", &json!({"path": path(&setting.granted, "data")}));
        assert!(code == Some(0) && output.contains("42"), "{isolation}: {output}");
        let (code, output) = setting.call("peek", &json!({"path": path(&setting.outside, "secret")}));
        assert!(code != Some(0) && !output.contains(SECRET), "{isolation}: {output}");
        let (code, output) =
            setting.call("keep", &json!({"path": path(&setting.outside, "new"), "text": "x"}));
        assert!(code != Some(0) && !setting.outside.path().join("new").exists(), "{isolation}: {output}");
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (code, output) = setting.call("reach", &json!({"port": port}));
        assert!(code != Some(0) && output.contains("Network is unreachable"), "{isolation}: {output}");
        assert!(listener.accept().is_err());
        let (_, output) = setting.call("peek", &json!({"path": "environment"}));
        assert!(output.contains("PATH") && !output.contains("TOOLHUB_HUB"), "{isolation}: {output}");
        // Its own folder is there for it, and gone afterwards.
        let (code, output) = setting.call("keep", &json!({"path": "own", "text": "x"}));
        assert_eq!(code, Some(0), "{isolation}: {output}");
        assert!(!Path::new(output.trim()).exists(), "{output}");
    }
}

#[test]
fn grants_allow_reads_and_writes() {
    let setting = Setting::new("{ write = [\"GRANTED\"], network = true }", &[]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (code, output) = setting.call("reach", &json!({"port": port}));
    assert!(code == Some(0) && output.contains("reached"), "{output}");
    let new = setting.granted.path().join("new");
    let (code, output) = setting.call("keep", &json!({"path": new, "text": "kept"}));
    assert_eq!(code, Some(0), "{output}");
    assert_eq!(std::fs::read_to_string(new).unwrap(), "kept");
}

#[test]
fn applies_configured_open_file_limit_and_unix_sockets() {
    for (sandbox, files, sockets) in
        [("{}", "1024", false), ("{ unix_sockets = true, limits = { open_files = 77 } }", "77", true)]
    {
        let setting = Setting::new(sandbox, &[]);
        let (code, output) = setting.call("peek", &json!({"path": "open files"}));
        assert!(code == Some(0) && output.trim() == files, "{sandbox}: {output}");
        let (code, output) = setting.call("peek", &json!({"path": "unix socket"}));
        assert_eq!(code == Some(0) && output.contains("made"), sockets, "{sandbox}: {output}");
    }
}

#[test]
fn reports_server_ended_by_sandbox() {
    for isolation in ["builtin", "bubblewrap"] {
        let sandbox = format!("{{ isolation = \"{isolation}\" }}");
        let setting = Setting::new(&sandbox, &["--greedy", "--file=SECRET"]);
        let secret = setting.outside.path().join("secret");
        for (lang, expect) in [("en", "the sandbox kept it from `"), ("zh", "沙箱不允许它访问未授权的 `")]
        {
            let tested = setting.cli.run(&["--lang", lang, "servers", "test", "s"]);
            let output = tested.stdout + &tested.stderr;
            assert_ne!(tested.code, Some(0), "{output}");
            assert!(output.contains(&format!("{expect}{}`", secret.display())), "{isolation}: {output}");
        }
        let setting = Setting::new(
            &format!("{{ isolation = \"{isolation}\", limits = {{ memory = \"96MiB\" }} }}"),
            &["--hungry"],
        );
        let tested = setting.cli.run(&["servers", "test", "s"]);
        let output = tested.stdout + &tested.stderr;
        assert!(output.contains("more memory than the 96 MiB it may"), "{isolation}: {output}");
    }
}

#[test]
fn reports_missing_grants_and_unknown_sandbox_keys() {
    let setting = Setting::new("{ read = [\"/not/there\"], netwrok = true }", &[]);
    let tested = setting.cli.run(&["servers", "test", "s"]);
    let output = tested.stdout + &tested.stderr;
    assert!(output.contains("`/not/there` was granted but cannot be opened"), "{output}");
    assert!(output.contains("unknown setting `netwrok`; did you mean `network`?"), "{output}");
}
