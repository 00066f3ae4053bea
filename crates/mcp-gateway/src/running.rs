//! A request in progress: its notifications, its server requests and its result.

use std::sync::Arc;
use std::time::Duration;

use toolhub_core::{BoxFuture, RawJson};

use crate::backend::RpcError;
use crate::budget::{Permit, Resource};
use crate::client_handle::{ClientHandle, Question};
use crate::client_queue::QueuedMessage;

/// Server requests that follow one another within this time are sent to a modern client together.
const TOGETHER: Duration = Duration::from_millis(10);

/// The result of a request.
pub(crate) type Served = Result<RawJson, RpcError>;

/// The next step of a request.
#[derive(Debug)]
pub(crate) enum Step {
    /// A message is to be sent to the client.
    Tell(String),
    /// Input of a modern client is needed: its request ends with the server requests as a result, and is repeated with
    /// the responses.
    Ask(Vec<Question>),
    /// The request has ended.
    Over(Served),
}

/// A request in progress. Dropping it cancels its work.
pub(crate) struct Running {
    /// The request id.
    pub(crate) id: RawJson,
    pub(crate) link: Arc<ClientHandle>,
    work: BoxFuture<'static, Served>,
    served: Option<Served>,
    /// Counts towards the principal's running requests until the request ends, also if the response is a stream.
    _permit: Option<Permit>,
}

impl Running {
    pub(crate) fn new(id: RawJson, link: Arc<ClientHandle>, work: BoxFuture<'static, Served>) -> Self {
        let permit = link.principal_budget().map(|principal| principal.take(Resource::Running, 1));
        let (permit, served) = match permit.transpose() {
            Ok(permit) => (permit, None),
            Err(exhausted) => (None, Some(Err(exhausted.into()))),
        };
        Self { id, link, work, served, _permit: permit }
    }

    /// Collects a server request and those that follow immediately: a server that needs several inputs requests them at
    /// once.
    async fn gather(&mut self, first: Question) -> Vec<Question> {
        let mut all = vec![first];
        while let Ok(word) = tokio::time::timeout(TOGETHER, self.link.words.next()).await {
            match word {
                QueuedMessage::Question(question) => all.push(*question),
                // Notifications are dropped here: the response to the client consists of the server requests alone.
                QueuedMessage::Message(_) => {}
            }
        }
        all
    }

    /// Runs until the next step. Queued messages are returned before the result.
    pub(crate) async fn step(&mut self) -> Step {
        loop {
            if let Some(served) = self.served.take() {
                if let Some(QueuedMessage::Message(text)) = self.link.words.take() {
                    self.served = Some(served);
                    return Step::Tell(text);
                }
                return Step::Over(self.link.judge(served));
            }
            tokio::select! {
                biased;
                word = self.link.words.next() => return match word {
                    QueuedMessage::Message(text) => Step::Tell(text),
                    QueuedMessage::Question(question) => Step::Ask(Box::pin(self.gather(*question)).await),
                },
                served = &mut self.work => self.served = Some(served),
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.link.words.close();
    }
}
