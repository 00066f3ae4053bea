//! Queries over blocks: selects the blocks that may match, filters their calls, and stops when the limit is reached.

use toolhub_core::CallId;
use toolhub_core::call_log::{CallQuery, CallRecord, RecordId};

use super::entry::{BlockEntry, status_code};
use super::{decode_all, sources_of};
use crate::folded_text::folded_contains;
use crate::query::{Conditions, Dialect, SqlValue};
use crate::rows::{
    arguments_hash, source_name, source_pattern, stored_hash, unix_micros, without_unicode_escapes,
};

/// Number of blocks per page.
const PAGE_BLOCKS: usize = 32;

/// A query over the blocks, newest first.
#[derive(Debug)]
pub(crate) struct BlockScan {
    query: CallQuery,
    arguments_hash: Option<i64>,
    text: Option<String>,
    matches: Vec<CallRecord>,
    /// `last` and `id` of the last block read.
    position: Option<(String, i64)>,
    done: bool,
}

/// A block as returned by the statement of [`BlockScan::page`].
pub(crate) struct BlockRow {
    pub(crate) id: i64,
    pub(crate) last: String,
    pub(crate) entries: Vec<u8>,
}

impl BlockScan {
    /// A scan whose matches are merged with `rows`, the matching calls that are stored as rows.
    pub(crate) fn new(query: CallQuery, rows: Vec<CallRecord>) -> Self {
        let arguments_hash = query.arguments.as_deref().map(stored_hash);
        let text = query.text.as_deref().map(str::to_lowercase);
        Self { query, arguments_hash, text, matches: rows, position: None, done: false }
    }

    /// The statement for the next page of blocks, and its values; `None` if no more blocks are needed.
    pub(crate) fn page(&self, dialect: Dialect) -> Option<(String, Vec<SqlValue>)> {
        if self.done {
            return None;
        }
        let query = &self.query;
        let record =
            |record: &Option<RecordId>| record.as_ref().map(|id| SqlValue::Text(id.as_str().to_owned()));
        let mut filter = Conditions::new(dialect);
        filter.compare("last", ">", record(&query.after));
        filter.compare("first", "<", record(&query.before));
        filter.compare("last", ">=", record(&query.from));
        // Ids sort by time.
        filter.compare("last", ">=", record(&query.since.map(RecordId::lower_bound)));
        filter.compare("began_last", ">=", query.since.map(|since| SqlValue::Int(unix_micros(since))));
        if let Some(status) = query.status {
            filter.push(format!("(statuses & {}) <> 0", 1 << status_code(status)));
        }
        let lists = [
            ("tools", &query.tool),
            ("sources", &query.source),
            ("conversations", &query.conversation),
            ("principals", &query.principal),
            ("parents", &query.parent),
        ];
        for (column, name) in lists {
            if let Some(name) = name {
                filter.may_hold(column, source_pattern(name));
            }
        }
        if let Some((last, id)) = &self.position {
            filter.less_than(["last", "id"], [SqlValue::Text(last.clone()), SqlValue::Int(*id)]);
        }
        let (clause, values) = filter.finish();
        let sql = format!(
            "SELECT id, last, entries FROM call_blocks{clause} ORDER BY last DESC, id DESC LIMIT {PAGE_BLOCKS}"
        );
        Some((sql, values))
    }

    /// Adds the blocks of one page.
    pub(crate) fn add(&mut self, rows: Vec<BlockRow>) {
        if rows.len() < PAGE_BLOCKS {
            self.done = true;
        }
        for row in rows {
            if self.has_enough(&row.last) {
                self.done = true;
                return;
            }
            for entry in decode_all(&row.entries) {
                if self.is_match(&entry) {
                    self.matches.push(record_of(entry));
                }
            }
            self.position = Some((row.last, row.id));
        }
    }

    /// The matches, newest first.
    pub(crate) fn finish(mut self) -> Vec<CallRecord> {
        self.keep_newest();
        self.matches
    }

    /// Whether the limit is reached by calls newer than all remaining blocks.
    fn has_enough(&mut self, last: &str) -> bool {
        let Some(limit) = self.query.limit else { return false };
        if self.matches.len() < limit {
            return false;
        }
        self.keep_newest();
        self.matches.last().is_none_or(|oldest| oldest.start.record.as_str() > last)
    }

    fn keep_newest(&mut self) {
        self.matches.sort_unstable_by(|left, right| right.start.record.cmp(&left.start.record));
        if let Some(limit) = self.query.limit {
            self.matches.truncate(limit);
        }
    }

    /// Whether a call matches, by the same rules as the statement for rows.
    fn is_match(&self, entry: &BlockEntry) -> bool {
        let (query, start, end) = (&self.query, &entry.start, &entry.end);
        query.tool.as_deref().is_none_or(|tool| tool == start.tool.as_str())
            && query.status.is_none_or(|status| status == end.status)
            && query
                .source
                .as_deref()
                .is_none_or(|name| sources_of(end).any(|source| source_name(source) == name))
            && (query.conversation.is_none() || query.conversation == start.conversation)
            && query.principal.as_deref().is_none_or(|id| id == &*start.authorization.principal)
            && query.call.as_deref().is_none_or(|id| id == start.call.as_str())
            && (query.parent.is_none()
                || query.parent.as_deref() == start.parent.as_ref().map(CallId::as_str))
            && query.since.is_none_or(|since| unix_micros(start.at) >= unix_micros(since))
            && query.after.as_ref().is_none_or(|after| start.record > *after)
            && query.before.as_ref().is_none_or(|before| start.record < *before)
            && query.from.as_ref().is_none_or(|from| start.record >= *from)
            && self.arguments_hash.is_none_or(|hash| arguments_hash(start.arguments.get()) == hash)
            && self.text.as_deref().is_none_or(|text| {
                let arguments = start.arguments.get();
                let readable = without_unicode_escapes(arguments);
                [start.tool.as_str(), readable.as_deref().unwrap_or(arguments)]
                    .into_iter()
                    .chain(start.request.as_deref())
                    .any(|column| folded_contains(column, text))
            })
    }
}

fn record_of(entry: BlockEntry) -> CallRecord {
    let BlockEntry { start, end, .. } = entry;
    CallRecord {
        start,
        status: end.status,
        took: Some(end.took),
        error: end.error,
        sources: end.sources,
        attempts: end.attempts,
    }
}

/// The statement that finds the block that may contain a call, with its outputs.
pub(crate) fn output(dialect: Dialect, record: &RecordId) -> (String, Vec<SqlValue>) {
    let mut filter = Conditions::new(dialect);
    let record = || Some(SqlValue::Text(record.as_str().to_owned()));
    filter.compare("first", "<=", record());
    filter.compare("last", ">=", record());
    let (clause, values) = filter.finish();
    (format!("SELECT entries, outputs FROM call_blocks JOIN block_outputs USING (id){clause}"), values)
}

/// The output of a call in a block, if the block contains the call and it has an output.
pub(crate) fn output_in(record: &RecordId, entries: &[u8], outputs: &[u8]) -> Option<String> {
    let mut start = 0;
    for entry in decode_all(entries) {
        let end = start + entry.output_bytes.unwrap_or(0);
        if entry.start.record == *record {
            entry.output_bytes?;
            return String::from_utf8(outputs.get(start..end)?.to_vec()).ok();
        }
        start = end;
    }
    None
}
