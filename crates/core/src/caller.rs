//! Whoever made a call and can be reached while it runs: a client of the gateway, who may be asked and told things.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::json::{RawJson, RawObject};
use crate::ports::BoxFuture;
use crate::trace::TraceContext;

/// An answer to a question: a result, or the code and message of an error.
pub type Answer = Result<RawJson, (i64, String)>;

/// Somebody at the other end of a call.
pub trait Caller: Send + Sync {
    /// Which client; all calls of one client have the same number.
    fn client(&self) -> u64;

    /// What it can be asked: an object such as `{"elicitation": {}, "roots": {}}`.
    fn capabilities(&self) -> RawJson;

    /// What goes along with its request as `_meta`.
    fn meta(&self) -> &RawObject;

    /// What its request holds beside what the call itself is about.
    fn extras(&self) -> &RawObject;

    /// Whether it takes a result that asks for more, and comes again with the answers.
    fn takes_questions_as_results(&self) -> bool;

    /// Hears how the call is getting on: the params of the notification, as they were sent.
    fn progress(&self, params: &RawJson);

    /// Hears something else that belongs to the call.
    fn notify(&self, method: &str, params: Option<&RawJson>);

    /// How grave what is logged must be for it to hear of it, where it does not say so with its requests; JSON.
    fn hears(&self) -> Option<RawJson> {
        None
    }

    /// Under which name it was let in, where it was.
    fn principal(&self) -> Option<&str> {
        None
    }

    /// The place of its request in a trace, where traces are made.
    fn trace(&self) -> Option<&TraceContext> {
        None
    }

    /// Answers a question.
    fn ask(&self, method: String, params: Option<RawJson>) -> BoxFuture<'_, Answer>;
}

/// A way to a caller.
#[derive(Clone)]
pub struct CallerLink(Arc<dyn Caller>);

impl CallerLink {
    /// The way to this one.
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
