//! A read buffer per thread. A read appends to the buffer, and the received bytes are split off without a copy. Idle
//! connections hold no buffer memory, and reads go to memory that is still in the CPU cache.

use std::cell::RefCell;

use bytes::BytesMut;

/// Minimum free capacity for a read, and the capacity reserved if there is less. A buffer holds several short
/// messages; keeping one of them keeps the whole allocation.
const MIN_READ_BYTES: usize = 2 << 10;
const BUFFER_BYTES: usize = 8 << 10;

thread_local! {
    /// Always empty between reads; only its capacity is reused.
    static READ_BUFFER: RefCell<BytesMut> = RefCell::new(BytesMut::new());
}

/// Calls `read` with the buffer of this thread; `read` appends the received bytes. Returns its result and the bytes.
/// Must not be called recursively.
pub fn with_read_buffer<R>(read: impl FnOnce(&mut BytesMut) -> R) -> (R, BytesMut) {
    READ_BUFFER.with_borrow_mut(|buffer| {
        if buffer.capacity() < MIN_READ_BYTES {
            buffer.reserve(BUFFER_BYTES);
        }
        let result = read(buffer);
        (result, if buffer.is_empty() { BytesMut::new() } else { buffer.split() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_bytes(text: &str) -> BytesMut {
        let ((), read_bytes) = with_read_buffer(|buffer| {
            assert!(buffer.is_empty() && buffer.capacity() >= MIN_READ_BYTES);
            buffer.extend_from_slice(text.as_bytes());
        });
        read_bytes
    }

    #[test]
    fn returned_bytes_are_not_overwritten_by_later_reads() {
        let messages: Vec<BytesMut> =
            (0..10_000).map(|number| read_bytes(&format!("message {number}"))).collect();
        for (number, message) in messages.iter().enumerate() {
            assert_eq!(&message[..], format!("message {number}").as_bytes());
        }
        assert_eq!(&read_bytes(&"x".repeat(100_000))[..], "x".repeat(100_000).as_bytes());
        assert!(read_bytes("").is_empty());
    }

    #[test]
    fn memory_of_dropped_bytes_is_reused() {
        let first = read_bytes("first").as_ptr().addr();
        let again = (0..10_000).filter(|_| read_bytes("again").as_ptr().addr() == first).count();
        assert!(again > 2, "{again}");
    }
}
