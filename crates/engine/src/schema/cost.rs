//! How much work a schema can make of one value: references that double at every step would keep a validator busy
//! for ever, so they are counted before one is built.

use std::collections::HashMap;

use serde_json::Value;

/// More steps than this for one value, and the schema is refused.
const MAX_STEPS: u64 = 100_000;
/// Keywords whose schemas all look at the same value.
const IN_PLACE_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const IN_PLACE: [&str; 4] = ["not", "if", "then", "else"];

/// Whether any part of the schema can make too much work of one value.
pub(crate) fn is_explosive(schema: &Value) -> bool {
    // Without references a schema is as large as it is written.
    let mut counter = Counter { root: schema, known: HashMap::new() };
    schema.to_string().contains("\"$ref\"") && counter.any_explosive(schema)
}

struct Counter<'a> {
    root: &'a Value,
    /// Steps of a reference's target; 0 while it is being counted, so that a circle ends.
    known: HashMap<&'a str, u64>,
}

impl<'a> Counter<'a> {
    fn any_explosive(&mut self, schema: &'a Value) -> bool {
        match schema {
            Value::Object(members) => {
                self.steps(schema) > MAX_STEPS || members.values().any(|value| self.any_explosive(value))
            }
            Value::Array(items) => items.iter().any(|item| self.any_explosive(item)),
            _ => false,
        }
    }

    fn steps(&mut self, schema: &'a Value) -> u64 {
        let Value::Object(members) = schema else { return 1 };
        let mut steps = 1_u64;
        for key in IN_PLACE_LISTS {
            for branch in members.get(key).and_then(Value::as_array).into_iter().flatten() {
                steps = steps.saturating_add(self.steps(branch));
            }
        }
        for key in IN_PLACE {
            if let Some(branch) = members.get(key) {
                steps = steps.saturating_add(self.steps(branch));
            }
        }
        if let Some(pointer) =
            members.get("$ref").and_then(Value::as_str).and_then(|link| link.strip_prefix('#'))
        {
            steps = steps.saturating_add(self.target(pointer));
        }
        steps
    }

    fn target(&mut self, pointer: &'a str) -> u64 {
        if let Some(steps) = self.known.get(pointer) {
            return *steps;
        }
        let Some(target) = self.root.pointer(pointer) else { return 1 };
        self.known.insert(pointer, 0);
        let steps = self.steps(target);
        self.known.insert(pointer, steps);
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn doubling(times: usize) -> Value {
        let mut definitions = json!({"a0": {"type": "object"}});
        for n in 1..=times {
            let link = format!("#/$defs/a{}", n - 1);
            definitions[format!("a{n}")] = json!({"allOf": [{"$ref": link}, {"$ref": link}]});
        }
        json!({"$ref": format!("#/$defs/a{times}"), "$defs": definitions})
    }

    #[test]
    fn doubling_references_are_found_and_others_let_through() {
        assert!(is_explosive(&doubling(40)));
        assert!(!is_explosive(&doubling(5)));
        let tree = json!({"$ref": "#/$defs/n", "$defs": {"n": {"properties": {"l": {"$ref": "#/$defs/n"}, "r": {"$ref": "#/$defs/n"}}}}});
        assert!(!is_explosive(&tree));
        let circle = json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}}});
        assert!(!is_explosive(&circle));
    }
}
