//! The caller of a running call: a gateway client that can receive notifications and requests.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use crate::boxed::BoxFuture;
use crate::json::{RawJson, RawObject};
use crate::lang::Lang;
use crate::principal::Principal;
use crate::trace::TraceContext;

/// How long the client may take to answer a request of a server: a person may have to decide.
pub const CLIENT_ANSWER_TIMEOUT: Duration = Duration::from_secs(600);

/// The response to a request: a result, or the code and message of an error.
pub type ClientResponse = Result<RawJson, (i64, String)>;

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
    fn accepts_input_requests(&self) -> bool;

    /// Forwards a progress notification; `params` are unchanged.
    fn progress(&self, params: &RawJson);

    /// Forwards another notification of the call.
    fn notify(&self, method: &str, params: Option<&RawJson>);

    /// The minimum log level (JSON) of this client, if it is not part of its requests.
    fn log_level(&self) -> Option<RawJson> {
        None
    }

    /// The id of the authenticated principal, if any.
    fn principal_id(&self) -> Option<&str> {
        self.principal().map(|principal| &**principal.id())
    }

    /// The authenticated principal, if any.
    fn principal(&self) -> Option<&Arc<Principal>> {
        None
    }

    /// Reports that the request was refused because its token lacks these scopes.
    fn require_scopes(&self, scopes: Vec<String>) {
        drop(scopes);
    }

    /// Reports the outcome of its call, as [`crate::Outcome::to_json`] renders it: the result of a client contains less.
    fn report_outcome(&self, render: &dyn Fn(Lang) -> RawObject) {
        let _ = render;
    }

    /// Reports that the call was held for an approval and did not run.
    fn report_held(&self) {}

    /// The trace context of its request, if tracing is enabled.
    fn trace(&self) -> Option<&TraceContext> {
        None
    }

    /// Sends a request to the client and returns its response.
    fn ask(&self, method: String, params: Option<RawJson>) -> BoxFuture<'_, ClientResponse>;
}

/// A shared handle to a caller.
#[derive(Clone)]
pub struct CallerHandle(Arc<dyn Caller>);

impl CallerHandle {
    /// Creates a handle.
    pub fn new(caller: Arc<dyn Caller>) -> Self {
        Self(caller)
    }
}

impl Deref for CallerHandle {
    type Target = dyn Caller;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl fmt::Debug for CallerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CallerHandle").field(&self.0.client()).finish()
    }
}
