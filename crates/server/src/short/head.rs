//! The head of a message as clients send it nearly always.

use std::mem::MaybeUninit;

use httparse::{Header, Request, Status};
use toolhub_mcp::gateway::Heads;

/// The headers that such a message has at most.
pub(super) const MOST: usize = 40;
/// The longest head that is waited for.
const LONGEST: usize = 16 << 10;
/// The longest message that is taken the short way.
const LONGEST_BODY: usize = 64 << 10;

/// Room for headers.
pub(super) type Fields<'a> = [MaybeUninit<Header<'a>>; MOST];

/// What was found in the bytes that came.
pub(super) enum Found<'a> {
    /// Not all of the message is here: of its head, or of what follows.
    Part(Missing),
    /// It is to go the long way.
    Unusual,
    /// All of it.
    Whole(Head<'a>),
}

/// What is still to come of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// The end of its head, and all that follows.
    Head,
    /// The end of what follows its head.
    Body,
}

/// A message that is to be posted, and has come whole.
#[derive(Debug)]
pub(crate) struct Head<'a> {
    /// Where to.
    pub(crate) path: &'a str,
    /// What it says.
    pub(crate) body: &'a [u8],
    /// How many bytes it has, head and all.
    pub(super) length: usize,
    fields: &'a [Header<'a>],
}

impl<'a> Head<'a> {
    /// Looks for a message at the beginning of these bytes.
    pub(super) fn find(bytes: &'a [u8], fields: &'a mut Fields<'a>) -> Found<'a> {
        // Told at once: nobody who wants something else should have to wait for the rest.
        const BEGINNING: &[u8] = b"POST /mcp";
        let common = bytes.len().min(BEGINNING.len());
        if bytes[..common] != BEGINNING[..common] {
            return Found::Unusual;
        }
        let mut request = Request::new(&mut []);
        let length = match request.parse_with_uninit_headers(bytes, fields) {
            Ok(Status::Complete(length)) => length,
            Ok(Status::Partial) if bytes.len() < LONGEST => return Found::Part(Missing::Head),
            Ok(Status::Partial) | Err(_) => return Found::Unusual,
        };
        let Request { path: Some(path), version: Some(1), headers, .. } = request else {
            return Found::Unusual;
        };
        let fields: &[Header<'_>] = headers;
        let Some(body) = body_of(fields) else { return Found::Unusual };
        match bytes.get(length..length + body) {
            Some(said) => Found::Whole(Self { path, body: said, length: length + body, fields }),
            None => Found::Part(Missing::Body),
        }
    }
}

/// How long the message is that follows; `None` for one that is not of the usual kind.
fn body_of(fields: &[Header<'_>]) -> Option<usize> {
    let mut length = None;
    for Header { name, value } in fields {
        // Whoever asks from a web page is told what its browser wants to know.
        let other = match name.len() {
            6 => name.eq_ignore_ascii_case("origin") || name.eq_ignore_ascii_case("expect"),
            7 => name.eq_ignore_ascii_case("upgrade"),
            10 => name.eq_ignore_ascii_case("connection") && !value.eq_ignore_ascii_case(b"keep-alive"),
            17 => name.eq_ignore_ascii_case("transfer-encoding"),
            14 if name.eq_ignore_ascii_case("content-length") => {
                let said = number(value).filter(|said| *said <= LONGEST_BODY)?;
                length.replace(said).is_some()
            }
            _ => false,
        };
        if other {
            return None;
        }
    }
    length
}

/// Digits and nothing else, and few of them.
fn number(digits: &[u8]) -> Option<usize> {
    let fit = (1..=9).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    fit.then(|| digits.iter().fold(0, |all, digit| all * 10 + usize::from(digit - b'0')))
}

impl Heads for Head<'_> {
    fn value(&self, name: &str) -> Option<&[u8]> {
        let named = |field: &&Header<'_>| field.name.eq_ignore_ascii_case(name);
        self.fields.iter().find(named).map(|field| field.value)
    }

    fn any(&self, name: &str, such: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        self.fields.iter().any(|field| field.name.eq_ignore_ascii_case(name) && such(field.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(text: &str) -> &'static str {
        match Head::find(text.as_bytes(), &mut [const { MaybeUninit::uninit() }; MOST]) {
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
        let mut fields = [const { MaybeUninit::uninit() }; MOST];
        let Found::Whole(head) = Head::find(text.as_bytes(), &mut fields) else { panic!("not found") };
        assert_eq!((head.path, head.body, head.length), ("/mcp/ops", &b"{}"[..], text.len() - 4));
        assert_eq!(head.value("accept"), Some(&b"a"[..]));
        assert!(head.any("accept", &mut |value| value == b"b"));
        assert_eq!(head.value("host"), None);
    }
}
