//! Work that blocks, on a thread where it may; whoever stops waiting for it stops it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use toolhub_core::ToolError;

/// Whether nobody waits any more.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cancelled(Arc<AtomicBool>);

impl Cancelled {
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct SetOnDrop(Cancelled);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.set();
    }
}

/// Runs `work` where blocking is allowed. It has to look at its argument from time to time.
pub(crate) async fn run<T: Send + 'static>(
    work: impl FnOnce(&Cancelled) -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let cancelled = Cancelled::default();
    let _guard = SetOnDrop(cancelled.clone());
    match tokio::task::spawn_blocking(move || work(&cancelled)).await {
        Ok(result) => result,
        Err(failure) if failure.is_panic() => Err(ToolError::Panicked),
        Err(_) => Err(ToolError::Cancelled),
    }
}
