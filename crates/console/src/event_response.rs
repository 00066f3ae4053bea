//! Responses that are streams of events of one request: its work runs while the stream is read, and ends with it.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, Response, header};
use serde::Serialize;
use tokio::sync::{mpsc, oneshot};
use toolhub_core::lang::LocalizedText;
use toolhub_mcp_gateway::random_token;

/// An event of a stream.
pub(crate) struct StreamEvent {
    name: &'static str,
    /// JSON without line breaks.
    data: String,
}

impl StreamEvent {
    pub(crate) fn new(name: &'static str, data: &impl Serialize) -> Self {
        let data = serde_json::to_string(data).unwrap_or_else(|_| "null".to_owned());
        // Line breaks between the tokens of raw JSON would end the event; strings have none.
        Self { name, data: data.replace(['\n', '\r'], " ") }
    }

    #[cfg(test)]
    pub(crate) fn data(&self) -> serde_json::Value {
        serde_json::from_str(&self.data).unwrap()
    }

    fn to_bytes(&self) -> Bytes {
        Bytes::from(format!("event: {}\ndata: {}\n\n", self.name, self.data))
    }
}

/// Runs the work of a request, and streams the events that it sends. The work is dropped with the stream.
pub(crate) fn respond(
    receiver: mpsc::Receiver<StreamEvent>,
    work: impl Future<Output = ()> + Send + 'static,
) -> Response<Body> {
    let state = (receiver, Some(Box::pin(work)));
    let events = stream::unfold(state, |(mut receiver, mut work)| async move {
        let event = loop {
            let Some(running) = &mut work else { break receiver.recv().await? };
            tokio::select! {
                biased;
                event = receiver.recv() => break event?,
                () = running => {
                    // What it has sent is still delivered. Others that hold the sender cannot keep the stream open.
                    receiver.close();
                    work = None;
                }
            }
        };
        Some((Ok::<_, Infallible>(event.to_bytes()), (receiver, work)))
    });
    let mut response = Response::new(Body::from_stream(events));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    // Some reverse proxies buffer responses otherwise.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// Checks an answer before it counts.
pub(crate) type AnswerCheck<T> = Box<dyn Fn(&T) -> Result<(), LocalizedText> + Send>;

/// A question that a request waits for.
struct PendingAnswer<T> {
    /// The principal that may answer.
    principal: Arc<str>,
    check: AnswerCheck<T>,
    answer: oneshot::Sender<T>,
}

/// The questions that requests wait for, by their ids. An id is a secret of its stream.
pub(crate) struct PendingAnswers<T>(Mutex<HashMap<String, PendingAnswer<T>>>);

impl<T> Default for PendingAnswers<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> PendingAnswers<T> {
    /// Answers a question. Returns whether a request of that principal waits for it, or why the answer does not fit: then the
    /// question is still open.
    pub(crate) fn answer(&self, id: &str, principal: &str, answer: T) -> Result<bool, LocalizedText> {
        let mut all = self.lock();
        let Some(pending) = all.get(id).filter(|pending| *pending.principal == *principal) else {
            return Ok(false);
        };
        (pending.check)(&answer)?;
        Ok(all.remove(id).is_some_and(|pending| pending.answer.send(answer).is_ok()))
    }

    /// Adds a question. Dropping it removes it. Returns `None` if the system has no random numbers.
    pub(crate) fn ask(&self, principal: &Arc<str>, check: AnswerCheck<T>) -> Option<PendingQuestion<'_, T>> {
        let id = random_token()?;
        let (sender, receiver) = oneshot::channel();
        let pending = PendingAnswer { principal: Arc::clone(principal), check, answer: sender };
        self.lock().insert(id.clone(), pending);
        Some(PendingQuestion { pending: self, id, receiver })
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, PendingAnswer<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question that waits for its answer.
pub(crate) struct PendingQuestion<'a, T> {
    pending: &'a PendingAnswers<T>,
    pub(crate) id: String,
    receiver: oneshot::Receiver<T>,
}

impl<T> PendingQuestion<'_, T> {
    /// Waits for the answer.
    pub(crate) async fn answer(&mut self) -> Option<T> {
        (&mut self.receiver).await.ok()
    }
}

impl<T> Drop for PendingQuestion<'_, T> {
    fn drop(&mut self) {
        self.pending.lock().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use toolhub_core::RawJson;

    use super::*;

    #[test]
    fn raw_json_stays_in_one_event() {
        let raw = RawJson::parse("{\"a\":\n\r 1.10,\n\"b\": \"\\n\"}".to_owned()).unwrap();
        let event = String::from_utf8(StreamEvent::new("x", &raw).to_bytes().to_vec()).unwrap();
        assert_eq!(event.matches('\n').count(), 3, "{event}");
        assert!(event.contains("1.10") && event.contains("\\n"), "{event}");
    }

    #[tokio::test]
    async fn stream_ends_with_its_work() {
        let (sender, receiver) = mpsc::channel(4);
        let kept = sender.clone();
        let response = respond(receiver, async move {
            for number in 0..3 {
                let _ = sender.send(StreamEvent::new("n", &number)).await;
            }
        });
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&body).matches("event: n").count(), 3);
        assert!(kept.is_closed());
    }

    #[tokio::test]
    async fn only_its_principal_answers_a_question_once() {
        let pending = PendingAnswers::default();
        let ann: Arc<str> = Arc::from("key:ann");
        let is_even =
            || Box::new(|answer: &i32| if answer % 2 == 0 { Ok(()) } else { Err("odd".to_owned().into()) });
        let mut question = pending.ask(&ann, is_even()).unwrap();
        let id = question.id.clone();
        assert_eq!(pending.answer(&id, "key:bob", 2), Ok(false));
        assert_eq!(pending.answer("other", "key:ann", 2), Ok(false));
        // An answer that does not fit leaves the question open.
        assert!(pending.answer(&id, "key:ann", 1).is_err());
        assert_eq!(pending.answer(&id, "key:ann", 2), Ok(true));
        assert_eq!(pending.answer(&id, "key:ann", 4), Ok(false));
        assert_eq!(question.answer().await, Some(2));
        drop(question);
        drop(pending.ask(&ann, is_even()).unwrap());
        assert!(pending.is_empty());
    }
}
