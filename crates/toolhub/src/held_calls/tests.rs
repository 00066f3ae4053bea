//! Tests of held calls, in a temporary data folder.

use super::*;

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
        hold,
    }
}

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn call_is_decided_once_and_used_once() {
    let home = tempfile::tempdir().unwrap();
    let held = HeldCalls::in_folder(home.path());
    let (ann, arguments) = (ann(), RawJson::parse(r#"{"b":1,"a":2}"#).unwrap());
    let call = held.hold(&new(&ann, &arguments, HOUR)).unwrap();
    assert_eq!(call.state, HeldState::Waiting);
    // The same call with another order of members is not held twice.
    let same = RawJson::parse(r#"{"a":2, "b":1}"#).unwrap();
    assert_eq!(held.hold(&new(&ann, &same, HOUR)).unwrap().id, call.id);
    let local = Principal::local();
    let decider = Decider { principal: &local, is_alone: false };
    let approved = held.decide(&call.id, true, decider).unwrap();
    assert_eq!(approved.state, HeldState::Approved { by: "local".to_owned() });
    assert!(matches!(held.decide(&call.id, false, decider), Err(DecideError::NotWaiting(_))));
    assert!(held.consume(&call.id).unwrap());
    assert!(!held.consume(&call.id).unwrap());
    assert_eq!(held.get(&call.id).unwrap().unwrap().state.name(), "used");
    // The next call of this kind waits again.
    let next = held.hold(&new(&ann, &arguments, HOUR)).unwrap();
    assert!(next.id != call.id && next.state == HeldState::Waiting);
}

#[test]
fn concurrent_decisions_and_uses_succeed_once() {
    let home = tempfile::tempdir().unwrap();
    let held = HeldCalls::in_folder(home.path());
    let (ann, arguments) = (ann(), RawJson::empty_object());
    let call = held.hold(&new(&ann, &arguments, HOUR)).unwrap();
    let local = Principal::local();
    let count = |work: &(dyn Fn(usize) -> bool + Sync)| {
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|number| scope.spawn(move || work(number))).collect();
            threads.into_iter().filter_map(|thread| thread.join().ok()).filter(|done| *done).count()
        })
    };
    let decider = Decider { principal: &local, is_alone: true };
    assert_eq!(count(&|_| held.decide(&call.id, true, decider).is_ok()), 1);
    assert_eq!(count(&|_| held.consume(&call.id).unwrap()), 1);
}

#[test]
fn equal_calls_at_the_same_moment_are_held_once() {
    let home = tempfile::tempdir().unwrap();
    let (ann, arguments) = (ann(), RawJson::empty_object());
    for round in 0..20 {
        let tool = format!("write{round}");
        let hold = || {
            let new = NewHeldCall { tool: &tool, ..new(&ann, &arguments, HOUR) };
            HeldCalls::in_folder(home.path()).hold(&new).unwrap()
        };
        let calls: Vec<HeldCall> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(hold)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(calls.iter().filter(|call| call.is_new).count(), 1);
        assert!(calls.iter().all(|call| call.id == calls[0].id));
    }
    assert_eq!(HeldCalls::in_folder(home.path()).list().unwrap().len(), 20);
}

#[test]
fn approval_is_not_used_for_another_call_with_the_same_digest() {
    let home = tempfile::tempdir().unwrap();
    let held = HeldCalls::in_folder(home.path());
    let (ann, arguments) = (ann(), RawJson::empty_object());
    let call = held.hold(&new(&ann, &arguments, HOUR)).unwrap();
    // As if the arguments of another call had the same digest.
    let other = HeldCall { arguments: RawJson::parse(r#"{"row":1}"#).unwrap(), ..call.clone() };
    held.remove(&call.id);
    held.create(&format!("{}.json", call.id), &serde_json::to_vec(&other).unwrap()).unwrap();
    let again = held.hold(&new(&ann, &arguments, HOUR)).unwrap();
    assert!(again.is_new && again.id != call.id);
}

#[test]
fn waiting_calls_of_a_principal_are_bounded_and_others_are_not_read() {
    let home = tempfile::tempdir().unwrap();
    let held = HeldCalls::in_folder(home.path());
    let (ann, bob) = (ann(), Principal::of_key("bob").with_roles(Role::Caller));
    let arguments = RawJson::empty_object();
    let call = held.hold(&new(&ann, &arguments, HOUR)).unwrap();
    let prefix = new(&ann, &arguments, HOUR).principal_prefix();
    let write = |number: usize, expires_ms: u64| {
        let id = format!("{prefix}{number:024x}");
        let copy = HeldCall { id: id.clone(), expires_ms, tool: format!("t{number}"), ..call.clone() };
        fs::write(held.file(&id, "json"), serde_json::to_vec(&copy).unwrap()).unwrap();
    };
    (1..MAX_WAITING).for_each(|number| write(number, u64::MAX));
    let next = NewHeldCall { tool: "next", ..new(&ann, &arguments, HOUR) };
    assert!(held.hold(&next).is_err());
    // An unreadable call of another principal does not matter.
    fs::write(held.file(&format!("{prefix}ff"), "json"), "{").unwrap();
    assert!(held.hold(&new(&bob, &arguments, HOUR)).unwrap().is_new);
    fs::remove_file(held.file(&format!("{prefix}ff"), "json")).unwrap();
    // Expired calls do not count, and are removed.
    (1..MAX_WAITING).for_each(|number| write(number, 1));
    assert!(held.hold(&next).unwrap().is_new);
    assert_eq!(held.entries_of(&prefix).unwrap().calls.len(), 2);
}

#[test]
fn own_calls_and_callers_cannot_decide() {
    let home = tempfile::tempdir().unwrap();
    let held = HeldCalls::in_folder(home.path());
    let arguments = RawJson::empty_object();
    let mut ann = ann();
    let call = held.hold(&new(&ann, &arguments, HOUR)).unwrap();
    let decide = |principal: &Principal, is_alone, approved| {
        held.decide(&call.id, approved, Decider { principal, is_alone })
    };
    assert!(matches!(decide(&ann, false, true), Err(DecideError::NotApprover)));
    ann.roles |= Role::Approver.into();
    assert!(matches!(decide(&ann, false, true), Err(DecideError::OwnCall)));
    assert!(matches!(decide(&ann, true, true), Err(DecideError::OwnCall)), "not the owner");
    ann.roles = toolhub_core::Roles::all();
    assert!(matches!(decide(&ann, false, true), Err(DecideError::OwnCall)), "not alone");
    assert!(decide(&ann, true, true).is_ok());
}

#[test]
fn calls_of_a_revoked_key_are_withdrawn() {
    let home = tempfile::tempdir().unwrap();
    let held = HeldCalls::in_folder(home.path());
    let (ann, bob) = (ann(), Principal::of_key("bob").with_roles(Role::Caller));
    let arguments = RawJson::empty_object();
    let [of_ann, of_bob] = [&ann, &bob].map(|one| held.hold(&new(one, &arguments, HOUR)).unwrap());
    held.withdraw_all(ann.id()).unwrap();
    assert!(held.get(&of_ann.id).unwrap().is_none() && held.get(&of_bob.id).unwrap().is_some());
}

#[test]
fn expired_calls_cannot_be_decided_and_references_cannot_leave_the_folder() {
    let home = tempfile::tempdir().unwrap();
    let held = HeldCalls::in_folder(home.path());
    let (ann, arguments, local) = (ann(), RawJson::empty_object(), Principal::local());
    let call = held.hold(&new(&ann, &arguments, Duration::ZERO)).unwrap();
    let decider = Decider { principal: &local, is_alone: true };
    assert!(matches!(held.decide(&call.id, true, decider), Err(DecideError::NotWaiting(HeldState::Expired))));
    fs::write(home.path().join("x.json"), "{}").unwrap();
    for id in ["../x", "", ".", "ab/../x", "zz"] {
        assert!(held.get(id).unwrap().is_none(), "{id}");
    }
}
