//! Caches the last parsed HTTP/1.1 head of a connection. Peers repeat the same header block except for `Content-Length`; a head
//! that is otherwise byte-identical skips parsing.

use std::ops::Range;

use bytestring::ByteString;

use crate::decimal;

/// Maximum number of digits of a `Content-Length` in a cached head.
const MAX_LENGTH_DIGITS: usize = 9;

/// A head, and the position of its `Content-Length` value.
#[derive(Debug, Clone)]
pub struct CachedHead {
    head: ByteString,
    length: Range<usize>,
}

impl CachedHead {
    /// Creates it from a complete head, including the empty line, and the `Content-Length` value as a subslice of the head.
    /// Also returns the body length. Returns `None` if `value` is not a number within the head, or if the head is not UTF-8.
    pub fn of(head: &[u8], value: &[u8]) -> Option<(Self, usize)> {
        let start = value.as_ptr().addr().checked_sub(head.as_ptr().addr())?;
        let range = start..start + value.len();
        let length = length(head.get(range.clone())?)?;
        let head = ByteString::from(std::str::from_utf8(head).ok()?);
        Some((Self { head, length: range }, length))
    }

    /// The cached head.
    #[inline]
    pub fn text(&self) -> &ByteString {
        &self.head
    }

    /// If `bytes` start with the cached head, apart from the value of `Content-Length`: the length of the head and of the body.
    #[inline]
    pub fn matches(&self, bytes: &[u8]) -> Option<(usize, usize)> {
        let (prefix, rest) = self.head.as_bytes().split_at(self.length.start);
        let suffix = &rest[self.length.len()..];
        let received = bytes.strip_prefix(prefix)?;
        let digits = received.iter().position(|byte| !byte.is_ascii_digit())?;
        let (digits, received) = received.split_at(digits);
        let length = length(digits)?;
        received.starts_with(suffix).then_some((prefix.len() + digits.len() + suffix.len(), length))
    }
}

fn length(digits: &[u8]) -> Option<usize> {
    decimal(digits, MAX_LENGTH_DIGITS).and_then(|length| usize::try_from(length).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "POST /mcp HTTP/1.1\r\nhost: x\r\ncontent-length: 12\r\naccept: */*\r\n\r\n";

    fn cached_head(head: &str, length: &str) -> Option<CachedHead> {
        let at = head.find(length)?;
        CachedHead::of(head.as_bytes(), &head.as_bytes()[at..at + length.len()])
            .map(|(cached_head, _)| cached_head)
    }

    #[test]
    fn matches_the_same_head_with_another_length() {
        let cached_head = cached_head(HEAD, "12").unwrap();
        assert_eq!(cached_head.text(), HEAD);
        for length in ["12", "0", "7", "123456789", "007"] {
            let head = HEAD.replace("12", length);
            let expect = Some((head.len(), length.parse().unwrap()));
            assert_eq!(cached_head.matches(format!("{head}{{}}").as_bytes()), expect);
            for cut in 0..head.len() {
                assert_eq!(cached_head.matches(&head.as_bytes()[..cut]), None, "{cut} of {head:?}");
            }
        }
    }

    #[test]
    fn rejects_any_other_head() {
        let cached_head = cached_head(HEAD, "12").unwrap();
        for other in ["", "-1", "+1", "1 2", "1,2", "0x1", "1234567890", "12 "] {
            assert_eq!(cached_head.matches(HEAD.replace("12", other).as_bytes()), None, "{other:?}");
        }
        for at in 0..HEAD.len() {
            let mut head = HEAD.as_bytes().to_vec();
            head[at] ^= 1;
            let digit = HEAD.as_bytes()[at].is_ascii_digit() && cached_head.length.contains(&at);
            assert_eq!(cached_head.matches(&head).is_some(), digit, "{}", String::from_utf8_lossy(&head));
        }
    }

    #[test]
    fn caches_no_head_without_content_length() {
        assert!(cached_head(HEAD, "x").is_none() && cached_head(HEAD, "1.1").is_none());
        assert!(CachedHead::of(HEAD.as_bytes(), b"12").is_none());
        assert!(CachedHead::of(b"a: \xff\r\nb: 1\r\n\r\n", b"").is_none());
    }
}
