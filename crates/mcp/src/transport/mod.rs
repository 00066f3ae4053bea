//! How messages travel. A transport pairs each request with its answer; what they mean is the connection's.

#[cfg_attr(unix, path = "group_unix.rs")]
#[cfg_attr(not(unix), path = "group_other.rs")]
mod group;
pub(crate) mod http;
pub(crate) mod lines;
pub(crate) mod mux;
#[cfg(test)]
mod no_listener;
mod pipe_writer;
mod process;
pub(crate) mod relay;
mod sandbox;
pub(crate) mod sse;
mod stderr;
pub(crate) mod stdio;
#[cfg(target_os = "linux")]
pub(crate) mod sweep;
mod turns;

use std::sync::Arc;

use serde::Deserialize;
use toolhub_core::{BoxFuture, RawJson};

use crate::error::McpError;
pub(crate) use crate::oauth::Repeat;

pub use sandbox::{ProcessSandbox, SandboxedProcess};
pub(crate) use stderr::StderrRing;
pub use stderr::last_lines;

/// The most a result may take after decompression.
pub(crate) const MAX_RESULT_BYTES: usize = 64 << 20;

/// Who hears of a request on its way.
pub(crate) trait Listener: Send + Sync {
    /// It leaves: from here on it may take effect.
    fn leaves(&self);

    /// It gets on: the raw params of the notification.
    fn progress(&self, params: &RawJson);
}

/// One request on its way out.
pub(crate) struct OutgoingRequest<'a> {
    /// Our id for it.
    pub(crate) id: u64,
    /// The method.
    pub(crate) method: &'a str,
    /// What the request is about: the tool's name, the resource's uri.
    pub(crate) name: Option<&'a str>,
    /// The message.
    pub(crate) body: String,
    /// Headers beside the usual ones.
    pub(crate) headers: &'a [(String, String)],
    /// Who hears that it leaves, and of its progress.
    pub(crate) listener: Option<&'a Arc<dyn Listener>>,
    /// When it may be sent a second time.
    pub(crate) repeat: Repeat,
    /// For whom it is; `None` for requests of the hub itself.
    pub(crate) principal: Option<&'a str>,
}

impl OutgoingRequest<'_> {
    /// Says that it leaves now.
    fn leaves(&self) {
        if let Some(listener) = self.listener {
            listener.leaves();
        }
    }
}

/// What a server asks or tells of its own accord.
pub(crate) trait Inbox: Send + Sync {
    /// Answers a server's request: a result, or an error's code and message. `via` is the request of ours on whose
    /// stream it came, where that shows.
    fn request(
        &self,
        method: String,
        params: Option<RawJson>,
        via: Option<u64>,
    ) -> BoxFuture<'_, Result<RawJson, (i64, String)>>;

    /// Hears a notification that is not about progress.
    fn notification(&self, method: &str, params: Option<&RawJson>, via: Option<u64>);

    /// Hears that something came which was not understood.
    fn oddity(&self, detail: String);

    /// Whether requests of the gateway's clients were sent over this connection. Then a message without a usable id may
    /// concern any of them, also one that was cancelled.
    fn has_clients(&self) -> bool;
}

/// A way to a server.
pub(crate) trait Transport: Send + Sync {
    /// Sends a request and waits for its answer. Dropping the future cancels the request and tells the server.
    fn request<'a>(&'a self, request: OutgoingRequest<'a>) -> BoxFuture<'a, Result<RawJson, McpError>>;

    /// Sends a notification.
    fn notify(&self, body: String) -> BoxFuture<'_, Result<(), McpError>>;

    /// Whether it still works.
    fn is_open(&self) -> bool;
}

/// The call that a progress notification is about: its token is our request id.
fn progress_token(params: &RawJson) -> Option<u64> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Token {
        progress_token: u64,
    }
    params.decode::<Token>().ok().map(|token| token.progress_token)
}
