//! A definition that is offered in another form accepts the same arguments as before.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolhub_core::RawJson;
use toolhub_mcp_gateway::make_portable;

fn kinds() -> impl Strategy<Value = Vec<&'static str>> {
    let all = ["string", "number", "integer", "boolean", "object", "array", "null"];
    prop::sample::subsequence(all.to_vec(), 1..=all.len())
}

/// Schemas of one argument, with types stated in every way that JSON Schema allows.
fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({})),
        Just(json!({"minimum": 2, "minLength": 2})),
        Just(json!({"required": ["a"]})),
        Just(json!({"not": {"type": "string"}})),
        Just(json!({"type": "integer", "format": "uint8"})),
        kinds().prop_map(|kinds| json!({"type": kinds, "minLength": 1})),
        value().prop_map(|value| json!({"const": value})),
        prop::collection::vec(value(), 1..3).prop_map(|values| json!({"enum": values})),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let union = prop::collection::vec(inner.clone(), 1..3);
        prop_oneof![
            union.clone().prop_map(|members| json!({"anyOf": members})),
            union.clone().prop_map(|members| json!({"oneOf": members})),
            (kinds(), union).prop_map(|(kinds, members)| json!({"type": kinds, "anyOf": members})),
            inner.clone().prop_map(|items| json!({"type": ["array", "null"], "items": items})),
            inner.prop_map(|part| json!({"type": "object", "properties": {"a": part}})),
        ]
    })
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-1..5i64).prop_map(Value::from),
        Just(json!(1.5)),
        "[ab]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::hash_map("[ab]", inner, 0..2)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn portable_definition_accepts_same_arguments(part in schema(), values in prop::collection::vec(value(), 8)) {
        let input = json!({"type": "object", "properties": {"a": part}});
        let definition = RawJson::from(json!({"name": "x", "inputSchema": input}));
        let offered = make_portable(&definition).map_err(|why| TestCaseError::fail(format!("{why:?}")))?.value();
        let before = jsonschema::validator_for(&input).unwrap();
        let after = jsonschema::validator_for(&offered["inputSchema"]).unwrap();
        for value in values {
            let arguments = json!({"a": value});
            prop_assert_eq!(before.is_valid(&arguments), after.is_valid(&arguments), "{} {}", offered, arguments);
        }
    }
}
