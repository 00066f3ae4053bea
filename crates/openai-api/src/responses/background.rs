//! Background responses: they run without a connection, their progress is durable, and they go on after a restart if that
//! cannot repeat a change.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toolhub::Gateways;
use toolhub_core::Principal;
use toolhub_core::lang::Localize as _;
use toolhub_mcp_gateway::BudgetPermit;

use super::abandoned::AbandonedResponses;
use super::progress::Progress;
use crate::rights;
use crate::turn::{LANG, Turn};
use crate::turn_event::{EndStatus, TurnEnd};

/// Maximum number of background responses of this process.
const MAX_JOBS: usize = 256;
/// Maximum number of those of one principal.
const MAX_JOBS_PER_PRINCIPAL: usize = 64;
/// How often the store and the access rules are asked whether the responses shall go on.
const WATCH_INTERVAL: Duration = Duration::from_millis(250);
/// How long the store may take for an answer.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);

/// A background response.
pub(crate) struct Job {
    pub(crate) turn: Turn,
    pub(crate) progress: Progress,
    /// Counts it against the requests of its principal; `None` after a restart.
    pub(crate) permit: Option<BudgetPermit>,
}

/// Why this process does not run a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// This process works on it already.
    Present,
    /// Its principal has the maximum number of background responses.
    PrincipalFull,
    /// This process has the maximum number of background responses.
    Full,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Present => f.write_str("this hub runs the response already"),
            Self::PrincipalFull => {
                write!(f, "one caller may run {MAX_JOBS_PER_PRINCIPAL} background responses at the same time")
            }
            Self::Full => write!(f, "this hub runs {MAX_JOBS} background responses at the same time"),
        }
    }
}

/// The place of a response among those that this process runs.
pub(crate) struct Reservation {
    jobs: Arc<Jobs>,
    id: String,
}

impl Reservation {
    /// Runs the response.
    pub(crate) fn start(self, job: Job) {
        let sender = self.jobs.sender.clone();
        // There are no more reservations than the channel has room for. If its receiver has ended, the process ends.
        let _ = sender.try_send((self, job));
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.jobs.running().remove(&self.id);
    }
}

/// A response that waits or runs.
struct RunningJob {
    principal: Arc<Principal>,
    profile: Option<String>,
    cancelled: CancellationToken,
    /// Cancelled when the principal may not continue it; the reason is stored before.
    forbidden: CancellationToken,
    reason: String,
    /// Whether the store has confirmed that this process runs it.
    is_stored: bool,
}

/// The background responses of this process.
pub(crate) struct Jobs {
    sender: mpsc::Sender<(Reservation, Job)>,
    receiver: Mutex<Option<mpsc::Receiver<(Reservation, Job)>>>,
    running: Mutex<HashMap<String, RunningJob>>,
}

impl Default for Jobs {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel(MAX_JOBS);
        Self { sender, receiver: Mutex::new(Some(receiver)), running: Mutex::default() }
    }
}

impl Jobs {
    /// Takes the place of a response, if there is room. It is free again when the reservation is dropped.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        id: &str,
        principal: &Arc<Principal>,
        profile: Option<&str>,
    ) -> Result<Reservation, Refusal> {
        let mut running = self.running();
        if running.contains_key(id) {
            return Err(Refusal::Present);
        }
        if running.len() >= MAX_JOBS {
            return Err(Refusal::Full);
        }
        if running.values().filter(|other| other.principal.id() == principal.id()).count()
            >= MAX_JOBS_PER_PRINCIPAL
        {
            return Err(Refusal::PrincipalFull);
        }
        let entry = RunningJob {
            principal: Arc::clone(principal),
            profile: profile.map(str::to_owned),
            cancelled: CancellationToken::new(),
            forbidden: CancellationToken::new(),
            reason: String::new(),
            is_stored: false,
        };
        running.insert(id.to_owned(), entry);
        Ok(Reservation { jobs: Arc::clone(self), id: id.to_owned() })
    }

    /// Whether this process works on a response.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.running().contains_key(id)
    }

    /// Cancels a response, if this process works on it.
    pub(crate) fn cancel(&self, id: &str) {
        if let Some(job) = self.running().get(id) {
            job.cancelled.cancel();
        }
    }

    /// Runs the responses while it is polled.
    pub(crate) async fn work(self: Arc<Self>, gateways: Arc<Gateways>) {
        let receiver = self.receiver.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut receiver) = receiver else { return };
        let mut running = JoinSet::new();
        loop {
            tokio::select! {
                job = receiver.recv() => match job {
                    Some((reservation, job)) => {
                        let (jobs, gateways) = (Arc::clone(&self), Arc::clone(&gateways));
                        running.spawn(async move {
                            jobs.run(job, &gateways).await;
                            drop(reservation);
                        });
                    }
                    None => return,
                },
                Some(_) = running.join_next() => {}
            }
        }
    }

    /// Ends responses that were cancelled or deleted at another hub, that another hub has taken over, or whose principal has
    /// lost its rights, while it is polled.
    pub(crate) async fn watch(&self, gateways: &Gateways) {
        let Some(store) = gateways.hub().store() else { return };
        let mut abandoned = AbandonedResponses::default();
        loop {
            tokio::time::sleep(WATCH_INTERVAL).await;
            // Before the store is read: a response is stored only after its place is taken.
            let ids: Vec<String> = self.running().keys().cloned().collect();
            if ids.is_empty() && !abandoned.is_due() {
                continue;
            }
            self.forbid(gateways);
            // What cannot be read now is read later.
            let owned = tokio::time::timeout(STORE_TIMEOUT, store.owned_responses()).await;
            let Ok(Ok(owned)) = owned else { continue };
            let wanted: HashSet<&str> =
                owned.iter().filter(|one| !one.is_cancelled).map(|one| &*one.id).collect();
            // A response that is about to be stored is not there yet: it is not cancelled.
            for id in ids.iter().filter(|id| !wanted.contains(id.as_str()) && self.is_stored(id)) {
                self.cancel(id);
            }
            let left = owned.iter().filter(|one| !one.is_adopted && !self.has(&one.id)).cloned();
            abandoned.end(&**store, left.collect(), Instant::now()).await;
        }
    }

    /// Whether a response is in the store since this process runs it.
    fn is_stored(&self, id: &str) -> bool {
        self.running().get(id).is_some_and(|job| job.is_stored)
    }

    /// Ends responses whose principals may not continue them.
    fn forbid(&self, gateways: &Gateways) {
        for job in self.running().values_mut() {
            if let Err(why) = rights::check(gateways, &job.principal, job.profile.as_deref())
                && !job.forbidden.is_cancelled()
            {
                job.reason = why;
                job.forbidden.cancel();
            }
        }
    }

    async fn run(&self, job: Job, gateways: &Gateways) {
        let Job { turn, progress, permit } = job;
        let id = progress.stored.id.clone();
        let tokens = self.running().get(&id).map(|job| (job.cancelled.clone(), job.forbidden.clone()));
        let (cancelled, forbidden) = tokens.unwrap_or_default();
        let log = turn.log();
        let ended = |status| TurnEnd { client_calls: Vec::new(), status, usage: Default::default() };
        let allowed = rights::check(gateways, &turn.principal, turn.profile.as_deref());
        let saved = progress.save(&log).await;
        if let Some(job) = self.running().get_mut(&id) {
            job.is_stored = true;
        }
        let end = match (allowed, saved) {
            (Err(why), _) => ended(EndStatus::Failed(why)),
            (Ok(()), Err(why)) => ended(EndStatus::Failed(why.localize(LANG))),
            (Ok(()), Ok(())) => tokio::select! {
                biased;
                () = cancelled.cancelled() => ended(EndStatus::Cancelled),
                () = forbidden.cancelled() => {
                    let why = self.running().get(&id).map(|job| job.reason.clone());
                    ended(EndStatus::Failed(why.unwrap_or_default()))
                }
                end = Box::pin(turn.run()) => end,
            },
        };
        drop(permit);
        if let Ok(body) = log.finish(&end, crate::unix_time()) {
            // Its arguments and results are not needed any more, however long the store fails.
            if let Some(status) = log.with_response(|response| response.status()) {
                drop(log);
                progress.save_final(status, body).await;
            }
        }
    }

    fn running(&self) -> MutexGuard<'_, HashMap<String, RunningJob>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
