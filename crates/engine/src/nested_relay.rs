//! Runs a call together with the calls that it makes in turn: the nested calls are forwarded to the task of the outer
//! one, so that they can use what that task borrows.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::sync::{mpsc, oneshot};
use toolhub_core::lang::LocalizedText;
use toolhub_core::{BoxFuture, NestedCall, NestedOrigin, NestedToolList, NestedTools, ToolError, ToolOutput};

/// How many nested calls may wait to be forwarded.
const MAX_QUEUED_CALLS: usize = 16;

/// The result of a nested call.
pub type NestedResult = Result<ToolOutput, ToolError>;

/// A request of the outer call, and where its answer goes.
enum Forwarded {
    List(oneshot::Sender<Arc<NestedToolList>>),
    Call(NestedCall, oneshot::Sender<NestedResult>),
}

/// Forwards the requests of the outer call to its task.
struct Relay {
    requests: mpsc::Sender<Forwarded>,
    origin: NestedOrigin,
    interruption: Mutex<Option<LocalizedText>>,
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay").finish_non_exhaustive()
    }
}

impl NestedTools for Relay {
    fn tools(&self) -> BoxFuture<'_, Arc<NestedToolList>> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            // The other side ends only with the outer call, which then needs no list.
            let _ = self.requests.send(Forwarded::List(answer)).await;
            answered.await.unwrap_or_else(|_| Arc::new(NestedToolList::new(Vec::new())))
        })
    }

    fn origin(&self) -> NestedOrigin {
        self.origin.clone()
    }

    fn set_interruption(&self, text: LocalizedText) {
        *self.interruption.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
    }

    fn interruption(&self) -> Option<LocalizedText> {
        self.interruption.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn call(&self, call: NestedCall) -> BoxFuture<'_, NestedResult> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            // The other side ends only with the outer call.
            self.requests.send(Forwarded::Call(call, answer)).await.map_err(|_| ToolError::Cancelled)?;
            answered.await.unwrap_or(Err(ToolError::Cancelled))
        })
    }
}

/// Runs `outer`, which gets the port for nested calls, and `nested` for each of them; `list` makes the list of tools when
/// the outer call needs it. Nested calls run concurrently; one that is no longer waited for is dropped, and all are when the
/// outer call ends.
pub async fn run_with_nested<'a, T>(
    origin: NestedOrigin,
    list: impl Fn() -> Arc<NestedToolList>,
    outer: impl FnOnce(Arc<dyn NestedTools>) -> BoxFuture<'a, T>,
    nested: impl Fn(NestedCall) -> BoxFuture<'a, NestedResult>,
) -> T {
    let (requests, mut forwarded) = mpsc::channel::<Forwarded>(MAX_QUEUED_CALLS);
    let mut outer = outer(Arc::new(Relay { requests, origin, interruption: Mutex::default() }));
    let mut running = FuturesUnordered::new();
    loop {
        tokio::select! {
            result = &mut outer => return result,
            Some(request) = forwarded.recv() => match request {
                Forwarded::List(answer) => drop(answer.send(list())),
                Forwarded::Call(call, mut answer) => {
                    let work = nested(call);
                    running.push(async move {
                        tokio::select! {
                            result = work => drop(answer.send(result)),
                            () = answer.closed() => {}
                        }
                    });
                }
            },
            Some(()) = running.next(), if !running.is_empty() => {}
        }
    }
}
