//! Commands use the servers of a running `toolhub serve` with the same configuration, and of no other: state is kept, no server
//! runs twice, and without such a hub the command starts the servers itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolhub_testkit::scripted::{HttpServer, Journal, Script};
use toolhub_testkit::{CommandLine, CommandOutput, processes};

use crate::access::two_principals_with;
use crate::raw_client::{Era, RawClient, Stream};
use crate::serving::{Serving, TEST_TIMEOUT, hub};

const PLAIN: &str = "[native]\nenabled = false\n";

/// A server whose tool `next` counts the calls within its process.
fn counting(script: Script) -> Script {
    let counts: Vec<Value> = (1..9).map(|n| json!([{"text": format!("call {n}")}])).collect();
    script.plain_tool("next").on("tools/call:next", counts)
}

fn serving(script: impl FnOnce(&Path) -> Script) -> (Serving, PathBuf) {
    let mut cli = hub(PLAIN);
    let journal = cli.folder().join("journal");
    cli.server("s", &script(&journal).journal(&journal));
    (Serving::start(cli), journal)
}

fn starts(journal: &Path) -> usize {
    Journal::read(journal).pids().len()
}

fn calls(journal: &Path) -> usize {
    Journal::read(journal).count_method("tools/call")
}

fn answer(ran: &CommandOutput) -> String {
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.stdout.trim().to_owned()
}

fn run(mut command: Command) -> CommandOutput {
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    CommandOutput { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

fn signal(pid: u32, name: &str) {
    assert!(Command::new("kill").args([name, &pid.to_string()]).status().unwrap().success());
}

fn started(cli: &CommandLine, args: &[&str]) -> Child {
    cli.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn ended(child: Child) -> CommandOutput {
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    CommandOutput { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

fn await_calls(journal: &Path, count: usize) {
    Journal::read(journal).wait_for(|journal| journal.count_method("tools/call") >= count, TEST_TIMEOUT);
}

#[test]
fn commands_use_servers_of_running_hub() {
    for script in [Script::legacy(), Script::modern()] {
        let (serving, journal) = serving(|_| counting(script));
        let cli = serving.cli();
        assert_eq!(answer(&cli.run(&["call", "next"])), "call 1");
        assert_eq!(answer(&cli.run(&["call", "next"])), "call 2");
        let observed = cli.run(&["-v", "call", "next"]);
        assert_eq!(answer(&observed), "call 3");
        assert!(
            observed.stderr.contains("uses the connection of the running `toolhub serve`"),
            "{observed:?}"
        );
        assert_eq!(starts(&journal), 1, "the hub's process alone");
        assert_eq!(processes::children_of(serving.pid()).len(), 1);
        // Each call is recorded once, by the command.
        let history = cli.run(&["history", "--json"]);
        assert_eq!(history.json().as_array().unwrap().len(), 3, "{history:?}");
        assert!(answer(&cli.run(&["tools", "--source", "s"])).contains("next"));
        drop(serving);
    }
}

#[test]
fn commands_start_own_servers_without_running_hub_or_on_request() {
    let (serving, journal) = serving(|_| counting(Script::legacy()));
    let cli = serving.cli();
    assert_eq!(answer(&cli.run(&["call", "next"])), "call 1");
    assert_eq!(answer(&cli.run(&["--no-hub", "call", "next"])), "call 1");
    let mut command = cli.command(&["call", "next"]);
    command.env("TOOLHUB_NO_HUB", "1");
    assert_eq!(answer(&run(command)), "call 1");
    assert_eq!(starts(&journal), 3);
    assert_eq!(answer(&cli.run(&["call", "next"])), "call 2");
    // `servers test` starts the server itself instead of using the running one.
    assert_eq!(cli.run(&["servers", "test", "s"]).code, Some(0));
    assert_eq!(starts(&journal), 4);
    let cli = serving.kill();
    for _ in 0..2 {
        let since = Instant::now();
        let ran = cli.run(&["-v", "call", "next"]);
        assert_eq!(answer(&ran), "call 1");
        assert!(since.elapsed() < Duration::from_secs(20), "a dead socket is no reason to wait");
        assert!(!ran.stderr.contains("toolhub serve"), "{ran:?}");
    }
    assert_eq!(cli.folder().join("home/hubs").read_dir().unwrap().count(), 2, "what the killed hub left");
    let serving = Serving::start(cli);
    let hubs = serving.folder().join("home/hubs");
    assert_eq!(hubs.read_dir().unwrap().count(), 2, "the dead socket was removed");
    assert_eq!(answer(&serving.cli().run(&["call", "next"])), "call 1");
}

#[test]
fn socket_is_private_and_removed_on_exit() {
    use std::os::unix::fs::MetadataExt as _;

    let (serving, _) = serving(|_| counting(Script::legacy()));
    let hubs = serving.folder().join("home/hubs");
    let files = || {
        let mut files: Vec<PathBuf> = hubs.read_dir().unwrap().flatten().map(|entry| entry.path()).collect();
        files.sort();
        files
    };
    let mode = |path: &Path| path.symlink_metadata().unwrap().mode() & 0o777;
    let modes: Vec<u32> = files().iter().map(|file| mode(file)).collect();
    assert_eq!((mode(&hubs), modes), (0o700, vec![0o600, 0o600]), "a secret and a socket");
    // A symbolic link in its place is rejected; the error names the file.
    let link = hubs.join("0.sock");
    std::os::unix::fs::symlink(&files()[1], &link).unwrap();
    let refused = serving.cli().run(&["call", "next"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("is a link"), "{refused:?}");
    fs::remove_file(link).unwrap();
    let mut serving = serving;
    serving.terminate();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    assert_eq!(runtime.block_on(serving.ended()), Some(0));
    assert!(files().is_empty(), "{:?}", files());
}

#[test]
fn ignores_hub_of_another_config_directory_or_environment() {
    let mut cli = hub(PLAIN);
    let journal = cli.folder().join("journal");
    cli.server("s", &counting(Script::legacy()).journal(&journal));
    let file = cli.folder().join("mcp.json");
    let mut config: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    config["mcpServers"]["s"]["env"]["KEY"] = json!("${KEY:-none}");
    fs::write(&file, config.to_string()).unwrap();
    let serving = Serving::start(cli);
    let cli = serving.cli();
    assert_eq!(answer(&cli.run(&["call", "next"])), "call 1");

    // A different value of a variable that is passed to the server.
    let mut command = cli.command(&["-v", "call", "next"]);
    command.env("KEY", "mine");
    let ran = run(command);
    assert_eq!(answer(&ran), "call 1");
    assert!(ran.stderr.contains("its environment variables differ there"), "{ran:?}");

    // A different working folder.
    let folder = cli.folder().join("elsewhere");
    fs::create_dir(&folder).unwrap();
    let mut command = cli.command(&["-v", "--config", "../toolhub.toml", "call", "next"]);
    command.current_dir(&folder);
    let ran = run(command);
    assert_eq!(answer(&ran), "call 1");
    assert!(ran.stderr.contains("does not use the running `toolhub serve`"), "{ran:?}");
    assert_eq!(answer(&cli.run(&["call", "next"])), "call 2", "the hub's own was not used meanwhile");

    // A different configuration, which the hub reloads later.
    config["mcpServers"]["s"]["env"]["KEY"] = json!("other");
    fs::write(&file, config.to_string()).unwrap();
    let ran = cli.run(&["-v", "call", "next"]);
    assert_eq!(answer(&ran), "call 1");
    let since = Instant::now();
    while !serving.stderr().contains("servers reloaded: changed `s`") {
        assert!(since.elapsed() < TEST_TIMEOUT, "{}", serving.stderr());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(answer(&cli.run(&["call", "next"])), "call 1", "the hub's new process");
    assert_eq!(answer(&cli.run(&["call", "next"])), "call 2");
}

#[test]
fn untrusted_command_reaches_no_server_of_trusting_hub() {
    let (serving, journal) = serving(|_| counting(Script::legacy()));
    assert_eq!(answer(&serving.cli().run(&["call", "next"])), "call 1");
    for args in [&["call", "next"][..], &["call", "next", "--source", "s"], &["tools", "--refresh"]] {
        let mut command = serving.cli().command(args);
        command.env_remove("TOOLHUB_TRUST").env("XDG_CONFIG_HOME", serving.folder().join("empty"));
        let ran = run(command);
        assert!(!ran.stdout.contains("next") && !ran.stdout.contains("call 2"), "{ran:?}");
    }
    assert_eq!((calls(&journal), starts(&journal)), (1, 1));
}

#[test]
fn reports_unknown_effect_without_retry_if_hub_dies() {
    let held = json!([{"ignore": true}]);
    let (serving, journal) = serving(|_| Script::legacy().plain_tool("hold").on("tools/call:hold", &held));
    let child = started(serving.cli(), &["call", "hold"]);
    await_calls(&journal, 1);
    let pids = Journal::read(&journal).pids();
    let cli = serving.kill();
    let ran = ended(child);
    assert!(processes::gone_within(pids[0], TEST_TIMEOUT), "the server ends with its hub");
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("broke the connection during the call"), "{ran:?}");
    assert!(ran.stderr.contains("unknown"), "{ran:?}");
    assert_eq!((calls(&journal), starts(&journal)), (1, 1), "sent once, and no other process was started");
    let history = cli.run(&["history", "--json"]);
    assert!(history.stdout.contains("hold"), "{history:?}");
}

#[test]
fn server_death_fails_relayed_call_like_direct_call() {
    let dies = json!([{"exit": 3}]);
    let (serving, journal) =
        serving(|_| counting(Script::legacy()).plain_tool("die").on("tools/call:die", &dies));
    let cli = serving.cli();
    let through = cli.run(&["call", "die"]);
    assert!(through.stderr.contains("stopped during the call (exit 3)"), "{through:?}");
    let alone = cli.run(&["--no-hub", "call", "die"]);
    assert_eq!((through.code, &through.stderr), (alone.code, &alone.stderr));
    assert_eq!(calls(&journal), 2);
    assert_eq!(answer(&cli.run(&["call", "next"])), "call 1");
    assert_eq!(answer(&cli.run(&["call", "next"])), "call 2");
}

#[test]
fn stopping_hub_finishes_running_call() {
    let slow = json!([{"delay_ms": 1500}, {"text": "done"}]);
    let (mut serving, journal) =
        serving(|_| Script::legacy().plain_tool("slow").on("tools/call:slow", &slow));
    let child = started(serving.cli(), &["call", "slow"]);
    await_calls(&journal, 1);
    serving.terminate();
    assert_eq!(answer(&ended(child)), "done");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    assert_eq!(runtime.block_on(serving.ended()), Some(0));
    assert_eq!(calls(&journal), 1);
}

#[test]
fn skips_unresponsive_hub_quickly() {
    let (serving, journal) = serving(|_| counting(Script::legacy()));
    let cli = serving.cli();
    assert_eq!(answer(&cli.run(&["call", "next"])), "call 1");
    signal(serving.pid(), "-STOP");
    let quiet = cli.run(&["call", "next"]);
    let since = Instant::now();
    let ran = cli.run(&["-v", "call", "next"]);
    let took = since.elapsed();
    signal(serving.pid(), "-CONT");
    assert_eq!((answer(&quiet), answer(&ran)), ("call 1".into(), "call 1".into()));
    assert!(!quiet.stderr.contains("toolhub serve"), "{quiet:?}");
    assert_eq!(ran.stderr.matches("toolhub serve").count(), 1, "{ran:?}");
    assert!(ran.stderr.contains("it does not answer"), "{ran:?}");
    assert!(took < Duration::from_secs(20), "{took:?}");
    assert_eq!(starts(&journal), 3);
}

#[test]
fn interrupt_cancels_call_and_keeps_server_of_hub() {
    let held = json!([{"ignore": true}]);
    let (serving, journal) =
        serving(|_| counting(Script::legacy()).plain_tool("hold").on("tools/call:hold", &held));
    let child = started(serving.cli(), &["call", "hold"]);
    await_calls(&journal, 1);
    signal(child.id(), "-INT");
    assert_eq!(ended(child).code, Some(130));
    let cancelled = |journal: &Journal| journal.count_method("notifications/cancelled") == 1;
    Journal::read(&journal).wait_for(cancelled, TEST_TIMEOUT);
    // A killed command sends no message; the hub detects the closed connection.
    let child = started(serving.cli(), &["call", "hold"]);
    await_calls(&journal, 2);
    signal(child.id(), "-KILL");
    ended(child);
    let cancelled = |journal: &Journal| journal.count_method("notifications/cancelled") == 2;
    Journal::read(&journal).wait_for(cancelled, TEST_TIMEOUT);
    assert_eq!(answer(&serving.cli().run(&["call", "next"])), "call 1");
    assert_eq!(starts(&journal), 1);
}

#[test]
fn relayed_calls_keep_http_sessions() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let server = HttpServer::start(&counting(Script::legacy()).journal(&journal));
    let mut cli = hub(PLAIN);
    cli.entry("s", json!({"url": server.url}));
    let serving = Serving::start(cli);
    for _ in 0..2 {
        assert!(answer(&serving.cli().run(&["call", "next"])).starts_with("call"));
    }
    assert_eq!(Journal::read(&journal).count_method("initialize"), 1, "one session");
}

fn question() -> Value {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    json!({"method": "elicitation/create", "params": {"message": "Who are you?", "requestedSchema": schema}})
}

#[tokio::test]
async fn elicitation_reaches_only_the_command_that_made_the_call() {
    let asks = json!([{"request": question()}, {"text": "asked"}]);
    let held = json!([{"ignore": true}]);
    let script = |_: &Path| {
        let script = Script::legacy().plain_tool("ask").on("tools/call:ask", &asks);
        script.plain_tool("hold").on("tools/call:hold", &held)
    };
    let (serving, journal) = serving(script);
    let can = json!({"elicitation": {}});
    let client = RawClient::legacy_with(&serving.url(), "2025-11-25", can).await;
    client.tools().await;
    let mut observed = Stream::open(client.get()).await;
    let ran = serving.cli().run(&["call", "ask"]);
    assert_eq!(answer(&ran), "asked");
    assert!(ran.stderr.contains("asks for input (\"Who are you?\")"), "{ran:?}");
    assert!(observed.nothing_more("elicitation/create").await, "the gateway's client was asked");

    // With two calls in flight the origin of a server request is ambiguous, so it is sent to neither.
    let child = started(serving.cli(), &["call", "hold"]);
    let since = Instant::now();
    while calls(&journal) < 2 {
        assert!(since.elapsed() < TEST_TIMEOUT);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(client.call("ask", "{}").await.text(), "asked");
    signal(child.id(), "-INT");
    let ran = ended(child);
    assert!(!ran.stderr.contains("asks for input"), "{ran:?}");
}

#[tokio::test]
async fn commands_use_own_instance_beside_caller_instances() {
    let settings = "[[servers]]\nid = \"s\"\ninstances = \"caller\"\n";
    let (serving, [ann, _]) = two_principals_with(&counting(Script::legacy()), settings);
    let client = RawClient::with_token(&serving.url(), Era::Legacy, Some(&ann)).await;
    assert_eq!(client.call("next", "{}").await.text(), "call 1");
    assert_eq!(client.call("next", "{}").await.text(), "call 2");
    assert_eq!(answer(&serving.cli().run(&["call", "next"])), "call 1");
    assert_eq!(answer(&serving.cli().run(&["call", "next"])), "call 2");
    assert_eq!(client.call("next", "{}").await.text(), "call 3");
}

/// Control: without tokens the commands of the owner and local clients are one principal.
#[tokio::test]
async fn commands_share_the_instance_of_local_clients_without_tokens() {
    let mut cli = hub(&format!("{PLAIN}[[servers]]\nid = \"s\"\ninstances = \"caller\"\n"));
    cli.server("s", &counting(Script::legacy()));
    let serving = Serving::start(cli);
    let client = RawClient::connect(&serving.url(), Era::Modern).await;
    assert_eq!(client.call("next", "{}").await.text(), "call 1");
    assert_eq!(answer(&serving.cli().run(&["call", "next"])), "call 2");
    assert_eq!(client.call("next", "{}").await.text(), "call 3");
}
