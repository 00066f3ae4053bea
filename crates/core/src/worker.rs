//! State per worker. A worker is a thread that serves its own share of the connections. State that every call writes
//! is kept per worker to avoid contention and cache line transfers between CPUs.

use std::cell::Cell;

/// Maximum number of workers.
pub const MOST: usize = 8;

thread_local! {
    static NUMBER: Cell<usize> = const { Cell::new(0) };
}

/// Registers this thread as a worker; numbers start at 1.
pub fn begin(number: usize) {
    NUMBER.set(number.min(MOST));
}

/// The worker number of this thread; 0 if it is not a worker.
pub fn number() -> usize {
    NUMBER.get()
}

/// One value per worker, and one for all other threads. Each value has its own cache line.
#[derive(Debug, Default)]
pub struct PerWorker<T>([Apart<T>; MOST + 1]);

#[derive(Debug, Default)]
#[repr(align(64))]
struct Apart<T>(T);

impl<T> PerWorker<T> {
    /// Creates the values.
    pub fn with(mut make: impl FnMut() -> T) -> Self {
        Self(std::array::from_fn(|_| Apart(make())))
    }

    /// The value of this thread's worker.
    pub fn here(&self) -> &T {
        self.at(number())
    }

    /// The value of the worker with this number.
    pub fn at(&self, number: usize) -> &T {
        &self.0[number.min(MOST)].0
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
    fn every_lane_has_its_own() {
        let mut count = 0;
        let workers = PerWorker::with(|| {
            count += 1;
            count
        });
        assert_eq!((*workers.here(), workers.all().count()), (1, MOST + 1));
        let there = |number: usize| {
            std::thread::scope(|threads| {
                let looking = threads.spawn(|| {
                    begin(number);
                    *workers.here()
                });
                looking.join().unwrap()
            })
        };
        assert_eq!([1, 2, MOST, MOST + 5].map(there), [2, 3, MOST + 1, MOST + 1]);
        assert_eq!(*workers.here(), 1);
    }
}
