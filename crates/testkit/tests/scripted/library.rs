//! The side that tests of other crates use.

use std::{fs, time::Duration};

use serde_json::{Value, json};
use toolhub_testkit::scripted::{self, HttpServer, Journal, Script};

#[test]
fn finds_program_beside_the_test() {
    assert_eq!(scripted::binary(), std::path::Path::new(env!("CARGO_BIN_EXE_scripted-mcp")));
}

#[test]
fn writes_script_as_built() {
    let folder = tempfile::tempdir().expect("a folder");
    let script =
        Script::modern().tool_text(r#"{"name":"t","n":1e999}"#).on("ping", json!([])).set("page_size", 3);
    let (first, second) = (script.write(folder.path()), script.write(folder.path()));
    assert_ne!(first, second);
    let text = fs::read_to_string(first).expect("written");
    assert_eq!(text, r#"{"era":"modern","on":{"ping":[]},"page_size":3,"tools":[{"name":"t","n":1e999}]}"#);
}

#[test]
fn missing_journal_is_empty_and_partial_line_is_skipped() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("journal");
    assert!(Journal::read(&path).entries().is_empty());
    fs::write(&path, "{\"event\":\"start\"}\n{\"ev").expect("written");
    assert_eq!(Journal::read(&path).entries(), [json!({"event": "start"})]);
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn waiting_does_not_block_async_tests() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("journal");
    let mut journal = Journal::read(&path);
    let writing = async {
        tokio::task::yield_now().await;
        fs::write(&path, "{\"event\":\"x\"}\n").expect("written");
    };
    tokio::join!(
        journal.wait_for_async(|journal| !journal.events("x").is_empty(), Duration::from_secs(20)),
        writing
    );
}

#[test]
#[should_panic(expected = "never showed")]
fn wait_panics_after_timeout() {
    Journal::read("no/such/journal").wait_for(|_| false, Duration::from_millis(20));
}

#[test]
#[cfg(target_os = "linux")]
fn drop_kills_server_and_children() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("journal");
    let script = Script::legacy().on("GET /child", json!([{"spawn_child": true}])).journal(&path);
    let server = HttpServer::start(&script);
    let stream = crate::http_client::open(&server, "GET /child", &[], "");
    assert_eq!(crate::http_client::read(stream).expect("an answer").status, 200);
    let journal = Journal::read(&path);
    let child = journal.events("child")[0]["child"].as_u64().and_then(|pid| u32::try_from(pid).ok());
    let (pid, child) = (server.pid(), child.expect("a pid"));
    assert!(toolhub_testkit::processes::alive(pid) && toolhub_testkit::processes::alive(child));
    drop(server);
    for pid in [pid, child] {
        assert!(toolhub_testkit::processes::gone_within(pid, Duration::from_secs(20)), "{pid}");
    }
}

#[test]
fn captures_stderr_of_server() {
    let server = HttpServer::start(&Script::legacy().set("stderr", ["careful"]));
    assert_eq!(server.stderr(), "careful\n");
    assert_eq!(server.url, format!("http://127.0.0.1:{}/mcp", server.port()));
    let _: Value = serde_json::from_str(&Script::both().json()).expect("JSON");
}
