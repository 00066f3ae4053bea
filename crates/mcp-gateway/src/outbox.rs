//! The queue of messages to a client of a bidirectional stream. They count towards the principal's budget of unread
//! bytes.

use std::ops::Deref;

use tokio::sync::mpsc;
use toolhub_core::RawJson;

use crate::budget::{BudgetPermit, BudgetedResource, PrincipalHandle};
use crate::message::{error_response, one_line, serialize_response};
use crate::rpc_error::{RpcError, RpcResult};

/// Maximum number of queued messages.
const MAX_QUEUED_MESSAGES: usize = 1_024;

/// A queued message. It counts as unread until it is dropped.
#[derive(Debug)]
pub struct OutboundMessage {
    text: String,
    _permit: Option<BudgetPermit>,
}

impl Deref for OutboundMessage {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl OutboundMessage {
    /// Returns the message without its permit.
    pub fn into_text(self) -> String {
        self.text
    }
}

/// Queues messages for one client.
#[derive(Debug, Clone)]
pub(super) struct Outbox {
    queue: mpsc::Sender<OutboundMessage>,
    principal: PrincipalHandle,
}

impl Outbox {
    pub(super) fn new(principal: PrincipalHandle) -> (Self, mpsc::Receiver<OutboundMessage>) {
        let (queue, messages) = mpsc::channel(MAX_QUEUED_MESSAGES);
        (Self { queue, principal }, messages)
    }

    /// Returns whether the client has disconnected.
    pub(super) fn is_closed(&self) -> bool {
        self.queue.is_closed()
    }

    /// Queues the response to a request, or an error in its place if the budget of unread bytes is exhausted.
    pub(super) async fn answer(&self, id: &RawJson, outcome: &RpcResult) {
        let text = one_line(serialize_response(id, outcome));
        let message = match self.principal.take(BudgetedResource::Unread, text.len()) {
            Ok(permit) => OutboundMessage { text, _permit: Some(permit) },
            Err(exceeded) => {
                let dropped = format!("the request was executed, but its answer was dropped: {exceeded}");
                let text = error_response(Some(id), &RpcError { message: dropped, ..exceeded.into() });
                OutboundMessage { text, _permit: None }
            }
        };
        let _ = self.queue.send(message).await;
    }

    /// Queues a message of one line. It is dropped if the budget of unread bytes is exhausted.
    pub(super) async fn send(&self, text: String) {
        if let Some(message) = self.message(text) {
            let _ = self.queue.send(message).await;
        }
    }

    /// Like [`Self::send`], but also drops the message if the queue is full.
    pub(super) fn try_send(&self, text: String) {
        if let Some(message) = self.message(text) {
            let _ = self.queue.try_send(message);
        }
    }

    fn message(&self, text: String) -> Option<OutboundMessage> {
        let permit = self.principal.take(BudgetedResource::Unread, text.len()).ok()?;
        Some(OutboundMessage { text, _permit: Some(permit) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{BudgetLimits, PrincipalTable};

    #[tokio::test]
    async fn replaces_responses_beyond_the_unread_budget_with_errors() {
        let principals =
            PrincipalTable::new(BudgetLimits { unread_bytes: 10_000, ..BudgetLimits::default() });
        let (ann, bob) = (
            principals.of(&toolhub_core::Principal::of_key("ann").into()),
            principals.of(&toolhub_core::Principal::of_key("bob").into()),
        );
        let (outbox, mut messages) = Outbox::new(ann.clone());
        let long = RawJson::from("x".repeat(6_000));
        for number in 1..=3 {
            outbox.answer(&RawJson::from(number), &Ok(long.clone())).await;
        }
        assert!(ann.used(BudgetedResource::Unread) <= 10_000);
        assert!(messages.recv().await.unwrap().contains("xxx"));
        for number in 2..=3 {
            let refused = messages.recv().await.unwrap().into_text();
            assert!(refused.contains(&format!("\"id\":{number},\"error\"")), "{refused}");
            assert!(refused.contains("unread_bytes"), "{refused}");
        }
        // Reading frees the budget, and another principal is not affected.
        outbox.answer(&RawJson::from(4), &Ok(long.clone())).await;
        let (other, mut other_messages) = Outbox::new(bob);
        other.answer(&RawJson::from(1), &Ok(long)).await;
        assert!(
            messages.recv().await.unwrap().contains("xxx")
                && other_messages.recv().await.unwrap().contains("xxx")
        );
        assert_eq!(ann.used(BudgetedResource::Unread), 0);
    }
}
