//! The context of a request: its principal and its trace. It is a task-local of the task that handles the message, since
//! it concerns neither parsing nor semantics.

use toolhub_core::trace::TraceContext;

use crate::Principal;

tokio::task_local! {
    static CURRENT: RequestContext;
}

/// The principal and the trace of a request.
#[derive(Debug, Clone)]
pub struct RequestContext {
    /// The principal that makes the request.
    pub principal: Principal,
    /// The trace context, if tracing is enabled.
    pub trace: Option<TraceContext>,
}

impl RequestContext {
    /// Runs `future` with this context.
    pub fn scope<T>(self, future: impl Future<Output = T>) -> impl Future<Output = T> {
        CURRENT.scope(self, future)
    }

    /// Returns the context of the current task.
    pub(crate) fn current() -> Option<Self> {
        CURRENT.try_with(Clone::clone).ok()
    }
}
