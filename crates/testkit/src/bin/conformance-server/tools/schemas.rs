//! Tools for tests of schemas: keywords of JSON Schema 2020-12, and an argument that is sent as a header.

use serde_json::{Value, json};

use super::{Arguments, Fixture, done, text_content};

pub(super) const FIXTURES: &[Fixture] = &[
    Fixture {
        name: "json_schema_2020_12_tool",
        description: "Has a schema with what came with JSON Schema 2020-12",
        arguments: Arguments::Schema(contact),
        step: |exchange| done(text_content(Value::Object(exchange.arguments.clone()).to_string())),
    },
    Fixture {
        name: "test_custom_headers",
        description: "Has an argument that is also sent as a header",
        arguments: Arguments::Schema(region),
        step: |exchange| done(text_content(format!("region: {}", exchange.text("region")?))),
    },
];

fn contact() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            },
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}

fn region() -> Value {
    json!({
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
        "required": ["region"],
    })
}
