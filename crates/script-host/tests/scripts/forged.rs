//! A host that a script has taken over: it sends what it may not send, too much, or nothing.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::json;
use toolhub_core::lang::Lang;
use toolhub_script::FailureKind::{CpuLimit, Crashed, NotStarted, Protocol, WallLimit};
use toolhub_script::{
    LocalHosts, OtherHosts, RunnerConfig, Script, ScriptLimits, ScriptReport, ScriptRunner,
};

use super::harness::{TestTools, config, failed, short, value};

async fn forge(lines: &[&str], tools: &TestTools) -> ScriptReport {
    forge_within(lines, tools, Duration::from_secs(30)).await
}

/// Lines of a host behind the port of other machines, such as that of a cluster worker.
async fn forge_elsewhere(lines: &[&str], tools: &TestTools) -> ScriptReport {
    let mut config = config();
    config.host.arguments = ["forge"].iter().chain(lines).map(Into::into).collect();
    let limits = ScriptLimits { wall: Duration::from_secs(30), ..short() };
    let config = RunnerConfig { limits, ..config };
    let hosts = Arc::new(LocalHosts::new(config.clone()));
    let others = Some(OtherHosts { hosts, or_here: false });
    ScriptRunner::new(RunnerConfig { others, ..config }).run(&Script::new("1"), tools, None).await
}

async fn forge_within(lines: &[&str], tools: &TestTools, wall: Duration) -> ScriptReport {
    let mut config = config();
    config.host.arguments = ["forge"].iter().chain(lines).map(Into::into).collect();
    let limits = ScriptLimits { wall, ..short() };
    // Limits of the process are those of the runner.
    let runner = ScriptRunner::new(RunnerConfig { limits, ..config });
    runner.run(&Script::new("1"), tools, None).await
}

const ECHO: &str = "{\"call\":{\"id\":1,\"tool\":\"test_echo\",\"arguments\":{}}}";
const DONE: &str = "{\"finished\":{\"value\":1,\"dropped_lines\":0}}";

#[tokio::test]
async fn accepts_only_messages_that_a_host_may_send() {
    let deep = format!(
        "{{\"call\":{{\"id\":1,\"tool\":\"test_echo\",\"arguments\":{}{}}}}}",
        "{\"a\":".repeat(140) + "1",
        "}".repeat(140)
    );
    let long = format!(
        "{{\"call\":{{\"id\":1,\"tool\":\"test_echo\",\"arguments\":{{\"a\":\"{}\"}}}}}}",
        "x".repeat(60_000)
    );
    let log = format!("{{\"log\":{{\"level\":\"log\",\"text\":\"{}\"}}}}", "x".repeat(60_000));
    let logs: Vec<&str> = std::iter::repeat_n(log.as_str(), 3).collect();
    let cases: &[&[&str]] = &[
        &["not json"],
        &[""],
        &["\u{1}\u{7f}"],
        &["null"],
        &["[]"],
        &["{}"],
        &["{\"idle\":{}}{\"idle\":{}}"],
        &["{\"unknown\":{}}"],
        &["{\"ready\":{\"version\":2,\"restricted\":true}}"],
        &["{\"started\":{}}"],
        &["@not-started", DONE],
        &["@not-started", ECHO],
        &["@not-started", "not json"],
        &["@not-started", "@endless-line"],
        &["{\"run\":{\"code\":\"1\"}}"],
        // Calls: number, tool, arguments.
        &["{\"call\":{\"id\":0,\"tool\":\"test_echo\",\"arguments\":{}}}"],
        &["{\"call\":{\"id\":2,\"tool\":\"test_echo\",\"arguments\":{}}}"],
        &[ECHO, ECHO],
        &["{\"call\":{\"id\":4294967295,\"tool\":\"test_echo\",\"arguments\":{}}}"],
        &["{\"call\":{\"id\":4294967296,\"tool\":\"test_echo\",\"arguments\":{}}}"],
        &["{\"call\":{\"id\":1,\"tool\":\"secret_tool\",\"arguments\":{}}}"],
        &["{\"call\":{\"id\":1,\"tool\":\"\",\"arguments\":{}}}"],
        &["{\"call\":{\"id\":1,\"tool\":\"test_echo\",\"arguments\":[]}}"],
        &["{\"call\":{\"id\":1,\"tool\":\"test_echo\",\"arguments\":null}}"],
        &["{\"call\":{\"id\":1,\"tool\":\"test_echo\",\"arguments\":{},\"source\":\"native\"}}"],
        &["{\"call\":{\"id\":1,\"tool\":\"test_echo\",\"tool\":\"test_fail\",\"arguments\":{}}}"],
        &[&deep],
        // Sleeps.
        &["{\"sleep\":{\"id\":2,\"ms\":1}}"],
        &["{\"sleep\":{\"id\":1,\"ms\":-1}}"],
        // Output.
        &["{\"log\":{\"level\":\"root\",\"text\":\"x\"}}"],
        &logs,
        &["{\"finished\":{\"dropped_lines\":0}}"],
        &[
            "{\"finished\":{\"value\":1,\"error\":{\"kind\":\"thrown\",\"name\":\"\",\"message\":\"\"},\"dropped_lines\":0}}",
        ],
        &["{\"finished\":{\"value\":1}}"],
        &["{\"finished\":{\"value\":1,\"dropped_lines\":0,\"calls\":[]}}"],
        &["{\"finished\":{\"value\":1,\"dropped_lines\":0,\"not_awaited\":[{\"id\":1}]}}"],
        &[ECHO, "{\"finished\":{\"value\":1,\"dropped_lines\":0,\"not_awaited\":[{\"id\":1},{\"id\":1}]}}"],
        &[ECHO, "{\"finished\":{\"value\":1,\"dropped_lines\":0,\"not_awaited\":[{\"id\":0}]}}"],
        &["{\"idle\":{}}", "{\"idle\":{}}"],
        // Floods.
        &["@endless-line"],
        &["@endless-log"],
        &["@endless-idle"],
        &["@endless-calls"],
    ];
    for lines in cases {
        let tools = TestTools::default();
        let report = forge(lines, &tools).await;
        let text = failed(&report, Protocol);
        assert!(text.contains("and was killed"), "{lines:?}: {text}");
        assert!(!text.contains("secret_tool"), "{text}");
        assert!(tools.calls.lock().unwrap().len() <= 100, "{lines:?}");
        assert_eq!(tools.names().iter().filter(|name| *name == "secret_tool").count(), 0);
        // A host on another machine may send no more than one of this machine.
        let tools = TestTools::default();
        let report = forge_elsewhere(lines, &tools).await;
        // What comes before the start of the script, or is too long for a line, is noticed by the machine of the host.
        let is_noticed_there = lines.iter().any(|line| matches!(*line, "@not-started" | "@endless-line"));
        let kind = report.failure().map(|failure| failure.kind);
        assert!(kind == Some(Protocol) || (is_noticed_there && kind.is_some()), "{lines:?}: {report:?}");
        assert!(tools.calls.lock().unwrap().len() <= 100, "{lines:?}");
        assert_eq!(tools.names().iter().filter(|name| *name == "secret_tool").count(), 0);
    }
    let limits = ScriptLimits { arguments: 50_000, ..short() };
    let mut config = config();
    config.host.arguments = vec!["forge".into(), long.into()];
    let report = ScriptRunner::new(RunnerConfig { limits, ..config })
        .run(&Script::new("1"), &TestTools::default(), None)
        .await;
    failed(&report, Protocol);
}

#[tokio::test]
async fn ignores_everything_after_the_end() {
    let tools = TestTools::default();
    let report = forge(&[DONE, ECHO, DONE, "not json"], &tools).await;
    assert_eq!(value(&report), json!(1));
    assert!(tools.calls.lock().unwrap().is_empty());
}

#[tokio::test]
async fn bounds_texts_and_places_of_errors() {
    let message = "m".repeat(100_000);
    let forged = format!(
        "{{\"finished\":{{\"error\":{{\"kind\":\"thrown\",\"name\":\"N\",\"message\":\"{message}\",\"line\":4000000000,\"column\":4000000000,\"tool\":\"secret_tool\",\"call_kind\":\"k\"}},\"dropped_lines\":18446744073709551615}}}}"
    );
    let report = forge(&[&forged], &TestTools::default()).await;
    let failure = report.failure().unwrap();
    assert_eq!((failure.tool.as_deref(), failure.signature.as_deref()), (None, None));
    assert!(report.notes(Lang::En).len() < 10_000);
}

#[tokio::test]
async fn a_host_that_dies_is_one_failed_run() {
    for (action, expect) in
        [("@segv", "SIGSEGV"), ("@kill", "SIGKILL"), ("@abort", "SIGABRT"), ("@close", "exit code 0")]
    {
        let tools = TestTools::default();
        let report = forge(&[ECHO, action], &tools).await;
        let text = failed(&report, Crashed);
        assert!(
            text.contains("the script host ended before the script did") && text.contains(expect),
            "{text}"
        );
        assert!(report.calls.len() <= 1);
    }
}

#[tokio::test]
async fn a_host_that_does_nothing_is_stopped() {
    for (action, kind, seconds) in
        [("@wait", WallLimit, 2), ("@spin", CpuLimit, 60), ("@endless-stderr", WallLimit, 4)]
    {
        let wall = Duration::from_secs(seconds);
        let began = Instant::now();
        let report = forge_within(&[action], &TestTools::default(), wall).await;
        let found = report.failure().map(|failure| failure.kind);
        // A flood on stderr uses CPU time, too.
        assert!(
            found == Some(kind) || (action == "@endless-stderr" && found == Some(CpuLimit)),
            "{action}: {found:?}"
        );
        assert!(began.elapsed() < wall + Duration::from_secs(10), "{action}");
    }
}

#[tokio::test]
async fn does_not_send_the_script_to_another_program() {
    for arguments in [vec!["forge", "@not-ready"], vec!["unknown"]] {
        let mut config = config();
        config.host.arguments = arguments.iter().map(Into::into).collect();
        let runner = ScriptRunner::new(RunnerConfig {
            limits: ScriptLimits { wall: Duration::from_secs(4), ..short() },
            ..config
        });
        let report = runner.run(&Script::new("1"), &TestTools::default(), None).await;
        let kind = report.failure().map(|failure| failure.kind);
        assert!(matches!(kind, Some(NotStarted | WallLimit)), "{arguments:?}: {kind:?}");
    }
    let mut config = config();
    config.host.program = "/nonexistent/script-host".into();
    let report = ScriptRunner::new(config).run(&Script::new("1"), &TestTools::default(), None).await;
    failed(&report, NotStarted);
}

#[tokio::test]
async fn a_host_that_does_not_read_gets_no_more_answers() {
    let calls: Vec<String> = (1..=40)
        .map(|id| {
            format!("{{\"call\":{{\"id\":{id},\"tool\":\"test_big\",\"arguments\":{{\"bytes\":4000000}}}}}}")
        })
        .collect();
    let mut lines: Vec<&str> = calls.iter().map(String::as_str).collect();
    lines.push("@spin");
    let tools = TestTools::default();
    let report = forge(&lines, &tools).await;
    assert!(report.failure().is_some());
    let made = tools.calls.lock().unwrap().len();
    // The unsent answers stay below the limit of one answer and those of the calls that run at the same time.
    assert!(made <= 12, "{made} calls of 4 MB");
    assert_eq!(tools.dropped.load(Ordering::SeqCst), 0);
}
