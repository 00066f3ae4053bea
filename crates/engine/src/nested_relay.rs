//! Runs a call together with the calls that it makes in turn: the nested calls are forwarded to the task of the outer
//! one, so that they can use what that task borrows.

use std::fmt;
use std::sync::Arc;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::sync::{mpsc, oneshot};
use toolhub_core::{BoxFuture, NestedCall, NestedTool, NestedTools, ToolError, ToolOutput};

/// How many nested calls may wait to be forwarded.
const MAX_QUEUED_CALLS: usize = 16;

/// The result of a nested call.
pub type NestedResult = Result<ToolOutput, ToolError>;

/// A nested call and where its result goes.
type Forwarded = (NestedCall, oneshot::Sender<NestedResult>);

/// Forwards nested calls to the task of the outer call.
struct Relay {
    tools: Vec<NestedTool>,
    calls: mpsc::Sender<Forwarded>,
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay").field("tools", &self.tools.len()).finish_non_exhaustive()
    }
}

impl NestedTools for Relay {
    fn tools(&self) -> Vec<NestedTool> {
        self.tools.clone()
    }

    fn call(&self, call: NestedCall) -> BoxFuture<'_, NestedResult> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            // The other side ends only with the outer call.
            self.calls.send((call, answer)).await.map_err(|_| ToolError::Cancelled)?;
            answered.await.unwrap_or(Err(ToolError::Cancelled))
        })
    }
}

/// Runs `outer`, which gets the port for nested calls, and `nested` for each of them. Nested calls run concurrently; one
/// that is no longer waited for is dropped, and all are when the outer call ends.
pub async fn run_with_nested<'a, T>(
    tools: Vec<NestedTool>,
    outer: impl FnOnce(Arc<dyn NestedTools>) -> BoxFuture<'a, T>,
    nested: impl Fn(NestedCall) -> BoxFuture<'a, NestedResult>,
) -> T {
    let (calls, mut forwarded) = mpsc::channel::<Forwarded>(MAX_QUEUED_CALLS);
    let mut outer = outer(Arc::new(Relay { tools, calls }));
    let mut running = FuturesUnordered::new();
    loop {
        tokio::select! {
            result = &mut outer => return result,
            Some((call, mut answer)) = forwarded.recv() => {
                let work = nested(call);
                running.push(async move {
                    tokio::select! {
                        result = work => drop(answer.send(result)),
                        () = answer.closed() => {}
                    }
                });
            }
            Some(()) = running.next(), if !running.is_empty() => {}
        }
    }
}
