//! Serializes responses on the fast path.

use std::time::Instant;

use http::StatusCode;
use toolhub_http1::{write_content_length, write_date, write_header, write_status_line};
use toolhub_mcp_gateway::{ResponseBody, SESSION_ID};

/// Bodies longer than this are not copied behind the head but written separately.
pub(super) const MAX_COPIED_BODY_BYTES: usize = 16 << 10;

/// The head of a response.
pub(super) struct ResponseHead<'a> {
    pub(super) status: u16,
    pub(super) session: Option<&'a str>,
    /// Whether the connection is closed after this response.
    pub(super) last: bool,
    pub(super) now: Instant,
}

impl ResponseHead<'_> {
    /// Writes the head, and the body if it is at most `MAX_COPIED_BODY_BYTES` bytes; the caller writes a longer one.
    pub(super) fn body(&self, body: &ResponseBody, out: &mut Vec<u8>) {
        let length = body.len();
        self.write_start(out);
        if length > 0 {
            out.extend_from_slice(b"content-type: application/json\r\n");
        }
        write_content_length(itoa::Buffer::new().format(length), out);
        if length <= MAX_COPIED_BODY_BYTES {
            body.parts().iter().for_each(|part| out.extend_from_slice(part.as_bytes()));
        }
    }

    /// Writes the head of an event stream.
    pub(super) fn stream(&self, out: &mut Vec<u8>) {
        self.write_start(out);
        // `X-Accel-Buffering: no` keeps proxies from buffering events.
        out.extend_from_slice(
            b"content-type: text/event-stream\r\ncache-control: no-cache\r\nx-accel-buffering: no\r\n\
              transfer-encoding: chunked\r\n\r\n",
        );
    }

    fn write_start(&self, out: &mut Vec<u8>) {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::OK);
        write_status_line(status, out);
        if status == StatusCode::TOO_MANY_REQUESTS {
            write_header("retry-after", b"1", out);
        }
        write_date(self.now, out);
        // Skips values that are not valid in a header.
        if let Some(session) =
            self.session.filter(|session| session.bytes().all(|byte| byte.is_ascii_graphic()))
        {
            write_header(SESSION_ID, session.as_bytes(), out);
        }
        if self.last {
            out.extend_from_slice(b"connection: close\r\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use toolhub_core::RawJson;
    use toolhub_core::write_buffer::WriteBuffer;

    use super::*;

    fn written(status: u16, session: Option<&str>, body: &ResponseBody) -> String {
        let mut out = WriteBuffer::acquire();
        ResponseHead { status, session, last: session.is_some(), now: Instant::now() }.body(body, &mut out);
        String::from_utf8(out.clone()).unwrap()
    }

    #[test]
    fn writes_heads_and_short_bodies() {
        let text = written(200, None, &ResponseBody::Text("{\"a\":1}".into()));
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert_eq!(body, "{\"a\":1}");
        let lines: Vec<_> = head.split("\r\n").collect();
        assert_eq!(lines[0], "HTTP/1.1 200 OK");
        assert!(lines[1].starts_with("date: ") && lines[1].ends_with(" GMT"), "{}", lines[1]);
        assert_eq!(lines[2..], ["content-type: application/json", "content-length: 7"]);
        let large_result = RawJson::from("x".repeat(MAX_COPIED_BODY_BYTES));
        for (result, copied) in [(RawJson::from(7), true), (large_result, false)] {
            let body = ResponseBody::Result { id: RawJson::from("i"), result };
            let (text, all) = (written(200, None, &body), body.parts().concat());
            let (head, rest) = text.split_once("\r\n\r\n").unwrap();
            assert!(head.ends_with(&format!("content-length: {}", all.len())), "{head}");
            assert_eq!(rest, if copied { all.as_str() } else { "" });
        }
        let text = written(202, Some("s-1"), &ResponseBody::None);
        assert!(text.starts_with("HTTP/1.1 202 Accepted\r\n"), "{text}");
        assert!(
            text.ends_with("mcp-session-id: s-1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"),
            "{text}"
        );
        assert!(!written(200, Some("a\r\nb: c"), &ResponseBody::None).contains("b: c"));
    }
}
