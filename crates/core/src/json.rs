//! JSON as raw text with typed views. The text is preserved exactly; its meaning is up to the users of the type.

mod keys;
mod members;
mod shape;

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use bytestring::ByteString;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use self::members::{Named, members};

pub use self::keys::{KeyProblem, fold_key, key_problem};
pub use self::members::RawObject;
pub use self::shape::{MAX_DEPTH, canonical_json, pretty_json, too_deep};

/// One JSON value as its original text: key order, number spelling and unknown fields are preserved. Parts of a
/// larger text share its memory.
#[derive(Clone)]
pub struct RawJson(ByteString);

impl RawJson {
    /// Checks that `text` is one JSON value, and wraps it.
    pub fn parse(text: impl Into<String>) -> Result<Self, serde_json::Error> {
        let text = text.into();
        let value = serde_json::from_str::<&RawValue>(&text)?.get();
        // Surrounding white space is removed.
        if value.len() < text.len() {
            return Ok(Self(ByteString::from(value)));
        }
        Ok(Self(ByteString::from(text)))
    }

    /// Serialises a value; values that cannot be serialised become `null`.
    pub fn of(value: &(impl Serialize + ?Sized)) -> Self {
        serde_json::to_string(value).map_or_else(|_| Self::null(), |text| Self(ByteString::from(text)))
    }

    /// `null`.
    pub const fn null() -> Self {
        Self(ByteString::from_static("null"))
    }

    /// `{}`.
    pub const fn empty_object() -> Self {
        Self(ByteString::from_static("{}"))
    }

    /// Wraps a value found in `text`; shares its memory.
    pub fn part(text: &ByteString, value: &RawValue) -> Self {
        Self(text.slice_ref(value.get()))
    }

    /// The text.
    pub fn get(&self) -> &str {
        &self.0
    }

    /// Copies the text into its own allocation, for values that outlive the message that contained them.
    #[must_use]
    pub fn detach(&self) -> Self {
        Self(ByteString::from(self.get()))
    }

    /// The text as shared bytes, without a copy.
    pub fn into_bytes(self) -> Bytes {
        self.0.into_bytes()
    }

    /// Deserialises the value.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.get())
    }

    /// The string, if this is one; copied only if it contains escapes.
    pub fn text(&self) -> Option<Cow<'_, str>> {
        let plain = self.get().strip_prefix('"')?.strip_suffix('"')?;
        if plain.contains('\\') { self.decode().ok().map(Cow::Owned) } else { Some(Cow::Borrowed(plain)) }
    }

    /// Parses the value into a tree; numbers beyond 64 bits lose precision here, and only here.
    pub fn value(&self) -> Value {
        self.decode().unwrap_or(Value::Null)
    }

    /// The members, if this is an object.
    pub fn object(&self) -> Option<RawObject> {
        members(&self.0)
    }

    /// Appends a member to the object unless it exists already; other values are returned unchanged.
    #[must_use]
    pub fn with_last(self, key: &str, value: &Self) -> Self {
        let inside = self.get().strip_suffix('}').map(str::trim_end);
        let Some(inside) = inside.filter(|_| self.is_object() && !self.has_member(key)) else { return self };
        let comma = if inside == "{" { "" } else { "," };
        let key = Self::from(key);
        let parts = [inside, comma, key.get(), ":", value.get(), "}"];
        Self(ByteString::from(parts.concat()))
    }

    /// Whether this is an object with a member called `key`; stops at the first match.
    pub fn has_member(&self, key: &str) -> bool {
        // Substring search first: most objects lack the member and need no parsing. The name may be spelled with
        // escapes.
        let text = self.get();
        if !text.contains(key) && !text.contains(escape_within(key)) {
            return false;
        }
        Named(key).found_in(text)
    }

    /// Whether this may be an object whose member `key` is spelled as `value`. `false` is certain; only a substring
    /// search.
    pub(crate) fn might_contain(&self, key: &str, value: &str) -> bool {
        let text = self.get();
        let after = |rest: &str| {
            let colon = rest.strip_prefix('"').map(str::trim_start).and_then(|rest| rest.strip_prefix(':'));
            colon.is_some_and(|rest| rest.trim_start().starts_with(value))
        };
        let has_pair = || text.match_indices(key).any(|(at, _)| after(&text[at + key.len()..]));
        let escaped = || text.contains('\\') && text.contains(escape_within(key));
        (text.contains(key) && has_pair()) || escaped()
    }

    /// Whether this is an object.
    pub fn is_object(&self) -> bool {
        self.get().starts_with('{')
    }

    /// The first object with ambiguous keys.
    pub fn key_problem(&self) -> Option<KeyProblem> {
        key_problem(self.get())
    }

    /// The nesting depth of objects and arrays, if it exceeds [`MAX_DEPTH`].
    pub fn too_deep(&self) -> Option<usize> {
        too_deep(self.get())
    }
}

/// A substring of every text that spells `key` with escapes: letters and digits have no short escapes.
fn escape_within(key: &str) -> &'static str {
    if key.bytes().all(|byte| byte.is_ascii_alphanumeric()) { "\\u00" } else { "\\" }
}

impl AsRef<[u8]> for RawJson {
    fn as_ref(&self) -> &[u8] {
        self.get().as_bytes()
    }
}

impl From<Box<RawValue>> for RawJson {
    fn from(raw: Box<RawValue>) -> Self {
        Self(ByteString::from(String::from(Box::<str>::from(raw))))
    }
}

impl From<&RawValue> for RawJson {
    fn from(raw: &RawValue) -> Self {
        Self(ByteString::from(raw.get()))
    }
}

impl From<Value> for RawJson {
    fn from(value: Value) -> Self {
        Self::of(&value)
    }
}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl fmt::Display for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serde_json::from_str::<&RawValue>(self.get()) {
            Ok(raw) => raw.serialize(serializer),
            Err(error) => Err(serde::ser::Error::custom(error)),
        }
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self::from)
    }
}

impl From<RawObject> for RawJson {
    fn from(object: RawObject) -> Self {
        object.into_raw()
    }
}

impl From<&str> for RawJson {
    fn from(text: &str) -> Self {
        Self::of(text)
    }
}

impl From<String> for RawJson {
    fn from(text: String) -> Self {
        Self::of(&text)
    }
}

impl From<bool> for RawJson {
    fn from(value: bool) -> Self {
        Self::of(&value)
    }
}

impl From<u64> for RawJson {
    fn from(value: u64) -> Self {
        Self::of(&value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ODD: &str =
        r#"{"z":1e2,"a":1234567890123456789012345678901234567890,"é":"\u00e9 \"{[","list":[ ],"o":{}}"#;

    #[test]
    fn finds_top_level_members_only() {
        let check = |text: &str, key: &str, expect: bool| {
            assert_eq!(RawJson::parse(text).unwrap().has_member(key), expect, "{text} {key}");
        };
        check(ODD, "é", true);
        check(ODD, "list", true);
        check(ODD, "lis", false);
        check(r#"{"a":{"b":1},"c":"b"}"#, "b", false);
        check(r#"{"\u0062":1}"#, "b", true);
        check(r#"["b"]"#, "b", false);
        check(r#"{"a":"\n","x-\ty":1}"#, "x-\ty", true);
        check(r#"{"a":"\n\u0062","c":1}"#, "b", false);
    }

    #[test]
    fn might_contain_rules_out_absent_members() {
        let check = |text: &str, expect: bool| {
            assert_eq!(RawJson::parse(text).unwrap().might_contain("isError", "true"), expect, "{text}");
        };
        check("{}", false);
        check(r#"{"content":[{"text":"a\n"}],"isError":false}"#, false);
        check(r#"{"isError" : true}"#, true);
        check("{\"isError\"\t:\n true}", true);
        check(r#"{"is\u0045rror":true}"#, true);
        check(r#"{"a":{"isError":true}}"#, true);
        check(r#"{"a":"{\"isError\":true}"}"#, false);
        check(r#"{"isError":false,"isError":true}"#, true);
        check(r#"{"isErrors":true}"#, false);
    }

    #[test]
    fn preserves_raw_text() {
        assert_eq!(RawJson::parse(ODD).unwrap().get(), ODD);
        let object = RawJson::parse(ODD).unwrap().object().unwrap();
        assert_eq!(object.into_raw().get(), ODD);
    }

    #[test]
    fn appends_member_and_keeps_the_rest() {
        let check = |input: &str, expect: &str| {
            let with = RawJson::parse(input).unwrap().with_last("k", &RawJson::from(true));
            assert_eq!(with.get(), expect);
            RawJson::parse(with.get()).unwrap();
        };
        check("{}", r#"{"k":true}"#);
        check("{ }", r#"{"k":true}"#);
        check(r#"{"a":1e2 }"#, r#"{"a":1e2,"k":true}"#);
        check(r#"{"k":1}"#, r#"{"k":1}"#);
        check(r#"{"a":"k"}"#, r#"{"a":"k","k":true}"#);
        check("[1]", "[1]");
    }

    #[test]
    fn decodes_strings_with_and_without_escapes() {
        let text = |json: &str| RawJson::parse(json).unwrap().text().map(Cow::into_owned);
        assert_eq!(text(r#""plain é""#).unwrap(), "plain é");
        assert_eq!(text(r#""a \"b\" \u00e9""#).unwrap(), "a \"b\" é");
        assert_eq!(text("12"), None);
    }

    #[test]
    fn finds_members_with_escaped_names() {
        let object = RawJson::parse(r#" {"\u0061":{"b" : 1},"c":[]} "#).unwrap().object().unwrap();
        assert_eq!(object.get("a").unwrap().get(), r#"{"b" : 1}"#);
        assert_eq!(object.into_raw().get(), r#"{"a":{"b" : 1},"c":[]}"#);
    }
}
