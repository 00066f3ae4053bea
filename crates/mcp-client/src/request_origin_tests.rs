//! Tests the attribution of messages for all kinds of callers, in any order.

use std::sync::Arc;

use proptest::prelude::*;
use toolhub_core::caller::{Answer, Caller};
use toolhub_core::{BoxFuture, CallerHandle, RawJson, RawObject};

use super::*;

/// A client of either era, with a principal or without.
struct Fake {
    client: u64,
    principal: Option<&'static str>,
    modern: bool,
    meta: RawObject,
}

impl Caller for Fake {
    fn client(&self) -> u64 {
        self.client
    }

    fn capabilities(&self) -> RawJson {
        RawJson::empty_object()
    }

    fn meta(&self) -> &RawObject {
        &self.meta
    }

    fn extras(&self) -> &RawObject {
        &self.meta
    }

    fn accepts_input_requests(&self) -> bool {
        self.modern
    }

    fn progress(&self, _: &RawJson) {}

    fn notify(&self, _: &str, _: Option<&RawJson>) {}

    fn principal(&self) -> Option<&str> {
        self.principal
    }

    fn ask(&self, _: String, _: Option<RawJson>) -> BoxFuture<'_, Answer> {
        Box::pin(std::future::ready(Ok(RawJson::empty_object())))
    }
}

fn origin(client: u64, principal: Option<&'static str>, modern: bool) -> RequestOrigin {
    let meta = RawObject::default();
    RequestOrigin::new(CallerHandle::new(Arc::new(Fake { client, principal, modern, meta })))
}

fn legacy(client: u64, principal: &'static str) -> RequestOrigin {
    origin(client, Some(principal), false)
}

fn concerned(in_flight: &InFlightRequests) -> Option<u64> {
    in_flight.behind(None).map(|origin| origin.link.client())
}

#[test]
fn stream_of_a_request_names_its_caller() {
    let in_flight = InFlightRequests::default();
    let _ann = in_flight.enter(1, legacy(10, "ann"));
    let _bob = in_flight.enter(2, legacy(20, "bob"));
    assert_eq!(in_flight.behind(Some(1)).unwrap().link.client(), 10);
    assert_eq!(in_flight.behind(Some(2)).unwrap().link.client(), 20);
    assert!(in_flight.behind(Some(3)).is_none());
}

#[test]
fn one_principal_alone_gets_what_is_not_correlated() {
    let in_flight = InFlightRequests::default();
    assert_eq!(concerned(&in_flight), None, "nothing is under way");
    for request in 1..4 {
        let mut known = in_flight.enter(request, legacy(10, "ann"));
        assert_eq!(concerned(&in_flight), Some(10));
        known.answered = true;
    }
    assert_eq!(concerned(&in_flight), None);
}

#[test]
fn second_principal_ends_certainty_for_good() {
    for answered in [true, false] {
        let in_flight = InFlightRequests::default();
        let mut ann = in_flight.enter(1, legacy(10, "ann"));
        ann.answered = answered;
        drop(ann);
        let bob = in_flight.enter(2, legacy(20, "bob"));
        assert_eq!(concerned(&in_flight), None, "it may be the late word of the call before");
        drop(bob);
        let _ann = in_flight.enter(3, legacy(10, "ann"));
        assert_eq!(concerned(&in_flight), None);
    }
}

#[test]
fn open_question_of_one_caller_does_not_make_it_the_others() {
    let in_flight = InFlightRequests::default();
    let ann = legacy(10, "ann");
    let _ann = in_flight.enter(1, ann.clone());
    let _bob = in_flight.enter(2, legacy(20, "bob"));
    let _open = Open(&ann);
    assert_eq!(concerned(&in_flight), None);
}

#[test]
fn calls_of_the_owner_are_somebody_elses() {
    let in_flight = InFlightRequests::default();
    in_flight.enter_owner();
    let _ann = in_flight.enter(1, legacy(10, "ann"));
    assert_eq!(concerned(&in_flight), None);
    let in_flight = InFlightRequests::default();
    let _ann = in_flight.enter(1, legacy(10, "ann"));
    in_flight.enter_owner();
    assert_eq!(concerned(&in_flight), None);
}

#[test]
fn cancelled_call_of_another_session_of_the_same_principal_counts_for_a_while() {
    let in_flight = InFlightRequests::default();
    let mut first = in_flight.enter(1, legacy(9, "ann"));
    first.answered = true;
    drop(first);
    let first = in_flight.enter(1, legacy(10, "ann"));
    assert_eq!(concerned(&in_flight), Some(10), "the call before was answered");
    drop(first);
    let _second = in_flight.enter(2, legacy(11, "ann"));
    assert_eq!(concerned(&in_flight), None, "the first session's call may still be running");
    in_flight.others_until.store(1, Ordering::Relaxed);
    assert_eq!(concerned(&in_flight), Some(11), "and then it is long over");
    let _third = in_flight.enter(3, legacy(12, "ann"));
    assert_eq!(concerned(&in_flight), None, "two sessions are under way");
}

#[test]
fn callers_without_a_principal_are_told_apart_by_number() {
    let in_flight = InFlightRequests::default();
    let _first = in_flight.enter(1, origin(10, None, false));
    assert_eq!(concerned(&in_flight), Some(10));
    let second = in_flight.enter(2, origin(11, None, false));
    drop(second);
    assert_eq!(concerned(&in_flight), None);
}

#[test]
fn modern_requests_of_one_principal_follow_one_another() {
    let in_flight = InFlightRequests::default();
    for (request, client) in [(1, 10), (2, 11), (3, 12)] {
        let _known = in_flight.enter(request, origin(client, Some("ann"), true));
        assert_eq!(concerned(&in_flight), Some(client));
    }
}

#[derive(Debug, Clone)]
enum Step {
    Enter(usize),
    Leave(usize, bool),
}

proptest! {
    /// Once two principals have used a connection, no caller receives a message without a correlated request, whatever the
    /// order of calls.
    #[test]
    fn no_order_of_calls_leaks_between_principals(
        steps in prop::collection::vec(
            prop_oneof![
                (0..4_usize).prop_map(Step::Enter),
                (0..8_usize, any::<bool>()).prop_map(|(place, answered)| Step::Leave(place, answered)),
            ],
            1..40,
        )
    ) {
        let names = ["ann", "bob"];
        let in_flight = InFlightRequests::default();
        let mut under_way = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for (request, step) in (1..).zip(steps) {
            match step {
                Step::Enter(who) => {
                    // Two sessions per principal.
                    let name = names[who / 2];
                    under_way.push(in_flight.enter(request, legacy(who as u64 + 1, name)));
                    seen.insert(name);
                }
                Step::Leave(place, answered) if !under_way.is_empty() => {
                    let place = place % under_way.len();
                    let mut known: Known<'_> = under_way.swap_remove(place);
                    known.answered = answered;
                }
                Step::Leave(..) => {}
            }
            let got = in_flight.behind(None);
            prop_assert!(got.is_none() || seen.len() == 1, "{:?} after {seen:?}", got);
        }
    }
}
