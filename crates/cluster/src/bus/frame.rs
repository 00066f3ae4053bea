//! Frames: a message of NATS carries one frame, and a message of the bus is one or several of them. The header has flags and a
//! sequence number, so that a lost frame is noticed.

use bytes::{BufMut as _, Bytes, BytesMut};

/// Bytes of a header: flags, and the sequence number.
const HEADER_BYTES: usize = 5;

/// The last message of an answer.
pub(super) const LAST: u8 = 1;
/// The message continues in the next frame.
pub(super) const MORE: u8 = 1 << 1;
/// The payload is the subject to which the rest of a large request is to be sent.
pub(super) const UPLOAD: u8 = 1 << 2;

/// Maximum payload of a frame.
pub(super) const MAX_PIECE_BYTES: usize = 512 << 10;
/// Maximum size of a message: the largest result of a server, escaped, and what is said about it.
pub(super) const MAX_MESSAGE_BYTES: usize = 96 << 20;

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BusFrame {
    pub(super) flags: u8,
    pub(super) sequence: u32,
    pub(super) payload: Bytes,
}

impl BusFrame {
    /// Reads a frame; `None` if the text is too short to be one.
    pub(super) fn read(message: &Bytes) -> Option<Self> {
        let header: [u8; HEADER_BYTES] = message.get(..HEADER_BYTES)?.try_into().ok()?;
        let [flags, sequence @ ..] = header;
        let payload = message.slice(HEADER_BYTES..);
        Some(Self { flags, sequence: u32::from_be_bytes(sequence), payload })
    }

    pub(super) fn has_flag(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Writes a frame.
pub(super) fn write(flags: u8, sequence: u32, payload: &[u8]) -> Bytes {
    let mut message = BytesMut::with_capacity(HEADER_BYTES + payload.len());
    message.put_u8(flags);
    message.put_u32(sequence);
    message.put_slice(payload);
    message.freeze()
}

/// Splits a message into pieces of at most `piece` bytes, at least one.
pub(super) fn pieces(message: &Bytes, piece: usize) -> impl Iterator<Item = (Bytes, bool)> {
    let count = message.len().div_ceil(piece).max(1);
    let message = message.clone();
    (0..count).map(move |index| {
        let end = ((index + 1) * piece).min(message.len());
        (message.slice(index * piece..end), index + 1 == count)
    })
}

/// Puts the frames of one message together.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    first: Option<Bytes>,
    rest: BytesMut,
}

impl Assembly {
    /// Adds a piece. Returns the message once it is complete, and an error if it becomes too large.
    pub(super) fn push(&mut self, payload: Bytes, is_complete: bool) -> Result<Option<Bytes>, usize> {
        let Some(first) = self.first.take() else {
            if is_complete {
                return Ok(Some(payload));
            }
            self.first = Some(payload);
            return Ok(None);
        };
        if self.rest.is_empty() {
            self.rest.extend_from_slice(&first);
        }
        self.rest.extend_from_slice(&payload);
        if self.rest.len() > MAX_MESSAGE_BYTES {
            return Err(self.rest.len());
        }
        if is_complete {
            return Ok(Some(std::mem::take(&mut self.rest).freeze()));
        }
        self.first = Some(first);
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_put_together_again() {
        for (length, piece, count) in [(0, 4, 1), (3, 4, 1), (4, 4, 1), (5, 4, 2), (17, 4, 5)] {
            let message: Bytes = (0..length).map(|byte| u8::try_from(byte).unwrap()).collect();
            let all: Vec<_> = pieces(&message, piece).collect();
            assert_eq!(all.len(), count, "{length}");
            let mut assembly = Assembly::default();
            for (index, (payload, is_complete)) in all.into_iter().enumerate() {
                let frame = BusFrame::read(&write(MORE, u32::try_from(index).unwrap(), &payload)).unwrap();
                assert!(frame.has_flag(MORE) && !frame.has_flag(LAST));
                let whole = assembly.push(frame.payload, is_complete).unwrap();
                assert_eq!(whole.as_ref(), is_complete.then_some(&message));
            }
        }
    }

    #[test]
    fn endless_message_is_refused() {
        let mut assembly = Assembly::default();
        let piece = Bytes::from(vec![0; MAX_PIECE_BYTES]);
        let refused =
            (0..=MAX_MESSAGE_BYTES / MAX_PIECE_BYTES).find_map(|_| assembly.push(piece.clone(), false).err());
        assert!(refused.is_some_and(|bytes| bytes <= MAX_MESSAGE_BYTES + MAX_PIECE_BYTES));
        assert_eq!(BusFrame::read(&Bytes::from_static(b"1234")), None);
    }
}
