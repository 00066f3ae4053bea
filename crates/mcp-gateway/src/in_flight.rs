//! A request in progress: its notifications, its server requests and its result.

use std::sync::Arc;
use std::time::Duration;

use toolhub_core::{BoxFuture, RawJson};

use crate::budget::{BudgetPermit, BudgetedResource};
use crate::client_handle::ClientHandle;
use crate::client_queue::{QueuedMessage, ServerRequest};
use crate::rpc_error::RpcResult;

/// Server requests that follow one another within this time are sent to a modern client together.
const GATHER_WINDOW: Duration = Duration::from_millis(10);

/// The next step of a request.
#[derive(Debug)]
pub(crate) enum RequestStep {
    /// A message is to be sent to the client.
    Send(String),
    /// Input of a modern client is needed: its request ends with the server requests as a result, and is repeated with
    /// the responses.
    RequestInput(Vec<ServerRequest>),
    /// The request has ended.
    Done(RpcResult),
}

/// A request in progress. Dropping it cancels its work.
pub(crate) struct InFlightRequest {
    /// The request id.
    pub(crate) id: RawJson,
    pub(crate) client_handle: Arc<ClientHandle>,
    work: BoxFuture<'static, RpcResult>,
    outcome: Option<RpcResult>,
    /// Counts towards the principal's running requests until the request ends, also if the response is a stream.
    _permit: Option<BudgetPermit>,
}

impl InFlightRequest {
    pub(crate) fn new(
        id: RawJson,
        client_handle: Arc<ClientHandle>,
        work: BoxFuture<'static, RpcResult>,
    ) -> Self {
        let permit = client_handle
            .principal_budget()
            .map(|principal| principal.take(BudgetedResource::InFlightRequest, 1));
        let (permit, outcome) = match permit.transpose() {
            Ok(permit) => (permit, None),
            Err(exceeded) => (None, Some(Err(exceeded.into()))),
        };
        Self { id, client_handle, work, outcome, _permit: permit }
    }

    /// Collects a server request and those that follow immediately: a server that needs several inputs requests them at
    /// once.
    async fn gather(&mut self, first: ServerRequest) -> Vec<ServerRequest> {
        let mut server_requests = vec![first];
        while let Ok(message) = tokio::time::timeout(GATHER_WINDOW, self.client_handle.queue.next()).await {
            match message {
                QueuedMessage::ServerRequest(server_request) => server_requests.push(*server_request),
                // Notifications are dropped here: the response to the client consists of the server requests alone.
                QueuedMessage::Message(_) => {}
            }
        }
        server_requests
    }

    /// Runs until the next step. Queued messages are returned before the result.
    pub(crate) async fn step(&mut self) -> RequestStep {
        loop {
            if let Some(outcome) = self.outcome.take() {
                if let Some(QueuedMessage::Message(text)) = self.client_handle.queue.take() {
                    self.outcome = Some(outcome);
                    return RequestStep::Send(text);
                }
                return RequestStep::Done(self.client_handle.finalize(outcome));
            }
            tokio::select! {
                biased;
                message = self.client_handle.queue.next() => return match message {
                    QueuedMessage::Message(text) => RequestStep::Send(text),
                    QueuedMessage::ServerRequest(server_request) => RequestStep::RequestInput(Box::pin(self.gather(*server_request)).await),
                },
                outcome = &mut self.work => self.outcome = Some(outcome),
            }
        }
    }
}

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        self.client_handle.queue.close();
    }
}
