//! Compares the fast path with the full validator: values accepted here must be valid there.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use toolhub_core::RawJson;

use super::super::Schema;
use super::PlainSchema;

/// Required members that are not properties share the form of additional members: with a copy per name, the form of
/// this schema would have 60 to the power of 30 parts.
#[test]
fn nested_required_names_take_bounded_memory() {
    let names: Vec<String> = (0..60).map(|number| format!("n{number}")).collect();
    let mut schema = json!({"type": "string"});
    for _ in 0..30 {
        schema = json!({"type": "object", "required": names, "additionalProperties": schema});
    }
    assert!(PlainSchema::read(&schema).is_some());
}

/// Names and options are compared linearly, so that large numbers of them are left to the evaluator.
#[test]
fn leaves_large_property_and_enum_lists_to_the_evaluator() {
    let properties = |count: usize| {
        let all: serde_json::Map<String, Value> =
            (0..count).map(|number| (format!("p{number}"), json!({}))).collect();
        json!({"type": "object", "properties": all})
    };
    let options =
        |count: usize| json!({"enum": (0..count).map(|number| format!("o{number}")).collect::<Vec<_>>()});
    assert!(PlainSchema::read(&properties(64)).is_some() && PlainSchema::read(&options(64)).is_some());
    assert!(PlainSchema::read(&properties(65)).is_none() && PlainSchema::read(&options(65)).is_none());
}

/// Whether a text is certainly valid, for a schema that must have a plain form.
fn certain(schema: &Value, text: &str) -> Option<bool> {
    PlainSchema::read(schema).unwrap_or_else(|| panic!("{schema} should be plain")).fits(text)
}

#[test]
fn fast_path_decides_common_schemas() {
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object", "title": "Arguments", "additionalProperties": false, "required": ["path"],
        "properties": {
            "path": {"type": "string", "description": "where", "format": "uri"},
            "lines": {"type": "integer", "minimum": 1, "exclusiveMaximum": 100, "default": 10},
            "share": {"type": "number"},
            "mode": {"type": "string", "enum": ["r", "w"]},
            "kind": {"const": "k"},
            "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": null},
            "names": {"type": ["array", "null"], "items": {"type": "string"}},
            "where": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "any": true,
        },
    });
    let check = |arguments: &str, expect: Option<bool>| {
        assert_eq!(certain(&schema, arguments), expect, "{arguments}");
        if expect.is_some() {
            assert!(
                jsonschema::options()
                    .should_validate_formats(false)
                    .build(&schema)
                    .unwrap()
                    .is_valid(&serde_json::from_str(arguments).unwrap())
            );
        }
    };
    check(r#"{"path":"a"}"#, Some(true));
    check(r#" { "p\u0061th" : "\u00e9" } "#, Some(true));
    check(r#"{"path":"a","lines":99,"share":0.5,"mode":"w","kind":"k","limit":null}"#, Some(true));
    check(
        r#"{"path":"a","names":["b","c"],"where":{"x":1,"y":[]},"labels":{"a":"b"},"any":[{}]}"#,
        Some(true),
    );
    check(r#"{"path":"a","path":"b"}"#, Some(true));
    for unsure in [
        "{}",
        r#"{"path":1}"#,
        r#"{"path":"a","path":1}"#,
        r#"{"path":"a","more":1}"#,
        r#"{"path":"a","lines":1.0}"#,
        r#"{"path":"a","lines":0}"#,
        r#"{"path":"a","lines":100}"#,
        r#"{"path":"a","lines":99999999999999999999}"#,
        r#"{"path":"a","mode":"x"}"#,
        r#"{"path":"a","names":["b",1]}"#,
        r#"{"path":"a","where":{}}"#,
        r#"{"path":"a","labels":{"a":1}}"#,
        // Texts that cannot be parsed into a tree.
        r#"{"path":"\ud800"}"#,
        r#"{"path":"a","any":["\ud800"]}"#,
        r#"{"path":"a","share":1e999}"#,
        r#"{"path":"a","any":[1e999]}"#,
        r#"{"path":"a","any":{"$serde_json::private::RawValue":"1"}}"#,
        r#"{"path":"a"} 1"#,
        "[]",
    ] {
        check(unsure, None);
    }
    let deep = format!(r#"{{"path":"a","any":{}{}}}"#, "[".repeat(127), "]".repeat(127));
    check(&deep, None);
}

#[test]
fn reports_undeclared_members() {
    let open = json!({"properties": {"a": {}}, "required": ["b"]});
    assert_eq!(certain(&open, r#"{"a":1,"b":2}"#), Some(false));
    assert_eq!(certain(&json!({"type": "object"}), "{}"), Some(true));
    assert_eq!(certain(&json!({"type": "object"}), r#"{"a":1}"#), Some(false));
}

#[test]
fn leaves_unsupported_keywords_to_the_evaluator() {
    for schema in [
        json!({"$ref": "#/$defs/a", "$defs": {"a": true}}),
        json!({"properties": {"a": {"pattern": "x"}}}),
        json!({"patternProperties": {"a": {}}}),
        json!({"minProperties": 1}),
        json!({"anyOf": [{"required": ["a"]}], "type": "object"}),
        json!({"properties": {"a": {"enum": [1, 2]}}}),
        json!({"properties": {"a": {"minimum": 0.5}}}),
        json!({"items": [{"type": "string"}]}),
        json!({"$schema": "https://example.com/none"}),
        json!({"not": {}}),
    ] {
        assert!(PlainSchema::read(&schema).is_none(), "{schema}");
    }
}

/// Schemas of the plain form and slightly beyond it, with few names, so that arguments often match them.
fn schemas() -> impl Strategy<Value = Value> {
    let types = || select(vec!["null", "boolean", "string", "integer", "number", "array", "object"]);
    let leaf = prop_oneof![
        6 => types().prop_map(|one| json!({"type": one})),
        2 => prop::collection::vec(types(), 1..4).prop_map(|some| {
            let mut some = some;
            some.sort_unstable();
            some.dedup();
            json!({"type": some})
        }),
        1 => Just(json!({"enum": ["a", "b", null]})),
        1 => Just(json!({"type": "string", "enum": ["a"], "const": "a"})),
        1 => (-3_i64..3, 0_i64..5).prop_map(|(least, more)| json!({"type": "integer", "minimum": least, "maximum": least + more})),
        1 => (-3_i64..3).prop_map(|least| json!({"type": "number", "exclusiveMinimum": least})),
        1 => (-3_i64..3).prop_map(|most| json!({"exclusiveMaximum": most, "x-note": 1})),
        1 => any::<bool>().prop_map(Value::Bool),
        1 => Just(json!({"title": "t", "format": "uri", "default": 1, "$comment": "c"})),
        1 => Just(json!({"minLength": 2})),
        1 => Just(json!({"not": {"type": "string"}})),
        1 => Just(json!({"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer"})),
    ];
    leaf.prop_recursive(3, 24, 4, move |inner| {
        let name = || select(vec!["a", "b", "c", "d"]).prop_map(str::to_owned);
        let object = (
            prop::collection::btree_map(name(), inner.clone(), 0..4),
            prop::option::of(prop::collection::btree_set(name(), 0..3)),
            prop::option::of(inner.clone()),
            prop::option::of(select(vec!["object", "array"])),
        );
        let object = object.prop_map(|(properties, required, others, kind)| {
            let mut schema = json!({"properties": properties});
            if let Some(required) = required {
                schema["required"] = json!(required);
            }
            if let Some(others) = others {
                schema["additionalProperties"] = others;
            }
            if let Some(kind) = kind {
                schema["type"] = json!(kind);
            }
            schema
        });
        prop_oneof![
            6 => object,
            2 => inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
            2 => prop::collection::vec(inner.clone(), 1..4).prop_map(|ways| json!({"anyOf": ways})),
            1 => prop::collection::vec(inner, 1..3).prop_map(|ways| json!({"oneOf": ways})),
        ]
    })
}

/// Texts of values in various spellings.
fn values() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        8 => select(vec![
            "null", "true", "\"a\"", "\"b\"", "\"\\u0061\"", "0", "1", "-1", "2", "3", "1.0", "-0", "0.5", "1e2",
        ])
        .prop_map(str::to_owned),
        1 => select(vec![
            "18446744073709551615", "18446744073709551616", "-9223372036854775809", "1e999", "\"\\ud800\"", "1e-400",
        ])
        .prop_map(str::to_owned),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let name = select(vec!["a", "b", "c", "d", "e", "\\u0061", "$serde_json::private::Number"]);
        let members = prop::collection::vec((name, inner.clone()), 0..5);
        prop_oneof![
            5 => members.prop_map(|members| {
                let members: Vec<_> = members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
                format!("{{{}}}", members.join(", "))
            }),
            2 => prop::collection::vec(inner, 0..4).prop_map(|items| format!("[{}]", items.join(","))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    /// Certainly valid values are valid, and their members are declared if the result says so.
    #[test]
    fn fast_path_agrees_with_the_evaluator(schema in schemas(), text in values()) {
        let raw = RawJson::parse(text.clone()).unwrap();
        if let Some(form) = PlainSchema::read(&schema) && form.fits(&text).is_some() {
            let validator = jsonschema::options().should_validate_formats(false).build(&schema).unwrap();
            prop_assert!(validator.is_valid(&raw.value()), "{schema} {text}");
        }
        if let Ok(compiled) = Schema::compile(&RawJson::from(schema.clone()))
            && let Some(all_known) = compiled.check_certain(&raw)
        {
            prop_assert!(raw.too_deep().is_none());
            let object = raw.object().unwrap();
            prop_assert_eq!(object.iter().all(|(key, _)| compiled.declares(key)), all_known, "{} {}", schema, text);
        }
    }
}
