//! Parses the head of a response, and derives the framing of its body and whether the connection can be reused.

use std::mem::MaybeUninit;

use bytes::{Buf as _, Bytes, BytesMut};
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use httparse::ParserConfig;

use crate::body::{ChunkPosition, Framing, FramingError, framing_error};
use crate::cached_head::CachedHead;
use crate::{MAX_CACHED_HEAD, MAX_LINES, decimal};

/// Maximum size of a head in bytes.
const MAX_HEAD: usize = 64 << 10;
/// Maximum number of informational (1xx) heads before the final one. Our requests do not solicit any.
const MAX_INFORMATIONAL: usize = 8;
/// Maximum number of digits of a `Content-Length`; the value fits into 64 bits.
const MAX_LENGTH_DIGITS: usize = 18;

/// The head of a response.
#[derive(Debug, Clone)]
pub struct ResponseHead {
    /// The status.
    pub status: StatusCode,
    /// Whether the content type is `application/json` without content encoding, as in nearly every response.
    pub plain_json: bool,
    /// The raw header lines.
    lines: Bytes,
    /// The framing of the body.
    pub body: Framing,
    /// Whether the connection may be reused.
    pub reusable: bool,
}

/// A cached head.
#[derive(Debug)]
pub struct CachedResponse {
    cached_head: CachedHead,
    head: ResponseHead,
}

impl ResponseHead {
    /// Takes a complete head from the buffer. A head equal to the cached one is not parsed again.
    pub fn take(
        from: &mut BytesMut,
        cached: &mut Option<Box<CachedResponse>>,
    ) -> Result<Option<Self>, FramingError> {
        if let Some(cached) = cached
            && let Some((length, body)) = cached.cached_head.matches(from)
        {
            from.advance(length);
            return Ok(Some(Self { body: Framing::Length(body as u64), ..cached.head.clone() }));
        }
        Self::read(from, cached)
    }

    /// Parses a head. Skips informational (1xx) heads.
    fn read(
        from: &mut BytesMut,
        cached: &mut Option<Box<CachedResponse>>,
    ) -> Result<Option<Self>, FramingError> {
        for _ in 0..=MAX_INFORMATIONAL {
            // Uninitialized, since most of the array is never used.
            let mut lines = [const { MaybeUninit::uninit() }; MAX_LINES];
            let mut head = httparse::Response::new(&mut []);
            let parsed =
                ParserConfig::default().parse_response_with_uninit_headers(&mut head, from, &mut lines);
            let length = match parsed {
                Ok(httparse::Status::Complete(length)) => length,
                Ok(httparse::Status::Partial) if from.len() > MAX_HEAD => {
                    return framing_error("the response head is too long");
                }
                Ok(httparse::Status::Partial) => return Ok(None),
                Err(error) => return Err(FramingError(format!("the response is not HTTP: {error}"))),
            };
            let status = head.code.and_then(|code| StatusCode::from_u16(code).ok());
            let Some(status) = status else { return framing_error("the response has no status") };
            if status.is_informational() {
                from.advance(length);
                if status == StatusCode::SWITCHING_PROTOCOLS {
                    return framing_error("the server switched to another protocol");
                }
                continue;
            }
            let Properties { body, reusable, plain_json } = Properties::of(&head, status)?;
            // Caches only status 200 with plain JSON on a reusable connection. Other responses may have no body despite a
            // `Content-Length`.
            let usual = status == StatusCode::OK && plain_json && reusable && length <= MAX_CACHED_HEAD;
            let cached_head = usual.then(|| cached_head(&from[..length], head.headers)).flatten();
            let lines = from.split_to(length).freeze();
            let head = Self { status, plain_json, lines, body, reusable };
            if let Some(cached_head) = cached_head {
                // The cached head has its own allocation, so that it does not keep the read buffer alive.
                let lines = cached_head.text().as_bytes().clone();
                *cached = Some(Box::new(CachedResponse { cached_head, head: Self { lines, ..head } }));
            }
            return Ok(Some(head));
        }
        framing_error("too many informational responses")
    }

    /// The headers without `Content-Length`, which the framing has consumed.
    pub fn headers(&self) -> HeaderMap {
        let mut lines = [httparse::EMPTY_HEADER; MAX_LINES];
        let mut head = httparse::Response::new(&mut lines);
        // Cannot fail: the head has been parsed before.
        let _ = head.parse(&self.lines);
        let mut map = HeaderMap::with_capacity(head.headers.len());
        for line in head.headers.iter() {
            let name =
                HeaderName::from_bytes(line.name.as_bytes()).ok().filter(|name| name != CONTENT_LENGTH);
            if let (Some(name), Ok(value)) = (name, HeaderValue::from_bytes(line.value)) {
                map.append(name, value);
            }
        }
        map
    }
}

/// Creates the cache entry of a head.
fn cached_head(head: &[u8], lines: &[httparse::Header<'_>]) -> Option<CachedHead> {
    let mut lengths = lines.iter().filter(|line| line.name.eq_ignore_ascii_case("content-length"));
    let length = lengths.next()?;
    // A repeated `Content-Length` would have to be verified each time.
    if lengths.next().is_some() {
        return None;
    }
    CachedHead::of(head, length.value).map(|(cached_head, _)| cached_head)
}

/// Framing and connection reuse, according to the headers.
struct Properties {
    body: Framing,
    reusable: bool,
    plain_json: bool,
}

impl Properties {
    fn of(head: &httparse::Response<'_, '_>, status: StatusCode) -> Result<Self, FramingError> {
        let (mut length, mut chunked, mut json, mut packed) = (None, false, false, false);
        let (mut closes, mut keeps) = (false, head.version == Some(1));
        for line in head.headers.iter() {
            let is = |name: &str| line.name.eq_ignore_ascii_case(name);
            if is("content-length") {
                let declared = decimal(line.value.trim_ascii(), MAX_LENGTH_DIGITS);
                if declared.is_none() || length.is_some_and(|length| Some(length) != declared) {
                    return framing_error("the Content-Length is invalid or ambiguous");
                }
                length = declared;
            } else if is("content-type") {
                json = line.value == b"application/json";
            } else if is("transfer-encoding") {
                // HTTP/1.0 does not define `Transfer-Encoding`, so its meaning would be ambiguous (RFC 9112, 6.1).
                let known = head.version == Some(1) && line.value.eq_ignore_ascii_case(b"chunked");
                if chunked || !known {
                    return framing_error("the Transfer-Encoding is not supported");
                }
                chunked = true;
            } else if is("connection") {
                // An invalid value may mean `close`.
                closes |= !line.value.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\t'));
                for word in line.value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                    closes |= word.eq_ignore_ascii_case(b"close");
                    keeps |= word.eq_ignore_ascii_case(b"keep-alive");
                }
            } else if is("content-encoding") {
                packed = true;
            }
        }
        // `close` takes precedence over `keep-alive` (RFC 9112, 9.3).
        let mut reusable = keeps && !closes;
        let body = match (status, chunked, length) {
            (StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED, chunked, length) => {
                // These statuses have no body, but a server that declares one may send it, so the connection is not reused.
                reusable &= !chunked && length.is_none_or(|length| length == 0);
                Framing::Length(0)
            }
            (_, true, declared) => {
                // Ambiguous framing (`Content-Length` and chunked): the connection is not reused.
                reusable &= declared.is_none();
                Framing::Chunks(ChunkPosition::Size)
            }
            (_, false, Some(length)) => Framing::Length(length),
            (_, false, None) => {
                reusable = false;
                Framing::Close
            }
        };
        Ok(Self { body, reusable, plain_json: json && !packed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::{BodyPart, MAX_CHUNK_SIZE_LINE_BYTES};

    /// Parses a response that arrives in pieces of `at_once` bytes.
    fn read(text: &str, at_once: usize) -> Result<(u16, String, bool, bool), String> {
        let (mut buffer, mut incoming) = (BytesMut::new(), text.as_bytes().chunks(at_once));
        let head = loop {
            match ResponseHead::take(&mut buffer, &mut None).map_err(|FramingError(why)| why)? {
                Some(head) => break head,
                None => buffer.extend_from_slice(incoming.next().ok_or("no head")?),
            }
        };
        let (mut body, mut framing) = (Vec::new(), head.body);
        let is_complete = loop {
            match framing.take(&mut buffer).map_err(|FramingError(why)| why)? {
                BodyPart::Data(data) => body.extend_from_slice(&data),
                BodyPart::End => break true,
                BodyPart::Wait => match incoming.next() {
                    Some(more) => buffer.extend_from_slice(more),
                    None => break framing.ends_with_connection(),
                },
            }
        };
        let reusable = head.reusable && buffer.is_empty();
        Ok((head.status.as_u16(), String::from_utf8(body).unwrap(), is_complete, reusable))
    }

    fn check(text: &str, expect: (u16, &str, bool, bool)) {
        for at_once in 1..=text.len() {
            let (status, body, is_complete, reusable) = read(text, at_once).unwrap();
            assert_eq!(
                (status, body.as_str(), is_complete),
                (expect.0, expect.1, expect.2),
                "{text:?} by {at_once}"
            );
            // Bytes after the response may arrive later.
            assert!(reusable == expect.3 || at_once < text.len(), "{text:?}");
        }
    }

    #[test]
    fn reads_bodies_of_every_framing() {
        check("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", (200, "hello", true, true));
        check("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhel", (200, "hel", false, true));
        check("HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n", (202, "", true, true));
        check("HTTP/1.1 204 No Content\r\n\r\n", (204, "", true, true));
        check("HTTP/1.1 200 OK\r\n\r\nall there is", (200, "all there is", true, false));
        check("HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nhi", (200, "hi", true, false));
        check(
            "HTTP/1.1 200 OK\r\nconnection: Close\r\ncontent-length: 2\r\n\r\nhi",
            (200, "hi", true, false),
        );
        check(
            "HTTP/1.0 200 OK\r\nconnection: close\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\nhi",
            (200, "hi", true, false),
        );
        check(
            "HTTP/1.0 200 OK\r\nconnection: keep-alive, \u{e9}\r\ncontent-length: 2\r\n\r\nhi",
            (200, "hi", true, false),
        );
        check(
            "HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\nhi",
            (200, "hi", true, true),
        );
        // Bytes after the body: the connection is not reused.
        check("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi there", (200, "hi", true, false));
        let announced = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi";
        check(announced, (200, "hi", true, true));
    }

    #[test]
    fn joins_chunks() {
        let chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        check(&format!("{chunks}5\r\nhello\r\n1;x=y\r\n!\r\n0\r\n\r\n"), (200, "hello!", true, true));
        check(
            &format!("{chunks}00A\r\n0123456789\r\n0\r\nx: y\r\nz: 1\r\n\r\n"),
            (200, "0123456789", true, true),
        );
        check(&format!("{chunks}5\r\nhel"), (200, "hel", false, true));
        let both =
            "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n";
        check(both, (200, "hi", true, false));
    }

    #[test]
    fn rejects_invalid_and_ambiguous_responses() {
        let chunks = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        let long = "a".repeat(MAX_HEAD + 10);
        for text in [
            "SSH-2.0-OpenSSH_9.2\r\n".to_owned(),
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!".to_owned(),
            "HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\n".to_owned(),
            "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\n".to_owned(),
            "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n".to_owned(),
            "HTTP/1.1 101 Switching Protocols\r\n\r\n".to_owned(),
            format!("{chunks}xyz\r\n"),
            format!("{chunks}ffffffffffffffffff\r\n"),
            format!("{chunks}2\r\nhello\r\n"),
            format!("{chunks}{}", "1".repeat(MAX_CHUNK_SIZE_LINE_BYTES + 1)),
            format!("HTTP/1.1 200 OK\r\nx: {long}"),
        ] {
            let found = read(&text, text.len());
            assert!(found.is_err(), "{:?}: {found:?}", &text[..text.len().min(80)]);
        }
    }

    /// If parsers could disagree on the end of a body, this one is never more lenient than hyper (RFC 9112, 6 and 7.1).
    #[test]
    fn rejects_framing_that_hyper_rejects() {
        let chunks = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        let mut accepted = Vec::new();
        for text in [
            format!("{chunks} 5\r\nhello\r\n0\r\n\r\n"),
            format!("{chunks}5\r\r\nhello\r\n0\r\n\r\n"),
            format!("{chunks}5\x0c\r\nhello\r\n0\r\n\r\n"),
            format!("{chunks}\n"),
            format!("{chunks}5 5\r\nhello\r\n0\r\n\r\n"),
            format!("{chunks}5;a\rb\r\nhello\r\n0\r\n\r\n"),
            format!("{chunks}0\r\nno colon\r\n\r\n"),
            format!("{chunks}0\r\nx : y\r\n\r\n"),
            format!("{chunks}0\r\n folded: x\r\n\r\n"),
            format!("{chunks}0\r\nx: a\rb\r\n\r\n"),
            "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n".to_owned(),
        ] {
            accepted.extend(read(&text, text.len()).ok().map(|_| text));
        }
        assert!(accepted.is_empty(), "{accepted:#?}");
        for text in [
            format!("{chunks}5 \t\r\nhello\r\n0\r\n\r\n"),
            format!("{chunks}5 ; x=\"a;b\"\r\nhello\r\n000;last\r\nx:y\r\nz: \r\n\r\n"),
        ] {
            check(&text, (200, "hello", true, true));
        }
    }

    #[test]
    fn parses_headers_on_demand() {
        let text = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: s1\r\ncontent-length: 0\r\n\r\n";
        let head = |text: &str| ResponseHead::take(&mut BytesMut::from(text), &mut None).unwrap().unwrap();
        let (head, packed) =
            (head(text), head(&text.replace("Mcp-Session-Id: s1", "Content-Encoding: gzip")));
        assert!(head.plain_json);
        assert_eq!(head.headers().get("mcp-session-id").unwrap(), "s1");
        assert!(!packed.plain_json);
    }

    /// Several responses over one connection are parsed the same with and without a cached head.
    #[test]
    fn cached_head_gives_the_same_result_as_parsing() {
        let head = |more: &str, length: usize| {
            format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{more}content-length: {length}\r\n\r\n"
            )
        };
        let (date, other) = ("date: today\r\n", "date: later\r\n");
        let close = "connection: close\r\n";
        let (mut known, mut buffer) = (None, BytesMut::new());
        let answers = [(date, 2), (date, 2), (date, 10), (other, 10), (date, 0), (close, 3), (close, 3)];
        for (more, length) in answers {
            let body = "x".repeat(length);
            buffer.extend_from_slice(format!("{}{body}", head(more, length)).as_bytes());
            let found = ResponseHead::take(&mut buffer, &mut known).unwrap().unwrap();
            assert_eq!((found.status.as_u16(), found.plain_json, found.reusable), (200, true, more != close));
            assert_eq!(found.body, Framing::Length(length as u64));
            let declared = found.headers();
            assert_eq!(
                declared.get("date").is_some_and(|date| more.contains(date.to_str().unwrap())),
                more != close
            );
            assert_eq!(buffer.split(), body.as_bytes());
            assert!(
                known.as_ref().unwrap().cached_head.text().contains("date"),
                "one that ends it all is not kept"
            );
        }
        for text in
            ["500 Oh\r\ncontent-length: 0", "204 No\r\ncontent-length: 2", "204 No\r\ncontent-length: 2"]
        {
            let text = format!("HTTP/1.1 {text}\r\ncontent-type: application/json\r\n\r\n");
            buffer.extend_from_slice(text.as_bytes());
            let found = ResponseHead::take(&mut buffer, &mut known).unwrap().unwrap();
            assert_eq!((found.status.as_str(), found.body), (&text[9..12], Framing::Length(0)));
        }
    }
}
