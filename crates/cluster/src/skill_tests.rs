//! Scripts of skills between a replica and workers over a real NATS server: what is begun, at most once, and what is known after a
//! failure.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toolhub_core::lang::{Lang, Localize as _, LocalizedText};
use toolhub_core::ports::NullSink;
use toolhub_core::shared_state::ReplicaId;
use toolhub_core::skill_jobs::{
    PreparedSkill, RunningSkill, SkillExit, SkillJob, SkillJobError, SkillRunError, SkillRunner, SkillWorkers,
};
use toolhub_core::{BoxFuture, CallContext, CallId, RawJson};
use toolhub_mcp_client::{ClientHandler, Server};
use toolhub_testkit::nats::NatsServer;

use crate::bus::{Bus, BusOptions, IncomingRequest};
use crate::cluster_protocol::{self, Heartbeat, PROTOCOL, SkillJobHead, SkillReply, Subjects};
use crate::test_store::CountingStore;
use crate::{JoinOptions, Replica, ServerSource, SkillOffer, Worker, WorkerOptions};

const LIMIT: Duration = Duration::from_secs(10);

async fn connect(server: &NatsServer) -> Bus {
    let options = BusOptions {
        servers: vec![server.url()],
        prefix: "test".to_owned(),
        credentials: None,
        authorities: None,
        name: "test".to_owned(),
    };
    Bus::connect(options).await.unwrap()
}

async fn join_options(server: &NatsServer) -> JoinOptions {
    let store = Arc::new(CountingStore::default());
    JoinOptions { bus: connect(server).await, store, address: "here".to_owned(), lease: LIMIT }
}

async fn until(what: &str, is_met: impl Fn() -> bool) {
    let since = Instant::now();
    while !is_met() {
        assert!(since.elapsed() < LIMIT, "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn job() -> SkillJob {
    let arguments = RawJson::parse("{\"n\":1}").unwrap();
    SkillJob { skill: "sums".to_owned(), tool: "sum".to_owned(), identity: "i".to_owned(), arguments }
}

fn exit(output: &[u8]) -> SkillExit {
    SkillExit {
        success: true,
        exit_reason: LocalizedText::default(),
        output: output.to_vec(),
        stderr_text: String::new(),
        stopped: None,
    }
}

fn text(english: &str) -> LocalizedText {
    LocalizedText::new(english, english)
}

/// Runs a job at the workers of a replica.
async fn run(workers: &dyn SkillWorkers) -> Result<SkillExit, SkillJobError> {
    let context = CallContext {
        call: CallId::generate(),
        conversation: None,
        caller: None,
        events: Arc::new(NullSink),
        nested: None,
    };
    tokio::time::timeout(LIMIT, workers.run(&job(), &context)).await.unwrap()
}

/// A worker that answers each job with these messages and counts the jobs.
async fn scripted_worker(
    server: &NatsServer,
    id: &'static str,
    replies: fn() -> Vec<SkillReply>,
) -> (JoinSet<()>, Arc<AtomicUsize>) {
    let bus = connect(server).await;
    let mut requests = bus.serve(&Subjects(&bus).skills(id), None).await.unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let (mut tasks, counted) = (JoinSet::new(), Arc::clone(&count));
    tasks.spawn(async move {
        let mut held = Vec::new();
        while let Some(IncomingRequest { mut reply, .. }) = requests.next().await {
            counted.fetch_add(1, Ordering::Relaxed);
            for message in replies() {
                let body = if matches!(message, SkillReply::Ended { .. }) { &b"done"[..] } else { b"" };
                reply.send(&cluster_protocol::write(&message, body)).await.unwrap();
            }
            held.push(reply);
        }
    });
    tasks.spawn(async move {
        loop {
            // One that says it is full is asked last.
            let skills = Some(u32::from(id == "first"));
            let beat = Heartbeat { member: id.to_owned(), scripts: None, skills };
            bus.publish(&Subjects(&bus).beat(id), cluster_protocol::write(&beat, b"")).await.unwrap();
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    (tasks, count)
}

/// The outcome of a job of which the first worker answers with these messages and the second one runs it, and how often each was
/// asked.
async fn outcome(replies: fn() -> Vec<SkillReply>) -> (Result<SkillExit, SkillJobError>, [usize; 2]) {
    let server = NatsServer::start();
    let replica = Replica::join(join_options(&server).await, ReplicaId(1));
    let (_first, count) = scripted_worker(&server, "first", replies).await;
    let accepted = || vec![SkillReply::Accepted, SkillReply::Started, SkillReply::Ended { exit: exit(b"") }];
    let (_second, next_count) = scripted_worker(&server, "second", accepted).await;
    let kind = crate::liveness::SlotKind::Skill;
    let shared = &replica.shared;
    until("both live", || shared.liveness.workers(kind).len() == 2 && shared.member.clock.now().is_some())
        .await;
    let result = run(&*replica.skill_workers(false)).await;
    // A job that is sent late would be counted.
    tokio::time::sleep(Duration::from_millis(200)).await;
    (result, [&count, &next_count].map(|count| count.load(Ordering::Relaxed)))
}

#[tokio::test]
async fn only_a_refusal_before_acceptance_lets_the_next_worker_run_the_job() {
    let refused = || vec![SkillReply::Refused { why: text("no"), full: false }];
    let (result, asked) = outcome(refused).await;
    assert_eq!((result.map(|exit| exit.output), asked), (Ok(b"done".to_vec()), [1, 1]));
    let checked = || vec![SkillReply::Checking, SkillReply::Refused { why: text("no"), full: true }];
    let (result, asked) = outcome(checked).await;
    assert!(result.is_ok() && asked == [1, 1], "{result:?} {asked:?}");

    let accepted = || vec![SkillReply::Accepted, SkillReply::Refused { why: text("no"), full: false }];
    let (result, asked) = outcome(accepted).await;
    assert!(matches!(result, Err(SkillJobError::WorkerLost(_))) && asked == [1, 0], "{result:?} {asked:?}");
    // Silence proves nothing.
    let (result, asked) = outcome(Vec::new).await;
    assert!(matches!(result, Err(SkillJobError::WorkerLost(_))) && asked == [1, 0], "{result:?} {asked:?}");
    let stopped = || vec![SkillReply::Accepted, SkillReply::Stopped { why: text("stopped") }];
    let (result, asked) = outcome(stopped).await;
    assert!(matches!(result, Err(SkillJobError::WorkerLost(_))) && asked == [1, 0], "{result:?} {asked:?}");
    let failed = || {
        let error = SkillRunError::NotStarted(text("no program"));
        vec![SkillReply::Accepted, SkillReply::Failed { error }]
    };
    let (result, asked) = outcome(failed).await;
    let expected = Err(SkillJobError::Run(SkillRunError::NotStarted(text("no program"))));
    assert_eq!((result, asked), (expected, [1, 0]));
}

#[tokio::test]
async fn without_a_worker_no_job_is_taken() {
    let server = NatsServer::start();
    let replica = Replica::join(join_options(&server).await, ReplicaId(1));
    let result = run(&*replica.skill_workers(true)).await;
    assert_eq!(result, Err(SkillJobError::NotTaken(None)));
}

/// Runs the tool `sum` with the identity `i`, until it may end.
#[derive(Default)]
struct FakeRunner {
    started: AtomicUsize,
    killed: Arc<AtomicUsize>,
    may_end: Arc<Notify>,
    arguments: Mutex<Vec<String>>,
}

struct FakeScript(Arc<FakeRunner>);

struct CountDrop(Arc<AtomicUsize>);

impl Drop for CountDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// The runner behind the port.
struct SharedRunner(Arc<FakeRunner>);

impl SkillRunner for SharedRunner {
    fn prepare(&self, job: SkillJob) -> BoxFuture<'_, Result<Box<dyn PreparedSkill>, LocalizedText>> {
        Box::pin(async move {
            if job.identity != "i" {
                return Err(text("another identity"));
            }
            self.0.arguments.lock().unwrap().push(job.arguments.get().to_owned());
            Ok(Box::new(FakeScript(Arc::clone(&self.0))) as Box<dyn PreparedSkill>)
        })
    }
}

impl PreparedSkill for FakeScript {
    fn start(self: Box<Self>) -> Result<RunningSkill, LocalizedText> {
        self.0.started.fetch_add(1, Ordering::Relaxed);
        let (may_end, running) = (Arc::clone(&self.0.may_end), CountDrop(Arc::clone(&self.0.killed)));
        Ok(Box::pin(async move {
            may_end.notified().await;
            drop(running);
            Ok(exit(b"3"))
        }))
    }
}

struct NoServers;

impl ServerSource for NoServers {
    fn server(&self, _: &str, _: &str, _: Arc<dyn ClientHandler>) -> Result<Arc<Server>, LocalizedText> {
        Err(text("none"))
    }

    fn capabilities(&self) -> RawJson {
        RawJson::empty_object()
    }
}

/// A worker with one slot, its tasks and its id.
async fn worker(server: &NatsServer, runner: &Arc<FakeRunner>) -> (JoinSet<()>, String, CancellationToken) {
    let runner = Arc::new(SharedRunner(Arc::clone(runner)));
    let options = WorkerOptions {
        labels: Vec::new(),
        capacity: 1,
        scripts: None,
        skills: Some(SkillOffer { runner, slots: 1, max_time: LIMIT }),
        drain: LIMIT,
    };
    let worker = Worker::join(join_options(server).await, options, Arc::new(NoServers)).await.unwrap();
    let (id, stop, mut tasks) = (worker.id().to_owned(), CancellationToken::new(), JoinSet::new());
    tasks.spawn(worker.run(stop.clone()));
    (tasks, id, stop)
}

/// Sends a message to a worker, and returns its first answer; `None` if there is none.
async fn send(bus: &Bus, worker: &str, head: &SkillJobHead, body: &[u8]) -> Option<SkillReply> {
    let message = cluster_protocol::write(head, body);
    let mut replies = bus.request(&Subjects(bus).skills(worker), message).await.unwrap();
    let reply: Bytes = replies.next(Duration::from_millis(700)).await.ok()??;
    cluster_protocol::read(&reply).map(|(reply, _)| reply)
}

fn why(reply: Option<SkillReply>) -> String {
    match reply {
        Some(SkillReply::Refused { why, .. }) => why.localize(Lang::En),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn worker_refuses_what_it_cannot_verify_and_begins_nothing_twice() {
    let server = NatsServer::start();
    let runner = Arc::new(FakeRunner::default());
    let (_tasks, id, _stop) = worker(&server, &runner).await;
    let bus = connect(&server).await;
    let beats = Arc::new(crate::liveness::Liveness::default());
    let free = crate::liveness::FreeSlots::default;
    let mut hearing = JoinSet::new();
    hearing.spawn(Arc::clone(&beats).run(bus.clone(), "replica-1".to_owned(), free));
    until("the worker lives", || !beats.workers(crate::liveness::SlotKind::Skill).is_empty()).await;
    let now = || {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        crate::clock::millis(now)
    };
    let head = |number: u32| SkillJobHead {
        protocol: PROTOCOL,
        id: format!("job-{number}"),
        from: "replica-1".to_owned(),
        begin_by: now() + 3000,
        skill: "sums".to_owned(),
        tool: "sum".to_owned(),
        identity: "i".to_owned(),
    };
    let version = SkillJobHead { protocol: PROTOCOL + 1, ..head(1) };
    assert!(why(send(&bus, &id, &version, b"{}").await).contains("another version"));
    let late = SkillJobHead { begin_by: now() - 1, ..head(2) };
    assert!(why(send(&bus, &id, &late, b"{}").await).contains("expired"));
    let foreign = SkillJobHead { identity: "j".to_owned(), ..head(3) };
    assert_eq!(why(send(&bus, &id, &foreign, b"{}").await), "another identity");
    assert!(why(send(&bus, &id, &head(4), b"{} and more").await).contains("not JSON"));
    assert_eq!(runner.started.load(Ordering::Relaxed), 0);

    let first = send(&bus, &id, &head(5), b"{\"n\":5}").await;
    assert!(matches!(first, Some(SkillReply::Accepted)), "{first:?}");
    assert!(why(send(&bus, &id, &head(6), b"{}").await).contains("is full"));
    // A copy is not answered, not even after the end of the first one.
    assert!(send(&bus, &id, &head(5), b"{\"n\":5}").await.is_none());
    runner.may_end.notify_one();
    until("it ends", || runner.killed.load(Ordering::Relaxed) == 1).await;
    assert!(send(&bus, &id, &head(5), b"{\"n\":5}").await.is_none());
    assert!(why(send(&bus, &id, &SkillJobHead { begin_by: 0, ..head(7) }, b"{}").await).contains("expired"));
    assert_eq!(runner.started.load(Ordering::Relaxed), 1);
    assert_eq!(*runner.arguments.lock().unwrap(), ["{\"n\":5}"]);
}

#[tokio::test]
async fn dropped_job_is_killed_and_a_draining_worker_finishes_its_job() {
    let server = NatsServer::start();
    let runner = Arc::new(FakeRunner::default());
    let replica = Replica::join(join_options(&server).await, ReplicaId(1));
    let (mut tasks, _, stop) = worker(&server, &runner).await;
    let workers = replica.skill_workers(true);
    let started = |count: usize| {
        let runner = Arc::clone(&runner);
        move || runner.started.load(Ordering::Relaxed) == count
    };
    let mut jobs = JoinSet::new();
    let first = Arc::clone(&workers);
    jobs.spawn(async move { run(&*first).await });
    until("the first starts", started(1)).await;
    jobs.abort_all();
    until("it is killed", || runner.killed.load(Ordering::Relaxed) == 1).await;
    while jobs.join_next().await.is_some() {}

    let second = Arc::clone(&workers);
    jobs.spawn(async move { run(&*second).await });
    until("the second starts", started(2)).await;
    // All workers are full: the third waits, and is refused when the worker ends.
    let third = Arc::clone(&workers);
    jobs.spawn(async move { run(&*third).await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    stop.cancel();
    let refused = jobs.join_next().await.unwrap().unwrap();
    assert!(matches!(refused, Err(SkillJobError::NotTaken(_))), "{refused:?}");
    runner.may_end.notify_one();
    let ended = jobs.join_next().await.unwrap().unwrap();
    assert_eq!(ended.map(|exit| exit.output), Ok(b"3".to_vec()));
    tokio::time::timeout(LIMIT, tasks.join_next()).await.unwrap();
    assert_eq!(runner.started.load(Ordering::Relaxed), 2);
}
