//! The write connection: executes a group of writes in one transaction, then replies to all waiting callers. While
//! the server is unreachable, writes wait for it, up to a timeout.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::time::{sleep, timeout};
use toolhub_audit::{CHECKPOINT_INTERVAL, Checkpoint, PendingRecords};
use toolhub_core::ports::StoreError;

use super::audit;
use super::blocks;
use super::housekeeping::{self, Progress};
use super::liveness::Connection;
use super::replay::{self, Journals};
use super::session::{Address, Session, error_text, is_read_only_server, is_transient};
use super::transact::{WriteSession, in_transaction, transact};
use crate::audit::Auditor;
use crate::options::Retention;
use crate::owner::{CallOrigin, OwnerId};
use crate::queue::{PendingWrite, Queue, WriteGroup, WriterAction, WriterWaker};
use crate::recorder::RecordedCalls;
use crate::retention::STEP_INTERVAL;
use crate::write::{Write, WriteAnswer};

/// Maximum time until a write is answered.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time that a closing store waits for an unreachable server.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);
/// Timeout of one transaction.
const TRANSACTION_TIMEOUT: Duration = Duration::from_secs(8);
/// Initial and maximum pause between connection attempts.
const RECONNECT_PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// Maximum number of call ends kept for a server that is unreachable for longer.
const MAX_LATE_WRITES: usize = 1_024;
/// Interval of the liveness check of an idle connection, so that a lost one is replaced and the advisory lock held
/// again.
const LIVENESS_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Owns the write connection.
pub(super) struct Writer {
    queue: Arc<Queue>,
    owner: OwnerId,
    journals: Journals,
    address: Address,
    retention: Retention,
    session: Option<WriteSession>,
    holds_liveness_lock: bool,
    /// Whether it ever held the lock.
    has_held_lock: bool,
    /// How often it lost the lock and took it again.
    interruptions: Arc<AtomicU64>,
    /// Ends of calls whose callers got a timeout; they are still written when the server is reachable.
    late: Vec<Write>,
    clean_up_at: Instant,
    pause: Duration,
    auditor: Option<Arc<Auditor>>,
    /// When records without a checkpoint are signed.
    checkpoint_at: Instant,
}

/// Counts that the lock was taken again: until then, others may have treated this process as ended.
fn count_interruption(is_held: bool, has_held: &mut bool, interruptions: &AtomicU64) {
    if is_held && std::mem::replace(has_held, true) {
        interruptions.fetch_add(1, Ordering::AcqRel);
    }
}

/// What a writer is made of.
pub(super) struct WriterParts {
    pub(super) queue: Arc<Queue>,
    pub(super) journals: Journals,
    pub(super) address: Address,
    pub(super) retention: Retention,
    pub(super) auditor: Option<Arc<Auditor>>,
    pub(super) interruptions: Arc<AtomicU64>,
}

impl Writer {
    pub(super) fn new(parts: WriterParts) -> Self {
        let WriterParts { queue, journals, address, retention, auditor, interruptions } = parts;
        Self {
            queue,
            owner: journals.owner,
            journals,
            address,
            retention,
            session: None,
            holds_liveness_lock: false,
            has_held_lock: false,
            interruptions,
            late: Vec::new(),
            clean_up_at: Instant::now(),
            pause: RECONNECT_PAUSES.0,
            auditor,
            checkpoint_at: Instant::now() + CHECKPOINT_INTERVAL,
        }
    }

    /// Writes until the store is closed and everything is written.
    pub(super) async fn run(mut self, session: Session) {
        let _ = self.adopt(session, Connection::First).await;
        self.replay().await;
        loop {
            match self.queue.next(Instant::now()) {
                WriterAction::Write(group) => self.write(group).await,
                WriterAction::Wait(until) => self.wait(until).await,
                WriterAction::End => {
                    self.sign_checkpoint().await;
                    return self.note_close().await;
                }
            }
        }
    }

    async fn wait(&mut self, until: Option<Instant>) {
        let now = Instant::now();
        if self.ready().await.is_ok() && self.clean_up_at <= now {
            return self.clean_up().await;
        }
        if self.auditor.is_some() && self.checkpoint_at <= now {
            return self.sign_checkpoint().await;
        }
        let until = until.unwrap_or(now + LIVENESS_CHECK_INTERVAL).min(now + LIVENESS_CHECK_INTERVAL);
        if let WriterWaker::Task(waker) = &self.queue.waker {
            tokio::select! {
                () = waker.notified() => {}
                // The lock is gone with the connection: it is taken again at once.
                () = closed(self.session.as_ref()) => {}
                () = sleep(until.saturating_duration_since(now)) => {}
            }
        }
    }

    /// Notes for other stores that this one is closed, so that they need not wait for its return.
    async fn note_close(&self) {
        let Some(session) = &self.session else { return };
        // If this fails, the absence of the lock shows it, later.
        let _ = timeout(CLOSE_TIMEOUT, session.session().note_close(self.owner)).await;
    }

    /// A working connection; reconnects once if necessary.
    async fn ready(&mut self) -> Result<&WriteSession, String> {
        if self.session.as_ref().is_none_or(|session| session.client().is_closed()) {
            self.session = None;
            let session = self.address.connect().await?;
            self.adopt(session, Connection::Again).await?;
        }
        match &self.session {
            Some(session) => {
                if !self.holds_liveness_lock {
                    let lock = session.session().acquire_liveness_lock(self.owner).await;
                    self.holds_liveness_lock = lock.map_err(|error| error_text(&error))?;
                    count_interruption(
                        self.holds_liveness_lock,
                        &mut self.has_held_lock,
                        &self.interruptions,
                    );
                }
                Ok(session)
            }
            None => Err("the connection broke".to_owned()),
        }
    }

    async fn adopt(&mut self, session: Session, connection: Connection) -> Result<(), String> {
        let acquiring = async {
            session.note_connection(connection).await?;
            session.acquire_liveness_lock(self.owner).await
        };
        self.holds_liveness_lock = acquiring.await.map_err(|error| error_text(&error))?;
        count_interruption(self.holds_liveness_lock, &mut self.has_held_lock, &self.interruptions);
        let session = WriteSession::prepare(session, self.auditor.clone()).await;
        self.session = Some(session.map_err(|error| error_text(&error))?);
        Ok(())
    }

    async fn write(&mut self, mut group: WriteGroup) {
        let started = Instant::now();
        if group.pending.iter().any(|item| matches!(item.write, Write::AdoptOrphans(_))) {
            self.replay().await;
        }
        loop {
            group.drop_abandoned();
            let failure = match self.try_write(&group).await {
                Ok(answers) => return self.answer_group(group, answers),
                Err(GroupFailure::Transient(why)) => why,
                Err(GroupFailure::Permanent(why)) => return self.write_singly(group, &why).await,
            };
            self.expire(&mut group, &failure);
            if self.queue.is_closed() && started.elapsed() > CLOSE_TIMEOUT {
                return self.queue.put_back(group.recorded);
            }
            if group.pending.is_empty() {
                // Other writes must not wait behind recorded calls.
                return self.queue.put_back(group.recorded);
            }
            sleep(self.pause).await;
            self.pause = (self.pause * 2).min(RECONNECT_PAUSES.1);
        }
    }

    fn answer_group(&mut self, group: WriteGroup, answers: Vec<WriteAnswer>) {
        self.pause = RECONNECT_PAUSES.0;
        self.queue.written(&group.recorded);
        for (item, answer) in group.pending.into_iter().zip(answers) {
            let _ = item.reply.send(answer);
        }
    }

    /// Replies with an error to writes that have waited too long; keeps the ends of calls among them for later.
    fn expire(&mut self, group: &mut WriteGroup, why: &str) {
        let expired: Vec<PendingWrite> =
            group.pending.extract_if(.., |item| item.since.elapsed() > WRITE_TIMEOUT).collect();
        for item in expired {
            let _ = item.reply.send(Err(StoreError(format!("PostgreSQL cannot be reached: {why}").into())));
            if matches!(item.write, Write::Finish(_)) && self.late.len() < MAX_LATE_WRITES {
                self.late.push(item.write);
            }
        }
    }

    async fn try_write(&mut self, group: &WriteGroup) -> Result<Vec<WriteAnswer>, GroupFailure> {
        let late = std::mem::take(&mut self.late);
        let writes: Vec<&Write> = late.iter().chain(group.pending.iter().map(|item| &item.write)).collect();
        let done = self.transact(&writes, &group.recorded).await;
        if done.is_err() {
            self.late = late;
        }
        done.map(|mut answers| answers.split_off(answers.len() - group.pending.len()))
    }

    /// Retries a failed group one by one, so that one bad write does not affect the others.
    async fn write_singly(&mut self, group: WriteGroup, why: &str) {
        // Late writes are already answered; they must not block others.
        let late = std::mem::take(&mut self.late);
        let has_calls = !group.recorded.is_empty();
        let alone = group.pending.len() == 1 && !has_calls && late.is_empty();
        for write in &late {
            let _ = self.transact(&[write], &RecordedCalls::default()).await;
        }
        let (settles, others): (Vec<_>, Vec<_>) =
            group.pending.into_iter().partition(|item| matches!(item.write, Write::Settle));
        for item in others {
            let answer = if alone {
                Err(StoreError(why.to_owned().into()))
            } else {
                match self.transact(&[&item.write], &RecordedCalls::default()).await {
                    Ok(mut answers) => answers.pop().unwrap_or(Ok(1)),
                    Err(GroupFailure::Transient(why) | GroupFailure::Permanent(why)) => {
                        Err(StoreError(why.into()))
                    }
                }
            };
            let _ = item.reply.send(answer);
        }
        let recorded = self.record_singly(group.recorded).await;
        for item in settles {
            let _ =
                item.reply.send(recorded.as_ref().map(|()| 1).map_err(|why| StoreError(why.clone().into())));
        }
    }

    /// Writes recorded calls block by block, so that one that is rejected permanently does not affect the others.
    async fn record_singly(&mut self, recorded: RecordedCalls) -> Result<(), String> {
        let counted = RecordedCalls { blocks: Vec::new(), counted: recorded.counted };
        let each = recorded
            .blocks
            .into_iter()
            .map(|block| RecordedCalls { blocks: vec![block], ..RecordedCalls::default() });
        let mut failed = Ok(());
        for item in each.chain([counted]).filter(|item| !item.is_empty()).collect::<Vec<_>>() {
            match self.transact(&[], &item).await {
                Ok(_) => self.queue.written(&item),
                Err(GroupFailure::Transient(why)) => {
                    self.queue.put_back(item);
                    failed = Err(why);
                }
                Err(GroupFailure::Permanent(why)) => {
                    match self.audit_rejected(&item).await {
                        Ok(()) => self.queue.drop_details(item),
                        Err(_) => self.queue.put_back(item),
                    }
                    failed = Err(why);
                }
            }
        }
        failed
    }

    /// Executes one transaction. After a timeout the connection is dropped, because its state is unknown.
    async fn transact(
        &mut self,
        writes: &[&Write],
        recorded: &RecordedCalls,
    ) -> Result<Vec<WriteAnswer>, GroupFailure> {
        let origin = CallOrigin { owner: self.owner, audit: self.auditor.is_some() };
        let session = self.ready().await.map_err(GroupFailure::Transient)?;
        match timeout(TRANSACTION_TIMEOUT, transact(session, origin, writes, recorded)).await {
            Ok(Ok(committed)) => {
                self.note_checkpoint(committed.checkpoint.as_ref());
                if writes.iter().any(|write| matches!(write, Write::Checkpoint)) {
                    self.sign_checkpoint().await;
                }
                Ok(committed.answers)
            }
            // Records follow the end that the log states. What was to be appended must not be dropped.
            Ok(Err(error)) if is_inconsistent_log(&error) => {
                let why = "the audit log was changed: records follow the end that it states; verify it";
                Err(GroupFailure::Transient(why.to_owned()))
            }
            Ok(Err(error)) if is_transient(&error) => {
                if is_read_only_server(&error) {
                    self.session = None;
                }
                Err(GroupFailure::Transient(error_text(&error)))
            }
            Ok(Err(error)) => Err(GroupFailure::Permanent(error_text(&error))),
            Err(_) => {
                self.session = None;
                Err(GroupFailure::Transient(format!("no answer within {} s", TRANSACTION_TIMEOUT.as_secs())))
            }
        }
    }

    /// Appends calls to the audit log that the database rejects for their content, so that the log is complete.
    async fn audit_rejected(&mut self, recorded: &RecordedCalls) -> Result<(), String> {
        let mut records = PendingRecords::default();
        recorded
            .blocks
            .iter()
            .filter_map(|block| block.records.as_ref())
            .for_each(|more| records.append(more));
        if records.is_empty() {
            return Ok(());
        }
        let session = self.ready().await?;
        let log = session.audit();
        let appended = in_transaction(session, audit::append(&log, &records));
        let checkpoint = match timeout(TRANSACTION_TIMEOUT, appended).await {
            Ok(appended) => appended.map_err(|error| error_text(&error))?,
            Err(_) => {
                self.session = None;
                return Err(format!("no answer within {} s", TRANSACTION_TIMEOUT.as_secs()));
            }
        };
        self.note_checkpoint(checkpoint.as_ref());
        Ok(())
    }

    /// Makes a committed checkpoint the head.
    fn note_checkpoint(&mut self, checkpoint: Option<&Checkpoint>) {
        if let (Some(auditor), Some(checkpoint)) = (&self.auditor, checkpoint) {
            auditor.store_head(checkpoint);
            self.checkpoint_at = Instant::now() + CHECKPOINT_INTERVAL;
        }
    }

    /// Signs a checkpoint if there are records without one. If that fails, it is tried again later.
    async fn sign_checkpoint(&mut self) {
        self.checkpoint_at = Instant::now() + CHECKPOINT_INTERVAL;
        let (true, Some(session)) = (self.auditor.is_some(), &self.session) else { return };
        match timeout(CLOSE_TIMEOUT, in_transaction(session, audit::sign(&session.audit()))).await {
            Ok(signed) => self.note_checkpoint(signed.ok().flatten().as_ref()),
            Err(_) => self.session = None,
        }
    }

    /// Moves the journals of dead stores into the database. Entries that fail stay in the journal.
    async fn replay(&mut self) {
        for file in self.journals.journals_of_dead_stores() {
            let Ok(bytes) = std::fs::read(&file.path) else { continue };
            let Some(session) = &self.session else { return };
            let reading = timeout(
                TRANSACTION_TIMEOUT,
                blocks::stored_ranges(session.session(), file.owner, file.number),
            );
            let Ok(Ok(stored)) = reading.await else { return };
            for recorded in replay::missing(&bytes, &stored, &self.retention) {
                if self.transact(&[], &recorded).await.is_err() {
                    return;
                }
            }
            let _ = std::fs::remove_file(&file.path);
        }
        self.journals.sweep();
    }

    async fn clean_up(&mut self) {
        self.replay().await;
        let Some(session) = &self.session else { return };
        let progress =
            timeout(TRANSACTION_TIMEOUT, housekeeping::keep(session, self.owner, &self.retention)).await;
        let wait = match progress {
            Ok(Ok(Progress::More)) => STEP_INTERVAL,
            Ok(Ok(Progress::Done) | Err(_)) => self.retention.every,
            Err(_) => {
                self.session = None;
                self.retention.every
            }
        };
        self.clean_up_at = Instant::now() + wait;
    }
}

/// Completes when a connection has ended.
async fn closed(session: Option<&WriteSession>) {
    match session.filter(|session| !session.client().is_closed()) {
        Some(session) => session.session().closed().await,
        None => std::future::pending().await,
    }
}

/// Whether records follow the end that the audit log states.
fn is_inconsistent_log(error: &tokio_postgres::Error) -> bool {
    error.as_db_error().and_then(|error| error.table()) == Some(audit::BATCHES_TABLE)
}

/// The reason why a group was not written.
enum GroupFailure {
    /// Transient: may succeed later.
    Transient(String),
    /// Permanent: would fail again.
    Permanent(String),
}
