//! Where messages arrive: one basin for each thread, which those that come in one piece come through. What came is taken
//! out as a part of it: it is not copied, whoever waits holds no memory for what may come, and what is written into was used
//! a moment ago.

use std::cell::RefCell;

use bytes::BytesMut;

/// The room that there is at least for what comes; and what is made where there is less. It has room for several short
/// messages, which then lie side by side: whoever keeps one keeps all of it.
const LEAST: usize = 2 << 10;
const ROOM: usize = 8 << 10;

thread_local! {
    /// Empty, but for its room.
    static READ_BUFFER: RefCell<BytesMut> = RefCell::new(BytesMut::new());
}

/// Lets bytes in: `read` puts what there is behind the end of what it is given. What it says is given back, with what
/// came. Nothing else may be let in meanwhile.
pub fn with_read_buffer<R>(read: impl FnOnce(&mut BytesMut) -> R) -> (R, BytesMut) {
    READ_BUFFER.with_borrow_mut(|basin| {
        if basin.capacity() < LEAST {
            basin.reserve(ROOM);
        }
        let said = read(basin);
        (said, if basin.is_empty() { BytesMut::new() } else { basin.split() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn came(text: &str) -> BytesMut {
        let ((), came) = with_read_buffer(|basin| {
            assert!(basin.is_empty() && basin.capacity() >= LEAST);
            basin.extend_from_slice(text.as_bytes());
        });
        came
    }

    #[test]
    fn what_came_stays_as_it_came() {
        let kept: Vec<BytesMut> = (0..10_000).map(|number| came(&format!("message {number}"))).collect();
        for (number, one) in kept.iter().enumerate() {
            assert_eq!(&one[..], format!("message {number}").as_bytes());
        }
        assert_eq!(&came(&"x".repeat(100_000))[..], "x".repeat(100_000).as_bytes());
        assert!(came("").is_empty());
    }

    #[test]
    fn what_was_let_go_is_used_again() {
        let first = came("first").as_ptr().addr();
        let again = (0..10_000).filter(|_| came("again").as_ptr().addr() == first).count();
        assert!(again > 2, "{again}");
    }
}
