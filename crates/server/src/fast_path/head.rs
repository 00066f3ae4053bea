//! Finds requests at the start of the received bytes, and caches the last head of a connection. Clients repeat the same header
//! block; a head that is identical except for the value of `Content-Length` skips parsing and the access check.

use bytes::Bytes;
use toolhub_http1::{IncompleteHead, MAX_CACHED_HEAD, RequestHead};
use toolhub_mcp_gateway::{HeaderLookup, PROTOCOL_VERSION, SESSION_ID, printable_text};

use crate::routes::mcp;

/// Requests on the fast path begin with these bytes.
const START: &[u8] = b"POST /mcp";
/// Maximum length of a message body on the fast path.
const MAX_BODY: usize = 64 << 10;

/// The result of looking for a request in the bytes read so far.
#[derive(Debug, Clone, Copy)]
pub(super) enum ParseOutcome {
    /// The request is incomplete.
    Incomplete(MissingPart),
    /// The request must be handled by hyper.
    Unsupported,
    /// The request is complete.
    Complete(Lengths),
}

/// The lengths of a request in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lengths {
    head: usize,
    body: usize,
}

impl Lengths {
    /// The length of head and body.
    pub(super) fn all(self) -> usize {
        self.head + self.body
    }
}

/// The incomplete part of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MissingPart {
    /// The end of the head, and the whole body.
    Head,
    /// The end of the body.
    Body,
}

/// A complete POST request.
#[derive(Debug)]
pub(crate) struct FastPathRequest<'a> {
    /// The request target.
    pub(crate) path: &'a str,
    /// The message body.
    pub(crate) body: Bytes,
    cached: &'a ParsedHead,
}

impl FastPathRequest<'_> {
    /// Returns whether the headers are as the Streamable HTTP transport requires ([`mcp::valid_headers`]).
    pub(crate) fn valid_headers(&self) -> bool {
        self.cached.valid_headers
    }

    /// Returns whether an earlier request with the same cached head was admitted.
    pub(crate) fn was_admitted(&self) -> bool {
        self.cached.admitted
    }
}

/// A parsed head.
#[derive(Debug)]
pub(super) struct ParsedHead {
    head: RequestHead,
    /// Indices of the headers that every message is checked for, if their values are printable: `Mcp-Session-Id` and
    /// `MCP-Protocol-Version`.
    session: Option<usize>,
    revision: Option<usize>,
    valid_headers: bool,
    /// Whether a request with this head was admitted.
    admitted: bool,
}

impl ParsedHead {
    /// Looks for a request at the start of `bytes`. A head that matches the cached one is not parsed again.
    pub(super) fn find(bytes: &[u8], cached: &mut Option<Self>) -> ParseOutcome {
        let repeated = cached.as_ref().and_then(|cached| cached.head.matches(bytes));
        let lengths = repeated.map_or_else(|| Self::parse(bytes, cached), Ok);
        match lengths {
            Ok((_, body)) if body > MAX_BODY => ParseOutcome::Unsupported,
            Ok((head, body)) if bytes.len() - head < body => ParseOutcome::Incomplete(MissingPart::Body),
            Ok((head, body)) => ParseOutcome::Complete(Lengths { head, body }),
            Err(IncompleteHead::MoreNeeded) => ParseOutcome::Incomplete(MissingPart::Head),
            Err(IncompleteHead::Unsupported) => ParseOutcome::Unsupported,
        }
    }

    /// Returns the request in `message`, which has this head.
    pub(super) fn head(&self, message: &Bytes, lengths: Lengths) -> FastPathRequest<'_> {
        FastPathRequest { path: self.head.path(), body: message.slice(lengths.head..), cached: self }
    }

    /// Parses and caches the head at the start of `bytes`. Returns its length and that of the body.
    fn parse(bytes: &[u8], cached: &mut Option<Self>) -> Result<(usize, usize), IncompleteHead> {
        let (head, length, body) = RequestHead::parse(bytes, START)?;
        let text_position = |name: &str| {
            let index = head.position(name)?;
            printable_text(head.value_at(index)?.as_bytes()).map(|_| index)
        };
        let (session, revision) = (text_position(SESSION_ID), text_position(PROTOCOL_VERSION));
        let mut parsed = Self { head, session, revision, valid_headers: false, admitted: false };
        parsed.valid_headers = mcp::valid_headers(&parsed).is_ok();
        *cached = Some(parsed);
        Ok((length, body))
    }

    /// Marks the cached head as admitted. A head longer than [`MAX_CACHED_HEAD`] is dropped instead.
    pub(super) fn admit(cached: &mut Option<Self>) {
        match cached {
            Some(long) if long.head.length() > MAX_CACHED_HEAD => *cached = None,
            Some(cached) => cached.admitted = true,
            None => {}
        }
    }
}

impl HeaderLookup for ParsedHead {
    fn value(&self, name: &str) -> Option<&[u8]> {
        self.head.position(name).and_then(|index| self.head.value_at(index)).map(str::as_bytes)
    }

    fn any(&self, name: &str, predicate: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        self.head.values(name).any(|value| predicate(value.as_bytes()))
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.value(name).and_then(printable_text)
    }

    fn session(&self) -> Option<&str> {
        self.head.value_at(self.session?)
    }

    fn revision(&self) -> Option<&str> {
        self.head.value_at(self.revision?)
    }
}

impl HeaderLookup for FastPathRequest<'_> {
    fn value(&self, name: &str) -> Option<&[u8]> {
        self.cached.value(name)
    }

    fn any(&self, name: &str, predicate: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        self.cached.any(name, predicate)
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.cached.text(name)
    }

    fn session(&self) -> Option<&str> {
        self.cached.session()
    }

    fn revision(&self) -> Option<&str> {
        self.cached.revision()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_long_bodies_and_other_requests_to_hyper() {
        let check = |text: &str, expect: &str| {
            let found = match ParsedHead::find(text.as_bytes(), &mut None) {
                ParseOutcome::Incomplete(MissingPart::Head) => "part",
                ParseOutcome::Incomplete(MissingPart::Body) => "body",
                ParseOutcome::Unsupported => "unusual",
                ParseOutcome::Complete(_) => "whole",
            };
            assert_eq!(found, expect, "{text}");
        };
        let message = |more: &str| format!("POST /mcp HTTP/1.1\r\nHost: x\r\n{more}\r\n{{}}");
        check(&message("Content-Length: 2\r\n"), "whole");
        check(&message("content-length: 3\r\n"), "body");
        check(&message("content-length: 65537\r\n"), "unusual");
        check(&message("content-length: 2\r\norigin: http://localhost\r\n"), "unusual");
        check("POST /mcp HTTP/1.1\r\nHost", "part");
        check("GET /mcp HTTP/1.1\r\n", "unusual");
    }

    #[test]
    fn finds_headers_by_name() {
        let text = "POST /mcp/ops HTTP/1.1\r\nAccept: a\r\nACCEPT: b\r\ncontent-length: 2\r\n\r\n{}POST";
        let mut cached = None;
        let (length, head) = parse_head(text, &mut cached).unwrap();
        assert_eq!((head.path, &head.body[..], length), ("/mcp/ops", &b"{}"[..], text.len() - 4));
        assert_eq!(head.value("accept"), Some(&b"a"[..]));
        assert!(head.any("accept", &mut |value| value == b"b"));
        assert_eq!(head.value("host"), None);
    }
    /// Requests on one connection, each of which is found as if it were the first.
    #[test]
    fn cached_head_gives_the_same_result_as_parsing() {
        let long = "x".repeat(MAX_BODY + 1);
        let heads = ["/mcp", "/mcp", "/mcp/ops", "/mcp", "/other"];
        let fields = ["Accept: a\r\n", "Accept: b\r\n", "X: \u{e9}\r\n", "", "Connection: close\r\n"];
        let mut cached = None;
        for (path, more) in heads.iter().flat_map(|path| fields.iter().map(move |more| (path, more))) {
            for body in ["{}", "{}", "", "[1, 2, 3]", long.as_str(), "{}"] {
                let head = format!("POST {path} HTTP/1.1\r\n{more}Content-Length: {}\r\n\r\n", body.len());
                let text = format!("{head}{body}POST");
                for text in [&text[..], &text[..head.len() - 1], &text[..head.len()]] {
                    let alone = lookup(text, &mut None);
                    let after = lookup(text, &mut cached);
                    assert_eq!(after, alone, "{:?}", &text[..text.len().min(200)]);
                }
            }
        }
    }

    #[test]
    fn admits_again_only_with_the_same_head() {
        let text = |more: &str| format!("POST /mcp HTTP/1.1\r\n{more}Content-Length: 2\r\n\r\n{{}}");
        let mut cached = None;
        let mut find = |text: &str, answered: bool| {
            let admitted = parse_head(text, &mut cached).unwrap().1.was_admitted();
            if answered {
                ParsedHead::admit(&mut cached);
            }
            admitted
        };
        let (ann, bob) = (text("Authorization: Bearer a\r\n"), text("Authorization: Bearer b\r\n"));
        assert!(!find(&ann, false) && !find(&ann, true) && find(&ann, true));
        assert!(!find(&bob, false) && !find(&bob, true) && find(&bob, true));
        assert!(!find(&ann, true));
        let long = text(&format!("X: {}\r\n", "x".repeat(MAX_CACHED_HEAD)));
        assert!(!find(&long, true) && !find(&long, true) && !find(&ann, true));
    }

    /// Returns the lengths and the head of a complete request.
    fn parse_head<'a>(
        text: &str,
        cached: &'a mut Option<ParsedHead>,
    ) -> Option<(usize, FastPathRequest<'a>)> {
        let ParseOutcome::Complete(lengths) = ParsedHead::find(text.as_bytes(), cached) else { return None };
        let message = Bytes::copy_from_slice(&text.as_bytes()[..lengths.all()]);
        Some((lengths.all(), cached.as_ref()?.head(&message, lengths)))
    }

    /// Everything that a head exposes.
    fn lookup(text: &str, cached: &mut Option<ParsedHead>) -> String {
        match (ParsedHead::find(text.as_bytes(), cached), parse_head(text, cached)) {
            (ParseOutcome::Complete(_), Some((length, head))) => {
                let (path, body) = (head.path, &head.body);
                format!("{path} {body:?} {length} {:?} {}", head.text("accept"), head.valid_headers())
            }
            (other, _) => format!("{other:?}"),
        }
    }
}
