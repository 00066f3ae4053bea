//! The connected clients of the HTTP+SSE transport (revision 2024-11-05), each with one event stream for all messages to it.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use futures_util::{Stream, stream};
use http::{Response, StatusCode};
use tokio::sync::mpsc;
use toolhub_mcp_gateway::{
    BudgetPermit, BudgetedResource, Duplex, Gateway, OutboundMessage, PrincipalHandle, QuotaExceeded,
    SseEvents,
};

use crate::responses::empty_response;

/// Interval between comments on an idle stream, which keep it alive.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The connected clients, by session id.
#[derive(Debug, Default)]
pub(crate) struct LegacyClients(Mutex<HashMap<String, (PrincipalHandle, Arc<Duplex>)>>);

impl LegacyClients {
    fn all(&self) -> MutexGuard<'_, HashMap<String, (PrincipalHandle, Arc<Duplex>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the event stream on which a client receives all messages.
    pub(crate) fn open(
        self: &Arc<Self>,
        gateway: &Arc<Gateway>,
        principal: &PrincipalHandle,
        name: String,
        endpoint: &str,
    ) -> Result<SseEvents, QuotaExceeded> {
        let permit = principal.take(BudgetedResource::Streams, 1)?;
        let (duplex, messages) = Duplex::open(gateway, principal.clone());
        let duplex = Arc::new(duplex);
        self.all().insert(name.clone(), (principal.clone(), Arc::clone(&duplex)));
        let endpoint = format!("event: endpoint\ndata: {endpoint}\n\n");
        let guard = ClientGuard { clients: Arc::clone(self), name, _permit: permit };
        let closed = Box::pin(async move { duplex.closed().await });
        let inner = stream::unfold(
            (Some(endpoint), messages, closed),
            |(first, mut messages, mut closed)| async move {
                let event = match first {
                    Some(first) => Some(first),
                    None => next(&mut messages, &mut closed).await,
                };
                event.map(|event| (event, (None, messages, closed)))
            },
        );
        Ok(Box::pin(ClientEvents { inner: Box::pin(inner), _guard: guard }))
    }

    /// Handles a message of the client with that session id.
    pub(crate) async fn take(&self, name: &str, principal: &PrincipalHandle, body: &[u8]) -> Response<Body> {
        let client =
            self.all().get(name).filter(|(owner, _)| owner == principal).map(|(_, one)| Arc::clone(one));
        let Some(client) = client else { return empty_response(StatusCode::NOT_FOUND) };
        let Ok(text) = std::str::from_utf8(body) else { return empty_response(StatusCode::BAD_REQUEST) };
        client.receive(text).await;
        empty_response(StatusCode::ACCEPTED)
    }
}

/// Returns the next event, or `None` after `closed` has resolved and all queued messages were sent.
async fn next(
    messages: &mut mpsc::Receiver<OutboundMessage>,
    closed: &mut (impl Future<Output = ()> + Unpin),
) -> Option<String> {
    let message = tokio::select! {
        biased;
        message = tokio::time::timeout(KEEP_ALIVE, messages.recv()) => message,
        () = closed => {
            // Queued messages are still sent.
            messages.close();
            Ok(messages.recv().await)
        }
    };
    match message {
        Ok(Some(text)) => Some(format!("event: message\ndata: {}\n\n", &*text)),
        Ok(None) => None,
        Err(_) => Some(":\n\n".to_owned()),
    }
}

/// Removes a client when its stream is dropped.
struct ClientGuard {
    clients: Arc<LegacyClients>,
    name: String,
    _permit: BudgetPermit,
}

impl Drop for ClientGuard {
    fn drop(&mut self) {
        let removed = self.clients.all().remove(&self.name);
        drop(removed);
    }
}

struct ClientEvents {
    inner: Pin<Box<dyn Stream<Item = String> + Send>>,
    _guard: ClientGuard,
}

impl Stream for ClientEvents {
    type Item = String;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<String>> {
        self.inner.as_mut().poll_next(context)
    }
}
