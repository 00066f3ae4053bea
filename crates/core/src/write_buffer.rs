//! A write buffer per thread, whose memory is reused for the next message.

use std::cell::Cell;
use std::mem::take;
use std::ops::{Deref, DerefMut};

/// Maximum capacity that is kept for reuse.
const KEPT: usize = 20 << 10;

thread_local! {
    /// Empty between uses; without capacity while a `WriteBuffer` has taken it.
    static ROOM: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// An empty buffer for outgoing bytes. While it is held, other users on this thread must allocate, so that it should
/// not be held across an `await`.
#[derive(Debug)]
pub struct WriteBuffer(Vec<u8>);

impl WriteBuffer {
    /// Takes the buffer of this thread.
    pub fn begin() -> Self {
        Self(ROOM.take())
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
        let mut room = take(&mut self.0);
        room.clear();
        room.shrink_to(KEPT);
        // Fails only while the thread is ending.
        let _ = ROOM.try_with(|kept| kept.set(room));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_what_went_out_is_left() {
        let mut one = WriteBuffer::begin();
        one.extend_from_slice(b"one");
        let mut other = WriteBuffer::begin();
        other.extend_from_slice(&[b'x'; 100_000]);
        assert_eq!((&one[..], other.len()), (&b"one"[..], 100_000));
        drop((one, other));
        let next = WriteBuffer::begin();
        assert!(next.is_empty() && next.capacity() <= KEPT);
    }
}
