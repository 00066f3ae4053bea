//! Background responses: they run without a connection, their progress is durable, and they go on after a restart if that
//! cannot repeat a change.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toolhub::Gateways;
use toolhub_core::Principal;
use toolhub_core::lang::Localize as _;
use toolhub_mcp_gateway::Permit;

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
    pub(crate) permit: Option<Permit>,
}

/// What became of a response that was to be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    Added,
    /// This process works on it already.
    Present,
    /// Its principal has the maximum number of background responses.
    PrincipalFull,
    /// This process has the maximum number of background responses.
    Full,
}

impl Admission {
    /// Why it was not added.
    pub(crate) fn refusal(self) -> Option<String> {
        match self {
            Self::Added | Self::Present => None,
            Self::PrincipalFull => Some(format!(
                "one caller may run {MAX_JOBS_PER_PRINCIPAL} background responses at the same time"
            )),
            Self::Full => Some(format!("this hub runs {MAX_JOBS} background responses at the same time")),
        }
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
}

/// The background responses of this process.
pub(crate) struct Jobs {
    sender: mpsc::Sender<Job>,
    receiver: Mutex<Option<mpsc::Receiver<Job>>>,
    running: Mutex<HashMap<String, RunningJob>>,
}

impl Default for Jobs {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel(MAX_JOBS);
        Self { sender, receiver: Mutex::new(Some(receiver)), running: Mutex::default() }
    }
}

impl Jobs {
    /// Adds a response, if there is room.
    pub(crate) fn add(&self, job: Job) -> Admission {
        let id = job.progress.stored.id.clone();
        let mut running = self.running();
        let principal = Arc::clone(&job.turn.principal);
        if running.contains_key(&id) {
            return Admission::Present;
        }
        if running.len() >= MAX_JOBS {
            return Admission::Full;
        }
        if running.values().filter(|other| other.principal.id() == principal.id()).count()
            >= MAX_JOBS_PER_PRINCIPAL
        {
            return Admission::PrincipalFull;
        }
        let profile = job.turn.profile.clone();
        if self.sender.try_send(job).is_err() {
            return Admission::Full;
        }
        let entry = RunningJob {
            principal,
            profile,
            cancelled: CancellationToken::new(),
            forbidden: CancellationToken::new(),
            reason: String::new(),
        };
        running.insert(id, entry);
        Admission::Added
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
                    Some(job) => {
                        let (jobs, gateways) = (Arc::clone(&self), Arc::clone(&gateways));
                        running.spawn(async move { jobs.run(job, &gateways).await });
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
        loop {
            tokio::time::sleep(WATCH_INTERVAL).await;
            let ids: Vec<String> = self.running().keys().cloned().collect();
            if ids.is_empty() {
                continue;
            }
            self.forbid(gateways);
            // What cannot be read now is read later.
            let wanted = tokio::time::timeout(STORE_TIMEOUT, store.wanted_responses()).await;
            let Ok(Ok(wanted)) = wanted else { continue };
            let wanted: HashSet<String> = wanted.into_iter().collect();
            for id in ids.iter().filter(|id| !wanted.contains(*id)) {
                self.cancel(id);
            }
        }
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
        let end = match (allowed, progress.save(&log).await) {
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
            progress.save_final(&log, &body).await;
        }
        self.running().remove(&id);
    }

    fn running(&self) -> MutexGuard<'_, HashMap<String, RunningJob>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
