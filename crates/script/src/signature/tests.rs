//! Signatures of usual, large and hostile schemas.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn shape<'a>(input: &'a Value, output: Option<&'a Value>) -> ToolShape<'a> {
    ToolShape { server: Some("s"), name: "t", description: "", input, output }
}

/// The type of the arguments, without descriptions.
fn arguments(input: &Value) -> String {
    let text = signature(&shape(input, None), DEFAULT_BUDGET);
    text.strip_prefix("tools.s.t").unwrap().replacen(": Promise<any>", "", 1)
}

#[test]
fn shows_types_of_schemas() {
    for (schema, expect) in [
        (json!({}), "()"),
        (json!({ "type": "object" }), "()"),
        (json!({ "type": "object", "properties": {}, "additionalProperties": false }), "()"),
        (
            json!({ "properties": { "a": { "type": "string" }, "b-c": { "type": "integer" } }, "required": ["a"] }),
            "(args: { a: string; \"b-c\"?: number })",
        ),
        (
            json!({ "properties": { "a": { "enum": ["x", "y", 1, null] } } }),
            "(args?: { a?: \"x\" | \"y\" | 1 | null })",
        ),
        (json!({ "properties": { "a": { "const": "on" } }, "required": ["a"] }), "(args: { a: \"on\" })"),
        (json!({ "properties": { "a": { "type": ["string", "null"] } } }), "(args?: { a?: string | null })"),
        (
            json!({ "properties": { "a": { "type": "number", "nullable": true } } }),
            "(args?: { a?: number | null })",
        ),
        (
            json!({ "properties": { "a": { "type": "array", "items": { "type": "string" } } } }),
            "(args?: { a?: string[] })",
        ),
        (
            json!({ "properties": { "a": { "type": "array", "items": { "enum": [1, 2] } } } }),
            "(args?: { a?: (1 | 2)[] })",
        ),
        (json!({ "properties": { "a": { "type": "array" } } }), "(args?: { a?: unknown[] })"),
        (
            json!({ "properties": { "a": { "prefixItems": [{ "type": "number" }, { "type": "string" }], "items": false } } }),
            "(args?: { a?: [number, string] })",
        ),
        (
            json!({ "properties": { "a": { "items": [{ "type": "number" }], "additionalItems": { "type": "null" } } } }),
            "(args?: { a?: [number, ...null[]] })",
        ),
        (
            json!({ "properties": { "a": { "type": "object", "additionalProperties": { "type": "number" } } } }),
            "(args?: { a?: Record<string, number> })",
        ),
        (
            json!({ "properties": { "a": { "type": "object", "additionalProperties": true } } }),
            "(args?: { a?: Record<string, unknown> })",
        ),
        (
            json!({ "properties": { "a": { "properties": { "b": { "type": "string" } }, "additionalProperties": { "type": "number" } } } }),
            "(args?: { a?: { b?: string } & Record<string, number> })",
        ),
        (
            json!({ "properties": { "a": { "patternProperties": { "^x": { "type": "boolean" } } } } }),
            "(args?: { a?: Record<string, boolean> })",
        ),
        (
            json!({ "properties": { "a": { "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }] } } }),
            "(args?: { a?: string | string[] })",
        ),
        (
            json!({ "properties": { "a": { "allOf": [{ "$ref": "#/$defs/X" }, { "properties": { "c": { "type": "null" } } }] } },
            "$defs": { "X": { "type": "object", "properties": { "b": { "type": "string" } } } } }),
            "(args?: { a?: { b?: string } & { c?: null } })",
        ),
        (
            json!({ "properties": { "a": true, "b": false, "c": {} } }),
            "(args?: { a?: unknown; b?: never; c?: unknown })",
        ),
        (json!({ "properties": { "a": { "$ref": "http://example.com/x" } } }), "(args?: { a?: unknown })"),
        (
            json!({ "anyOf": [{ "properties": { "a": { "type": "string" } }, "required": ["a"] }, { "properties": { "b": { "type": "string" } }, "required": ["b"] }] }),
            "(args: { a: string } | { b: string })",
        ),
        (
            json!({ "properties": { "a": { "type": "string", "description": "a path", "default": "x" } } }),
            "(args?: { /** a path (default \"x\") */ a?: string })",
        ),
        (json!(true), "()"),
        (json!({ "properties": { "a": { "type": "file" } } }), "(args?: { a?: unknown })"),
        (json!({ "properties": 7, "required": "a", "type": 3 }), "()"),
    ] {
        assert_eq!(arguments(&schema), expect, "{schema}");
    }
}

#[test]
fn names_recursive_types() {
    let tree = json!({ "type": "object", "properties": { "root": { "$ref": "#/$defs/node" } }, "required": ["root"],
        "$defs": { "node": { "type": "object", "properties": {
            "name": { "type": "string" }, "children": { "type": "array", "items": { "$ref": "#/$defs/node" } } },
            "required": ["name"] } } });
    assert_eq!(
        signature(&shape(&tree, None), DEFAULT_BUDGET),
        "tools.s.t(args: { root: Node }): Promise<any>\ntype Node = { name: string; children?: Node[] };"
    );
    let itself = json!({ "type": "object", "properties": { "next": { "$ref": "#" } } });
    assert_eq!(
        signature(&shape(&itself, Some(&itself)), DEFAULT_BUDGET),
        "tools.s.t(args?: Type): Promise<Type>\ntype Type = { next?: Type };"
    );
    let other = json!({ "type": "object", "properties": { "before": { "$ref": "#" } } });
    assert_eq!(
        signature(&shape(&itself, Some(&other)), DEFAULT_BUDGET),
        "tools.s.t(args?: Type): Promise<OutputType>\ntype Type = { next?: Type };\ntype OutputType = { before?: OutputType };"
    );
    let pair = json!({ "$ref": "#/$defs/a", "$defs": {
        "a": { "properties": { "b": { "$ref": "#/$defs/b" } } }, "b": { "properties": { "a": { "$ref": "#/$defs/a" } } } } });
    assert_eq!(
        signature(&shape(&pair, None), DEFAULT_BUDGET),
        "tools.s.t(args: A): Promise<any>\ntype A = { b?: { a?: A } };"
    );
}

#[test]
fn shortens_large_schemas_step_by_step() {
    let properties: serde_json::Map<String, Value> = (0..40)
        .map(|n| {
            (format!("property_{n}"), json!({ "type": "string", "description": "a long description of it" }))
        })
        .collect();
    let schema = json!({ "type": "object", "properties": properties, "required": ["property_3"] });
    assert!(signature(&shape(&schema, None), 4_000).contains("a long description"));
    assert!(!signature(&shape(&schema, None), 1_500).contains("a long description"));
    for budget in [40, 80, 200, 1_000, 1_500, 4_000] {
        let text = signature(&shape(&schema, None), budget);
        assert!(text.chars().count() <= budget + "tools.s.t".len(), "{budget}: {text}");
    }
    let short = signature(&shape(&schema, None), 120);
    assert_eq!(short, "tools.s.t(args: { property_3: string; /* 39 more optional */ }): Promise<any>");
    assert_eq!(signature(&shape(&schema, None), 10), "tools.s.t(args: object): Promise<any>");
    let many: Vec<String> = (0..100).map(|n| format!("value{n}")).collect();
    let schema = json!({ "properties": { "a": { "enum": many } } });
    assert_eq!(
        arguments(&schema),
        "(args?: { a?: string /* 100 values: \"value0\", \"value1\", \"value2\", … */ })"
    );
}

#[test]
fn exponential_schemas_stay_small() {
    let mut definitions = serde_json::Map::new();
    for level in 0..30 {
        let next = json!({ "$ref": format!("#/$defs/d{}", level + 1) });
        definitions.insert(format!("d{level}"), json!({ "properties": { "a": next.clone(), "b": next } }));
    }
    definitions.insert("d30".to_owned(), json!({ "type": "string" }));
    let schema = json!({ "$ref": "#/$defs/d0", "$defs": definitions });
    assert!(signature(&shape(&schema, None), 1_000).len() < 1_100);
    let mut deep = json!({ "type": "string" });
    for _ in 0..100 {
        deep = json!({ "type": "array", "items": { "properties": { "a": deep } } });
    }
    assert!(signature(&shape(&deep, None), 1_000).len() < 1_100);
}

#[test]
fn declares_tools_by_server() {
    let read =
        json!({ "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"] });
    let node = json!({ "type": "object", "properties": { "Node": { "$ref": "#/$defs/Node" } },
        "$defs": { "Node": { "properties": { "next": { "$ref": "#/$defs/Node" }, "Node": { "const": "Node" } } } } });
    let rows = json!({ "type": "array", "items": { "type": "string" } });
    let tools = [
        ToolShape {
            server: Some("excel"),
            name: "read",
            description: "Reads\na sheet. */ evil()",
            input: &read,
            output: Some(&rows),
        },
        ToolShape {
            server: Some("my-server"),
            name: "get-item",
            description: "",
            input: &node,
            output: None,
        },
        ToolShape {
            server: None,
            name: "calculate",
            description: "Calculates.",
            input: &json!({}),
            output: None,
        },
    ];
    assert_eq!(
        declaration(&tools, 800),
        "type T_myserver_getitem_Node = { next?: T_myserver_getitem_Node; Node?: \"Node\" };
declare const tools: {
  /** Calculates. */
  calculate(): Promise<any>;
  excel: {
    /** Reads a sheet. * / evil() */
    read(args: { path: string }): Promise<string[]>;
  };
  \"my-server\": {
    \"get-item\"(args?: { Node?: T_myserver_getitem_Node }): Promise<any>;
  };
};
declare const input: any;
declare function sleep(ms: number): Promise<void>;
"
    );
    assert_eq!(access(&tools[1]), "tools[\"my-server\"][\"get-item\"]");
    assert_eq!(access(&tools[2]), "tools.calculate");
}

#[test]
fn hostile_texts_stay_inside() {
    let schema = json!({ "type": "object", "properties": {
        "a\n*/ }; evil()": { "type": "string", "description": "*/ evil() /*\n// \u{202e}", "default": "*/ evil()" },
        "b": { "enum": ["*/\"; evil()", "\u{2028}"] }, "c": { "const": "`${evil()}`" } } });
    let text = declaration(
        &[ToolShape {
            server: Some("\"];evil()"),
            name: "a b",
            description: "\u{2029}*/\r\n",
            input: &schema,
            output: None,
        }],
        2_000,
    );
    assert_balanced(&text);
    assert!(text.contains("  \"\\\"];evil()\": {\n"), "{text}");
}

/// Removes literals and comments, and checks that nothing of the foreign text is left, and that brackets match.
fn assert_balanced(text: &str) {
    let mut rest = text;
    let mut open = Vec::new();
    let mut plain = String::new();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => literal_length(rest),
            '/' if rest.starts_with("/*") => rest.find("*/").expect("comments end") + 2,
            first => {
                match first {
                    '{' | '(' | '[' => open.push(first),
                    '}' => assert_eq!(open.pop(), Some('{'), "{text}"),
                    ')' => assert_eq!(open.pop(), Some('('), "{text}"),
                    ']' => assert_eq!(open.pop(), Some('['), "{text}"),
                    _ => plain.push(first),
                }
                first.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    assert!(open.is_empty(), "{text}");
    assert!(!plain.contains("evil") && plain.is_ascii(), "{plain}\n{text}");
}

/// Schemas of any form, with texts of any form.
fn any_schema() -> impl Strategy<Value = Value> {
    let text =
        prop_oneof!["[a-z]{1,6}", ".{0,12}", Just("*/ evil() /*".to_owned()), Just("\"evil\\".to_owned())];
    let leaf = prop_oneof![
        Just(json!({ "type": "string" })),
        Just(json!({ "$ref": "#" })),
        Just(json!({ "$ref": "#/properties/a" })),
        Just(json!(true)),
        text.clone().prop_map(|text| json!({ "const": text })),
        text.clone().prop_map(|text| json!({ "enum": [text, 1, null], "description": text })),
        text.clone().prop_map(|text| json!({ "type": text })),
    ];
    leaf.prop_recursive(4, 40, 4, move |inner| {
        let properties = prop::collection::btree_map(text.clone(), inner.clone(), 0..4);
        prop_oneof![
            (properties, text.clone()).prop_map(|(properties, text)| {
                let required: Vec<&String> = properties.keys().take(1).collect();
                json!({ "type": "object", "required": required, "properties": properties, "description": text })
            }),
            inner.clone().prop_map(|inner| json!({ "type": "array", "items": inner })),
            prop::collection::vec(inner.clone(), 0..3).prop_map(|all| json!({ "anyOf": all })),
            prop::collection::vec(inner.clone(), 0..3).prop_map(|all| json!({ "prefixItems": all, "type": "array" })),
            inner.prop_map(|inner| json!({ "additionalProperties": inner, "nullable": true })),
        ]
    })
}

proptest! {
    #[test]
    fn every_schema_has_a_signature_within_its_budget(schema in any_schema(), text in ".{0,40}", budget in 30_usize..800) {
        let tool = ToolShape { server: Some("s"), name: "t", description: &text, input: &schema, output: Some(&schema) };
        let shown = signature(&tool, budget);
        let overhead = "tools.s.t".len() + shown.lines().count() * "type  = ;\n".len();
        prop_assert!(shown.chars().count() <= budget.max(32) + overhead, "{}", shown);
        assert_balanced(&shown);
        assert_balanced(&declaration(&[tool], budget));
    }
}
