//! Processes of scripts: one for each, none left, many at once, and a pool that is never used twice.

use std::collections::BTreeSet;
use std::future::Future as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Waker};
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use toolhub_script::{FailureKind, FileJournal, RunnerConfig, Script, ScriptLimits, ScriptRunner};

use super::harness::{TestTools, config, failed, host, value};

/// PIDs of hosts that are children of this test process. Tests of one program share them, so only those of an own program
/// copy are counted.
fn hosts_of(program: &std::path::Path) -> BTreeSet<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program))
        .collect()
}

/// The host program under a name of its own, so that its processes can be distinguished from those of other tests.
fn own_program() -> (tempfile::TempDir, RunnerConfig) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let program = folder.path().canonicalize().unwrap().join("script-host");
    // A link, not a copy: a file cannot be executed while another test's new process still has it open for writing.
    std::fs::hard_link(host().program, &program).unwrap();
    let mut config = config();
    config.host.program = program;
    (folder, config)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_scripts_at_once() {
    let (_folder, config) = own_program();
    let program = config.host.program.clone();
    let runner = ScriptRunner::new(RunnerConfig { max_running: 100, warm_hosts: 2, ..config });
    let tools = Arc::new(TestTools::default());
    let mut runs = JoinSet::new();
    for n in 0..100_u32 {
        let (runner, tools) = (runner.clone(), Arc::clone(&tools));
        runs.spawn(async move {
            let code = format!(
                "globalThis.left = (globalThis.left ?? 0) + 1;
                 const all = await Promise.all([1, 2, 3].map((x) => tools.test.echo({{ x, n: {n} }})));
                 return [left, all.map((a) => a.x * a.n)]"
            );
            let report = runner.run(&Script::new(code), &*tools, None).await;
            (n, value(&report))
        });
    }
    while let Some(run) = runs.join_next().await {
        let (n, result) = run.unwrap();
        assert_eq!(result, json!([1, [n, 2 * n, 3 * n]]), "no state of another script");
    }
    assert_eq!(tools.calls.lock().unwrap().len(), 300);
    runner.shutdown().await;
    assert_none_left(&program).await;
}

/// Processes that were killed leave the process table soon.
async fn assert_none_left(program: &std::path::Path) {
    for _ in 0..500 {
        if hosts_of(program).is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("left: {:?}", hosts_of(program));
}

#[tokio::test]
async fn every_end_of_a_run_ends_its_process() {
    let (_folder, config) = own_program();
    let program = config.host.program.clone();
    let runner = ScriptRunner::new(config);
    let limits =
        ScriptLimits { wall: Duration::from_secs(2), cpu: Duration::from_secs(1), ..ScriptLimits::default() };
    for code in [
        "1",
        "throw 1",
        "let a = ;",
        "await tools.test.never({})",
        "while (true);",
        "await new Promise(() => {})",
    ] {
        let script = Script { limits: Some(limits), ..Script::new(code) };
        runner.run(&script, &TestTools::default(), None).await;
        assert_none_left(&program).await;
    }
    // Dropped in the middle of computing and of a call.
    for code in ["while (true);", "await tools.test.never({})"] {
        let script = Script::new(code);
        let tools = TestTools::default();
        let run = runner.run(&script, &tools, None);
        assert!(tokio::time::timeout(Duration::from_millis(400), run).await.is_err());
        assert_none_left(&program).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killing_a_host_is_one_failed_run() {
    let (_folder, config) = own_program();
    let program = config.host.program.clone();
    let runner = ScriptRunner::new(config);
    let tools = Arc::new(TestTools::default());
    for code in
        ["await tools.test.echo({}); while (true);", "await tools.test.echo({}); await tools.test.never({})"]
    {
        let mut runs = JoinSet::new();
        let (of_run, given) = (runner.clone(), Arc::clone(&tools));
        let before = tools.calls.lock().unwrap().len();
        runs.spawn(async move { of_run.run(&Script::new(code), &*given, None).await });
        while tools.calls.lock().unwrap().len() == before {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        for pid in hosts_of(&program) {
            let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        }
        let report = runs.join_next().await.unwrap().unwrap();
        let text = failed(&report, FailureKind::Crashed);
        assert!(text.contains("SIGKILL") && text.contains("1. `test_echo`"), "{text}");
    }
    let after = runner.run(&Script::new("1"), &TestTools::default(), None).await;
    assert_eq!(value(&after), json!(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_warm_host_is_used_once_and_replaced() {
    let (_folder, config) = own_program();
    let program = config.host.program.clone();
    let runner = ScriptRunner::new(RunnerConfig { warm_hosts: 1, ..config });
    runner.warm_up().await.unwrap();
    let first = hosts_of(&program);
    assert_eq!(first.len(), 1);
    let report = runner.run(&Script::new("globalThis.x = 1; 1"), &TestTools::default(), None).await;
    assert_eq!(value(&report), json!(1));
    let report = runner.run(&Script::new("typeof x"), &TestTools::default(), None).await;
    assert_eq!(value(&report), json!("undefined"));
    runner.warm_up().await.unwrap();
    while !hosts_of(&program).is_disjoint(&first) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // The script of a warm host that was killed runs in another one.
    for pid in hosts_of(&program) {
        let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }
    assert_none_left(&program).await;
    let report = runner.run(&Script::new("2"), &TestTools::default(), None).await;
    assert_eq!(value(&report), json!(2));
    runner.shutdown().await;
    assert_none_left(&program).await;
}

#[tokio::test]
async fn scripts_beyond_the_limit_wait_and_then_give_up() {
    let runner = ScriptRunner::new(RunnerConfig { max_running: 1, ..config() });
    let tools = TestTools::default();
    let limits = ScriptLimits { wall: Duration::from_millis(1500), ..ScriptLimits::default() };
    let long = Script { limits: Some(limits), ..Script::new("await tools.test.never({})") };
    let (script, short) = (
        Script {
            limits: Some(ScriptLimits { wall: Duration::from_millis(300), ..limits }),
            ..Script::new("1")
        },
        Script::new("2"),
    );
    let (first, second, third) = tokio::join!(
        runner.run(&long, &tools, None),
        runner.run(&script, &tools, None),
        runner.run(&short, &tools, None)
    );
    failed(&first, FailureKind::WallLimit);
    failed(&second, FailureKind::Busy);
    assert_eq!(value(&third), json!(2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_whose_host_was_killed_can_be_repeated() {
    let (folder, config) = own_program();
    let program = config.host.program.clone();
    let path = folder.path().join("journal");
    let runner = ScriptRunner::new(config);
    let tools = Arc::new(TestTools::default());
    let script =
        Script::new("const { a } = await tools.test.echo({ a: 4 }); await sleep(1500); return a + 1");
    let mut runs = JoinSet::new();
    let (of_run, given, of_script, of_path) =
        (runner.clone(), Arc::clone(&tools), script.clone(), path.clone());
    runs.spawn(async move {
        let mut journal = FileJournal::open(&of_path).unwrap();
        of_run.run(&of_script, &*given, Some(&mut journal)).await
    });
    while !std::fs::read_to_string(&path).is_ok_and(|text| text.contains("answered")) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for pid in hosts_of(&program) {
        let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }
    let report = runs.join_next().await.unwrap().unwrap();
    failed(&report, FailureKind::Crashed);
    let mut journal = FileJournal::open(&path).unwrap();
    let report = runner.run(&script, &*tools, Some(&mut journal)).await;
    assert_eq!(value(&report), json!(5));
    assert_eq!(tools.names(), ["test_echo"], "the answered call is not sent again");
}

#[tokio::test]
async fn killing_the_hub_leaves_no_host_and_repeats_no_call() {
    for (code, calls, after) in [
        // A host that computes does not notice the end of its hub; the guard of the sandbox ends it.
        ("await tools.begin(); while (true);", vec!["begin"], None),
        ("await tools.begin(); await tools.wait()", vec!["begin", "wait"], Some("failed: unknown")),
        (
            "await tools.begin(); await sleep(3000); await tools.begin(); 7",
            vec!["begin"],
            Some("begin\nvalue: 7"),
        ),
    ] {
        let (folder, config) = own_program();
        let program = config.host.program;
        let journal = folder.path().join("journal");
        let hub = || {
            let mut command = std::process::Command::new(&program);
            command.arg("hub").arg(&journal).arg(code).stdout(std::process::Stdio::piped());
            command
        };
        let mut child = hub().spawn().unwrap();
        let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
        for call in calls {
            assert_eq!(lines.next().unwrap().unwrap(), call);
        }
        // The answer of the last call is in the journal.
        while std::fs::read_to_string(&journal).unwrap().matches("answered").count() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_none_left(&program).await;
        if let Some(expect) = after {
            let output = hub().output().unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), expect, "{code}");
            assert_none_left(&program).await;
        }
    }
}

#[tokio::test]
async fn scripts_that_wait_for_a_place_hold_no_list_of_tools() {
    let runner = ScriptRunner::new(RunnerConfig { max_running: 1, ..config() });
    let tools = TestTools::default();
    let (first, next) = (Script::new("await tools.test.never({})"), Script::new("1"));
    let mut running = Box::pin(runner.run(&first, &tools, None));
    while tools.calls.lock().unwrap().is_empty() {
        let _ = tokio::time::timeout(Duration::from_millis(10), &mut running).await;
    }
    let mut waiting: Vec<_> = (0..10).map(|_| Box::pin(runner.run(&next, &tools, None))).collect();
    for run in &mut waiting {
        assert!(run.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    assert_eq!(tools.listings.load(Ordering::Relaxed), 1);
    drop(running);
    for run in waiting {
        assert_eq!(value(&run.await), json!(1));
    }
    assert_eq!(tools.listings.load(Ordering::Relaxed), 11);
}
