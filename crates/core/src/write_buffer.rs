//! A write buffer per thread, whose memory is reused for the next message.

use std::cell::Cell;
use std::mem::take;
use std::ops::{Deref, DerefMut};

/// Maximum capacity that is kept for reuse.
const MAX_KEPT_BYTES: usize = 20 << 10;

thread_local! {
    /// Empty between uses; without capacity while a `WriteBuffer` has taken it.
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// An empty buffer for outgoing bytes. While it is held, other users on this thread must allocate, so that it should
/// not be held across an `await`.
#[derive(Debug)]
pub struct WriteBuffer(Vec<u8>);

impl WriteBuffer {
    /// Takes the buffer of this thread.
    pub fn acquire() -> Self {
        Self(BUFFER.take())
    }
}

impl Deref for WriteBuffer {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.0
    }
}

impl DerefMut for WriteBuffer {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }
}

impl Drop for WriteBuffer {
    fn drop(&mut self) {
        let mut buffer = take(&mut self.0);
        buffer.clear();
        buffer.shrink_to(MAX_KEPT_BYTES);
        // Fails only while the thread is ending.
        let _ = BUFFER.try_with(|slot| slot.set(buffer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reused_buffer_is_empty_and_bounded() {
        let mut one = WriteBuffer::acquire();
        one.extend_from_slice(b"one");
        let mut other = WriteBuffer::acquire();
        other.extend_from_slice(&[b'x'; 100_000]);
        assert_eq!((&one[..], other.len()), (&b"one"[..], 100_000));
        drop((one, other));
        let next = WriteBuffer::acquire();
        assert!(next.is_empty() && next.capacity() <= MAX_KEPT_BYTES);
    }
}
