//! Fast path for plain schemas: checks a text in one pass without building a tree. It only confirms that arguments
//! are certainly valid; all other cases are left to the full evaluator.

#[cfg(test)]
mod tests;

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Kinds of values, as bits. Numbers without a fraction are separate: they match `integer` and `number`, while for
/// numbers such as `1.0` only the evaluator can decide whether they are integers in the schema's draft.
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

/// Keywords without constraints; formats are never validated here.
const ANNOTATION_KEYWORDS: [&str; 9] = [
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
/// The drafts in which the supported keywords have the same meaning, or a weaker one than is applied here.
const DIALECTS: [&str; 5] = [
    "json-schema.org/draft-04/schema",
    "json-schema.org/draft-06/schema",
    "json-schema.org/draft-07/schema",
    "json-schema.org/draft/2019-09/schema",
    "json-schema.org/draft/2020-12/schema",
];
/// Names that serde_json treats specially.
const PRIVATE: &str = "$serde_json::private::";
/// Maximum number of required names, which are tracked in a bit set.
const MAX_REQUIRED: usize = 63;

/// Maximum number of names and options, because lookup is linear.
const MAX_COMPARED: usize = 64;

/// The values that are certainly accepted. The schema may accept more.
#[derive(Debug, Clone)]
pub(super) struct PlainSchema {
    kinds: u8,
    /// The accepted strings; `None` for all.
    texts: Option<Vec<String>>,
    /// Inclusive bounds of integers.
    least: i128,
    most: i128,
    items: Option<Box<Self>>,
    members: Option<Box<Members>>,
}

/// The members of an object that are certainly accepted.
#[derive(Debug, Clone)]
struct Members {
    /// The declared members, required ones first.
    known_members: Vec<KnownMember>,
    /// One bit per required member.
    required: u64,
    others: PlainSchema,
}

#[derive(Debug, Clone)]
struct KnownMember {
    name: String,
    /// The accepted values, if the member is a property; a name may be required without being declared.
    form: Option<PlainSchema>,
}

static ANYTHING: PlainSchema = PlainSchema::of(kind::ALL);
static ANY_MEMBERS: Members =
    Members { known_members: Vec::new(), required: 0, others: PlainSchema::of(kind::ALL) };

impl PlainSchema {
    const fn of(kinds: u8) -> Self {
        Self { kinds, texts: None, least: i128::MIN, most: i128::MAX, items: None, members: None }
    }

    /// Converts a schema; `None` if it uses an unsupported keyword.
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
                .try_fold(Self::of(0), |combined, way| Some(combined.or(Self::read(way)?)));
        }
        let mut form = Self::of(kind::ALL);
        for (key, value) in keywords {
            match key.as_str() {
                "type" => form.kinds &= kinds(value)?,
                "enum" => form.only(value.as_array()?)?,
                "const" => form.only(std::slice::from_ref(value))?,
                "minimum" => form.at_least(integer(value)?),
                "exclusiveMinimum" => form.at_least(integer(value)? + 1),
                "maximum" => form.at_most(integer(value)?),
                "exclusiveMaximum" => form.at_most(integer(value)? - 1),
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

    /// Accepts the values of both forms: for each kind of value, the constraints of the first form that accepts the
    /// kind.
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

    /// Restricts the form to these values, which must be strings or `null`.
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

    /// `Some` if the value in `text` is certainly valid; for an object, whether all members are properties. `None` if
    /// undecided.
    pub(super) fn fits(&self, text: &str) -> Option<bool> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let all_known = deserializer.deserialize_any(self).ok()?;
        deserializer.end().ok()?;
        Some(all_known)
    }

    /// Accepts a value of this kind if `accepted` holds.
    fn taken<E: Error>(&self, kind: u8, accepted: bool) -> Result<bool, E> {
        if self.kinds & kind != 0 && accepted { Ok(true) } else { Err(E::custom("not certain")) }
    }
}

impl Members {
    fn read(keywords: &Map<String, Value>) -> Option<Self> {
        let none = Map::new();
        let properties = keywords.get("properties").map_or(Some(&none), Value::as_object)?;
        let others = keywords
            .get("additionalProperties")
            .map_or(Some(PlainSchema::of(kind::ALL)), PlainSchema::read)?;
        let mut members: Vec<KnownMember> = Vec::with_capacity(properties.len());
        let required =
            keywords.get("required").map_or(Some(&[][..]), |list| list.as_array().map(|list| &list[..]))?;
        if required.len() > MAX_REQUIRED || properties.len() > MAX_COMPARED {
            return None;
        }
        for name in required {
            let name = name.as_str()?;
            if members.iter().any(|member| member.name == name) {
                continue;
            }
            // Members that are not properties share one form: with a copy per name, nested schemas would multiply.
            let form = match properties.get(name) {
                Some(schema) => Some(PlainSchema::read(schema)?),
                None => None,
            };
            members.push(KnownMember { name: name.to_owned(), form });
        }
        let count = members.len();
        for (name, schema) in properties {
            if members[..count].iter().all(|member| member.name != *name) {
                members.push(KnownMember { name: name.clone(), form: Some(PlainSchema::read(schema)?) });
            }
        }
        Some(Self { known_members: members, required: (1 << count) - 1, others })
    }
}

fn is_note(key: &str, value: &Value) -> bool {
    match key {
        "$schema" => value.as_str().is_some_and(|dialect| {
            let dialect = dialect.strip_suffix('#').unwrap_or(dialect);
            let place = dialect.strip_prefix("https://").or_else(|| dialect.strip_prefix("http://"));
            place.is_some_and(|place| DIALECTS.contains(&place))
        }),
        _ => ANNOTATION_KEYWORDS.contains(&key) || key.starts_with("x-"),
    }
}

fn kinds(value: &Value) -> Option<u8> {
    let kind_bit = |name: &Value| {
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
        Value::Array(names) => names.iter().try_fold(0, |kind_bits, name| Some(kind_bits | kind_bit(name)?)),
        name => kind_bit(name),
    }
}

fn integer(value: &Value) -> Option<i128> {
    value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from))
}

/// Reads a nested value with the same rules as a tree, so that values that cannot become one are not accepted.
impl<'de> DeserializeSeed<'de> for &PlainSchema {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &PlainSchema {
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
        let listed = self.texts.as_ref().is_none_or(|texts| texts.iter().any(|allowed| allowed == text));
        self.taken(kind::STRING, listed)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<bool, A::Error> {
        self.taken::<A::Error>(kind::ARRAY, true)?;
        let form = self.items.as_deref().unwrap_or(&ANYTHING);
        while items.next_element_seed(form)?.is_some() {}
        Ok(true)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        self.taken::<A::Error>(kind::OBJECT, true)?;
        let members = self.members.as_deref().unwrap_or(&ANY_MEMBERS);
        let (mut seen, mut all_known) = (0_u64, true);
        // Both values of a duplicate name must be valid, because parsers differ in the one they use.
        while let Some(place) = map.next_key_seed(Place(&members.known_members))? {
            let form = place.and_then(|place| members.known_members.get(place)?.form.as_ref());
            if let Some(place) = place.filter(|place| *place <= MAX_REQUIRED) {
                seen |= 1 << place;
            }
            all_known &= form.is_some();
            map.next_value_seed(form.unwrap_or(&members.others))?;
        }
        self.taken::<A::Error>(kind::OBJECT, seen & members.required == members.required)?;
        Ok(all_known)
    }
}

/// Finds the index of a name among the declared ones.
struct Place<'a>(&'a [KnownMember]);

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
        Ok(self.0.iter().position(|member| member.name == name))
    }
}
