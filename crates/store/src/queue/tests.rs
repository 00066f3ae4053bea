//! Scheduling and grouping of recorded calls, and handling of rejected ones.

use super::*;

use crate::blocks::tests::call;
use crate::options::DetailLevel;

fn queue() -> Queue {
    Queue::new(WriterWaker::Task(Notify::new()), Recorder::new(DetailLevel::All, None, false))
}

fn record(queue: &Queue) {
    let (start, end) = call("t");
    queue.record(&start, &end);
}

fn sizes(next: &WriterAction) -> (usize, usize, u64) {
    let WriterAction::Write(group) = next else { panic!("{next:?}") };
    let counted = group.recorded.counted.sorted().iter().map(|one| one.tally().total()).sum();
    (group.pending.len(), group.recorded.blocks.iter().map(|block| block.calls).sum(), counted)
}

fn recorded(next: WriterAction) -> RecordedCalls {
    let WriterAction::Write(group) = next else { panic!("{next:?}") };
    group.recorded
}

#[test]
fn gathers_recorded_calls_into_one_write() {
    let queue = queue();
    let now = Instant::now();
    assert!(matches!(queue.next(now), WriterAction::Wait(None)));
    for _ in 0..1_000 {
        record(&queue);
    }
    let WriterAction::Wait(Some(due)) = queue.next(now) else { panic!("not gathered") };
    assert!(due >= now && due <= Instant::now() + GATHER_INTERVAL);
    let next = queue.next(due);
    assert_eq!(sizes(&next), (0, 1_000, 0));
    queue.written(&recorded(next));
    assert!(matches!(queue.next(due), WriterAction::Wait(None)));
    record(&queue);
    assert!(matches!(queue.next(now), WriterAction::Wait(Some(_))), "due again");
}

#[tokio::test]
async fn urgent_write_skips_recorded_calls_and_flush_takes_all() {
    let queue = Arc::new(queue());
    let write = |what: Write| {
        let queue = Arc::clone(&queue);
        async move { queue.write(what).await.unwrap() }
    };
    record(&queue);
    let mut waiting = Box::pin(write(Write::Begin(call("t").0)));
    assert!(futures_util::poll!(&mut waiting).is_pending());
    assert_eq!(sizes(&queue.next(Instant::now() - GATHER_INTERVAL)), (1, 0, 0));
    let mut waiting = Box::pin(write(Write::Settle));
    assert!(futures_util::poll!(&mut waiting).is_pending());
    assert_eq!(sizes(&queue.next(Instant::now() - GATHER_INTERVAL)), (1, 1, 0));
}

#[test]
fn put_back_calls_are_written_again_in_order() {
    let queue = queue();
    record(&queue);
    let later = Instant::now() + 2 * GATHER_INTERVAL;
    let first = recorded(queue.next(later));
    let record_of = |recorded: &RecordedCalls| recorded.blocks[0].summary.first.clone();
    let oldest = record_of(&first);
    record(&queue);
    queue.put_back(first);
    assert!(matches!(queue.next(Instant::now()), WriterAction::Wait(Some(_))), "not at once");
    let again = queue.next(Instant::now() + RETRY_INTERVAL);
    assert_eq!(sizes(&again), (0, 2, 0));
    let again = recorded(again);
    assert_eq!(record_of(&again), oldest);
    assert_eq!(queue.lost(), 0);
    queue.drop_details(again);
    assert_eq!(queue.lost(), 2);
    assert_eq!(sizes(&queue.next(Instant::now() + RETRY_INTERVAL)), (0, 0, 2));
}

#[test]
fn closed_queue_drains_once_and_ends() {
    let queue = queue();
    record(&queue);
    queue.close();
    let next = queue.next(Instant::now());
    assert_eq!(sizes(&next), (0, 1, 0));
    queue.put_back(recorded(next));
    let next = queue.next(Instant::now());
    assert_eq!(sizes(&next), (0, 0, 1), "without a journal it is at least counted");
    queue.put_back(recorded(next));
    assert!(matches!(queue.next(Instant::now()), WriterAction::End));
}

#[tokio::test]
async fn closed_queue_rejects_writes() {
    let queue = queue();
    queue.close();
    assert!(queue.write(Write::Settle).await.is_err());
    record(&queue);
    assert_eq!(queue.lost(), 1);
}

#[tokio::test]
async fn begin_without_a_waiting_caller_is_dropped_from_its_group() {
    let queue = Arc::new(queue());
    let mut waiting = [Write::Begin(call("t").0), Write::Begin(call("t").0), Write::MoveIntents]
        .map(|write| Box::pin(queue.write(write)));
    for one in &mut waiting {
        assert!(futures_util::poll!(one).is_pending());
    }
    let [abandoned, remaining, other] = waiting;
    drop(abandoned);
    drop(other);
    let WriterAction::Write(mut group) = queue.next(Instant::now()) else { panic!("nothing to write") };
    assert_eq!(group.pending.len(), 3);
    group.drop_abandoned();
    let left: Vec<bool> = group.pending.iter().map(|one| matches!(one.write, Write::Begin(_))).collect();
    assert_eq!(left, [true, false], "only beginnings depend on their caller");
    drop(remaining);
}

/// An approval is not taken for a caller that has stopped waiting, since no other caller would receive it then.
#[tokio::test]
async fn abandoned_claim_of_an_approval_is_not_written() {
    use crate::responses::ApprovalClaim;
    use toolhub_core::call_log::RecordId;

    let queue = queue();
    let claim = || {
        let (id, principal) = ("mcpr_1".to_owned(), "key:ann".to_owned());
        Write::Responses(ResponseWrite::ClaimApproval(ApprovalClaim {
            key: RecordId::generate(),
            id,
            principal,
        }))
    };
    let mut waiting = Box::pin(queue.write(claim()));
    assert!(futures_util::poll!(&mut waiting).is_pending());
    let mut abandoned = Box::pin(queue.write(claim()));
    assert!(futures_util::poll!(&mut abandoned).is_pending());
    drop(abandoned);
    let WriterAction::Write(mut group) = queue.next(Instant::now()) else { panic!("nothing to write") };
    assert_eq!(group.pending.len(), 2);
    group.drop_abandoned();
    assert_eq!(group.pending.len(), 1);
    assert!(!group.pending[0].reply.is_closed());
}
