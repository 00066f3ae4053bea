//! Schemas that ask for nothing unusual, in a form that checks a text in one pass and makes no tree of it. It only ever
//! says that arguments certainly fit; whatever else there is to say of them is the full validator's.

#[cfg(test)]
mod tests;

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Kinds of values, as bits. A number without a fraction is apart: it fits `integer` as well as `number`, while of
/// others, such as `1.0`, only the validator knows whether they are integers in its dialect.
mod kind {
    pub(super) const NULL: u8 = 1;
    pub(super) const BOOLEAN: u8 = 2;
    pub(super) const STRING: u8 = 4;
    pub(super) const WHOLE: u8 = 8;
    pub(super) const FRACTION: u8 = 16;
    pub(super) const ARRAY: u8 = 32;
    pub(super) const OBJECT: u8 = 64;
    pub(super) const ALL: u8 = 127;
}

/// Keywords that constrain nothing; formats are not validated here at all.
const NOTES: [&str; 9] = [
    "title",
    "description",
    "default",
    "example",
    "examples",
    "deprecated",
    "readOnly",
    "$comment",
    "format",
];
/// The dialects in which the keywords below mean the same, or less than is made of them here.
const DIALECTS: [&str; 5] = [
    "json-schema.org/draft-04/schema",
    "json-schema.org/draft-06/schema",
    "json-schema.org/draft-07/schema",
    "json-schema.org/draft/2019-09/schema",
    "json-schema.org/draft/2020-12/schema",
];
/// Names that the JSON library gives a meaning of its own.
const PRIVATE: &str = "$serde_json::private::";
/// As many names may be required as there are bits to tick them off.
const MOST_REQUIRED: usize = 63;

/// Names and options are looked up one after another, so there may be so many of them.
const MAX_COMPARED: usize = 64;

/// What certainly is accepted as one value. What the schema accepts may be more.
#[derive(Debug, Clone)]
pub(super) struct Form {
    kinds: u8,
    /// The strings that may come, where not all may.
    texts: Option<Vec<String>>,
    /// Between which whole numbers must lie.
    least: i128,
    most: i128,
    items: Option<Box<Self>>,
    members: Option<Box<Members>>,
}

/// What certainly is accepted as the members of an object.
#[derive(Debug, Clone)]
struct Members {
    /// Those that are spoken of, the required ones first.
    known: Vec<Known>,
    /// One bit for each of the required.
    required: u64,
    others: Form,
}

#[derive(Debug, Clone)]
struct Known {
    name: String,
    /// What is accepted for it, if it is among the properties; a name may be required and nothing else said of it.
    form: Option<Form>,
}

static ANYTHING: Form = Form::of(kind::ALL);
static ANY_MEMBERS: Members = Members { known: Vec::new(), required: 0, others: Form::of(kind::ALL) };

impl Form {
    const fn of(kinds: u8) -> Self {
        Self { kinds, texts: None, least: i128::MIN, most: i128::MAX, items: None, members: None }
    }

    /// Reads a schema; `None` where it holds anything that this form has no place for.
    pub(super) fn read(schema: &Value) -> Option<Self> {
        let keywords = match schema {
            Value::Bool(true) => return Some(Self::of(kind::ALL)),
            Value::Bool(false) => return Some(Self::of(0)),
            Value::Object(keywords) => keywords,
            _ => return None,
        };
        if let Some(ways) = keywords.get("anyOf") {
            let alone = keywords.iter().all(|(key, value)| key == "anyOf" || is_note(key, value));
            return ways
                .as_array()
                .filter(|_| alone)?
                .iter()
                .try_fold(Self::of(0), |all, way| Some(all.or(Self::read(way)?)));
        }
        let mut form = Self::of(kind::ALL);
        for (key, value) in keywords {
            match key.as_str() {
                "type" => form.kinds &= kinds(value)?,
                "enum" => form.only(value.as_array()?)?,
                "const" => form.only(std::slice::from_ref(value))?,
                "minimum" => form.at_least(whole(value)?),
                "exclusiveMinimum" => form.at_least(whole(value)? + 1),
                "maximum" => form.at_most(whole(value)?),
                "exclusiveMaximum" => form.at_most(whole(value)? - 1),
                "items" => form.items = Some(Box::new(Self::read(value)?)),
                "properties" | "required" | "additionalProperties" => {}
                _ if is_note(key, value) => {}
                _ => return None,
            }
        }
        if ["properties", "required", "additionalProperties"].iter().any(|key| keywords.contains_key(*key)) {
            form.members = Some(Box::new(Members::read(keywords)?));
        }
        Some(form)
    }

    /// What one of the two accepts: of each kind of values what the first says of it that takes it at all.
    fn or(mut self, other: Self) -> Self {
        let new = other.kinds & !self.kinds;
        if new & kind::STRING != 0 {
            self.texts = other.texts;
        }
        if new & kind::WHOLE != 0 {
            (self.least, self.most) = (other.least, other.most);
        }
        if new & kind::ARRAY != 0 {
            self.items = other.items;
        }
        if new & kind::OBJECT != 0 {
            self.members = other.members;
        }
        self.kinds |= new;
        self
    }

    /// Nothing but these values: strings and `null`.
    fn only(&mut self, values: &[Value]) -> Option<()> {
        if values.len() > MAX_COMPARED {
            return None;
        }
        let mut texts = Vec::new();
        let mut kinds = kind::STRING;
        for value in values {
            match value {
                Value::String(text) => texts.push(text.clone()),
                Value::Null => kinds |= kind::NULL,
                _ => return None,
            }
        }
        if let Some(before) = &self.texts {
            texts.retain(|text| before.contains(text));
        }
        self.texts = Some(texts);
        self.kinds &= kinds;
        Some(())
    }

    fn at_least(&mut self, limit: i128) {
        self.least = self.least.max(limit);
        self.kinds &= !kind::FRACTION;
    }

    fn at_most(&mut self, limit: i128) {
        self.most = self.most.min(limit);
        self.kinds &= !kind::FRACTION;
    }

    /// Whether the value in a text certainly fits; and where it is an object, whether all of its members are among the
    /// properties. `None` where that is not certain.
    pub(super) fn fits(&self, text: &str) -> Option<bool> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let all_known = deserializer.deserialize_any(self).ok()?;
        deserializer.end().ok()?;
        Some(all_known)
    }

    /// A value of that kind; `wanted` is what else is asked of it.
    fn taken<E: Error>(&self, kind: u8, wanted: bool) -> Result<bool, E> {
        if self.kinds & kind != 0 && wanted { Ok(true) } else { Err(E::custom("not certain")) }
    }
}

impl Members {
    fn read(keywords: &Map<String, Value>) -> Option<Self> {
        let none = Map::new();
        let properties = keywords.get("properties").map_or(Some(&none), Value::as_object)?;
        let others = keywords.get("additionalProperties").map_or(Some(Form::of(kind::ALL)), Form::read)?;
        let mut known: Vec<Known> = Vec::with_capacity(properties.len());
        let required =
            keywords.get("required").map_or(Some(&[][..]), |list| list.as_array().map(|list| &list[..]))?;
        if required.len() > MOST_REQUIRED || properties.len() > MAX_COMPARED {
            return None;
        }
        for name in required {
            let name = name.as_str()?;
            if known.iter().any(|one| one.name == name) {
                continue;
            }
            // Members that are no properties share one form: with a copy for each name, nested schemas would multiply.
            let form = match properties.get(name) {
                Some(schema) => Some(Form::read(schema)?),
                None => None,
            };
            known.push(Known { name: name.to_owned(), form });
        }
        let count = known.len();
        for (name, schema) in properties {
            if known[..count].iter().all(|one| one.name != *name) {
                known.push(Known { name: name.clone(), form: Some(Form::read(schema)?) });
            }
        }
        Some(Self { known, required: (1 << count) - 1, others })
    }
}

fn is_note(key: &str, value: &Value) -> bool {
    match key {
        "$schema" => value.as_str().is_some_and(|dialect| {
            let dialect = dialect.strip_suffix('#').unwrap_or(dialect);
            let place = dialect.strip_prefix("https://").or_else(|| dialect.strip_prefix("http://"));
            place.is_some_and(|place| DIALECTS.contains(&place))
        }),
        _ => NOTES.contains(&key) || key.starts_with("x-"),
    }
}

fn kinds(value: &Value) -> Option<u8> {
    let one = |name: &Value| {
        Some(match name.as_str()? {
            "null" => kind::NULL,
            "boolean" => kind::BOOLEAN,
            "string" => kind::STRING,
            "integer" => kind::WHOLE,
            "number" => kind::WHOLE | kind::FRACTION,
            "array" => kind::ARRAY,
            "object" => kind::OBJECT,
            _ => return None,
        })
    };
    match value {
        Value::Array(names) => names.iter().try_fold(0, |all, name| Some(all | one(name)?)),
        name => one(name),
    }
}

fn whole(value: &Value) -> Option<i128> {
    value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from))
}

/// One value in its place: read as a tree would be made of it, so that whatever could not become one does not fit.
impl<'de> DeserializeSeed<'de> for &Form {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &Form {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<bool, E> {
        self.taken(kind::NULL, true)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<bool, E> {
        self.taken(kind::BOOLEAN, true)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<bool, E> {
        let number = i128::from(number);
        self.taken(kind::WHOLE, (self.least..=self.most).contains(&number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<bool, E> {
        let number = i128::from(number);
        self.taken(kind::WHOLE, (self.least..=self.most).contains(&number))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<bool, E> {
        self.taken(kind::FRACTION, true)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<bool, E> {
        let listed = self.texts.as_ref().is_none_or(|texts| texts.iter().any(|one| one == text));
        self.taken(kind::STRING, listed)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<bool, A::Error> {
        self.taken::<A::Error>(kind::ARRAY, true)?;
        let form = self.items.as_deref().unwrap_or(&ANYTHING);
        while items.next_element_seed(form)?.is_some() {}
        Ok(true)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut given: A) -> Result<bool, A::Error> {
        self.taken::<A::Error>(kind::OBJECT, true)?;
        let members = self.members.as_deref().unwrap_or(&ANY_MEMBERS);
        let (mut seen, mut all_known) = (0_u64, true);
        // A name that comes twice has to fit twice: which of the two counts is not for us to say.
        while let Some(place) = given.next_key_seed(Place(&members.known))? {
            let form = place.and_then(|place| members.known.get(place)?.form.as_ref());
            if let Some(place) = place.filter(|place| *place <= MOST_REQUIRED) {
                seen |= 1 << place;
            }
            all_known &= form.is_some();
            given.next_value_seed(form.unwrap_or(&members.others))?;
        }
        self.taken::<A::Error>(kind::OBJECT, seen & members.required == members.required)?;
        Ok(all_known)
    }
}

/// Finds a name among those that are known.
struct Place<'a>(&'a [Known]);

impl<'de> DeserializeSeed<'de> for Place<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<usize>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Place<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Option<usize>, E> {
        if name.starts_with(PRIVATE) {
            return Err(E::custom("not certain"));
        }
        Ok(self.0.iter().position(|known| known.name == name))
    }
}
