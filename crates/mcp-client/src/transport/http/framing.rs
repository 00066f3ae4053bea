//! Framing of HTTP/1.1 responses (RFC 9112): parses the head and finds the end of the body. Sans-I/O: bytes in, parts out.

use std::mem::MaybeUninit;

use bytes::{Buf as _, Bytes, BytesMut};
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use httparse::ParserConfig;

use toolhub_mcp_wire::CachedHead;

/// Maximum size and number of lines of a head.
const MAX_HEAD: usize = 64 << 10;
const MAX_LINES: usize = 96;
/// Maximum size of a cached head.
const MAX_KNOWN: usize = 4 << 10;
/// Maximum number of informational (1xx) heads before the final one. Our requests do not solicit any.
const MAX_INFORMATIONAL: usize = 8;
/// Maximum size of a chunk-size line, and of the trailers.
const MAX_SIZE_LINE: usize = 1 << 10;
const MAX_TRAILERS: usize = 16 << 10;

/// The head of a response.
#[derive(Debug, Clone)]
pub(super) struct Head {
    pub(super) status: StatusCode,
    /// Whether the content type is `application/json` without content encoding, as in nearly every response.
    pub(super) plain_json: bool,
    /// The raw header lines.
    lines: Bytes,
    /// The framing of the body.
    pub(super) body: Framing,
    /// Whether the connection may be reused.
    pub(super) stays: bool,
}

/// A cached head.
#[derive(Debug)]
pub(super) struct Known {
    cached_head: CachedHead,
    head: Head,
}

/// The framing of the unread part of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// Ends after this number of bytes.
    Length(u64),
    /// Chunked encoding.
    Chunks(Chunk),
    /// Ends when the connection is closed.
    Close,
}

/// The position within a chunked body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chunk {
    /// Before a chunk-size line.
    Size,
    /// Within a chunk, with this number of bytes left.
    Data(u64),
    /// Before the CRLF after a chunk.
    Gap,
    /// In the trailers, which are ignored; counts their bytes and lines.
    Trailers { bytes: usize, lines: usize },
    /// At the end.
    Over,
}

/// The result of parsing the buffered bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// A part of the body.
    Data(Bytes),
    /// More bytes are needed.
    Wait,
    /// The body is complete.
    End,
}

/// The bytes are not a valid response; states the reason.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FramingError(pub(super) String);

fn framing_error<T>(why: &str) -> Result<T, FramingError> {
    Err(FramingError(why.to_owned()))
}

impl Head {
    /// Takes a complete head from the buffer. A head equal to the cached one is not parsed again.
    pub(super) fn take(
        from: &mut BytesMut,
        known: &mut Option<Box<Known>>,
    ) -> Result<Option<Self>, FramingError> {
        if let Some(known) = known
            && let Some((length, body)) = known.cached_head.seen(from)
        {
            from.advance(length);
            return Ok(Some(Self { body: Framing::Length(body as u64), ..known.head.clone() }));
        }
        Self::read(from, known)
    }

    /// Parses a head. Skips informational (1xx) heads.
    fn read(from: &mut BytesMut, known: &mut Option<Box<Known>>) -> Result<Option<Self>, FramingError> {
        for _ in 0..=MAX_INFORMATIONAL {
            // Uninitialized, since most of the array is never used.
            let mut lines = [const { MaybeUninit::uninit() }; MAX_LINES];
            let mut head = httparse::Response::new(&mut []);
            let parsed =
                ParserConfig::default().parse_response_with_uninit_headers(&mut head, from, &mut lines);
            let length = match parsed {
                Ok(httparse::Status::Complete(length)) => length,
                Ok(httparse::Status::Partial) if from.len() > MAX_HEAD => {
                    return framing_error("the head of the answer is too long");
                }
                Ok(httparse::Status::Partial) => return Ok(None),
                Err(error) => return Err(FramingError(format!("the answer is not HTTP: {error}"))),
            };
            let status = head.code.and_then(|code| StatusCode::from_u16(code).ok());
            let Some(status) = status else { return framing_error("the answer has no status") };
            if status.is_informational() {
                from.advance(length);
                if status == StatusCode::SWITCHING_PROTOCOLS {
                    return framing_error("the server wants to speak something else");
                }
                continue;
            }
            let Facts { body, stays, plain_json } = Facts::of(&head, status)?;
            // Caches only status 200 with plain JSON on a reusable connection. Other responses may have no body despite a
            // `Content-Length`.
            let usual = status == StatusCode::OK && plain_json && stays && length <= MAX_KNOWN;
            let cached_head = usual.then(|| cached_head(&from[..length], head.headers)).flatten();
            let lines = from.split_to(length).freeze();
            let head = Self { status, plain_json, lines, body, stays };
            if let Some(cached_head) = cached_head {
                // The cached head has its own allocation, so that it does not keep the read buffer alive.
                let lines = cached_head.text().as_bytes().clone();
                *known = Some(Box::new(Known { cached_head, head: Self { lines, ..head } }));
            }
            return Ok(Some(head));
        }
        framing_error("too many informational answers")
    }

    /// The headers without `Content-Length`, which the framing has consumed.
    pub(super) fn headers(&self) -> HeaderMap {
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
struct Facts {
    body: Framing,
    stays: bool,
    plain_json: bool,
}

impl Facts {
    fn of(head: &httparse::Response<'_, '_>, status: StatusCode) -> Result<Self, FramingError> {
        let (mut length, mut chunked, mut json, mut packed) = (None, false, false, false);
        let (mut closes, mut keeps) = (false, head.version == Some(1));
        for line in head.headers.iter() {
            let is = |name: &str| line.name.eq_ignore_ascii_case(name);
            if is("content-length") {
                let said = number(line.value);
                if said.is_none() || length.is_some_and(|length| Some(length) != said) {
                    return framing_error("the answer does not say clearly how long it is");
                }
                length = said;
            } else if is("content-type") {
                json = line.value == b"application/json";
            } else if is("transfer-encoding") {
                // HTTP/1.0 does not define `Transfer-Encoding`, so its meaning would be ambiguous (RFC 9112, 6.1).
                let known = head.version == Some(1) && line.value.eq_ignore_ascii_case(b"chunked");
                if chunked || !known {
                    return framing_error("the answer is packed for its way in a manner that is not known");
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
        let mut stays = keeps && !closes;
        let body = match (status, chunked, length) {
            (StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED, chunked, length) => {
                // These statuses have no body, but a server that declares one may send it, so the connection is not reused.
                stays &= !chunked && length.is_none_or(|length| length == 0);
                Framing::Length(0)
            }
            (_, true, said) => {
                // Ambiguous framing (`Content-Length` and chunked): the connection is not reused.
                stays &= said.is_none();
                Framing::Chunks(Chunk::Size)
            }
            (_, false, Some(length)) => Framing::Length(length),
            (_, false, None) => {
                stays = false;
                Framing::Close
            }
        };
        Ok(Self { body, stays, plain_json: json && !packed })
    }
}

fn number(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii();
    let digits = !text.is_empty() && text.len() < 19 && text.iter().all(u8::is_ascii_digit);
    digits.then(|| text.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}

impl Framing {
    /// Takes the next part of the body from the buffer.
    pub(super) fn take(&mut self, from: &mut BytesMut) -> Result<Part, FramingError> {
        match self {
            Self::Length(0) => Ok(Part::End),
            Self::Length(left) => Ok(piece(left, from)),
            Self::Close if from.is_empty() => Ok(Part::Wait),
            Self::Close => Ok(Part::Data(from.split().freeze())),
            Self::Chunks(chunk) => chunk.take(from),
        }
    }

    /// Whether the end of the connection ends the body.
    pub(super) fn ends_with_connection(self) -> bool {
        self == Self::Close
    }
}

/// Takes the buffered bytes, up to the remaining length.
fn piece(left: &mut u64, from: &mut BytesMut) -> Part {
    if from.is_empty() {
        return Part::Wait;
    }
    let here = usize::try_from(*left).map_or(from.len(), |left| left.min(from.len()));
    *left -= here as u64;
    Part::Data(from.split_to(here).freeze())
}

impl Chunk {
    fn take(&mut self, from: &mut BytesMut) -> Result<Part, FramingError> {
        loop {
            match self {
                Self::Over => return Ok(Part::End),
                Self::Data(0) => *self = Self::Gap,
                Self::Data(left) => return Ok(piece(left, from)),
                Self::Gap => match from.get(..2) {
                    None => return Ok(Part::Wait),
                    Some(b"\r\n") => {
                        from.advance(2);
                        *self = Self::Size;
                    }
                    Some(_) => return framing_error("a piece of the answer does not end where it should"),
                },
                Self::Size => {
                    let Some(line) = line(from, MAX_SIZE_LINE)? else { return Ok(Part::Wait) };
                    *self = match size(&line)? {
                        0 => Self::Trailers { bytes: 0, lines: 0 },
                        size => Self::Data(size),
                    };
                }
                Self::Trailers { bytes, lines } => {
                    let Some(line) = line(from, MAX_TRAILERS)? else { return Ok(Part::Wait) };
                    *bytes += line.len() + 2;
                    *lines += 1;
                    if line.is_empty() {
                        *self = Self::Over;
                    } else if *bytes > MAX_TRAILERS || *lines > MAX_LINES {
                        return framing_error("too much follows the answer");
                    } else if !is_header(line) {
                        return framing_error("what follows the answer is no header");
                    }
                }
            }
        }
    }
}

/// Takes a line without its CRLF.
fn line(from: &mut BytesMut, most: usize) -> Result<Option<BytesMut>, FramingError> {
    let Some(end) = from.iter().take(most).position(|byte| *byte == b'\n') else {
        return if from.len() >= most { framing_error("a line of the answer is too long") } else { Ok(None) };
    };
    let mut line = from.split_to(end + 1);
    // A bare CR is ambiguous: some parsers accept it as the end of a line.
    let Some(text) = line.iter().position(|byte| *byte == b'\r').filter(|text| text + 1 == end) else {
        return framing_error("a line of the answer does not end as it should");
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
        None => framing_error("a piece of the answer does not say how long it is"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses a response that arrives in pieces of `at_once` bytes.
    fn read(text: &str, at_once: usize) -> Result<(u16, String, bool, bool), String> {
        let (mut there, mut coming) = (BytesMut::new(), text.as_bytes().chunks(at_once));
        let head = loop {
            match Head::take(&mut there, &mut None).map_err(|FramingError(why)| why)? {
                Some(head) => break head,
                None => there.extend_from_slice(coming.next().ok_or("no head")?),
            }
        };
        let (mut body, mut framing) = (Vec::new(), head.body);
        let whole = loop {
            match framing.take(&mut there).map_err(|FramingError(why)| why)? {
                Part::Data(data) => body.extend_from_slice(&data),
                Part::End => break true,
                Part::Wait => match coming.next() {
                    Some(more) => there.extend_from_slice(more),
                    None => break framing.ends_with_connection(),
                },
            }
        };
        let stays = head.stays && there.is_empty();
        Ok((head.status.as_u16(), String::from_utf8(body).unwrap(), whole, stays))
    }

    fn check(text: &str, expect: (u16, &str, bool, bool)) {
        for at_once in 1..=text.len() {
            let (status, body, whole, stays) = read(text, at_once).unwrap();
            assert_eq!(
                (status, body.as_str(), whole),
                (expect.0, expect.1, expect.2),
                "{text:?} by {at_once}"
            );
            // Bytes after the response may arrive later.
            assert!(stays == expect.3 || at_once < text.len(), "{text:?}");
        }
    }

    #[test]
    fn bodies_end_where_they_say() {
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
    fn chunks_are_put_together() {
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
    fn what_is_unclear_is_refused() {
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
            format!("{chunks}{}", "1".repeat(MAX_SIZE_LINE + 1)),
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
    fn its_lines_can_be_looked_up() {
        let text = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: s1\r\ncontent-length: 0\r\n\r\n";
        let head = |text: &str| Head::take(&mut BytesMut::from(text), &mut None).unwrap().unwrap();
        let (head, packed) =
            (head(text), head(&text.replace("Mcp-Session-Id: s1", "Content-Encoding: gzip")));
        assert!(head.plain_json);
        assert_eq!(head.headers().get("mcp-session-id").unwrap(), "s1");
        assert!(!packed.plain_json);
    }

    /// Several responses over one connection are parsed the same with and without a cached head.
    #[test]
    fn a_head_that_came_before_says_the_same() {
        let head = |more: &str, length: usize| {
            format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{more}content-length: {length}\r\n\r\n"
            )
        };
        let (date, other) = ("date: today\r\n", "date: later\r\n");
        let close = "connection: close\r\n";
        let (mut known, mut there) = (None, BytesMut::new());
        let answers = [(date, 2), (date, 2), (date, 10), (other, 10), (date, 0), (close, 3), (close, 3)];
        for (more, length) in answers {
            let body = "x".repeat(length);
            there.extend_from_slice(format!("{}{body}", head(more, length)).as_bytes());
            let found = Head::take(&mut there, &mut known).unwrap().unwrap();
            assert_eq!((found.status.as_u16(), found.plain_json, found.stays), (200, true, more != close));
            assert_eq!(found.body, Framing::Length(length as u64));
            let said = found.headers();
            assert_eq!(
                said.get("date").is_some_and(|date| more.contains(date.to_str().unwrap())),
                more != close
            );
            assert_eq!(there.split(), body.as_bytes());
            assert!(
                known.as_ref().unwrap().cached_head.text().contains("date"),
                "one that ends it all is not kept"
            );
        }
        for text in
            ["500 Oh\r\ncontent-length: 0", "204 No\r\ncontent-length: 2", "204 No\r\ncontent-length: 2"]
        {
            let text = format!("HTTP/1.1 {text}\r\ncontent-type: application/json\r\n\r\n");
            there.extend_from_slice(text.as_bytes());
            let found = Head::take(&mut there, &mut known).unwrap().unwrap();
            assert_eq!((found.status.as_str(), found.body), (&text[9..12], Framing::Length(0)));
        }
    }
}
