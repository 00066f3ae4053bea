//! Writes calls: started, finished, or complete ones.

use std::time::SystemTime;

use rusqlite::{Connection, OptionalExtension as _, ToSql, params};
use toolhub_core::call_log::{CallEnd, CallLog, CallStart};
use toolhub_core::outcome::AttemptRecord;
use toolhub_core::ports::StoreError;
use toolhub_core::{BoxFuture, CallId};

use super::SqliteStore;
use super::audit;
use super::sums::Sums;
use crate::audit::rows::push_call;
use crate::owner::CallOrigin;
use crate::rows::{
    EndColumns, arguments_hash, from_micros, source_list, unix_micros, without_unicode_escapes,
};
use crate::write::{FinishedCall, Write};

/// Longer results are not journaled but written directly into the database.
const MAX_JOURNALED_OUTPUT_BYTES: usize = 256 << 10;

impl CallLog for SqliteStore {
    fn begin(&self, start: CallStart) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async {
            let journal = self.journal()?;
            // If the database rejects the pending entries, new calls might never reach it: nothing is started until
            // it accepts them.
            if self.waiting.move_error().is_some() {
                self.write(Write::MoveIntents).await?;
                self.waiting.move_error().map_or(Ok(()), Err)?;
            }
            journal.begin(start).await
        })
    }

    fn finish(&self, end: CallEnd) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async {
            let short =
                end.output.as_ref().is_none_or(|output| output.get().len() <= MAX_JOURNALED_OUTPUT_BYTES);
            let end = match self.journal.get().filter(|_| short) {
                None => end,
                Some(journal) => match journal.finish(end).await {
                    Ok(done) => return done,
                    Err(end) => *end,
                },
            };
            let record = end.record.clone();
            let done = self.write(Write::Finish(end)).await.map(drop);
            if let (Ok(()), Some(journal)) = (&done, self.journal.get()) {
                journal.forget(&record);
            }
            done
        })
    }

    fn record_finished(&self, start: CallStart, end: CallEnd) {
        let end = match self.journal.get().filter(|_| start.may_change) {
            None => end,
            Some(journal) => match journal.append_end(end) {
                Ok(()) => return,
                Err(end) => *end,
            },
        };
        self.record(&start, &end);
    }

    fn should_store_details(&self) -> bool {
        self.queue.should_store_details()
    }

    fn wait_for_capacity(&self) -> Option<BoxFuture<'_, ()>> {
        self.queue.wait_for_capacity()
    }

    fn count(&self, attempts: &[AttemptRecord], at: SystemTime) {
        self.count_later(attempts, at);
    }
}

const INSERT: &str = "INSERT INTO calls (record, call, tool, arguments, arguments_hash, unescaped, conversation, request,
        strategy, candidates, may_change, began, owner, status, took, error_kind, error, sources, attempts, places,
        principal, rule, approver, audit, parent)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24,
        ?25)
    ON CONFLICT (record) DO UPDATE SET status = excluded.status, took = excluded.took,
        error_kind = excluded.error_kind, error = excluded.error, sources = excluded.sources,
        attempts = excluded.attempts, places = excluded.places
    WHERE calls.took IS NULL AND excluded.took IS NOT NULL RETURNING id";

/// The result of finishing a call.
pub(super) enum FinishResult {
    /// The end was written.
    Now,
    /// The call was already finished.
    Before,
    /// The call is unknown.
    NeverBegun,
}

/// Writes the start of a call; returns whether it was new.
pub(super) fn begin(
    connection: &Connection,
    start: &CallStart,
    origin: CallOrigin,
) -> rusqlite::Result<bool> {
    let end = EndColumns::running(start);
    Ok(insert(connection, start, &end, origin)?.is_some())
}

/// Writes the end of a call; adds it to the totals if it had none.
pub(super) fn finish(
    connection: &Connection,
    end: &CallEnd,
    sums: &mut Sums,
) -> rusqlite::Result<FinishResult> {
    let columns = EndColumns::of(end);
    let begun_row = connection
        .prepare_cached(
            "UPDATE calls SET status = ?2, took = ?3, error_kind = ?4, error = ?5, sources = ?6, attempts = ?7,
                 places = ?8
             WHERE record = ?1 AND took IS NULL RETURNING id, began, audit",
        )?
        .query_row(
            params![
                end.record.as_str(),
                columns.status,
                columns.took,
                columns.error_kind,
                columns.error,
                columns.sources,
                columns.attempts,
                columns.places,
            ],
            |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, bool>(2)?)),
        )
        .optional()?;
    if let Some((id, began, audit)) = begun_row {
        sums.output_bytes += keep_output(connection, id, began, end)?;
        sums.counted.count(&end.attempts, from_micros(began));
        if audit {
            audit::push_row(connection, &end.record, &mut sums.audit)?;
        }
        return Ok(FinishResult::Now);
    }
    let is_known =
        connection.prepare_cached("SELECT 1 FROM calls WHERE record = ?1")?.exists([end.record.as_str()])?;
    Ok(if is_known { FinishResult::Before } else { FinishResult::NeverBegun })
}

/// Writes a complete call, or the end of a started one; adds it to the totals if it had no end yet.
pub(super) fn note(
    connection: &Connection,
    note: &FinishedCall,
    origin: CallOrigin,
    sums: &mut Sums,
) -> rusqlite::Result<()> {
    let FinishedCall { start, end } = note;
    let Some(id) = insert(connection, start, &EndColumns::of(end), origin)? else { return Ok(()) };
    sums.output_bytes += keep_output(connection, id, unix_micros(start.at), end)?;
    sums.counted.count(&end.attempts, start.at);
    if origin.audit {
        push_call(&mut sums.audit, start, end);
    }
    Ok(())
}

/// Inserts or completes a row. Returns its id, unless the call already had an end.
fn insert(
    connection: &Connection,
    start: &CallStart,
    end: &EndColumns<'_>,
    origin: CallOrigin,
) -> rusqlite::Result<Option<i64>> {
    with_values(start, end, origin, |values| {
        connection.prepare_cached(INSERT)?.query_row(values, |row| row.get(0)).optional()
    })
}

/// Calls `work` with the values of a row.
fn with_values<T>(
    start: &CallStart,
    end: &EndColumns<'_>,
    origin: CallOrigin,
    work: impl FnOnce(&[&dyn ToSql]) -> T,
) -> T {
    let arguments = start.arguments.get();
    let (unescaped, candidates, hash) =
        (without_unicode_escapes(arguments), source_list(&start.candidates), arguments_hash(arguments));
    let values: &[&dyn ToSql] = params![
        start.record.as_str(),
        start.call.as_str(),
        start.tool.as_str(),
        arguments,
        hash,
        unescaped,
        start.conversation,
        start.request,
        start.strategy,
        candidates,
        start.may_change,
        unix_micros(start.at),
        origin.owner.0,
        end.status,
        end.took,
        end.error_kind,
        end.error,
        end.sources,
        end.attempts,
        end.places,
        &*start.authorization.principal,
        start.authorization.rule.as_deref(),
        start.authorization.approver.as_deref(),
        origin.audit,
        start.parent.as_ref().map(CallId::as_str),
    ];
    work(values)
}

fn keep_output(connection: &Connection, id: i64, began: i64, end: &CallEnd) -> rusqlite::Result<i64> {
    let Some(output) = &end.output else { return Ok(0) };
    let bytes = i64::try_from(output.get().len()).unwrap_or(i64::MAX);
    connection
        .prepare_cached("INSERT INTO results VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING")?
        .execute(params![id, began, bytes, output.get()])?;
    Ok(bytes)
}
