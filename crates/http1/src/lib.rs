//! HTTP/1.1 framing (RFC 9112) without I/O: bytes in, heads and bodies out. The gateway's fast path and the client for plain
//! connections share it.
//!
//! Both handle only the messages that nearly all peers send, and reject or pass on everything else: whatever this crate
//! accepts, hyper accepts with the same meaning (the fuzz targets compare both). The gain is measured by
//! `cargo xtask bench gateway --instructions`; `[serve] fast_path = false` handles every request with hyper.

mod body;
mod cached_head;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod request;
mod response;
mod retry_after;
mod write;

pub use body::{BodyPart, ChunkPosition, Framing, FramingError, LAST_CHUNK, write_chunk};
pub use cached_head::CachedHead;
pub use request::{IncompleteHead, RequestHead};
pub use response::{CachedResponse, ResponseHead};
pub use retry_after::retry_after;
pub use write::{write_content_length, write_date, write_header, write_status_line};

/// Maximum number of header lines of a response, and of its trailers.
const MAX_LINES: usize = 96;

/// Maximum length of a head that is cached for the next message.
pub const MAX_CACHED_HEAD: usize = 4 << 10;

/// Parses 1 to `max_digits` ASCII digits; `max_digits` is at most 19, so that the value fits.
fn decimal(digits: &[u8], max_digits: usize) -> Option<u64> {
    let valid = (1..=max_digits).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    valid.then(|| digits.iter().fold(0, |value, digit| value * 10 + u64::from(digit - b'0')))
}
