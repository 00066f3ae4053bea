//! Parses the request heads that nearly all clients send. Every other request must be handled by a general HTTP server.

use std::mem::MaybeUninit;
use std::ops::Range;

use httparse::{Header, Request, Status};

use crate::cached_head::CachedHead;

/// Maximum number of headers.
const MAX_HEADERS: usize = 40;
/// Maximum length of a head in bytes.
const MAX_HEAD: usize = 16 << 10;

/// A parsed request head with a `Content-Length`.
#[derive(Debug)]
pub struct RequestHead {
    cached_head: CachedHead,
    path: Range<usize>,
    fields: Vec<Field>,
}

/// The position of a header in the head.
#[derive(Debug)]
struct Field {
    name: Range<usize>,
    value: Range<usize>,
}

/// Why there is no head in the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IncompleteHead {
    /// The end of the head has not arrived.
    MoreNeeded,
    /// The request must be handled by a general HTTP server.
    Unsupported,
}

impl RequestHead {
    /// Parses the head at the start of `bytes`, which must begin with `start` (method and the start of the path). Returns it
    /// with its length and that of the body.
    pub fn parse(bytes: &[u8], start: &[u8]) -> Result<(Self, usize, usize), IncompleteHead> {
        // Checked first, so that any other request is passed on without waiting for the rest of its head.
        let common = bytes.len().min(start.len());
        if bytes[..common] != start[..common] {
            return Err(IncompleteHead::Unsupported);
        }
        let (mut fields, mut request) =
            ([const { MaybeUninit::uninit() }; MAX_HEADERS], Request::new(&mut []));
        let length = match request.parse_with_uninit_headers(bytes, &mut fields) {
            Ok(Status::Complete(length)) => length,
            Ok(Status::Partial) if bytes.len() < MAX_HEAD => return Err(IncompleteHead::MoreNeeded),
            Ok(Status::Partial) | Err(_) => return Err(IncompleteHead::Unsupported),
        };
        let Request { path: Some(path), version: Some(1), headers, .. } = request else {
            return Err(IncompleteHead::Unsupported);
        };
        let cached_head = content_length(headers).and_then(|value| CachedHead::of(&bytes[..length], value));
        let (cached_head, body) = cached_head.ok_or(IncompleteHead::Unsupported)?;
        let range = |part: &[u8]| {
            let start = part.as_ptr().addr() - bytes.as_ptr().addr();
            start..start + part.len()
        };
        // `Content-Length` differs between messages with the same cached head, so it cannot be looked up.
        let fields = headers
            .iter()
            .filter(|header| !header.name.eq_ignore_ascii_case("content-length"))
            .map(|header| Field { name: range(header.name.as_bytes()), value: range(header.value) })
            .collect();
        Ok((Self { cached_head, path: range(path.as_bytes()), fields }, length, body))
    }

    /// If `bytes` start with this head, apart from the value of `Content-Length`: the length of the head and of the body.
    #[inline]
    pub fn matches(&self, bytes: &[u8]) -> Option<(usize, usize)> {
        self.cached_head.matches(bytes)
    }

    /// The length of this head in bytes.
    pub fn length(&self) -> usize {
        self.cached_head.text().len()
    }

    /// The request target.
    #[inline]
    pub fn path(&self) -> &str {
        self.text(&self.path)
    }

    /// The index of the first header with this name, for [`Self::value_at`].
    pub fn position(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| self.has_name(field, name))
    }

    /// The value of the header at an index.
    #[inline]
    pub fn value_at(&self, index: usize) -> Option<&str> {
        self.fields.get(index).map(|field| self.text(&field.value))
    }

    /// The values of all headers with this name.
    pub fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.fields.iter().filter(|field| self.has_name(field, name)).map(|field| self.text(&field.value))
    }

    #[inline]
    fn has_name(&self, field: &Field, name: &str) -> bool {
        field.name.len() == name.len() && self.text(&field.name).eq_ignore_ascii_case(name)
    }

    #[inline]
    fn text(&self, range: &Range<usize>) -> &str {
        self.cached_head.text().get(range.clone()).unwrap_or_default()
    }
}

/// Returns the value of `Content-Length`. Returns `None` if the length is missing or repeated, or if a header needs a general
/// HTTP server.
fn content_length<'a>(headers: &[Header<'a>]) -> Option<&'a [u8]> {
    let mut length = None;
    for Header { name, value } in headers {
        // Requests with an `Origin` need CORS headers in the response, which only the general server sends.
        let unsupported = match name.len() {
            6 => name.eq_ignore_ascii_case("origin") || name.eq_ignore_ascii_case("expect"),
            7 => name.eq_ignore_ascii_case("upgrade"),
            10 => name.eq_ignore_ascii_case("connection") && !value.eq_ignore_ascii_case(b"keep-alive"),
            17 => name.eq_ignore_ascii_case("transfer-encoding"),
            14 if name.eq_ignore_ascii_case("content-length") => length.replace(*value).is_some(),
            _ => false,
        };
        if unsupported {
            return None;
        }
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<(usize, usize), IncompleteHead> {
        RequestHead::parse(text.as_bytes(), b"POST /mcp").map(|(_, head, body)| (head, body))
    }

    #[test]
    fn accepts_only_usual_requests() {
        let message = |more: &str| format!("POST /mcp HTTP/1.1\r\nHost: x\r\n{more}\r\n{{}}");
        let check = |more: &str, body: Option<usize>| {
            let text = message(more);
            let expected = body.map(|body| (text.len() - 2, body)).ok_or(IncompleteHead::Unsupported);
            assert_eq!(parse(&text), expected, "{more}");
        };
        check("Content-Length: 2\r\n", Some(2));
        check("content-length: 3\r\nConnection: Keep-Alive\r\n", Some(3));
        check("", None);
        check("content-length: 2\r\nContent-Length: 2\r\n", None);
        check("content-length: +2\r\n", None);
        check("content-length: 2, 2\r\n", None);
        check("content-length: 99999999999999999999\r\n", None);
        check("content-length: 2\r\nTransfer-Encoding: chunked\r\n", None);
        check("content-length: 2\r\nconnection: close\r\n", None);
        check("content-length: 2\r\nconnection: upgrade\r\nupgrade: h2c\r\n", None);
        check("content-length: 2\r\nexpect: 100-continue\r\n", None);
        check("content-length: 2\r\norigin: http://localhost\r\n", None);
        check(&"a: b\r\n".repeat(MAX_HEADERS), None);
        for text in ["", "P", "POST /mcp HTTP/1.1\r\nHost"] {
            assert_eq!(parse(text), Err(IncompleteHead::MoreNeeded), "{text}");
        }
        for text in ["GET /mcp HTTP/1.1\r\n", "POST /messages", "\r\nPOST /mcp"] {
            assert_eq!(parse(text), Err(IncompleteHead::Unsupported), "{text}");
        }
        assert_eq!(
            parse("POST /mcp HTTP/1.0\r\ncontent-length: 0\r\n\r\n"),
            Err(IncompleteHead::Unsupported)
        );
        assert_eq!(parse("POST /mcp HTTP/1.1\r\n bad\r\n\r\n"), Err(IncompleteHead::Unsupported));
        let long = format!("POST /mcp HTTP/1.1\r\nx: {}", "y".repeat(MAX_HEAD));
        assert_eq!(parse(&long), Err(IncompleteHead::Unsupported));
    }

    #[test]
    fn finds_headers_by_name() {
        let text = "POST /mcp/ops HTTP/1.1\r\nAccept: a\r\nACCEPT: b\r\ncontent-length: 2\r\n\r\n{}POST";
        let (head, length, body) = RequestHead::parse(text.as_bytes(), b"POST /mcp").unwrap();
        assert_eq!((head.path(), length + body), ("/mcp/ops", text.len() - 4));
        assert_eq!(head.values("accept").collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(head.position("accept").and_then(|index| head.value_at(index)), Some("a"));
        assert_eq!(head.position("host"), None);
        assert_eq!(head.position("content-length"), None);
    }
}
