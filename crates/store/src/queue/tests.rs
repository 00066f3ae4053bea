//! What is written when, and what is only counted.

use super::*;

use toolhub_core::memory::{AttemptNote, AttemptStatus, CallEnd, CallStart, RecordId, Status};
use toolhub_core::outcome::AttemptEnd;
use toolhub_core::{CallId, RawJson, Source, ToolName};

fn note(output: usize) -> Note {
    let (record, tool) = (RecordId::fresh(), ToolName::new("t"));
    let took = Duration::from_millis(1);
    let status = AttemptStatus::Succeeded;
    let attempt = AttemptNote { source: Source::Native, tool: tool.clone(), status, took, error: None };
    Note {
        start: CallStart {
            record: record.clone(),
            call: CallId::fresh(),
            tool,
            arguments: RawJson::empty_object(),
            conversation: None,
            request: None,
            strategy: String::new(),
            candidates: Vec::new(),
            may_change: false,
            at: SystemTime::now(),
        },
        end: CallEnd {
            record,
            status: Status::Succeeded,
            took,
            error: None,
            sources: Vec::new(),
            attempts: vec![attempt],
            output: Some(RawJson::from("x".repeat(output))),
        },
    }
}

fn queue() -> Queue {
    Queue::new(Bell::Task(Notify::new()))
}

fn sizes(next: &Next) -> (usize, usize, u64) {
    let Next::Write(group) = next else { panic!("{next:?}") };
    let counted = group.counted.sorted().iter().map(|one| one.tally().total()).sum();
    (group.urgent.len(), group.notes.len(), counted)
}

#[test]
fn notes_are_gathered_written_at_leisure_and_then_rested() {
    let queue = queue();
    let now = Instant::now();
    assert!(matches!(queue.next(now), Next::Wait(None)));
    for _ in 0..NOTES_AT_LEISURE + 10 {
        queue.note(note(1));
    }
    let Next::Wait(Some(due)) = queue.next(now) else { panic!("not gathered") };
    assert!(due >= now && due <= Instant::now() + GATHER);
    assert_eq!(sizes(&queue.next(due)), (0, NOTES_AT_LEISURE, 0));
    let took = Duration::from_millis(7);
    queue.wrote_notes(due, took);
    let Next::Wait(Some(rested)) = queue.next(due) else { panic!("no rest") };
    assert_eq!(rested, due + took * REST);
    assert_eq!(sizes(&queue.next(rested)), (0, 10, 0));
    assert!(matches!(queue.next(rested), Next::Wait(None)));
}

#[tokio::test]
async fn who_waits_comes_at_once_and_takes_few_notes_along() {
    let queue = Arc::new(queue());
    let later = Instant::now() + 2 * GATHER;
    let write = |what: Write| {
        let queue = Arc::clone(&queue);
        async move { queue.write(what).await.unwrap() }
    };
    let mut waiting = Box::pin(write(Write::Begin(note(1).start)));
    assert!(futures_util::poll!(&mut waiting).is_pending());
    for _ in 0..100 {
        queue.note(note(1));
    }
    assert_eq!(sizes(&queue.next(Instant::now() - GATHER)), (1, 0, 0));
    let mut waiting = Box::pin(write(Write::Begin(note(1).start)));
    assert!(futures_util::poll!(&mut waiting).is_pending());
    assert_eq!(sizes(&queue.next(later)), (1, NOTES_ALONG, 0));
    let mut waiting = Box::pin(write(Write::Settle));
    assert!(futures_util::poll!(&mut waiting).is_pending());
    assert_eq!(sizes(&queue.next(Instant::now() - GATHER)), (1, 100 - NOTES_ALONG, 0));
}

#[test]
fn what_does_not_fit_is_counted() {
    let queue = queue();
    for _ in 0..NOTES + 3 {
        queue.note(note(1));
    }
    assert_eq!(queue.lost(), 3);
    queue.close();
    assert_eq!(sizes(&queue.next(Instant::now())), (0, NOTES, 3));
    assert!(matches!(queue.next(Instant::now()), Next::End));

    let queue = self::queue();
    queue.note(note(NOTE_BYTES / 2));
    queue.note(note(NOTE_BYTES / 2));
    queue.note(note(10));
    assert_eq!(queue.lost(), 1);
}

#[test]
fn in_a_flood_nothing_is_made_ready_in_vain_and_the_writer_rests_longer() {
    let queue = queue();
    let attempt = AttemptRecord {
        source: Source::Native,
        tool: ToolName::new("t"),
        took: Duration::from_millis(1),
        end: AttemptEnd::Succeeded,
    };
    for _ in 0..NOTES {
        assert!(queue.has_room());
        queue.note(note(1));
    }
    assert!(!queue.has_room());
    queue.count(std::slice::from_ref(&attempt), SystemTime::now());
    assert_eq!(queue.lost(), 1);
    let due = Instant::now() + 2 * GATHER;
    assert_eq!(sizes(&queue.next(due)), (0, NOTES_AT_LEISURE, 1));
    assert!(queue.has_room());
    let took = Duration::from_millis(7);
    queue.wrote_notes(due, took);
    let Next::Wait(Some(rested)) = queue.next(due) else { panic!("no rest") };
    assert_eq!(rested, due + took * REST_IN_A_FLOOD);
    // The flood is over: no detail was left out since.
    assert_eq!(sizes(&queue.next(rested)), (0, NOTES_AT_LEISURE, 0));
    queue.wrote_notes(rested, took);
    let Next::Wait(Some(again)) = queue.next(rested) else { panic!("no rest") };
    assert_eq!(again, rested + took * REST);

    // What is only counted is written too, with nothing else.
    let queue = self::queue();
    queue.count(&[attempt], SystemTime::now());
    assert_eq!(sizes(&queue.next(Instant::now() + GATHER)), (0, 0, 1));
}

#[test]
fn what_failed_is_counted_later_but_not_for_ever() {
    let queue = queue();
    queue.note(note(1));
    let later = Instant::now() + 2 * GATHER;
    let Next::Write(group) = queue.next(later) else { panic!("nothing due") };
    queue.only_count(&group.notes, group.counted);
    assert!(matches!(queue.next(Instant::now()), Next::Wait(Some(_))));
    assert_eq!(sizes(&queue.next(Instant::now() + RETRY)), (0, 0, 1));
    queue.close();
    queue.only_count(&[note(1)], Counted::default());
    assert!(matches!(queue.next(Instant::now()), Next::End));
}

#[tokio::test]
async fn a_closed_queue_takes_nothing_in() {
    let queue = queue();
    queue.close();
    assert!(queue.write(Write::Settle).await.is_err());
    queue.note(note(1));
    assert_eq!(queue.lost(), 1);
}
