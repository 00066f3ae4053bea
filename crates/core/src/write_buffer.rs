//! What goes out, put together in room that the thread used a moment ago for the same.

use std::cell::Cell;
use std::mem::take;
use std::ops::{Deref, DerefMut};

/// The most room that is kept for the next.
const KEPT: usize = 20 << 10;

thread_local! {
    /// Empty, but for its room; without any while somebody has it.
    static ROOM: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// What goes out next; at first nothing. Whoever waits for something while it has this takes the room from whoever comes
/// next.
#[derive(Debug)]
pub struct WriteBuffer(Vec<u8>);

impl WriteBuffer {
    /// Begins to put something together.
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
        // A thread that ends has no next.
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
