//! The values that a JSON Schema defines for an argument: enums, constants and booleans.

use serde_json::Value;

/// The maximum number of references and alternatives that are followed; a schema may be recursive.
const MAX_FOLLOWED_SCHEMAS: usize = 64;

/// Whether no shell interprets the character.
pub(crate) fn is_plain_character(character: char) -> bool {
    character.is_alphanumeric()
        || matches!(character, '_' | '-' | '.' | '/' | ':' | '=' | '@' | '+' | ',' | '%')
}

/// Whether a shell passes the word unchanged, without expansion.
pub(crate) fn is_plain_word(word: &str) -> bool {
    !word.is_empty() && !word.starts_with('-') && word.chars().all(is_plain_character)
}

/// The values of property `key`, in schema order.
pub(crate) fn values_of(root: &Value, key: &str) -> Vec<String> {
    let mut values = Vec::new();
    let mut pending = vec![&root["properties"][key]];
    let mut steps = 0;
    while let Some(schema) = pending.pop() {
        steps += 1;
        if steps > MAX_FOLLOWED_SCHEMAS {
            break;
        }
        if let Some(pointer) = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#')) {
            pending.extend(root.pointer(pointer));
        }
        let named = schema["enum"].as_array().into_iter().flatten().chain(schema.get("const"));
        values.extend(named.filter_map(scalar));
        if schema["type"] == "boolean" {
            values.extend(["true", "false"].map(str::to_owned));
        }
        for alternatives in ["anyOf", "oneOf", "allOf"] {
            pending.extend(schema[alternatives].as_array().into_iter().flatten().rev());
        }
        pending.extend(schema.get("items"));
    }
    values
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn completes_values_of_enums_references_and_alternatives() {
        let schema = json!({
            "$defs": {"Mode": {"enum": ["fast", "safe"]}, "Loop": {"$ref": "#/$defs/Loop"}},
            "properties": {
                "mode": {"anyOf": [{"$ref": "#/$defs/Mode"}, {"type": "null"}]},
                "level": {"enum": [1, 2, null]},
                "on": {"type": "boolean"},
                "tags": {"type": "array", "items": {"enum": ["a", "b"]}},
                "loop": {"$ref": "#/$defs/Loop"},
                "text": {"type": "string"},
            }
        });
        assert_eq!(values_of(&schema, "mode"), ["fast", "safe"]);
        assert_eq!(values_of(&schema, "level"), ["1", "2"]);
        assert_eq!(values_of(&schema, "on"), ["true", "false"]);
        assert_eq!(values_of(&schema, "tags"), ["a", "b"]);
        assert!(["loop", "text", "none"].iter().all(|key| values_of(&schema, key).is_empty()));
    }

    #[test]
    fn words_that_a_shell_would_expand_are_not_plain() {
        for word in ["$(reboot)", "`x`", "a b", "a;b", "a\nb", "\u{1b}[2J", "~", "*", "--flag", "a'b", ""] {
            assert!(!is_plain_word(word), "{word:?}");
        }
        assert!(["read_sheet", "excel.read-1", "key=值", "a/b:c"].iter().all(|word| is_plain_word(word)));
    }
}
