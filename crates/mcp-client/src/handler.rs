//! Handler for the requests that a server sends to its client.

use toolhub_core::error::METHOD_NOT_FOUND;
use toolhub_core::{BoxFuture, RawJson, ServerId};

/// An answer to a server: a result, or the code and message of an error.
pub type HandlerAnswer = Result<RawJson, (i64, String)>;

/// Answers requests of servers: sampling, elicitation, roots.
pub trait ClientHandler: Send + Sync {
    /// The capabilities to declare: an object such as `{"elicitation": {"form": {}}, "roots": {}}`.
    fn capabilities(&self) -> RawJson;

    /// Answers one request. By default it is refused: requests that belong to a call go to the client of that call, and for the
    /// others no client is certain.
    fn request<'a>(
        &'a self,
        _server: &'a ServerId,
        method: String,
        _params: Option<RawJson>,
    ) -> BoxFuture<'a, HandlerAnswer> {
        Box::pin(async move {
            Err((
                METHOD_NOT_FOUND,
                format!("cannot answer `{method}`: it is not certain which client it concerns"),
            ))
        })
    }

    /// Receives a notification that belongs to no request.
    fn notification(&self, _server: &ServerId, _method: &str, _params: Option<&RawJson>) {}
}

/// Declares no capabilities and refuses every request.
#[derive(Debug, Clone, Copy, Default)]
pub struct RejectingHandler;

impl ClientHandler for RejectingHandler {
    fn capabilities(&self) -> RawJson {
        RawJson::empty_object()
    }

    fn request<'a>(
        &'a self,
        _: &'a ServerId,
        method: String,
        _: Option<RawJson>,
    ) -> BoxFuture<'a, HandlerAnswer> {
        Box::pin(async move { Err((METHOD_NOT_FOUND, format!("method not found: {method}"))) })
    }
}
