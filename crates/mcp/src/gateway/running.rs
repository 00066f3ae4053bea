//! One request of a client while it runs: what it tells on the way, what it asks, and how it ends.

use std::sync::Arc;
use std::time::Duration;

use toolhub_core::{BoxFuture, RawJson};

use super::backend::RpcError;
use super::budget::{Permit, Resource};
use super::client_handle::{ClientHandle, Question};
use super::client_queue::QueuedMessage;

/// Questions that come so soon after one another are asked together.
const TOGETHER: Duration = Duration::from_millis(10);

/// What a request comes to.
pub(crate) type Served = Result<RawJson, RpcError>;

/// What happens next.
#[derive(Debug)]
pub(crate) enum Step {
    /// The client is told something.
    Tell(String),
    /// A modern client is asked something: its request ends with the questions, and it comes again with the answers.
    Ask(Vec<Question>),
    /// The request is answered.
    Over(Served),
}

/// A request that runs. Dropping it cancels what it began.
pub(crate) struct Running {
    /// What the client calls it.
    pub(crate) id: RawJson,
    pub(crate) link: Arc<ClientHandle>,
    work: BoxFuture<'static, Served>,
    served: Option<Served>,
    /// It counts among its principal's requests until it is over, also while its answer is a stream.
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

    /// A question, and those that come with it: a server that wants to know several things asks them at once.
    async fn gather(&mut self, first: Question) -> Vec<Question> {
        let mut all = vec![first];
        while let Ok(word) = tokio::time::timeout(TOGETHER, self.link.words.next()).await {
            match word {
                QueuedMessage::Question(question) => all.push(*question),
                // What is told while a client is asked is told too late to be heard.
                QueuedMessage::Message(_) => {}
            }
        }
        all
    }

    /// Runs on until something happens. What was told before the end comes before it.
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
