//! Background responses: they run without a connection, their progress is durable, and they go on after a restart if that
//! cannot repeat a change.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toolhub_mcp_gateway::{Permit, PrincipalHandle};

use super::progress::Progress;
use crate::turn::Turn;
use crate::turn_event::{EndStatus, TurnEnd};

/// Maximum number of background responses that wait to begin.
const MAX_QUEUED: usize = 256;

/// A background response.
pub(crate) struct Job {
    pub(crate) turn: Turn,
    pub(crate) progress: Progress,
    /// The handle and the permit of its principal; `None` after a restart.
    pub(crate) principal: Option<(PrincipalHandle, Permit)>,
}

/// The background responses of this process.
pub(crate) struct Jobs {
    sender: mpsc::Sender<Job>,
    receiver: Mutex<Option<mpsc::Receiver<Job>>>,
    running: Mutex<HashMap<String, CancellationToken>>,
}

impl Default for Jobs {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel(MAX_QUEUED);
        Self { sender, receiver: Mutex::new(Some(receiver)), running: Mutex::default() }
    }
}

impl Jobs {
    /// Adds a response. Returns whether there is room.
    pub(crate) fn add(&self, job: Job) -> bool {
        let id = job.progress.stored.id.clone();
        self.running().insert(id.clone(), CancellationToken::new());
        let is_added = self.sender.try_send(job).is_ok();
        if !is_added {
            self.running().remove(&id);
        }
        is_added
    }

    /// Cancels a response. Returns whether this process runs it.
    pub(crate) fn cancel(&self, id: &str) -> bool {
        let token = self.running().get(id).cloned();
        token.inspect(CancellationToken::cancel).is_some()
    }

    /// Runs the responses while it is polled.
    pub(crate) async fn work(self: Arc<Self>) {
        let receiver = self.receiver.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut receiver) = receiver else { return };
        let mut running = JoinSet::new();
        loop {
            tokio::select! {
                job = receiver.recv() => match job {
                    Some(job) => {
                        let jobs = Arc::clone(&self);
                        running.spawn(async move { jobs.run(job).await });
                    }
                    None => return,
                },
                Some(_) = running.join_next() => {}
            }
        }
    }

    async fn run(&self, job: Job) {
        let Job { turn, progress, principal } = job;
        let id = progress.stored.id.clone();
        let token = self.running().get(&id).cloned().unwrap_or_default();
        let log = turn.log();
        let ended = |status| TurnEnd { client_calls: Vec::new(), status, usage: Default::default() };
        let revoked = async {
            match &principal {
                Some((handle, _)) => handle.revoked().await,
                None => std::future::pending().await,
            }
        };
        let begun = progress.save(&log).await;
        let end = match begun {
            Err(_) => ended(EndStatus::Cancelled),
            Ok(()) => tokio::select! {
                biased;
                () = token.cancelled() => ended(EndStatus::Cancelled),
                () = revoked => ended(EndStatus::Failed("the key of this request was revoked".to_owned())),
                end = Box::pin(turn.run()) => end,
            },
        };
        if let Ok(body) = log.finish(&end, crate::unix_time()) {
            // A store that fails leaves it unfinished; the next start decides about it.
            let _ = progress.save_final(&log, body).await;
        }
        self.running().remove(&id);
    }

    fn running(&self) -> MutexGuard<'_, HashMap<String, CancellationToken>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
