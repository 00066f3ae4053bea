//! Parses the request heads that nearly all clients send, and caches the last one of a connection. Clients repeat the same
//! header block; a head that is identical except for the value of `Content-Length` skips parsing and the access check.

use std::mem::MaybeUninit;
use std::ops::Range;

use bytes::Bytes;
use httparse::{Header, Request, Status};
use toolhub_mcp_gateway::{HeaderLookup, PROTOCOL_VERSION, SESSION_ID, printable};
use toolhub_mcp_wire::CachedHead;

use crate::routes::mcp;

/// Maximum number of headers on the fast path.
const MOST: usize = 40;
/// Maximum length of a head in bytes. The fast path waits for the rest of a head up to this length.
const LONGEST: usize = 16 << 10;
/// Maximum length of a head that is cached for the next message.
const LONGEST_KEPT: usize = 4 << 10;
/// Maximum length of a message body on the fast path.
const LONGEST_BODY: usize = 64 << 10;

/// The result of looking for a request in the bytes read so far.
#[derive(Debug, Clone, Copy)]
pub(super) enum Found {
    /// The request is incomplete.
    Part(Missing),
    /// The request must be handled by hyper.
    Unusual,
    /// The request is complete.
    Whole(Lengths),
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
pub(super) enum Missing {
    /// The end of the head, and the whole body.
    Head,
    /// The end of the body.
    Body,
}

/// A complete POST request.
#[derive(Debug)]
pub(crate) struct Head<'a> {
    /// The request target.
    pub(crate) path: &'a str,
    /// The message body.
    pub(crate) body: Bytes,
    known: &'a Known,
}

impl Head<'_> {
    /// Returns whether the headers are as the Streamable HTTP transport requires ([`mcp::fits`]).
    pub(crate) fn fits(&self) -> bool {
        self.known.fits
    }

    /// Returns whether an earlier request with the same cached head was admitted.
    pub(crate) fn was_admitted(&self) -> bool {
        self.known.admitted
    }
}

/// A parsed head.
#[derive(Debug)]
pub(super) struct Known {
    cached_head: CachedHead,
    path: Range<usize>,
    fields: Vec<Field>,
    /// Indices of the headers that every message is checked for: `Mcp-Session-Id` and `MCP-Protocol-Version`.
    session: Option<usize>,
    revision: Option<usize>,
    fits: bool,
    /// Whether a request with this head was admitted.
    admitted: bool,
}

/// The position of a header in the head.
#[derive(Debug)]
struct Field {
    name: Range<usize>,
    value: Range<usize>,
    /// Whether the value consists of printable ASCII.
    printable: bool,
}

impl Known {
    /// Looks for a request at the start of `bytes`. A head that matches the cached one is not parsed again.
    pub(super) fn find(bytes: &[u8], known: &mut Option<Self>) -> Found {
        let seen = known.as_ref().and_then(|known| known.cached_head.seen(bytes));
        match seen.map_or_else(|| Self::read(bytes, known), Ok) {
            Ok((_, body)) if body > LONGEST_BODY => Found::Unusual,
            Ok((head, body)) if bytes.len() - head < body => Found::Part(Missing::Body),
            Ok((head, body)) => Found::Whole(Lengths { head, body }),
            Err(found) => found,
        }
    }

    /// Returns the request in `message`, which has this head.
    pub(super) fn head(&self, message: &Bytes, lengths: Lengths) -> Head<'_> {
        Head { path: self.said(&self.path), body: message.slice(lengths.head..), known: self }
    }

    /// Parses the head at the start of `bytes`. Returns its length and that of the body.
    fn read(bytes: &[u8], known: &mut Option<Self>) -> Result<(usize, usize), Found> {
        // Checked first, so that any other request is passed to hyper without waiting for the rest of its head.
        const BEGINNING: &[u8] = b"POST /mcp";
        let common = bytes.len().min(BEGINNING.len());
        if bytes[..common] != BEGINNING[..common] {
            return Err(Found::Unusual);
        }
        let (mut fields, mut request) = ([const { MaybeUninit::uninit() }; MOST], Request::new(&mut []));
        let length = match request.parse_with_uninit_headers(bytes, &mut fields) {
            Ok(Status::Complete(length)) => length,
            Ok(Status::Partial) if bytes.len() < LONGEST => return Err(Found::Part(Missing::Head)),
            Ok(Status::Partial) | Err(_) => return Err(Found::Unusual),
        };
        let Request { path: Some(path), version: Some(1), headers, .. } = request else {
            return Err(Found::Unusual);
        };
        let cached_head = length_of(headers).and_then(|said| CachedHead::of(&bytes[..length], said));
        let (cached_head, body) = cached_head.ok_or(Found::Unusual)?;
        let place = |part: &[u8]| {
            let start = part.as_ptr().addr() - bytes.as_ptr().addr();
            start..start + part.len()
        };
        let field = |header: &Header<'_>| Field {
            name: place(header.name.as_bytes()),
            value: place(header.value),
            printable: printable(header.value).is_some(),
        };
        // `Content-Length` differs between messages with the same cached head, so it cannot be looked up.
        let lasting = |header: &&Header<'_>| !header.name.eq_ignore_ascii_case("content-length");
        let fields = headers.iter().filter(lasting).map(field).collect();
        let path = place(path.as_bytes());
        let (session, revision) = (None, None);
        let mut read = Self { cached_head, path, fields, session, revision, fits: false, admitted: false };
        (read.session, read.revision) = (read.place(SESSION_ID), read.place(PROTOCOL_VERSION));
        read.fits = mcp::fits(&read).is_ok();
        *known = Some(read);
        Ok((length, body))
    }

    /// Marks the cached head as admitted. A head longer than `LONGEST_KEPT` is dropped instead.
    pub(super) fn admits(known: &mut Option<Self>) {
        match known {
            Some(long) if long.cached_head.text().len() > LONGEST_KEPT => *known = None,
            Some(known) => known.admitted = true,
            None => {}
        }
    }

    fn said(&self, place: &Range<usize>) -> &str {
        self.cached_head.text().get(place.clone()).unwrap_or_default()
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| self.is_named(field, name))
    }

    fn field(&self, name: &str) -> Option<&Field> {
        self.fields.get(self.place(name)?)
    }

    /// Returns the value of the header at an index if it is printable.
    fn text_at(&self, place: Option<usize>) -> Option<&str> {
        let field = self.fields.get(place?).filter(|field| field.printable)?;
        Some(self.said(&field.value))
    }

    #[inline]
    fn is_named(&self, field: &Field, name: &str) -> bool {
        field.name.len() == name.len() && self.said(&field.name).eq_ignore_ascii_case(name)
    }
}

/// Returns the value of `Content-Length`. Returns `None` if the length is missing or repeated, or if a header requires
/// hyper.
fn length_of<'a>(fields: &[Header<'a>]) -> Option<&'a [u8]> {
    let mut length = None;
    for Header { name, value } in fields {
        // Requests with an `Origin` need CORS headers in the response, which only the hyper path sends.
        let other = match name.len() {
            6 => name.eq_ignore_ascii_case("origin") || name.eq_ignore_ascii_case("expect"),
            7 => name.eq_ignore_ascii_case("upgrade"),
            10 => name.eq_ignore_ascii_case("connection") && !value.eq_ignore_ascii_case(b"keep-alive"),
            17 => name.eq_ignore_ascii_case("transfer-encoding"),
            14 if name.eq_ignore_ascii_case("content-length") => length.replace(*value).is_some(),
            _ => false,
        };
        if other {
            return None;
        }
    }
    length
}

impl HeaderLookup for Known {
    fn value(&self, name: &str) -> Option<&[u8]> {
        self.field(name).map(|field| self.said(&field.value).as_bytes())
    }

    fn any(&self, name: &str, such: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        let named = |field: &&Field| self.is_named(field, name);
        self.fields.iter().filter(named).any(|field| such(self.said(&field.value).as_bytes()))
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.text_at(self.place(name))
    }

    fn session(&self) -> Option<&str> {
        self.text_at(self.session)
    }

    fn revision(&self) -> Option<&str> {
        self.text_at(self.revision)
    }
}

impl HeaderLookup for Head<'_> {
    fn value(&self, name: &str) -> Option<&[u8]> {
        self.known.value(name)
    }

    fn any(&self, name: &str, such: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        self.known.any(name, such)
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.known.text(name)
    }

    fn session(&self) -> Option<&str> {
        self.known.session()
    }

    fn revision(&self) -> Option<&str> {
        self.known.revision()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(text: &str) -> &'static str {
        match Known::find(text.as_bytes(), &mut None) {
            Found::Part(Missing::Head) => "part",
            Found::Part(Missing::Body) => "body",
            Found::Unusual => "unusual",
            Found::Whole(_) => "whole",
        }
    }

    #[test]
    fn what_is_usual_goes_the_short_way_and_nothing_else() {
        let message = |more: &str| format!("POST /mcp HTTP/1.1\r\nHost: x\r\n{more}\r\n{{}}");
        let check = |more: &str, expect: &str| assert_eq!(find(&message(more)), expect, "{more}");
        check("Content-Length: 2\r\n", "whole");
        check("content-length: 2\r\nConnection: Keep-Alive\r\n", "whole");
        check("content-length: 3\r\n", "body");
        check("", "unusual");
        check("content-length: 2\r\nContent-Length: 2\r\n", "unusual");
        check("content-length: +2\r\n", "unusual");
        check("content-length: 2, 2\r\n", "unusual");
        check("content-length: 65537\r\n", "unusual");
        check("content-length: 99999999999999999999\r\n", "unusual");
        check("content-length: 2\r\nTransfer-Encoding: chunked\r\n", "unusual");
        check("content-length: 2\r\nconnection: close\r\n", "unusual");
        check("content-length: 2\r\nconnection: upgrade\r\nupgrade: h2c\r\n", "unusual");
        check("content-length: 2\r\nexpect: 100-continue\r\n", "unusual");
        check("content-length: 2\r\norigin: http://localhost\r\n", "unusual");
        check(&"a: b\r\n".repeat(MOST), "unusual");
        for text in
            ["GET /mcp HTTP/1.1\r\n", "P", "POST /mcp HTTP/1.1\r\nHost", "POST /messages", "\r\nPOST /mcp"]
        {
            let expect = if "POST /mcp HTTP/1.1\r\nHost".starts_with(text) { "part" } else { "unusual" };
            assert_eq!(find(text), expect, "{text}");
        }
        assert_eq!(find("POST /mcp HTTP/1.0\r\ncontent-length: 0\r\n\r\n"), "unusual");
        assert_eq!(find("POST /mcp HTTP/1.1\r\n bad\r\n\r\n"), "unusual");
        assert_eq!(find(&format!("POST /mcp HTTP/1.1\r\nx: {}", "y".repeat(LONGEST))), "unusual");
    }

    #[test]
    fn headers_are_found_by_their_names() {
        let text = "POST /mcp/ops HTTP/1.1\r\nAccept: a\r\nACCEPT: b\r\ncontent-length: 2\r\n\r\n{}POST";
        let mut known = None;
        let (length, head) = whole(text, &mut known).unwrap();
        assert_eq!((head.path, &head.body[..], length), ("/mcp/ops", &b"{}"[..], text.len() - 4));
        assert_eq!(head.value("accept"), Some(&b"a"[..]));
        assert!(head.any("accept", &mut |value| value == b"b"));
        assert_eq!(head.value("host"), None);
    }
    /// Requests on one connection, each of which is found as if it were the first.
    #[test]
    fn what_came_before_changes_nothing() {
        let long = "x".repeat(LONGEST_BODY + 1);
        let heads = ["/mcp", "/mcp", "/mcp/ops", "/mcp", "/other"];
        let fields = ["Accept: a\r\n", "Accept: b\r\n", "X: \u{e9}\r\n", "", "Connection: close\r\n"];
        let mut known = None;
        for (path, more) in heads.iter().flat_map(|path| fields.iter().map(move |more| (path, more))) {
            for body in ["{}", "{}", "", "[1, 2, 3]", long.as_str(), "{}"] {
                let head = format!("POST {path} HTTP/1.1\r\n{more}Content-Length: {}\r\n\r\n", body.len());
                let text = format!("{head}{body}POST");
                for text in [&text[..], &text[..head.len() - 1], &text[..head.len()]] {
                    let alone = seen(text, &mut None);
                    let after = seen(text, &mut known);
                    assert_eq!(after, alone, "{:?}", &text[..text.len().min(200)]);
                }
            }
        }
    }

    #[test]
    fn whoever_was_let_in_is_known_by_the_same_head_alone() {
        let text = |more: &str| format!("POST /mcp HTTP/1.1\r\n{more}Content-Length: 2\r\n\r\n{{}}");
        let mut known = None;
        let mut find = |text: &str, answered: bool| {
            let admitted = whole(text, &mut known).unwrap().1.was_admitted();
            if answered {
                Known::admits(&mut known);
            }
            admitted
        };
        let (ann, bob) = (text("Authorization: Bearer a\r\n"), text("Authorization: Bearer b\r\n"));
        assert!(!find(&ann, false) && !find(&ann, true) && find(&ann, true));
        assert!(!find(&bob, false) && !find(&bob, true) && find(&bob, true));
        assert!(!find(&ann, true));
        let long = text(&format!("X: {}\r\n", "x".repeat(LONGEST_KEPT)));
        assert!(!find(&long, true) && !find(&long, true) && !find(&ann, true));
    }

    /// Returns the lengths and the head of a complete request.
    fn whole<'a>(text: &str, known: &'a mut Option<Known>) -> Option<(usize, Head<'a>)> {
        let Found::Whole(lengths) = Known::find(text.as_bytes(), known) else { return None };
        let message = Bytes::copy_from_slice(&text.as_bytes()[..lengths.all()]);
        Some((lengths.all(), known.as_ref()?.head(&message, lengths)))
    }

    /// Everything that a head exposes.
    fn seen(text: &str, known: &mut Option<Known>) -> String {
        match (Known::find(text.as_bytes(), known), whole(text, known)) {
            (Found::Whole(_), Some((length, head))) => {
                let (path, body) = (head.path, &head.body);
                format!("{path} {body:?} {length} {:?} {}", head.text("accept"), head.fits())
            }
            (other, _) => format!("{other:?}"),
        }
    }
}
