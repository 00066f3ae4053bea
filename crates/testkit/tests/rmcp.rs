//! The official Rust SDK as a server, over stdio and Streamable HTTP (it has no HTTP+SSE): an independent implementation of the
//! protocol, in both eras.

#![expect(clippy::expect_used, reason = "a failed expectation fails the test")]

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::json;
use toolhub::ToolCall;
use toolhub_testkit::TestHub;

const SERVER: &str = env!("CARGO_BIN_EXE_rmcp-server");

struct Listening(Child, u16);

impl Listening {
    fn start() -> Self {
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .expect("a port")
            .port();
        let child = Command::new(SERVER).arg(port.to_string()).spawn().expect("the server starts");
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(started.elapsed() < Duration::from_secs(30), "the server does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self(child, port)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn rust_sdk_server_works_in_both_eras_over_stdio_and_http() {
    let server = Listening::start();
    let http = json!({"url": format!("http://127.0.0.1:{}/mcp", server.1)});
    for entry in [json!({"command": SERVER}), http] {
        for (setting, expected_era) in
            [("", "modern"), ("era = \"modern\"", "modern"), ("era = \"legacy\"", "legacy")]
        {
            let settings = format!("[[servers]]\nid = \"s\"\n{setting}\n");
            let hub = TestHub::builder().entry("s", entry.clone()).settings(&settings).build().await;
            let listed = hub.list_server("s").await.expect("it is configured").expect("it is listed");
            assert_eq!(
                (listed.era.as_str(), listed.tools.len()),
                (expected_era, 2),
                "{:?}",
                hub.events.texts()
            );
            let outcome = hub.call(ToolCall::new("greet", json!({"name": "世界"}))).await;
            assert_eq!(outcome.result.expect("it answers").texts().0, ["你好，世界"]);
            hub.close().await;
        }
    }
}
