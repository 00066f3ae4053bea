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
use crate::owner::{CallOrigin, OwnerId};
use crate::pending_statistics::PendingStatistics;
use crate::recorder::RecordedCalls;
use crate::rows::{from_micros, unix_micros};
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
    let client = session.client();
    let group = GroupCalls::of(writes, recorded);
    let new_calls = NewCalls { begun: &group.begun, notes: &group.notes, origin };
    let (_, new, began, stored) = try_join4(
        client.batch_execute("BEGIN"),
        calls::insert(client, &session.calls, new_calls),
        calls::finish(client, &session.calls, &group.ended),
        blocks::insert(client, &session.blocks, &group.large, origin.owner),
    )
    .await?;
    let ends = group.ended.iter().map(|end| end.record.as_str());
    let late: Vec<&str> = ends.filter(|record| !began.contains_key(*record)).collect();
    let known = calls::known(client, &session.calls, &late).await?;
    let rows = CallRows { new, began, known };

    let mut answers = Vec::with_capacity(writes.len());
    let mut effects = Effects {
        records: PendingRecords::default(),
        changed: writes.iter().filter_map(|write| write.part()).collect(),
    };
    for write in writes {
        answers.push(apply_write(session, origin.owner, write, &rows, &mut effects).await?);
    }

    // The last rows that all hubs write, in one order.
    state::note_changes(client, &effects.changed).await?;
    let mut records = effects.records;
    if rows.began.values().any(|ended| ended.audit) {
        let finished: Vec<&str> = rows.began.keys().map(String::as_str).collect();
        audit::push_rows(&session.audit(), &finished, &mut records).await?;
    }
    let (ended, mut counted) = newly_ended(&group.ended, &group.notes, &rows.new, &rows.began);
    let is_new = |note: &&NotedCall| rows.new.contains(&*replace_nul(note.call.start.record.as_str()));
    for note in group.notes.iter().filter(|note| note.audit).filter(is_new) {
        push_call(&mut records, &note.call.start, &note.call.end);
    }
    counted.add(recorded.counted.clone());
    for block in stored {
        counted.add(block.counted.clone());
        if let Some(more) = &block.records {
            records.append(more);
        }
    }
    let checkpoint = commit(session, &ended, &counted, &records).await?;
    Ok(Committed { answers, checkpoint })
}

/// The calls of a group, by the statements that write them.
struct GroupCalls<'a> {
    /// Starts and ends whose callers wait for them.
    begun: Vec<&'a CallStart>,
    ended: Vec<&'a CallEnd>,
    /// The calls of small blocks, which are stored as rows.
    notes: Vec<NotedCall>,
    /// The blocks that are stored as one row each.
    large: Vec<&'a Block>,
}

impl<'a> GroupCalls<'a> {
    fn of(writes: &[&'a Write], recorded: &'a RecordedCalls) -> Self {
        let (small, large): (Vec<&Block>, Vec<&Block>) =
            recorded.blocks.iter().partition(|block| block.calls < MIN_BLOCK_CALLS);
        let noted = |block: &Block| {
            let audit = block.records.is_some();
            block.finished_calls().into_iter().map(move |call| NotedCall { call, audit })
        };
        let (mut begun, mut ended) = (Vec::new(), Vec::new());
        for write in writes.iter().copied() {
            match write {
                Write::Begin(start) => begun.push(start),
                Write::Finish(end) => ended.push(end),
                _ => {}
            }
        }
        Self { begun, ended, notes: small.into_iter().flat_map(noted).collect(), large }
    }
}

/// What the statements for calls changed and found.
struct CallRows {
    /// The records that did not exist or had no end.
    new: HashSet<String>,
    /// The calls that had no end, by record.
    began: HashMap<String, EndedRow>,
    /// The records of other ends that exist.
    known: HashSet<String>,
}

/// What the writes of a group cause beside their own rows.
struct Effects {
    /// Entries of the audit log.
    records: PendingRecords,
    /// The parts of a hub that other replicas must read again.
    changed: BTreeSet<ChangedPart>,
}

/// Executes a write and returns its answer. Calls were written before, by the statements for the whole group.
async fn apply_write(
    session: &WriteSession,
    owner: OwnerId,
    write: &Write,
    rows: &CallRows,
    effects: &mut Effects,
) -> Result<WriteAnswer, Error> {
    let client = session.client();
    Ok(match write {
        Write::Begin(start) => Ok(rows.new.contains(start.record.as_str()).into()),
        Write::Finish(end) if rows.began.contains_key(end.record.as_str()) => Ok(1),
        Write::Finish(end) if rows.known.contains(end.record.as_str()) => Ok(0),
        Write::Finish(end) => Err(StoreError(format!("no call `{}` was begun", end.record).into())),
        Write::AppendTurn(key, turn) => Ok(conversations::append_turn(client, key, turn).await?.into()),
        Write::Approve(approval) => Ok(approvals::approve(client, approval).await?.into()),
        Write::Revoke(source, tool) => Ok(approvals::revoke(client, source, tool).await?.into()),
        Write::SaveList(server, list) => {
            tool_lists::save(client, server, list).await?;
            Ok(1)
        }
        Write::SaveOffers(server, offers) => {
            offers::save(client, server, offers).await?;
            Ok(1)
        }
        Write::ForgetList(server, fingerprint) => {
            Ok(tool_lists::forget(client, server, fingerprint).await?.into())
        }
        Write::Responses(write) => responses::apply(client, write, owner).await?,
        Write::State(write) => {
            let changed_rows = state::apply(client, write).await?;
            effects.changed.extend(write.part(changed_rows));
            Ok(changed_rows)
        }
        Write::Audit(key, event) => {
            let is_new = audit::claim(&session.audit(), key, event).await?;
            if is_new {
                effects.records.push_event(event);
            }
            Ok(is_new.into())
        }
        Write::AdoptOrphans(dead) => {
            audit::adopt_orphans(&session.audit(), dead, &mut effects.records).await?;
            Ok(1)
        }
        Write::Settle | Write::MoveIntents | Write::Checkpoint => Ok(1),
    })
}

/// Stores the outputs and the statistics of calls, appends to the audit log, and commits. Returns the checkpoint that was signed.
async fn commit(
    session: &WriteSession,
    ended: &[(&CallEnd, i64)],
    counted: &PendingStatistics,
    records: &PendingRecords,
) -> Result<Option<Checkpoint>, Error> {
    let client = session.client();
    let keep_outputs = || calls::keep_outputs(client, &session.calls, ended);
    let add_statistics = || statistics::add(client, &session.statistics, counted);
    if !records.is_empty() {
        // The log is locked last and for a short time: other hubs wait for it.
        try_join(keep_outputs(), add_statistics()).await?;
        let checkpoint = audit::append(&session.audit(), records).await?;
        client.batch_execute("COMMIT").await?;
        return Ok(checkpoint);
    }
    if counted.is_empty() {
        try_join(keep_outputs(), client.batch_execute("COMMIT")).await?;
    } else {
        try_join3(keep_outputs(), add_statistics(), client.batch_execute("COMMIT")).await?;
    }
    Ok(None)
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
        .map(|note| (&note.end, unix_micros(note.start.at)));
    let mut seen = HashSet::new();
    let all: Vec<_> = finished.chain(noted).filter(|(end, _)| seen.insert(end.record.as_str())).collect();
    let mut sums = PendingStatistics::default();
    for (end, began) in &all {
        sums.count(&end.attempts, from_micros(*began));
    }
    (all, sums)
}
