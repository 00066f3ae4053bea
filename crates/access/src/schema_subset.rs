//! The keywords of JSON Schema that a rule may use. A keyword that a validator ignores would let calls through that the
//! rule's author meant to exclude, so that every other keyword is an error.

use serde_json::Value;
use toolhub_core::lang::LocalizedText;

/// Keywords whose members are schemas.
pub(crate) const SCHEMA_MAPS: [&str; 2] = ["properties", "patternProperties"];
/// Keywords that are one schema.
pub(crate) const SCHEMAS: [&str; 8] =
    ["items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"];
/// Keywords that are lists of schemas.
pub(crate) const SCHEMA_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// Keywords that constrain a value by themselves, without other keywords of the same schema.
pub(crate) const ASSERTIONS: [&str; 18] = [
    "type",
    "enum",
    "const",
    "pattern",
    "format",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "required",
];
/// Keywords that describe a value and do not constrain it.
pub(crate) const ANNOTATIONS: [&str; 5] = ["title", "description", "$comment", "default", "examples"];

/// Checks the keywords of a rule's schema, at any depth. The values of the keywords are checked by the validator.
/// The schema is no deeper than [`toolhub_core::json::MAX_DEPTH`].
pub(crate) fn check(schema: &Value) -> Result<(), LocalizedText> {
    let Value::Object(members) = schema else { return Ok(()) };
    for (key, value) in members {
        let name = key.as_str();
        match value {
            Value::Object(schemas) if SCHEMA_MAPS.contains(&name) => schemas.values().try_for_each(check)?,
            Value::Array(schemas) if SCHEMA_LISTS.contains(&name) => schemas.iter().try_for_each(check)?,
            _ if SCHEMAS.contains(&name) => check(value)?,
            // A value of a wrong type is reported by the validator.
            _ if SCHEMA_MAPS.contains(&name) || SCHEMA_LISTS.contains(&name) => {}
            _ if ASSERTIONS.contains(&name) || ANNOTATIONS.contains(&name) => {}
            _ => return Err(unsupported(name)),
        }
        if matches!(name, "then" | "else") && !members.contains_key("if") {
            return Err(LocalizedText::new(
                format!("`{name}` has no effect without `if`"),
                format!("没有 `if` 时 `{name}` 不起作用"),
            ));
        }
    }
    Ok(())
}

fn unsupported(keyword: &str) -> LocalizedText {
    if matches!(keyword, "$ref" | "$dynamicRef" | "$defs" | "definitions" | "$id" | "$anchor") {
        return LocalizedText::new(
            format!("`{keyword}` is not supported in rules: write the schema out"),
            format!("规则不支持 `{keyword}`：请直接写出完整的 schema"),
        );
    }
    LocalizedText::new(
        format!("unknown keyword `{keyword}`: name arguments below `properties`"),
        format!("未知关键字 `{keyword}`：参数名请写在 `properties` 下"),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rejects_keywords_that_would_have_no_effect() {
        let reject = |schema: Value, keyword: &str| {
            let error = check(&schema).unwrap_err().to_string();
            assert!(error.contains(&format!("`{keyword}`")), "{error}");
        };
        reject(json!({"properties": {"path": {"patern": "^/data/"}}}), "patern");
        reject(json!({"path": {"pattern": "^/data/"}}), "path");
        reject(json!({"allOf": [{"anyOf": [{"$ref": "#/x"}]}]}), "$ref");
        reject(json!({"properties": {"a": {"items": {"additionalItems": false}}}}), "additionalItems");
        reject(json!({"then": {"required": ["a"]}}), "then");
        reject(json!({"contains": {"minContains": 2}}), "minContains");
        reject(json!({"unevaluatedProperties": false}), "unevaluatedProperties");
    }

    #[test]
    fn accepts_names_of_arguments_that_look_like_keywords() {
        let schema = json!({
            "properties": {"$ref": {"type": "string"}, "then": {"enum": [{"foo": 1}]}},
            "patternProperties": {"^x": {"default": {"bar": 1}}},
            "not": {"if": {"required": ["a"]}, "then": {"required": ["b"]}},
            "additionalProperties": false,
        });
        assert_eq!(check(&schema), Ok(()));
    }
}
