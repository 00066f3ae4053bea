//! Export as JSON lines, and its verification. The first line names the log, the last one its end; each other line is
//! a record with its hash, or a checkpoint, which follows the record that it is about.

use std::io::{self, BufRead};

use serde_json::{Map, Value};
use toolhub_core::hex;

use crate::chain::{Chain, Hash, LogId, StoredBatch, StoredEntry};
use crate::checkpoint::{Checkpoint, CheckpointKind, TrustedKeys};
use crate::evidence::{LogEnd, LogEvidence};
use crate::record::AuditRecord;
use crate::tampering::Tampering;
use crate::verify::{Summary, Verifier};

/// The version of the format.
const FORMAT: u64 = 1;

/// Converts a log to lines, batch by batch.
#[derive(Debug)]
pub struct JsonLinesExport {
    log: LogId,
    base: Option<Checkpoint>,
    /// Checkpoints ahead, in order of their records.
    checkpoints: std::iter::Peekable<std::vec::IntoIter<Checkpoint>>,
    chain: Chain,
    records: u64,
}

impl JsonLinesExport {
    /// Begins the export of a log; `None` if nothing was ever recorded.
    pub fn new(evidence: &LogEvidence) -> Option<Self> {
        let log = evidence.log?;
        let (bases, mut checkpoints): (Vec<_>, Vec<_>) =
            evidence.checkpoints.iter().cloned().partition(|one| one.kind == CheckpointKind::Base);
        let base = bases.into_iter().max_by_key(|one| one.sequence);
        let chain = base
            .as_ref()
            .map_or(Chain::empty(&log), |base| Chain { sequence: base.sequence, hash: base.hash });
        checkpoints.retain(|one| one.sequence > chain.sequence);
        checkpoints.sort_by_key(|one| one.sequence);
        Some(Self { log, base, checkpoints: checkpoints.into_iter().peekable(), chain, records: 0 })
    }

    /// The first line.
    pub fn header(&self) -> String {
        let mut members = Map::new();
        members.insert("type".to_owned(), "log".into());
        members.insert("format".to_owned(), FORMAT.into());
        members.insert("log".to_owned(), self.log.to_string().into());
        let base = self.base.as_ref().map(Checkpoint::to_members);
        members.insert("base".to_owned(), base.map_or(Value::Null, Value::Object));
        line(members)
    }

    /// Appends the lines of the next batch.
    pub fn push_batch(&mut self, batch: &StoredBatch, out: &mut String) {
        for entry in batch.stored().flatten() {
            let Some(record) = self.next_record(entry) else { continue };
            out.push_str(&record_line(&record, self.chain.hash));
            while let Some(checkpoint) =
                self.checkpoints.next_if(|checkpoint| checkpoint.sequence <= record.sequence)
            {
                out.push_str(&checkpoint_line(&checkpoint));
            }
        }
    }

    /// Visits the records of the next batch with their hashes, for other formats.
    pub fn each_record(&mut self, batch: &StoredBatch, mut visit: impl FnMut(&AuditRecord, &Hash)) {
        for entry in batch.stored().flatten() {
            if let Some(record) = self.next_record(entry) {
                visit(&record, &self.chain.hash);
            }
        }
    }

    fn next_record(&mut self, entry: StoredEntry<'_>) -> Option<AuditRecord> {
        let record = AuditRecord::decode(entry.encoding)?;
        self.chain = Chain { sequence: record.sequence, hash: self.chain.hash.next(entry.encoding) };
        self.records += 1;
        Some(record)
    }

    /// The last line.
    pub fn footer(&self) -> String {
        end_line(LogEnd { sequence: self.chain.sequence, hash: self.chain.hash })
    }

    /// The number of records so far.
    pub fn records(&self) -> u64 {
        self.records
    }
}

fn line(members: Map<String, Value>) -> String {
    let mut line = Value::Object(members).to_string();
    line.push('\n');
    line
}

fn typed(name: &str, members: Map<String, Value>) -> Map<String, Value> {
    let mut all = Map::new();
    all.insert("type".to_owned(), name.into());
    all.extend(members);
    all
}

fn record_line(record: &AuditRecord, hash: Hash) -> String {
    let mut members = typed("record", record.to_members());
    members.insert("hash".to_owned(), hash.to_string().into());
    line(members)
}

fn checkpoint_line(checkpoint: &Checkpoint) -> String {
    line(typed("checkpoint", checkpoint.to_members()))
}

fn end_line(end: LogEnd) -> String {
    let mut members = Map::new();
    members.insert("sequence".to_owned(), end.sequence.into());
    members.insert("hash".to_owned(), end.hash.to_string().into());
    line(typed("end", members))
}

/// Verifies an export. Every line must be exactly what an export writes, so that nothing unverified can be in it.
pub fn verify_json_lines(
    mut export: impl BufRead,
    keys: &TrustedKeys,
) -> io::Result<Result<Summary, Tampering>> {
    let mut text = String::new();
    let mut number = 1;
    export.read_line(&mut text)?;
    let changed = |line| Ok(Err(Tampering::ChangedLine { line }));
    let Some(evidence) = read_header(&text) else { return changed(number) };
    let mut verifier = match Verifier::new(&evidence, keys) {
        Ok(Some(verifier)) => verifier,
        Ok(None) => return changed(number),
        Err(tampering) => return Ok(Err(tampering)),
    };
    let mut last = evidence.checkpoints.first().map_or(0, |base| base.sequence);
    loop {
        text.clear();
        number += 1;
        if export.read_line(&mut text)? == 0 {
            // Without its last line it is unknown how much of the export is missing.
            return Ok(verifier
                .finish(None)
                .and(Err(Tampering::Truncated { last, covered: last.saturating_add(1) })));
        }
        match read_line(&text) {
            Some(Line::Record(record, hash)) => {
                let encoding = record.encode();
                last = record.sequence;
                verifier.push_stored(Some(StoredEntry { encoding: &encoding, kept_hash: &hash.0 }));
            }
            Some(Line::Checkpoint(checkpoint)) => verifier.push_checkpoint(&checkpoint),
            Some(Line::End(end)) => {
                text.clear();
                if export.read_line(&mut text)? != 0 {
                    return changed(number + 1);
                }
                return Ok(verifier.finish(Some(end)));
            }
            // An earlier finding is more specific than a malformed line.
            None => return Ok(verifier.finish(None).and(Err(Tampering::ChangedLine { line: number }))),
        }
    }
}

enum Line {
    Record(Box<AuditRecord>, Hash),
    Checkpoint(Checkpoint),
    End(LogEnd),
}

fn read_header(text: &str) -> Option<LogEvidence> {
    let value: Value = serde_json::from_str(text).ok()?;
    let log = LogId(hex::decode(value.get("log")?.as_str()?)?);
    let checkpoints = match value.get("base")? {
        Value::Null => Vec::new(),
        base => {
            vec![Checkpoint::from_members(base.as_object()?).filter(|one| one.kind == CheckpointKind::Base)?]
        }
    };
    let evidence = LogEvidence { log: Some(log), checkpoints, ..LogEvidence::default() };
    (JsonLinesExport::new(&evidence)?.header() == text).then_some(evidence)
}

fn read_line(text: &str) -> Option<Line> {
    let value: Value = serde_json::from_str(text).ok()?;
    let members = value.as_object()?;
    let hash = || Some(Hash(hex::decode(members.get("hash")?.as_str()?)?));
    let (read, again) = match members.get("type")?.as_str()? {
        "record" => {
            let (record, hash) = (AuditRecord::from_members(members)?, hash()?);
            let again = record_line(&record, hash);
            (Line::Record(Box::new(record), hash), again)
        }
        "checkpoint" => {
            let checkpoint = Checkpoint::from_members(members)?;
            let again = checkpoint_line(&checkpoint);
            (Line::Checkpoint(checkpoint), again)
        }
        "end" => {
            let end = LogEnd { sequence: members.get("sequence")?.as_u64()?, hash: hash()? };
            (Line::End(end), end_line(end))
        }
        _ => return None,
    };
    (again == text).then_some(read)
}
