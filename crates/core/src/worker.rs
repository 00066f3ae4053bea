//! State per worker. A worker is a thread that serves its own share of the connections. State that every call writes
//! is kept per worker to avoid contention and cache line transfers between CPUs.

use std::cell::Cell;

/// Maximum number of workers.
pub const MAX_WORKERS: usize = 8;

thread_local! {
    static NUMBER: Cell<usize> = const { Cell::new(0) };
}

/// Registers this thread as a worker; numbers start at 1.
pub fn register_thread(number: usize) {
    NUMBER.set(number.min(MAX_WORKERS));
}

/// The worker number of this thread; 0 if it is not a worker.
pub fn number() -> usize {
    NUMBER.get()
}

/// One value per worker, and one for all other threads. Each value has its own cache line.
#[derive(Debug, Default)]
pub struct PerWorker<T>([CacheAligned<T>; MAX_WORKERS + 1]);

#[derive(Debug, Default)]
#[repr(align(64))]
struct CacheAligned<T>(T);

impl<T> PerWorker<T> {
    /// Creates the values.
    pub fn with(mut make: impl FnMut() -> T) -> Self {
        Self(std::array::from_fn(|_| CacheAligned(make())))
    }

    /// The value of this thread's worker.
    pub fn current(&self) -> &T {
        self.at(number())
    }

    /// The value of the worker with this number.
    pub fn at(&self, number: usize) -> &T {
        &self.0[number.min(MAX_WORKERS)].0
    }

    /// All values.
    pub fn all(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|one| &one.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_worker_has_its_own_value() {
        let mut count = 0;
        let workers = PerWorker::with(|| {
            count += 1;
            count
        });
        assert_eq!((*workers.current(), workers.all().count()), (1, MAX_WORKERS + 1));
        let value_on = |number: usize| {
            std::thread::scope(|threads| {
                let looking = threads.spawn(|| {
                    register_thread(number);
                    *workers.current()
                });
                looking.join().unwrap()
            })
        };
        assert_eq!(
            [1, 2, MAX_WORKERS, MAX_WORKERS + 5].map(value_on),
            [2, 3, MAX_WORKERS + 1, MAX_WORKERS + 1]
        );
        assert_eq!(*workers.current(), 1);
    }
}
