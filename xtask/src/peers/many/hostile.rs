//! Tool definitions that strict clients reject: a fixed set, and random combinations of them.
use serde_json::{Value, json};

/// Number of random combinations, which follow the fixed set.
pub(super) const RANDOM_DEFINITIONS: usize = 40;
/// Maximum number of oddities in one definition.
const MAX_ODDITIES: u64 = 3;

/// The hub rejects a response that is nested deeper than 128 levels as a whole.
const MAX_DEPTH: usize = 100;

/// The hostile definitions for this seed.
pub(super) fn definitions(seed: u64) -> Vec<Value> {
    let mut random = Random(seed | 1);
    let mut tools = Vec::new();
    let fixed = fixed();
    tools.extend(
        fixed.iter().enumerate().map(|(index, malformed)| tool(&format!("odd_{index}"), &[malformed])),
    );
    for index in 0..RANDOM_DEFINITIONS {
        let count = 1 + random.below(MAX_ODDITIES);
        let picks: Vec<&Value> =
            (0..count).map(|_| &fixed[random.below(fixed.len() as u64) as usize]).collect();
        tools.push(tool(&format!("drawn_{index}"), &picks));
    }
    tools
}

/// A valid definition in which these members are replaced.
fn tool(name: &str, malformed: &[&Value]) -> Value {
    let mut tool = json!({"name": name, "description": name, "inputSchema": {"type": "object"}});
    for (key, value) in malformed.iter().filter_map(|malformed| malformed.as_object()).flatten() {
        tool[key] = value.clone();
    }
    tool
}

fn fixed() -> Vec<Value> {
    let input = |schema: Value| json!({ "inputSchema": schema });
    let output = |schema: Value| json!({ "outputSchema": schema });
    let deep =
        (0..MAX_DEPTH).fold(json!({"type": "string"}), |inner, _| json!({"type": "array", "items": inner}));
    vec![
        // Input schemas.
        input(Value::Null),
        input(json!(true)),
        input(json!("object")),
        input(json!({})),
        input(json!({"properties": {"a": {"type": "string"}}})),
        input(json!({"type": "string"})),
        input(json!({"type": ["object", "null"]})),
        input(json!({"type": "object", "properties": {"a": true}})),
        input(json!({"type": "object", "properties": {"a": "string"}})),
        input(json!({"type": "object", "properties": []})),
        input(json!({"type": "object", "required": "a"})),
        input(json!({"type": "object", "required": null})),
        input(json!({"type": "object", "properties": {"a": {"type": "any"}}})),
        input(json!({"type": "object", "properties": {"a": {"type": "array"}}})),
        input(json!({"type": "object", "properties": {"a": {"enum": []}}})),
        input(
            json!({"type": "object", "properties": {"a": {"type": ["string", "null"]}, "b": {"const": 1}}}),
        ),
        input(json!({"type": "object", "properties": {"a": {"type": "integer", "format": "uint8"}}})),
        input(
            json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": ["string", "null"]}}}}),
        ),
        input(
            json!({"type": "object", "properties": {"a": {"anyOf": [{"minLength": 1}, {"type": ["null", "boolean"]}]}}}),
        ),
        input(json!({"type": "object", "properties": {"": {"type": "string"}, "a b": {}, "$": {}}})),
        input(json!({"type": "object", "properties": {"a": {"pattern": "("}}})),
        input(json!({"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}})),
        input(json!({"type": "object", "properties": {"a": {"$ref": "https://example.invalid/x"}}})),
        input(json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}},
            "$defs": {"x": {"$ref": "#/$defs/y"}, "y": {"$ref": "#/$defs/x"}}})),
        input(json!({"type": "object", "properties": {"a": {"$ref": "#"}}})),
        input(json!({"type": "object", "properties": {"a": deep}})),
        // Output schemas.
        output(json!({"type": "array"})),
        output(json!({"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}})),
        output(json!({"type": "object", "$ref": "https://example.invalid/x"})),
        output(json!({"type": "object", "properties": {"a": {"pattern": "("}}})),
        output(json!({"type": "object", "properties": {"a": {"type": "any"}}})),
        output(json!({"$id": "same", "type": "object"})),
        output(json!({"$id": "same", "type": "object", "title": "x"})),
        // Descriptions and titles.
        json!({"description": "long ".repeat(200_000)}),
        json!({"description": ["a"]}),
        json!({"title": 3, "description": null}),
        // Names.
        json!({"name": "same name"}),
        json!({"name": "same_name"}),
        json!({"name": ""}),
        json!({"name": 3}),
        json!({"name": "odd/\u{fc}{}<>\u{202e}"}),
        json!({"name": "odd_".repeat(100)}),
        // Annotations and other members.
        json!({"annotations": {"readOnlyHint": "yes", "destructiveHint": null, "title": {}}}),
        json!({"annotations": []}),
        json!({"icons": [{"src": 3}, "x"]}),
        json!({"_meta": "x", "execution": {"taskSupport": "maybe"}}),
    ]
}

/// xorshift64, deterministic for a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}
