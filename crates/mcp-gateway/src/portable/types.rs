//! The types of arguments, in a form that all frameworks read. Frameworks that build a type for each argument support one
//! `type`, an `enum`, a reference or a union; they fail on the whole list for a list of types, an argument without a
//! type, or an unknown format. An equivalent schema avoids that: `"type": ["string", "null"]` becomes the union of both
//! types, and an argument without a type becomes the union of all types.

use serde_json::{Map, Value, json};
use toolhub_core::schema_keywords::edit_schemas;

/// All types; a `number` may be an integer.
const ALL: [&str; 6] = ["string", "number", "boolean", "object", "array", "null"];
/// Keywords that determine the type without `type`.
const STATING: [&str; 5] = ["$ref", "anyOf", "oneOf", "allOf", "enum"];
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
pub(super) fn state(root: &mut Value) -> bool {
    let mut changed = false;
    edit_schemas(root, &mut |members| {
        if let Some(Value::Object(properties)) = members.get_mut("properties") {
            for part in properties.values_mut().filter_map(Value::as_object_mut) {
                changed |= state_type(part) | remove_format(part);
            }
        }
        if let Some(Value::Object(items)) = members.get_mut("items")
            && items.get("type").is_some_and(Value::is_array)
        {
            changed |= state_type(items);
        }
    });
    changed
}

fn state_type(part: &mut Map<String, Value>) -> bool {
    let mut changed = false;
    for key in ["anyOf", "oneOf"] {
        let own = part.get("type").and_then(Value::as_str).map(str::to_owned);
        if let Some(Value::Array(members)) = part.get_mut(key) {
            let stated: Vec<Value> =
                members.iter().flat_map(|one| alternatives(one, own.as_deref())).collect();
            changed |= stated != *members;
            *members = stated;
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
    if part.contains_key("type") || STATING.iter().any(|key| part.contains_key(*key)) {
        return changed;
    }
    match part.get("const").map(type_of) {
        Some(kind) => part.insert("type".to_owned(), kind.into()),
        None => part.insert("anyOf".to_owned(), union_of(&ALL).into()),
    };
    true
}

/// Splits a member of a union into members with one type each. The type of the union itself applies to its members.
fn alternatives(member: &Value, own: Option<&str>) -> Vec<Value> {
    let Value::Object(stated) = member else { return vec![member.clone()] };
    let kinds = match (stated.get("type"), own) {
        (Some(Value::Array(kinds)), _) => names(kinds),
        (Some(_), _) => return vec![member.clone()],
        (None, _) if STATING.iter().any(|key| stated.contains_key(*key)) => return vec![member.clone()],
        (None, Some(own)) => vec![own],
        (None, None) => match stated.get("const") {
            Some(value) => vec![type_of(value)],
            None => ALL.to_vec(),
        },
    };
    let with = |kind: &str| {
        let mut one = stated.clone();
        one.insert("type".to_owned(), kind.into());
        Value::Object(one)
    };
    apart(&kinds).into_iter().map(with).collect()
}

fn names(kinds: &[Value]) -> Vec<&str> {
    kinds.iter().filter_map(Value::as_str).collect()
}

/// Returns the types without those that another one includes, so that exactly one of them matches a value.
fn apart<'a>(kinds: &[&'a str]) -> Vec<&'a str> {
    kinds.iter().copied().filter(|kind| *kind != "integer" || !kinds.contains(&"number")).collect()
}

fn union_of(kinds: &[&str]) -> Vec<Value> {
    apart(kinds).into_iter().map(|kind| json!({"type": kind})).collect()
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

    fn stated(part: Value) -> Value {
        let mut root = json!({"type": "object", "properties": {}});
        root["properties"]["a"] = part;
        state(&mut root);
        assert!(!state(&mut root.clone()), "a second time changes nothing: {root}");
        root["properties"]["a"].take()
    }

    #[test]
    fn a_list_of_types_becomes_a_union() {
        assert_eq!(
            stated(json!({"type": ["string", "null"], "minLength": 1})),
            json!({"minLength": 1, "anyOf": [{"type": "string"}, {"type": "null"}]})
        );
        assert_eq!(stated(json!({"type": ["string"]})), json!({"type": "string"}));
        assert_eq!(stated(json!({"type": ["integer", "number"]})), json!({"type": "number"}));
        let items = json!({"type": "array", "items": {"type": ["string", "null"]}});
        let union = json!([{"type": "string"}, {"type": "null"}]);
        assert_eq!(stated(items)["items"], json!({"anyOf": union}));
    }

    #[test]
    fn what_accepts_everything_is_the_union_of_all_types() {
        let all = union_of(&ALL);
        assert_eq!(stated(json!({"description": "any"})), json!({"description": "any", "anyOf": all}));
        let nested = stated(json!({"type": "object", "properties": {"b": {}}}));
        assert_eq!(nested["properties"]["b"], json!({"anyOf": all}));
        assert_eq!(stated(json!({"const": 3})), json!({"const": 3, "type": "number"}));
    }

    #[test]
    fn members_of_a_union_have_one_type_each() {
        assert_eq!(
            stated(json!({"type": "object", "anyOf": [{"required": ["x"]}, {"required": ["y"]}]}))["anyOf"],
            json!([{"type": "object", "required": ["x"]}, {"type": "object", "required": ["y"]}])
        );
        assert_eq!(
            stated(json!({"oneOf": [{"type": ["string", "integer"]}, {"$ref": "#/$defs/x"}]}))["oneOf"],
            json!([{"type": "string"}, {"type": "integer"}, {"$ref": "#/$defs/x"}])
        );
    }

    #[test]
    fn formats_that_few_know_are_removed_and_the_rest_is_kept() {
        assert_eq!(stated(json!({"type": "integer", "format": "uint8"})), json!({"type": "integer"}));
        for kept in [
            json!({"type": "string", "format": "date-time"}),
            json!({"enum": ["a", 1]}),
            json!({"$ref": "#/$defs/x"}),
            json!({"type": "array", "items": {}}),
            json!({"allOf": [{"$ref": "#/$defs/x"}]}),
        ] {
            assert_eq!(stated(kept.clone()), kept);
        }
        let mut data = json!({"type": "object", "default": {"properties": {"b": {}}}});
        assert!(!state(&mut data), "a default is data");
    }
}
