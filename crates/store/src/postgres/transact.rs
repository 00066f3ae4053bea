//! Executes a group of writes in one transaction: statements are pipelined unless one needs the result of another.

use std::collections::{HashMap, HashSet};

use futures_util::future::{try_join, try_join3, try_join4};
use tokio_postgres::{Client, Error};
use toolhub_core::call_log::{CallEnd, CallStart};
use toolhub_core::ports::StoreError;

use super::session::Session;
use super::{approvals, blocks, calls, conversations, offers, replace_nul, statistics, tool_lists};
use crate::blocks::{Block, MIN_BLOCK_CALLS};
use crate::owner::OwnerId;
use crate::pending_statistics::PendingStatistics;
use crate::recorder::RecordedCalls;
use crate::rows::{from_micros, micros};
use crate::write::{FinishedCall, Write};

/// A connection with the prepared statements for writes.
pub(super) struct WriteSession {
    session: Session,
    pub(super) calls: calls::Statements,
    pub(super) blocks: blocks::Statements,
    pub(super) statistics: statistics::Statements,
}

impl WriteSession {
    pub(super) async fn prepare(session: Session) -> Result<Self, Error> {
        let client = &session.client;
        let (calls, blocks, statistics) = try_join3(
            calls::Statements::prepare(client),
            blocks::Statements::prepare(client),
            statistics::Statements::prepare(client),
        )
        .await?;
        Ok(Self { session, calls, blocks, statistics })
    }

    pub(super) fn client(&self) -> &Client {
        &self.session.client
    }

    pub(super) fn session(&self) -> &Session {
        &self.session
    }
}

/// Writes everything or nothing. The replies are in the order of the writes. After an error nothing is stored, unless
/// the connection broke during the commit; every write is therefore idempotent.
pub(super) async fn transact(
    session: &WriteSession,
    owner: OwnerId,
    writes: &[&Write],
    recorded: &RecordedCalls,
) -> Result<Vec<Result<bool, StoreError>>, Error> {
    let done = inside(session, owner, writes, recorded).await;
    if done.is_err() && !session.client().is_closed() {
        // If this fails too, the connection is dropped, and the server rolls back.
        let _ = session.client().batch_execute("ROLLBACK").await;
    }
    done
}

async fn inside(
    session: &WriteSession,
    owner: OwnerId,
    writes: &[&Write],
    recorded: &RecordedCalls,
) -> Result<Vec<Result<bool, StoreError>>, Error> {
    let (small, large): (Vec<&Block>, Vec<&Block>) =
        recorded.blocks.iter().partition(|block| block.calls < MIN_BLOCK_CALLS);
    let notes: Vec<FinishedCall> = small.into_iter().flat_map(Block::finished_calls).collect();
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
        calls::insert(session, &begun, &notes, owner),
        calls::finish(session, &ended),
        blocks::insert(session, &large, owner),
    )
    .await?;

    let late: Vec<&str> =
        ended.iter().map(|end| end.record.as_str()).filter(|record| !began.contains_key(*record)).collect();
    let known = calls::known(session, &late).await?;
    let mut answers = Vec::with_capacity(writes.len());
    for write in writes {
        answers.push(match write {
            Write::Begin(start) => Ok(new.contains(start.record.as_str())),
            Write::Finish(end) if began.contains_key(end.record.as_str()) => Ok(true),
            Write::Finish(end) if known.contains(end.record.as_str()) => Ok(false),
            Write::Finish(end) => Err(StoreError(format!("no call `{}` was begun", end.record).into())),
            Write::AppendTurn(key, turn) => Ok(conversations::append_turn(session, key, turn).await?),
            Write::Approve(approval) => Ok(approvals::approve(session, approval).await?),
            Write::Revoke(source, tool) => Ok(approvals::revoke(session, source, tool).await?),
            Write::SaveList(server, list) => {
                tool_lists::save(session, server, list).await?;
                Ok(true)
            }
            Write::SaveOffers(server, offers) => {
                offers::save(session, server, offers).await?;
                Ok(true)
            }
            Write::ForgetList(server, fingerprint) => {
                Ok(tool_lists::forget(session, server, fingerprint).await?)
            }
            Write::Settle | Write::MoveIntents => Ok(true),
        });
    }

    let (ended, mut all) = newly_ended(&ended, &notes, (&new, &began));
    all.add(recorded.counted.clone());
    for block in stored {
        all.add(block.counted.clone());
    }
    if all.is_empty() {
        try_join(calls::keep_outputs(session, &ended), session.client().batch_execute("COMMIT")).await?;
    } else {
        try_join3(
            calls::keep_outputs(session, &ended),
            statistics::add(session, &all),
            session.client().batch_execute("COMMIT"),
        )
        .await?;
    }
    Ok(answers)
}

/// The calls that ended in this transaction, with their statistics; only they count. If a group is repeated because
/// the result of its commit is unknown, none is counted twice.
fn newly_ended<'a>(
    ended: &[&'a CallEnd],
    notes: &'a [FinishedCall],
    (new, began): (&HashSet<String>, &HashMap<String, i64>),
) -> (Vec<(&'a CallEnd, i64)>, PendingStatistics) {
    let finished =
        ended.iter().filter_map(|end| Some((*end, *began.get(&*replace_nul(end.record.as_str()))?)));
    let noted = notes
        .iter()
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
