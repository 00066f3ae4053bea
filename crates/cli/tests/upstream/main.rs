//! Servers at non-loopback addresses, over TLS, and behind a proxy.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a failed expectation fails the test")]

use std::io::{BufRead as _, BufReader};
use std::net::{IpAddr, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use toolhub::ToolCall;
use toolhub_testkit::{CommandLine, TestHub};

/// `server.py` and its output.
struct Server {
    child: Child,
    port: u16,
    log: Arc<Mutex<Vec<Value>>>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start(address: &str, certificate: Option<&Certificate>) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/upstream/server.py");
        let mut command = Command::new("python3");
        command.args([script, address]).stdout(Stdio::piped());
        if let Some(certificate) = certificate {
            command.args([&certificate.certificate, &certificate.key]);
        }
        let mut child = command.spawn().expect("python3 starts");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = lines.next().unwrap().unwrap().parse().unwrap();
        let log = Arc::new(Mutex::new(Vec::new()));
        let lines_log = Arc::clone(&log);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                lines_log.lock().unwrap().push(serde_json::from_str(&line).unwrap());
            }
        });
        Self { child, port, log }
    }

    fn events(&self, event: &str) -> Vec<Value> {
        self.log.lock().unwrap().iter().filter(|line| line["event"] == event).cloned().collect()
    }

    /// The requests with this method, once there are any.
    fn requests(&self, method: &str) -> Vec<Value> {
        let deadline = Instant::now() + Duration::from_secs(5);
        loop {
            let mut requests = self.events("request");
            requests.retain(|request| request["method"] == method);
            if !requests.is_empty() || Instant::now() > deadline {
                return requests;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A self-signed certificate for 127.0.0.1, trusted only through its own file.
struct Certificate {
    _folder: TempDir,
    certificate: PathBuf,
    key: PathBuf,
}

impl Certificate {
    fn create() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (certificate, key) = (folder.path().join("certificate.pem"), folder.path().join("key.pem"));
        let output = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"])
            .args(["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"])
            .args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout"])
            .arg(&key)
            .arg("-out")
            .arg(&certificate)
            .output()
            .expect("`openssl` starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Self { _folder: folder, certificate, key }
    }
}

/// A non-loopback address of this machine. No packet is sent.
fn own_address() -> IpAddr {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect("192.0.2.1:9").unwrap();
    let address = socket.local_addr().unwrap().ip();
    assert!(!address.is_loopback() && !address.is_unspecified(), "{address}");
    address
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs an address that is not a loopback one: run `cargo xtask test`"]
async fn calls_to_remote_address_share_one_connection() {
    let address = own_address();
    let server = Server::start(&address.to_string(), None);
    let url = format!("http://{address}:{}/mcp", server.port);
    let hub = TestHub::builder().entry("s", json!({"url": url})).build().await;
    for _ in 0..20 {
        let outcome = hub.call(ToolCall::new("where", json!({}))).await;
        assert_eq!(outcome.result.unwrap().texts().0, ["here"]);
    }
    hub.close().await;
    assert_eq!(server.requests("tools/call").len(), 20);
    // One for the calls, one for the notification stream and the end of the session.
    let connections = server.events("connection").len();
    assert!(connections <= 3, "{connections} connections for 20 calls");
}

#[test]
fn connects_over_tls_only_with_trusted_certificate() {
    let certificate = Certificate::create();
    let server = Server::start("127.0.0.1", Some(&certificate));
    let new_home = || {
        let mut cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
        cli.entry("s", json!({"url": format!("https://127.0.0.1:{}/mcp", server.port)}));
        cli
    };

    let cli = new_home();
    let output = cli.command(&["call", "where"]).output().unwrap();
    assert!(!output.status.success());
    let message =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(message.contains("certificate"), "{message}");
    assert!(server.events("request").is_empty(), "nothing is sent to a server that is not trusted");

    let cli = new_home();
    let mut command = cli.command(&["call", "where"]);
    let output = command.env("SSL_CERT_FILE", &certificate.certificate).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("here"));
    assert_eq!(server.requests("tools/call").len(), 1);
    let connections = server.events("connection");
    assert!(connections.iter().any(|connection| connection["alpn"] == "http/1.1"), "{connections:?}");
}

/// The server acts as the proxy: it receives requests in absolute form.
#[test]
fn connects_through_configured_proxy() {
    let proxy = Server::start("127.0.0.1", None);
    let mut cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    cli.entry("s", json!({"url": "http://tools.example.invalid/mcp"}));
    let mut command = cli.command(&["call", "where"]);
    command.env("HTTP_PROXY", format!("http://127.0.0.1:{}", proxy.port));
    command.env("http_proxy", format!("http://127.0.0.1:{}", proxy.port));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let requests = proxy.requests("tools/call");
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0]["path"], "http://tools.example.invalid/mcp");
}
