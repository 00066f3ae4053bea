//! Runs blocking work on a bounded number of threads, shared fairly among callers. Dropping the future cancels the
//! work.

mod per_caller_semaphore;

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use toolhub_core::{CallContext, ToolError};

use self::per_caller_semaphore::{CallerKey, PerCallerSemaphore};

/// Threads for reading files: per caller, and in total. They mostly wait for I/O.
const FILE_SLOTS: (usize, usize) = (16, 64);

tokio::task_local! {
    static CALLER: CallerKey;
}

/// Set when the future of the work has been dropped.
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

/// The kind of work, which selects a thread limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// CPU-bound work.
    Cpu,
    /// Reads files.
    Files,
}

impl Work {
    fn slots(self) -> &'static PerCallerSemaphore {
        // One caller may use every core; others still get a slot, and the scheduler shares the cores.
        static CPU: LazyLock<PerCallerSemaphore> = LazyLock::new(|| {
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            PerCallerSemaphore::new(cores, 2 * cores)
        });
        static FILES: LazyLock<PerCallerSemaphore> =
            LazyLock::new(|| PerCallerSemaphore::new(FILE_SLOTS.0, FILE_SLOTS.1));
        match self {
            Self::Cpu => &CPU,
            Self::Files => &FILES,
        }
    }
}

/// Runs a call so that its blocking work is accounted to its caller.
pub(crate) async fn for_caller<T>(context: &CallContext, call: impl Future<Output = T>) -> T {
    let caller = match &context.caller {
        None => CallerKey::Local,
        Some(caller) => match caller.principal_id() {
            Some(principal) => CallerKey::Principal(principal.into()),
            None => CallerKey::Client(caller.client()),
        },
    };
    CALLER.scope(caller, call).await
}

/// Runs `work` on a blocking thread when its caller gets a slot. `work` must poll its argument for cancellation.
pub(crate) async fn run<T: Send + 'static>(
    kind: Work,
    work: impl FnOnce(&Cancelled) -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let caller = CALLER.try_with(CallerKey::clone).unwrap_or(CallerKey::Local);
    let slot = kind.slots().acquire(caller).await;
    let cancelled = Cancelled::default();
    let _guard = SetOnDrop(cancelled.clone());
    let blocking = move || {
        // Held until the work ends, even if the future has been dropped.
        let _slot = slot;
        work(&cancelled)
    };
    match tokio::task::spawn_blocking(blocking).await {
        Ok(result) => result,
        Err(failure) if failure.is_panic() => Err(ToolError::Panicked),
        Err(_) => Err(ToolError::Cancelled),
    }
}

#[cfg(test)]
mod tests {
    use toolhub_core::ports::NullSink;
    use toolhub_core::{BoxFuture, CallId, CallerHandle, RawJson, RawObject};

    use super::*;

    struct Ann(RawObject);

    impl toolhub_core::Caller for Ann {
        fn client(&self) -> u64 {
            7
        }

        fn capabilities(&self) -> RawJson {
            RawJson::null()
        }

        fn meta(&self) -> &RawObject {
            &self.0
        }

        fn extras(&self) -> &RawObject {
            &self.0
        }

        fn accepts_input_requests(&self) -> bool {
            false
        }

        fn progress(&self, _: &RawJson) {}

        fn notify(&self, _: &str, _: Option<&RawJson>) {}

        fn principal_id(&self) -> Option<&str> {
            Some("ann")
        }

        fn ask(&self, _: String, _: Option<RawJson>) -> BoxFuture<'_, Result<RawJson, (i64, String)>> {
            Box::pin(std::future::ready(Ok(RawJson::null())))
        }
    }

    #[tokio::test]
    async fn counts_work_for_calling_principal() {
        let caller = Some(CallerHandle::new(Arc::new(Ann(RawObject::default()))));
        let mut context = CallContext {
            call: CallId::generate(),
            conversation: None,
            caller,
            events: Arc::new(NullSink),
            nested: None,
        };
        let key = || async { CALLER.with(CallerKey::clone) };
        assert_eq!(for_caller(&context, key()).await, CallerKey::Principal("ann".into()));
        context.caller = None;
        assert_eq!(for_caller(&context, key()).await, CallerKey::Local);
        let ran = for_caller(&context, run(Work::Cpu, |_| Ok(1))).await;
        assert_eq!(ran.ok(), Some(1));
    }
}
