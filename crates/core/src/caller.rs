//! The caller of a running call: a gateway client that can receive notifications and requests.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::json::{RawJson, RawObject};
use crate::ports::BoxFuture;
use crate::trace::TraceContext;

/// The response to a request: a result, or the code and message of an error.
pub type Answer = Result<RawJson, (i64, String)>;

/// The client that made a call.
pub trait Caller: Send + Sync {
    /// The client's number; all calls of one client share it.
    fn client(&self) -> u64;

    /// The client's capabilities: an object such as `{"elicitation": {}, "roots": {}}`.
    fn capabilities(&self) -> RawJson;

    /// The `_meta` object of its request.
    fn meta(&self) -> &RawObject;

    /// The other members of its request, beside those of the call itself.
    fn extras(&self) -> &RawObject;

    /// Whether it accepts a result that requests input, and repeats the call with the answers.
    fn takes_questions_as_results(&self) -> bool;

    /// Forwards a progress notification; `params` are unchanged.
    fn progress(&self, params: &RawJson);

    /// Forwards another notification of the call.
    fn notify(&self, method: &str, params: Option<&RawJson>);

    /// The minimum log level (JSON) of this client, if it is not part of its requests.
    fn hears(&self) -> Option<RawJson> {
        None
    }

    /// The authenticated principal, if any.
    fn principal(&self) -> Option<&str> {
        None
    }

    /// The trace context of its request, if tracing is enabled.
    fn trace(&self) -> Option<&TraceContext> {
        None
    }

    /// Sends a request to the client and returns its response.
    fn ask(&self, method: String, params: Option<RawJson>) -> BoxFuture<'_, Answer>;
}

/// A shared handle to a caller.
#[derive(Clone)]
pub struct CallerLink(Arc<dyn Caller>);

impl CallerLink {
    /// Creates a handle.
    pub fn new(caller: Arc<dyn Caller>) -> Self {
        Self(caller)
    }
}

impl Deref for CallerLink {
    type Target = dyn Caller;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl fmt::Debug for CallerLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CallerLink").field(&self.0.client()).finish()
    }
}
