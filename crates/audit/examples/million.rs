//! Chains and verifies one million records, and prints the times.

#![expect(clippy::print_stdout, reason = "the program reports on stdout")]
#![expect(clippy::expect_used, reason = "a benchmark: failures must be visible")]

use std::time::Instant;

use toolhub_audit::{
    CallFields, Chain, Checkpoint, CheckpointKind, LogEnd, LogEvidence, LogId, PendingRecords, SigningKey,
    TrustedKeys, verify,
};
use toolhub_core::call_log::CallStatus;

fn main() {
    let key = SigningKey::from_text(&SigningKey::generate().expect("random numbers")).expect("a key");
    let log = LogId::generate();
    let (mut chain, mut batches, mut checkpoints) = (Chain::empty(&log), Vec::new(), Vec::new());
    let started = Instant::now();
    for batch in 0..1_000_u64 {
        let mut pending = PendingRecords::default();
        for number in 0..1_000 {
            let record = format!("0a1b2c{:012}", batch * 1_000 + number);
            let call = CallFields {
                micros: 1_700_000_000_000_000 + batch * 1_000 + number,
                principal: "key:ci",
                record: &record,
                tool: "write_sheet",
                arguments: r#"{"path":"a.xlsx","rows":[1,2,3]}"#,
                status: CallStatus::Succeeded,
                may_change: true,
                rule: Some("rule 1"),
                approver: None,
            };
            pending.push_call(&call, ["excel"].into_iter());
        }
        batches.push(chain.extend(&pending).expect("records"));
        checkpoints.push(key.sign(Checkpoint {
            log,
            kind: CheckpointKind::Progress,
            sequence: chain.sequence,
            hash: chain.hash,
            micros: 1_700_000_000_000_000,
            key: String::new(),
            signature: Vec::new(),
        }));
    }
    println!("chained  1,000,000 records in {:?}", started.elapsed());
    let bytes: usize = batches.iter().map(|batch| batch.entries.len()).sum();
    println!("stored   {} bytes a record", bytes / 1_000_000);
    let end = Some(LogEnd { sequence: chain.sequence, hash: chain.hash });
    let head = checkpoints.last().cloned();
    let evidence = LogEvidence { log: Some(log), end, checkpoints, head };
    let started = Instant::now();
    let summary = verify(&evidence, &batches, &TrustedKeys::new([key.public()])).expect("an intact log");
    println!("verified {} records in {:?}", summary.map_or(0, |found| found.records()), started.elapsed());
}
