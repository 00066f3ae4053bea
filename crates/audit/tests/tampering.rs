//! Every kind of tampering is found and named, in a stored log and in an export.

#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::time::{Duration, UNIX_EPOCH};

use proptest::prelude::*;
use toolhub_audit::{
    AuditRecord, CallFields, Chain, Checkpoint, CheckpointKind, JsonLinesExport, LogEnd, LogEvidence, LogId,
    PendingRecords, SignatureProblem, SigningKey, StoredBatch, Summary, Tampering, TrustedKeys, verify,
    verify_json_lines,
};
use toolhub_core::audit::{AuditAction, AuditEvent, LoginEvent};
use toolhub_core::call_log::CallStatus;

fn key() -> SigningKey {
    SigningKey::from_text(&"1f".repeat(32)).unwrap()
}

fn keys() -> TrustedKeys {
    TrustedKeys::new([key().public()])
}

const LOG: LogId = LogId([5; 16]);

#[derive(Debug, Clone)]
struct Log {
    evidence: LogEvidence,
    batches: Vec<StoredBatch>,
}

fn checkpoint(kind: CheckpointKind, chain: Chain) -> Checkpoint {
    let unsigned = Checkpoint {
        log: LOG,
        kind,
        sequence: chain.sequence,
        hash: chain.hash,
        micros: 1_700_000_000_000_000 + chain.sequence,
        key: String::new(),
        signature: Vec::new(),
    };
    key().sign(unsigned)
}

fn push(pending: &mut PendingRecords, number: u64) {
    let principal = format!("key:p{}", number % 3);
    if number.is_multiple_of(5) {
        let (method, address) = ("key".to_owned(), Some("127.0.0.1".to_owned()));
        let login = LoginEvent { method, accepted: true, reason: None, address };
        let at = UNIX_EPOCH + Duration::from_micros(1_000 + number);
        pending.push_event(&AuditEvent {
            at,
            principal: principal.into(),
            action: AuditAction::Login(login),
        });
    } else {
        let record = format!("record{number:012}");
        let call = CallFields {
            micros: 1_000 + number,
            principal: &principal,
            record: &record,
            tool: "write_sheet",
            arguments: r#"{"path":"a.xlsx"}"#,
            status: CallStatus::Succeeded,
            may_change: number.is_multiple_of(2),
            rule: Some("rule 1"),
            approver: None,
        };
        pending.push_call(&call, ["excel"].into_iter());
    }
}

/// A log with batches of these sizes, and a checkpoint after every third batch.
fn log_of(sizes: &[u64]) -> Log {
    let (mut chain, mut batches, mut checkpoints) = (Chain::empty(&LOG), Vec::new(), Vec::new());
    for (index, size) in sizes.iter().enumerate() {
        let mut pending = PendingRecords::default();
        (0..*size).for_each(|offset| push(&mut pending, chain.sequence + 1 + offset));
        batches.push(chain.extend(&pending).unwrap());
        if index % 3 == 2 {
            checkpoints.push(checkpoint(CheckpointKind::Progress, chain));
        }
    }
    let end = Some(LogEnd { sequence: chain.sequence, hash: chain.hash });
    let head = checkpoints.last().cloned();
    Log { evidence: LogEvidence { log: Some(LOG), end, checkpoints, head }, batches }
}

impl Log {
    fn verify(&self) -> Result<Summary, Tampering> {
        verify(&self.evidence, &self.batches, &keys()).map(Option::unwrap)
    }

    fn export(&self) -> String {
        let mut export = JsonLinesExport::new(&self.evidence).unwrap();
        let mut text = export.header();
        self.batches.iter().for_each(|batch| export.push_batch(batch, &mut text));
        text + &export.footer()
    }

    fn last(&self) -> u64 {
        self.batches.last().unwrap().last_sequence
    }

    /// The place of a record: the batch, and the record in it.
    fn place(&self, sequence: u64) -> (usize, usize) {
        let batch = self.batches.iter().position(|batch| batch.last_sequence >= sequence).unwrap();
        (batch, usize::try_from(sequence - self.batches[batch].first_sequence).unwrap())
    }

    /// Recomputes all hashes, columns and the end, as an attacker without the signing key could.
    fn recompute(&mut self) {
        let mut chain = Chain::empty(&LOG);
        for batch in &mut self.batches {
            let mut pending = PendingRecords::default();
            for record in batch.records() {
                pending.push_event(&record.event);
            }
            *batch = chain.extend(&pending).unwrap();
        }
        self.evidence.end = Some(LogEnd { sequence: chain.sequence, hash: chain.hash });
    }
}

/// The stored records of a batch: length, encoding and kept hash.
fn entries(batch: &StoredBatch) -> Vec<Vec<u8>> {
    let (mut rest, mut all) = (batch.entries.as_slice(), Vec::new());
    while !rest.is_empty() {
        let length = usize::try_from(u32::from_le_bytes(rest[..4].try_into().unwrap())).unwrap() + 12;
        all.push(rest[..length].to_vec());
        rest = &rest[length..];
    }
    all
}

fn set_entries(batch: &mut StoredBatch, entries: &[Vec<u8>]) {
    batch.entries = entries.concat();
}

fn sizes() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(1..12_u64, 6..16)
}

/// A record of the log by a number between 0 and 1.
fn pick(log: &Log, share: f64) -> u64 {
    1 + ((log.last() - 1) as f64 * share) as u64
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn untouched_log_verifies(sizes in sizes()) {
        let log = log_of(&sizes);
        let summary = log.verify().unwrap();
        prop_assert_eq!((summary.first, summary.last, summary.records()), (1, sizes.iter().sum(), sizes.iter().sum()));
        prop_assert_eq!(summary.confirmed, log.evidence.head.as_ref().unwrap().sequence);
        let records: Vec<AuditRecord> = log.batches.iter().flat_map(StoredBatch::records).collect();
        prop_assert!(records.iter().map(|record| record.sequence).eq(1..=log.last()));
        let exported = verify_json_lines(log.export().as_bytes(), &keys()).unwrap().unwrap();
        prop_assert_eq!((exported.hash, exported.last), (summary.hash, summary.last));
    }

    #[test]
    fn changed_byte_is_found_and_named(sizes in sizes(), share in 0.0..1.0, at in any::<prop::sample::Index>(), bit in 0..8_u8) {
        let mut log = log_of(&sizes);
        let sequence = pick(&log, share);
        let (batch, place) = log.place(sequence);
        let mut all = entries(&log.batches[batch]);
        // Not the length, whose change moves all later records of the batch.
        let byte = 4 + at.index(all[place].len() - 4);
        all[place][byte] ^= 1 << bit;
        set_entries(&mut log.batches[batch], &all);
        let found = log.verify().unwrap_err();
        let named = match found {
            Tampering::Changed { sequence } => sequence,
            // A changed number may look like a record in the wrong place.
            Tampering::Missing { first, .. } => first,
            Tampering::Reordered { expected, .. } => expected,
            ref other => panic!("{other:?}"),
        };
        prop_assert_eq!(named, sequence);
    }

    #[test]
    fn changed_length_is_found(sizes in sizes(), share in 0.0..1.0, bit in 0..32_u32) {
        let mut log = log_of(&sizes);
        let sequence = pick(&log, share);
        let (batch, place) = log.place(sequence);
        let mut all = entries(&log.batches[batch]);
        let length = u32::from_le_bytes(all[place][..4].try_into().unwrap()) ^ (1 << bit);
        all[place][..4].copy_from_slice(&length.to_le_bytes());
        set_entries(&mut log.batches[batch], &all);
        prop_assert_eq!(log.verify(), Err(Tampering::Changed { sequence }));
    }

    #[test]
    fn removed_records_are_named(sizes in sizes(), share in 0.0..1.0, count in 1..30_u64) {
        let mut log = log_of(&sizes);
        let first = pick(&log, share);
        let last = (first + count - 1).min(log.last());
        for sequence in (first..=last).rev() {
            let (batch, place) = log.place(sequence);
            let mut all = entries(&log.batches[batch]);
            all.remove(place);
            set_entries(&mut log.batches[batch], &all);
        }
        let batch_end = log.batches[log.place(first).0].last_sequence;
        match log.verify().unwrap_err() {
            // Later batches of removed records are empty, which the first finding does not tell.
            Tampering::Missing { first: found, last: until } => {
                prop_assert_eq!(found, first);
                prop_assert!(until == last || until == batch_end, "{} {} {}", until, last, batch_end);
            }
            other => prop_assert!(false, "{:?}", other),
        }
    }

    #[test]
    fn removed_batches_are_named(sizes in sizes(), at in any::<prop::sample::Index>(), count in 1..4_usize) {
        let mut log = log_of(&sizes);
        let first = at.index(log.batches.len());
        let end = (first + count).min(log.batches.len());
        let removed: Vec<StoredBatch> = log.batches.drain(first..end).collect();
        let (from, to) = (removed[0].first_sequence, removed.last().unwrap().last_sequence);
        let expected = match first == log.batches.len() {
            true => Tampering::Truncated { last: from - 1, covered: to },
            false => Tampering::Missing { first: from, last: to },
        };
        prop_assert_eq!(log.verify(), Err(expected));
    }

    #[test]
    fn swapped_records_are_named(sizes in sizes(), one in 0.0..1.0, other in 0.0..1.0) {
        let mut log = log_of(&sizes);
        let (one, other) = (pick(&log, one), pick(&log, other));
        prop_assume!(one != other);
        let (first, second) = (one.min(other), one.max(other));
        let ((first_batch, first_place), (second_batch, second_place)) = (log.place(first), log.place(second));
        let (early, late) =
            (entries(&log.batches[first_batch])[first_place].clone(), entries(&log.batches[second_batch])[second_place].clone());
        for (batch, place, entry) in [(first_batch, first_place, late), (second_batch, second_place, early)] {
            let mut all = entries(&log.batches[batch]);
            all[place] = entry;
            set_entries(&mut log.batches[batch], &all);
        }
        prop_assert_eq!(log.verify(), Err(Tampering::Reordered { expected: first, found: second }));
    }

    #[test]
    fn repeated_record_is_found(sizes in sizes(), share in 0.0..1.0) {
        let mut log = log_of(&sizes);
        let sequence = pick(&log, share);
        let (batch, place) = log.place(sequence);
        let mut all = entries(&log.batches[batch]);
        all.insert(place, all[place].clone());
        set_entries(&mut log.batches[batch], &all);
        prop_assert_eq!(log.verify(), Err(Tampering::Reordered { expected: sequence + 1, found: sequence }));
    }

    /// An attacker who changes a record and recomputes everything cannot sign the checkpoints.
    #[test]
    fn rewritten_records_are_found_by_the_next_checkpoint(sizes in sizes(), share in 0.0..1.0) {
        let mut log = log_of(&sizes);
        let covered = log.evidence.head.as_ref().unwrap().sequence;
        let sequence = 1 + ((covered - 1) as f64 * share) as u64;
        let (batch, place) = log.place(sequence);
        let mut pending = PendingRecords::default();
        for (index, record) in log.batches[batch].records().enumerate() {
            let mut event = record.event;
            if index == place {
                event.principal = "key:someone-else".into();
            }
            pending.push_event(&event);
        }
        log.batches[batch] = Chain { sequence: 0, hash: LOG.genesis() }.extend(&pending).unwrap();
        log.recompute();
        match log.verify().unwrap_err() {
            Tampering::Rewritten { after, until } => prop_assert!(after < sequence && sequence <= until),
            other => prop_assert!(false, "{:?}", other),
        }
        prop_assert!(verify_json_lines(log.export().as_bytes(), &keys()).unwrap().is_err());
    }

    /// The end is cut off together with its checkpoints, and the stated end is set back: only the head file tells.
    #[test]
    fn truncation_with_its_checkpoints_is_found_by_the_head(sizes in sizes(), keep in 1..5_usize) {
        let mut log = log_of(&sizes);
        let covered = log.evidence.head.as_ref().unwrap().sequence;
        log.batches.truncate(keep);
        let last = log.last();
        prop_assume!(last < covered);
        log.recompute();
        log.evidence.checkpoints.retain(|one| one.sequence <= last);
        prop_assert_eq!(log.verify(), Err(Tampering::Truncated { last, covered }));
        log.evidence.head = None;
        prop_assert!(log.verify().is_ok(), "without the head file it cannot be found");
    }

    #[test]
    fn changed_checkpoint_is_found(sizes in sizes(), at in any::<prop::sample::Index>(), what in 0..5_u8) {
        let mut log = log_of(&sizes);
        log.evidence.head = None;
        let place = at.index(log.evidence.checkpoints.len());
        let changed = &mut log.evidence.checkpoints[place];
        match what {
            0 => changed.sequence = changed.sequence.saturating_sub(1),
            1 => changed.hash.0[3] ^= 1,
            2 => changed.micros += 1,
            3 => changed.signature[7] ^= 1,
            _ => changed.kind = CheckpointKind::Base,
        }
        let (sequence, key) = (changed.sequence, changed.key.clone());
        let problem = SignatureProblem::Invalid;
        prop_assert_eq!(log.verify(), Err(Tampering::BadSignature { sequence, key, problem }));
    }

    /// No byte of an export can be changed.
    #[test]
    fn changed_byte_of_an_export_is_found(at in any::<prop::sample::Index>(), byte in 0..128_u8) {
        let mut export = log_of(&[3, 4, 2, 5]).export().into_bytes();
        let at = at.index(export.len());
        prop_assume!(export[at] != byte);
        export[at] = byte;
        prop_assert!(verify_json_lines(export.as_slice(), &keys()).unwrap().is_err());
    }

    #[test]
    fn changed_lines_of_an_export_are_found(sizes in sizes(), one in any::<prop::sample::Index>(), other in any::<prop::sample::Index>(), how in 0..4_u8) {
        let export = log_of(&sizes).export();
        let mut lines: Vec<&str> = export.split_inclusive('\n').collect();
        let (one, other) = (one.index(lines.len()), other.index(lines.len()));
        prop_assume!(one != other);
        match how {
            0 => drop(lines.remove(one)),
            1 => lines.swap(one, other),
            2 => lines.insert(one, lines[other]),
            _ => lines.truncate(one),
        }
        let is_checkpoint = |line: &&str| line.starts_with(r#"{"type":"checkpoint""#);
        // A checkpoint that is removed, repeated or moved before its record does not change the log.
        let changed: Vec<&str> = lines.iter().copied().filter(|line| !is_checkpoint(line)).collect();
        prop_assume!(!export.split_inclusive('\n').filter(|line| !is_checkpoint(line)).eq(changed));
        prop_assert!(verify_json_lines(lines.concat().as_bytes(), &keys()).unwrap().is_err());
    }
}

#[test]
fn summary_columns_are_checked() {
    let changes: [fn(&mut StoredBatch); 6] = [
        |batch| batch.first_micros -= 1,
        |batch| batch.last_micros += 1,
        |batch| batch.previous_hash.0[0] ^= 1,
        |batch| batch.last_hash.0[0] ^= 1,
        |batch| batch.principals = None,
        |batch| batch.principals = Some("\u{1f}key:x\u{1f}".to_owned()),
    ];
    for (index, change) in changes.into_iter().enumerate() {
        for place in [0, 2] {
            let mut log = log_of(&[3, 4, 5, 6]);
            change(&mut log.batches[place]);
            let (first, last) = (log.batches[place].first_sequence, log.batches[place].last_sequence);
            assert_eq!(log.verify(), Err(Tampering::ChangedSummary { first, last }), "{index}");
        }
    }
}

#[test]
fn records_of_another_log_are_foreign() {
    let mut log = log_of(&[3, 4]);
    let other = LogId([6; 16]);
    log.evidence = LogEvidence { log: Some(other), end: log.evidence.end, ..LogEvidence::default() };
    assert_eq!(log.verify(), Err(Tampering::ForeignChain { sequence: 1 }));
    let mut log = log_of(&[3, 4, 5]);
    log.evidence.log = Some(other);
    assert_eq!(log.verify(), Err(Tampering::ForeignChain { sequence: 12 }), "by its checkpoint");
    let emptied = LogEvidence { head: log.evidence.head, ..LogEvidence::default() };
    let nothing: [StoredBatch; 0] = [];
    let found = verify(&emptied, nothing, &keys());
    assert_eq!(found, Err(Tampering::Truncated { last: 0, covered: 12 }), "the whole log was removed");
}

#[test]
fn checkpoints_of_other_keys_are_rejected() {
    let mut log = log_of(&[3, 4, 5, 6]);
    let other = SigningKey::from_text(&SigningKey::generate().unwrap()).unwrap();
    let forged = other.sign(log.evidence.checkpoints[0].clone());
    let id = other.public().id();
    log.evidence.checkpoints = vec![forged.clone()];
    let expected = Tampering::BadSignature { sequence: 12, key: id, problem: SignatureProblem::UnknownKey };
    assert_eq!(log.verify(), Err(expected));
    // The key is accepted once it is listed.
    let lines = format!("{} # own\n\n# other hub\n{}\n", key().public(), other.public());
    let both = TrustedKeys::from_lines(&lines);
    assert_eq!(both.keys().len(), 2);
    assert!(verify(&log.evidence, &log.batches, &both).is_ok());
    // With the id of a trusted key, the signature does not fit.
    log.evidence.checkpoints = vec![Checkpoint { key: key().public().id(), ..forged }];
    let problem = SignatureProblem::Invalid;
    let expected = Tampering::BadSignature { sequence: 12, key: key().public().id(), problem };
    assert_eq!(log.verify(), Err(expected));
}

#[test]
fn deletion_of_old_records_needs_a_signed_base() {
    let log = log_of(&[3, 4, 5, 6, 7]);
    let mut purged = log.clone();
    purged.batches.drain(..2);
    assert_eq!(purged.verify(), Err(Tampering::Missing { first: 1, last: 7 }), "without a base");
    let base = |batch: &StoredBatch| {
        checkpoint(CheckpointKind::Base, Chain { sequence: batch.last_sequence, hash: batch.last_hash })
    };
    purged.evidence.checkpoints.push(base(&log.batches[1]));
    let summary = purged.verify().unwrap();
    assert_eq!((summary.first, summary.last, summary.records()), (8, 25, 18));
    let exported = verify_json_lines(purged.export().as_bytes(), &keys()).unwrap().unwrap();
    assert_eq!((exported.first, exported.hash), (8, summary.hash));
    // The base of an earlier deletion does not justify a later one.
    purged.batches.remove(0);
    assert_eq!(purged.verify(), Err(Tampering::Missing { first: 8, last: 12 }));
    // All records may be deleted.
    purged.batches.clear();
    purged.evidence.checkpoints = vec![base(&log.batches[4])];
    assert_eq!(purged.verify().map(|summary| summary.records()), Ok(0));
}

#[test]
fn records_added_behind_the_stated_end_are_found() {
    let mut log = log_of(&[3, 4]);
    log.evidence.end = Some(LogEnd { sequence: 3, hash: log.batches[0].last_hash });
    assert_eq!(log.verify(), Err(Tampering::Added { first: 4, last: 7 }));
    log.evidence.end = Some(LogEnd { sequence: 7, hash: log.batches[0].last_hash });
    assert_eq!(log.verify(), Err(Tampering::Rewritten { after: 0, until: 7 }));
}

#[test]
fn hundred_thousand_records_verify() {
    let log = log_of(&[1_000; 100]);
    let summary = log.verify().unwrap();
    assert_eq!((summary.records(), summary.checkpoints), (100_000, 34), "33, and the head");
}
