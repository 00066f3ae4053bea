//! What each worker has of its own. A worker is a thread that serves some of the connections to this hub alone; whatever all
//! calls write to is taken away from the other workers each time, unless each has its own.

use std::cell::Cell;

/// The most workers that there may be.
pub const MOST: usize = 8;

thread_local! {
    static NUMBER: Cell<usize> = const { Cell::new(0) };
}

/// Makes this thread a worker; the first one's number is 1.
pub fn begin(number: usize) {
    NUMBER.set(number.min(MOST));
}

/// The number of the worker that this thread is; 0 where it is none.
pub fn number() -> usize {
    NUMBER.get()
}

/// One of something for each worker, and one for all other threads. No two of them lie in the same line of memory.
#[derive(Debug, Default)]
pub struct PerWorker<T>([Apart<T>; MOST + 1]);

#[derive(Debug, Default)]
#[repr(align(64))]
struct Apart<T>(T);

impl<T> PerWorker<T> {
    /// Makes them.
    pub fn with(mut make: impl FnMut() -> T) -> Self {
        Self(std::array::from_fn(|_| Apart(make())))
    }

    /// The one of the worker that this thread is.
    pub fn here(&self) -> &T {
        self.at(number())
    }

    /// The one of the worker with that number.
    pub fn at(&self, number: usize) -> &T {
        &self.0[number.min(MOST)].0
    }

    /// All of them.
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
