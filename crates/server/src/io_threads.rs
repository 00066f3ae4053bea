//! I/O threads for connections. Under load each connection is served by a single thread with a current-thread runtime:
//! if two processors alternate on one connection, much time is lost on moving its cache lines between them. With few
//! concurrent requests the hand-over between threads costs more than it saves, so connections stay on the main runtime.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{OnceLock, mpsc};

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio_util::task::AbortOnDropHandle;
use toolhub_core::io_thread::MAX_IO_THREADS;
use toolhub_mcp_wire::io_thread;

/// A connection moves to an I/O thread while at least `BUSY_THRESHOLD` other requests are in progress, and back to the main runtime
/// while at most `QUIET_THRESHOLD` are.
const BUSY_THRESHOLD: u64 = 3;
const QUIET_THRESHOLD: u64 = 1;
/// Messages between two checks of the load.
const CHECK_INTERVAL: u32 = 4;
/// Consecutive checks with the same result before a connection moves.
const CHECKS_BEFORE_LEAVING: u32 = 4;
const CHECKS_BEFORE_RETURNING: u32 = 64;

/// The I/O threads. They are started on first use and end when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct IoThreads(OnceLock<Vec<IoThread>>);

#[derive(Debug)]
struct IoThread {
    runtime: Handle,
    /// Connections currently served by this thread.
    count: AtomicUsize,
    /// The thread ends when this sender is dropped.
    _end: oneshot::Sender<()>,
}

/// Counts a connection as served by an I/O thread until this is dropped.
pub(crate) struct IoThreadGuard<'a>(&'a IoThread);

impl Drop for IoThreadGuard<'_> {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::Relaxed);
    }
}

impl IoThreads {
    /// Returns the initial affinity of a connection on the main runtime.
    pub(crate) fn initial_affinity(&self) -> ConnectionAffinity {
        let none = self.0.get().is_some_and(Vec::is_empty);
        ConnectionAffinity { on_main: true, may_move: !none, since_check: 0, misplaced: 0 }
    }

    /// Returns the number of connections on I/O threads.
    pub(crate) fn len(&self) -> usize {
        self.0.get().into_iter().flatten().map(|thread| thread.count.load(Ordering::Relaxed)).sum()
    }

    /// Reserves a slot on the I/O thread with the fewest connections. Returns `None` if there are no I/O threads.
    pub(crate) fn register(&self) -> Option<IoThreadGuard<'_>> {
        let threads = self.0.get_or_init(start);
        let thread = threads.iter().min_by_key(|thread| thread.count.load(Ordering::Relaxed))?;
        thread.count.fetch_add(1, Ordering::Relaxed);
        Some(IoThreadGuard(thread))
    }
}

impl IoThreadGuard<'_> {
    /// Runs `work` on the thread. Returns `None` if it panicked or was cancelled.
    pub(crate) async fn run<T: Send + 'static>(
        self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        AbortOnDropHandle::new(self.0.runtime.spawn(work)).await.ok()
    }
}

/// Starts one thread per processor, at most `MAX_IO_THREADS`. A single processor gets none, since an I/O thread would gain nothing
/// there.
fn start() -> Vec<IoThread> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = if processors > 1 { processors.min(MAX_IO_THREADS) } else { 0 };
    let main_runtime = Handle::current();
    // If a thread cannot be started, the threads started so far are used.
    (1..=threads).map_while(|number| IoThread::start(number, main_runtime.clone()).ok()).collect()
}

impl IoThread {
    fn start(number: usize, main_runtime: Handle) -> io::Result<Self> {
        let ((end, ended), (started_sender, started)) = (oneshot::channel::<()>(), mpsc::channel());
        let serving = move || {
            io_thread::register_thread(number, main_runtime);
            // The I/O thread itself creates and drops the runtime: both may block, which a thread of the main runtime
            // must not do.
            let runtime = Builder::new_current_thread().enable_all().build();
            let _ = started_sender
                .send(runtime.as_ref().map(|runtime| runtime.handle().clone()).map_err(io::Error::kind));
            if let Ok(runtime) = runtime {
                // `ended` resolves when the sender in `IoThread` is dropped.
                let _ = runtime.block_on(ended);
                runtime.shutdown_background();
            }
        };
        std::thread::Builder::new().name(format!("io-{number}")).spawn(serving)?;
        let runtime = started.recv().map_err(io::Error::other)??;
        Ok(Self { runtime, count: AtomicUsize::new(0), _end: end })
    }
}

/// Decides when a connection moves between the main runtime and an I/O thread.
#[derive(Debug)]
pub(crate) struct ConnectionAffinity {
    on_main: bool,
    /// Whether the connection can move at all: false if there are no I/O threads.
    may_move: bool,
    /// Messages since the last check.
    since_check: u32,
    /// Consecutive checks that favoured the other runtime.
    misplaced: u32,
}

impl ConnectionAffinity {
    /// The affinity of a connection on an I/O thread.
    pub(crate) fn on_io_thread() -> Self {
        Self { on_main: false, may_move: true, since_check: 0, misplaced: 0 }
    }

    /// Called after each message: returns whether the connection should move to the other runtime. `others` counts the
    /// other requests in progress; it is only called when a check is due.
    pub(crate) fn may_move(&mut self, others: impl FnOnce() -> u64) -> bool {
        self.since_check += 1;
        if self.since_check < CHECK_INTERVAL {
            return false;
        }
        self.since_check = 0;
        let others = others();
        let misplaced = if self.on_main { others >= BUSY_THRESHOLD } else { others <= QUIET_THRESHOLD };
        self.misplaced = if misplaced { self.misplaced + 1 } else { 0 };
        self.may_move
            && self.misplaced >= if self.on_main { CHECKS_BEFORE_LEAVING } else { CHECKS_BEFORE_RETURNING }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn moves_connection_only_under_sustained_load() {
        let mut affinity = IoThreads::default().initial_affinity();
        assert!((0..1_000).all(|_| !affinity.may_move(|| BUSY_THRESHOLD - 1)));
        // Load that is not sustained does not move a connection.
        assert!((1..1_000).all(|turn| !affinity.may_move(|| if turn % 12 == 0 {
            0
        } else {
            BUSY_THRESHOLD
        })));
        let mut affinity = IoThreads::default().initial_affinity();
        assert_eq!(
            (1..).find(|_| affinity.may_move(|| BUSY_THRESHOLD)),
            Some(CHECK_INTERVAL * CHECKS_BEFORE_LEAVING)
        );
        let mut affinity = ConnectionAffinity::on_io_thread();
        assert!((0..1_000).all(|_| !affinity.may_move(|| QUIET_THRESHOLD + 1)));
        assert_eq!(
            (1..).find(|_| affinity.may_move(|| QUIET_THRESHOLD)),
            Some(CHECK_INTERVAL * CHECKS_BEFORE_RETURNING)
        );
        // Without I/O threads a connection always stays on the main runtime.
        let mut affinity = IoThreads(OnceLock::from(Vec::new())).initial_affinity();
        assert!((0..1_000).all(|_| !affinity.may_move(|| BUSY_THRESHOLD)));
    }

    #[tokio::test]
    async fn spreads_work_over_threads_and_cancels_it_on_drop() {
        let started = (1..=2).map(|number| IoThread::start(number, Handle::current()).unwrap());
        let threads = IoThreads(OnceLock::from(started.collect::<Vec<_>>()));
        let thread = || async { std::thread::current().name().map(str::to_owned) };
        let held = Arc::new(());
        let holding = Arc::clone(&held);
        let mut for_ever = Box::pin(threads.register().unwrap().run(async move {
            let _holding = holding;
            std::future::pending::<()>().await;
        }));
        assert!(futures_util::poll!(&mut for_ever).is_pending());
        assert_eq!(threads.len(), 1);
        assert_eq!(threads.register().unwrap().run(thread()).await, Some(Some("io-2".to_owned())));
        drop(for_ever);
        assert_eq!(threads.len(), 0);
        let given_up = async {
            while Arc::strong_count(&held) > 1 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), given_up).await.unwrap();
        // A panic in one task does not affect the thread.
        assert_eq!(threads.register().unwrap().run(async { panic!("as it should") }).await, None::<()>);
        assert_eq!(threads.register().unwrap().run(thread()).await, Some(Some("io-1".to_owned())));
    }
}
