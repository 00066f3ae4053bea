//! Scripts of skills on workers: a job is given to one worker after the other until one accepts it, and never to a second one after
//! that.

use std::sync::Arc;

use toolhub_core::error::Effect;
use toolhub_core::lang::LocalizedText;
use toolhub_core::skill_jobs::{SkillExit, SkillJob, SkillJobError, SkillWorkers};
use toolhub_core::{BoxFuture, CallContext};

use super::Replica;
use super::candidates::{Candidates, FULL_RETRY_INTERVAL, NotBegun, Refusals, worker_lost};
use super::waiting::WorkerRequest;
use crate::bus::{BusError, Replies};
use crate::clock::millis;
use crate::cluster_protocol::{self, PROTOCOL, SkillJobHead, SkillReply, Subjects};
use crate::exchange::{ACCEPT_TIMEOUT, RequestExchange};
use crate::liveness::SlotKind;

/// Maximum size of the output of a script: the one that a worker keeps to.
const MAX_OUTPUT_BYTES: usize = 1 << 20;

impl Replica {
    /// The workers that run scripts of skills. If all are full, a job waits for one with `waits`; otherwise none takes it.
    pub fn skill_workers(&self, waits: bool) -> Arc<dyn SkillWorkers> {
        Arc::new(SkillSlots { candidates: Candidates::new(&self.shared, SlotKind::Skill), waits })
    }
}

/// The workers that run scripts of skills.
struct SkillSlots {
    candidates: Candidates,
    waits: bool,
}

/// Why a worker has no result.
enum AttemptError {
    /// The worker certainly has not begun the job, and will not.
    NotBegun(NotBegun),
    Final(SkillJobError),
}

impl AttemptError {
    fn lost(worker: &str, why: &BusError) -> Self {
        Self::Final(SkillJobError::WorkerLost(worker_lost(worker, why)))
    }

    /// The error of a request that was not accepted.
    fn before_acceptance(worker: &str, error: &BusError) -> Self {
        match error.effect() {
            Effect::None => Self::NotBegun(NotBegun::from(error)),
            // A message that was not answered may have been received.
            Effect::Unknown => Self::lost(worker, error),
        }
    }
}

impl SkillWorkers for SkillSlots {
    fn run<'a>(
        &'a self,
        job: &'a SkillJob,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<SkillExit, SkillJobError>> {
        Box::pin(async move {
            loop {
                let mut refusals = Refusals::default();
                for worker in self.candidates.find().await {
                    // While the job waits, full workers are not sent it again and again: a sign of life reports a free slot.
                    if self.waits && worker.is_full {
                        refusals.push(NotBegun { why: all_full(), is_full: true });
                        continue;
                    }
                    match self.run_at(&worker.member, job, context).await {
                        Ok(exit) => return Ok(exit),
                        Err(AttemptError::NotBegun(not_begun)) => refusals.push(not_begun),
                        Err(AttemptError::Final(error)) => return Err(error),
                    }
                }
                if !(self.waits && refusals.is_any_full) {
                    return Err(SkillJobError::NotTaken(refusals.last));
                }
                tokio::time::sleep(FULL_RETRY_INTERVAL).await;
            }
        })
    }
}

impl SkillSlots {
    /// Gives the job to a worker, and waits for its end.
    async fn run_at(
        &self,
        worker: &str,
        job: &SkillJob,
        context: &CallContext,
    ) -> Result<SkillExit, AttemptError> {
        let shared = &self.candidates.shared;
        let not_sent = |error: &BusError| AttemptError::before_acceptance(worker, error);
        let now = shared.member.clock.now().ok_or_else(|| not_sent(&BusError::Disconnected))?;
        let SkillJob { skill, tool, identity, arguments } = job;
        let head = SkillJobHead {
            protocol: PROTOCOL,
            id: shared.new_request_id(),
            from: shared.member.id.clone(),
            begin_by: now.saturating_add(millis(ACCEPT_TIMEOUT)),
            skill: skill.clone(),
            tool: tool.clone(),
            identity: identity.clone(),
        };
        let message = cluster_protocol::write(&head, arguments.get().as_bytes());
        let mut request = WorkerRequest::new(shared, worker, &head.id);
        context.sending();
        let subject = Subjects(&shared.bus).skills(worker);
        let result = match shared.bus.request(&subject, message).await {
            Ok(replies) => self.receive(worker, replies, &request).await,
            Err(error) => Err(not_sent(&error)),
        };
        // A job that is lost may still run; it is told to end.
        request.is_over = !matches!(result, Err(AttemptError::Final(SkillJobError::WorkerLost(_))));
        result
    }

    /// Receives the messages about a job until its end.
    async fn receive(
        &self,
        worker: &str,
        replies: Replies,
        request: &WorkerRequest,
    ) -> Result<SkillExit, AttemptError> {
        let mut exchange =
            RequestExchange::of(replies, &request.open, &self.candidates.shared.liveness, worker);
        loop {
            let (reply, body) = match exchange.next::<SkillReply>().await {
                Ok(reply) => reply,
                Err(error) if exchange.is_accepted() => return Err(AttemptError::lost(worker, &error)),
                Err(error) => return Err(AttemptError::before_acceptance(worker, &error)),
            };
            match reply {
                SkillReply::Refused { why, full } if !exchange.is_accepted() => {
                    return Err(AttemptError::NotBegun(NotBegun { why, is_full: full }));
                }
                SkillReply::Checking if !exchange.is_accepted() => {}
                SkillReply::Refused { .. } | SkillReply::Checking => {
                    return Err(AttemptError::lost(worker, &BusError::Unexpected));
                }
                SkillReply::Accepted | SkillReply::Started | SkillReply::Running => exchange.accept(),
                SkillReply::Ended { .. } if body.len() > MAX_OUTPUT_BYTES => {
                    return Err(AttemptError::lost(worker, &BusError::Unexpected));
                }
                SkillReply::Ended { exit } => return Ok(SkillExit { output: body.to_vec(), ..exit }),
                SkillReply::Failed { error } => return Err(AttemptError::Final(SkillJobError::Run(error))),
                SkillReply::Stopped { why } => return Err(stopped(why)),
            }
        }
    }
}

fn all_full() -> LocalizedText {
    LocalizedText::new(
        "all workers are full: raise `skills` in `[worker]`, or start another one",
        "所有工作进程都已满：请调大 `[worker]` 的 `skills`，或再启动一个工作进程",
    )
}

/// The worker has killed the script, which may have taken effect before.
fn stopped(why: LocalizedText) -> AttemptError {
    AttemptError::Final(SkillJobError::WorkerLost(why))
}
