//! Serializes the parts of a message head.

use std::cell::RefCell;
use std::io::Write as _;
use std::time::{Duration, Instant, SystemTime};

use http::StatusCode;
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;

thread_local! {
    /// The formatted date, and the time until which it is valid.
    static DATE: RefCell<Option<(Instant, String)>> = const { RefCell::new(None) };
}

/// Writes the status line of a response.
pub fn write_status_line(status: StatusCode, out: &mut Vec<u8>) {
    if status == StatusCode::OK {
        out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
    } else {
        let reason = status.canonical_reason().unwrap_or_default();
        let _ = write!(out, "HTTP/1.1 {} {reason}\r\n", status.as_u16());
    }
}

/// Writes a header line. The caller has checked name and value.
#[inline]
pub fn write_header(name: &str, value: &[u8], out: &mut Vec<u8>) {
    for part in [name.as_bytes(), b": ", value, b"\r\n"] {
        out.extend_from_slice(part);
    }
}

/// Writes `Content-Length` and the empty line that ends the head. `digits` is the length in decimal digits.
#[inline]
pub fn write_content_length(digits: &str, out: &mut Vec<u8>) {
    for part in ["content-length: ", digits, "\r\n\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
}

/// Writes the `Date` header, whose value is formatted once per second.
pub fn write_date(now: Instant, out: &mut Vec<u8>) {
    DATE.with_borrow_mut(|cached| {
        let text = match cached {
            Some((until, text)) if now < *until => text,
            cached => &cached.insert(format_date(now)).1,
        };
        write_header("date", text.as_bytes(), out);
    });
}

fn format_date(now: Instant) -> (Instant, String) {
    let time = SystemTime::now();
    let elapsed = time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.subsec_nanos());
    let left = Duration::from_secs(1) - Duration::from_nanos(elapsed.into());
    let stamp = Timestamp::try_from(time).unwrap_or_default();
    (now + left, DateTimePrinter::new().timestamp_to_rfc9110_string(&stamp).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_heads() {
        let mut out = Vec::new();
        write_status_line(StatusCode::OK, &mut out);
        write_status_line(StatusCode::TOO_MANY_REQUESTS, &mut out);
        write_header("a", b"b", &mut out);
        write_content_length("12", &mut out);
        let expected =
            "HTTP/1.1 200 OK\r\nHTTP/1.1 429 Too Many Requests\r\na: b\r\ncontent-length: 12\r\n\r\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
        let mut out = Vec::new();
        write_date(Instant::now(), &mut out);
        let line = String::from_utf8(out).unwrap();
        assert!(line.starts_with("date: ") && line.ends_with(" GMT\r\n"), "{line}");
    }
}
