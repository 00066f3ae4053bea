//! Coerces arguments that nearly match a schema: similar parameter names, numbers written as strings, a single value
//! for a list. Pure; never invents a value, and reports every change.

use std::cell::Cell;

use serde_json::Value;
use toolhub_core::lang::LocalizedText;
use toolhub_core::suggest::similar_names;
use toolhub_core::{RawJson, RawObject};

/// Coerced arguments and the changes made.
#[derive(Debug, Clone)]
pub struct Coerced {
    /// The arguments to send.
    pub arguments: RawJson,
    /// The changes.
    pub notes: Vec<LocalizedText>,
}

/// Coerces `arguments` to `schema`; `None` if nothing was changed.
pub fn coerce(schema: &RawJson, arguments: &RawJson) -> Option<Coerced> {
    if arguments.too_deep().is_some() || arguments.get().len() > MAX_COERCED_BYTES {
        return None;
    }
    let root = schema.value();
    let mut coercer = Coercer {
        root: &root,
        notes: Vec::new(),
        remaining_depth: MAX_COERCION_DEPTH,
        work: Cell::new(MAX_WORK),
    };
    let unpacked = coercer.unpacked(arguments, "");
    let object = unpacked.as_ref().unwrap_or(arguments).object()?;
    let coerced = coercer.object(&root, object, "");
    (!coercer.notes.is_empty() && coercer.work.get() > 0)
        .then(|| Coerced { arguments: coerced.into_raw(), notes: coercer.notes })
}

/// Maximum nesting depth of coercion: a schema may be recursive.
const MAX_COERCION_DEPTH: usize = 32;
/// Larger objects are not coerced: matching names costs (arguments × parameters).
const MAX_COERCED_MEMBERS: usize = 256;

/// Larger arguments are not coerced.
const MAX_COERCED_BYTES: usize = 256 << 10;
/// Maximum number of values, alternatives and options examined: their product is unbounded.
const MAX_WORK: usize = 100_000;

struct Coercer<'s> {
    root: &'s Value,
    notes: Vec<LocalizedText>,
    /// Remaining depth.
    remaining_depth: usize,
    /// Remaining work.
    work: Cell<usize>,
}

impl<'s> Coercer<'s> {
    fn object(&mut self, schema: &'s Value, input: RawObject, path: &str) -> RawObject {
        let schema = self.resolve(schema);
        let Some(properties) = schema["properties"].as_object() else { return input };
        if input.iter().nth(MAX_COERCED_MEMBERS).is_some() {
            return input;
        }
        let input = self.rename_members(schema, input, path);
        let mut coerced = RawObject::default();
        for (name, value) in input.iter() {
            let location = join(path, name);
            let Some(property) = properties.get(name) else {
                coerced.set(name.to_owned(), value.clone());
                continue;
            };
            if value.get() == "null"
                && !required(schema, name)
                && !self.expected_types(property).accepts("null")
            {
                self.note(&location, "`null` means no value, so it is left out", "`null` 表示没有值，已去掉");
                continue;
            }
            coerced.set(name.to_owned(), self.value(property, value, &location));
        }
        coerced
    }

    /// Renames arguments whose name is similar to exactly one missing parameter.
    fn rename_members(&mut self, schema: &Value, input: RawObject, path: &str) -> RawObject {
        let properties: Vec<&str> = schema["properties"]
            .as_object()
            .map(|properties| properties.keys().map(String::as_str).collect())
            .unwrap_or_default();
        let missing: Vec<&str> = properties.iter().copied().filter(|name| !input.contains(name)).collect();
        let unknown: Vec<&str> =
            input.iter().map(|(name, _)| name).filter(|name| !properties.contains(name)).collect();
        if missing.is_empty() || unknown.is_empty() {
            return input;
        }
        let matched: Vec<(&str, &str)> =
            unknown.iter().filter_map(|name| Some((*name, meant_by(name, &missing, schema)?))).collect();
        // Two arguments match one parameter: ambiguous.
        let only = |parameter: &str| matched.iter().filter(|(_, other)| *other == parameter).count() == 1;
        let mut renamed = RawObject::default();
        for (name, value) in input.iter() {
            match matched.iter().find(|(unknown, parameter)| *unknown == name && only(parameter)) {
                Some((_, parameter)) => {
                    let input = join(path, name);
                    self.notes.push(LocalizedText::new(
                        format!("read `{input}` as `{parameter}`"),
                        format!("将 `{input}` 按 `{parameter}` 处理"),
                    ));
                    renamed.set((*parameter).to_owned(), value.clone());
                }
                None => renamed.set(name.to_owned(), value.clone()),
            }
        }
        renamed
    }

    fn value(&mut self, schema: &'s Value, input: &RawJson, path: &str) -> RawJson {
        let Some(remaining_depth) = self.remaining_depth.checked_sub(1).filter(|_| self.spend(1)) else {
            return input.clone();
        };
        self.remaining_depth = remaining_depth;
        let coerced = self.fit_type(schema, input, path);
        self.remaining_depth += 1;
        coerced
    }

    fn fit_type(&mut self, schema: &'s Value, input: &RawJson, path: &str) -> RawJson {
        let schema = self.resolve(schema);
        let expected_types = self.expected_types(schema);
        let kind = kind_of(input);
        let mut value = input.clone();
        if !expected_types.accepts(kind) {
            value = match self.converted(&expected_types, input, path) {
                Some(converted) => converted,
                None if expected_types.has("array") => {
                    self.note(path, "one value made a list of one", "单个值改为只有一项的列表");
                    RawJson::of(&[input])
                }
                None => return input.clone(),
            };
        }
        match value.get().as_bytes().first() {
            Some(b'{') => match value.object() {
                Some(object) if schema["properties"].is_object() => {
                    let before = self.notes.len();
                    let coerced = self.object(schema, object, path);
                    if self.notes.len() > before { coerced.into_raw() } else { value }
                }
                _ => value,
            },
            Some(b'[') if schema["items"].is_object() => {
                let before = self.notes.len();
                let items: Vec<RawJson> = value.decode().unwrap_or_default();
                let coerced: Vec<RawJson> = items
                    .iter()
                    .enumerate()
                    .map(|(location, item)| {
                        self.value(&schema["items"], item, &format!("{path}[{location}]"))
                    })
                    .collect();
                if self.notes.len() > before { RawJson::of(&coerced) } else { value }
            }
            Some(b'"') => self.option(schema, value, path),
            _ => value,
        }
    }

    /// Converts the value to the required type, if the conversion is unambiguous.
    fn converted(
        &mut self,
        expected_types: &ExpectedTypes<'_>,
        input: &RawJson,
        path: &str,
    ) -> Option<RawJson> {
        let kind = kind_of(input);
        if kind == "string" {
            let text: String = input.decode().ok()?;
            let text = text.trim();
            if let Some(number) = number(text, expected_types) {
                self.note(
                    path,
                    &format!("the text `{text}` made a number"),
                    &format!("文本 `{text}` 改为数字"),
                );
                return Some(number);
            }
            if expected_types.has("boolean")
                && ["true", "false"].iter().any(|word| text.eq_ignore_ascii_case(word))
            {
                self.note(
                    path,
                    &format!("the text `{text}` made a boolean"),
                    &format!("文本 `{text}` 改为布尔值"),
                );
                return Some(RawJson::from(text.eq_ignore_ascii_case("true")));
            }
            return self.unpacked(input, path).filter(|inner| expected_types.accepts(kind_of(inner)));
        }
        if matches!(kind, "integer" | "number") && expected_types.has("string") {
            let spelled = input.get();
            self.note(
                path,
                &format!("the number {spelled} made a text"),
                &format!("数字 {spelled} 改为文本"),
            );
            return Some(RawJson::from(spelled));
        }
        if kind == "array" && !expected_types.has("array") {
            let items: Vec<RawJson> = input.decode().ok()?;
            let [only] = items.as_slice() else { return None };
            if expected_types.accepts(kind_of(only)) {
                self.note(path, "a list of one made its only value", "只有一项的列表改为该项");
                return Some(only.clone());
            }
        }
        None
    }

    /// Parses JSON that was passed as a string.
    fn unpacked(&mut self, input: &RawJson, path: &str) -> Option<RawJson> {
        let text: String = input.decode().ok()?;
        let text = text.trim();
        if !text.starts_with(['{', '[']) {
            return None;
        }
        // The gateway rejects ambiguous keys in a message; JSON parsed from a string passes the same check.
        let plain = |inner: &RawJson| inner.too_deep().is_none() && inner.key_problem().is_none();
        let inner = RawJson::parse(text).ok().filter(plain)?;
        self.note(path, "read the text as JSON", "将文本按 JSON 处理");
        Some(inner)
    }

    /// The enum option that differs from a string only in case and spaces.
    fn option(&mut self, schema: &Value, input: RawJson, path: &str) -> RawJson {
        let (Some(options), Ok(text)) = (schema["enum"].as_array(), input.decode::<String>()) else {
            return input;
        };
        if !self.spend(options.len()) {
            return input;
        }
        let options: Vec<&str> = options.iter().filter_map(Value::as_str).collect();
        if options.contains(&text.as_str()) {
            return input;
        }
        let mut same = options.iter().filter(|option| fold(option) == fold(&text));
        match (same.next(), same.next()) {
            (Some(option), None) => {
                self.note(
                    path,
                    &format!("read `{text}` as `{option}`"),
                    &format!("将 `{text}` 按 `{option}` 处理"),
                );
                RawJson::from(*option)
            }
            _ => input,
        }
    }

    fn note(&mut self, path: &str, en: &str, zh: &str) {
        let at = |text: &str, mark: &str| {
            if path.is_empty() { text.to_owned() } else { format!("`{path}`{mark}{text}") }
        };
        self.notes.push(LocalizedText::new(at(en, ": "), at(zh, "：")));
    }

    /// Resolves a reference inside this document.
    fn resolve(&self, schema: &'s Value) -> &'s Value {
        let mut resolved = schema;
        for _ in 0..8 {
            let Some(pointer) = resolved["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'))
            else {
                return resolved;
            };
            match self.root.pointer(pointer) {
                Some(target) => resolved = target,
                None => return resolved,
            }
        }
        resolved
    }

    /// Deducts work; returns `false` once the budget is exhausted.
    fn spend(&self, work: usize) -> bool {
        self.work.set(self.work.get().saturating_sub(work));
        self.work.get() > 0
    }

    fn expected_types(&self, schema: &'s Value) -> ExpectedTypes<'s> {
        let mut kinds = Vec::new();
        self.kinds(schema, &mut kinds, 4);
        ExpectedTypes(kinds)
    }

    fn kinds(&self, schema: &'s Value, kinds: &mut Vec<&'s str>, depth: usize) {
        let Some(depth) = depth.checked_sub(1).filter(|_| self.spend(1)) else { return };
        let schema = self.resolve(schema);
        match &schema["type"] {
            Value::String(kind) => kinds.push(plain(kind)),
            Value::Array(all) => kinds.extend(all.iter().filter_map(Value::as_str).map(plain)),
            _ => {
                for key in ["anyOf", "oneOf"] {
                    for branch in schema[key].as_array().into_iter().flatten() {
                        let before = kinds.len();
                        self.kinds(branch, kinds, depth);
                        if kinds.len() == before {
                            // A branch without a type accepts any value.
                            kinds.push("any");
                        }
                    }
                }
            }
        }
    }
}

/// The types that a schema accepts; empty means any.
struct ExpectedTypes<'s>(Vec<&'s str>);

impl ExpectedTypes<'_> {
    fn has(&self, kind: &str) -> bool {
        self.0.contains(&kind)
    }

    fn accepts(&self, kind: &str) -> bool {
        self.0.is_empty() || self.has(kind) || self.has("any") || (kind == "integer" && self.has("number"))
    }
}

/// Maps type names of other languages to those of JSON Schema.
fn plain(kind: &str) -> &str {
    match kind {
        "dict" | "map" | "hash" => "object",
        "list" | "tuple" => "array",
        "int" | "long" => "integer",
        "float" | "double" => "number",
        "bool" => "boolean",
        "str" | "char" => "string",
        other => other,
    }
}

fn kind_of(value: &RawJson) -> &'static str {
    match value.get().as_bytes().first() {
        Some(b'{') => "object",
        Some(b'[') => "array",
        Some(b'"') => "string",
        Some(b't' | b'f') => "boolean",
        Some(b'n') | None => "null",
        Some(_) if value.get().contains(['.', 'e', 'E']) => {
            let is_integer = value.decode::<f64>().is_ok_and(|number| number.fract() == 0.0);
            if is_integer { "integer" } else { "number" }
        }
        Some(_) => "integer",
    }
}

fn number(text: &str, expected_types: &ExpectedTypes<'_>) -> Option<RawJson> {
    if !expected_types.has("integer") && !expected_types.has("number") {
        return None;
    }
    let number = RawJson::parse(text).ok().filter(|value| matches!(kind_of(value), "integer" | "number"))?;
    (expected_types.has("number") || kind_of(&number) == "integer").then_some(number)
}

/// The parameter that an argument's name matches: the same name in another spelling, or a similar required parameter.
fn meant_by<'a>(name: &str, missing: &[&'a str], schema: &Value) -> Option<&'a str> {
    let mut same = missing.iter().copied().filter(|parameter| fold(parameter) == fold(name));
    if let Some(first) = same.next() {
        return same.next().is_none().then_some(first);
    }
    let needed: Vec<&str> = missing.iter().copied().filter(|parameter| required(schema, parameter)).collect();
    let near = similar_names(name, needed.iter().copied(), 2);
    let [nearest] = near.as_slice() else { return None };
    needed.into_iter().find(|parameter| parameter == nearest)
}

fn required(schema: &Value, name: &str) -> bool {
    schema["required"].as_array().is_some_and(|names| names.iter().any(|required| required == name))
}

fn fold(name: &str) -> String {
    name.chars().filter(|character| character.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(arguments: &Value, expect: &str, notes: usize) {
        let schema = json!({"type": "object", "required": ["filepath"], "$defs": {"place": {"type": "object",
        "required": ["city"], "properties": {"city": {"type": "string"}, "zoom": {"type": "integer"}}}},
        "properties": {
            "filepath": {"type": "string"},
            "sheet_name": {"type": "string"},
            "rows": {"type": "array", "items": {"type": "integer"}},
            "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "exact": {"type": "boolean"},
            "place": {"$ref": "#/$defs/place"},
            "mode": {"type": "string", "enum": ["read_only", "write"]},
            "free": {},
        }});
        let coerced = coerce(&RawJson::from(schema), &RawJson::from(arguments.clone()));
        let (text, count) = match &coerced {
            Some(coerced) => (coerced.arguments.get().to_owned(), coerced.notes.len()),
            None => (arguments.to_string(), 0),
        };
        assert_eq!((text.as_str(), count), (expect, notes), "{arguments}");
    }

    #[test]
    fn coerces_unambiguous_deviations_and_reports_them() {
        check(&json!({"filepath": "a"}), r#"{"filepath":"a"}"#, 0);
        check(&json!({"file_path": "a", "sheetName": "S"}), r#"{"filepath":"a","sheet_name":"S"}"#, 2);
        check(&json!({"file": "a"}), r#"{"filepath":"a"}"#, 1);
        check(&json!({"filepath": "a", "limit": "5"}), r#"{"filepath":"a","limit":5}"#, 1);
        check(&json!({"filepath": "a", "exact": "True"}), r#"{"filepath":"a","exact":true}"#, 1);
        check(&json!({"filepath": "a", "rows": 3}), r#"{"filepath":"a","rows":[3]}"#, 1);
        check(&json!({"filepath": "a", "rows": "[1, 2]"}), r#"{"filepath":"a","rows":[1, 2]}"#, 1);
        check(&json!({"filepath": "a", "rows": ["1", 2]}), r#"{"filepath":"a","rows":[1,2]}"#, 1);
        check(
            &json!({"filepath": "a", "place": "{\"city\": \"Kyoto\", \"zoom\": \"3\"}"}),
            r#"{"filepath":"a","place":{"city":"Kyoto","zoom":3}}"#,
            2,
        );
        check(&json!({"filepath": 7}), r#"{"filepath":"7"}"#, 1);
        check(&json!({"filepath": "a", "mode": "Read Only"}), r#"{"filepath":"a","mode":"read_only"}"#, 1);
        check(&json!({"filepath": "a", "sheet_name": null}), r#"{"filepath":"a"}"#, 1);
        check(&json!("{\"filepath\": \"a\"}"), r#"{"filepath":"a"}"#, 1);
    }

    #[test]
    fn does_not_coerce_ambiguous_or_missing_values() {
        check(&json!({}), "{}", 0);
        check(&json!({"sheet_name": "S"}), r#"{"sheet_name":"S"}"#, 0);
        check(&json!({"filepath": "a", "limit": "many"}), r#"{"filepath":"a","limit":"many"}"#, 0);
        check(&json!({"filepath": "a", "exact": "yes"}), r#"{"filepath":"a","exact":"yes"}"#, 0);
        check(&json!({"filepath": "a", "limit": null}), r#"{"filepath":"a","limit":null}"#, 0);
        // Two arguments match one parameter: ambiguous.
        check(&json!({"file_path": "a", "filePath": "b"}), r#"{"file_path":"a","filePath":"b"}"#, 0);
        check(&json!({"filepath": "a", "free": "5"}), r#"{"filepath":"a","free":"5"}"#, 0);
        check(&json!({"filepath": "a", "mode": "delete"}), r#"{"filepath":"a","mode":"delete"}"#, 0);
    }

    #[test]
    fn large_numbers_keep_their_digits() {
        let schema =
            RawJson::from(json!({"properties": {"n": {"type": "integer"}, "m": {"type": "integer"}}}));
        let input =
            RawJson::parse(r#"{"n": 123456789012345678901234567890, "m": "98765432109876543210987"}"#)
                .unwrap();
        let coerced = coerce(&schema, &input).unwrap();
        assert_eq!(
            coerced.arguments.get(),
            r#"{"n":123456789012345678901234567890,"m":98765432109876543210987}"#
        );
    }
}
