//! Finished calls in blocks: the database stores a group of calls as one row, with a summary for query filters. At
//! thousands of calls per second this costs a fraction of one row per call with its indexes. Small groups are stored
//! as one row per call, so that lookups stay cheap if calls are rare.

pub(crate) mod entry;
pub(crate) mod frame;
pub(crate) mod part;
pub(crate) mod scan;

use toolhub_audit::PendingRecords;
use toolhub_core::Source;
use toolhub_core::call_log::{CallEnd, CallStart, RecordId};

use self::entry::{BlockEntry, status_code};
use crate::audit::rows::push_call;
use crate::journal::JournalRange;
use crate::pending_statistics::PendingStatistics;
use crate::rows::{source_name, source_pattern, stored_json, unix_micros};
use crate::write::FinishedCall;

/// Size at which a block is sealed.
const MAX_BLOCK_BYTES: usize = 256 << 10;
/// Groups with fewer calls are stored as one row per call.
pub(crate) const MIN_BLOCK_CALLS: usize = 16;
/// Maximum number of distinct names in a summary; beyond that, the block is scanned for every query.
const MAX_BLOCK_NAMES: usize = 64;

/// Names that occur in a block; `None` if there are too many to list.
#[derive(Debug, Clone)]
struct Names(Option<Vec<String>>);

impl Default for Names {
    fn default() -> Self {
        Self(Some(Vec::new()))
    }
}

impl Names {
    fn add(&mut self, name: &str) {
        let Some(names) = &mut self.0 else { return };
        if names.iter().any(|existing| existing == name) {
            return;
        }
        if names.len() < MAX_BLOCK_NAMES { names.push(name.to_owned()) } else { self.0 = None }
    }

    /// The names as a column for substring search; `None` if the block may contain any name.
    fn column(&self) -> Option<String> {
        self.0.as_ref().map(|names| names.iter().map(|name| source_pattern(name)).collect())
    }
}

/// The summary of a block, for filters that need not read it.
#[derive(Debug, Clone)]
pub(crate) struct BlockSummary {
    /// The smallest record id, which identifies the block: every call is in only one block.
    pub(crate) first: RecordId,
    /// The largest record id.
    pub(crate) last: RecordId,
    /// Start time of the first call, in microseconds since 1970.
    pub(crate) began_first: i64,
    /// Start time of the last call.
    pub(crate) began_last: i64,
    /// The bit `1 << status_code` of every status that occurs.
    pub(crate) statuses: i64,
    tools: Names,
    sources: Names,
    conversations: Names,
    principals: Names,
    parents: Names,
}

impl BlockSummary {
    fn of(record: &RecordId, began: i64) -> Self {
        Self {
            first: record.clone(),
            last: record.clone(),
            began_first: began,
            began_last: began,
            statuses: 0,
            tools: Names::default(),
            sources: Names::default(),
            conversations: Names::default(),
            principals: Names::default(),
            parents: Names::default(),
        }
    }

    fn add(&mut self, start: &CallStart, end: &CallEnd) {
        let began = unix_micros(start.at);
        self.began_first = self.began_first.min(began);
        self.began_last = self.began_last.max(began);
        if start.record < self.first {
            self.first = start.record.clone();
        }
        if start.record > self.last {
            self.last = start.record.clone();
        }
        self.statuses |= 1 << status_code(end.status);
        self.tools.add(start.tool.as_str());
        self.principals.add(&start.authorization.principal);
        for source in sources_of(end) {
            self.sources.add(source_name(source));
        }
        if let Some(conversation) = &start.conversation {
            self.conversations.add(conversation);
        }
        if let Some(parent) = &start.parent {
            self.parents.add(parent.as_str());
        }
    }

    pub(crate) fn tools(&self) -> Option<String> {
        self.tools.column()
    }

    pub(crate) fn sources(&self) -> Option<String> {
        self.sources.column()
    }

    pub(crate) fn conversations(&self) -> Option<String> {
        self.conversations.column()
    }

    pub(crate) fn principals(&self) -> Option<String> {
        self.principals.column()
    }

    pub(crate) fn parents(&self) -> Option<String> {
        self.parents.column()
    }
}

/// The sources that answered a call, or else those that were attempted.
pub(crate) fn sources_of(end: &CallEnd) -> Box<dyn Iterator<Item = &Source> + '_> {
    match end.sources.is_empty() {
        true => Box::new(end.attempts.iter().map(|attempt| &attempt.source)),
        false => Box::new(end.sources.iter()),
    }
}

/// A sealed group of finished calls.
#[derive(Debug)]
pub(crate) struct Block {
    /// Each call as a little-endian `u32` length and an [`entry`].
    pub(crate) entries: Vec<u8>,
    /// The concatenated outputs, in the order of the entries.
    pub(crate) outputs: Vec<u8>,
    pub(crate) calls: usize,
    pub(crate) summary: BlockSummary,
    /// The contribution of the calls to the statistics.
    pub(crate) counted: PendingStatistics,
    pub(crate) journal: Option<JournalRange>,
    /// The records of its calls, if they belong in the audit log.
    pub(crate) records: Option<PendingRecords>,
}

impl Block {
    /// Approximate memory use in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let records = self.records.as_ref().map_or(0, PendingRecords::bytes);
        self.entries.len() + self.outputs.len() + records
    }

    /// The calls of a block that is stored as rows.
    pub(crate) fn finished_calls(&self) -> Vec<FinishedCall> {
        let mut outputs = self.outputs.as_slice();
        let with_output = |mut entry: BlockEntry| {
            if let Some(length) = entry.output_bytes {
                let (output, rest) = outputs.split_at_checked(length)?;
                entry.end.output = Some(stored_json(String::from_utf8(output.to_vec()).ok()?));
                outputs = rest;
            }
            Some(FinishedCall { start: entry.start, end: entry.end })
        };
        decode_all(&self.entries).filter_map(with_output).collect()
    }
}

/// Decodes the entries of a block. Stops at the first damaged one.
pub(crate) fn decode_all(entries: &[u8]) -> impl Iterator<Item = BlockEntry> + '_ {
    let mut rest = entries;
    std::iter::from_fn(move || {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let (bytes, after) = after.split_at_checked(length)?;
        rest = after;
        entry::decode(bytes)
    })
}

/// A block under construction.
#[derive(Debug, Default)]
pub(crate) struct BlockBuilder {
    entries: Vec<u8>,
    outputs: Vec<u8>,
    calls: usize,
    summary: Option<BlockSummary>,
    counted: PendingStatistics,
    journal: Option<JournalRange>,
    /// `Some` if its calls belong in the audit log.
    records: Option<PendingRecords>,
}

impl BlockBuilder {
    /// `audit` states whether its calls belong in the audit log.
    pub(crate) fn new(audit: bool) -> Self {
        Self { records: audit.then(PendingRecords::default), ..Self::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.calls == 0
    }

    pub(crate) fn is_full(&self) -> bool {
        self.entries.len() + self.outputs.len() >= MAX_BLOCK_BYTES
    }

    /// Adds a call. Returns its entry, including the length prefix.
    pub(crate) fn add(&mut self, start: &CallStart, end: &CallEnd) -> &[u8] {
        let at = self.entries.len();
        self.entries.extend_from_slice(&[0; 4]);
        entry::encode(start, end, self.records.is_some(), &mut self.entries);
        let length = u32::try_from(self.entries.len() - at - 4).unwrap_or(u32::MAX);
        self.entries[at..at + 4].copy_from_slice(&length.to_le_bytes());
        if let Some(output) = &end.output {
            self.outputs.extend_from_slice(output.get().as_bytes());
        }
        if let Some(records) = &mut self.records {
            // Here and not in the writer, whose thread is shared by all I/O threads.
            push_call(records, start, end);
        }
        self.calls += 1;
        self.counted.count(&end.attempts, start.at);
        self.summary
            .get_or_insert_with(|| BlockSummary::of(&start.record, unix_micros(start.at)))
            .add(start, end);
        &self.entries[at..]
    }

    /// Sets the journal range of the last call.
    pub(crate) fn journaled(&mut self, range: JournalRange) {
        match &mut self.journal {
            Some(journaled_range) => journaled_range.end = range.end,
            none => *none = Some(range),
        }
    }

    /// Takes the block, if it contains any call.
    pub(crate) fn seal(&mut self) -> Option<Block> {
        let empty = Self::new(self.records.is_some());
        let Self { entries, outputs, calls, summary, counted, journal, records } =
            std::mem::replace(self, empty);
        Some(Block { entries, outputs, calls, summary: summary?, counted, journal, records })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    use std::time::{Duration, SystemTime};

    use toolhub_core::call_log::{AttemptStatus, CallStatus, StoredAttempt};
    use toolhub_core::{CallId, RawJson, ToolName};

    /// A finished call of a tool.
    pub(crate) fn call(tool: &str) -> (CallStart, CallEnd) {
        let (record, tool) = (RecordId::generate(), ToolName::new(tool));
        let took = Duration::from_millis(1);
        let status = AttemptStatus::Succeeded;
        let attempt = StoredAttempt { source: Source::Native, tool: tool.clone(), status, took, error: None };
        let start = CallStart {
            record: record.clone(),
            call: CallId::generate(),
            tool,
            arguments: RawJson::empty_object(),
            conversation: None,
            request: None,
            strategy: String::new(),
            candidates: Vec::new(),
            may_change: false,
            // Stored times have microsecond precision.
            at: crate::rows::from_micros(unix_micros(SystemTime::now())),
            authorization: toolhub_core::Authorization::default(),
            parent: None,
        };
        let end = CallEnd {
            record,
            status: CallStatus::Succeeded,
            took,
            error: None,
            sources: Vec::new(),
            attempts: vec![attempt],
            output: Some(RawJson::parse("{\"中\": [1, 2]}".to_owned()).unwrap()),
        };
        (start, end)
    }

    #[test]
    fn block_returns_calls_with_outputs() {
        let mut builder = BlockBuilder::default();
        assert!(builder.seal().is_none());
        let mut calls: Vec<_> = (0..100).map(|number| call(&format!("t{}", number % 70))).collect();
        for (number, (start, end)) in calls.iter_mut().enumerate() {
            end.output = match number % 3 {
                0 => None,
                1 => Some(RawJson::parse(format!("\"{}\"", "x".repeat(number))).unwrap()),
                _ => Some(RawJson::parse("\"中文\"".to_owned()).unwrap()),
            };
            builder.add(start, end);
        }
        let block = builder.seal().unwrap();
        assert!(builder.is_empty());
        assert_eq!(block.calls, 100);
        assert_eq!((&block.summary.first, &block.summary.last), (&calls[0].0.record, &calls[99].0.record));
        assert_eq!(block.summary.tools(), None, "more than 64 names");
        assert_eq!(block.summary.sources(), Some(source_pattern("native")));
        let counted: u64 = block.counted.sorted().iter().map(|one| one.tally().total()).sum();
        assert_eq!(counted, 100);
        for (note, (start, end)) in block.finished_calls().iter().zip(&calls) {
            assert_eq!(format!("{:?}", (&note.start, &note.end)), format!("{:?}", (start, end)));
        }
        assert_eq!(block.finished_calls().len(), 100);
    }
}
