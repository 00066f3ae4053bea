//! The members of an object: raw names and values in order, without copies.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use bytestring::ByteString;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::RawJson;

/// The members of an object in order, with raw values.
#[derive(Debug, Clone, Default)]
pub struct RawObject(Vec<(ByteString, RawJson)>);

impl RawObject {
    /// The value of the first member called `key`.
    pub fn get(&self, key: &str) -> Option<&RawJson> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// Whether there is a member called `key`.
    pub fn contains(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Replaces the member called `key`, or appends it. Removes duplicates, so that every parser reads the new value.
    pub fn set(&mut self, key: impl Into<MemberName>, value: impl Into<RawJson>) {
        let MemberName(key) = key.into();
        let value = value.into();
        let Some(index) = self.0.iter().position(|(name, _)| *name == key) else {
            self.0.push((key, value));
            return;
        };
        self.0[index].1 = value;
        if self.0.iter().skip(index + 1).any(|(name, _)| *name == key) {
            let mut at = 0;
            self.0.retain(|(name, _)| {
                at += 1;
                at <= index + 1 || *name != key
            });
        }
    }

    /// Removes all members called `key`.
    pub fn remove(&mut self, key: &str) {
        self.0.retain(|(name, _)| name != key);
    }

    /// Keeps the members for which `predicate` returns `true`.
    pub fn retain(&mut self, mut predicate: impl FnMut(&str) -> bool) {
        self.0.retain(|(name, _)| predicate(name));
    }

    /// Sets a member.
    #[must_use]
    pub fn with(mut self, key: impl Into<MemberName>, value: impl Into<RawJson>) -> Self {
        self.set(key, value);
        self
    }

    /// The members, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &RawJson)> {
        self.0.iter().map(|(name, value)| (&**name, value))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Serialises the object.
    pub fn into_raw(self) -> RawJson {
        RawJson::of(&self)
    }
}

impl Serialize for RawObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(&**name, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for RawObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let members: Vec<(Cow<'_, str>, RawJson)> = deserializer.deserialize_map(Members(PhantomData))?;
        Ok(Self(members.into_iter().map(|(name, value)| (name.into_owned().into(), value)).collect()))
    }
}

/// The name of a member to write; `&'static str` is not copied.
#[derive(Debug)]
pub struct MemberName(ByteString);

impl From<&'static str> for MemberName {
    fn from(name: &'static str) -> Self {
        Self(ByteString::from_static(name))
    }
}

impl From<String> for MemberName {
    fn from(name: String) -> Self {
        Self(name.into())
    }
}

impl RawObject {
    /// Appends a member without checking for duplicates.
    pub fn push(&mut self, name: ByteString, value: RawJson) {
        self.0.push((name, value));
    }

    /// Wraps members found in `text`; shares its memory.
    pub fn part(text: &ByteString, borrowed_members: Vec<(Cow<'_, str>, &RawValue)>) -> Self {
        let name = |name: Cow<'_, str>| match name {
            Cow::Borrowed(name) => text.slice_ref(name),
            Cow::Owned(name) => name.into(),
        };
        Self(
            borrowed_members
                .into_iter()
                .map(|(key, value)| (name(key), RawJson::part(text, value)))
                .collect(),
        )
    }
}

/// The members of the object in `text`, sharing its memory; `None` if it is not an object.
pub(super) fn members(text: &ByteString) -> Option<RawObject> {
    borrowed(text).map(|borrowed_members| RawObject::part(text, borrowed_members))
}

/// The members of the object in `text`, in order.
pub(super) fn borrowed(text: &str) -> Option<Vec<(Cow<'_, str>, &RawValue)>> {
    serde_json::Deserializer::from_str(text).deserialize_map(Members(PhantomData)).ok()
}

/// Visitor that searches for a member of this name.
pub(super) struct Named<'k>(pub(super) &'k str);

impl Named<'_> {
    /// Whether the object in `text` has the member.
    pub(super) fn found_in(self, text: &str) -> bool {
        serde_json::Deserializer::from_str(text).deserialize_map(self).unwrap_or(false)
    }
}

impl<'de> Visitor<'de> for Named<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        let mut has_member = false;
        while let Some(SameName(same)) = map.next_key_seed(NameIs(self.0))? {
            has_member |= same;
            map.next_value::<IgnoredAny>()?;
        }
        Ok(has_member)
    }
}

/// Whether a name equals the searched one.
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

/// Reads the members of an object in order; keeps duplicates.
struct Members<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de>> Visitor<'de> for Members<V> {
    type Value = Vec<(Cow<'de, str>, V)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::with_capacity(4);
        while let Some(name) = map.next_key_seed(Name)? {
            members.push((name, map.next_value()?));
        }
        Ok(members)
    }
}

/// Reads a name; copies it only if it contains escapes.
struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Name {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(name.to_owned()))
    }
}
