//! Runs that are repeated from their journal: answered calls are not sent again, and unknown ones never.

use std::future::Future as _;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::task::{Context, Waker};
use std::time::Duration;

use serde_json::json;
use toolhub_core::BoxFuture;
use toolhub_core::lang::Lang;
use toolhub_script::{
    CallStatus, EntryDurability, FailureKind, FileJournal, Journal, JournalEntry, Script, ScriptReport,
};

use super::harness::{TestTools, failed, runner, value};

/// A journal that fails after some entries, as if the hub had been killed at that moment.
struct InterruptedJournal<'a> {
    journal: &'a mut FileJournal,
    entries_left: usize,
}

impl Journal for InterruptedJournal<'_> {
    fn take_entries(&mut self) -> Vec<JournalEntry> {
        self.journal.take_entries()
    }

    fn append<'b>(
        &'b mut self,
        entry: &'b JournalEntry,
        durability: EntryDurability,
    ) -> BoxFuture<'b, io::Result<()>> {
        if self.entries_left == 0 {
            return Box::pin(std::future::ready(Err(io::Error::other("the hub ends here"))));
        }
        self.entries_left -= 1;
        self.journal.append(entry, durability)
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.entries_left {
            0 => Err(io::Error::other("the hub ends here")),
            _ => self.journal.flush(),
        }
    }
}

async fn run_until(path: &Path, code: &str, entries: usize, tools: &TestTools) -> ScriptReport {
    let mut file = FileJournal::open(path).unwrap();
    let mut journal = InterruptedJournal { journal: &mut file, entries_left: entries };
    runner().run(&Script::new(code), tools, Some(&mut journal)).await
}

async fn run_again(path: &Path, code: &str, tools: &TestTools) -> ScriptReport {
    let mut journal = FileJournal::open(path).unwrap();
    runner().run(&Script::new(code), tools, Some(&mut journal)).await
}

const CODE: &str = "const seen = [Math.random(), Date.now()];
for (let i = 0; i < 4; i++) {
  const [a, b] = await Promise.all([tools.test.echo({ i, r: Math.random() }), tools.test.slow({ ms: 5, i })]);
  seen.push(a, b);
  await sleep(2);
}
seen.push(Date.now(), Math.random());
return seen";

#[tokio::test]
async fn an_interrupted_run_continues_where_it_was() {
    // Without interruption: started, 8 × (begun, answered), 4 × woken, finished.
    let whole = 1 + 16 + 4 + 1;
    for entries in 0..=whole {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let first = TestTools::default();
        let report = run_until(&path, CODE, entries, &first).await;
        let made = first.calls.lock().unwrap().clone();
        match entries + 1 < whole {
            true => drop(failed(&report, FailureKind::Journal)),
            // The last entry is the end, without which the run has its value all the same.
            false => assert_eq!(report.calls.len(), 8, "{entries}: {}", report.notes(Lang::En)),
        }
        let second = TestTools::default();
        let again = run_again(&path, CODE, &second).await;
        let made_again = second.calls.lock().unwrap().clone();
        match again.failure().map(|failure| failure.kind) {
            // A call was begun and has no answer: nothing is called.
            Some(FailureKind::Unknown) => {
                assert!(made_again.is_empty(), "{entries}");
                assert!(again.notes(Lang::En).contains("may have run"), "{}", again.notes(Lang::En));
            }
            Some(kind) => panic!("{entries}: {kind:?} {}", again.notes(Lang::En)),
            None => {
                let mut all: Vec<_> = made.iter().chain(&made_again).cloned().collect();
                assert_eq!(all.len(), 8, "{entries}: every call once");
                all.sort_by_key(|(name, arguments)| (arguments["i"].as_u64(), name.clone()));
                all.dedup_by_key(|(name, arguments)| (arguments["i"].as_u64(), name.clone()));
                assert_eq!(all.len(), 8, "{entries}: no call twice");
                let seen = value(&again);
                assert_eq!(seen[10].as_i64().unwrap() - seen[1].as_i64().unwrap(), 8, "{entries}");
                assert_eq!(again.calls.len(), 8);
                assert!(again.calls.iter().all(|call| call.status == CallStatus::Succeeded));
            }
        }
    }
}

#[tokio::test]
async fn a_finished_run_is_not_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let code = "await Promise.race([tools.test.never({}), sleep(1)]); console.log('once'); return await tools.test.echo({ r: Math.random() })";
    let tools = TestTools::default();
    let first = run_again(&path, code, &tools).await;
    let again = run_again(&path, code, &tools).await;
    assert_eq!(value(&first), value(&again));
    assert_eq!((&first.calls, &first.log), (&again.calls, &again.log));
    assert_eq!(tools.calls.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn repeats_the_order_in_which_answers_came() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let code = "const order = [];
        await Promise.all([60, 5, 30].map(async (ms) => { await tools.test.slow({ ms }); order.push(ms) }));
        await tools.test.echo({ order });
        return order";
    // Until the call of `echo` would begin.
    let report = run_until(&path, code, 7, &TestTools::default()).await;
    failed(&report, FailureKind::Journal);
    let tools = TestTools::default();
    let again = run_again(&path, code, &tools).await;
    assert_eq!(value(&again), json!([5, 30, 60]));
    assert_eq!(tools.names(), ["test_echo"]);
}

#[tokio::test]
async fn a_run_that_does_something_else_sends_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let interrupted = |name: &str| folder.path().join(name);
    let code = "await tools.test.echo({ a: 1 }); await sleep(1); await tools.test.fail({})";
    // Another script, and the same script with another journal of it.
    let path = interrupted("other script");
    run_until(&path, code, 3, &TestTools::default()).await;
    let tools = TestTools::default();
    let text = failed(&run_again(&path, "return 1", &tools).await, FailureKind::Diverged);
    assert!(text.contains("another script"), "{text}");
    // The recorded call has other arguments, or is of another tool.
    for (from, to, expect) in [
        ("{\"a\":1}", "{\"a\":2}", "with other arguments"),
        ("\"tool\":\"test_echo\"", "\"tool\":\"calculate\"", "was `calculate` and not `test_echo`"),
        ("{\"woken\":{\"id\":1}}", "{\"woken\":{\"id\":7}}", "did not make all calls"),
    ] {
        let path = interrupted(&format!("changed {from}").replace(['/', '\\'], "_"));
        // The answer of the second call stores the end of the sleep, too.
        run_until(&path, code, 6, &TestTools::default()).await;
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{from}: {text}");
        std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
        let tools = TestTools::default();
        let report = run_again(&path, code, &tools).await;
        let shown = failed(&report, FailureKind::Diverged);
        assert!(shown.contains(expect), "{from}: {shown}");
        assert!(tools.calls.lock().unwrap().is_empty(), "{from}");
    }
}

#[tokio::test]
async fn a_dropped_run_is_unknown_and_its_calls_are_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let tools = TestTools::default();
    {
        let mut journal = FileJournal::open(&path).unwrap();
        let runner = runner();
        let script = Script::new("await tools.test.never({ a: 1 })");
        let mut run = Box::pin(runner.run(&script, &tools, Some(&mut journal)));
        let called = async {
            while tools.calls.lock().unwrap().is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            _ = &mut run => panic!("it ended"),
            () = called => {}
        }
        assert!(run.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    assert_eq!(tools.dropped.load(Ordering::SeqCst), 1);
    let text =
        failed(&run_again(&path, "await tools.test.never({ a: 1 })", &tools).await, FailureKind::Unknown);
    assert!(text.contains("1. `test_never`"), "{text}");
    assert_eq!(tools.calls.lock().unwrap().len(), 1);
}

/// Counts how often entries are stored.
struct CountingJournal<'a> {
    journal: &'a mut FileJournal,
    stored: usize,
    appended: usize,
}

impl Journal for CountingJournal<'_> {
    fn take_entries(&mut self) -> Vec<JournalEntry> {
        self.journal.take_entries()
    }

    fn append<'b>(
        &'b mut self,
        entry: &'b JournalEntry,
        durability: EntryDurability,
    ) -> BoxFuture<'b, io::Result<()>> {
        self.appended += 1;
        self.stored += usize::from(durability != EntryDurability::Buffered);
        self.journal.append(entry, durability)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stored += 1;
        self.journal.flush()
    }
}

#[tokio::test]
async fn calls_that_only_read_are_stored_together() {
    let folder = tempfile::tempdir().unwrap();
    let mut file = FileJournal::open(&folder.path().join("journal")).unwrap();
    let mut journal = CountingJournal { journal: &mut file, stored: 0, appended: 0 };
    let code = "for (let i = 0; i < 90; i++) await tools.calculate({ i }); return 'read'";
    let report = runner().run(&Script::new(code), &TestTools::default(), Some(&mut journal)).await;
    assert_eq!(value(&report), json!("read"));
    // Started, 90 × (begun, answered), finished.
    assert_eq!(journal.appended, 182);
    // At most one write per 50 ms beside the first and the last entry.
    let limit = 3 + report.duration.as_millis() / 50;
    assert!(journal.stored as u128 <= limit, "{} of {limit}", journal.stored);
}

#[tokio::test]
async fn a_call_that_only_reads_is_made_again_and_a_change_is_not() {
    let code = "const seen = [];
        for (let i = 0; i < 3; i++) { await tools.calculate({ i }); seen.push(i); await tools.test.echo({ i }) }
        await tools.calculate({ i: 3 }); seen.push(3);
        return seen";
    // Started, 3 × (begun, answered) of each tool, the last read, finished.
    let whole = 1 + 3 * 4 + 2 + 1;
    for entries in 0..=whole {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let tools = TestTools::default();
        run_until(&path, code, entries, &tools).await;
        let changes_before = tools.names().iter().filter(|name| *name == "test_echo").count();
        let second = TestTools::default();
        let again = run_again(&path, code, &second).await;
        let changes = second.names().iter().filter(|name| *name == "test_echo").count();
        match again.failure().map(|failure| failure.kind) {
            Some(FailureKind::Unknown) => {
                assert!(
                    second.names().is_empty() && again.notes(Lang::En).contains("test_echo"),
                    "{entries}"
                );
            }
            Some(kind) => panic!("{entries}: {kind:?} {}", again.notes(Lang::En)),
            None => {
                assert_eq!(value(&again), json!([0, 1, 2, 3]), "{entries}");
                assert_eq!(changes_before + changes, 3, "{entries}: every change once");
            }
        }
    }
}
