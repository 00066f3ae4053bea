//! The circuit breaker of servers: it opens after five consecutive failures, in one long run or over many short ones, is shown
//! to the user, and is bypassed if the server is selected by name.

#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures_util::future::join_all;
use serde_json::{Value, json};
use toolhub::{ServerState, ToolCall, ToolError};
use toolhub_core::ports::{CachedList, ToolListStore as _};
use toolhub_store::SqliteStore;
use toolhub_testkit::scripted::{HttpServer, Journal, Script};
use toolhub_testkit::{CommandLine, TestHub};

/// Longer than the circuit stays open after five failures.
const MINUTE: Duration = Duration::from_secs(60);

/// A server that behaves like `bad` until the file `healthy` exists, and works from then on.
fn until_healthy(folder: &Path, bad: &Script) -> Value {
    let (healthy, flag) = (Script::legacy().plain_tool("t").write(folder), folder.join("healthy"));
    let run = format!(
        "if [ -e '{}' ]; then s='{}'; else s='{}'; fi; exec '{}' stdio \"$s\"",
        flag.display(),
        healthy.display(),
        bad.write(folder).display(),
        toolhub_testkit::scripted::binary().display()
    );
    json!({"command": "sh", "args": ["-c", run]})
}

#[tokio::test]
async fn opens_circuit_for_crashing_server_and_recovers() {
    let folder = tempfile::tempdir().unwrap();
    let dies = Script::legacy().plain_tool("t").on("tools/call:t", json!([{"exit": 1}]));
    let hub = TestHub::builder().entry("s", until_healthy(folder.path(), &dies)).build().await;
    for _ in 0..5 {
        let outcome = hub.call(ToolCall::new("t", json!({}))).await;
        assert!(matches!(outcome.result, Err(ToolError::ConnectionFailed { .. })), "{outcome:?}");
    }
    let outcome = hub.call(ToolCall::new("t", json!({}))).await;
    let error = outcome.result.unwrap_err().to_string();
    assert!(error.contains("it failed 5 times in a row; circuit open for"), "{error}");
    assert!(
        matches!(hub.servers()[0].state, ServerState::CircuitOpen { .. }),
        "{:?}",
        hub.servers()[0].state
    );
    // Selected by name, the server is tried immediately; a success resets its failure history.
    std::fs::write(folder.path().join("healthy"), "").unwrap();
    hub.list_server("s").await.unwrap().unwrap();
    assert!(hub.call(ToolCall::new("t", json!({}))).await.success());
    hub.close().await;
}

/// The number of server starts in a journal.
fn starts(journal: &Path) -> usize {
    Journal::read(journal).events("start").len()
}

/// The first server in the output of `servers list`.
fn server_status(cli: &CommandLine) -> Value {
    cli.run(&["servers", "list", "--json"]).json()[0].clone()
}

/// Moves the stored times back, as if the next run came this much later.
async fn advance_time(cli: &CommandLine, time: Duration) {
    let store = SqliteStore::open(&cli.folder().join("home")).unwrap();
    for (server, list) in store.load().await.unwrap() {
        let failure = list.failure.clone().map(|(at, why)| (at - time, why));
        store.save(&server, &CachedList { failure, ..list }).await.unwrap();
    }
}

/// Over several runs of the program: a server that crashes at every start opens its circuit after five attempts, which is
/// shown. It is tried again later and by name, and the circuit closes once the server has recovered.
#[tokio::test]
async fn circuit_of_server_that_crashes_at_start_stays_open_across_runs() {
    let mut cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    let journal = cli.folder().join("journal");
    let crashes =
        Script::legacy().on("*", json!([{"stderr": "out of paper"}, {"exit": 7}])).journal(&journal);
    cli.entry("crashes", until_healthy(cli.folder(), &crashes));
    cli.server("good", &Script::both().plain_tool("echo"));
    let call = |args: &[&str]| {
        let well = cli.run(&[&["call", "echo", "n:=1"], args].concat());
        assert_eq!((well.code, well.stdout.as_str()), (Some(0), "{\"n\":1}\n"), "{well:?}");
    };
    for failures in 1..=5 {
        assert!(server_status(&cli)["state"] != "circuit_open", "after {} failures", failures - 1);
        call(&[]);
        // On a busy machine the crash may come too late for the call to observe it.
        for _ in 0..20 {
            if server_status(&cli)["failures"] == failures {
                break;
            }
            call(&[]);
        }
        let now = server_status(&cli);
        assert_eq!(
            (&now["failures"], &now["error"]),
            (&json!(failures), &json!("its process ended with exit code 7"))
        );
    }
    let (now, started) = (server_status(&cli), starts(&journal));
    let until = now["circuit_open_until_ms"].as_u64().map(|until| UNIX_EPOCH + Duration::from_millis(until));
    let until = until.filter(|until| (SystemTime::now()..SystemTime::now() + MINUTE).contains(until));
    assert!(now["state"] == "circuit_open" && until.is_some(), "{now}");
    let listed = cli.run(&["servers", "list"]);
    assert!(
        listed.stdout.contains("circuit open")
            && listed.stdout.contains("failed 5 times in a row, tried again in "),
        "{listed:?}"
    );
    let listed = cli.run(&["servers", "list", "--lang", "zh"]);
    assert!(listed.stdout.contains("已熔断") && listed.stdout.contains("连续失败 5 次，"), "{listed:?}");
    // No command starts the server any more, not even for an unknown tool, and the output says so.
    call(&[]);
    call(&["--source", "good"]);
    let unknown = cli.run(&["call", "nothing"]);
    assert!(
        unknown.code == Some(1)
            && unknown.stderr.contains(
                "the tools of server `crashes` are not known: it failed 5 times in a row; circuit open for"
            ),
        "{unknown:?}"
    );
    assert_eq!((starts(&journal), &server_status(&cli)["failures"]), (started, &json!(5)));
    // Selected by name, the server is tried immediately, and the error gives the reason of the failure.
    let forced = cli.run(&["call", "t", "--source", "crashes"]);
    assert!(
        forced.code == Some(3)
            && forced.stderr.contains("its process ended with exit code 7")
            && !forced.stderr.contains("circuit open"),
        "{forced:?}"
    );
    let once = starts(&journal);
    assert!(once > started);
    assert_eq!(cli.run(&["servers", "test", "crashes"]).code, Some(3));
    assert_eq!((starts(&journal) - once, &server_status(&cli)["failures"]), (once - started, &json!(7)));
    // After the open period one run tries the server again, and the following ones do not.
    advance_time(&cli, 60 * MINUTE).await;
    assert_eq!(server_status(&cli)["state"], "failed");
    let before = starts(&journal);
    assert_eq!(cli.run(&["call", "nothing"]).code, Some(1));
    assert!(
        starts(&journal) > before && server_status(&cli)["state"] == "circuit_open",
        "{}",
        server_status(&cli)
    );
    advance_time(&cli, MINUTE).await;
    assert_eq!(server_status(&cli)["state"], "circuit_open", "eight failures cost more than a minute");
    // The server has recovered: a refresh by name detects that, and all other commands use it again.
    std::fs::write(cli.folder().join("healthy"), "").unwrap();
    let refreshed = cli.run(&["servers", "refresh", "crashes"]);
    assert_eq!(refreshed.code, Some(0), "{refreshed:?}");
    let now = server_status(&cli);
    assert_eq!((&now["state"], &now["error"], &now["failures"]), (&json!("ready"), &json!(null), &json!(0)));
    assert_eq!(cli.run(&["call", "t"]).code, Some(0));
}

/// Connections that break during calls count as failures, too. A call that names the server still tries it.
#[tokio::test]
async fn circuit_of_server_that_crashes_in_calls_stays_open_in_next_run() {
    let mut cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    let journal = cli.folder().join("journal");
    let dies = Script::legacy().plain_tool("t").on("tools/call:t", json!([{"exit": 1}])).journal(&journal);
    cli.entry("s", until_healthy(cli.folder(), &dies));
    for failures in 1..=5 {
        let died = cli.run(&["call", "t"]);
        assert!(died.code == Some(3) && died.stderr.contains("stopped during the call (exit 1)"), "{died:?}");
        assert_eq!(server_status(&cli)["failures"], failures);
    }
    let started = starts(&journal);
    let refused = cli.run(&["call", "t"]);
    let phrases =
        ["it failed 5 times in a row; circuit open for", "`toolhub servers test s` tries it at once"];
    assert!(
        refused.code == Some(3) && phrases.iter().all(|phrases| refused.stderr.contains(phrases)),
        "{refused:?}"
    );
    assert_eq!(starts(&journal), started);
    let forced = cli.run(&["call", "t", "--source", "s"]);
    assert!(
        forced.stderr.contains("stopped during the call (exit 1)") && starts(&journal) == started + 1,
        "{forced:?}"
    );
    std::fs::write(cli.folder().join("healthy"), "").unwrap();
    assert_eq!(cli.run(&["call", "t"]).code, Some(3), "it is left alone still");
    advance_time(&cli, 4 * MINUTE).await;
    assert_eq!(cli.run(&["call", "t"]).code, Some(0), "its time is over");
    assert_eq!(
        (&server_status(&cli)["state"], &server_status(&cli)["failures"]),
        (&json!("ready"), &json!(0))
    );
}

/// A connection that breaks with several calls in flight counts as one failure.
#[tokio::test]
async fn calls_lost_in_one_crash_count_as_one_failure() {
    let together = json!([{"shuffle": {"of": 20, "seed": 1}}, {"exit": 1}]);
    let script = Script::legacy().plain_tool("t").on("tools/call:t", &together);
    let hub = TestHub::builder().server("s", &script).build().await;
    for failures in 1..=2 {
        let outcomes = join_all((0..20).map(|_| hub.call(ToolCall::new("t", json!({}))))).await;
        assert!(outcomes.iter().all(|outcome| !outcome.success()), "{outcomes:?}");
        let list = hub.servers()[0].list.clone().unwrap();
        assert_eq!(list.failures, failures, "{list:?}");
    }
    hub.close().await;
}

/// Over HTTP, the only sign that a server is gone is that requests fail.
#[tokio::test]
async fn opens_circuit_for_unreachable_http_server() {
    let server = HttpServer::start(&Script::modern().plain_tool("t"));
    let hub = TestHub::builder().entry("s", json!({"url": server.url})).build().await;
    assert!(hub.call(ToolCall::new("t", json!({}))).await.success());
    drop(server);
    let mut error = String::new();
    for _ in 0..5 {
        error = hub.call(ToolCall::new("t", json!({}))).await.result.unwrap_err().to_string();
    }
    assert!(error.contains("times in a row; circuit open for"), "{error}");
    assert!(
        matches!(hub.servers()[0].state, ServerState::CircuitOpen { .. }),
        "{:?}",
        hub.servers()[0].state
    );
    hub.close().await;
}

/// A server that never answers costs its full timeout once. Later runs list and search without it, until it is selected by name
/// and has recovered.
#[tokio::test]
async fn waits_only_once_for_hanging_server() {
    let mut cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    let hangs = Script::legacy().on("*", json!([{"ignore": true}]));
    let entry = until_healthy(cli.folder(), &hangs);
    cli.entry("hangs", entry);
    let settings = "[[servers]]\nid = \"hangs\"\nconnect_timeout = \"12s\"\n";
    std::fs::write(cli.folder().join("toolhub.toml"), settings).unwrap();
    cli.server("good", &Script::both().plain_tool("echo"));
    let timed = |args: &[&str]| {
        let began = Instant::now();
        let ran = cli.run(args);
        (ran, began.elapsed())
    };
    let (first, took) = timed(&["tools"]);
    assert!(
        took >= Duration::from_secs(12) && first.stderr.contains("the tools of `hangs` are not known"),
        "{first:?}"
    );
    for args in [&["tools"][..], &["tools", "search", "echo"], &["call", "nothing"]] {
        let (ran, took) = timed(args);
        assert!(took < Duration::from_secs(9), "{args:?} took {took:?}: {ran:?}");
    }
    std::fs::write(cli.folder().join("healthy"), "").unwrap();
    assert_eq!(cli.run(&["call", "t", "--source", "hangs"]).code, Some(0));
    assert_eq!(server_status(&cli)["state"], "ready");
}
