//! Framing of message bodies (RFC 9112, 6 and 7): a given length, chunks, or the end of the connection.

use std::io::Write as _;

use bytes::{Buf as _, Bytes, BytesMut};

use crate::MAX_LINES;

/// Maximum size of a chunk-size line, and of the trailers.
pub(crate) const MAX_CHUNK_SIZE_LINE_BYTES: usize = 1 << 10;
const MAX_TRAILER_BYTES: usize = 16 << 10;

/// The last chunk of a chunked body, without trailers.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Writes one chunk of a chunked body. An empty text is not a chunk: it would end the body.
pub fn write_chunk(text: &str, out: &mut Vec<u8>) {
    if !text.is_empty() {
        let _ = write!(out, "{:x}\r\n", text.len());
        out.extend_from_slice(text.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
}

/// The framing of the unread part of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// Ends after this number of bytes.
    Length(u64),
    /// Chunked encoding.
    Chunks(ChunkPosition),
    /// Ends when the connection is closed.
    Close,
}

/// The position within a chunked body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkPosition {
    /// Before a chunk-size line.
    Size,
    /// Within a chunk, with this number of bytes left.
    Data(u64),
    /// Before the CRLF after a chunk.
    DataCrlf,
    /// In the trailers, which are ignored.
    Trailers {
        /// Their bytes so far.
        bytes: usize,
        /// Their lines so far.
        lines: usize,
    },
    /// At the end.
    End,
}

/// The result of parsing the buffered bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum BodyPart {
    /// A part of the body.
    Data(Bytes),
    /// More bytes are needed.
    Wait,
    /// The body is complete.
    End,
}

/// The bytes are not a valid response; states the reason.
#[derive(Debug, PartialEq, Eq)]
pub struct FramingError(pub String);

pub(crate) fn framing_error<T>(why: &str) -> Result<T, FramingError> {
    Err(FramingError(why.to_owned()))
}

impl Framing {
    /// Takes the next part of the body from the buffer.
    pub fn take(&mut self, from: &mut BytesMut) -> Result<BodyPart, FramingError> {
        match self {
            Self::Length(0) => Ok(BodyPart::End),
            Self::Length(left) => Ok(piece(left, from)),
            Self::Close if from.is_empty() => Ok(BodyPart::Wait),
            Self::Close => Ok(BodyPart::Data(from.split().freeze())),
            Self::Chunks(chunk) => chunk.take(from),
        }
    }

    /// Whether the end of the connection ends the body.
    pub fn ends_with_connection(self) -> bool {
        self == Self::Close
    }
}

/// Takes the buffered bytes, up to the remaining length.
fn piece(left: &mut u64, from: &mut BytesMut) -> BodyPart {
    if from.is_empty() {
        return BodyPart::Wait;
    }
    let taken = usize::try_from(*left).map_or(from.len(), |left| left.min(from.len()));
    *left -= taken as u64;
    BodyPart::Data(from.split_to(taken).freeze())
}

impl ChunkPosition {
    fn take(&mut self, from: &mut BytesMut) -> Result<BodyPart, FramingError> {
        loop {
            match self {
                Self::End => return Ok(BodyPart::End),
                Self::Data(0) => *self = Self::DataCrlf,
                Self::Data(left) => return Ok(piece(left, from)),
                Self::DataCrlf => match from.get(..2) {
                    None => return Ok(BodyPart::Wait),
                    Some(b"\r\n") => {
                        from.advance(2);
                        *self = Self::Size;
                    }
                    Some(_) => return framing_error("a chunk does not end with CRLF"),
                },
                Self::Size => {
                    let Some(line) = line(from, MAX_CHUNK_SIZE_LINE_BYTES)? else {
                        return Ok(BodyPart::Wait);
                    };
                    *self = match size(&line)? {
                        0 => Self::Trailers { bytes: 0, lines: 0 },
                        size => Self::Data(size),
                    };
                }
                Self::Trailers { bytes, lines } => {
                    let Some(line) = line(from, MAX_TRAILER_BYTES)? else { return Ok(BodyPart::Wait) };
                    *bytes += line.len() + 2;
                    *lines += 1;
                    if line.is_empty() {
                        *self = Self::End;
                    } else if *bytes > MAX_TRAILER_BYTES || *lines > MAX_LINES {
                        return framing_error("the trailers are too long");
                    } else if !is_header(line) {
                        return framing_error("a trailer is not a valid header");
                    }
                }
            }
        }
    }
}

/// Takes a line without its CRLF.
fn line(from: &mut BytesMut, max_bytes: usize) -> Result<Option<BytesMut>, FramingError> {
    let Some(end) = from.iter().take(max_bytes).position(|byte| *byte == b'\n') else {
        return if from.len() >= max_bytes { framing_error("a line is too long") } else { Ok(None) };
    };
    let mut line = from.split_to(end + 1);
    // A bare CR is ambiguous: some parsers accept it as the end of a line.
    let Some(text) = line.iter().position(|byte| *byte == b'\r').filter(|text| text + 1 == end) else {
        return framing_error("a line does not end with CRLF");
    };
    line.truncate(text);
    Ok(Some(line))
}

/// Whether a line is a valid header.
fn is_header(mut line: BytesMut) -> bool {
    line.extend_from_slice(b"\r\n\r\n");
    let mut header = [httparse::EMPTY_HEADER; 1];
    matches!(httparse::parse_headers(&line, &mut header), Ok(httparse::Status::Complete((_, [_]))))
}

/// Parses a chunk-size line: hexadecimal digits and an optional extension, which is ignored (RFC 9112, 7.1).
fn size(line: &[u8]) -> Result<u64, FramingError> {
    let digits = line.iter().position(|byte| !byte.is_ascii_hexdigit()).unwrap_or(line.len());
    let (digits, rest) = line.split_at(digits);
    let blanks = rest.iter().position(|byte| !matches!(byte, b' ' | b'\t')).unwrap_or(rest.len());
    let known = (1..16).contains(&digits.len()) && matches!(rest[blanks..], [] | [b';', ..]);
    let number = std::str::from_utf8(digits).ok().filter(|_| known);
    match number.and_then(|digits| u64::from_str_radix(digits, 16).ok()) {
        Some(size) => Ok(size),
        None => framing_error("a chunk size is invalid"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_written_chunks() {
        for texts in [&["hello", "", "é"][..], &[], &[&"x".repeat(70_000)]] {
            let mut out = Vec::new();
            texts.iter().for_each(|text| write_chunk(text, &mut out));
            out.extend_from_slice(LAST_CHUNK);
            let (mut input, mut framing) = (BytesMut::from(&out[..]), Framing::Chunks(ChunkPosition::Size));
            let mut decoded = Vec::new();
            while let BodyPart::Data(data) = framing.take(&mut input).unwrap() {
                decoded.extend_from_slice(&data);
            }
            assert_eq!(decoded, texts.concat().as_bytes());
            assert_eq!(framing.take(&mut input), Ok(BodyPart::End));
            assert!(input.is_empty());
        }
    }
}
