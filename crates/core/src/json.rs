//! JSON that keeps what it was given: raw text inside, typed views outside. Meaning is left to its users.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::de::{DeserializeOwned, DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

/// Deeper nesting than this is refused: it would cost stack wherever the value is walked.
pub const MAX_DEPTH: usize = 128;

/// One JSON value as its text was given: key order, number spelling and unknown fields survive.
#[derive(Clone)]
pub struct RawJson(Arc<RawValue>);

impl RawJson {
    /// Checks that `text` is one JSON value and keeps it.
    pub fn parse(text: impl Into<String>) -> Result<Self, serde_json::Error> {
        RawValue::from_string(text.into()).map(Self::from)
    }

    /// The JSON of a value; what cannot be written as JSON becomes `null`.
    pub fn of(value: &(impl Serialize + ?Sized)) -> Self {
        to_raw_value(value).map_or_else(|_| Self::null(), Self::from)
    }

    /// `null`.
    pub fn null() -> Self {
        Self::from(RawValue::NULL.to_owned())
    }

    /// `{}`.
    pub fn empty_object() -> Self {
        Self::of(&RawObject::default())
    }

    /// The text.
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// A typed view.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.get())
    }

    /// A view as a tree; numbers past 64 bits lose digits here, and only here.
    pub fn value(&self) -> Value {
        self.decode().unwrap_or(Value::Null)
    }

    /// The members, where this is an object.
    pub fn object(&self) -> Option<RawObject> {
        self.decode().ok()
    }

    /// Whether this is an object with a member called `key`; nothing else of it is looked at.
    pub fn has_member(&self, key: &str) -> bool {
        // Most have it not, and one look at the text spares them being read. A name may be spelled with escapes, too.
        let text = self.get();
        if !text.contains(key) && !text.contains('\\') {
            return false;
        }
        let mut reader = serde_json::Deserializer::from_str(text);
        reader.deserialize_map(Named(key)).unwrap_or(false)
    }

    /// Whether this is an object.
    pub fn is_object(&self) -> bool {
        self.get().starts_with('{')
    }

    /// How deeply objects and arrays are nested, where that is more than [`MAX_DEPTH`].
    pub fn too_deep(&self) -> Option<usize> {
        too_deep(self.get())
    }
}

impl AsRef<[u8]> for RawJson {
    fn as_ref(&self) -> &[u8] {
        self.get().as_bytes()
    }
}

impl From<Box<RawValue>> for RawJson {
    fn from(raw: Box<RawValue>) -> Self {
        Self(Arc::from(raw))
    }
}

impl From<&RawValue> for RawJson {
    fn from(raw: &RawValue) -> Self {
        Self::from(raw.to_owned())
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
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self::from)
    }
}

/// The members of an object in their order, each value as it was given.
#[derive(Debug, Clone, Default)]
pub struct RawObject(Vec<(String, RawJson)>);

impl RawObject {
    /// The value of the first member called `key`.
    pub fn get(&self, key: &str) -> Option<&RawJson> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// Whether there is a member called `key`.
    pub fn contains(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Replaces the member called `key`, or adds it at the end.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<RawJson>) {
        let key = key.into();
        let value = value.into();
        match self.0.iter_mut().find(|(name, _)| *name == key) {
            Some(member) => member.1 = value,
            None => self.0.push((key, value)),
        }
    }

    /// Takes the member called `key` out.
    pub fn remove(&mut self, key: &str) {
        self.0.retain(|(name, _)| name != key);
    }

    /// Keeps the members whose names are wanted.
    pub fn retain(&mut self, mut wanted: impl FnMut(&str) -> bool) {
        self.0.retain(|(name, _)| wanted(name));
    }

    /// The same with one member more.
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, value: impl Into<RawJson>) -> Self {
        self.set(key, value);
        self
    }

    /// The members, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &RawJson)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The object as one value.
    pub fn into_raw(self) -> RawJson {
        RawJson::of(&self)
    }
}

impl Serialize for RawObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for RawObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members(PhantomData)).map(Self)
    }
}

/// Looks for a member of that name.
struct Named<'k>(&'k str);

impl<'de> Visitor<'de> for Named<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        let mut found = false;
        while let Some(SameName(same)) = map.next_key_seed(NameIs(self.0))? {
            found |= same;
            map.next_value::<IgnoredAny>()?;
        }
        Ok(found)
    }
}

/// Whether a name is the one that is looked for.
struct SameName(bool);
struct NameIs<'k>(&'k str);

impl<'de> DeserializeSeed<'de> for NameIs<'_> {
    type Value = SameName;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<SameName, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for NameIs<'_> {
    type Value = SameName;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<SameName, E> {
        Ok(SameName(name == self.0))
    }
}

/// Reads the members of an object in their order; a name that is there twice stays twice.
struct Members<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de>> Visitor<'de> for Members<V> {
    type Value = Vec<(String, V)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(members)
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

/// How deeply objects and arrays are nested in a JSON text, where that is more than [`MAX_DEPTH`].
pub fn too_deep(text: &str) -> Option<usize> {
    // Hardly any text opens so many brackets, let alone one within another; and counting bytes is quick.
    let opened = text.bytes().filter(|byte| matches!(byte, b'{' | b'[')).count();
    (opened > MAX_DEPTH).then(|| depth(text)).filter(|depth| *depth > MAX_DEPTH)
}

/// How deeply objects and arrays are nested in a JSON text. One pass, no recursion.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    walk_tokens(text, |token| match token {
        "{" | "[" => {
            depth += 1;
            deepest = deepest.max(depth);
        }
        "}" | "]" => depth = depth.saturating_sub(1),
        _ => {}
    });
    deepest
}

/// The text of a value that is the same for every spelling of it: keys sorted, no white space.
/// `None` where the text is no JSON or is nested too deeply.
pub fn canonical(text: &str) -> Option<String> {
    if too_deep(text).is_some() {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    write_canonical(text, &mut out).then_some(out)
}

fn write_canonical(text: &str, out: &mut String) -> bool {
    match text.as_bytes().first() {
        Some(b'{') => {
            let mut reader = serde_json::Deserializer::from_str(text);
            let members = Members::<&RawValue>(PhantomData);
            let Ok(mut members) = reader.deserialize_map(members) else { return false };
            // The order of two members of one name means something: readers differ in which one they take.
            members.sort_by(|(one, _), (other, _)| one.cmp(other));
            out.push('{');
            for (index, (name, value)) in members.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(RawJson::of(name).get());
                out.push(':');
                if !write_canonical(value.get(), out) {
                    return false;
                }
            }
            out.push('}');
        }
        Some(b'[') => {
            let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(text) else { return false };
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                if !write_canonical(item.get(), out) {
                    return false;
                }
            }
            out.push(']');
        }
        Some(b'"') => {
            let Ok(string) = serde_json::from_str::<String>(text) else { return false };
            out.push_str(RawJson::of(&string).get());
        }
        _ => out.push_str(text),
    }
    true
}

/// A JSON text on several lines, every token as it was given.
pub fn pretty(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let mut depth = 0_usize;
    let mut after_open = false;
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    walk_tokens(text, |token| match token {
        "}" | "]" => {
            depth = depth.saturating_sub(1);
            if !after_open {
                line(&mut out, depth);
            }
            after_open = false;
            out.push_str(token);
        }
        "," => {
            out.push(',');
            line(&mut out, depth);
        }
        ":" => out.push_str(": "),
        _ => {
            if std::mem::take(&mut after_open) {
                line(&mut out, depth);
            }
            out.push_str(token);
            if matches!(token, "{" | "[") {
                depth += 1;
                after_open = true;
            }
        }
    });
    out
}

/// Hands each token of a JSON text to `visit`: punctuation, strings with their quotes, and bare words.
fn walk_tokens<'a>(text: &'a str, mut visit: impl FnMut(&'a str)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        match bytes[at] {
            b' ' | b'\t' | b'\r' | b'\n' => {
                at += 1;
                continue;
            }
            b'{' | b'}' | b'[' | b']' | b',' | b':' => at += 1,
            b'"' => {
                at += 1;
                while at < bytes.len() && bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at = (at + 1).min(bytes.len());
            }
            _ => {
                while at < bytes.len()
                    && !matches!(
                        bytes[at],
                        b' ' | b'\t' | b'\r' | b'\n' | b',' | b':' | b'{' | b'}' | b'[' | b']' | b'"'
                    )
                {
                    at += 1;
                }
            }
        }
        visit(text.get(start..at).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ODD: &str =
        r#"{"z":1e2,"a":1234567890123456789012345678901234567890,"é":"\u00e9 \"{[","list":[ ],"o":{}}"#;

    #[test]
    fn members_are_found_and_nothing_else() {
        let check = |text: &str, key: &str, expect: bool| {
            assert_eq!(RawJson::parse(text).unwrap().has_member(key), expect, "{text} {key}");
        };
        check(ODD, "é", true);
        check(ODD, "list", true);
        check(ODD, "lis", false);
        check(r#"{"a":{"b":1},"c":"b"}"#, "b", false);
        check(r#"{"\u0062":1}"#, "b", true);
        check(r#"["b"]"#, "b", false);
    }

    #[test]
    fn raw_json_keeps_its_text() {
        assert_eq!(RawJson::parse(ODD).unwrap().get(), ODD);
        let object = RawJson::parse(ODD).unwrap().object().unwrap();
        assert_eq!(object.into_raw().get(), ODD);
    }

    #[test]
    fn canonical_is_the_same_for_every_spelling() {
        let a = canonical(r#"{"b": [1, 2], "a": "\u0041"}"#).unwrap();
        let b = canonical(r#"{"a":"A","b":[1,2]}"#).unwrap();
        assert_eq!(a, b);
        assert!(canonical(ODD).unwrap().contains("1234567890123456789012345678901234567890"));
    }

    #[test]
    fn pretty_changes_white_space_alone() {
        let shown = pretty(ODD);
        assert!(shown.contains("\n  \"z\": 1e2,\n"), "{shown}");
        assert!(shown.contains("\"list\": []"), "{shown}");
        assert_eq!(canonical(&shown), canonical(ODD));
    }

    #[test]
    fn depth_ignores_braces_in_strings() {
        assert_eq!(depth(r#"{"a":"[[[[","b":[{}]}"#), 3);
        assert_eq!(depth(&"[".repeat(100_000)), 100_000);
        assert!(canonical(&("[".repeat(200) + &"]".repeat(200))).is_none());
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec((any::<String>(), inner), 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn pretty_and_canonical_keep_the_value(value in any_json()) {
            let text = value.to_string();
            prop_assert_eq!(&serde_json::from_str::<Value>(&pretty(&text)).unwrap(), &value);
            prop_assert_eq!(&serde_json::from_str::<Value>(&canonical(&text).unwrap()).unwrap(), &value);
        }
    }
}
