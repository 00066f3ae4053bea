//! Scripts on workers: a worker lends a process that computes; the replica makes all calls. A killed, frozen or cut-off worker loses a
//! computation, and no call is made twice or after the end of its script.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;
use tokio::task::JoinSet;
use toolhub_testkit::processes;

use crate::cluster_sessions::{KEYS, keys};
use crate::test_cluster::{Client, Process, TEST_TIMEOUT, TestCluster, succeeded};

/// Scripts run on workers alone, servers on workers with the label `servers`.
const ON_WORKERS: &str = "scripts = \"workers\"\n[[servers]]\nid = \"journal\"\nlabels = [\"servers\"]\n\
    [native]\nenabled = true\n[script]\nwarm_hosts = 0\n[profiles.default]\nexpose = \"all\"\n\
    [profiles.code]\nservers = [\"journal\"]\nexpose = \"code\"\n";

/// A cluster with a replica whose tools are known, and a worker for servers alone.
async fn cluster(settings: &str, key: Option<&'static str>) -> (TestCluster, Process, Process) {
    let mut cluster = TestCluster::new(settings);
    let (replica, servers) = (cluster.replica(), cluster.worker(&["--labels", "servers", "--scripts", "0"]));
    let client = Client::of(&replica);
    let client = match key {
        Some(key) => client.with_key(key),
        None => client,
    };
    client.await_ready().await;
    (cluster, replica, servers)
}

/// A client of the profile for scripts.
fn coder(replica: &Process) -> Client {
    Client::of(&format!("{}/code", replica.url))
}

async fn run(client: &Client, code: &str) -> String {
    client.call("run_script", json!({ "code": code })).await
}

/// Runs a script as soon as a worker takes it: a replica learns of a new worker some time after its start.
async fn run_when_taken(client: &Client, code: &str) -> String {
    loop {
        let answer = run(client, code).await;
        if !answer.contains("no worker takes") {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The script hosts that a process runs.
fn hosts(process: &Process) -> Vec<u32> {
    let is_host = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains("script-host")
    };
    processes::children_of(process.pid())
        .into_iter()
        .filter(|pid| processes::alive(*pid) && is_host(pid))
        .collect()
}

async fn until(what: &str, mut is_met: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_met() {
        assert!(since.elapsed() < TEST_TIMEOUT, "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// How often an id ran.
fn count(cluster: &TestCluster, id: &str) -> usize {
    cluster.ran().iter().filter(|ran| *ran == id).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_run_on_workers_and_call_through_their_replica() {
    let (mut cluster, replica, _servers) = cluster(ON_WORKERS, None).await;
    let client = coder(&replica);
    let refused = run(&client, "await tools.journal.append({ id: 'early' })").await;
    assert!(refused.contains("no worker takes scripts"), "{refused}");
    let worker = cluster.worker(&["--scripts", "4"]);
    let since = Instant::now();
    loop {
        let answer = run(&client, "21 * 2").await;
        if succeeded(&answer) {
            assert!(answer.contains("\"42\""), "{answer}");
            break;
        }
        assert!(since.elapsed() < TEST_TIMEOUT, "{answer}");
    }
    let (running, code) = (
        client.clone(),
        "const first = await tools.journal.append({ id: 'a', ms: 1500 });
        console.log(typeof first);
        const rest = await Promise.all([1, 2, 3].map(n => tools.journal.append({ id: 'p' + n })));
        return rest.length + input.n",
    );
    let mut runs = JoinSet::new();
    runs.spawn(async move { running.call("run_script", json!({"code": code, "input": {"n": 39}})).await });
    until("the call begins", || count(&cluster, "a") == 1).await;
    assert_eq!((hosts(&worker).len(), hosts(&replica).len()), (1, 0));
    let answer = runs.join_next().await.unwrap().unwrap();
    assert!(
        succeeded(&answer) && answer.contains("\"42\"") && answer.contains("\"log\":[\"string\"]"),
        "{answer}"
    );
    until("the host ends", || hosts(&worker).is_empty()).await;
    // Messages larger than a window, in both directions, several at once.
    let large = "const text = 'x'.repeat(900000);
        const all = await Promise.all([1, 2, 3, 4, 5].map(n => tools.journal.append({ id: 'large' + n, text })));
        return all.map(one => one.length > 900000).join()";
    let answer = run(&client, large).await;
    assert!(answer.contains("true,true,true,true,true"), "{answer}");
    // Many short messages while the replica is busy with a call: the worker waits for it.
    let chatty = "const call = tools.journal.append({ id: 'chatty', ms: 1000 });
        for (let n = 0; n < 3000; n++) console.log(n);
        await call; return 'done'";
    let answer = run(&client, chatty).await;
    assert!(succeeded(&answer) && answer.contains("done"), "{answer}");
    for id in ["a", "p1", "p2", "p3", "large1", "large5", "chatty"] {
        assert_eq!(count(&cluster, id), 1, "{id}");
    }
    assert_eq!(count(&cluster, "early"), 0);
    // A script that computes without end is stopped by its limits, there as here.
    let endless = client.call("run_script", json!({"code": "for (;;) {}", "timeout": 2})).await;
    assert!(!succeeded(&endless), "{endless}");
    until("its host ends", || hosts(&worker).is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_worker_ends_its_script_and_no_call_is_made_twice_or_later() {
    let (mut cluster, replica, _servers) = cluster(ON_WORKERS, None).await;
    let mut worker = cluster.worker(&["--scripts", "4"]);
    let client = coder(&replica);
    let code = "await tools.journal.append({ id: 'first' });
        await tools.journal.append({ id: 'slow', ms: 10000 });
        await tools.journal.append({ id: 'never' });";
    let running = client.clone();
    let mut runs = JoinSet::new();
    runs.spawn(async move { run_when_taken(&running, code).await });
    until("the slow call begins", || count(&cluster, "slow") == 1).await;
    let left = hosts(&worker);
    assert_eq!(left.len(), 1);
    worker.kill();
    let answer = runs.join_next().await.unwrap().unwrap();
    assert!(!succeeded(&answer) && answer.contains("was lost"), "{answer}");
    // Its calls are named, so that the caller knows what happened.
    assert!(
        answer.contains("\"status\":\"succeeded\"") && answer.contains("\"status\":\"cancelled\""),
        "{answer}"
    );
    until("the host ends with its worker", || left.iter().all(|pid| !processes::alive(*pid))).await;
    // Another worker takes the next script, and nothing of the lost one.
    let second = cluster.worker(&["--scripts", "4"]);
    let since = Instant::now();
    while !succeeded(&run(&client, "await tools.journal.append({ id: 'next' })").await) {
        assert!(since.elapsed() < TEST_TIMEOUT);
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(["first", "slow", "never", "next"].map(|id| count(&cluster, id)), [1, 1, 0, 1]);
    assert!(hosts(&second).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn frozen_worker_loses_its_script_and_changes_nothing_when_it_goes_on() {
    let (mut cluster, replica, _servers) = cluster(ON_WORKERS, None).await;
    let worker = cluster.worker(&["--scripts", "4"]);
    let client = coder(&replica);
    let code = "for (let n = 0; ; n++) await tools.journal.append({ id: 'call' + n, ms: 100 })";
    let running = client.clone();
    let mut runs = JoinSet::new();
    runs.spawn(async move { run(&running, code).await });
    until("the script calls", || count(&cluster, "call3") == 1).await;
    // The host is frozen too: it is in the middle of its script.
    let host = hosts(&worker);
    worker.signal(Signal::STOP);
    let answer = runs.join_next().await.unwrap().unwrap();
    assert!(!succeeded(&answer) && answer.contains("was lost"), "{answer}");
    let calls = cluster.ran().len();
    worker.signal(Signal::CONT);
    until("the worker ends the host", || host.iter().all(|pid| !processes::alive(*pid))).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let ran = cluster.ran();
    assert_eq!(ran.len(), calls, "{ran:?}");
    let mut once = ran.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), ran.iter().filter(|id| *id != "ready").count() + 1, "{ran:?}");
    // It is a worker again.
    let since = Instant::now();
    while !succeeded(&run(&client, "await tools.journal.append({ id: 'again' })").await) {
        assert!(since.elapsed() < TEST_TIMEOUT);
    }
    assert_eq!(count(&cluster, "again"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn script_that_a_frozen_worker_does_not_take_runs_once_and_elsewhere() {
    let settings = ON_WORKERS.replace("\"workers\"", "\"auto\"");
    let (mut cluster, replica, _servers) = cluster(&settings, None).await;
    let worker = cluster.worker(&["--scripts", "4"]);
    let client = coder(&replica);
    // Until the replica knows the worker.
    let since = Instant::now();
    loop {
        let running = client.clone();
        let mut runs = JoinSet::new();
        runs.spawn(async move { run(&running, "await sleep(700)").await });
        tokio::time::sleep(Duration::from_millis(500)).await;
        let is_there = !hosts(&worker).is_empty();
        runs.join_next().await.unwrap().unwrap();
        if is_there {
            break;
        }
        assert!(since.elapsed() < TEST_TIMEOUT);
    }
    worker.signal(Signal::STOP);
    let code = "await tools.journal.append({ id: 'once' })";
    let answer = run(&client, code).await;
    assert!(succeeded(&answer), "{answer}");
    assert!(since.elapsed() < TEST_TIMEOUT);
    worker.signal(Signal::CONT);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(count(&cluster, "once"), 1);
    until("nothing is left there", || hosts(&worker).is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_replica_leaves_no_script_on_a_worker() {
    let (mut cluster, mut replica, _servers) = cluster(ON_WORKERS, None).await;
    let worker = cluster.worker(&["--scripts", "4"]);
    let client = coder(&replica);
    let mut runs = JoinSet::new();
    runs.spawn(async move { run_when_taken(&client, "await sleep(300000)").await });
    until("the host has the script", || hosts(&worker).len() == 1).await;
    replica.kill();
    runs.join_next().await;
    until("the host ends", || hosts(&worker).is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_that_ends_finishes_its_scripts_and_takes_no_more() {
    let (mut cluster, replica, _servers) = cluster(ON_WORKERS, None).await;
    let worker = cluster.worker(&["--scripts", "4"]);
    let client = coder(&replica);
    let running = client.clone();
    let mut runs = JoinSet::new();
    runs.spawn(async move {
        run(&running, "await sleep(2500); await tools.journal.append({ id: 'last' }); return 'finished'")
            .await
    });
    until("the host has the script", || hosts(&worker).len() == 1).await;
    let mut worker = worker;
    let ending = tokio::task::spawn_blocking(move || worker.terminate());
    tokio::time::sleep(Duration::from_millis(500)).await;
    let refused = run(&client, "await tools.journal.append({ id: 'refused' })").await;
    assert!(refused.contains("no worker takes"), "{refused}");
    let answer = runs.join_next().await.unwrap().unwrap();
    assert!(answer.contains("finished"), "{answer}");
    ending.await.unwrap();
    assert_eq!(["last", "refused"].map(|id| count(&cluster, id)), [1, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_on_one_worker_have_the_tools_and_answers_of_their_callers() {
    let rules = "[[auth.rules]]\nname = \"ann\"\neffect = \"allow\"\nprincipals = [\"key:ann\"]\ntools = [\"append\"]\n\
        [[auth.rules]]\nname = \"bob\"\neffect = \"allow\"\nprincipals = [\"key:bob\"]\ntools = [\"append\", \"progress\"]\n";
    let settings = format!("{ON_WORKERS}{}{rules}", keys());
    let (mut cluster, replica, _servers) = cluster(&settings, Some(KEYS[0])).await;
    let worker = cluster.worker(&["--scripts", "8"]);
    let clients = KEYS.map(|key| coder(&replica).with_key(key));
    let since = Instant::now();
    while !succeeded(&run(&clients[0], "1").await) {
        assert!(since.elapsed() < TEST_TIMEOUT);
    }
    let seen = "return Object.keys(tools.journal).sort().join()";
    let seen = [run(&clients[0], seen).await, run(&clients[1], seen).await];
    assert!(seen[0].contains("\"append\"") && seen[1].contains("\"append,progress\""), "{seen:?}");
    let forbidden = run(&clients[0], "await tools.journal.progress({ id: 'forbidden' })").await;
    assert!(!succeeded(&forbidden), "{forbidden}");
    let mut scripts = JoinSet::new();
    for number in 0..24 {
        let (caller, client) = (number % 2, clients[number % 2].clone());
        scripts.spawn(async move {
            let name = ["ann", "bob"][caller];
            let code = format!(
                "const seen = [];
                for (let n = 0; n < 6; n++) {{
                    const id = '{name}-{number}-' + n;
                    const answer = await tools.journal.append({{ id, text: id, ms: 5 }});
                    seen.push(String(answer).endsWith(' ' + id));
                }}
                return seen.join()"
            );
            // Above the share of a principal, a script is refused before it begins.
            loop {
                let answer = run(&client, &code).await;
                if !answer.contains("too many of your scripts") {
                    return (number, answer);
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
    }
    for (number, answer) in scripts.join_all().await {
        assert!(answer.contains("true,true,true,true,true,true"), "{number}: {answer}");
    }
    let mut ran = cluster.ran();
    ran.retain(|id| id != "ready");
    assert_eq!(ran.len(), 24 * 6);
    ran.sort_unstable();
    ran.dedup();
    assert_eq!(ran.len(), 24 * 6, "a call ran twice");
    until("all hosts end", || hosts(&worker).is_empty()).await;
}
