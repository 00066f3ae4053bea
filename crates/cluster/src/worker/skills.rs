//! Scripts of skills of replicas on this worker: it runs its own tool if that is the one the replica has verified.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use toolhub_core::lang::LocalizedText;
use toolhub_core::skill_jobs::{PreparedSkill, SkillJob, SkillRunError, SkillRunner};

use super::WorkerState;
use super::instance::RUNNING_INTERVAL;
use super::refusal;
use super::slots::{RunTerms, Slots, ticks};
use crate::bus::{BusError, IncomingRequest, ReplyWriter, Requests};
use crate::calls::HandledRequest;
use crate::cluster_protocol::{self, PROTOCOL, SkillJobHead, SkillReply};
use crate::exchange::ACCEPT_TIMEOUT;

/// How often the check of a job is reported to its replica.
const CHECKING_INTERVAL: Duration = Duration::from_secs(1);

/// The skills that a worker runs.
#[derive(Clone)]
pub struct SkillOffer {
    /// Checks and runs them.
    pub runner: Arc<dyn SkillRunner>,
    /// Maximum number of scripts at the same time.
    pub slots: usize,
    /// The longest time that a script may take.
    pub max_time: Duration,
}

impl std::fmt::Debug for SkillOffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SkillOffer").field("slots", &self.slots).finish_non_exhaustive()
    }
}

/// The scripts of skills on a worker.
pub(super) struct Skills {
    offer: Option<SkillOffer>,
    pub(super) slots: Slots<()>,
}

impl Skills {
    pub(super) fn new(offer: Option<SkillOffer>) -> Self {
        let capacity = offer.as_ref().map_or(0, |offer| offer.slots);
        Self { offer, slots: Slots::new(capacity) }
    }
}

impl WorkerState {
    /// Receives jobs.
    pub(super) async fn serve_skills(self: &Arc<Self>, mut requests: Requests) {
        while let Some(request) = requests.next().await {
            let shared = Arc::clone(self);
            self.tasks.spawn(async move { shared.run_skill(request).await });
        }
    }

    async fn run_skill(&self, request: IncomingRequest) {
        let IncomingRequest { payload, reply } = request;
        // Without a readable head there is no id to answer: the replica waits in vain, and nothing has run.
        let Some((head, arguments)) = cluster_protocol::read::<SkillJobHead>(&payload) else { return };
        drop(payload);
        // A worker without skills does not subscribe to these requests.
        let Some(offer) = &self.skills.offer else { return };
        // A copy of a request gets no answer: the first one does.
        let Some(running) = self.skills.slots.runs.begin(&head.id) else { return };
        if head.protocol != PROTOCOL {
            return refuse(reply, refusal::other_version()).await;
        }
        if let Some(why) = self.refusal(head.begin_by) {
            return refuse(reply, why).await;
        }
        let Some(_slot) = self.skills.slots.take() else {
            return send_refusal(reply, refusal::full("skills"), true).await;
        };
        let Some(arguments) = cluster_protocol::body_json(&arguments) else {
            return refuse(reply, unreadable_arguments()).await;
        };
        let SkillJobHead { from, skill, tool, identity, .. } = head;
        let job = SkillJob { skill, tool, identity, arguments };
        let terms = RunTerms { from: &from, began: Instant::now(), max_time: offer.max_time };
        let run = SkillRun { shared: self, call: &running.call, terms };
        // Without a connection the replica notices the end by itself.
        let _ = run.run(&*offer.runner, job, reply).await;
    }
}

/// A script that this worker runs for a replica.
struct SkillRun<'a> {
    shared: &'a WorkerState,
    call: &'a HandledRequest<()>,
    terms: RunTerms<'a>,
}

impl SkillRun<'_> {
    /// Runs the script to its end. Dropping the future kills it.
    async fn run(
        self,
        runner: &dyn SkillRunner,
        job: SkillJob,
        mut reply: ReplyWriter,
    ) -> Result<(), BusError> {
        let prepared = match self.prepare(runner, job, &mut reply).await? {
            Prepared::Script(prepared) => prepared,
            Prepared::Refused(why) => return reply.finish(&refused(why, false)).await,
            Prepared::Cancelled => return Ok(()),
        };
        reply.send(&cluster_protocol::write(&SkillReply::Accepted, b"")).await?;
        let mut running = match prepared.start() {
            Ok(running) => running,
            Err(why) => return reply.finish(&failed(SkillRunError::NotStarted(why))).await,
        };
        reply.send(&cluster_protocol::write(&SkillReply::Started, b"")).await?;
        let mut ticks = ticks(RUNNING_INTERVAL);
        loop {
            tokio::select! {
                biased;
                () = self.call.cancelled.cancelled() => return Ok(()),
                result = &mut running => {
                    return match result {
                        Ok(mut exit) => {
                            let output = std::mem::take(&mut exit.output);
                            reply.finish(&cluster_protocol::write(&SkillReply::Ended { exit }, &output)).await
                        }
                        Err(error) => reply.finish(&failed(error)).await,
                    };
                }
                () = self.shared.skills.slots.ended.cancelled() => {
                    return reply.finish(&stopped(refusal::worker_stopped())).await;
                }
                _ = ticks.tick() => {
                    if !self.terms.is_wanted(self.shared, self.call) {
                        return Ok(());
                    }
                    if self.terms.is_over_time() {
                        return reply.finish(&stopped(refusal::over_time("call_cap", "limits"))).await;
                    }
                    reply.send(&cluster_protocol::write(&SkillReply::Running, b"")).await?;
                }
            }
        }
    }

    /// Checks the job and prepares the start. Nothing is started.
    async fn prepare(
        &self,
        runner: &dyn SkillRunner,
        job: SkillJob,
        reply: &mut ReplyWriter,
    ) -> Result<Prepared, BusError> {
        let mut reported = Instant::now();
        let mut ticks = ticks(CHECKING_INTERVAL);
        let preparing = runner.prepare(job);
        tokio::pin!(preparing);
        let prepared = loop {
            tokio::select! {
                biased;
                () = self.call.cancelled.cancelled() => return Ok(Prepared::Cancelled),
                () = self.shared.skills.slots.ended.cancelled() => {
                    return Ok(Prepared::Refused(refusal::ending()));
                }
                prepared = &mut preparing => match prepared {
                    Ok(prepared) => break prepared,
                    Err(why) => return Ok(Prepared::Refused(why)),
                },
                _ = ticks.tick() => {
                    if !self.terms.is_wanted(self.shared, self.call) {
                        return Ok(Prepared::Cancelled);
                    }
                    reply.send(&cluster_protocol::write(&SkillReply::Checking, b"")).await?;
                    reported = Instant::now();
                }
            }
        };
        // After a pause of this process, the replica may have given the job up.
        if reported.elapsed() >= ACCEPT_TIMEOUT || self.call.cancelled.is_cancelled() {
            return Ok(Prepared::Refused(refusal::expired()));
        }
        Ok(Prepared::Script(prepared))
    }
}

/// The outcome of the check of a job.
enum Prepared {
    Script(Box<dyn PreparedSkill>),
    Refused(LocalizedText),
    /// The replica does not wait for an answer.
    Cancelled,
}

fn unreadable_arguments() -> LocalizedText {
    LocalizedText::new("the arguments are not JSON", "参数不是 JSON")
}

fn refused(why: LocalizedText, full: bool) -> Bytes {
    cluster_protocol::write(&SkillReply::Refused { why, full }, b"")
}

fn failed(error: SkillRunError) -> Bytes {
    cluster_protocol::write(&SkillReply::Failed { error }, b"")
}

fn stopped(why: LocalizedText) -> Bytes {
    cluster_protocol::write(&SkillReply::Stopped { why }, b"")
}

async fn refuse(reply: ReplyWriter, why: LocalizedText) {
    send_refusal(reply, why, false).await;
}

async fn send_refusal(reply: ReplyWriter, why: LocalizedText, full: bool) {
    let _ = reply.finish(&refused(why, full)).await;
}
