//! The writer thread: executes a group of writes in one transaction, then replies to all waiting callers.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};
use toolhub_core::ports::StoreError;

use super::blocks::{self, Sums};
use super::calls::{self, FinishResult};
use super::housekeeping::{self, Housekeeping};
use super::journal::{Batch, MoveStep, PendingEntries, is_new};
use super::{
    SqliteStore, approvals, connect, conversations, offers, set_durability, statistics, store_error,
    tool_lists,
};
use crate::blocks::BlockBuilder;
use crate::error::OpenError;
use crate::options::{Durability, StoreOptions};
use crate::owner::OwnerId;
use crate::queue::{Group, Next, Queue};
use crate::recorder::RecordedCalls;
use crate::rows::from_micros;
use crate::write::Write;

/// Owns the write connection.
pub(super) struct Writer {
    queue: Arc<Queue>,
    owner: OwnerId,
    waiting: Arc<PendingEntries>,
    file: PathBuf,
    options: StoreOptions,
    connection: Option<Connection>,
    /// The current setting of the connection. No caller waits for recorded calls, so that they need no fsync.
    durability: Durability,
    housekeeping: Housekeeping,
}

impl Writer {
    pub(super) fn new(store: &SqliteStore) -> Self {
        Self {
            queue: Arc::clone(&store.queue),
            owner: store.owner,
            waiting: Arc::clone(&store.waiting),
            file: store.file.clone(),
            options: store.options,
            connection: None,
            durability: Durability::Program,
            housekeeping: Housekeeping::new(&store.folder, store.owner, store.options.retention),
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
                Next::Write(group) => {
                    if group.requires_previous_writes() {
                        self.move_all();
                    }
                    self.write(group);
                }
                Next::Wait(until) => self.wait(until.into_iter().chain(journal).min()),
                Next::End => {
                    self.move_all();
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
            Err(_) if batch.len() == 1 => {
                // Rejected permanently. If the call has ended, it is counted and reported as lost.
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
        let (owner, durability) = (self.owner, self.options.durability);
        let transaction = self.transaction(durability)?;
        let mut sums = Sums::default();
        for (start, _) in &batch.begun {
            calls::begin(&transaction, start, owner)?;
        }
        let (new, known): (Vec<_>, Vec<_>) = batch.ended.iter().partition(|(_, held)| is_new(held));
        let mut builder = BlockBuilder::default();
        for (note, _) in new {
            builder.add(&note.start, &note.end);
        }
        if let Some(block) = builder.seal() {
            blocks::store(&transaction, &block, owner, &mut sums)?;
        }
        for (note, _) in known {
            if let Some(stored_bytes) = calls::note(&transaction, note, owner)? {
                sums.counted.count(&note.end.attempts, note.start.at);
                sums.output_bytes += stored_bytes;
            }
        }
        statistics::add(&transaction, &sums.counted)?;
        housekeeping::add_result_bytes(&transaction, sums.output_bytes)?;
        transaction.commit()?;
        self.housekeeping.add_written_bytes(sums.output_bytes + sums.entry_bytes);
        Ok(())
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
        let until = match &mut self.connection {
            Some(connection) if self.housekeeping.next() <= now => {
                self.housekeeping.keep(connection);
                return;
            }
            Some(_) => until.map_or(self.housekeeping.next(), |until| until.min(self.housekeeping.next())),
            None => match until {
                Some(until) => until,
                None => return std::thread::park(),
            },
        };
        std::thread::park_timeout(until.saturating_duration_since(now));
    }

    fn write(&mut self, mut group: Group) {
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
    fn write_singly(&mut self, group: Group, error: &WriteError) {
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
                answers.map_or_else(|error| Err(error.to_store()), |mut all| all.pop().unwrap_or(Ok(true)))
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
            let _ =
                item.reply.send(recorded.as_ref().map(|()| true).map_err(|why| StoreError(why.0.clone())));
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

    /// Writes everything or nothing. The replies are in the order of the writes.
    fn transact(
        &mut self,
        writes: &[&Write],
        recorded: &RecordedCalls,
    ) -> Result<Vec<Result<bool, StoreError>>, WriteError> {
        let requested = if writes.is_empty() { Durability::Program } else { self.options.durability };
        let owner = self.owner;
        let transaction = self.transaction(requested)?;
        let mut sums = Sums::default();
        let mut answers = Vec::with_capacity(writes.len());
        for write in writes {
            answers.push(match write {
                Write::Begin(start) => Ok(calls::begin(&transaction, start, owner)?),
                Write::Finish(end) => match calls::finish(&transaction, end)? {
                    FinishResult::Now { began, stored_bytes } => {
                        sums.counted.count(&end.attempts, from_micros(began));
                        sums.output_bytes += stored_bytes;
                        Ok(true)
                    }
                    FinishResult::Before => Ok(false),
                    FinishResult::NeverBegun => {
                        Err(StoreError(format!("no call `{}` was begun", end.record).into()))
                    }
                },
                Write::AppendTurn(key, turn) => Ok(conversations::append_turn(&transaction, key, turn)?),
                Write::Approve(approval) => Ok(approvals::approve(&transaction, approval)?),
                Write::Revoke(source, tool) => Ok(approvals::revoke(&transaction, source, tool)?),
                Write::SaveList(server, list) => {
                    tool_lists::save(&transaction, server, list)?;
                    Ok(true)
                }
                Write::SaveOffers(server, offers) => {
                    offers::save(&transaction, server, offers)?;
                    Ok(true)
                }
                Write::ForgetList(server, fingerprint) => {
                    Ok(tool_lists::forget(&transaction, server, fingerprint)?)
                }
                Write::Settle | Write::MoveIntents => Ok(true),
            });
        }
        for block in &recorded.blocks {
            blocks::store(&transaction, block, owner, &mut sums)?;
        }
        sums.counted.add(recorded.counted.clone());
        statistics::add(&transaction, &sums.counted)?;
        housekeeping::add_result_bytes(&transaction, sums.output_bytes)?;
        transaction.commit()?;
        self.housekeeping.add_written_bytes(sums.output_bytes + sums.entry_bytes);
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

    fn to_store(&self) -> StoreError {
        match self {
            Self::Sqlite(error) | Self::Open(OpenError::Sqlite(error)) => store_error(error),
            Self::Open(error) => StoreError(error.to_string().into()),
        }
    }
}
