//! Scripts of skills on workers: a worker runs its own copy of a skill if that is the one of the replica, at most once, and never
//! anything that a message names.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use toolhub_cluster::bus::{Bus, BusOptions, IncomingRequest};
use toolhub_testkit::processes;

use crate::test_cluster::{Client, Process, TEST_TIMEOUT, TestCluster, effect, succeeded};

/// The tool appends an id to the journal, waits, fails if it shall, and returns where it ran.
const SCRIPT: &str = "import json, os, sys, time
given = json.load(sys.stdin)
if 'id' in given:
    with open(os.environ['JOURNAL'], 'a') as journal:
        journal.write(given['id'] + '\\n')
time.sleep(given.get('ms', 0) / 1000)
if 'fail' in given:
    print('reason:', given['fail'], file=sys.stderr)
    sys.exit(3)
print(json.dumps({'where': os.environ['WHERE'], 'file': sys.argv[0], 'given': given}))
";

const MANIFEST: &str = "---
name: places
description: Returns where it runs. Use it in tests.
metadata:
  toolhub:
    tools:
      - name: run_place
        description: Returns where it runs
        script: scripts/run.py
        input:
          properties:
            id: {type: string}
            ms: {type: integer}
            fail: {type: string}
            text: {type: string}
---
Call run_place.
";

/// The settings: `location` for scripts of skills, and whether they may write the journal.
fn settings(location: &str, writes: bool) -> String {
    let write = if writes { "write = [\"skill-journal\"]\n" } else { "" };
    format!(
        "skills = \"{location}\"\n[skills.grants.places]\nenvironment = [\"WHERE\", \"JOURNAL\"]\n{write}\
        [profiles.default]\nexpose = \"all\"\n"
    )
}

/// A cluster whose members have skills of their own.
struct SkillCluster {
    cluster: TestCluster,
    count: usize,
}

impl SkillCluster {
    fn new(settings: &str) -> Self {
        let cluster = TestCluster::with_servers(settings, |_| json!({}));
        fs::write(cluster.path("skill-journal"), "").unwrap();
        Self { cluster, count: 0 }
    }

    fn configure(&self, settings: &str) {
        self.cluster.configure(&self.cluster.nats.url(), settings);
    }

    /// The folder of the skill of the member `name`.
    fn skill(&self, name: &str) -> PathBuf {
        self.cluster.path(&format!("user-{name}/.agents/skills/places"))
    }

    fn put_skill(&self, name: &str) {
        let folder = self.skill(name);
        fs::create_dir_all(folder.join("scripts")).unwrap();
        fs::write(folder.join("SKILL.md"), MANIFEST).unwrap();
        fs::write(folder.join("scripts/run.py"), SCRIPT).unwrap();
    }

    /// The value of `WHERE` of the member `name`: no other process of the machine has it.
    fn mark(&self, name: &str) -> String {
        format!("{}/{name}", self.cluster.path("mark").display())
    }

    fn environment(&self, name: &str) -> Vec<(&'static str, String)> {
        vec![
            ("HOME", self.cluster.path(&format!("user-{name}")).display().to_string()),
            ("JOURNAL", self.cluster.path("skill-journal").display().to_string()),
            ("WHERE", self.mark(name)),
        ]
    }

    /// A replica with the skill.
    async fn replica(&mut self) -> (Process, Client) {
        self.put_skill("replica");
        let replica = self.cluster.replica_with(&self.environment("replica"));
        let client = Client::of(&replica);
        (replica, client)
    }

    /// A worker with the skills of `name`.
    fn worker(&mut self, name: &str, arguments: &[&str]) -> Process {
        let environment = self.environment(name);
        self.cluster.worker_with(arguments, &environment)
    }

    /// The processes of scripts that run with the environment of the member `name`.
    fn scripts(&self, name: &str, member: &Process) -> Vec<u32> {
        let mut running = processes::with_marker("WHERE", &self.mark(name));
        running.retain(|pid| *pid != member.pid());
        running
    }

    /// How often an id was appended.
    fn count(&self, id: &str) -> usize {
        let journal = fs::read_to_string(self.cluster.path("skill-journal")).unwrap();
        journal.lines().filter(|line| *line == id).count()
    }

    /// Waits until a call runs at the member `name`. A replica learns of a worker some time after its start.
    async fn until_runs_at(&mut self, client: &Client, name: &str) {
        let since = Instant::now();
        loop {
            let answer = call(client, json!({})).await;
            if ran_at(&answer, &self.mark(name)) {
                return;
            }
            assert!(since.elapsed() < TEST_TIMEOUT, "{name}: {answer}");
            self.count += 1;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

async fn call(client: &Client, arguments: Value) -> String {
    client.call("run_place", arguments).await
}

/// The structured content of an answer.
fn content(answer: &str) -> Value {
    let event = answer.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or(answer);
    let answer: Value = serde_json::from_str(event).unwrap_or_default();
    answer["result"]["structuredContent"].clone()
}

fn ran_at(answer: &str, mark: &str) -> bool {
    content(answer)["where"] == mark
}

/// What an answer says, without what differs from call to call.
fn texts(answer: &str) -> (Value, Value) {
    let event = answer.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or(answer);
    let answer: Value = serde_json::from_str(event).unwrap();
    (answer["result"]["content"].clone(), answer["result"]["isError"].clone())
}

async fn until(what: &str, mut is_met: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_met() {
        assert!(since.elapsed() < TEST_TIMEOUT, "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Calls in the background.
fn spawn_call(calls: &mut JoinSet<String>, client: &Client, arguments: Value) {
    let client = client.clone();
    calls.spawn(async move { call(&client, arguments).await });
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_of_skills_run_on_workers_with_the_answers_of_a_replica() {
    let mut skills = SkillCluster::new(&settings("auto", false));
    let (replica, client) = skills.replica().await;
    let failing = json!({"fail": "out of paper"});
    let (here, failed_here) = (call(&client, json!({})).await, call(&client, failing.clone()).await);
    assert!(ran_at(&here, &skills.mark("replica")), "{here}");
    skills.put_skill("one");
    let worker = skills.worker("one", &[]);
    skills.until_runs_at(&client, "one").await;
    let failed = call(&client, failing).await;
    assert_eq!(texts(&failed), texts(&failed_here));
    assert!(failed.contains("out of paper") && failed.contains("exit code 3"), "{failed}");

    let mut calls = JoinSet::new();
    spawn_call(&mut calls, &client, json!({"ms": 2000}));
    until("the script runs", || !skills.scripts("one", &worker).is_empty()).await;
    assert!(skills.scripts("replica", &replica).is_empty());
    let answer = calls.join_next().await.unwrap().unwrap();
    assert!(ran_at(&answer, &skills.mark("one")), "{answer}");
    // Messages larger than a frame, in both directions.
    let text = "x".repeat(900_000);
    let answer = call(&client, json!({ "text": text })).await;
    assert!(content(&answer)["given"]["text"] == text, "{}", &answer[..500.min(answer.len())]);

    // Arguments choose neither program, nor skill, nor place.
    let given = json!({"file": "/bin/sh", "skill": "other", "tool": "other", "identity": "", "program": "/bin/sh",
        "environment": {"WHERE": "elsewhere"}, "WHERE": "elsewhere"});
    let answer = call(&client, given.clone()).await;
    let returned = content(&answer);
    if succeeded(&answer) {
        assert_eq!((&returned["where"], &returned["given"]), (&json!(skills.mark("one")), &given));
        assert!(returned["file"].as_str().unwrap().ends_with("scripts/run.py"), "{answer}");
    }

    // Granted files are those of the replica.
    drop(worker);
    skills.configure(&settings("auto", true));
    drop(replica);
    let (_replica, client) = skills.replica().await;
    let _worker = skills.worker("one", &[]);
    tokio::time::sleep(Duration::from_secs(3)).await;
    let answer = call(&client, json!({"id": "granted"})).await;
    assert!(ran_at(&answer, &skills.mark("replica")) && skills.count("granted") == 1, "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_without_the_same_skill_refuses_and_runs_nothing() {
    let mut skills = SkillCluster::new(&settings("workers", true));
    let (_replica, client) = skills.replica().await;
    let answer = call(&client, json!({"id": "a"})).await;
    assert!(
        answer.contains("no worker runs skills: start one that has the skill `places`, or write"),
        "{answer}"
    );
    assert_eq!(effect(&answer), Some("none"));

    let refusal = async |why: &str| {
        let since = Instant::now();
        loop {
            let answer = call(&client, json!({"id": "b"})).await;
            assert_eq!(effect(&answer), Some("none"), "{answer}");
            if answer.contains(why) {
                return;
            }
            assert!(since.elapsed() < TEST_TIMEOUT, "{why}: {answer}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let empty = skills.worker("empty", &[]);
    refusal("the worker has no tool `run_place` of the skill `places`").await;
    drop(empty);
    skills.put_skill("changed");
    fs::write(skills.skill("changed").join("scripts/run.py"), format!("{SCRIPT}\n")).unwrap();
    let changed = skills.worker("changed", &[]);
    refusal("the worker has other files, grants or environment variables").await;
    assert_eq!((skills.count("a"), skills.count("b")), (0, 0));
    // It is compared anew for each call.
    skills.put_skill("changed");
    skills.until_runs_at(&client, "changed").await;
    drop(changed);

    // Other grants of the worker.
    skills.put_skill("granted");
    skills.configure(&settings("workers", true).replace("write =", "network = true\nwrite ="));
    let granted = skills.worker("granted", &[]);
    refusal("the worker has other files, grants or environment variables").await;
    drop(granted);
    assert_eq!(skills.count("b"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn replica_runs_what_no_worker_takes_and_all_if_the_settings_say_so() {
    let mut skills = SkillCluster::new(&settings("auto", false));
    let (replica, client) = skills.replica().await;
    skills.put_skill("changed");
    fs::write(skills.skill("changed").join("scripts/run.py"), "print('{\"where\": \"changed\"}')").unwrap();
    let _changed = skills.worker("changed", &[]);
    tokio::time::sleep(Duration::from_secs(3)).await;
    for _ in 0..5 {
        let answer = call(&client, json!({})).await;
        assert!(ran_at(&answer, &skills.mark("replica")), "{answer}");
    }
    drop(replica);

    // A worker that would take it is not asked.
    skills.put_skill("one");
    let _one = skills.worker("one", &[]);
    skills.configure(&settings("replica", false));
    let (_replica, client) = skills.replica().await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    for _ in 0..5 {
        let answer = call(&client, json!({})).await;
        assert!(ran_at(&answer, &skills.mark("replica")), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_worker_leaves_a_script_that_ran_once_and_is_not_run_again() {
    let mut skills = SkillCluster::new(&settings("workers", true));
    let (_replica, client) = skills.replica().await;
    skills.put_skill("one");
    let mut worker = skills.worker("one", &[]);
    skills.until_runs_at(&client, "one").await;
    let mut calls = JoinSet::new();
    spawn_call(&mut calls, &client, json!({"id": "once", "ms": 20000}));
    until("the script runs", || skills.count("once") == 1).await;
    let scripts = skills.scripts("one", &worker);
    worker.kill();
    // Another worker could run it.
    skills.put_skill("two");
    let _two = skills.worker("two", &[]);
    let answer = calls.join_next().await.unwrap().unwrap();
    assert_eq!(effect(&answer), Some("unknown"), "{answer}");
    assert!(answer.contains("was lost"), "{answer}");
    until("the script ends with its worker", || scripts.iter().all(|pid| !processes::alive(*pid))).await;
    skills.until_runs_at(&client, "two").await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(skills.count("once"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_calls_and_deadlines_kill_the_script_on_its_worker() {
    let limits = format!("{}[limits]\ncall = \"5s\"\n", settings("workers", true));
    let mut skills = SkillCluster::new(&limits);
    let (_replica, client) = skills.replica().await;
    skills.put_skill("one");
    let worker = skills.worker("one", &[]);
    skills.until_runs_at(&client, "one").await;
    let mut calls = JoinSet::new();
    spawn_call(&mut calls, &client, json!({"id": "cancelled", "ms": 60000}));
    until("the script runs", || skills.count("cancelled") == 1).await;
    assert!(!skills.scripts("one", &worker).is_empty());
    let since = Instant::now();
    calls.abort_all();
    until("it is killed", || skills.scripts("one", &worker).is_empty()).await;
    assert!(since.elapsed() < Duration::from_secs(4), "{:?}", since.elapsed());

    let answer = call(&client, json!({"id": "late", "ms": 60000})).await;
    assert_eq!(effect(&answer), Some("unknown"), "{answer}");
    until("it is killed", || skills.scripts("one", &worker).is_empty()).await;
    assert_eq!((skills.count("cancelled"), skills.count("late")), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn full_worker_leaves_the_script_to_the_next_one_and_a_draining_worker_finishes() {
    let mut skills = SkillCluster::new(&settings("workers", true));
    let (_replica, client) = skills.replica().await;
    skills.put_skill("one");
    skills.put_skill("two");
    let one = skills.worker("one", &["--skills", "1"]);
    skills.until_runs_at(&client, "one").await;
    let two = skills.worker("two", &["--skills", "1"]);
    skills.until_runs_at(&client, "two").await;
    let mut calls = JoinSet::new();
    for id in ["a", "b", "c"] {
        spawn_call(&mut calls, &client, json!({"id": id, "ms": 2000}));
    }
    until("two run", || !skills.scripts("one", &one).is_empty() && !skills.scripts("two", &two).is_empty())
        .await;
    // The third waits for a slot.
    for answer in calls.join_all().await {
        assert!(succeeded(&answer), "{answer}");
    }
    assert_eq!(["a", "b", "c"].map(|id| skills.count(id)), [1, 1, 1]);
    drop(two);

    let mut calls = JoinSet::new();
    let since = Instant::now();
    spawn_call(&mut calls, &client, json!({"id": "last", "ms": 3000}));
    // The call may have been given to the lost worker, and is not repeated then.
    while skills.count("last") == 0 {
        if let Some(answer) = calls.try_join_next() {
            assert!(since.elapsed() < TEST_TIMEOUT, "{answer:?}");
            spawn_call(&mut calls, &client, json!({"id": "last", "ms": 3000}));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let mut one = one;
    let ending = tokio::task::spawn_blocking(move || one.terminate());
    tokio::time::sleep(Duration::from_millis(500)).await;
    let refused = call(&client, json!({"id": "refused"})).await;
    assert!(refused.contains("no worker runs"), "{refused}");
    let answer = calls.join_next().await.unwrap().unwrap();
    assert!(ran_at(&answer, &skills.mark("one")), "{answer}");
    ending.await.unwrap();
    assert_eq!((skills.count("last"), skills.count("refused")), (1, 0));
}

/// Sends a message to a worker, and returns its first answer as text.
async fn send(bus: &Bus, worker: &str, message: Bytes) -> Option<String> {
    let mut replies = bus.request(&bus.subject(&["skill", worker]), message).await.unwrap();
    let reply = replies.next(Duration::from_secs(1)).await.ok()??;
    Some(String::from_utf8(reply.to_vec()).unwrap())
}

/// A message with changed members of its head.
fn changed(message: &Bytes, change: impl FnOnce(&mut Value)) -> Bytes {
    let end = message.iter().position(|byte| *byte == b'\n').unwrap();
    let mut head: Value = serde_json::from_slice(&message[..end]).unwrap();
    change(&mut head);
    [head.to_string().as_bytes(), &message[end..]].concat().into()
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_and_repeated_messages_run_nothing() {
    let mut skills = SkillCluster::new(&settings("workers", true));
    let (_replica, client) = skills.replica().await;
    skills.put_skill("one");
    let worker = skills.worker("one", &[]);
    skills.until_runs_at(&client, "one").await;
    let options = BusOptions {
        servers: vec![skills.cluster.nats.url()],
        prefix: "toolhub".to_owned(),
        credentials: None,
        authorities: None,
        name: "test".to_owned(),
    };
    let bus = Bus::connect(options).await.unwrap();
    let mut requests = bus.serve(&bus.subject(&["skill", &worker.id]), None).await.unwrap();
    assert!(succeeded(&call(&client, json!({"id": "once"})).await));
    let IncomingRequest { payload: message, .. } = requests.next().await.unwrap();
    drop(requests);

    assert_eq!(send(&bus, &worker.id, message.clone()).await, None);
    let new = |number: u32| json!(format!("forged-{number}"));
    let refused = async |number: u32, key: &str, value: Value, why: &str| {
        let message = changed(&message, |head| {
            head["id"] = new(number);
            head["begin_by"] = json!(i64::MAX);
            head[key] = value;
        });
        let reply = send(&bus, &worker.id, message).await.unwrap();
        assert!(reply.contains("\"refused\"") && reply.contains(why), "{key}: {reply}");
    };
    refused(1, "identity", json!("0".repeat(64)), "other files, grants").await;
    refused(2, "tool", json!("scripts/run.py"), "has no tool").await;
    refused(3, "skill", json!("other"), "has no tool").await;
    refused(4, "begin_by", json!(0), "expired").await;
    refused(5, "protocol", json!(2), "another version").await;
    assert_eq!(skills.count("once"), 1);
    // Other members of the head have no meaning.
    let script = skills.cluster.path("other.py");
    fs::write(&script, SCRIPT.replace("given['id']", "'other'")).unwrap();
    let message = changed(&message, |head| {
        head["id"] = new(6);
        head["begin_by"] = json!(i64::MAX);
        for key in ["file", "program", "folder", "environment", "code"] {
            head[key] = json!(Path::new(&script));
        }
    });
    let reply = send(&bus, &worker.id, message).await.unwrap();
    assert!(reply.contains("\"accepted\""), "{reply}");
    until("the worker's own script runs", || skills.count("once") == 2).await;
    assert_eq!(skills.count("other"), 0);
}
