//! Tests the attribution of messages for all kinds of callers, in any order.

use std::sync::Arc;

use proptest::prelude::*;
use toolhub_core::caller::{Caller, ClientResponse};
use toolhub_core::{BoxFuture, CallerHandle, RawJson, RawObject};

use super::*;

/// A client of either era, with a principal or without.
struct FakeCaller {
    client: u64,
    principal: Option<&'static str>,
    modern: bool,
    meta: RawObject,
}

impl Caller for FakeCaller {
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

    fn principal_id(&self) -> Option<&str> {
        self.principal
    }

    fn ask(&self, _: String, _: Option<RawJson>) -> BoxFuture<'_, ClientResponse> {
        Box::pin(std::future::ready(Ok(RawJson::empty_object())))
    }
}

fn origin(client: u64, principal: Option<&'static str>, modern: bool) -> RequestOrigin {
    let meta = RawObject::default();
    RequestOrigin::new(CallerHandle::new(Arc::new(FakeCaller { client, principal, modern, meta })))
}

fn legacy(client: u64, principal: &'static str) -> RequestOrigin {
    origin(client, Some(principal), false)
}

fn attributed_client(in_flight: &InFlightRequests) -> Option<u64> {
    in_flight.origin_of(None).map(|origin| origin.link.client())
}

#[test]
fn attributes_stream_messages_to_their_request() {
    let in_flight = InFlightRequests::default();
    let _ann = in_flight.register(1, legacy(10, "ann"));
    let _bob = in_flight.register(2, legacy(20, "bob"));
    assert_eq!(in_flight.origin_of(Some(1)).unwrap().link.client(), 10);
    assert_eq!(in_flight.origin_of(Some(2)).unwrap().link.client(), 20);
    assert!(in_flight.origin_of(Some(3)).is_none());
}

#[test]
fn attributes_uncorrelated_messages_to_a_single_principal() {
    let in_flight = InFlightRequests::default();
    assert_eq!(attributed_client(&in_flight), None, "nothing is under way");
    for request in 1..4 {
        let mut guard = in_flight.register(request, legacy(10, "ann"));
        assert_eq!(attributed_client(&in_flight), Some(10));
        guard.answered = true;
    }
    assert_eq!(attributed_client(&in_flight), None);
}

#[test]
fn stops_attributing_after_a_second_principal() {
    for answered in [true, false] {
        let in_flight = InFlightRequests::default();
        let mut ann = in_flight.register(1, legacy(10, "ann"));
        ann.answered = answered;
        drop(ann);
        let bob = in_flight.register(2, legacy(20, "bob"));
        assert_eq!(attributed_client(&in_flight), None, "it may be the late word of the call before");
        drop(bob);
        let _ann = in_flight.register(3, legacy(10, "ann"));
        assert_eq!(attributed_client(&in_flight), None);
    }
}

#[test]
fn pending_input_request_does_not_attribute_messages_to_its_caller() {
    let in_flight = InFlightRequests::default();
    let ann = legacy(10, "ann");
    let _ann = in_flight.register(1, ann.clone());
    let _bob = in_flight.register(2, legacy(20, "bob"));
    let _open = InputRequestGuard(&ann);
    assert_eq!(attributed_client(&in_flight), None);
}

#[test]
fn owner_calls_count_as_another_user() {
    let in_flight = InFlightRequests::default();
    in_flight.register_owner();
    let _ann = in_flight.register(1, legacy(10, "ann"));
    assert_eq!(attributed_client(&in_flight), None);
    let in_flight = InFlightRequests::default();
    let _ann = in_flight.register(1, legacy(10, "ann"));
    in_flight.register_owner();
    assert_eq!(attributed_client(&in_flight), None);
}

#[test]
fn cancelled_call_of_another_session_blocks_attribution_until_it_expires() {
    let in_flight = InFlightRequests::default();
    let mut first = in_flight.register(1, legacy(9, "ann"));
    first.answered = true;
    drop(first);
    let first = in_flight.register(1, legacy(10, "ann"));
    assert_eq!(attributed_client(&in_flight), Some(10), "the call before was answered");
    drop(first);
    let _second = in_flight.register(2, legacy(11, "ann"));
    assert_eq!(attributed_client(&in_flight), None, "the first session's call may still be running");
    in_flight.others_until.store(1, Ordering::Relaxed);
    assert_eq!(attributed_client(&in_flight), Some(11), "and then it is long over");
    let _third = in_flight.register(3, legacy(12, "ann"));
    assert_eq!(attributed_client(&in_flight), None, "two sessions are under way");
}

#[test]
fn distinguishes_callers_without_principal_by_number() {
    let in_flight = InFlightRequests::default();
    let _first = in_flight.register(1, origin(10, None, false));
    assert_eq!(attributed_client(&in_flight), Some(10));
    let second = in_flight.register(2, origin(11, None, false));
    drop(second);
    assert_eq!(attributed_client(&in_flight), None);
}

#[test]
fn attributes_sequential_modern_requests_of_one_principal() {
    let in_flight = InFlightRequests::default();
    for (request, client) in [(1, 10), (2, 11), (3, 12)] {
        let _known = in_flight.register(request, origin(client, Some("ann"), true));
        assert_eq!(attributed_client(&in_flight), Some(client));
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
    fn never_attributes_messages_across_principals(
        steps in prop::collection::vec(
            prop_oneof![
                (0..4_usize).prop_map(Step::Enter),
                (0..8_usize, any::<bool>()).prop_map(|(index, answered)| Step::Leave(index, answered)),
            ],
            1..40,
        )
    ) {
        let names = ["ann", "bob"];
        let in_flight = InFlightRequests::default();
        let mut guards = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for (request, step) in (1..).zip(steps) {
            match step {
                Step::Enter(who) => {
                    // Two sessions per principal.
                    let name = names[who / 2];
                    guards.push(in_flight.register(request, legacy(who as u64 + 1, name)));
                    seen.insert(name);
                }
                Step::Leave(index, answered) if !guards.is_empty() => {
                    let index = index % guards.len();
                    let mut guard: InFlightGuard<'_> = guards.swap_remove(index);
                    guard.answered = answered;
                }
                Step::Leave(..) => {}
            }
            let got = in_flight.origin_of(None);
            prop_assert!(got.is_none() || seen.len() == 1, "{:?} after {seen:?}", got);
        }
    }
}
