//! The context of a request: its principal and its trace. It is a task-local of the task that handles the message, since
//! it concerns neither parsing nor semantics.

use std::sync::{Arc, OnceLock};

use toolhub_core::principal::PrincipalOrigin;
use toolhub_core::trace::TraceContext;

use crate::PrincipalHandle;

tokio::task_local! {
    static CURRENT: RequestContext;
}

/// The principal and the trace of a request.
#[derive(Debug, Clone)]
pub struct RequestContext {
    /// The principal that makes the request.
    pub principal: PrincipalHandle,
    /// The trace context, if tracing is enabled.
    pub trace: Option<TraceContext>,
    /// The scopes that the token of the request lacks.
    pub step_up: StepUp,
}

/// The scopes that the token of a request lacks, set while the request is handled. Only tokens of an identity provider
/// have scopes.
#[derive(Debug, Clone, Default)]
pub struct StepUp(Option<Arc<OnceLock<Vec<String>>>>);

impl StepUp {
    /// Creates the place for the scopes of a request of this principal.
    pub fn of(principal: &PrincipalHandle) -> Self {
        Self(matches!(principal.identity().origin, PrincipalOrigin::Oidc { .. }).then(Arc::default))
    }

    /// Sets the missing scopes.
    pub(crate) fn require(&self, scopes: Vec<String>) {
        if let Some(required) = &self.0 {
            let _ = required.set(scopes);
        }
    }

    /// Returns the missing scopes, if the request was refused for them.
    pub fn scopes(&self) -> Option<&[String]> {
        self.0.as_ref()?.get().map(Vec::as_slice)
    }
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
