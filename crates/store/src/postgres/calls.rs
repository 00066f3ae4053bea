//! Writes calls: one statement for all starts of a group, and one for all ends.

use std::collections::{HashMap, HashSet};
use std::time::SystemTime;

use futures_util::future::try_join4;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row, Statement};
use toolhub_core::call_log::{CallEnd, CallLog, CallStart};
use toolhub_core::outcome::AttemptRecord;
use toolhub_core::ports::StoreError;
use toolhub_core::{BoxFuture, CallId};

use super::{PgStore, replace_nul};
use crate::owner::CallOrigin;
use crate::rows::{
    Columns as _, EndColumns, arguments_hash, source_list, unix_micros, without_unicode_escapes,
};
use crate::write::{FinishedCall, Write};

impl CallLog for PgStore {
    fn begin(&self, start: CallStart) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async { self.write(Write::Begin(start)).await.map(drop) })
    }

    fn finish(&self, end: CallEnd) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async { self.write(Write::Finish(end)).await.map(drop) })
    }

    fn record_finished(&self, start: CallStart, end: CallEnd) {
        self.queue.record(&start, &end);
    }

    fn should_store_details(&self) -> bool {
        self.queue.should_store_details()
    }

    fn wait_for_capacity(&self) -> Option<BoxFuture<'_, ()>> {
        self.queue.wait_for_capacity()
    }

    fn count(&self, attempts: &[AttemptRecord], at: SystemTime) {
        self.queue.count(attempts, at);
    }
}

const INSERT: &str = "INSERT INTO calls (record, call, tool, arguments, arguments_hash, unescaped, conversation, request,
        strategy, candidates, may_change, began, owner, principal, rule, approver, parent, audit, status, took, error_kind, error,
        sources, attempts, places)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::text[],
        $8::text[], $9::text[], $10::text[], $11::bigint[], $12::bigint[], $13::bigint[], $14::text[], $15::text[],
        $16::text[], $17::text[], $18::bigint[], $19::text[], $20::bigint[], $21::text[], $22::text[], $23::text[],
        $24::text[], $25::text[])
    ON CONFLICT (record) DO UPDATE SET status = excluded.status, took = excluded.took,
        error_kind = excluded.error_kind, error = excluded.error, sources = excluded.sources,
        attempts = excluded.attempts, places = excluded.places
    WHERE calls.took IS NULL AND excluded.took IS NOT NULL RETURNING record";
const UPDATE: &str = "UPDATE calls SET status = new.status, took = new.took, error_kind = new.error_kind,
        error = new.error, sources = new.sources, attempts = new.attempts, places = new.places
    FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[])
        AS new (record, status, took, error_kind, error, sources, attempts, places)
    WHERE calls.record = new.record AND calls.took IS NULL RETURNING calls.record, calls.began, calls.audit";
const KNOWN: &str = "SELECT record FROM calls WHERE record = ANY($1::text[])";
const OUTPUTS: &str =
    "INSERT INTO results SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[])
    ON CONFLICT (record) DO NOTHING";

/// The prepared statements. Preparing them on demand would interrupt pipelining.
pub(super) struct Statements {
    insert: Statement,
    update: Statement,
    known: Statement,
    outputs: Statement,
}

impl Statements {
    pub(super) async fn prepare(client: &Client) -> Result<Self, Error> {
        let prepare = |sql| client.prepare(sql);
        let (insert, update, known, outputs) =
            try_join4(prepare(INSERT), prepare(UPDATE), prepare(KNOWN), prepare(OUTPUTS)).await?;
        Ok(Self { insert, update, known, outputs })
    }
}

/// A complete call, and whether it belongs in the audit log.
pub(super) struct NotedCall {
    pub(super) call: FinishedCall,
    pub(super) audit: bool,
}

/// The calls that a transaction adds.
pub(super) struct NewCalls<'a> {
    pub(super) begun: &'a [&'a CallStart],
    pub(super) notes: &'a [NotedCall],
    pub(super) origin: CallOrigin,
}

/// Writes started calls, and complete ones. Returns the records that did not exist or had no end.
pub(super) async fn insert(
    client: &Client,
    statements: &Statements,
    NewCalls { begun, notes, origin }: NewCalls<'_>,
) -> Result<HashSet<String>, Error> {
    if begun.is_empty() && notes.is_empty() {
        return Ok(HashSet::new());
    }
    let running = begun.iter().map(|start| (*start, EndColumns::running(start), origin.audit));
    let noted = notes.iter().map(|note| (&note.call.start, EndColumns::of(&note.call.end), note.audit));
    let mut starts = StartArrays::default();
    let mut ends = EndArrays::default();
    for (start, end, audit) in running.chain(noted) {
        starts.push(start, CallOrigin { audit, ..origin });
        ends.push(end);
    }
    let values = [starts.values(), ends.values()].concat();
    let rows = client.query(&statements.insert, &values).await?;
    rows.iter().map(|row| row.text(0)).collect()
}

/// A call that had no end.
pub(super) struct EndedRow {
    /// When it began.
    pub(super) began: i64,
    /// Whether it belongs in the audit log.
    pub(super) audit: bool,
}

/// Writes the ends of calls. Returns those that had none, by record.
pub(super) async fn finish(
    client: &Client,
    statements: &Statements,
    ends: &[&CallEnd],
) -> Result<HashMap<String, EndedRow>, Error> {
    if ends.is_empty() {
        return Ok(HashMap::new());
    }
    let records: Vec<_> = ends.iter().map(|end| replace_nul(end.record.as_str())).collect();
    let mut arrays = EndArrays::default();
    ends.iter().for_each(|end| arrays.push(EndColumns::of(end)));
    let mut values: Vec<&(dyn ToSql + Sync)> = vec![&records];
    values.extend(arrays.values());
    let rows = client.query(&statements.update, &values).await?;
    let ended = |row: &Row| {
        let ended = EndedRow { began: row.int(1)?, audit: row.int(2)? != 0 };
        Ok((row.text(0)?, ended))
    };
    rows.iter().map(ended).collect()
}

/// The records that exist among these.
pub(super) async fn known(
    client: &Client,
    statements: &Statements,
    records: &[&str],
) -> Result<HashSet<String>, Error> {
    if records.is_empty() {
        return Ok(HashSet::new());
    }
    client.query(&statements.known, &[&records]).await?.iter().map(|row| row.text(0)).collect()
}

/// Stores the outputs of calls with the given start times.
pub(super) async fn keep_outputs(
    client: &Client,
    statements: &Statements,
    ends: &[(&CallEnd, i64)],
) -> Result<(), Error> {
    let with_output: Vec<_> = ends
        .iter()
        .filter_map(|(end, began)| Some((&end.record, *began, end.output.as_ref()?.get())))
        .collect();
    if with_output.is_empty() {
        return Ok(());
    }
    let records: Vec<_> = with_output.iter().map(|(record, _, _)| replace_nul(record.as_str())).collect();
    let began: Vec<i64> = with_output.iter().map(|(_, began, _)| *began).collect();
    let bytes: Vec<i64> =
        with_output.iter().map(|(_, _, output)| i64::try_from(output.len()).unwrap_or(i64::MAX)).collect();
    let outputs: Vec<&str> = with_output.iter().map(|(_, _, output)| *output).collect();
    client.execute(&statements.outputs, &[&records, &began, &bytes, &outputs]).await?;
    Ok(())
}

/// Columns of started calls, one array each.
#[derive(Default)]
struct StartArrays {
    texts: [Vec<String>; 7],
    may_be_null: [Vec<Option<String>>; 6],
    numbers: [Vec<i64>; 5],
}

impl StartArrays {
    fn push(&mut self, start: &CallStart, origin: CallOrigin) {
        let arguments = start.arguments.get();
        let candidates = source_list(&start.candidates);
        let texts = [
            start.record.as_str(),
            start.call.as_str(),
            start.tool.as_str(),
            arguments,
            &start.strategy,
            &candidates,
            &start.authorization.principal,
        ];
        for (array, text) in self.texts.iter_mut().zip(texts) {
            array.push(replace_nul(text).into_owned());
        }
        let unescaped = without_unicode_escapes(arguments);
        let may_be_null = [
            unescaped.as_deref(),
            start.conversation.as_deref(),
            start.request.as_deref(),
            start.authorization.rule.as_deref(),
            start.authorization.approver.as_deref(),
            start.parent.as_ref().map(CallId::as_str),
        ];
        for (array, text) in self.may_be_null.iter_mut().zip(may_be_null) {
            array.push(text.map(|text| replace_nul(text).into_owned()));
        }
        let numbers = [
            arguments_hash(arguments),
            i64::from(start.may_change),
            unix_micros(start.at),
            origin.owner.0,
            i64::from(origin.audit),
        ];
        for (array, number) in self.numbers.iter_mut().zip(numbers) {
            array.push(number);
        }
    }

    fn values(&self) -> Vec<&(dyn ToSql + Sync)> {
        let [record, call, tool, arguments, strategy, candidates, principal] = &self.texts;
        let [unescaped, conversation, request, rule, approver, parent] = &self.may_be_null;
        let [hash, may_change, began, owner, audit] = &self.numbers;
        vec![
            record,
            call,
            tool,
            arguments,
            hash,
            unescaped,
            conversation,
            request,
            strategy,
            candidates,
            may_change,
            began,
            owner,
            principal,
            rule,
            approver,
            parent,
            audit,
        ]
    }
}

/// Columns of ended calls, one array each.
#[derive(Default)]
struct EndArrays {
    status: Vec<&'static str>,
    took: Vec<Option<i64>>,
    error_kind: Vec<Option<String>>,
    error: Vec<Option<String>>,
    sources: Vec<String>,
    attempts: Vec<String>,
    places: Vec<String>,
}

impl EndArrays {
    fn push(&mut self, end: EndColumns<'_>) {
        self.status.push(end.status);
        self.took.push(end.took);
        self.error_kind.push(end.error_kind.map(|kind| replace_nul(kind).into_owned()));
        self.error.push(end.error);
        self.sources.push(end.sources);
        self.attempts.push(end.attempts);
        self.places.push(replace_nul(&end.places).into_owned());
    }

    fn values(&self) -> Vec<&(dyn ToSql + Sync)> {
        vec![
            &self.status,
            &self.took,
            &self.error_kind,
            &self.error,
            &self.sources,
            &self.attempts,
            &self.places,
        ]
    }
}
