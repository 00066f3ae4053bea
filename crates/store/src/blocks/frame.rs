//! Frames of a journal of finished calls: length, checksum, entry and output. Reading stops at the first truncated or
//! damaged frame.

use toolhub_core::call_log::{CallEnd, CallStart};

use super::entry;
use crate::rows::stored_json;

/// Size of length and checksum.
pub(crate) const HEADER_BYTES: usize = 8;

/// The header of a frame with these parts.
pub(crate) fn header(entry: &[u8], output: &[u8]) -> [u8; HEADER_BYTES] {
    let length = u32::try_from(entry.len() + output.len()).unwrap_or(u32::MAX);
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(entry);
    checksum.update(output);
    let mut header = [0; HEADER_BYTES];
    header[..4].copy_from_slice(&length.to_le_bytes());
    header[4..].copy_from_slice(&checksum.finalize().to_le_bytes());
    header
}

/// A call in a journal, with the offset of its frame.
#[derive(Debug)]
pub(crate) struct CallFrame {
    pub(crate) offset: u64,
    pub(crate) start: CallStart,
    pub(crate) end: CallEnd,
    /// Whether the call belongs in the audit log.
    pub(crate) audit: bool,
}

/// The calls of a file, up to the first incomplete frame.
pub(crate) fn read(bytes: &[u8]) -> impl Iterator<Item = CallFrame> + '_ {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let offset = (bytes.len() - rest.len()) as u64;
        let (header_bytes, after) = rest.split_first_chunk::<HEADER_BYTES>()?;
        let length = u32::from_le_bytes([header_bytes[0], header_bytes[1], header_bytes[2], header_bytes[3]]);
        let (payload, after) = after.split_at_checked(usize::try_from(length).ok()?)?;
        if header(payload, &[]) != *header_bytes {
            return None;
        }
        let (entry_length, payload) = payload.split_first_chunk::<4>()?;
        let entry_length = usize::try_from(u32::from_le_bytes(*entry_length)).ok()?;
        let (entry, output) = payload.split_at_checked(entry_length)?;
        let mut entry = entry::decode(entry)?;
        if entry.output_bytes.is_some() {
            entry.end.output = Some(stored_json(String::from_utf8(output.to_vec()).ok()?));
        }
        rest = after;
        Some(CallFrame { offset, start: entry.start, end: entry.end, audit: entry.audit })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::blocks::BlockBuilder;
    use crate::blocks::tests::call;

    #[test]
    fn reads_whole_frames_and_stops_at_a_damaged_one() {
        let mut builder = BlockBuilder::default();
        let mut bytes = Vec::new();
        let mut calls = Vec::new();
        let mut offsets = Vec::new();
        for _ in 0..5 {
            let (start, end) = call("t");
            offsets.push(bytes.len());
            let entry = builder.add(&start, &end);
            let output = end.output.as_ref().unwrap().get().as_bytes();
            bytes.extend_from_slice(&header(entry, output));
            bytes.extend_from_slice(entry);
            bytes.extend_from_slice(output);
            calls.push((start, end));
        }
        let found: Vec<CallFrame> = read(&bytes).collect();
        assert_eq!(found.len(), 5);
        for (frame, ((start, end), offset)) in found.iter().zip(calls.iter().zip(&offsets)) {
            assert_eq!(frame.offset, *offset as u64);
            assert_eq!(format!("{:?}", (&frame.start, &frame.end)), format!("{:?}", (start, end)));
        }
        for length in 0..bytes.len() {
            let complete_frames = offsets.iter().skip(1).filter(|offset| **offset <= length).count();
            assert_eq!(read(&bytes[..length]).count(), complete_frames, "{length}");
        }
        bytes[offsets[3] + HEADER_BYTES + 9] ^= 1;
        assert_eq!(read(&bytes).count(), 3);
    }
}
