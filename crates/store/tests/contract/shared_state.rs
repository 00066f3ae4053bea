//! State that replicas share: one of many concurrent callers succeeds, entries of a principal are its own, and changes are
//! noticed by every store.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::Barrier;
use tokio::task::JoinSet;
use toolhub_core::RawJson;
use toolhub_core::approval::Approval;
use toolhub_core::ports::HubStore;
use toolhub_core::shared_state::{
    ChangedPart, CounterIncrement, EntryFilter, EntryReplacement, EntryRevision, NewEntry, ReplicaId,
    StateEntry, StateKind,
};
use toolhub_core::{Source, ToolName};

use crate::database::Database;

const KIND: StateKind = StateKind::HeldCall;
const CALLERS: usize = 50;

fn in_an_hour() -> SystemTime {
    SystemTime::now() + Duration::from_secs(3_600)
}

fn json(text: &str) -> RawJson {
    RawJson::parse(text).unwrap()
}

fn new_entry(id: &str) -> NewEntry {
    NewEntry {
        kind: KIND,
        id: id.to_owned(),
        scope: "key:ann".to_owned(),
        slot: None,
        value: json(r#"{"n": 12345678901234567890.10, "text": "审批\u0000"}"#),
        expires_at: in_an_hour(),
    }
}

fn replacement(id: &str, expected: &EntryRevision, value: &str) -> EntryReplacement {
    EntryReplacement {
        kind: KIND,
        id: id.to_owned(),
        expected: expected.clone(),
        slot: None,
        value: json(value),
        expires_at: in_an_hour(),
    }
}

async fn entry(store: &dyn HubStore, id: &str) -> Option<StateEntry> {
    store.entry(KIND, id).await.unwrap()
}

/// How many of many callers, half of them at each of two stores, succeed at the same time.
async fn successes<F, A>(stores: [&Arc<dyn HubStore>; 2], attempt: F) -> usize
where
    F: Fn(Arc<dyn HubStore>, usize) -> A,
    A: Future<Output = bool> + Send + 'static,
{
    let (barrier, mut callers) = (Arc::new(Barrier::new(CALLERS)), JoinSet::new());
    for number in 0..CALLERS {
        let (barrier, attempt) = (Arc::clone(&barrier), attempt(Arc::clone(stores[number % 2]), number));
        callers.spawn(async move {
            barrier.wait().await;
            attempt.await
        });
    }
    callers.join_all().await.into_iter().filter(|succeeded| *succeeded).count()
}

pub(crate) async fn entries_are_stored_verbatim_and_change_by_revision(database: Database) {
    let (store, other) = (database.open().await, database.open().await);
    let created = store.create_entry(new_entry("a")).await.unwrap().unwrap();
    assert!(other.create_entry(new_entry("a")).await.unwrap().is_none(), "the id is in use");
    let found = entry(&*other, "a").await.unwrap();
    assert_eq!((found.value.get(), found.scope.as_str()), (new_entry("a").value.get(), "key:ann"));
    assert_eq!(found.revision, created);
    let changed = other.replace_entry(replacement("a", &created, "1")).await.unwrap().unwrap();
    assert!(
        store.replace_entry(replacement("a", &created, "2")).await.unwrap().is_none(),
        "a stale revision"
    );
    assert!(!store.remove_entry(KIND, "a", &created).await.unwrap(), "a stale revision");
    assert_eq!(entry(&*store, "a").await.unwrap().value.get(), "1");
    assert!(store.entry(StateKind::Task, "a").await.unwrap().is_none(), "another kind");
    assert!(
        store
            .replace_entry(EntryReplacement { kind: StateKind::Task, ..replacement("a", &changed, "2") })
            .await
            .unwrap()
            .is_none()
    );
    assert!(store.remove_entry(KIND, "a", &changed).await.unwrap());
    assert!(entry(&*other, "a").await.is_none());
    assert!(!other.remove_entry(KIND, "a", &changed).await.unwrap(), "it was removed already");
    assert!(other.create_entry(new_entry("a")).await.unwrap().is_some(), "the id is free again");
    for (id, scope, slot) in
        [("a\0", "s", None), ("b", "s\0", None), ("b", "s", Some("\0")), ("b", "s", Some(""))]
    {
        let entry = NewEntry {
            id: id.to_owned(),
            scope: scope.to_owned(),
            slot: slot.map(str::to_owned),
            ..new_entry("x")
        };
        assert!(store.create_entry(entry).await.is_err(), "{id:?} {scope:?} {slot:?}");
    }
    assert!(entry(&*store, "a\0").await.is_none());
}

pub(crate) async fn one_of_many_callers_creates_changes_and_takes_an_entry(database: Database) {
    let (one, other) = (database.open().await, database.open().await);
    let stores = [&one, &other];
    let created =
        successes(
            stores,
            |store, _| async move { store.create_entry(new_entry("a")).await.unwrap().is_some() },
        );
    assert_eq!(created.await, 1);
    let in_slot = successes(stores, |store, number| async move {
        let entry = NewEntry { slot: Some("s".to_owned()), ..new_entry(&format!("s{number}")) };
        store.create_entry(entry).await.unwrap().is_some()
    });
    assert_eq!(in_slot.await, 1);
    let revision = entry(&*one, "a").await.unwrap().revision;
    let replaced = successes(stores, |store, number| {
        let change = replacement("a", &revision, &number.to_string());
        async move { store.replace_entry(change).await.unwrap().is_some() }
    });
    assert_eq!(replaced.await, 1);
    let taken =
        successes(stores, |store, _| async move { store.take_entry(KIND, "a").await.unwrap().is_some() });
    assert_eq!(taken.await, 1);
    assert!(entry(&*one, "a").await.is_none() && entry(&*other, "a").await.is_none());
}

pub(crate) async fn slots_have_one_entry_until_they_are_freed(database: Database) {
    let store = database.open().await;
    let in_slot = |id: &str| NewEntry { slot: Some("s".to_owned()), ..new_entry(id) };
    let first = store.create_entry(in_slot("a")).await.unwrap().unwrap();
    assert!(store.create_entry(in_slot("b")).await.unwrap().is_none());
    assert!(entry(&*store, "b").await.is_none());
    assert!(store.create_entry(NewEntry { kind: StateKind::Task, ..in_slot("b") }).await.unwrap().is_some());
    assert_eq!(store.entry_in_slot(KIND, "s").await.unwrap().unwrap().id, "a");
    store.replace_entry(replacement("a", &first, "1")).await.unwrap().unwrap();
    assert!(store.entry_in_slot(KIND, "s").await.unwrap().is_none());
    assert!(store.create_entry(in_slot("b")).await.unwrap().is_some());
    // An expired or taken entry frees its slot.
    database.tamper("UPDATE shared_state SET expires_at = 1 WHERE id = 'b'").await;
    assert!(store.entry_in_slot(KIND, "s").await.unwrap().is_none());
    assert!(store.create_entry(in_slot("c")).await.unwrap().is_some());
    assert!(store.take_entry(KIND, "c").await.unwrap().is_some());
    assert!(store.create_entry(in_slot("d")).await.unwrap().is_some());
}

pub(crate) async fn entries_of_a_principal_are_listed_and_trimmed(database: Database) {
    let store = database.open().await;
    let of = |id: String, scope: &str| NewEntry { scope: scope.to_owned(), ..new_entry(&id) };
    for number in 0..10 {
        store.create_entry(of(format!("ann{number}"), "key:ann")).await.unwrap().unwrap();
    }
    store.create_entry(of("bob".to_owned(), "key:bob")).await.unwrap().unwrap();
    let ids = async |filter: EntryFilter<'_>| -> Vec<String> {
        store.entries(filter).await.unwrap().into_iter().map(|entry| entry.id).collect()
    };
    let all = EntryFilter::all(KIND);
    assert_eq!(ids(all.clone()).await.len(), 11);
    let own: Vec<String> = (0..10).map(|number| format!("ann{number}")).collect();
    assert_eq!(ids(EntryFilter { scope: Some("key:ann"), ..all.clone() }).await, own);
    assert_eq!(ids(EntryFilter { limit: 3, scope: Some("key:ann"), ..all.clone() }).await, own[..3]);
    for foreign in ["", "key:an", "key:ann2", "key:ann\0"] {
        assert_eq!(ids(EntryFilter { scope: Some(foreign), ..all.clone() }).await, [""; 0], "{foreign:?}");
    }
    assert_eq!(ids(EntryFilter { prefix: "ann1", ..all.clone() }).await, ["ann1"]);
    assert_eq!(ids(EntryFilter { prefix: "%", ..all.clone() }).await, [""; 0], "not a pattern");
    assert_eq!(ids(EntryFilter { since: in_an_hour(), ..all.clone() }).await, [""; 0]);
    assert_eq!(store.trim_entries(KIND, "key:ann", 4).await.unwrap(), 6);
    assert_eq!(ids(all.clone()).await.len(), 5);
    assert_eq!(ids(EntryFilter { scope: Some("key:ann"), ..all }).await, own[6..], "the oldest are deleted");
}

pub(crate) async fn expired_entries_do_not_exist(database: Database) {
    let store = database.open().await;
    let revision = store.create_entry(new_entry("a")).await.unwrap().unwrap();
    database.tamper("UPDATE shared_state SET expires_at = 1").await;
    assert!(entry(&*store, "a").await.is_none());
    assert!(store.entries(EntryFilter::all(KIND)).await.unwrap().is_empty());
    assert!(store.replace_entry(replacement("a", &revision, "1")).await.unwrap().is_none());
    assert!(!store.remove_entry(KIND, "a", &revision).await.unwrap());
    assert!(store.create_entry(new_entry("a")).await.unwrap().is_some(), "its id is free");
}

pub(crate) async fn counters_never_exceed_their_limit(database: Database) {
    let (one, other) = (database.open().await, database.open().await);
    let counting = |name: &str, initial: u64, limit: u64| CounterIncrement {
        name: name.to_owned(),
        initial,
        amount: 1,
        limit,
        expires_at: in_an_hour(),
    };
    let counted = successes([&one, &other], |store, _| async move {
        store.add_to_counter(counting("day:ann", 3, 20)).await.unwrap()
    });
    assert_eq!(counted.await, 17, "three were counted before");
    assert!(!one.add_to_counter(counting("day:ann", 0, 20)).await.unwrap());
    assert!(one.add_to_counter(counting("day:ann", 0, 21)).await.unwrap(), "a higher limit");
    assert!(one.add_to_counter(counting("day:bob", 0, 1)).await.unwrap(), "another counter");
    assert!(!one.add_to_counter(counting("day:eve", 1, 1)).await.unwrap(), "used up before");
    assert!(!one.add_to_counter(counting("day:eve", 1, 1)).await.unwrap());
    database.tamper("UPDATE shared_counts SET expires_at = 1").await;
    assert!(one.add_to_counter(counting("day:ann", 0, 1)).await.unwrap(), "it begins anew");
    assert!(!other.add_to_counter(counting("day:ann", 0, 1)).await.unwrap());
}

pub(crate) async fn every_store_notices_changes(database: Database) {
    let (one, other) = (database.open().await, database.open().await);
    let known = other.versions().await.unwrap();
    let waiting = tokio::time::timeout(Duration::from_millis(1_500), other.changed(&known));
    assert!(waiting.await.is_err(), "nothing has changed");
    let approval = Approval {
        source: Source::from_name("excel"),
        tool: ToolName::new("read"),
        version: "1".to_owned(),
        definition: json("{}"),
        at: SystemTime::now(),
    };
    let mut known = known;
    // Other programs may delay one of them.
    let mut shortest = Duration::MAX;
    for part in [ChangedPart::HeldCalls, ChangedPart::Approvals, ChangedPart::Configuration] {
        let changing = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            match part {
                ChangedPart::HeldCalls => drop(one.create_entry(new_entry("a")).await.unwrap().unwrap()),
                ChangedPart::Approvals => one.approve(approval.clone()).await.unwrap(),
                _ => one.announce(part).await.unwrap(),
            }
            Instant::now()
        };
        let (changed, written) = tokio::join!(other.changed(&known), changing);
        let changed = changed.unwrap();
        assert_eq!(changed.changed_since(&known), [part]);
        shortest = shortest.min(written.elapsed());
        known = changed;
    }
    assert!(shortest < Duration::from_secs(1), "{shortest:?}");
    // What changes nothing is no change.
    assert!(one.create_entry(new_entry("a")).await.unwrap().is_none());
    assert_eq!(other.versions().await.unwrap(), known);
}

pub(crate) async fn stores_are_alive_while_they_are_open(database: Database) {
    let (one, other) = (database.open().await, database.open().await);
    let replicas: BTreeSet<ReplicaId> = [one.replica(), other.replica()].into();
    assert_eq!(replicas.len(), 2);
    for replica in &replicas {
        assert!(one.is_alive(*replica).await.unwrap() && other.is_alive(*replica).await.unwrap());
    }
    // One that was closed has ended at once; one that was never seen may have lost its connection for a moment.
    let closed = other.replica();
    drop(other);
    let since = Instant::now();
    for (ended, limit) in [(closed, 8), (ReplicaId(7), 20)] {
        while one.is_alive(ended).await.unwrap() {
            assert!(since.elapsed() < Duration::from_secs(limit), "{ended} has ended");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    assert!(one.is_alive(one.replica()).await.unwrap());
}

pub(crate) async fn entries_survive_a_restart(database: Database) {
    let store = database.open().await;
    store.create_entry(new_entry("a")).await.unwrap().unwrap();
    drop(store);
    let store = database.open().await;
    assert_eq!(entry(&*store, "a").await.unwrap().value.get(), new_entry("a").value.get());
}
