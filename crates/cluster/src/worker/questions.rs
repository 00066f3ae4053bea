//! Questions of servers to the client behind a request, which wait for its answer.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::oneshot;
use toolhub_core::RawJson;
use toolhub_core::caller::ClientResponse;

use crate::cluster_protocol::AnswerError;

/// The questions of one request, by their number.
#[derive(Debug, Default)]
pub(super) struct Questions(Mutex<HashMap<u64, oneshot::Sender<ClientResponse>>>);

impl Questions {
    /// Waits for the answer with this number.
    pub(super) fn expect_answer(&self, number: u64) -> oneshot::Receiver<ClientResponse> {
        let (sender, answer) = oneshot::channel();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(number, sender);
        answer
    }

    /// Delivers the answer to a question.
    pub(super) fn answer(&self, number: u64, answer: ClientResponse) {
        let waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
        if let Some(waiting) = waiting {
            let _ = waiting.send(answer);
        }
    }
}

/// Reads the answer of a client: a result, or an error.
pub(super) fn read_answer(is_error: bool, body: &Bytes) -> ClientResponse {
    let unreadable = || Err((-32000, "the answer cannot be read".to_owned()));
    if is_error {
        let error = serde_json::from_slice(body);
        return error.map_or_else(|_| unreadable(), |AnswerError { code, message }| Err((code, message)));
    }
    let result = std::str::from_utf8(body).ok().and_then(|text| RawJson::parse(text.to_owned()).ok());
    result.map_or_else(unreadable, Ok)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::HandledRequests;

    #[tokio::test]
    async fn answers_reach_their_question_alone() {
        let calls = HandledRequests::<Questions>::default();
        let (one, other) = (calls.begin("a").unwrap(), calls.begin("b").unwrap());
        let (first, second) = (one.call.state.expect_answer(1), other.call.state.expect_answer(1));
        let deliver = |id, number, is_error, body: &'static str| {
            let answer = read_answer(is_error, &Bytes::from_static(body.as_bytes()));
            calls.find(id).unwrap().state.answer(number, answer);
        };
        deliver("a", 2, false, "{\"n\":0}");
        deliver("b", 1, false, "{\"n\":2}");
        deliver("a", 1, true, "{\"code\":7,\"message\":\"no\"}");
        assert_eq!(first.await.unwrap().unwrap_err(), (7, "no".to_owned()));
        assert_eq!(second.await.unwrap().unwrap().get(), "{\"n\":2}");
    }
}
