//! The requests that a worker processes: each at most once, with its cancellation and the questions that wait for an answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use toolhub_core::RawJson;
use toolhub_core::caller::Answer;

use crate::wire::AnswerError;

/// How long the id of a request is remembered. A request must begin within a shorter time.
const REMEMBER: Duration = Duration::from_secs(60);
/// Above this number of ids, those that are no longer needed are removed.
const PRUNE_ABOVE: usize = 4096;

/// A request that runs.
#[derive(Debug, Default)]
pub(super) struct Call {
    pub(super) cancelled: CancellationToken,
    questions: Mutex<HashMap<u64, oneshot::Sender<Answer>>>,
}

impl Call {
    /// Waits for the answer with this number.
    pub(super) fn expect_answer(&self, number: u64) -> oneshot::Receiver<Answer> {
        let (sender, answer) = oneshot::channel();
        self.questions.lock().unwrap_or_else(PoisonError::into_inner).insert(number, sender);
        answer
    }
}

#[derive(Debug)]
struct Known {
    since: Instant,
    /// `None` once it has ended, or if it was cancelled before it came.
    running: Option<Arc<Call>>,
}

/// The requests that run, and those that ended a short time ago.
#[derive(Debug, Default)]
pub(super) struct Calls(Mutex<HashMap<String, Known>>);

impl Calls {
    fn known(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a request; `None` if it came before, or was cancelled.
    pub(super) fn begin(&self, id: &str) -> Option<Running<'_>> {
        let mut known = self.known();
        if known.contains_key(id) {
            return None;
        }
        if known.len() > PRUNE_ABOVE {
            known.retain(|_, known| known.running.is_some() || known.since.elapsed() < REMEMBER);
        }
        let call = Arc::new(Call::default());
        known.insert(id.to_owned(), Known { since: Instant::now(), running: Some(Arc::clone(&call)) });
        Some(Running { calls: self, id: id.to_owned(), call })
    }

    /// Cancels a request, also one that comes later.
    pub(super) fn cancel(&self, id: &str) {
        let mut known = self.known();
        let entry =
            known.entry(id.to_owned()).or_insert_with(|| Known { since: Instant::now(), running: None });
        if let Some(call) = &entry.running {
            call.cancelled.cancel();
        }
    }

    /// Delivers the answer to a question.
    pub(super) fn answer(&self, id: &str, number: u64, answer: Answer) {
        let call = self.known().get(id).and_then(|known| known.running.clone());
        let Some(call) = call else { return };
        let waiting = call.questions.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
        if let Some(waiting) = waiting {
            let _ = waiting.send(answer);
        }
    }
}

/// Reads the answer of a client: a result, or an error.
pub(super) fn read_answer(is_error: bool, body: &Bytes) -> Answer {
    let unreadable = || Err((-32000, "the answer cannot be read".to_owned()));
    if is_error {
        let error = serde_json::from_slice(body);
        return error.map_or_else(|_| unreadable(), |AnswerError { code, message }| Err((code, message)));
    }
    let result = std::str::from_utf8(body).ok().and_then(|text| RawJson::parse(text.to_owned()).ok());
    result.map_or_else(unreadable, Ok)
}

/// Guard of a request that runs.
pub(super) struct Running<'a> {
    calls: &'a Calls,
    id: String,
    pub(super) call: Arc<Call>,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if let Some(known) = self.calls.known().get_mut(&self.id) {
            known.running = None;
            known.since = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_request_begins_twice_or_after_its_cancellation() {
        let calls = Calls::default();
        let running = calls.begin("a").unwrap();
        assert!(calls.begin("a").is_none());
        calls.cancel("a");
        assert!(running.call.cancelled.is_cancelled());
        drop(running);
        assert!(calls.begin("a").is_none());
        calls.cancel("b");
        assert!(calls.begin("b").is_none());
    }

    #[tokio::test]
    async fn answers_reach_their_question_alone() {
        let calls = Calls::default();
        let (one, other) = (calls.begin("a").unwrap(), calls.begin("b").unwrap());
        let (first, second) = (one.call.expect_answer(1), other.call.expect_answer(1));
        let answer =
            |is_error, body: &'static str| read_answer(is_error, &Bytes::from_static(body.as_bytes()));
        calls.answer("a", 2, answer(false, "{\"n\":0}"));
        calls.answer("b", 1, answer(false, "{\"n\":2}"));
        calls.answer("a", 1, answer(true, "{\"code\":7,\"message\":\"no\"}"));
        assert_eq!(first.await.unwrap().unwrap_err(), (7, "no".to_owned()));
        assert_eq!(second.await.unwrap().unwrap().get(), "{\"n\":2}");
    }
}
