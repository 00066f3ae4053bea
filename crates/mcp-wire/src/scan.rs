//! Single-pass JSON scanner that finds the members and values of common messages. It returns `None` for unusual or invalid
//! input, which is then parsed by `serde_json`.

mod keys;

use bytestring::ByteString;
use serde::de::value::{BorrowedStrDeserializer, Error, MapDeserializer};
use serde::de::{Deserialize, Deserializer, Visitor};
use serde_json::value::RawValue;
use toolhub_core::RawJson;

use self::keys::{DuplicateKeyDetector, IgnoreKeys, KeyObserver};

/// Maximum nesting depth. Together with the levels around it, it stays below the limit for any text.
const MAX_DEPTH: u32 = 64;
const ONES: u64 = u64::from_ne_bytes([1; 8]);
const HIGH_BITS: u64 = ONES << 7;

/// A position in a text.
#[derive(Debug)]
pub struct JsonScanner<'a, K = IgnoreKeys> {
    text: &'a str,
    at: usize,
    keys: K,
}

/// A scanner that detects duplicate keys within an object.
pub type CheckedJsonScanner<'a> = JsonScanner<'a, DuplicateKeyDetector>;

impl CheckedJsonScanner<'_> {
    /// Whether a scanned object has a duplicate key.
    #[inline]
    pub fn has_duplicate_key(&self) -> bool {
        self.keys.may_have_duplicate() && toolhub_core::json::key_problem(self.text).is_some()
    }
}

impl<'a> JsonScanner<'a> {
    /// At the start of a text, ignoring duplicate keys.
    #[inline]
    pub fn new(text: &'a str) -> Self {
        Self::over(text)
    }
}

impl<'a, K: KeyObserver> JsonScanner<'a, K> {
    /// At the start of a text.
    #[inline]
    pub fn over(text: &'a str) -> Self {
        Self { text, at: 0, keys: K::default() }
    }

    /// Scans the next object. `member` is called for each name and must consume its value.
    pub fn members(&mut self, mut member: impl FnMut(&mut Self, &'a str) -> Option<()>) -> Option<()> {
        self.expect(b'{')?;
        if self.token()? == b'}' {
            self.at += 1;
            return Some(());
        }
        self.keys.open();
        loop {
            let name = self.plain()?;
            self.keys.key(name.as_bytes(), false);
            self.expect(b':')?;
            member(self, name)?;
            match self.token()? {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    self.keys.close();
                    return Some(());
                }
                _ => return None,
            }
        }
    }

    /// Consumes the next value and returns its text.
    pub fn value(&mut self) -> Option<&'a str> {
        let first = self.token()?;
        let start = self.at;
        match first {
            b'"' => {
                self.string()?;
            }
            _ => self.skip()?,
        }
        self.text.get(start..self.at)
    }

    /// Consumes the next string and returns it if it has no escapes. Inlined, since about half of a message's tokens are names.
    #[inline(always)]
    pub fn plain(&mut self) -> Option<&'a str> {
        self.expect(b'"')?;
        let start = self.at;
        match self.skip_to_special()? {
            b'"' => {
                let plain = self.text.get(start..self.at);
                self.at += 1;
                plain
            }
            _ => None,
        }
    }

    /// Whether only whitespace follows.
    pub fn is_at_end(&mut self) -> bool {
        self.token().is_none()
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The next byte that is not whitespace.
    #[inline]
    fn token(&mut self) -> Option<u8> {
        loop {
            match self.peek()? {
                b' ' | b'\n' | b'\t' | b'\r' => self.at += 1,
                byte => return Some(byte),
            }
        }
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.token()? == byte).then(|| self.at += 1)
    }

    /// Consumes a value with everything in it, without recursion.
    fn skip(&mut self) -> Option<()> {
        // One bit per nesting level, the innermost lowest: set for an object.
        let (mut objects, mut depth) = (0_u64, 0);
        loop {
            match self.token()? {
                b'"' => {
                    self.string()?;
                }
                open @ (b'{' | b'[') => {
                    self.at += 1;
                    // In ASCII the closing bracket is the opening one plus 2.
                    if self.token()? == open + 2 {
                        self.at += 1;
                    } else if depth == MAX_DEPTH {
                        return None;
                    } else {
                        depth += 1;
                        objects = objects << 1 | u64::from(open == b'{');
                        if open == b'{' {
                            self.keys.open();
                            self.name()?;
                        }
                        continue;
                    }
                }
                b'-' | b'0'..=b'9' => self.number()?,
                b't' => self.literal("true")?,
                b'f' => self.literal("false")?,
                b'n' => self.literal("null")?,
                _ => return None,
            }
            loop {
                if depth == 0 {
                    return Some(());
                }
                match (self.token()?, objects & 1) {
                    (b',', 0) => {
                        self.at += 1;
                        break;
                    }
                    (b',', _) => {
                        self.at += 1;
                        self.name()?;
                        break;
                    }
                    (b']', 0) | (b'}', 1) => {
                        self.at += 1;
                        if objects & 1 == 1 {
                            self.keys.close();
                        }
                        (objects, depth) = (objects >> 1, depth - 1);
                    }
                    _ => return None,
                }
            }
        }
    }

    fn name(&mut self) -> Option<()> {
        if self.token()? != b'"' {
            return None;
        }
        let start = self.at + 1;
        let escaped = self.string()?;
        self.keys.key(self.text.as_bytes().get(start..self.at - 1)?, escaped);
        self.expect(b':')
    }

    fn literal(&mut self, literal: &str) -> Option<()> {
        let rest = self.text.as_bytes().get(self.at..)?;
        rest.starts_with(literal.as_bytes()).then(|| self.at += literal.len())
    }

    /// Consumes a string including its quotes. Returns whether it has escapes.
    fn string(&mut self) -> Option<bool> {
        self.at += 1;
        let mut escaped = false;
        loop {
            match self.skip_to_special()? {
                b'"' => {
                    self.at += 1;
                    return Some(escaped);
                }
                b'\\' => {
                    escaped = true;
                    let rest = self.text.as_bytes().get(self.at + 1..)?;
                    self.at += match rest {
                        [b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => 2,
                        [b'u', digits @ ..] if digits.get(..4)?.iter().all(u8::is_ascii_hexdigit) => 6,
                        _ => return None,
                    };
                }
                _ => return None,
            }
        }
    }

    /// Advances to the next quote, backslash or control character, eight bytes at a time (SWAR). Only the lowest mark is exact,
    /// since borrows may set those above it.
    fn skip_to_special(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        let mut rest = bytes.get(self.at..)?;
        while let Some((eight, more)) = rest.split_first_chunk::<8>() {
            let eight = u64::from_le_bytes(*eight);
            // With bit 1 flipped, a quote is 0x20, adjacent to the control characters, and no other byte is.
            let low = (eight ^ (ONES * 2)).wrapping_sub(ONES * 0x21);
            let other = (eight ^ (ONES * u64::from(b'\\'))).wrapping_sub(ONES);
            let marks = (low | other) & !eight & HIGH_BITS;
            if marks != 0 {
                let offset = marks.trailing_zeros() & !7;
                self.at = bytes.len() - rest.len() + (offset / 8) as usize;
                return Some((eight >> offset) as u8);
            }
            rest = more;
        }
        let offset = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..b' '));
        self.at = bytes.len() - rest.len() + offset.unwrap_or(rest.len());
        self.peek()
    }

    /// Consumes a number (RFC 8259).
    fn number(&mut self) -> Option<()> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek()? {
            b'0' => self.at += 1,
            _ => self.digits()?,
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Some(())
    }

    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }
}

/// Whether the object in a text has a member of that name; `None` for unusual input.
#[inline]
pub fn has_member(text: &str, name: &str) -> Option<bool> {
    let (mut scan, mut found) = (JsonScanner::new(text), false);
    scan.members(|scan, member| {
        found |= member == name;
        scan.skip()
    })?;
    scan.is_at_end().then_some(found)
}

/// Whether the text needs no escapes in a JSON string.
#[inline]
pub fn is_plain(text: &str) -> bool {
    JsonScanner::new(text).skip_to_special().is_none()
}

/// The scanned value as a `RawValue`, without parsing it again.
#[inline]
pub fn found(value: &str) -> Option<&RawValue> {
    <&RawValue>::deserialize(ValidatedText(value)).ok()
}

/// A JSON value from a literal in the program.
#[inline]
pub fn known(text: &'static str) -> Option<RawJson> {
    let text = ByteString::from_static(text);
    found(&text).map(|value| RawJson::part(&text, value))
}

/// A JSON value from a text that was assembled from valid values.
#[inline]
pub fn assembled_json(text: String) -> Option<RawJson> {
    let text = ByteString::from(text);
    found(&text).map(|value| RawJson::part(&text, value))
}

/// Deserializer that passes on the text of a validated value, so that it is not parsed again.
struct ValidatedText<'a>(&'a str);

impl<'de> Deserializer<'de> for ValidatedText<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_borrowed_str(self.0)
    }

    /// `RawValue` requests a newtype struct with a private name, and expects its text under that name.
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        let text = BorrowedStrDeserializer::new(self.0);
        visitor.visit_map(MapDeserializer::new(std::iter::once((name, text))))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

#[cfg(test)]
pub(crate) mod tests;
