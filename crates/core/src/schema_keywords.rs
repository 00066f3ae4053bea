//! The keywords of JSON Schema and their valid values. Servers write schemas by hand, so that a keyword may have a
//! value of a wrong type (`"minimum": "0"`, `"required": true`), which parsers reject in different ways. Such a
//! keyword is removed: the schema then accepts more, and the server checks its arguments itself.

use serde_json::{Map, Value};

/// The types of JSON Schema.
pub const TYPES: [&str; 7] = ["object", "array", "string", "number", "integer", "boolean", "null"];
/// Keywords whose members are schemas.
const MAPS: [&str; 5] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];
/// Keywords that are one schema.
const ONE: [&str; 11] = [
    "items",
    "additionalProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
    "additionalItems",
];
/// Keywords that are lists of schemas.
const MANY: [&str; 5] = ["allOf", "anyOf", "oneOf", "prefixItems", "items"];

/// The direct subschemas of a schema, each with its JSON pointer. Data values (`default`, `enum`) are not schemas.
pub fn subschemas(schema: &Value) -> Vec<(String, &Value)> {
    let mut schemas = Vec::new();
    let Value::Object(members) = schema else { return schemas };
    for (key, value) in members {
        match value {
            Value::Object(inner) if MAPS.contains(&key.as_str()) => {
                schemas.extend(
                    inner.iter().map(|(name, part)| (format!("/{}/{}", escaped(key), escaped(name)), part)),
                );
            }
            Value::Object(_) if ONE.contains(&key.as_str()) => schemas.push((format!("/{key}"), value)),
            Value::Array(list) if MANY.contains(&key.as_str()) => {
                schemas
                    .extend(list.iter().enumerate().map(|(index, part)| (format!("/{key}/{index}"), part)));
            }
            _ => {}
        }
    }
    schemas
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Calls `edit` for every schema in a schema, the outer ones first. The tree is no deeper than
/// [`crate::json::MAX_DEPTH`].
pub fn edit_schemas(schema: &mut Value, edit: &mut impl FnMut(&mut Map<String, Value>)) {
    let Value::Object(members) = schema else { return };
    edit(members);
    for (key, value) in members.iter_mut() {
        match value {
            Value::Object(inner) if MAPS.contains(&key.as_str()) => {
                inner.values_mut().for_each(|part| edit_schemas(part, edit));
            }
            Value::Object(_) if ONE.contains(&key.as_str()) => edit_schemas(value, edit),
            Value::Array(list) if MANY.contains(&key.as_str()) => {
                list.iter_mut().for_each(|part| edit_schemas(part, edit));
            }
            _ => {}
        }
    }
}

/// Removes every keyword with an invalid value, at any depth. Returns whether there was one.
pub fn remove_ill_formed(schema: &mut Value) -> bool {
    // In draft 4 `exclusiveMinimum` and `exclusiveMaximum` are booleans.
    let draft_4 =
        schema.get("$schema").and_then(Value::as_str).is_some_and(|name| name.contains("/draft-04/"));
    let mut changed = false;
    edit_schemas(schema, &mut |members| {
        let before = members.len();
        // OpenAPI's `nullable` extends a type.
        let has_type = members.get("type").is_some_and(|kind| is_well_formed("type", kind));
        members.retain(|key, value| match key.as_str() {
            "exclusiveMinimum" | "exclusiveMaximum" if draft_4 => value.is_boolean(),
            "nullable" => value.is_boolean() && has_type,
            _ => is_well_formed(key, value),
        });
        changed |= members.len() != before;
    });
    changed
}

/// Whether a keyword may have this value; unknown keywords accept every value.
fn is_well_formed(key: &str, value: &Value) -> bool {
    let is_schema = |value: &Value| value.is_object() || value.is_boolean();
    let are_names = |value: &Value| value.as_array().is_some_and(|names| names.iter().all(Value::is_string));
    let all_members =
        |fits: &dyn Fn(&Value) -> bool| value.as_object().is_some_and(|object| object.values().all(fits));
    let are_schemas = || value.as_array().is_some_and(|list| !list.is_empty() && list.iter().all(is_schema));
    match key {
        "$schema" | "$id" | "$ref" | "$anchor" | "$dynamicRef" | "$dynamicAnchor" | "$comment" | "title"
        | "description" | "pattern" | "format" | "contentEncoding" | "contentMediaType" => value.is_string(),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => value.is_number(),
        "multipleOf" => value.as_f64().is_some_and(|number| number > 0.0),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
        | "minContains" | "maxContains" => is_count(value),
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => value.is_boolean(),
        "required" => are_names(value),
        "enum" => value.as_array().is_some_and(|values| !values.is_empty()),
        "examples" => value.is_array(),
        "type" => is_type(value),
        "items" => is_schema(value) || are_schemas(),
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => are_schemas(),
        "dependentRequired" => all_members(&are_names),
        "dependencies" => all_members(&|member| is_schema(member) || are_names(member)),
        _ if MAPS.contains(&key) => all_members(&is_schema),
        _ if ONE.contains(&key) => is_schema(value),
        _ => true,
    }
}

/// A non-negative integer, also in the form `2.0`.
fn is_count(value: &Value) -> bool {
    value.as_f64().is_some_and(|number| number >= 0.0 && number.fract() == 0.0)
}

fn is_type(value: &Value) -> bool {
    let is_name = |value: &Value| value.as_str().is_some_and(|name| TYPES.contains(&name));
    match value {
        Value::Array(names) => {
            let repeated = names.iter().enumerate().any(|(index, name)| names[..index].contains(name));
            !names.is_empty() && names.iter().all(is_name) && !repeated
        }
        _ => is_name(value),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn removes_keywords_of_a_wrong_type_and_nothing_else() {
        for (key, value) in [
            ("$schema", json!(5)),
            ("minimum", json!("0")),
            ("multipleOf", json!(0)),
            ("maxLength", json!(-1)),
            ("minItems", json!(1.5)),
            ("required", json!(true)),
            ("required", json!([1])),
            ("enum", json!([])),
            ("type", json!("any")),
            ("type", json!(["string", "any"])),
            ("type", json!(["string", "string"])),
            ("type", json!([])),
            ("items", json!(null)),
            ("items", json!([])),
            ("anyOf", json!([1])),
            ("not", json!("x")),
            ("additionalProperties", json!(null)),
            ("exclusiveMinimum", json!(true)),
            ("nullable", json!(true)),
            ("dependentRequired", json!({"a": "b"})),
            ("$defs", json!({"a": 1})),
        ] {
            let mut schema = json!({"properties": {"a": {"description": "kept", key: value}}});
            assert!(remove_ill_formed(&mut schema), "{key}");
            assert_eq!(schema, json!({"properties": {"a": {"description": "kept"}}}), "{key}");
        }
        for mut good in [
            json!({"type": ["string", "null"], "nullable": true, "maxLength": 3.0, "x-unknown": [1]}),
            json!({"properties": {"minimum": {"type": "number"}, "required": {"type": "boolean"}}}),
            json!({"default": {"type": "any", "enum": []}, "enum": [{"minimum": "0"}], "const": {"items": null}}),
            json!({"$schema": "http://json-schema.org/draft-04/schema#", "items": [{"exclusiveMinimum": true}]}),
            json!({"dependencies": {"a": ["b"], "c": {"type": "object"}}, "items": [true, {}]}),
            json!(true),
        ] {
            let before = good.clone();
            assert!(!remove_ill_formed(&mut good), "{before}");
            assert_eq!(good, before);
        }
    }
}
