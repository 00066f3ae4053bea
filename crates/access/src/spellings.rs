//! What the schema of a rule names at each position of the arguments: keys, and numbers. Programs read some texts differently,
//! so that a server could use a value that the schema does not see:
//!
//! - Keys that differ in letter case only: Go's `encoding/json` reads them as if they were spelled as declared.
//! - Keys with a NUL, at which texts of C end.
//! - Numbers with more digits than a double keeps (`number_text`).

use std::collections::BTreeMap;

use regex::{Regex, RegexBuilder};
use serde_json::Value;
use toolhub_core::RawJson;
use toolhub_core::json::fold_key;
use toolhub_core::lang::LocalizedText;

use crate::number_text::is_read_alike;
use crate::schema_subset::{SCHEMA_LISTS, SCHEMA_MAPS};

/// Maximum size of a compiled regular expression, in bytes.
pub(crate) const MAX_COMPILED_PATTERN_BYTES: usize = 1 << 20;

/// The keys and numbers that a schema constrains at one position of the arguments, and below it.
#[derive(Debug, Default)]
pub(crate) struct Spellings {
    /// Spellings of each key, by its folded form.
    keys: BTreeMap<String, Vec<String>>,
    /// Patterns that keys are compared with.
    patterns: Vec<KeyPattern>,
    /// Whether the value of a number matters here.
    numbers: bool,
    /// Whether the values of all numbers below matter.
    numbers_below: bool,
    /// What is named below each key.
    below: BTreeMap<String, Self>,
    /// What is named below every key, and in the elements of a list.
    below_any: Option<Box<Self>>,
}

/// A pattern of keys, as written and without regard to letter case.
#[derive(Debug)]
struct KeyPattern {
    exact: Regex,
    folded: Regex,
}

impl KeyPattern {
    fn compile(pattern: &str) -> Result<Self, LocalizedText> {
        let build = |ignores_case: bool| {
            RegexBuilder::new(pattern)
                .case_insensitive(ignores_case)
                .size_limit(MAX_COMPILED_PATTERN_BYTES)
                .build()
                .map_err(|_| {
                    LocalizedText::new(
                        format!("the pattern of keys `{pattern}` cannot be compared in both letter cases: write it without escapes of ECMAScript"),
                        format!("键的模式 `{pattern}` 无法同时按大小写两种方式比较：请勿使用 ECMAScript 特有的转义"),
                    )
                })
        };
        Ok(Self { exact: build(false)?, folded: build(true)? })
    }

    /// Whether another letter case of the key would be matched differently.
    fn depends_on_case(&self, key: &str) -> bool {
        self.exact.is_match(key) != self.folded.is_match(key)
    }
}

impl Spellings {
    pub(crate) fn of(schema: &Value) -> Result<Self, LocalizedText> {
        let mut spellings = Self::default();
        spellings.add(schema)?;
        Ok(spellings)
    }

    fn add(&mut self, schema: &Value) -> Result<(), LocalizedText> {
        let Value::Object(members) = schema else { return Ok(()) };
        for (keyword, value) in members {
            match (keyword.as_str(), value) {
                ("properties", Value::Object(properties)) => {
                    for (key, inner) in properties {
                        self.add_key(key);
                        self.below.entry(key.clone()).or_default().add(inner)?;
                    }
                }
                ("required", Value::Array(keys)) => {
                    keys.iter().filter_map(Value::as_str).for_each(|key| self.add_key(key));
                }
                ("const", value) => self.add_value(value),
                ("enum", Value::Array(values)) => values.iter().for_each(|value| self.add_value(value)),
                ("minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf", _) => {
                    self.numbers = true;
                }
                ("type", name) => self.numbers |= name.to_string().contains("\"integer\""),
                // Two numbers can be equal for one parser only.
                ("uniqueItems", _) => self.below_any().numbers_below = true,
                ("propertyNames", inner) => self.add_names(inner)?,
                ("items" | "contains" | "additionalProperties", inner) => self.below_any().add(inner)?,
                (name, Value::Object(patterns)) if SCHEMA_MAPS.contains(&name) => {
                    for (pattern, inner) in patterns {
                        self.patterns.push(KeyPattern::compile(pattern)?);
                        self.below_any().add(inner)?;
                    }
                }
                (name, Value::Array(schemas)) if SCHEMA_LISTS.contains(&name) => {
                    schemas.iter().try_for_each(|inner| self.add(inner))?;
                }
                ("not" | "if" | "then" | "else", inner) => self.add(inner)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn below_any(&mut self) -> &mut Self {
        self.below_any.get_or_insert_default()
    }

    /// Adds the keys and numbers of a value that arguments are compared with.
    fn add_value(&mut self, value: &Value) {
        match value {
            Value::Number(_) => self.numbers = true,
            Value::Array(items) => items.iter().for_each(|item| self.below_any().add_value(item)),
            Value::Object(members) => {
                for (key, inner) in members {
                    self.add_key(key);
                    self.below.entry(key.clone()).or_default().add_value(inner);
                }
            }
            _ => {}
        }
    }

    /// Adds what a schema for keys names: whole keys and patterns.
    fn add_names(&mut self, schema: &Value) -> Result<(), LocalizedText> {
        let Value::Object(members) = schema else { return Ok(()) };
        for (keyword, value) in members {
            match (keyword.as_str(), value) {
                ("const", Value::String(key)) => self.add_key(key),
                ("enum", Value::Array(keys)) => {
                    keys.iter().filter_map(Value::as_str).for_each(|key| self.add_key(key));
                }
                ("pattern", Value::String(pattern)) => self.patterns.push(KeyPattern::compile(pattern)?),
                (name, Value::Array(schemas)) if SCHEMA_LISTS.contains(&name) => {
                    schemas.iter().try_for_each(|inner| self.add_names(inner))?;
                }
                ("not" | "if" | "then" | "else", inner) => self.add_names(inner)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn add_key(&mut self, key: &str) {
        let spellings = self.keys.entry(fold_key(key)).or_default();
        if !spellings.iter().any(|spelling| spelling == key) {
            spellings.push(key.to_owned());
        }
    }

    /// Whether the schema decides about a key of the arguments, or a number, that some programs read as another one.
    pub(crate) fn has_variant_in(&self, value: &RawJson) -> bool {
        let text = value.get();
        match text.as_bytes().first() {
            Some(b'{') => {
                let Some(members) = value.object() else { return true };
                members.iter().any(|(key, inner)| {
                    let below = [self.below.get(key), self.below_any.as_deref()];
                    self.is_variant(key)
                        || (self.numbers_below && Self::all_numbers().has_variant_in(inner))
                        || below.into_iter().flatten().any(|below| below.has_variant_in(inner))
                })
            }
            Some(b'[') => {
                if self.below_any.is_none() && !self.numbers_below {
                    return false;
                }
                let Ok(items) = value.decode::<Vec<RawJson>>() else { return true };
                items.iter().any(|item| {
                    (self.numbers_below && Self::all_numbers().has_variant_in(item))
                        || self.below_any.as_ref().is_some_and(|below| below.has_variant_in(item))
                })
            }
            Some(b'-' | b'0'..=b'9') => {
                (self.numbers || self.numbers_below) && !is_read_alike(text.trim_end())
            }
            _ => false,
        }
    }

    fn all_numbers() -> Self {
        Self { numbers_below: true, ..Self::default() }
    }

    /// Whether the schema names the key in another spelling.
    fn is_variant(&self, key: &str) -> bool {
        let names_keys = !self.keys.is_empty() || !self.patterns.is_empty();
        let spellings = || self.keys.get(&fold_key(key));
        names_keys
            && (key.contains('\0')
                || spellings().is_some_and(|spellings| !spellings.iter().any(|spelling| spelling == key))
                || self.patterns.iter().any(|pattern| pattern.depends_on_case(key)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(schema: &Value, arguments: &str, expect: bool) {
        let raw = RawJson::parse(arguments).unwrap();
        assert_eq!(Spellings::of(schema).unwrap().has_variant_in(&raw), expect, "{schema} {arguments}");
    }

    #[test]
    fn finds_other_spellings_where_the_schema_names_the_key() {
        let schema = json!({
            "properties": {"path": {"pattern": "^/data/"}, "options": {"properties": {"force": {"const": true}}}},
            "anyOf": [{"required": ["user"]}, {"properties": {"list": {"items": {"properties": {"id": {}}}}}}],
        });
        let check = |arguments: Value, expect: bool| check(&schema, &arguments.to_string(), expect);
        check(json!({"path": "/data/a", "other": {"Path": 1}}), false);
        check(json!({"Path": "/etc"}), true);
        check(json!({"path": "/data/a", "PATH": "/etc"}), true);
        check(json!({"path": "/data/a", "path\0": "/etc"}), true);
        check(json!({"options": {"FORCE": true}}), true);
        check(json!({"options": {"Path": true}}), false);
        check(json!({"U\u{17f}er": 1}), true);
        check(json!({"list": [{"id": 1}, {"ID": 2}]}), true);
        check(json!({"list": [{"id": 1}]}), false);
        check(json!({"force": true, "FORCE": false}), false);
    }

    #[test]
    fn finds_other_spellings_of_keys_that_patterns_and_values_name() {
        let by_pattern = json!({"patternProperties": {"^force$": {"const": false}}});
        check(&by_pattern, r#"{"force":false}"#, false);
        check(&by_pattern, r#"{"Force":true}"#, true);
        check(&by_pattern, r#"{"other":true}"#, false);
        let negated = json!({"patternProperties": {"^[^F]": {"const": false}}});
        check(&negated, r#"{"force":false}"#, true);
        check(&negated, r#"{"Force":false}"#, false);
        let by_name = json!({"propertyNames": {"not": {"enum": ["force"]}}});
        check(&by_name, r#"{"Force":true}"#, true);
        check(&by_name, r#"{"soft":true}"#, false);
        let name_pattern = json!({"propertyNames": {"anyOf": [{"pattern": "^[a-z]+$"}]}});
        check(&name_pattern, r#"{"Force":true}"#, true);
        check(&name_pattern, r#"{"force":true}"#, false);
        let by_value = json!({"properties": {"o": {"not": {"const": {"k": "bad"}}}}});
        check(&by_value, r#"{"o":{"K":"bad"}}"#, true);
        check(&by_value, r#"{"o":{"k":"bad"}}"#, false);
        let in_list = json!({"properties": {"o": {"enum": [[{"k": 1}]]}}});
        check(&in_list, r#"{"o":[{"K":1}]}"#, true);
        assert!(Spellings::of(&json!({"patternProperties": {"\\cA": {}}})).is_err());
    }

    #[test]
    fn finds_ambiguous_numbers_where_the_schema_constrains_them() {
        let big = "9007199254740993";
        for constraint in [
            json!({"const": 5}),
            json!({"enum": [1, 5]}),
            json!({"maximum": 100}),
            json!({"not": {"multipleOf": 2}}),
            json!({"type": ["string", "integer"]}),
        ] {
            let schema = json!({"properties": {"id": constraint}});
            check(&schema, &format!(r#"{{"id":{big}}}"#), true);
            check(&schema, r#"{"id":100.00000000000000001}"#, true);
            check(&schema, r#"{"id":5.0}"#, false);
            // Others do not matter.
            check(&schema, &format!(r#"{{"id":5,"other":{big}}}"#), false);
        }
        let nested = json!({"properties": {"o": {"const": {"list": [{"n": 1}]}}}});
        check(&nested, &format!(r#"{{"o":{{"list":[{{"n":{big}}}]}}}}"#), true);
        let unique = json!({"properties": {"ids": {"uniqueItems": true}}});
        check(&unique, &format!(r#"{{"ids":[{{"id":{big}}},1]}}"#), true);
        check(&unique, &format!(r#"{{"ids":[1],"other":{big}}}"#), false);
        check(&json!({"properties": {"id": {"type": "string"}}}), &format!(r#"{{"id":{big}}}"#), false);
    }
}
