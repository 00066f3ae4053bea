//! The types of arguments, in a form that all frameworks read. Frameworks that build a type for each argument support one
//! `type`, an `enum`, a reference or a union; they fail on the whole list for a list of types, an argument without a
//! type, or an unknown format. An equivalent schema avoids that: `"type": ["string", "null"]` becomes the union of both
//! types, and an argument without a type becomes the union of all types.

use serde_json::{Map, Value, json};
use toolhub_core::schema_keywords::edit_schemas;

/// All types; a `number` may be an integer.
const ALL: [&str; 6] = ["string", "number", "boolean", "object", "array", "null"];
/// Keywords that determine the type without `type`.
const TYPE_KEYWORDS: [&str; 5] = ["$ref", "anyOf", "oneOf", "allOf", "enum"];
/// Formats that are widely supported. Any other format only describes the value.
const FORMATS: [&str; 17] = [
    "date-time",
    "date",
    "time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uuid",
    "int32",
    "int64",
    "float",
    "double",
    "byte",
    "binary",
    "password",
];

/// States the types of properties and items at every depth of an input schema. The schema accepts the same values as
/// before. Returns whether it has changed.
pub(super) fn normalize_types(root: &mut Value) -> bool {
    let mut changed = false;
    edit_schemas(root, &mut |members| {
        if let Some(Value::Object(properties)) = members.get_mut("properties") {
            for part in properties.values_mut().filter_map(Value::as_object_mut) {
                changed |= normalize_type(part) | remove_format(part);
            }
        }
        if let Some(Value::Object(items)) = members.get_mut("items")
            && items.get("type").is_some_and(Value::is_array)
        {
            changed |= normalize_type(items);
        }
    });
    changed
}

fn normalize_type(part: &mut Map<String, Value>) -> bool {
    let mut changed = false;
    for key in ["anyOf", "oneOf"] {
        let own_type = part.get("type").and_then(Value::as_str).map(str::to_owned);
        if let Some(Value::Array(members)) = part.get_mut(key) {
            let normalized: Vec<Value> =
                members.iter().flat_map(|member| alternatives(member, own_type.as_deref())).collect();
            changed |= normalized != *members;
            *members = normalized;
        }
    }
    if let Some(Value::Array(kinds)) = part.get("type") {
        let union = union_of(&names(kinds));
        match union.as_slice() {
            [only] => {
                part.insert("type".to_owned(), only["type"].clone());
            }
            // Two unions in one schema would need a further level.
            _ if part.contains_key("anyOf") => return changed,
            _ => {
                part.remove("type");
                part.insert("anyOf".to_owned(), union.into());
            }
        }
        return true;
    }
    if part.contains_key("type") || TYPE_KEYWORDS.iter().any(|key| part.contains_key(*key)) {
        return changed;
    }
    match part.get("const").map(type_of) {
        Some(kind) => part.insert("type".to_owned(), kind.into()),
        None => part.insert("anyOf".to_owned(), union_of(&ALL).into()),
    };
    true
}

/// Splits a member of a union into members with one type each. The type of the union itself applies to its members.
fn alternatives(member: &Value, outer_type: Option<&str>) -> Vec<Value> {
    let Value::Object(normalized) = member else { return vec![member.clone()] };
    let kinds = match (normalized.get("type"), outer_type) {
        (Some(Value::Array(kinds)), _) => names(kinds),
        (Some(_), _) => return vec![member.clone()],
        (None, _) if TYPE_KEYWORDS.iter().any(|key| normalized.contains_key(*key)) => {
            return vec![member.clone()];
        }
        (None, Some(outer_type)) => vec![outer_type],
        (None, None) => match normalized.get("const") {
            Some(value) => vec![type_of(value)],
            None => ALL.to_vec(),
        },
    };
    let with = |kind: &str| {
        let mut alternative = normalized.clone();
        alternative.insert("type".to_owned(), kind.into());
        Value::Object(alternative)
    };
    without_subtypes(&kinds).into_iter().map(with).collect()
}

fn names(kinds: &[Value]) -> Vec<&str> {
    kinds.iter().filter_map(Value::as_str).collect()
}

/// Returns the types without those that another one includes, so that exactly one of them matches a value.
fn without_subtypes<'a>(kinds: &[&'a str]) -> Vec<&'a str> {
    kinds.iter().copied().filter(|kind| *kind != "integer" || !kinds.contains(&"number")).collect()
}

fn union_of(kinds: &[&str]) -> Vec<Value> {
    without_subtypes(kinds).into_iter().map(|kind| json!({"type": kind})).collect()
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn remove_format(part: &mut Map<String, Value>) -> bool {
    let unknown = part.get("format").and_then(Value::as_str).is_some_and(|format| !FORMATS.contains(&format));
    if unknown {
        part.remove("format");
    }
    unknown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalized(part: Value) -> Value {
        let mut root = json!({"type": "object", "properties": {}});
        root["properties"]["a"] = part;
        normalize_types(&mut root);
        assert!(!normalize_types(&mut root.clone()), "a second time changes nothing: {root}");
        root["properties"]["a"].take()
    }

    #[test]
    fn converts_type_list_to_union() {
        assert_eq!(
            normalized(json!({"type": ["string", "null"], "minLength": 1})),
            json!({"minLength": 1, "anyOf": [{"type": "string"}, {"type": "null"}]})
        );
        assert_eq!(normalized(json!({"type": ["string"]})), json!({"type": "string"}));
        assert_eq!(normalized(json!({"type": ["integer", "number"]})), json!({"type": "number"}));
        let items = json!({"type": "array", "items": {"type": ["string", "null"]}});
        let union = json!([{"type": "string"}, {"type": "null"}]);
        assert_eq!(normalized(items)["items"], json!({"anyOf": union}));
    }

    #[test]
    fn converts_untyped_schema_to_union_of_all_types() {
        let all = union_of(&ALL);
        assert_eq!(normalized(json!({"description": "any"})), json!({"description": "any", "anyOf": all}));
        let nested = normalized(json!({"type": "object", "properties": {"b": {}}}));
        assert_eq!(nested["properties"]["b"], json!({"anyOf": all}));
        assert_eq!(normalized(json!({"const": 3})), json!({"const": 3, "type": "number"}));
    }

    #[test]
    fn splits_union_members_by_type() {
        assert_eq!(
            normalized(json!({"type": "object", "anyOf": [{"required": ["x"]}, {"required": ["y"]}]}))["anyOf"],
            json!([{"type": "object", "required": ["x"]}, {"type": "object", "required": ["y"]}])
        );
        assert_eq!(
            normalized(json!({"oneOf": [{"type": ["string", "integer"]}, {"$ref": "#/$defs/x"}]}))["oneOf"],
            json!([{"type": "string"}, {"type": "integer"}, {"$ref": "#/$defs/x"}])
        );
    }

    #[test]
    fn removes_uncommon_formats_only() {
        assert_eq!(normalized(json!({"type": "integer", "format": "uint8"})), json!({"type": "integer"}));
        for unchanged in [
            json!({"type": "string", "format": "date-time"}),
            json!({"enum": ["a", 1]}),
            json!({"$ref": "#/$defs/x"}),
            json!({"type": "array", "items": {}}),
            json!({"allOf": [{"$ref": "#/$defs/x"}]}),
        ] {
            assert_eq!(normalized(unchanged.clone()), unchanged);
        }
        let mut data = json!({"type": "object", "default": {"properties": {"b": {}}}});
        assert!(!normalize_types(&mut data), "a default is data");
    }
}
