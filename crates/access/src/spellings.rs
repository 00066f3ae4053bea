//! Finds keys of arguments that differ from a rule's keys in letter case only. Go's `encoding/json` reads such a key as
//! if it were spelled as declared, so that a schema would not see the value that the server uses.

use std::collections::BTreeMap;

use serde_json::Value;
use toolhub_core::json::folded;

use crate::schema_subset::{SCHEMA_LISTS, SCHEMA_MAPS};

/// The keys that a schema names at one position of the arguments, and below it.
#[derive(Debug, Default)]
pub(crate) struct Spellings {
    /// Spellings of each key, by its folded form.
    keys: BTreeMap<String, Vec<String>>,
    /// What is named below each key.
    below: BTreeMap<String, Self>,
    /// What is named below every key, and in the elements of a list.
    below_any: Option<Box<Self>>,
}

impl Spellings {
    pub(crate) fn of(schema: &Value) -> Self {
        let mut spellings = Self::default();
        spellings.add(schema);
        spellings
    }

    fn add(&mut self, schema: &Value) {
        let Value::Object(members) = schema else { return };
        for (keyword, value) in members {
            match (keyword.as_str(), value) {
                ("properties", Value::Object(properties)) => {
                    for (key, inner) in properties {
                        self.add_key(key);
                        self.below.entry(key.clone()).or_default().add(inner);
                    }
                }
                ("required", Value::Array(keys)) => {
                    keys.iter().filter_map(Value::as_str).for_each(|key| self.add_key(key));
                }
                ("items" | "contains" | "additionalProperties", inner) => {
                    self.below_any.get_or_insert_default().add(inner);
                }
                (name, Value::Object(patterns)) if SCHEMA_MAPS.contains(&name) => {
                    patterns.values().for_each(|inner| self.below_any.get_or_insert_default().add(inner));
                }
                (name, Value::Array(schemas)) if SCHEMA_LISTS.contains(&name) => {
                    schemas.iter().for_each(|inner| self.add(inner));
                }
                ("not" | "if" | "then" | "else", inner) => self.add(inner),
                _ => {}
            }
        }
    }

    fn add_key(&mut self, key: &str) {
        let spellings = self.keys.entry(folded(key)).or_default();
        if !spellings.iter().any(|spelling| spelling == key) {
            spellings.push(key.to_owned());
        }
    }

    /// Whether the arguments contain another spelling of a key that the schema names there.
    pub(crate) fn has_variant_in(&self, value: &Value) -> bool {
        match value {
            Value::Object(members) => members.iter().any(|(key, inner)| {
                let is_variant = !self.keys.is_empty()
                    && self
                        .keys
                        .get(&folded(key))
                        .is_some_and(|spellings| !spellings.iter().any(|spelling| spelling == key));
                let below = [self.below.get(key), self.below_any.as_deref()];
                is_variant || below.into_iter().flatten().any(|below| below.has_variant_in(inner))
            }),
            Value::Array(items) => self
                .below_any
                .as_ref()
                .is_some_and(|below| items.iter().any(|item| below.has_variant_in(item))),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn finds_other_spellings_where_the_schema_names_the_key() {
        let schema = json!({
            "properties": {"path": {"pattern": "^/data/"}, "options": {"properties": {"force": {"const": true}}}},
            "anyOf": [{"required": ["user"]}, {"properties": {"list": {"items": {"properties": {"id": {}}}}}}],
        });
        let check = |arguments: Value, expect: bool| {
            assert_eq!(Spellings::of(&schema).has_variant_in(&arguments), expect, "{arguments}");
        };
        check(json!({"path": "/data/a", "other": {"Path": 1}}), false);
        check(json!({"Path": "/etc"}), true);
        check(json!({"path": "/data/a", "PATH": "/etc"}), true);
        check(json!({"options": {"FORCE": true}}), true);
        check(json!({"options": {"Path": true}}), false);
        check(json!({"U\u{17f}er": 1}), true);
        check(json!({"list": [{"id": 1}, {"ID": 2}]}), true);
        check(json!({"list": [{"id": 1}]}), false);
        check(json!({"force": true, "FORCE": false}), false);
    }
}
