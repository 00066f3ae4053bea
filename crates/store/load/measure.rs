//! The cost of recording: calls per second with and without it, for calls of several durations, with 1 and 32 callers.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use toolhub_core::call_log::{CallStart, CallStatus};
use toolhub_core::ports::HubStore;
use toolhub_core::{RawJson, ToolName};
use toolhub_store::{AuditOptions, Durability, StoreOptions};

use crate::calls::{end, start};

/// Duration of one run. Runs with and without recording alternate, so that other load on the machine affects both equally.
const TURN: Duration = Duration::from_millis(400);
const TURNS: u32 = 6;
const CALLERS: [usize; 2] = [1, 32];

#[derive(Clone, Copy, PartialEq)]
enum Record {
    Nothing,
    Note,
    BeginAndFinish,
}

pub(crate) fn run(location: &str) {
    drop(opened(location, StoreOptions::default()));
    let mut times: Vec<Duration> = (0..21)
        .map(|_| {
            let started = Instant::now();
            let store = opened(location, StoreOptions::default());
            let took = started.elapsed();
            drop(store);
            took
        })
        .collect();
    times.sort_unstable();
    println!("open     {:?} in the middle of {}", times[times.len() / 2], times.len());
    for micros in [5, 10, 20] {
        let store = opened(location, StoreOptions::default());
        for callers in CALLERS {
            let rates = Rates::of(&store, callers, micros, Record::Note);
            let dropped = store.dropped_details();
            println!(
                "notes    work {micros:>2} µs, {callers:>2} callers: {rates}, details lost so far {dropped}"
            );
        }
    }
    intents(location);
}

fn opened(location: &str, options: StoreOptions) -> Arc<dyn HubStore> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(crate::store(location, options))
}

/// Records calls in groups of 500, with the audit log on if there is a key: for counting instructions.
pub(crate) async fn record(location: &str, calls: u64, key: Option<&str>) {
    let (location, options) = (crate::place(location), StoreOptions::default());
    let store = match key {
        None => toolhub_store::open(&location, options, None).await.unwrap(),
        Some(key) => {
            let audit = AuditOptions::new(key);
            toolhub_store::open_with_audit(&location, options, &audit, None).await.unwrap().store
        }
    };
    let before = processor_time();
    let (tool, output) = (ToolName::new("echo"), RawJson::of("hello"));
    for number in 0..calls {
        let call = CallStart { may_change: false, ..start(&tool, number) };
        let ending = end(&call, CallStatus::Succeeded, output.clone());
        store.record_finished(call, ending);
        if number % 500 == 499 {
            store.flush().await.unwrap();
        }
    }
    store.flush().await.unwrap();
    let each = (processor_time() - before).as_secs_f64() * 1e6 / calls as f64;
    println!("{calls} calls, {each:.2} µs of CPU time a call");
}

/// Measures calls that must be recorded before they run (`begin` and `finish`).
pub(crate) fn intents(location: &str) {
    for durability in [Durability::Program, Durability::Power] {
        let store = opened(location, StoreOptions { durability, ..StoreOptions::default() });
        for callers in CALLERS {
            let rates = Rates::of(&store, callers, 10, Record::BeginAndFinish);
            println!("intents  {durability:?}, {callers:>2} callers: {rates}");
        }
    }
}

/// Calls per second and CPU time, without recording (`off`) and with it (`on`).
#[derive(Default)]
struct Rates {
    off: f64,
    on: f64,
    off_cost: Duration,
    on_cost: Duration,
}

impl Rates {
    fn of(store: &Arc<dyn HubStore>, callers: usize, micros: u64, record: Record) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut rates = Self::default();
        for _ in 0..TURNS {
            let before = processor_time();
            rates.off += rate(store, callers, micros, Record::Nothing) / f64::from(TURNS);
            let between = processor_time();
            rates.on += rate(store, callers, micros, record) / f64::from(TURNS);
            runtime.block_on(store.flush()).unwrap();
            rates.off_cost += between - before;
            rates.on_cost += processor_time() - between;
        }
        rates
    }
}

impl std::fmt::Display for Rates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { off, on, off_cost, on_cost } = self;
        let each =
            |cost: &Duration, rate: &f64| cost.as_secs_f64() * 1e6 / (rate * (TURN * TURNS).as_secs_f64());
        let (off_cost, on_cost) = (each(off_cost, off), each(on_cost, on));
        write!(f, "off {off:>7.0}/s, on {on:>7.0}/s, ratio {:.2}; ", on / off)?;
        write!(f, "processor {off_cost:.1} and {on_cost:.1} µs a call, ratio {:.2}", off_cost / on_cost)
    }
}

/// CPU time of this process (user and system) from `/proc/self/stat`, which counts in ticks of 10 ms.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let hundredths: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(hundredths * 10)
}

/// Calls per second of `callers` tasks, each call with about `micros` microseconds of CPU work.
fn rate(store: &Arc<dyn HubStore>, callers: usize, micros: u64, record: Record) -> f64 {
    // The minimum number of worker threads of `toolhub`.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let started = Instant::now();
        let mut tasks = JoinSet::new();
        for _ in 0..callers {
            tasks.spawn(caller(Arc::clone(store), micros, record, started));
        }
        let done: u64 = tasks.join_all().await.into_iter().sum();
        done as f64 / started.elapsed().as_secs_f64()
    })
}

async fn caller(store: Arc<dyn HubStore>, micros: u64, record: Record, started: Instant) -> u64 {
    let (tool, output) = (ToolName::new("echo"), RawJson::of("hello"));
    let mut done = 0_u64;
    while started.elapsed() < TURN {
        let call = start(&tool, done);
        let ending = end(&call, CallStatus::Succeeded, output.clone());
        if record == Record::BeginAndFinish {
            store.begin(call.clone()).await.unwrap();
        }
        work(micros);
        match record {
            Record::Nothing => drop(black_box((call, ending))),
            Record::Note => store.record_finished(call, ending),
            Record::BeginAndFinish => store.finish(ending).await.unwrap(),
        }
        done += 1;
        tokio::task::yield_now().await;
    }
    done
}

/// Executes a fixed number of steps, 1,000 per microsecond, so that the CPU work does not depend on preemption.
fn work(micros: u64) {
    let mut sum = 0_u64;
    for step in 0..micros * 1_000 {
        sum = black_box(sum.wrapping_mul(31).wrapping_add(step));
    }
}
