//! Verifies a log: recomputes every hash, and compares it with the checkpoints.

use std::collections::BTreeMap;

use crate::chain::{Chain, Hash, LogId, Principals, StoredBatch, StoredEntry};
use crate::checkpoint::{Checkpoint, CheckpointKind, TrustedKeys};
use crate::encoding::Reader;
use crate::evidence::{LogEnd, LogEvidence};
use crate::record::sequence_of;
use crate::tampering::Tampering;

/// The result of a successful verification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The log.
    pub log: LogId,
    /// The number of the first record; records before it were deleted because of their age.
    pub first: u64,
    /// The number of the last record; less than `first` if there is none.
    pub last: u64,
    /// The hash of the last record.
    pub hash: Hash,
    /// The number of checkpoints that fit.
    pub checkpoints: u64,
    /// The last record that a checkpoint confirms; the removal of later ones would not be noticed.
    pub confirmed: u64,
    /// When that checkpoint was signed, in microseconds since 1970.
    pub confirmed_micros: Option<u64>,
}

impl Summary {
    /// The number of records.
    pub fn records(&self) -> u64 {
        (self.last + 1).saturating_sub(self.first)
    }
}

/// Verifies the batches of a log in order. Returns the first finding.
pub fn verify<B: std::borrow::Borrow<StoredBatch>>(
    evidence: &LogEvidence,
    batches: impl IntoIterator<Item = B>,
    keys: &TrustedKeys,
) -> Result<Option<Summary>, Tampering> {
    let mut batches = batches.into_iter();
    let Some(mut verifier) = Verifier::new(evidence, keys)? else {
        return match batches.next() {
            Some(batch) => Err(Tampering::MissingState { first: batch.borrow().first_sequence }),
            None => Ok(None),
        };
    };
    for batch in batches {
        verifier.push_batch(batch.borrow());
    }
    verifier.finish(evidence.end).map(Some)
}

/// A record with an unexpected number; the records after it show what happened.
#[derive(Debug, Clone, Copy)]
struct Gap {
    expected: u64,
    found: u64,
    /// No record has followed yet.
    is_new: bool,
    /// The next record is in its place, so that only the number of this one does not fit.
    is_single: bool,
}

/// Verifies a log that is read piece by piece.
#[derive(Debug)]
pub struct Verifier<'a> {
    keys: &'a TrustedKeys,
    log: LogId,
    first: u64,
    chain: Chain,
    /// Hashes of checkpoints ahead, and when they were signed.
    ahead: BTreeMap<u64, Vec<(Hash, u64)>>,
    /// The number and time of the last checkpoint that fits.
    confirmed: (u64, Option<u64>),
    checkpoints: u64,
    gap: Option<Gap>,
    failure: Option<Tampering>,
}

impl<'a> Verifier<'a> {
    /// Begins with the checkpoints of a log. `None` if there is no log; records that exist nevertheless are
    /// [`Tampering::MissingState`].
    pub fn new(evidence: &LogEvidence, keys: &'a TrustedKeys) -> Result<Option<Self>, Tampering> {
        let Some(log) = evidence.log else {
            let first = evidence.checkpoints.iter().map(|one| one.sequence).min();
            return match (first, &evidence.head) {
                (Some(first), _) => Err(Tampering::MissingState { first }),
                (None, Some(head)) => Err(Tampering::Truncated { last: 0, covered: head.sequence }),
                (None, None) => Ok(None),
            };
        };
        let mut verifier = Self {
            keys,
            log,
            first: 1,
            chain: Chain::empty(&log),
            ahead: BTreeMap::new(),
            confirmed: (0, None),
            checkpoints: 0,
            gap: None,
            failure: None,
        };
        let bases = evidence.checkpoints.iter().filter(|one| one.kind == CheckpointKind::Base);
        if let Some(base) = bases.max_by_key(|one| one.sequence) {
            verifier.check_checkpoint(base)?;
            verifier.chain = Chain { sequence: base.sequence, hash: base.hash };
            verifier.first = base.sequence + 1;
            verifier.confirmed = (base.sequence, Some(base.micros));
        }
        for checkpoint in evidence.checkpoints.iter().chain(&evidence.head) {
            verifier.push_checkpoint(checkpoint);
        }
        Ok(Some(verifier))
    }

    fn check_checkpoint(&self, checkpoint: &Checkpoint) -> Result<(), Tampering> {
        if checkpoint.log != self.log {
            return Err(Tampering::ForeignChain { sequence: checkpoint.sequence });
        }
        self.keys.check(checkpoint).map_err(|problem| Tampering::BadSignature {
            sequence: checkpoint.sequence,
            key: checkpoint.key.clone(),
            problem,
        })
    }

    /// Adds a checkpoint, before or directly after the record that it is about.
    pub fn push_checkpoint(&mut self, checkpoint: &Checkpoint) {
        if self.failure.is_some() {
            return;
        }
        if let Err(tampering) = self.check_checkpoint(checkpoint) {
            self.failure = Some(tampering);
        } else if (self.first..self.chain.sequence).contains(&checkpoint.sequence) {
            // Too late to be compared, as if its record had been hidden from it.
            let (after, until) = (self.confirmed.0, checkpoint.sequence);
            self.failure = Some(Tampering::Rewritten { after, until });
        } else if checkpoint.kind == CheckpointKind::Progress {
            let signed = (checkpoint.hash, checkpoint.micros);
            self.ahead.entry(checkpoint.sequence).or_default().push(signed);
            self.compare_checkpoints();
        }
    }

    /// Compares the checkpoints of the current record. Those of deleted records are only counted.
    fn compare_checkpoints(&mut self) {
        while let Some(entry) = self.ahead.first_entry()
            && *entry.key() <= self.chain.sequence
        {
            let (sequence, signed) = entry.remove_entry();
            for (hash, micros) in signed {
                self.checkpoints += 1;
                if sequence == self.chain.sequence && hash != self.chain.hash {
                    let after = self.confirmed.0;
                    self.failure.get_or_insert(Tampering::Rewritten { after, until: sequence });
                    return;
                }
                if sequence >= self.confirmed.0 {
                    self.confirmed = (sequence, Some(micros));
                }
            }
        }
    }

    /// Adds the next batch.
    pub fn push_batch(&mut self, batch: &StoredBatch) {
        let start = self.chain;
        if self.is_foreign(batch) {
            self.failure.get_or_insert(Tampering::ForeignChain { sequence: batch.first_sequence });
        }
        let (mut principals, mut times) = (Principals::default(), None);
        for entry in batch.stored() {
            self.push_stored(entry);
            let Some((micros, principal)) = entry.and_then(|entry| summary_fields(entry.encoding)) else {
                continue;
            };
            principals.add(principal);
            let (first, last): (u64, u64) = times.unwrap_or((micros, micros));
            times = Some((first.min(micros), last.max(micros)));
        }
        if self.failure.is_some() || self.gap.is_some() {
            return;
        }
        if self.chain.sequence < batch.last_sequence && start.sequence + 1 == batch.first_sequence {
            let (first, last) = (self.chain.sequence + 1, batch.last_sequence);
            self.failure = Some(Tampering::Missing { first, last });
            return;
        }
        let is_right = batch.first_sequence == start.sequence + 1
            && batch.last_sequence == self.chain.sequence
            && batch.previous_hash == start.hash
            && batch.last_hash == self.chain.hash
            && times == Some((batch.first_micros, batch.last_micros))
            && batch.principals == principals.column();
        if !is_right {
            let (first, last) = (batch.first_sequence, batch.last_sequence);
            self.failure = Some(Tampering::ChangedSummary { first, last });
        }
    }

    /// Whether the first batch follows the hash of another log.
    fn is_foreign(&self, batch: &StoredBatch) -> bool {
        let is_first =
            batch.first_sequence == self.chain.sequence + 1 && self.chain.sequence + 1 == self.first;
        let follows = |hash: Hash| {
            let first = batch.stored().next().flatten();
            first.is_some_and(|entry| hash.next(entry.encoding).0.starts_with(entry.kept_hash))
        };
        is_first
            && batch.previous_hash != self.chain.hash
            && follows(batch.previous_hash)
            && !follows(self.chain.hash)
    }

    /// Adds the next record.
    pub(crate) fn push_stored(&mut self, entry: Option<StoredEntry<'_>>) {
        if self.failure.is_some() {
            return;
        }
        let expected = self.chain.sequence + 1;
        let sequence = entry.and_then(|entry| sequence_of(entry.encoding));
        if let Some(gap) = self.gap {
            return self.explain(gap, sequence);
        }
        let (Some(entry), Some(sequence)) = (entry, sequence) else {
            self.failure = Some(Tampering::Changed { sequence: expected });
            return;
        };
        if sequence != expected {
            self.gap = Some(Gap { expected, found: sequence, is_new: true, is_single: false });
            return;
        }
        let hash = self.chain.hash.next(entry.encoding);
        if !hash.0.starts_with(entry.kept_hash) {
            self.failure = Some(Tampering::Changed { sequence });
            return;
        }
        self.chain = Chain { sequence, hash };
        self.compare_checkpoints();
    }

    /// Tells from a record after an unexpected one what happened.
    fn explain(&mut self, gap: Gap, sequence: Option<u64>) {
        let Gap { expected, found, is_new, is_single } = gap;
        let is_single = is_single || (is_new && sequence == Some(expected + 1));
        let is_skipped = |sequence| !is_single && (expected..found).contains(&sequence);
        if sequence == Some(expected) || sequence.is_some_and(is_skipped) {
            self.failure = Some(Tampering::Reordered { expected, found });
        }
        self.gap = Some(Gap { is_new: false, is_single, ..gap });
    }

    /// The result after the last batch. `end` is the last record as the store states it.
    pub fn finish(self, end: Option<LogEnd>) -> Result<Summary, Tampering> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        if let Some(Gap { expected, found, is_single, .. }) = self.gap {
            return Err(match found > expected {
                _ if is_single => Tampering::Changed { sequence: expected },
                true => Tampering::Missing { first: expected, last: found - 1 },
                false => Tampering::Reordered { expected, found },
            });
        }
        let Chain { sequence: last, hash } = self.chain;
        let stated = end.map_or(last, |end| end.sequence);
        let covered = self.ahead.last_key_value().map_or(stated, |(covered, _)| stated.max(*covered));
        if covered > last {
            return Err(Tampering::Truncated { last, covered });
        }
        if stated < last {
            return Err(Tampering::Added { first: stated + 1, last });
        }
        let (confirmed, confirmed_micros) = self.confirmed;
        if end.is_some_and(|end| end.hash != hash) {
            return Err(Tampering::Rewritten { after: confirmed, until: last });
        }
        let (log, first, checkpoints) = (self.log, self.first, self.checkpoints);
        Ok(Summary { log, first, last, hash, checkpoints, confirmed, confirmed_micros })
    }
}

/// The time and the principal of an encoded record.
fn summary_fields(encoding: &[u8]) -> Option<(u64, &str)> {
    let mut reader = Reader { bytes: encoding };
    reader.byte()?;
    reader.number()?;
    reader.byte()?;
    Some((reader.number()?, reader.text()?))
}
