//! Serializes responses on the fast path.

use std::cell::RefCell;
use std::io::Write as _;
use std::time::{Duration, Instant, SystemTime};

use http::StatusCode;
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use toolhub_core::Digits;
use toolhub_mcp_gateway::Body;

/// Bodies longer than this are not copied behind the head but written separately.
pub(super) const LONG: usize = 16 << 10;

thread_local! {
    /// The formatted date, and the time until which it is valid.
    static DATE: RefCell<Option<(Instant, String)>> = const { RefCell::new(None) };
}

/// The head of a response.
pub(super) struct Written<'a> {
    pub(super) status: u16,
    pub(super) session: Option<&'a str>,
    /// Whether the connection is closed after this response.
    pub(super) last: bool,
    pub(super) now: Instant,
}

impl Written<'_> {
    /// Writes the head, and the body if it is at most `LONG` bytes; the caller writes a longer one.
    pub(super) fn body(&self, body: &Body, out: &mut Vec<u8>) {
        let length = body.len();
        self.beginning(out);
        if length > 0 {
            out.extend_from_slice(b"content-type: application/json\r\n");
        }
        out.extend_from_slice(b"content-length: ");
        out.extend_from_slice(Digits::of(length as u64).as_str().as_bytes());
        out.extend_from_slice(b"\r\n\r\n");
        if length <= LONG {
            body.parts().iter().for_each(|part| out.extend_from_slice(part.as_bytes()));
        }
    }

    /// Writes the head of an event stream.
    pub(super) fn stream(&self, out: &mut Vec<u8>) {
        self.beginning(out);
        // `X-Accel-Buffering: no` keeps proxies from buffering events.
        out.extend_from_slice(
            b"content-type: text/event-stream\r\ncache-control: no-cache\r\nx-accel-buffering: no\r\n\
              transfer-encoding: chunked\r\n\r\n",
        );
    }

    fn beginning(&self, out: &mut Vec<u8>) {
        match self.status {
            200 => out.extend_from_slice(b"HTTP/1.1 200 OK\r\n"),
            other => {
                let status = StatusCode::from_u16(other).unwrap_or(StatusCode::OK);
                let reason = status.canonical_reason().unwrap_or_default();
                let _ = write!(out, "HTTP/1.1 {} {reason}\r\n", status.as_u16());
                if status == StatusCode::TOO_MANY_REQUESTS {
                    out.extend_from_slice(b"retry-after: 1\r\n");
                }
            }
        }
        date(self.now, out);
        // Skips values that are not valid in a header.
        if let Some(session) =
            self.session.filter(|session| session.bytes().all(|byte| byte.is_ascii_graphic()))
        {
            let _ = write!(out, "mcp-session-id: {session}\r\n");
        }
        if self.last {
            out.extend_from_slice(b"connection: close\r\n");
        }
    }
}

/// Writes one chunk of a chunked body.
pub(super) fn chunk(text: &str, out: &mut Vec<u8>) {
    let _ = write!(out, "{:x}\r\n", text.len());
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// The last chunk of a chunked body.
pub(super) const END: &[u8] = b"0\r\n\r\n";

/// Writes the `Date` header, whose value is formatted once per second.
fn date(now: Instant, out: &mut Vec<u8>) {
    DATE.with_borrow_mut(|kept| {
        let text = match kept {
            Some((until, text)) if now < *until => text,
            kept => &kept.insert(written_date(now)).1,
        };
        out.extend_from_slice(b"date: ");
        out.extend_from_slice(text.as_bytes());
        out.extend_from_slice(b"\r\n");
    });
}

fn written_date(now: Instant) -> (Instant, String) {
    let time = SystemTime::now();
    let into = time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.subsec_nanos());
    let left = Duration::from_secs(1) - Duration::from_nanos(into.into());
    let stamp = Timestamp::try_from(time).unwrap_or_default();
    (now + left, DateTimePrinter::new().timestamp_to_rfc9110_string(&stamp).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use toolhub_core::RawJson;
    use toolhub_core::write_buffer::WriteBuffer;

    use super::*;

    fn written(status: u16, session: Option<&str>, body: &Body) -> String {
        let mut out = WriteBuffer::acquire();
        Written { status, session, last: session.is_some(), now: Instant::now() }.body(body, &mut out);
        String::from_utf8(out.clone()).unwrap()
    }

    #[test]
    fn answers_are_written_as_http_wants_them() {
        let text = written(200, None, &Body::Text("{\"a\":1}".into()));
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert_eq!(body, "{\"a\":1}");
        let lines: Vec<_> = head.split("\r\n").collect();
        assert_eq!(lines[0], "HTTP/1.1 200 OK");
        assert!(lines[1].starts_with("date: ") && lines[1].ends_with(" GMT"), "{}", lines[1]);
        assert_eq!(lines[2..], ["content-type: application/json", "content-length: 7"]);
        let whole = RawJson::from("x".repeat(LONG));
        for (result, copied) in [(RawJson::from(7), true), (whole, false)] {
            let body = Body::Result { id: RawJson::from("i"), result };
            let (text, all) = (written(200, None, &body), body.parts().concat());
            let (head, rest) = text.split_once("\r\n\r\n").unwrap();
            assert!(head.ends_with(&format!("content-length: {}", all.len())), "{head}");
            assert_eq!(rest, if copied { all.as_str() } else { "" });
        }
        let text = written(202, Some("s-1"), &Body::None);
        assert!(text.starts_with("HTTP/1.1 202 Accepted\r\n"), "{text}");
        assert!(
            text.ends_with("mcp-session-id: s-1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"),
            "{text}"
        );
        assert!(!written(200, Some("a\r\nb: c"), &Body::None).contains("b: c"));
    }

    #[test]
    fn chunks_tell_their_lengths() {
        let mut out = Vec::new();
        chunk(&"é".repeat(10), &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), format!("14\r\n{}\r\n", "é".repeat(10)));
    }
}
