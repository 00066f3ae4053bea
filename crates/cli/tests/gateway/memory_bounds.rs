//! Endless responses do not exhaust memory: the peak memory of the gateway is read from `/proc`.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolhub_testkit::CommandLine;
use toolhub_testkit::scripted::{HttpServer, Script};

use crate::raw_client::{Era, RawClient};
use crate::serving::{Serving, TEST_TIMEOUT, hub};

const MIB: u64 = 1 << 20;
/// The number of bytes that a server sends in each case. The asserted bounds are lower: a few buffers of the longest accepted
/// message (16 MiB for a line, 64 MiB for a body), which double while they grow.
const SENT: u64 = 256 * MIB;

/// A value from a `/proc` file of the gateway.
fn figure(serving: &Serving, file: &str, name: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{}/{file}", serving.pid())).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// The peak resident memory so far, in bytes.
fn peak(serving: &Serving) -> u64 {
    figure(serving, "status", "VmHWM:") << 10
}

/// The number of bytes read so far.
fn read(serving: &Serving) -> u64 {
    figure(serving, "io", "rchar:")
}

/// A server whose only tool performs these actions.
fn flooding(actions: &Value) -> Script {
    Script::legacy().plain_tool("flood").on("tools/call:flood", actions)
}

/// Calls a tool of the server that `add` configures, which sends too much. Checks that the call fails with `expected`, that
/// another server still answers, and that the gateway reads at least `least` bytes. Returns the growth of its peak memory, in
/// bytes.
async fn growth(add: impl FnOnce(&mut CommandLine), expected: &str, least: u64) -> u64 {
    let mut cli = hub("[limits]\ncall = \"2m\"\n");
    add(&mut cli);
    cli.server("good", &Script::both().plain_tool("echo"));
    let serving = Serving::start(cli);
    let client = RawClient::connect(&serving.url(), Era::Modern).await;
    assert_eq!(client.call("echo", "{}").await.text(), "{}");
    let (before, read_before) = (peak(&serving), read(&serving));
    let answer = client.call("flood", "{}").await;
    assert!(answer.text().contains(expected), "{answer:?}");
    // The rest of the output is still being read.
    let since = Instant::now();
    while read(&serving) - read_before < least {
        assert!(since.elapsed() < TEST_TIMEOUT, "{} bytes were read", read(&serving) - read_before);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(client.call("echo", "{}").await.text(), "{}");
    peak(&serving) - before
}

#[tokio::test]
async fn endless_line_keeps_memory_bounded() {
    let script = flooding(&json!([{"endless": SENT}]));
    let grown = growth(|cli| cli.server("s", &script), "more than 16 MiB", SENT).await;
    assert!(grown < 96 * MIB, "{} MiB more", grown / MIB);
}

#[tokio::test]
async fn stderr_flood_keeps_memory_bounded() {
    // Lines take longer to read than bytes.
    let sent = SENT / 4;
    let script = flooding(&json!([{"flood_stderr": sent}, {"exit": 1}]));
    let grown = growth(|cli| cli.server("s", &script), "exit 1", sent).await;
    assert!(grown < 16 * MIB, "{} MiB more", grown / MIB);
}

#[tokio::test]
async fn endless_body_keeps_memory_bounded() {
    let server = HttpServer::start(&flooding(&json!([{"endless": SENT}])));
    let grown = growth(|cli| cli.entry("s", json!({"url": server.url})), "more than 64 MiB", 0).await;
    assert!(grown < 192 * MIB, "{} MiB more", grown / MIB);
}

#[tokio::test]
async fn decompression_bomb_keeps_memory_bounded() {
    let packed =
        Command::new("sh").args(["-c", &format!("head -c {SENT} /dev/zero | gzip")]).output().unwrap();
    let hex = toolhub_core::hex::encode(&packed.stdout);
    let bomb = json!([
        {"header": {"Content-Encoding": "gzip"}}, {"content_type": "application/json"}, {"bytes_hex": hex}
    ]);
    let server = HttpServer::start(&flooding(&bomb));
    let grown = growth(|cli| cli.entry("s", json!({"url": server.url})), "more than 64 MiB", 0).await;
    assert!(grown < 192 * MIB, "{} MiB more", grown / MIB);
}
