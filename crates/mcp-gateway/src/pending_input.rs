//! Requests of modern clients that wait for input: the client received the server requests as a result, and repeats its
//! request with the responses (2026-07-28, patterns/mrtr).

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytestring::ByteString;
use tokio::time::Instant;
use toolhub_core::caller::CLIENT_ANSWER_TIMEOUT;
use toolhub_core::shared_state::ReplicaId;
use toolhub_core::{RawJson, RawObject};

use crate::PrincipalHandle;
use crate::client_queue::ServerRequest;
use crate::in_flight::InFlightRequest;
use crate::message::{ClientRequest, RequestParams};
use crate::rpc_error::RpcError;

/// The prefix of our `requestState` values. Any other value belongs to a server. The replica at which the request waits follows,
/// and a secret.
const STATE_PREFIX: &str = "toolhub.";

/// The replica that has issued a `requestState`; `None` if it is none of ours.
pub(crate) fn replica_of_state(token: &str) -> Option<ReplicaId> {
    ReplicaId::parse(token.strip_prefix(STATE_PREFIX)?.split_once('.')?.0)
}

struct PendingRequest {
    in_flight: InFlightRequest,
    server_requests: Vec<ServerRequest>,
    identity: RequestIdentity,
    since: Instant,
}

/// The identity of a request: input responses are valid only for the same request of the same principal.
#[derive(Debug, Clone)]
pub(crate) struct RequestIdentity {
    principal: PrincipalHandle,
    method: ByteString,
    /// A JSON string, as received.
    name: Option<RawJson>,
}

impl RequestIdentity {
    pub(crate) fn of(principal: &PrincipalHandle, request: &ClientRequest, params: &RequestParams) -> Self {
        let text = |key: &str| params.members.get(key).filter(|value| value.get().starts_with('"'));
        let name = text("name").or_else(|| text("uri")).or_else(|| text("taskId"));
        Self { principal: principal.clone(), method: request.method.clone(), name: name.cloned() }
    }

    /// Returns whether both are the same request, regardless of the escapes in their names.
    fn is_same_request(&self, other: &Self) -> bool {
        let name = |identity: &Self| identity.name.as_ref().and_then(RawJson::text).map(Cow::into_owned);
        self.principal == other.principal && self.method == other.method && name(self) == name(other)
    }
}

/// The result of matching a repeated request.
pub(crate) enum ResumeOutcome {
    /// It does not continue a request that waits here.
    NotPending,
    /// The request continues.
    Continued(InFlightRequest),
    /// A response is missing, so the same result is returned again.
    Incomplete(RawJson),
    /// The `requestState` is invalid or has expired.
    Rejected(RpcError),
}

/// The requests that wait for input.
pub(crate) struct PendingInputs {
    replica: ReplicaId,
    requests: Mutex<HashMap<String, PendingRequest>>,
}

impl PendingInputs {
    /// The requests that wait at a replica.
    pub(crate) fn at(replica: ReplicaId) -> Self {
        Self { replica, requests: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, PendingRequest>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops all waiting requests. Returns their number.
    pub(crate) fn clear(&self) -> usize {
        let drained = std::mem::take(&mut *self.lock());
        drained.len()
    }

    /// Suspends a request until its client sends input. Returns the result that requests the input; an error ends the request.
    pub(crate) fn suspend(
        &self,
        in_flight: InFlightRequest,
        server_requests: Vec<ServerRequest>,
        identity: RequestIdentity,
    ) -> Result<RawJson, RpcError> {
        let no_randomness =
            || RpcError::new(-32603, "the input could not be requested: the system has no randomness");
        let secret = super::random_token().ok_or_else(no_randomness)?;
        let token = format!("{STATE_PREFIX}{}.{secret}", self.replica);
        let input_required = input_required(&token, &server_requests);
        let mut pending_requests = self.lock();
        remove_expired(&mut pending_requests);
        evict_oldest(&mut pending_requests, &identity.principal);
        pending_requests
            .insert(token, PendingRequest { in_flight, server_requests, identity, since: Instant::now() });
        Ok(input_required)
    }

    /// Continues the request for which the client sends input responses.
    pub(crate) fn resume(
        &self,
        request: &ClientRequest,
        params: &RequestParams,
        identity: &RequestIdentity,
    ) -> ResumeOutcome {
        let Some(token) = params.text("requestState").filter(|state| state.starts_with(STATE_PREFIX)) else {
            return ResumeOutcome::NotPending;
        };
        let token = token.into_owned();
        let mut pending_requests = self.lock();
        remove_expired(&mut pending_requests);
        // One error for all cases, so that it does not reveal whether the state exists for another request or principal.
        let matches =
            pending_requests.get(&token).is_some_and(|pending| pending.identity.is_same_request(identity));
        let Some(pending) = matches.then(|| pending_requests.remove(&token)).flatten() else {
            return ResumeOutcome::Rejected(RpcError::invalid_params(
                "`requestState` is not known for this request: make the request again without it",
            ));
        };
        let answers = params.members.get("inputResponses").and_then(RawJson::object).unwrap_or_default();
        if (0..pending.server_requests.len()).any(|index| !answers.contains(&key(index))) {
            let again = input_required(&token, &pending.server_requests);
            pending_requests.insert(token, pending);
            return ResumeOutcome::Incomplete(again);
        }
        drop(pending_requests);
        let PendingRequest { mut in_flight, server_requests, .. } = pending;
        for (index, server_request) in server_requests.into_iter().enumerate() {
            let answer = answers.get(&key(index)).cloned().unwrap_or_else(RawJson::null);
            let _ = server_request.reply.send(Ok(answer));
        }
        in_flight.id = request.id.clone();
        in_flight.client_handle.replace_progress_token(params.meta.get("progressToken").cloned());
        ResumeOutcome::Continued(in_flight)
    }
}

/// Returns the key of the question at an index.
fn key(index: usize) -> String {
    format!("question-{}", index + 1)
}

fn input_required(token: &str, server_requests: &[ServerRequest]) -> RawJson {
    let mut requests = RawObject::default();
    for (index, server_request) in server_requests.iter().enumerate() {
        let mut request = RawObject::default().with("method", server_request.method.as_str());
        if let Some(params) = server_request.params.as_ref().and_then(RawJson::object) {
            request.set("params", without_token(params));
        }
        requests.set(key(index), request);
    }
    RawObject::default()
        .with("resultType", "input_required")
        .with("inputRequests", requests)
        .with("requestState", token)
        .into_raw()
}

/// Removes the progress token of the server: no progress is reported for such requests.
fn without_token(mut params: RawObject) -> RawObject {
    if let Some(mut meta) = params.get("_meta").and_then(RawJson::object) {
        meta.remove("progressToken");
        params.set("_meta", meta);
    }
    params
}

/// Removes requests that have waited too long. Dropping a request cancels it.
fn remove_expired(pending_requests: &mut HashMap<String, PendingRequest>) {
    pending_requests.retain(|_, pending| pending.since.elapsed() < CLIENT_ANSWER_TIMEOUT);
}

/// Removes the oldest requests of a principal that has reached its limit, never those of another.
fn evict_oldest(pending_requests: &mut HashMap<String, PendingRequest>, principal: &PrincipalHandle) {
    let limit = principal.limits().pending_input;
    loop {
        let of_principal = || {
            pending_requests.iter().filter(|(_, pending)| pending.identity.principal.shares_budget(principal))
        };
        if of_principal().count() < limit {
            return;
        }
        let oldest = of_principal().min_by_key(|(_, pending)| pending.since).map(|(token, _)| token.clone());
        let Some(oldest) = oldest else { return };
        pending_requests.remove(&oldest);
    }
}
