//! Transports. A transport matches responses to requests; `connection` interprets the messages.

mod dynamic_threshold_semaphore;
pub(crate) mod http;
pub(crate) mod lines;
pub(crate) mod mux;
mod pipe_writer;
mod process;
#[cfg_attr(unix, path = "process_group_unix.rs")]
#[cfg_attr(not(unix), path = "process_group_other.rs")]
mod process_group;
pub(crate) mod relay;
pub(crate) mod remote;
pub(crate) mod sse;
mod stderr;
pub(crate) mod stdio;
#[cfg(target_os = "linux")]
pub(crate) mod sweep;
#[cfg(test)]
mod test_inbox;

use std::sync::Arc;

use serde::Deserialize;
use toolhub_core::{BoxFuture, RawJson};
use toolhub_mcp_wire::McpError;

pub(crate) use toolhub_oauth::Repeat;

pub(crate) use stderr::StderrRing;
pub use stderr::last_lines;

/// Maximum size of a result in bytes, after decompression.
pub(crate) const MAX_RESULT_BYTES: usize = 64 << 20;

/// Observes a request in flight.
pub(crate) trait RequestObserver: Send + Sync {
    /// Called when the request is sent: from here on it may take effect.
    fn on_send(&self);

    /// Called for progress notifications, with their raw params.
    fn progress(&self, params: &RawJson);
}

/// An outgoing request.
pub(crate) struct OutgoingRequest<'a> {
    /// The JSON-RPC id.
    pub(crate) id: u64,
    /// The method.
    pub(crate) method: &'a str,
    /// The name of the tool or the URI of the resource.
    pub(crate) name: Option<&'a str>,
    /// The serialized message.
    pub(crate) body: String,
    /// Additional headers.
    pub(crate) headers: &'a [(String, String)],
    /// Notified when the request is sent and of its progress.
    pub(crate) listener: Option<&'a Arc<dyn RequestObserver>>,
    /// Under which conditions it may be sent a second time.
    pub(crate) repeat: Repeat,
    /// The principal it is sent for; `None` for requests of the hub itself.
    pub(crate) principal: Option<&'a str>,
    /// The number of the client that caused it; `None` for requests of the hub itself.
    pub(crate) client: Option<u64>,
}

impl OutgoingRequest<'_> {
    /// Notifies the listener that the request is being sent.
    fn on_send(&self) {
        if let Some(listener) = self.listener {
            listener.on_send();
        }
    }
}

/// Receives the requests and notifications of a server.
pub(crate) trait ServerMessageHandler: Send + Sync {
    /// Answers a request of the server with a result, or with an error's code and message. `via` is our request on whose stream
    /// it arrived, if known.
    fn request(
        &self,
        method: String,
        params: Option<RawJson>,
        via: Option<u64>,
    ) -> BoxFuture<'_, Result<RawJson, (i64, String)>>;

    /// Receives a notification other than `notifications/progress`.
    fn notification(&self, method: &str, params: Option<&RawJson>, via: Option<u64>);

    /// Reports a message that could not be processed.
    fn report_anomaly(&self, detail: String);

    /// Whether requests of the gateway's clients were sent over this connection. Then a message without a usable id may concern
    /// any of them, also a cancelled one.
    fn has_clients(&self) -> bool;
}

/// A transport to a server.
pub(crate) trait Transport: Send + Sync {
    /// Sends a request and waits for its response. Dropping the future cancels the request and notifies the server.
    fn request<'a>(&'a self, request: OutgoingRequest<'a>) -> BoxFuture<'a, Result<RawJson, McpError>>;

    /// Sends a notification.
    fn notify(&self, body: String) -> BoxFuture<'_, Result<(), McpError>>;

    /// Whether it is still usable.
    fn is_open(&self) -> bool;
}

/// The request of a progress notification: the progress token is our request id.
fn progress_token(params: &RawJson) -> Option<u64> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Token {
        progress_token: u64,
    }
    params.decode::<Token>().ok().map(|token| token.progress_token)
}
