//! What is known of a request beside its message: who makes it, and which trace it is part of. It goes with the task that
//! takes the message in, since it concerns neither how messages are read nor what they mean.

use toolhub_core::trace::TraceContext;

use super::Principal;

tokio::task_local! {
    static ASKING: RequestContext;
}

/// Who makes a request, and within what.
#[derive(Debug, Clone)]
pub struct RequestContext {
    /// Who.
    pub principal: Principal,
    /// Its place in a trace, where traces are made.
    pub trace: Option<TraceContext>,
}

impl RequestContext {
    /// Takes a message in as this one's.
    pub fn takes<T>(self, taking: impl Future<Output = T>) -> impl Future<Output = T> {
        ASKING.scope(self, taking)
    }

    /// Whose message is being taken in.
    pub(crate) fn current() -> Option<Self> {
        ASKING.try_with(Clone::clone).ok()
    }
}
