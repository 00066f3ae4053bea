//! How long calls fail after a worker, the replica of a session, NATS or PostgreSQL was killed, and that no call runs twice.
use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;

use super::{
    Environment,
    client::{Client, Outcome},
    deployment::{Configuration, Deployment, Member, POLL_INTERVAL},
    journal_servers::{TOOL, entry},
};
use crate::table::Table;

const CALLERS: usize = 4;
/// Load before the fault, and without a failure after it.
const WARM_UP: Duration = Duration::from_secs(1);
const SETTLE: Duration = Duration::from_secs(3);
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(120);
/// How long the server takes for a call, in milliseconds, so that some are running when the fault happens.
const CALL_MILLIS: u64 = 50;
const CALL_INTERVAL: Duration = Duration::from_millis(10);
const RETRY_INTERVAL: Duration = Duration::from_millis(50);
/// Part of the answer to a client that must begin another session.
const NO_SESSION: &str = "no such session";

/// A kind of fault, in the order of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Worker,
    SessionHome,
    Nats,
    Postgres,
}

const FAULTS: [Fault; 4] = [Fault::Worker, Fault::SessionHome, Fault::Nats, Fault::Postgres];

impl Fault {
    fn name(self) -> &'static str {
        match self {
            Self::Worker => "worker that runs the server",
            Self::SessionHome => "replica of the callers' sessions",
            Self::Nats => "NATS, started again",
            Self::Postgres => "PostgreSQL, started again",
        }
    }
}

/// A call with its times.
#[derive(Clone, Debug)]
struct Attempt {
    id: String,
    began: Instant,
    ended: Instant,
    outcome: Outcome,
}

/// Times are since the fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Recovery {
    /// Until the killed service accepted connections again, if it was started again.
    restarted: Option<Duration>,
    /// The end of the first failed call.
    first_failure: Option<Duration>,
    /// The end of the first successful call that began after the fault.
    first_success: Duration,
    /// The end of the last failed call.
    last_failure: Option<Duration>,
    failed: usize,
    /// Number of `failed` calls that may have taken effect.
    unknown: usize,
}

pub(super) fn run(environment: &mut Environment<'_>) -> Result<()> {
    let mut cluster = Cluster::start(environment)?;
    let mut table = Table::default();
    let head = [
        "killed",
        "first failed call",
        "first successful call",
        "last failed call",
        "failed calls",
        "may have run",
        "restart",
    ];
    table.row(head.map(str::to_owned));
    for fault in FAULTS {
        let repetitions = 0..environment.options.rounds;
        let all = repetitions.map(|number| cluster.suffer(environment, fault, number));
        table.row(row(fault, &all.collect::<Result<Vec<_>>>()?));
    }
    println!(
        "{CALLERS} callers of a tool that may change something and takes {CALL_MILLIS} ms, killed by SIGKILL {} times; since then, median / worst",
        environment.options.rounds
    );
    println!("{table}");
    println!("no call ran twice; each that succeeded ran once, and none that was refused");
    Ok(())
}

/// Two replicas and two workers.
struct Cluster {
    deployment: Deployment,
    replicas: Vec<Member>,
    workers: Vec<Member>,
}

impl Cluster {
    fn start(environment: &Environment<'_>) -> Result<Self> {
        let journal = journal(&environment.scratch.path().join("takeover"));
        let deployment = Deployment::new(
            environment,
            &Configuration {
                name: "takeover",
                nats: Some(&environment.nats),
                servers: json!({"journal": entry(environment, &journal)}),
                settings: "",
            },
        )?;
        let (workers, replicas) = (deployment.workers(2)?, deployment.replicas(2)?);
        Ok(Self { deployment, replicas, workers })
    }

    fn await_ready(&self) -> Result<()> {
        self.replicas.iter().try_for_each(|replica| replica.await_ready(TOOL, &json!({"id": "ready"})))
    }

    /// Kills a part under load, and replaces it.
    fn suffer(&mut self, environment: &mut Environment<'_>, fault: Fault, number: usize) -> Result<Recovery> {
        self.await_ready()?;
        let [home, other] = &self.replicas[..] else { bail!("there are not two replicas") };
        let client = |_| match fault {
            Fault::SessionHome => Client::with_session(&home.url)?.move_to(&other.url),
            _ => Client::new(&other.url),
        };
        let clients: Vec<Client> = (0..CALLERS).map(client).collect::<Result<_>>()?;
        let label = format!("{fault:?}-{number}");
        let placed_at = self.deployment.placed_at()?;
        let (replicas, workers) = (&mut self.replicas, &mut self.workers);
        let (killed, restarted, attempts) = observe(clients, &label, || {
            match fault {
                Fault::Worker => {
                    let index = workers.iter().position(|worker| worker.id == placed_at);
                    workers.remove(index.context("another worker runs the server")?).kill();
                    return Ok(None);
                }
                Fault::SessionHome => {
                    replicas.remove(0).kill();
                    return Ok(None);
                }
                Fault::Nats => environment.nats.restart()?,
                Fault::Postgres => environment.postgres.restart()?,
            }
            Ok(Some(Instant::now()))
        })?;
        check_journal(&attempts, &fs::read_to_string(journal(self.deployment.folder()))?)?;
        match fault {
            Fault::Worker => self.workers.push(self.deployment.worker()?),
            Fault::SessionHome => self.replicas.push(self.deployment.replica()?),
            Fault::Nats | Fault::Postgres => {}
        }
        let restarted = restarted.map(|at| at - killed);
        recovery(&attempts, killed, restarted).with_context(|| format!("{}: no call succeeded", fault.name()))
    }
}

fn journal(folder: &Path) -> PathBuf {
    folder.join("journal")
}

/// What `observe` returns: the time of the fault, that of the restart, and all calls.
type Observation = (Instant, Option<Instant>, Vec<Attempt>);

/// Lets the clients call until calls succeed again after the fault.
fn observe(
    clients: Vec<Client>,
    label: &str,
    fault: impl FnOnce() -> Result<Option<Instant>>,
) -> Result<Observation> {
    let (stop, log) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let (killed, restarted) = thread::scope(|scope| {
        for (caller, client) in clients.into_iter().enumerate() {
            let (stop, log, prefix) = (&stop, &log, format!("{label}-{caller}"));
            scope.spawn(move || call_until(stop, client, &prefix, log));
        }
        thread::sleep(WARM_UP);
        let killed = Instant::now();
        let restarted = fault();
        if restarted.is_ok() {
            await_recovery(&log, killed);
        }
        stop.store(true, Ordering::Relaxed);
        restarted.map(|restarted| (killed, restarted))
    })?;
    Ok((killed, restarted, log.into_inner().unwrap_or_else(PoisonError::into_inner)))
}

/// One call after another.
fn call_until(stop: &AtomicBool, mut client: Client, prefix: &str, log: &Mutex<Vec<Attempt>>) {
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        let id = format!("{prefix}-{number}");
        let began = Instant::now();
        let outcome = client.call(TOOL, &json!({"id": id, "ms": CALL_MILLIS}));
        let ended = Instant::now();
        let mut interval = CALL_INTERVAL;
        if let Outcome::Failed { text, .. } = &outcome {
            interval = RETRY_INTERVAL;
            if text.contains(NO_SESSION) {
                // Fails as long as the replica does: the next call reports it.
                let _ = client.open_session();
            }
        }
        let attempt = Attempt { id, began, ended, outcome };
        log.lock().unwrap_or_else(PoisonError::into_inner).push(attempt);
        number += 1;
        thread::sleep(interval);
    }
}

fn await_recovery(log: &Mutex<Vec<Attempt>>, killed: Instant) {
    while killed.elapsed() < RECOVERY_TIMEOUT {
        thread::sleep(POLL_INTERVAL);
        let found = recovery(&log.lock().unwrap_or_else(PoisonError::into_inner), killed, None);
        let is_settled = |found: Recovery| {
            killed.elapsed().saturating_sub(found.last_failure.unwrap_or_default().max(found.first_success))
                > SETTLE
        };
        if found.is_some_and(is_settled) {
            return;
        }
    }
}

/// `None` if no call succeeded after the fault.
fn recovery(attempts: &[Attempt], killed: Instant, restarted: Option<Duration>) -> Option<Recovery> {
    let later = attempts.iter().filter(|attempt| attempt.ended > killed);
    let failures = || {
        later.clone().filter_map(|attempt| match attempt.outcome {
            Outcome::Succeeded => None,
            Outcome::Failed { may_have_run, .. } => Some((attempt.ended - killed, may_have_run)),
        })
    };
    let successes = later.clone().filter(|attempt| attempt.outcome == Outcome::Succeeded);
    Some(Recovery {
        restarted,
        first_failure: failures().map(|(at, _)| at).min(),
        first_success: successes
            .filter(|attempt| attempt.began >= killed)
            .map(|attempt| attempt.ended - killed)
            .min()?,
        last_failure: failures().map(|(at, _)| at).max(),
        failed: failures().count(),
        unknown: failures().filter(|(_, may_have_run)| *may_have_run).count(),
    })
}

/// Checks that each call ran as its outcome says. The journal has a line for each call that ran.
fn check_journal(attempts: &[Attempt], journal: &str) -> Result<()> {
    let mut counts = HashMap::<&str, usize>::new();
    for id in journal.lines() {
        *counts.entry(id).or_default() += 1;
    }
    for Attempt { id, outcome, .. } in attempts {
        let count = counts.get(id.as_str()).copied().unwrap_or_default();
        let is_right = match outcome {
            Outcome::Succeeded => count == 1,
            Outcome::Failed { may_have_run: false, .. } => count == 0,
            Outcome::Failed { .. } => count <= 1,
        };
        ensure!(is_right, "the call {id} ran {count} times: {outcome:?}");
    }
    Ok(())
}

/// Median and worst of each figure.
fn row(fault: Fault, all: &[Recovery]) -> [String; 7] {
    let time = |of: fn(&Recovery) -> Option<Duration>| {
        let shown = |time: Duration| format!("{:.2}", time.as_secs_f64());
        median_and_worst(all.iter().filter_map(of)).map_or_else(
            || "-".to_owned(),
            |[median, worst]| format!("{} / {} s", shown(median), shown(worst)),
        )
    };
    let number = |of: fn(&Recovery) -> usize| {
        let both = median_and_worst(all.iter().map(of));
        both.map_or_else(|| "-".to_owned(), |[median, worst]| format!("{median} / {worst}"))
    };
    [
        fault.name().to_owned(),
        time(|recovery| recovery.first_failure),
        time(|recovery| Some(recovery.first_success)),
        time(|recovery| recovery.last_failure),
        number(|recovery| recovery.failed),
        number(|recovery| recovery.unknown),
        time(|recovery| recovery.restarted),
    ]
}

/// `None` without figures.
fn median_and_worst<T: Copy + Ord>(figures: impl Iterator<Item = T>) -> Option<[T; 2]> {
    let mut sorted: Vec<T> = figures.collect();
    sorted.sort_unstable();
    Some([*sorted.get(sorted.len().saturating_sub(1) / 2)?, *sorted.last()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempts(start: Instant, calls: &[(u64, u64, Option<bool>)]) -> Vec<Attempt> {
        let at = |millis| start + Duration::from_millis(millis);
        let attempt = |(number, (began, ended, failed)): (usize, &(u64, u64, Option<bool>))| Attempt {
            id: number.to_string(),
            began: at(*began),
            ended: at(*ended),
            outcome: failed.map_or(Outcome::Succeeded, |may_have_run| Outcome::Failed {
                text: String::new(),
                may_have_run,
            }),
        };
        calls.iter().enumerate().map(attempt).collect()
    }

    #[test]
    fn recovery_counts_from_the_fault() {
        let start = Instant::now();
        let killed = start + Duration::from_millis(100);
        let calls = [
            (0, 50, Some(true)),
            (90, 110, None),
            (95, 300, Some(true)),
            (120, 400, Some(false)),
            (350, 900, None),
            (450, 800, None),
        ];
        let found = recovery(&attempts(start, &calls), killed, None).unwrap();
        let expected = Recovery {
            restarted: None,
            first_failure: Some(Duration::from_millis(200)),
            first_success: Duration::from_millis(700),
            last_failure: Some(Duration::from_millis(300)),
            failed: 2,
            unknown: 1,
        };
        assert_eq!(found, expected);
        assert_eq!(recovery(&attempts(start, &calls[..4]), killed, None), None);
    }

    #[test]
    fn rows_show_median_and_worst() {
        let recovery = |seconds, failed| Recovery {
            restarted: None,
            first_failure: None,
            first_success: Duration::from_secs(seconds),
            last_failure: None,
            failed,
            unknown: 0,
        };
        let cells = row(Fault::Nats, &[recovery(9, 1), recovery(2, 0), recovery(3, 5)]);
        assert_eq!(cells[1..], ["-", "3.00 / 9.00 s", "-", "1 / 5", "0 / 0", "-"]);
    }

    #[test]
    fn journal_contradicts_outcomes() {
        let calls = [(0, 1, None), (0, 1, Some(false)), (0, 1, Some(true))];
        let attempts = attempts(Instant::now(), &calls);
        for (journal, is_right) in [
            ("0\n", true),
            ("0\n2\n", true),
            ("2\n", false),
            ("0\n0\n", false),
            ("0\n1\n", false),
            ("0\n2\n2\n", false),
        ] {
            assert_eq!(check_journal(&attempts, journal).is_ok(), is_right, "{journal:?}");
        }
    }
}
