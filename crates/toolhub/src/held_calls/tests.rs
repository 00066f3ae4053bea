//! Tests of held calls, in a temporary data folder: as files, and as entries of a store.

use std::fs;

use toolhub_store::SqliteStore;

use super::*;

/// Held calls in both storages. Opening them again is like another process.
struct Folder {
    home: tempfile::TempDir,
    is_shared: bool,
}

impl Folder {
    fn both() -> [Self; 2] {
        [false, true].map(|is_shared| Self { home: tempfile::tempdir().unwrap(), is_shared })
    }

    fn open(&self) -> HeldCalls {
        match self.is_shared {
            true => HeldCalls::in_store(Arc::new(SqliteStore::open(self.home.path()).unwrap())),
            false => HeldCalls::in_folder(self.home.path()),
        }
    }
}

fn files(home: &Path) -> HeldCallFiles {
    HeldCallFiles::in_folder(home)
}

fn ann() -> Principal {
    Principal::of_key("ann").with_roles(Role::Caller)
}

fn new<'a>(principal: &'a Principal, arguments: &'a RawJson, hold: Duration) -> NewHeldCall<'a> {
    NewHeldCall {
        principal,
        profile: "default",
        tool: "write",
        sources: vec!["excel".to_owned()],
        arguments,
        rule: "ask-writes",
        definition: "excel v1".to_owned(),
        hold,
        script: None,
    }
}

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn call_is_decided_once_and_used_once() {
    for folder in Folder::both() {
        let (held, other) = (folder.open(), folder.open());
        let (ann, arguments) = (ann(), RawJson::parse(r#"{"b":1,"a":2}"#).unwrap());
        let call = held.hold(&new(&ann, &arguments, HOUR)).await.unwrap();
        assert_eq!(call.state, HeldState::Held);
        assert!(call.is_new);
        // The same call with another order of members is not held twice.
        let same = RawJson::parse(r#"{"a":2, "b":1}"#).unwrap();
        let again = other.hold(&new(&ann, &same, HOUR)).await.unwrap();
        assert!(again.id == call.id && !again.is_new);
        assert!(!held.consume(&call.id).await.unwrap(), "it is not approved");
        let local = Principal::local();
        let decider = Decider { principal: &local, is_alone: false };
        let approved = other.decide(&call.id, true, decider).await.unwrap();
        assert_eq!(approved.state, HeldState::Approved { by: "local".to_owned() });
        assert!(matches!(held.decide(&call.id, false, decider).await, Err(DecideError::NotHeld(_))));
        // A decided call cannot be withdrawn by its caller.
        held.withdraw(&call.id).await.unwrap();
        assert!(held.consume(&call.id).await.unwrap());
        assert!(!other.consume(&call.id).await.unwrap());
        assert_eq!(held.get(&call.id).await.unwrap().unwrap().state.name(), "used");
        // The next call of this kind waits again.
        let next = held.hold(&new(&ann, &arguments, HOUR)).await.unwrap();
        assert!(next.id != call.id && next.state == HeldState::Held);
        other.withdraw(&next.id).await.unwrap();
        assert!(held.get(&next.id).await.unwrap().is_none());
        assert_eq!(held.list().await.unwrap().len(), 1);
    }
}

/// The results of this work by eight threads, each of which opens the storage anew.
fn concurrently<T: Send>(folder: &Folder, work: impl Fn(HeldCalls) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| work(folder.open()))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

#[test]
fn concurrent_decisions_and_uses_succeed_once() {
    for folder in Folder::both() {
        let (ann, arguments) = (ann(), RawJson::empty_object());
        let call = block_on(folder.open().hold(&new(&ann, &arguments, HOUR))).unwrap();
        let local = Principal::local();
        let decider = Decider { principal: &local, is_alone: true };
        let decided = concurrently(&folder, |held| block_on(held.decide(&call.id, true, decider)).is_ok());
        assert_eq!(decided.into_iter().filter(|done| *done).count(), 1);
        let used = concurrently(&folder, |held| block_on(held.consume(&call.id)).unwrap());
        assert_eq!(used.into_iter().filter(|done| *done).count(), 1);
    }
}

#[test]
fn equal_calls_at_the_same_moment_are_held_once() {
    for folder in Folder::both() {
        let (ann, arguments) = (ann(), RawJson::empty_object());
        for round in 0..5 {
            let tool = format!("write{round}");
            let calls = concurrently(&folder, |held| {
                let new = NewHeldCall { tool: &tool, ..new(&ann, &arguments, HOUR) };
                block_on(held.hold(&new)).unwrap()
            });
            assert_eq!(calls.iter().filter(|call| call.is_new).count(), 1);
            assert!(calls.iter().all(|call| call.id == calls[0].id));
        }
        assert_eq!(block_on(folder.open().list()).unwrap().len(), 5);
    }
}

#[test]
fn approval_is_not_used_for_another_call_with_the_same_digest() {
    let home = tempfile::tempdir().unwrap();
    let held = files(home.path());
    let (ann, arguments) = (ann(), RawJson::empty_object());
    let call = held.hold(&new(&ann, &arguments, HOUR)).unwrap();
    // As if the arguments of another call had the same digest.
    let other = HeldCall { arguments: RawJson::parse(r#"{"row":1}"#).unwrap(), ..call.clone() };
    held.remove(&call.id);
    held.create(&format!("{}.json", call.id), &serde_json::to_vec(&other).unwrap()).unwrap();
    let again = held.hold(&new(&ann, &arguments, HOUR)).unwrap();
    assert!(again.is_new && again.id != call.id);
}

#[tokio::test]
async fn equal_calls_of_other_principals_profiles_and_sources_are_held_apart() {
    for folder in Folder::both() {
        let held = folder.open();
        let (ann, bob) = (ann(), Principal::of_key("bob").with_roles(Role::Caller));
        let arguments = RawJson::empty_object();
        let call = || new(&ann, &arguments, HOUR);
        let others = [
            NewHeldCall { principal: &bob, ..call() },
            NewHeldCall { profile: "other", ..call() },
            NewHeldCall { tool: "write2", ..call() },
            NewHeldCall { definition: "excel v2".to_owned(), ..call() },
            NewHeldCall { sources: vec!["excel".to_owned(), "word".to_owned()], ..call() },
            NewHeldCall { sources: vec!["excel\u{1f}word".to_owned()], tool: "write3", ..call() },
        ];
        let first = held.hold(&call()).await.unwrap();
        for other in &others {
            let one = held.hold(other).await.unwrap();
            assert!(one.is_new && one.id != first.id, "{other:?}");
        }
    }
}

#[tokio::test]
async fn denial_holds_and_expired_calls_are_asked_for_again() {
    for folder in Folder::both() {
        let held = folder.open();
        let (ann, arguments, local) = (ann(), RawJson::empty_object(), Principal::local());
        let decider = Decider { principal: &local, is_alone: true };
        let denied = held.hold(&new(&ann, &arguments, HOUR)).await.unwrap();
        held.decide(&denied.id, false, decider).await.unwrap();
        let again = held.hold(&new(&ann, &arguments, HOUR)).await.unwrap();
        assert!(again.id == denied.id && again.state == HeldState::Denied { by: "local".to_owned() });
        assert!(!held.consume(&denied.id).await.unwrap());
        let other = RawJson::parse(r#"{"row":1}"#).unwrap();
        let expired = held.hold(&new(&ann, &other, Duration::ZERO)).await.unwrap();
        let again = held.hold(&new(&ann, &other, HOUR)).await.unwrap();
        assert!(again.id != expired.id && again.state == HeldState::Held);
    }
}

#[test]
fn held_calls_of_a_principal_are_bounded_and_others_are_not_read() {
    let home = tempfile::tempdir().unwrap();
    let held = files(home.path());
    let (ann, bob) = (ann(), Principal::of_key("bob").with_roles(Role::Caller));
    let arguments = RawJson::empty_object();
    let call = held.hold(&new(&ann, &arguments, HOUR)).unwrap();
    let prefix = new(&ann, &arguments, HOUR).principal_prefix();
    let write = |number: usize, expires_ms: u64| {
        let id = format!("{prefix}{number:024x}");
        let copy = HeldCall { id: id.clone(), expires_ms, tool: format!("t{number}"), ..call.clone() };
        fs::write(held.file(&id, "json"), serde_json::to_vec(&copy).unwrap()).unwrap();
    };
    (1..MAX_HELD).for_each(|number| write(number, u64::MAX));
    let next = NewHeldCall { tool: "next", ..new(&ann, &arguments, HOUR) };
    assert!(held.hold(&next).is_err());
    // An unreadable call of another principal does not matter.
    fs::write(held.file(&format!("{prefix}ff"), "json"), "{").unwrap();
    assert!(held.hold(&new(&bob, &arguments, HOUR)).unwrap().is_new);
    fs::remove_file(held.file(&format!("{prefix}ff"), "json")).unwrap();
    // Expired calls do not count, and are removed.
    (1..MAX_HELD).for_each(|number| write(number, 1));
    assert!(held.hold(&next).unwrap().is_new);
    assert_eq!(held.entries_of(&prefix).unwrap().calls.len(), 2);
}

#[tokio::test]
async fn held_calls_of_a_principal_are_bounded_in_a_store() {
    let home = tempfile::tempdir().unwrap();
    let store: Arc<dyn HubStore> = Arc::new(SqliteStore::open(home.path()).unwrap());
    let held = HeldCalls::in_store(Arc::clone(&store));
    let (ann, bob) = (ann(), Principal::of_key("bob").with_roles(Role::Caller));
    let arguments = RawJson::empty_object();
    for number in 0..MAX_HELD {
        let tool = format!("t{number}");
        let new_call = NewHeldCall { tool: &tool, ..new(&ann, &arguments, HOUR) };
        let call = HeldCall { is_new: false, ..new_call.to_held_call() };
        let value = serde_json::json!({"call": call}).to_string();
        let entry = toolhub_core::shared_state::NewEntry {
            kind: toolhub_core::shared_state::StateKind::HeldCall,
            id: call.id.clone(),
            scope: call.principal.clone(),
            slot: None,
            value: RawJson::parse(value).unwrap(),
            expires_at: SystemTime::now() + HOUR,
        };
        store.create_entry(entry).await.unwrap().unwrap();
    }
    let next = NewHeldCall { tool: "next", ..new(&ann, &arguments, HOUR) };
    assert!(held.hold(&next).await.is_err());
    assert!(held.hold(&new(&bob, &arguments, HOUR)).await.unwrap().is_new);
}

#[tokio::test]
async fn own_calls_and_callers_cannot_decide() {
    for folder in Folder::both() {
        let held = folder.open();
        let arguments = RawJson::empty_object();
        let mut ann = ann();
        let call = held.hold(&new(&ann, &arguments, HOUR)).await.unwrap();
        let decide = async |principal: &Principal, is_alone, approved| {
            held.decide(&call.id, approved, Decider { principal, is_alone }).await
        };
        assert!(matches!(decide(&ann, false, true).await, Err(DecideError::NotApprover)));
        ann.roles |= Role::Approver.into();
        assert!(matches!(decide(&ann, false, true).await, Err(DecideError::OwnCall)));
        assert!(matches!(decide(&ann, true, true).await, Err(DecideError::OwnCall)), "not the owner");
        ann.roles = toolhub_core::Roles::all();
        assert!(matches!(decide(&ann, false, true).await, Err(DecideError::OwnCall)), "not alone");
        assert!(decide(&ann, true, true).await.is_ok());
    }
}

#[tokio::test]
async fn calls_of_a_revoked_key_are_withdrawn() {
    for folder in Folder::both() {
        let held = folder.open();
        let (ann, bob) = (ann(), Principal::of_key("bob").with_roles(Role::Caller));
        let arguments = RawJson::empty_object();
        let of_ann = held.hold(&new(&ann, &arguments, HOUR)).await.unwrap();
        let of_bob = held.hold(&new(&bob, &arguments, HOUR)).await.unwrap();
        held.withdraw_all(ann.id()).await.unwrap();
        assert!(held.get(&of_ann.id).await.unwrap().is_none());
        assert!(held.get(&of_bob.id).await.unwrap().is_some());
    }
}

#[tokio::test]
async fn expired_calls_cannot_be_decided_and_references_cannot_leave_the_folder() {
    for folder in Folder::both() {
        let held = folder.open();
        let (ann, arguments, local) = (ann(), RawJson::empty_object(), Principal::local());
        let call = held.hold(&new(&ann, &arguments, Duration::ZERO)).await.unwrap();
        let decider = Decider { principal: &local, is_alone: true };
        let decided = held.decide(&call.id, true, decider).await;
        assert!(matches!(decided, Err(DecideError::NotHeld(HeldState::Expired))));
        fs::write(folder.home.path().join("x.json"), "{}").unwrap();
        for id in ["../x", "", ".", "ab/../x", "zz"] {
            assert!(held.get(id).await.unwrap().is_none(), "{id}");
        }
    }
}

/// Waiters learn of a decision of another process within a second.
#[tokio::test]
async fn decisions_of_other_processes_are_noticed() {
    for folder in Folder::both() {
        let (held, other) = (folder.open(), folder.open());
        let (ann, arguments, local) = (ann(), RawJson::empty_object(), Principal::local());
        let call = held.hold(&new(&ann, &arguments, HOUR)).await.unwrap();
        let decision = async {
            let mut seen = SeenDecisions::default();
            loop {
                held.wait_for_decision(&mut seen).await;
                let state = held.get(&call.id).await.unwrap().unwrap().state;
                if state != HeldState::Held {
                    return SystemTime::now();
                }
            }
        };
        let deciding = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            let decider = Decider { principal: &local, is_alone: true };
            other.decide(&call.id, true, decider).await.unwrap();
            SystemTime::now()
        };
        let (noticed, decided) = tokio::join!(decision, deciding);
        assert!(noticed.duration_since(decided).unwrap_or_default() < Duration::from_secs(1));
    }
}

#[tokio::test]
async fn a_call_of_a_script_belongs_to_its_run_and_ends_with_it() {
    for folder in Folder::both() {
        let (held, other) = (folder.open(), folder.open());
        let (ann, arguments, local) = (ann(), RawJson::empty_object(), Principal::local());
        let decider = Decider { principal: &local, is_alone: true };
        let (run, next) = (CallId::new("run"), CallId::new("next"));
        let of = |script| NewHeldCall { script, ..new(&ann, &arguments, HOUR) };
        let direct = held.hold(&of(None)).await.unwrap();
        let first = held.hold(&of(Some(&run))).await.unwrap();
        let second = held.hold(&of(Some(&next))).await.unwrap();
        assert!(first.id != direct.id && second.id != first.id && second.id != direct.id);
        assert_eq!(held.hold(&of(Some(&run))).await.unwrap().id, first.id, "equal calls of a run");
        assert_eq!(other.get(&first.id).await.unwrap().unwrap().state, HeldState::Held);
        // The first run ends: its call cannot be approved, and the next run is not concerned.
        assert!(held.withdraw_of_script(&first.id).await.unwrap());
        assert!(!other.withdraw_of_script(&first.id).await.unwrap(), "it is recorded once");
        let late = other.decide(&first.id, true, decider).await;
        assert!(matches!(late, Err(DecideError::NotHeld(HeldState::Withdrawn))), "{late:?}");
        assert!(!held.consume(&first.id).await.unwrap());
        // An approval that was not used before the end is of no use after it.
        other.decide(&second.id, true, decider).await.unwrap();
        assert!(held.withdraw_of_script(&second.id).await.unwrap());
        assert!(!held.consume(&second.id).await.unwrap());
        assert!(held.hold(&of(Some(&next))).await.unwrap().is_new);
        assert_eq!(held.get(&direct.id).await.unwrap().unwrap().state, HeldState::Held);
        assert!(!held.withdraw_of_script(&direct.id).await.unwrap(), "no script made it");
    }
}

#[tokio::test]
async fn a_denial_holds_for_every_run_of_a_script() {
    for folder in Folder::both() {
        let held = folder.open();
        let (ann, arguments, local) = (ann(), RawJson::empty_object(), Principal::local());
        let decider = Decider { principal: &local, is_alone: true };
        let (run, next) = (CallId::new("run"), CallId::new("next"));
        let of = |script| NewHeldCall { script, ..new(&ann, &arguments, HOUR) };
        let denied = held.hold(&of(Some(&run))).await.unwrap();
        held.decide(&denied.id, false, decider).await.unwrap();
        assert!(!held.withdraw_of_script(&denied.id).await.unwrap(), "it stays denied");
        for script in [Some(&next), None] {
            let again = held.hold(&of(script)).await.unwrap();
            assert!(again.id == denied.id && matches!(again.state, HeldState::Denied { .. }), "{again:?}");
        }
    }
}

/// As after SIGKILL: the system has closed the files, and the store detects the end of the hub.
#[tokio::test]
async fn a_call_of_a_script_is_withdrawn_when_its_hub_ends() {
    for folder in Folder::both() {
        let (hub, other) = (folder.open(), folder.open());
        let (ann, arguments, local) = (ann(), RawJson::empty_object(), Principal::local());
        let decider = Decider { principal: &local, is_alone: true };
        let run = CallId::new("run");
        let new_call = NewHeldCall { script: Some(&run), ..new(&ann, &arguments, HOUR) };
        let call = hub.hold(&new_call).await.unwrap();
        assert_eq!(other.withdraw_orphans().await.unwrap().len(), 0);
        let id = call.id.clone();
        drop((call, hub));
        let late = other.decide(&id, true, decider).await;
        assert!(matches!(late, Err(DecideError::NotHeld(HeldState::Withdrawn))), "{late:?}");
        assert_eq!(other.list().await.unwrap()[0].state, HeldState::Withdrawn);
        let withdrawn = other.withdraw_orphans().await.unwrap();
        assert_eq!(withdrawn.iter().map(|call| &call.id).collect::<Vec<_>>(), [&id]);
        assert!(other.withdraw_orphans().await.unwrap().is_empty(), "it is recorded once");
    }
}

#[tokio::test]
async fn too_long_arguments_are_not_held() {
    let text = |bytes: usize| RawJson::of(&serde_json::json!({"text": "x".repeat(bytes)}));
    for folder in Folder::both() {
        let (ann, held) = (ann(), folder.open());
        let refused = held.hold(&new(&ann, &text(MAX_ARGUMENT_BYTES), HOUR)).await.unwrap_err();
        assert!(refused.to_string().contains("262144"), "{refused}");
        assert!(held.hold(&new(&ann, &text(MAX_ARGUMENT_BYTES / 2), HOUR)).await.unwrap().is_new);
        assert_eq!(held.list_of(Some(ann.id())).await.unwrap().len(), 1);
        assert!(held.list_of(Some("key:bob")).await.unwrap().is_empty());
    }
}

/// A principal cannot fill the data folder with calls that wait, and calls that have ended do not keep it from new ones.
#[test]
fn ended_calls_give_way_to_new_ones_and_held_calls_do_not() {
    let (ann, arguments) =
        (ann(), RawJson::of(&serde_json::json!({"text": "x".repeat(MAX_STORED_BYTES / 4)})));
    let call = |at_ms: u64, state: HeldState| HeldCall {
        at_ms,
        state,
        ..new(&ann, &arguments, HOUR).to_held_call()
    };
    let by = || "local".to_owned();
    let held = |at_ms: u64| call(at_ms, HeldState::Held);
    let removed = |stored: Vec<HeldCall>| {
        ended_to_remove(stored, 100).map(|calls| calls.iter().map(|call| call.at_ms).collect::<Vec<_>>())
    };
    assert!(removed(vec![held(1), held(2), held(3)]).unwrap().is_empty());
    let ended = |at_ms: u64| call(at_ms, HeldState::Used { by: by() });
    assert_eq!(removed(vec![ended(3), ended(1), held(2), ended(4)]).unwrap(), [1]);
    assert_eq!(
        removed(vec![ended(3), held(1), call(2, HeldState::Expired), held(4), ended(5)]).unwrap(),
        [2, 3]
    );
    assert!(removed((1..=4).map(held).collect()).is_err());
    let approved = |at_ms: u64| call(at_ms, HeldState::Approved { by: by() });
    let denied = |at_ms: u64| call(at_ms, HeldState::Denied { by: by() });
    assert!(removed(vec![approved(1), denied(2), held(3), held(4)]).is_err());
}

#[test]
fn refused_decision_names_the_state_in_both_languages() {
    let by = || "key:ann".to_owned();
    for (state, en, zh) in [
        (HeldState::Approved { by: by() }, "approved", "已批准"),
        (HeldState::Denied { by: by() }, "denied", "已拒绝"),
        (HeldState::Used { by: by() }, "used", "已执行"),
        (HeldState::Expired, "expired", "已过期"),
    ] {
        let text = DecideError::NotHeld(state).text("a1");
        assert_eq!(text.localize(Lang::En), format!("`a1` is no longer waiting: {en}"));
        assert_eq!(text.localize(Lang::Zh), format!("`a1` 已处理：{zh}"));
    }
}
