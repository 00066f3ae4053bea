//! One timer task for all deadlines of a runtime. A waiting call registers its waker here instead of creating a
//! `tokio::time::Sleep` of its own: nearly all calls finish long before their deadline, so registering must be cheap.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use tokio::runtime::{Handle, Id};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;
use toolhub_core::io_thread::{self, PerIoThread};

/// The timer tasks of an engine: one per runtime and I/O thread, running only while a waker is registered. Dropping this aborts them.
#[derive(Default)]
pub(crate) struct DeadlineTimers {
    shards: Arc<TimerShards>,
    tasks: Mutex<JoinSet<()>>,
}

/// A registered waker.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimerKey {
    io_thread: usize,
    shard: u64,
    slot: usize,
}

/// The shards of each I/O thread. A lock is held for well under a microsecond, and never while a waker is called.
#[derive(Default)]
struct TimerShards(PerIoThread<Mutex<Vec<TimerShard>>>);

struct TimerShard {
    /// Unique, so that a key of a shard that has ended never matches a later one.
    number: u64,
    runtime: Id,
    slots: Vec<Slot>,
    free: Vec<usize>,
    /// When the timer task wakes next.
    next: Instant,
    /// Notified when a deadline before `next` is registered.
    rescheduled: Arc<Notify>,
}

enum Slot {
    Free,
    Waiting(Instant, Waker),
    Fired,
}

impl DeadlineTimers {
    /// Registers `waker` to be woken at `due` or shortly after.
    pub(crate) fn register(&self, due: Instant, waker: &Waker) -> TimerKey {
        let runtime = Handle::current().id();
        let slot = Slot::Waiting(due, waker.clone());
        let io_thread = io_thread::number();
        let mut shards = self.shards.lock(io_thread);
        if let Some(shard) = shards.iter_mut().find(|shard| shard.runtime == runtime) {
            let (shard, slot) = shard.add(due, slot);
            return TimerKey { io_thread, shard, slot };
        }
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let rescheduled = Arc::new(Notify::new());
        shards.push(TimerShard {
            number,
            runtime,
            slots: vec![slot],
            free: Vec::new(),
            next: due,
            rescheduled: Arc::clone(&rescheduled),
        });
        drop(shards);
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        let task = TimerTask { shards: Arc::clone(&self.shards), io_thread, number };
        tasks.spawn(async move { task.run(&rescheduled).await });
        TimerKey { io_thread, shard: number, slot: 0 }
    }

    /// Returns whether the deadline has fired; if not, `waker` replaces the registered one.
    pub(crate) fn has_fired(&self, key: TimerKey, waker: &Waker) -> bool {
        let mut shards = self.shards.lock(key.io_thread);
        // A timer task that has ended would never wake the caller, so its keys count as fired.
        let shard = find(&mut shards, key.shard);
        let Some(slot) = shard.and_then(|shard| shard.slots.get_mut(key.slot)) else { return true };
        let Slot::Waiting(_, registered) = slot else { return true };
        // Dropping a waker may run arbitrary code, including code that takes this lock.
        let replaced = (!registered.will_wake(waker)).then(|| std::mem::replace(registered, waker.clone()));
        drop(shards);
        drop(replaced);
        false
    }

    /// Removes a registered waker.
    pub(crate) fn unregister(&self, key: TimerKey) {
        let mut shards = self.shards.lock(key.io_thread);
        let removed = find(&mut shards, key.shard).and_then(|shard| {
            let slot = shard.slots.get_mut(key.slot)?;
            shard.free.push(key.slot);
            Some(std::mem::replace(slot, Slot::Free))
        });
        drop(shards);
        drop(removed);
    }
}

impl TimerShards {
    fn lock(&self, io_thread: usize) -> MutexGuard<'_, Vec<TimerShard>> {
        self.0.at(io_thread).lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn find(shards: &mut [TimerShard], number: u64) -> Option<&mut TimerShard> {
    shards.iter_mut().find(|shard| shard.number == number)
}

impl TimerShard {
    fn add(&mut self, due: Instant, waiting: Slot) -> (u64, usize) {
        if due < self.next {
            self.next = due;
            self.rescheduled.notify_one();
        }
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                self.slots.push(Slot::Free);
                self.slots.len() - 1
            }
        };
        if let Some(slot) = self.slots.get_mut(index) {
            *slot = waiting;
        }
        (self.number, index)
    }

    /// Takes the wakers whose deadline has passed. Returns them and the next deadline, if any is left.
    fn take_expired(&mut self, now: Instant) -> (Vec<Slot>, Option<Instant>) {
        let (mut expired, mut next) = (Vec::new(), None::<Instant>);
        for slot in &mut self.slots {
            match slot {
                Slot::Waiting(due, _) if *due <= now => {
                    expired.push(std::mem::replace(slot, Slot::Fired));
                }
                Slot::Waiting(due, _) => next = Some(next.map_or(*due, |next| next.min(*due))),
                Slot::Free | Slot::Fired => {}
            }
        }
        (expired, next)
    }
}

/// The timer task of a shard. The shard is removed when the task ends, for whatever reason; the next deadline starts another.
struct TimerTask {
    shards: Arc<TimerShards>,
    io_thread: usize,
    number: u64,
}

impl TimerTask {
    async fn run(self, rescheduled: &Notify) {
        while let Some(next) = self.fire() {
            tokio::select! {
                () = tokio::time::sleep_until(next) => {}
                () = rescheduled.notified() => {}
            }
        }
    }

    /// Wakes the callers whose deadline has passed. Returns the next deadline, or `None` after removing an empty shard.
    fn fire(&self) -> Option<Instant> {
        let mut shards = self.shards.lock(self.io_thread);
        let index = shards.iter().position(|shard| shard.number == self.number)?;
        let (expired, next) = shards[index].take_expired(Instant::now());
        match next {
            Some(next) => shards[index].next = next,
            // The keys of the callers woken below count as fired, since their shard is gone.
            None => drop(shards.swap_remove(index)),
        }
        drop(shards);
        for slot in expired {
            if let Slot::Waiting(_, waker) = slot {
                waker.wake();
            }
        }
        next
    }
}

impl Drop for TimerTask {
    fn drop(&mut self) {
        let mut shards = self.shards.lock(self.io_thread);
        let index = shards.iter().position(|shard| shard.number == self.number);
        let removed = index.map(|index| shards.swap_remove(index));
        drop(shards);
        drop(removed);
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Poll;
    use std::time::Duration;

    use super::*;

    /// Waits for a deadline as an attempt does. Returns how long that took.
    async fn wait_for(timers: &DeadlineTimers, span: Duration) -> Duration {
        let (started, mut key) = (Instant::now(), None);
        poll_fn(|context| match key {
            None => {
                key = Some(timers.register(started + span, context.waker()));
                Poll::Pending
            }
            Some(key) if timers.has_fired(key, context.waker()) => {
                timers.unregister(key);
                Poll::Ready(())
            }
            Some(_) => Poll::Pending,
        })
        .await;
        started.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn wakes_each_caller_at_its_deadline() {
        let timers = DeadlineTimers::default();
        let spans = [30, 2, 5, 300, 1, 30].map(Duration::from_secs);
        let woken = futures_util::future::join_all(spans.map(|span| wait_for(&timers, span))).await;
        for (span, woken) in spans.into_iter().zip(woken) {
            assert!((span..span + Duration::from_millis(5)).contains(&woken), "{span:?} {woken:?}");
        }
        // Without a waker the task ends; the next deadline starts another.
        tokio::task::yield_now().await;
        assert!(timers.shards.lock(0).is_empty());
        assert_eq!(wait_for(&timers, Duration::from_secs(7)).await.as_secs(), 7);
    }

    #[tokio::test(start_paused = true)]
    async fn reuses_the_slot_of_an_unregistered_waker() {
        let timers = DeadlineTimers::default();
        for _ in 0..1_000 {
            let key = timers.register(Instant::now() + Duration::from_secs(30), Waker::noop());
            timers.unregister(key);
        }
        assert_eq!(timers.shards.lock(0)[0].slots.len(), 1);
        assert_eq!(timers.tasks.lock().unwrap().len(), 1);
        tokio::time::sleep(Duration::from_secs(31)).await;
        assert!(timers.shards.lock(0).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn key_of_an_ended_shard_does_not_match_a_new_one() {
        let timers = DeadlineTimers::default();
        let old = timers.register(Instant::now() + Duration::from_secs(1), Waker::noop());
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(timers.has_fired(old, Waker::noop()));
        let new = timers.register(Instant::now() + Duration::from_secs(1), Waker::noop());
        timers.unregister(old);
        assert!(!timers.has_fired(new, Waker::noop()));
    }

    #[test]
    fn survives_the_end_of_a_runtime() {
        let timers = DeadlineTimers::default();
        let runtime = || tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let still = runtime();
        let short = Duration::from_millis(20);
        // A deadline in a runtime that is not driven does not delay those of other runtimes.
        let key = still.block_on(async { timers.register(Instant::now() + short, Waker::noop()) });
        for _ in 0..3 {
            let woken = runtime().block_on(wait_for(&timers, short));
            assert!((short..Duration::from_secs(5)).contains(&woken), "{woken:?}");
            // The runtime ends while its timer task is running.
            let left = runtime().block_on(async { timers.register(Instant::now() + short, Waker::noop()) });
            assert!(timers.has_fired(left, Waker::noop()));
        }
        assert!(!timers.has_fired(key, Waker::noop()));
        drop(still);
        assert!(timers.shards.lock(0).is_empty());
    }
}
