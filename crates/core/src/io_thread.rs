//! State per I/O thread. An I/O thread serves its own share of the connections. State that every call writes is kept per
//! thread to avoid contention and cache line transfers between CPUs.

use std::cell::Cell;

/// Maximum number of I/O threads.
pub const MAX_IO_THREADS: usize = 8;

thread_local! {
    static NUMBER: Cell<usize> = const { Cell::new(0) };
}

/// Registers this thread as an I/O thread; numbers start at 1.
pub fn register_thread(number: usize) {
    NUMBER.set(number.min(MAX_IO_THREADS));
}

/// The number of this I/O thread; 0 on any other thread.
pub fn number() -> usize {
    NUMBER.get()
}

/// One value per I/O thread, and one for all other threads. Each value has its own cache line.
#[derive(Debug, Default)]
pub struct PerIoThread<T>([CacheAligned<T>; MAX_IO_THREADS + 1]);

#[derive(Debug, Default)]
#[repr(align(64))]
struct CacheAligned<T>(T);

impl<T> PerIoThread<T> {
    /// Creates the values.
    pub fn with(mut make: impl FnMut() -> T) -> Self {
        Self(std::array::from_fn(|_| CacheAligned(make())))
    }

    /// The value of this thread.
    pub fn current(&self) -> &T {
        self.at(number())
    }

    /// The value of the I/O thread with this number.
    pub fn at(&self, number: usize) -> &T {
        &self.0[number.min(MAX_IO_THREADS)].0
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
    fn each_io_thread_has_its_own_value() {
        let mut count = 0;
        let values = PerIoThread::with(|| {
            count += 1;
            count
        });
        assert_eq!((*values.current(), values.all().count()), (1, MAX_IO_THREADS + 1));
        let value_on = |number: usize| {
            std::thread::scope(|threads| {
                let looking = threads.spawn(|| {
                    register_thread(number);
                    *values.current()
                });
                looking.join().unwrap()
            })
        };
        assert_eq!(
            [1, 2, MAX_IO_THREADS, MAX_IO_THREADS + 5].map(value_on),
            [2, 3, MAX_IO_THREADS + 1, MAX_IO_THREADS + 1]
        );
        assert_eq!(*values.current(), 1);
    }
}
