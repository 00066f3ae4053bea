//! Measures what a worker adds to a call: latency and CPU of the same calls to a server of this process, and to one that a worker
//! runs, over a real NATS server, for the benchmark `cluster`: `cluster-hop [CALLS] [CALLERS]`. Placements are in memory.
#![expect(clippy::print_stdout, clippy::expect_used, reason = "a measurement that fails as a whole")]

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toolhub_cluster::bus::{Bus, BusOptions};
use toolhub_cluster::{JoinOptions, Replica, ServerSource, Worker, WorkerOptions};
use toolhub_core::cluster::{ClusterStore, HeldPlacement, InstanceKey, Member, Placement};
use toolhub_core::lang::LocalizedText;
use toolhub_core::ports::{NullSink, StoreError};
use toolhub_core::shared_state::ReplicaId;
use toolhub_core::{BoxFuture, Consent, RawJson, RawObject};
use toolhub_mcp_client::config::ServerSpec;
use toolhub_mcp_client::{
    ClientHandler, FailureHistory, ForwardedRequest, RejectingHandler, Server, ServerContext,
};
use toolhub_testkit::nats::NatsServer;
use toolhub_testkit::program;

const TIMEOUT: Duration = Duration::from_secs(30);

/// Members and placements in memory, for one process.
#[derive(Default)]
struct MemoryStore {
    members: Mutex<HashMap<String, Member>>,
    placements: Mutex<HashMap<InstanceKey, Placement>>,
    epoch: AtomicI64,
}

impl MemoryStore {
    fn placed(&self, key: &InstanceKey) -> Option<Placement> {
        self.placements.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }
}

impl ClusterStore for MemoryStore {
    fn beat(&self, member: Member) -> BoxFuture<'_, Result<i64, StoreError>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner).insert(member.id.clone(), member);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970");
        Box::pin(std::future::ready(Ok(i64::try_from(now.as_millis()).expect("a time of this age"))))
    }

    fn leave(&self, _: String) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn members(&self, _: Duration) -> BoxFuture<'_, Result<Vec<Member>, StoreError>> {
        let all = self.members.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        Box::pin(std::future::ready(Ok(all)))
    }

    fn placements(&self) -> BoxFuture<'_, Result<Vec<Placement>, StoreError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn placement(&self, key: InstanceKey) -> BoxFuture<'_, Result<Option<Placement>, StoreError>> {
        Box::pin(std::future::ready(Ok(self.placed(&key))))
    }

    fn claim(
        &self,
        key: InstanceKey,
        worker: String,
        lease: Duration,
    ) -> BoxFuture<'_, Result<Option<i64>, StoreError>> {
        let epoch = self.epoch.fetch_add(1, Ordering::Relaxed) + 1;
        let placement = Placement { key: key.clone(), worker, epoch, left: lease };
        self.placements.lock().unwrap_or_else(PoisonError::into_inner).insert(key, placement);
        Box::pin(std::future::ready(Ok(Some(epoch))))
    }

    fn renew(
        &self,
        _: String,
        held: Vec<HeldPlacement>,
        _: Duration,
    ) -> BoxFuture<'_, Result<Vec<HeldPlacement>, StoreError>> {
        Box::pin(std::future::ready(Ok(held)))
    }

    fn release(&self, _: String, _: HeldPlacement) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// The server of this measurement.
struct JournalServer(ServerContext);

impl JournalServer {
    fn spec() -> ServerSpec {
        let entry = format!(
            "{{\"mcpServers\": {{\"journal\": {{\"command\": {}, \"env\": {{\"JOURNAL\": \"/dev/null\"}}}}}}}}",
            RawJson::of(&program("journal-server"))
        );
        let specs = toolhub_mcp_client::config::parse_servers(std::path::Path::new("mcp.json"), &entry);
        let mut spec = specs.expect("a valid entry").remove(0);
        spec.consent = Consent::of_owner();
        spec
    }
}

impl ServerSource for JournalServer {
    fn server(
        &self,
        _: &str,
        _: &str,
        handler: Arc<dyn ClientHandler>,
    ) -> Result<Arc<Server>, LocalizedText> {
        let context = ServerContext { handler, ..self.0.clone() };
        Ok(Arc::new(Server::new(Self::spec(), FailureHistory::default(), context)))
    }

    fn capabilities(&self) -> RawJson {
        RawJson::empty_object()
    }
}

/// Processor time of this process and the children that have ended, in clock ticks of 10 ms.
fn cpu_millis() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("the state of this process");
    let fields: Vec<&str> =
        stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace().collect();
    let ticks =
        |index: usize| fields.get(index).and_then(|ticks| ticks.parse::<u64>().ok()).unwrap_or_default();
    (ticks(11) + ticks(12)) * 10
}

async fn call(server: &Arc<Server>) {
    let arguments = RawObject::default().with("id", "x");
    let params = RawObject::default().with("name", "append").with("arguments", arguments);
    let name = Some("append".to_owned());
    let request =
        ForwardedRequest { method: "tools/call".to_owned(), params, name, caller: None, timeout: TIMEOUT };
    server.forward(request).await.expect("the call succeeds");
}

/// The number of calls, and how many run at once.
#[derive(Clone, Copy)]
struct Load {
    calls: usize,
    callers: usize,
}

async fn measure(label: &str, server: &Arc<Server>, load: Load) {
    let Load { calls, callers } = load;
    call(server).await;
    let (began, cpu) = (Instant::now(), cpu_millis());
    let mut tasks = JoinSet::new();
    for _ in 0..callers {
        let server = Arc::clone(server);
        tasks.spawn(async move {
            let mut latencies = Vec::with_capacity(calls / callers);
            for _ in 0..calls / callers {
                let since = Instant::now();
                call(&server).await;
                latencies.push(since.elapsed());
            }
            latencies
        });
    }
    let mut latencies: Vec<Duration> = tasks.join_all().await.into_iter().flatten().collect();
    let (took, cpu) = (began.elapsed(), cpu_millis() - cpu);
    latencies.sort();
    let count = latencies.len();
    let at = |part: usize| latencies.get(count * part / 100).copied().unwrap_or_default().as_micros();
    let (p50, p99, rate) = (at(50), at(99), count as u128 * 1000 / took.as_millis().max(1));
    let cpu = cpu * 1000 / count as u64;
    println!("{label}: p50 {p50} µs, p99 {p99} µs, {rate} calls/s, {cpu} µs of CPU per call in this process");
}

#[tokio::main]
async fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|number| number.parse().ok());
    let load = Load { calls: numbers.next().unwrap_or(5000), callers: numbers.next().unwrap_or(1) };
    let nats = NatsServer::start();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let context = ServerContext {
        events: Arc::new(NullSink),
        handler: Arc::new(RejectingHandler),
        listen: false,
        logins: Arc::new(toolhub_oauth::TokenStore::new(folder.path())),
        single_client: false,
        relay: None,
        remote: None,
    };
    let store: Arc<dyn ClusterStore> = Arc::new(MemoryStore::default());
    let join = async || {
        let options = BusOptions {
            servers: vec![nats.url()],
            prefix: "bench".to_owned(),
            credentials: None,
            authorities: None,
            name: "bench".to_owned(),
        };
        let bus = Bus::connect(options).await.expect("NATS is reached");
        JoinOptions { bus, store: Arc::clone(&store), address: "here".to_owned(), lease: TIMEOUT }
    };
    let options = WorkerOptions { labels: Vec::new(), capacity: 10, scripts: None, drain: TIMEOUT };
    let source = Arc::new(JournalServer(context.clone()));
    let worker = Worker::join(join().await, options, source).await.expect("the worker joins");
    let stop = CancellationToken::new();
    let mut working = JoinSet::new();
    working.spawn(worker.run(stop.clone()));
    let replica = Replica::join(join().await, ReplicaId(1));
    tokio::time::sleep(Duration::from_millis(500)).await;
    let local = Arc::new(Server::new(JournalServer::spec(), FailureHistory::default(), context.clone()));
    let with_workers = ServerContext { remote: Some(replica.servers()), ..context };
    let remote = Arc::new(Server::new(JournalServer::spec(), FailureHistory::default(), with_workers));
    println!("{} calls by {} callers to `{}`", load.calls, load.callers, JournalServer::spec().id);
    measure("in this process", &local, load).await;
    measure("through a worker, which is in this process too", &remote, load).await;
    local.close(TIMEOUT).await;
    remote.close(TIMEOUT).await;
    replica.leave().await;
    stop.cancel();
    working.join_all().await;
}
