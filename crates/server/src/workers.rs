//! Workers: where many are asking at once, a connection is served by one thread alone, with a runtime of its own. Two
//! processors that take turns at the same connection spend much of their time on handing its memory over to each other.
//! Where few ask, one thread that hands work to another is the slower way, and connections stay at home: in the runtime
//! that everything else runs in.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{OnceLock, mpsc};

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio_util::task::AbortOnDropHandle;
use toolhub_core::worker::MOST;
use toolhub_mcp::worker;

/// Where so many others are being answered, a connection belongs on a worker; and from so few on, at home.
const CROWD: u64 = 3;
const FEW: u64 = 1;
/// Messages between two looks at that.
const BETWEEN: u32 = 4;
/// Looks in a row that must find it so before a connection goes.
const BEFORE_LEAVING: u32 = 4;
const BEFORE_RETURNING: u32 = 64;

/// The workers. Their threads begin when they are first needed, and end with this.
#[derive(Debug, Default)]
pub(crate) struct Workers(OnceLock<Vec<Worker>>);

#[derive(Debug)]
struct Worker {
    runtime: Handle,
    /// Connections that are there.
    count: AtomicUsize,
    /// Its thread ends when this is dropped.
    _end: oneshot::Sender<()>,
}

/// A connection that is on a worker, until this is dropped.
pub(crate) struct WorkerGuard<'a>(&'a Worker);

impl Drop for WorkerGuard<'_> {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Workers {
    /// How long a connection that is at home stays there.
    pub(crate) fn stay_at_home(&self) -> Placement {
        let none = self.0.get().is_some_and(Vec::is_empty);
        Placement { home: true, ends: !none, unseen: 0, misplaced: 0 }
    }

    /// Connections that are on workers.
    pub(crate) fn len(&self) -> usize {
        self.0.get().into_iter().flatten().map(|worker| worker.count.load(Ordering::Relaxed)).sum()
    }

    /// The worker with the fewest connections, with one more; `None` where there are no workers.
    pub(crate) fn enter(&self) -> Option<WorkerGuard<'_>> {
        let workers = self.0.get_or_init(begin);
        let worker = workers.iter().min_by_key(|worker| worker.count.load(Ordering::Relaxed))?;
        worker.count.fetch_add(1, Ordering::Relaxed);
        Some(WorkerGuard(worker))
    }
}

impl WorkerGuard<'_> {
    /// Does some work there; `None` where it broke off.
    pub(crate) async fn run<T: Send + 'static>(
        self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        AbortOnDropHandle::new(self.0.runtime.spawn(work)).await.ok()
    }
}

/// As many workers as there are processors. One alone has nobody to hand anything over to.
fn begin() -> Vec<Worker> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = if processors > 1 { processors.min(MOST) } else { 0 };
    let home = Handle::current();
    // Where there is no thread to be had, there are fewer.
    (1..=workers).map_while(|number| Worker::begin(number, home.clone()).ok()).collect()
}

impl Worker {
    fn begin(number: usize, home: Handle) -> io::Result<Self> {
        let ((end, ended), (tell, told)) = (oneshot::channel::<()>(), mpsc::channel());
        let serving = move || {
            worker::begin(number, home);
            // Made and let go by its own thread: both may have to wait, which no other one here may.
            let runtime = Builder::new_current_thread().enable_all().build();
            let _ =
                tell.send(runtime.as_ref().map(|runtime| runtime.handle().clone()).map_err(io::Error::kind));
            if let Ok(runtime) = runtime {
                // It ends when nobody is left who could say so.
                let _ = runtime.block_on(ended);
                runtime.shutdown_background();
            }
        };
        std::thread::Builder::new().name(format!("worker-{number}")).spawn(serving)?;
        let runtime = told.recv().map_err(io::Error::other)??;
        Ok(Self { runtime, count: AtomicUsize::new(0), _end: end })
    }
}

/// How long a connection stays where it is.
#[derive(Debug)]
pub(crate) struct Placement {
    home: bool,
    /// Whether there is anywhere else to go.
    ends: bool,
    /// Messages since the last look.
    unseen: u32,
    /// Looks in a row that found it better off elsewhere.
    misplaced: u32,
}

impl Placement {
    /// On a worker.
    pub(crate) fn on_a_lane() -> Self {
        Self { home: false, ends: true, unseen: 0, misplaced: 0 }
    }

    /// Whether it should go on elsewhere, after a message; and how many others are being answered, if it matters.
    pub(crate) fn ends(&mut self, others: impl FnOnce() -> u64) -> bool {
        self.unseen += 1;
        if self.unseen < BETWEEN {
            return false;
        }
        self.unseen = 0;
        let others = others();
        let misplaced = if self.home { others >= CROWD } else { others <= FEW };
        self.misplaced = if misplaced { self.misplaced + 1 } else { 0 };
        self.ends && self.misplaced >= if self.home { BEFORE_LEAVING } else { BEFORE_RETURNING }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_connection_goes_where_it_belongs_and_not_to_and_fro() {
        let mut stay = Workers::default().stay_at_home();
        assert!((0..1_000).all(|_| !stay.ends(|| CROWD - 1)));
        // A crowd that comes and goes is none.
        assert!((1..1_000).all(|turn| !stay.ends(|| if turn % 12 == 0 { 0 } else { CROWD })));
        let mut stay = Workers::default().stay_at_home();
        assert_eq!((1..).find(|_| stay.ends(|| CROWD)), Some(BETWEEN * BEFORE_LEAVING));
        let mut stay = Placement::on_a_lane();
        assert!((0..1_000).all(|_| !stay.ends(|| FEW + 1)));
        assert_eq!((1..).find(|_| stay.ends(|| FEW)), Some(BETWEEN * BEFORE_RETURNING));
        // Where there are no workers, home is the only place.
        let mut stay = Workers(OnceLock::from(Vec::new())).stay_at_home();
        assert!((0..1_000).all(|_| !stay.ends(|| CROWD)));
    }

    #[tokio::test]
    async fn work_is_spread_over_workers_and_given_up_with_who_wants_it() {
        let begun = (1..=2).map(|number| Worker::begin(number, Handle::current()).unwrap());
        let workers = Workers(OnceLock::from(begun.collect::<Vec<_>>()));
        let thread = || async { std::thread::current().name().map(str::to_owned) };
        let held = Arc::new(());
        let holding = Arc::clone(&held);
        let mut for_ever = Box::pin(workers.enter().unwrap().run(async move {
            let _holding = holding;
            std::future::pending::<()>().await;
        }));
        assert!(futures_util::poll!(&mut for_ever).is_pending());
        assert_eq!(workers.len(), 1);
        assert_eq!(workers.enter().unwrap().run(thread()).await, Some(Some("worker-2".to_owned())));
        drop(for_ever);
        assert_eq!(workers.len(), 0);
        let given_up = async {
            while Arc::strong_count(&held) > 1 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), given_up).await.unwrap();
        // What breaks off breaks nothing else.
        assert_eq!(workers.enter().unwrap().run(async { panic!("as it should") }).await, None::<()>);
        assert_eq!(workers.enter().unwrap().run(thread()).await, Some(Some("worker-1".to_owned())));
    }
}
