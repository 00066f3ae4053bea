//! Executes a group of writes in one transaction: statements are pipelined unless one needs the result of another.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use futures_util::future::{try_join, try_join3, try_join4};
use tokio_postgres::{Client, Error};
use toolhub_audit::{Checkpoint, PendingRecords};
use toolhub_core::call_log::{CallEnd, CallStart};
use toolhub_core::ports::StoreError;
use toolhub_core::shared_state::ChangedPart;

use super::audit::AuditWriter;
use super::calls::{EndedRow, NewCalls, NotedCall};
use super::session::Session;
use super::{
    approvals, audit, blocks, calls, conversations, offers, replace_nul, responses, state, statistics,
    tool_lists,
};
use crate::audit::Auditor;
use crate::audit::rows::push_call;
use crate::blocks::{Block, MIN_BLOCK_CALLS};
use crate::owner::CallOrigin;
use crate::pending_statistics::PendingStatistics;
use crate::recorder::RecordedCalls;
use crate::rows::{from_micros, micros};
use crate::write::{Write, WriteAnswer};

/// A connection with the prepared statements for writes.
pub(super) struct WriteSession {
    session: Session,
    calls: calls::Statements,
    blocks: blocks::Statements,
    statistics: statistics::Statements,
    audit: audit::Statements,
    /// Signs checkpoints, if the calls of this store enter the audit log.
    pub(super) auditor: Option<Arc<Auditor>>,
}

impl WriteSession {
    pub(super) async fn prepare(session: Session, auditor: Option<Arc<Auditor>>) -> Result<Self, Error> {
        let client = &session.client;
        let (calls, blocks, statistics, audit) = try_join4(
            Box::pin(calls::Statements::prepare(client)),
            blocks::Statements::prepare(client),
            statistics::Statements::prepare(client),
            Box::pin(audit::Statements::prepare(client)),
        )
        .await?;
        Ok(Self { session, calls, blocks, statistics, audit, auditor })
    }

    pub(super) fn client(&self) -> &Client {
        &self.session.client
    }

    pub(super) fn audit(&self) -> AuditWriter<'_> {
        AuditWriter { client: self.client(), statements: &self.audit, auditor: self.auditor.as_deref() }
    }

    pub(super) fn session(&self) -> &Session {
        &self.session
    }
}

/// Writes everything or nothing. The replies are in the order of the writes. After an error nothing is stored, unless
/// the connection broke during the commit; every write is therefore idempotent.
pub(super) async fn transact(
    session: &WriteSession,
    origin: CallOrigin,
    writes: &[&Write],
    recorded: &RecordedCalls,
) -> Result<Committed, Error> {
    let done = apply_group(session, origin, writes, recorded).await;
    if done.is_err() {
        roll_back(session).await;
    }
    done
}

async fn roll_back(session: &WriteSession) {
    if !session.client().is_closed() {
        // If this fails too, the connection is dropped, and the server rolls back.
        let _ = session.client().batch_execute("ROLLBACK").await;
    }
}

/// Executes `work` in a transaction of its own.
pub(super) async fn in_transaction<T>(
    session: &WriteSession,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let done = async {
        session.client().batch_execute("BEGIN").await?;
        let done = work.await?;
        session.client().batch_execute("COMMIT").await?;
        Ok(done)
    };
    let done = done.await;
    if done.is_err() {
        roll_back(session).await;
    }
    done
}

/// What a transaction did.
pub(super) struct Committed {
    /// The replies, in the order of the writes.
    pub(super) answers: Vec<WriteAnswer>,
    /// The checkpoint that was signed, which becomes the head.
    pub(super) checkpoint: Option<Checkpoint>,
}

/// Executes the statements of a group, from `BEGIN` to `COMMIT`.
async fn apply_group(
    session: &WriteSession,
    origin: CallOrigin,
    writes: &[&Write],
    recorded: &RecordedCalls,
) -> Result<Committed, Error> {
    let (small, large): (Vec<&Block>, Vec<&Block>) =
        recorded.blocks.iter().partition(|block| block.calls < MIN_BLOCK_CALLS);
    let noted = |block: &Block| {
        let audit = block.records.is_some();
        block.finished_calls().into_iter().map(move |call| NotedCall { call, audit })
    };
    let notes: Vec<NotedCall> = small.into_iter().flat_map(noted).collect();
    let begun: Vec<&CallStart> = writes
        .iter()
        .filter_map(|write| if let Write::Begin(start) = write { Some(start) } else { None })
        .collect();
    let ended: Vec<&CallEnd> = writes
        .iter()
        .filter_map(|write| if let Write::Finish(end) = write { Some(end) } else { None })
        .collect();
    let (_, new, began, stored) = try_join4(
        session.client().batch_execute("BEGIN"),
        calls::insert(session.client(), &session.calls, NewCalls { begun: &begun, notes: &notes, origin }),
        calls::finish(session.client(), &session.calls, &ended),
        blocks::insert(session.client(), &session.blocks, &large, origin.owner),
    )
    .await?;

    let late: Vec<&str> =
        ended.iter().map(|end| end.record.as_str()).filter(|record| !began.contains_key(*record)).collect();
    let known = calls::known(session.client(), &session.calls, &late).await?;
    let mut answers = Vec::with_capacity(writes.len());
    let mut records = PendingRecords::default();
    let mut changed: BTreeSet<ChangedPart> = writes.iter().filter_map(|write| write.part()).collect();
    for write in writes {
        answers.push(match write {
            Write::Begin(start) => Ok(new.contains(start.record.as_str()).into()),
            Write::Finish(end) if began.contains_key(end.record.as_str()) => Ok(1),
            Write::Finish(end) if known.contains(end.record.as_str()) => Ok(0),
            Write::Finish(end) => Err(StoreError(format!("no call `{}` was begun", end.record).into())),
            Write::AppendTurn(key, turn) => {
                Ok(conversations::append_turn(session.client(), key, turn).await?.into())
            }
            Write::Approve(approval) => Ok(approvals::approve(session.client(), approval).await?.into()),
            Write::Revoke(source, tool) => {
                Ok(approvals::revoke(session.client(), source, tool).await?.into())
            }
            Write::SaveList(server, list) => {
                tool_lists::save(session.client(), server, list).await?;
                Ok(1)
            }
            Write::SaveOffers(server, offers) => {
                offers::save(session.client(), server, offers).await?;
                Ok(1)
            }
            Write::ForgetList(server, fingerprint) => {
                Ok(tool_lists::forget(session.client(), server, fingerprint).await?.into())
            }
            Write::Responses(write) => responses::apply(session.client(), write, origin.owner).await?,
            Write::State(write) => {
                let rows = state::apply(session.client(), write).await?;
                changed.extend(write.part(rows));
                Ok(rows)
            }
            Write::Audit(key, event) => {
                let is_new = audit::claim(&session.audit(), key, event).await?;
                if is_new {
                    records.push_event(event);
                }
                Ok(is_new.into())
            }
            Write::AdoptOrphans(dead) => {
                audit::adopt_orphans(&session.audit(), dead, &mut records).await?;
                Ok(1)
            }
            Write::Settle | Write::MoveIntents | Write::Checkpoint => Ok(1),
        });
    }

    // The last rows that all hubs write, in one order.
    state::note_changes(session.client(), &changed).await?;
    if began.values().any(|ended| ended.audit) {
        let finished: Vec<&str> = began.keys().map(String::as_str).collect();
        audit::push_rows(&session.audit(), &finished, &mut records).await?;
    }
    let (ended, mut all) = newly_ended(&ended, &notes, &new, &began);
    for note in
        notes.iter().filter(|note| note.audit && new.contains(&*replace_nul(note.call.start.record.as_str())))
    {
        push_call(&mut records, &note.call.start, &note.call.end);
    }
    all.add(recorded.counted.clone());
    for block in stored {
        all.add(block.counted.clone());
        if let Some(more) = &block.records {
            records.append(more);
        }
    }
    if !records.is_empty() {
        // The log is locked last and for a short time: other hubs wait for it.
        try_join(
            calls::keep_outputs(session.client(), &session.calls, &ended),
            statistics::add(session.client(), &session.statistics, &all),
        )
        .await?;
        let checkpoint = audit::append(&session.audit(), &records).await?;
        session.client().batch_execute("COMMIT").await?;
        return Ok(Committed { answers, checkpoint });
    }
    if all.is_empty() {
        try_join(
            calls::keep_outputs(session.client(), &session.calls, &ended),
            session.client().batch_execute("COMMIT"),
        )
        .await?;
    } else {
        try_join3(
            calls::keep_outputs(session.client(), &session.calls, &ended),
            statistics::add(session.client(), &session.statistics, &all),
            session.client().batch_execute("COMMIT"),
        )
        .await?;
    }
    Ok(Committed { answers, checkpoint: None })
}

/// The calls that ended in this transaction, with their statistics; only they count. If a group is repeated because
/// the result of its commit is unknown, none is counted twice.
fn newly_ended<'a>(
    ended: &[&'a CallEnd],
    notes: &'a [NotedCall],
    new: &HashSet<String>,
    began: &HashMap<String, EndedRow>,
) -> (Vec<(&'a CallEnd, i64)>, PendingStatistics) {
    let finished =
        ended.iter().filter_map(|end| Some((*end, began.get(&*replace_nul(end.record.as_str()))?.began)));
    let noted = notes
        .iter()
        .map(|note| &note.call)
        .filter(|note| new.contains(&*replace_nul(note.start.record.as_str())))
        .map(|note| (&note.end, micros(note.start.at)));
    let mut seen = HashSet::new();
    let all: Vec<_> = finished.chain(noted).filter(|(end, _)| seen.insert(end.record.as_str())).collect();
    let mut sums = PendingStatistics::default();
    for (end, began) in &all {
        sums.count(&end.attempts, from_micros(*began));
    }
    (all, sums)
}
