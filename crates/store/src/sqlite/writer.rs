//! The writer thread: executes a group of writes in one transaction, then replies to all waiting callers.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};
use toolhub_audit::{CHECKPOINT_INTERVAL, Checkpoint, PendingRecords};
use toolhub_core::ports::StoreError;

use super::calls::{self, FinishResult};
use super::housekeeping::Housekeeping;
use super::journal::{Batch, MoveStep, PendingEntries, is_new};
use super::sums::Sums;
use super::{
    SqliteStore, approvals, audit, blocks, connect, conversations, offers, responses, set_durability, state,
    store_error, tool_lists,
};
use crate::audit::Auditor;
use crate::audit::rows::push_call;
use crate::blocks::BlockBuilder;
use crate::error::OpenError;
use crate::options::{Durability, StoreOptions};
use crate::owner::CallOrigin;
use crate::queue::{Queue, WriteGroup, WriterAction};
use crate::recorder::RecordedCalls;
use crate::write::{Write, WriteAnswer};

/// Owns the write connection.
pub(super) struct Writer {
    queue: Arc<Queue>,
    origin: CallOrigin,
    waiting: Arc<PendingEntries>,
    file: PathBuf,
    options: StoreOptions,
    connection: Option<Connection>,
    /// The current setting of the connection. No caller waits for recorded calls, so that they need no fsync.
    durability: Durability,
    housekeeping: Housekeeping,
    auditor: Option<Arc<Auditor>>,
    /// When records without a checkpoint are signed.
    checkpoint_at: Instant,
}

impl Writer {
    pub(super) fn new(store: &SqliteStore) -> Self {
        Self {
            queue: Arc::clone(&store.queue),
            origin: store.origin(),
            waiting: Arc::clone(&store.waiting),
            file: store.file.clone(),
            options: store.options,
            connection: None,
            durability: Durability::Program,
            housekeeping: Housekeeping::new(store),
            auditor: store.auditor.clone(),
            checkpoint_at: Instant::now() + CHECKPOINT_INTERVAL,
        }
    }

    /// Writes until the store is closed and everything is written.
    pub(super) fn run(mut self) {
        loop {
            let now = Instant::now();
            let journal = match self.waiting.next(now) {
                MoveStep::Wait(until) => until,
                MoveStep::Move(batch) => {
                    self.move_in(batch);
                    Some(now)
                }
            };
            match self.queue.next(now) {
                WriterAction::Write(group) => {
                    if group.requires_previous_writes() {
                        self.move_all();
                    }
                    self.write(group);
                }
                WriterAction::Wait(until) => self.wait(until.into_iter().chain(journal).min()),
                WriterAction::End => {
                    self.move_all();
                    self.sign_checkpoint();
                    return self.waiting.keep_for_replay();
                }
            }
        }
    }

    /// Moves all journal entries that the database lacks; those that fail stay in the journal.
    fn move_all(&mut self) {
        loop {
            let batch = self.waiting.all();
            if batch.is_empty() || !self.move_in(batch) {
                return;
            }
        }
    }

    /// Moves a batch of journal entries into the database; returns whether that succeeded.
    fn move_in(&mut self, batch: Batch) -> bool {
        match self.move_whole(&batch) {
            Ok(()) => {
                self.waiting.moved();
                true
            }
            Err(error) if !error.is_data_error() => {
                self.waiting.put_back(batch, error.to_store().0);
                false
            }
            Err(error) if batch.len() == 1 => {
                // Rejected permanently. If the call has ended, it is counted and reported as lost.
                let mut records = PendingRecords::default();
                for (note, _) in batch.ended.iter().filter(|_| self.origin.audit) {
                    push_call(&mut records, &note.start, &note.end);
                }
                if let Err(error) = self.audit_rejected(&records, &error) {
                    self.waiting.put_back(batch, error.to_store().0);
                    return false;
                }
                for (note, _) in &batch.ended {
                    self.queue.count_lost(&note.start, &note.end);
                }
                self.waiting.moved();
                true
            }
            Err(_) => {
                batch.into_single_entries().map(|item| self.move_in(item)).filter(|moved| !moved).count() == 0
            }
        }
    }

    fn move_whole(&mut self, batch: &Batch) -> Result<(), WriteError> {
        let (origin, durability, auditor) = (self.origin, self.options.durability, self.auditor.clone());
        let transaction = self.transaction(durability)?;
        let mut sums = Sums::default();
        for (start, _) in &batch.begun {
            calls::begin(&transaction, start, origin)?;
        }
        let (new, earlier): (Vec<_>, Vec<_>) = batch.ended.iter().partition(|(_, held)| is_new(held));
        let mut builder = BlockBuilder::new(origin.audit);
        for (note, _) in new {
            builder.add(&note.start, &note.end);
        }
        if let Some(block) = builder.seal() {
            blocks::store(&transaction, &block, origin.owner, &mut sums)?;
        }
        for (note, _) in earlier {
            calls::note(&transaction, note, origin, &mut sums)?;
        }
        let checkpoint = sums.store(&transaction, auditor.as_deref())?;
        transaction.commit()?;
        self.note_checkpoint(checkpoint.as_ref());
        self.housekeeping.add_written_bytes(sums.output_bytes + sums.entry_bytes);
        Ok(())
    }

    /// Appends calls to the audit log that the database rejects for their content, so that the log is complete.
    fn audit_rejected(&mut self, records: &PendingRecords, why: &WriteError) -> Result<(), WriteError> {
        // What violates a constraint is already in the database, and therefore in the log.
        if records.is_empty() || why.is_duplicate() {
            return Ok(());
        }
        let auditor = self.auditor.clone();
        let transaction = self.transaction(Durability::Program)?;
        let checkpoint = audit::append(&transaction, records, auditor.as_deref())?;
        transaction.commit()?;
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
    fn sign_checkpoint(&mut self) {
        self.checkpoint_at = Instant::now() + CHECKPOINT_INTERVAL;
        let Some(auditor) = self.auditor.clone() else { return };
        let signed = self.transaction(Durability::Program).and_then(|transaction| {
            let checkpoint = audit::sign(&transaction, &auditor)?;
            transaction.commit()?;
            Ok(checkpoint)
        });
        self.note_checkpoint(signed.ok().flatten().as_ref());
    }

    /// Begins a transaction with the given durability.
    fn transaction(&mut self, requested: Durability) -> Result<Transaction<'_>, WriteError> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => none.insert(connect(&self.file).map_err(WriteError::Open)?),
        };
        if requested != self.durability {
            set_durability(connection, requested)?;
            self.durability = requested;
        }
        // `IMMEDIATE`: a transaction that starts with a read may fail to upgrade to a write (SQLITE_BUSY).
        Ok(connection.transaction_with_behavior(TransactionBehavior::Immediate)?)
    }

    fn wait(&mut self, until: Option<Instant>) {
        let now = Instant::now();
        if self.auditor.is_some() && self.checkpoint_at <= now {
            return self.sign_checkpoint();
        }
        let until = match &mut self.connection {
            Some(connection) if self.housekeeping.next() <= now => {
                self.housekeeping.keep(connection);
                return;
            }
            Some(_) => {
                let checkpoint = self.auditor.as_ref().map(|_| self.checkpoint_at);
                let next = self.housekeeping.next();
                until.into_iter().chain(checkpoint).fold(next, Instant::min)
            }
            None => match until {
                Some(until) => until,
                None => return std::thread::park(),
            },
        };
        std::thread::park_timeout(until.saturating_duration_since(now));
    }

    fn write(&mut self, mut group: WriteGroup) {
        group.drop_abandoned();
        let writes: Vec<&Write> = group.pending.iter().map(|item| &item.write).collect();
        let long = writes.iter().any(|write| matches!(write, Write::SaveList(..) | Write::SaveOffers(..)));
        let done = self.transact(&writes, &group.recorded);
        if let (true, Some(connection)) = (long, &self.connection) {
            // The pages of a tool list are not needed again soon, and would occupy most of the page cache.
            let _ = connection.execute_batch("PRAGMA shrink_memory");
        }
        match done {
            Ok(answers) => {
                self.queue.written(&group.recorded);
                for (item, answer) in group.pending.into_iter().zip(answers) {
                    let _ = item.reply.send(answer);
                }
            }
            Err(error) => self.write_singly(group, &error),
        }
    }

    /// Retries a failed group one by one, so that one bad write does not affect the others.
    fn write_singly(&mut self, group: WriteGroup, error: &WriteError) {
        let has_calls = !group.recorded.is_empty();
        let alone = error.concerns_all() || (group.pending.len() == 1 && !has_calls);
        let (settles, others): (Vec<_>, Vec<_>) =
            group.pending.into_iter().partition(|item| matches!(item.write, Write::Settle));
        let only = others.is_empty() && settles.is_empty();
        for item in others {
            let answer = if alone {
                Err(error.to_store())
            } else {
                let answers = self.transact(&[&item.write], &RecordedCalls::default());
                answers.map_or_else(|error| Err(error.to_store()), |mut all| all.pop().unwrap_or(Ok(1)))
            };
            let _ = item.reply.send(answer);
        }
        let recorded = match has_calls {
            false => Ok(()),
            true if only || error.concerns_all() => self.record_failed(group.recorded, error),
            true => match self.transact(&[], &group.recorded) {
                Ok(_) => {
                    self.queue.written(&group.recorded);
                    Ok(())
                }
                Err(error) => self.record_failed(group.recorded, &error),
            },
        };
        for item in settles {
            let _ = item.reply.send(recorded.as_ref().map(|()| 1).map_err(|why| StoreError(why.0.clone())));
        }
    }

    /// Handles recorded calls that the database rejected: retries each block alone to find one that is rejected
    /// permanently.
    fn record_failed(&mut self, recorded: RecordedCalls, error: &WriteError) -> Result<(), StoreError> {
        let why = error.to_store();
        if !error.is_data_error() {
            self.queue.put_back(recorded);
            return Err(why);
        }
        if recorded.blocks.len() <= 1 {
            let mut records = PendingRecords::default();
            recorded
                .blocks
                .iter()
                .filter_map(|block| block.records.as_ref())
                .for_each(|more| records.append(more));
            if self.audit_rejected(&records, error).is_err() {
                self.queue.put_back(recorded);
                return Err(why);
            }
            self.queue.drop_details(recorded);
            return Err(why);
        }
        let counted = RecordedCalls { blocks: Vec::new(), counted: recorded.counted };
        let each = recorded
            .blocks
            .into_iter()
            .map(|block| RecordedCalls { blocks: vec![block], ..RecordedCalls::default() });
        let mut failed = Ok(());
        for item in each.chain([counted]) {
            match self.transact(&[], &item) {
                Ok(_) => self.queue.written(&item),
                Err(error) => failed = self.record_failed(item, &error),
            }
        }
        failed
    }

    /// Replays the journals of dead stores.
    fn replay(&mut self) -> Result<(), WriteError> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => none.insert(connect(&self.file).map_err(WriteError::Open)?),
        };
        Ok(self.housekeeping.replay(connection)?)
    }

    /// Writes everything or nothing. The replies are in the order of the writes.
    fn transact(
        &mut self,
        writes: &[&Write],
        recorded: &RecordedCalls,
    ) -> Result<Vec<WriteAnswer>, WriteError> {
        let requested = if writes.is_empty() { Durability::Program } else { self.options.durability };
        let (origin, auditor) = (self.origin, self.auditor.clone());
        if writes.iter().any(|write| matches!(write, Write::AdoptOrphans(_))) {
            self.replay()?;
        }
        let transaction = self.transaction(requested)?;
        let mut sums = Sums::default();
        let mut answers = Vec::with_capacity(writes.len());
        for write in writes {
            answers.push(match write {
                Write::Begin(start) => Ok(calls::begin(&transaction, start, origin)?.into()),
                Write::Finish(end) => match calls::finish(&transaction, end, &mut sums)? {
                    FinishResult::Now => Ok(1),
                    FinishResult::Before => Ok(0),
                    FinishResult::NeverBegun => {
                        Err(StoreError(format!("no call `{}` was begun", end.record).into()))
                    }
                },
                Write::AppendTurn(key, turn) => {
                    Ok(conversations::append_turn(&transaction, key, turn)?.into())
                }
                Write::Approve(approval) => Ok(approvals::approve(&transaction, approval)?.into()),
                Write::Revoke(source, tool) => Ok(approvals::revoke(&transaction, source, tool)?.into()),
                Write::SaveList(server, list) => {
                    tool_lists::save(&transaction, server, list)?;
                    Ok(1)
                }
                Write::SaveOffers(server, offers) => {
                    offers::save(&transaction, server, offers)?;
                    Ok(1)
                }
                Write::ForgetList(server, fingerprint) => {
                    Ok(tool_lists::forget(&transaction, server, fingerprint)?.into())
                }
                Write::Responses(write) => responses::apply(&transaction, write, origin.owner)?,
                Write::State(write) => Ok(state::apply(&transaction, write)?),
                Write::Audit(_, event) => {
                    sums.audit.push_event(event);
                    Ok(1)
                }
                Write::AdoptOrphans(dead) => {
                    audit::adopt_orphans(&transaction, dead, &mut sums.audit)?;
                    Ok(1)
                }
                Write::Settle | Write::MoveIntents | Write::Checkpoint => Ok(1),
            });
        }
        for part in writes.iter().filter_map(|write| write.part()) {
            state::note_change(&transaction, part)?;
        }
        for block in &recorded.blocks {
            blocks::store(&transaction, block, origin.owner, &mut sums)?;
        }
        sums.counted.add(recorded.counted.clone());
        let checkpoint = sums.store(&transaction, auditor.as_deref())?;
        transaction.commit()?;
        self.note_checkpoint(checkpoint.as_ref());
        self.housekeeping.add_written_bytes(sums.output_bytes + sums.entry_bytes);
        if writes.iter().any(|write| matches!(write, Write::Checkpoint)) {
            self.sign_checkpoint();
        }
        Ok(answers)
    }
}

/// The reason why a group could not be written.
#[derive(Debug)]
enum WriteError {
    Sqlite(rusqlite::Error),
    Open(OpenError),
}

impl From<rusqlite::Error> for WriteError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl WriteError {
    /// Whether every other write would fail too, after the same busy timeout.
    fn concerns_all(&self) -> bool {
        let Self::Sqlite(error) = self else { return matches!(self, Self::Open(_)) };
        matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
    }

    /// Whether the error is caused by the data: it is permanent, and other data can still be written.
    fn is_data_error(&self) -> bool {
        let Self::Sqlite(error) = self else { return false };
        matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch | ErrorCode::TooBig)
        )
    }

    /// Whether the data is already in the database.
    fn is_duplicate(&self) -> bool {
        let Self::Sqlite(error) = self else { return false };
        error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation)
    }

    fn to_store(&self) -> StoreError {
        match self {
            Self::Sqlite(error) | Self::Open(OpenError::Sqlite(error)) => store_error(error),
            Self::Open(error) => StoreError(error.to_string().into()),
        }
    }
}
