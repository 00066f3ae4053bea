//! Requests of modern clients that wait for input: the client received the server requests as a result, and repeats its
//! request with the responses (2026-07-28, patterns/mrtr).

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytestring::ByteString;
use tokio::time::Instant;
use toolhub_core::{RawJson, RawObject};

use crate::Principal;
use crate::backend::RpcError;
use crate::client_handle::{PATIENCE, Question};
use crate::message::{Params, Request};
use crate::running::Running;

/// The prefix of our `requestState` values. Any other value belongs to a server.
const OURS: &str = "toolhub.";

struct Parked {
    running: Running,
    questions: Vec<Question>,
    about: About,
    since: Instant,
}

/// The identity of a request: input responses are valid only for the same request of the same principal.
#[derive(Debug, Clone)]
pub(crate) struct About {
    principal: Principal,
    method: ByteString,
    /// A JSON string, as received.
    name: Option<RawJson>,
}

impl About {
    pub(crate) fn of(principal: &Principal, request: &Request, params: &Params) -> Self {
        let text = |key: &str| params.members.get(key).filter(|value| value.get().starts_with('"'));
        let name = text("name").or_else(|| text("uri")).or_else(|| text("taskId"));
        Self { principal: principal.clone(), method: request.method.clone(), name: name.cloned() }
    }

    /// Returns whether both are the same request, regardless of the escapes in their names.
    fn is(&self, other: &Self) -> bool {
        let name = |about: &Self| about.name.as_ref().and_then(RawJson::text).map(Cow::into_owned);
        self.principal == other.principal && self.method == other.method && name(self) == name(other)
    }
}

/// The result of matching a repeated request.
pub(crate) enum Resumed {
    /// It does not continue a request that waits here.
    Other,
    /// The request continues.
    On(Running),
    /// A response is missing, so the same result is returned again.
    Again(RawJson),
    /// The `requestState` is invalid or has expired.
    Refused(RpcError),
}

/// The requests that wait for input.
#[derive(Default)]
pub(crate) struct PendingInputs(Mutex<HashMap<String, Parked>>);

impl PendingInputs {
    fn all(&self) -> MutexGuard<'_, HashMap<String, Parked>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops all waiting requests. Returns their number.
    pub(crate) fn clear(&self) -> usize {
        let gone = std::mem::take(&mut *self.all());
        gone.len()
    }

    /// Suspends a request until its client sends input. Returns the result that requests the input.
    pub(crate) fn park(&self, running: Running, questions: Vec<Question>, about: About) -> RawJson {
        let Some(token) = super::secret().map(|secret| format!("{OURS}{secret}")) else {
            return RawJson::null();
        };
        let asking = asking(&token, &questions);
        let mut all = self.all();
        sweep(&mut all);
        make_room(&mut all, &about.principal);
        all.insert(token, Parked { running, questions, about, since: Instant::now() });
        asking
    }

    /// Continues the request for which the client sends input responses.
    pub(crate) fn resume(&self, request: &Request, params: &Params, about: &About) -> Resumed {
        let Some(token) = params.text("requestState").filter(|state| state.starts_with(OURS)) else {
            return Resumed::Other;
        };
        let token = token.into_owned();
        let mut all = self.all();
        sweep(&mut all);
        // One error for all cases, so that it does not reveal whether the state exists for another request or principal.
        let matches = all.get(&token).is_some_and(|parked| parked.about.is(about));
        let Some(parked) = matches.then(|| all.remove(&token)).flatten() else {
            return Resumed::Refused(RpcError::invalid_params(
                "`requestState` is not known for this request: make the request again without it",
            ));
        };
        let answers = params.members.get("inputResponses").and_then(RawJson::object).unwrap_or_default();
        if (0..parked.questions.len()).any(|place| !answers.contains(&key(place))) {
            let again = asking(&token, &parked.questions);
            all.insert(token, parked);
            return Resumed::Again(again);
        }
        drop(all);
        let Parked { mut running, questions, .. } = parked;
        for (place, question) in questions.into_iter().enumerate() {
            let answer = answers.get(&key(place)).cloned().unwrap_or_else(RawJson::null);
            let _ = question.reply.send(Ok(answer));
        }
        running.id = request.id.clone();
        running.link.rename_progress(params.meta.get("progressToken").cloned());
        Resumed::On(running)
    }
}

/// Returns the key of the question at an index.
fn key(place: usize) -> String {
    format!("question-{}", place + 1)
}

fn asking(token: &str, questions: &[Question]) -> RawJson {
    let mut requests = RawObject::default();
    for (place, question) in questions.iter().enumerate() {
        let mut request = RawObject::default().with("method", question.method.as_str());
        if let Some(params) = question.params.as_ref().and_then(RawJson::object) {
            request.set("params", without_token(params));
        }
        requests.set(key(place), request);
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
fn sweep(all: &mut HashMap<String, Parked>) {
    all.retain(|_, parked| parked.since.elapsed() < PATIENCE);
}

/// Removes the oldest requests of a principal that has reached its limit, never those of another.
fn make_room(all: &mut HashMap<String, Parked>, principal: &Principal) {
    let limit = principal.limits().pending_input;
    loop {
        let own = || all.iter().filter(|(_, parked)| parked.about.principal.shares_budget(principal));
        if own().count() < limit {
            return;
        }
        let oldest = own().min_by_key(|(_, parked)| parked.since).map(|(token, _)| token.clone());
        let Some(oldest) = oldest else { return };
        all.remove(&oldest);
    }
}
