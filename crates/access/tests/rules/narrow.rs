//! Narrowed schemas: their form, and that they accept exactly what the tool's schema and the rules permit.

use jsonschema::Validator;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value, json};
use toolhub_access::{AccessResource, Action, RuleSet, RuleSpec};
use toolhub_core::{RawJson, Source};

use crate::support::{caller, raw, rules};

fn narrow(rules: &RuleSet, schema: &RawJson) -> RawJson {
    let source = Source::from_name("files");
    rules.for_principal(&caller()).narrow_schema(&AccessResource::tool(&source, &["write"]), schema)
}

fn check(list: Value, schema: Value, expect: &Value) {
    let narrowed = narrow(&rules(list), &RawJson::from(schema));
    assert_eq!(narrowed.value(), *expect, "{narrowed}");
}

#[test]
fn one_grant_is_merged_into_the_properties() {
    let allow = json!([{"effect": "allow", "arguments": {
        "properties": {"path": {"type": "string", "pattern": "^/data/", "maxLength": 9}}, "required": ["path"],
    }}]);
    check(
        allow.clone(),
        json!({"type": "object", "properties": {"path": {"type": "string", "description": "A file"}, "n": {}}}),
        &json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "A file", "pattern": "^/data/", "maxLength": 9},
                "n": {},
            },
            "required": ["path"],
        }),
    );
    check(
        allow,
        json!({
            "type": "object",
            "properties": {"path": {"type": "string", "pattern": "txt$", "allOf": [{"minLength": 1}]}},
            "required": ["n"],
        }),
        &json!({
            "type": "object",
            "properties": {"path": {
                "type": "string", "pattern": "txt$", "allOf": [{"minLength": 1}, {"pattern": "^/data/"}],
                "maxLength": 9,
            }},
            "required": ["n", "path"],
        }),
    );
    // A property that the tool does not declare must not become one that it accepts.
    check(
        json!([{"effect": "allow", "arguments": {"properties": {"path": {"pattern": "^/data/"}}}}]),
        json!({"type": "object", "properties": {"n": {}}, "additionalProperties": false}),
        &json!({
            "type": "object", "properties": {"n": {}}, "additionalProperties": false,
            "allOf": [{"properties": {"path": {"pattern": "^/data/"}}}],
        }),
    );
}

#[test]
fn several_grants_are_alternatives_and_prohibitions_are_negated() {
    let (a, b) = (json!({"required": ["a"]}), json!({"required": ["b"]}));
    let object = json!({"type": "object"});
    check(
        json!([
            {"effect": "allow", "arguments": a}, {"effect": "ask", "arguments": b},
            {"effect": "allow", "arguments": a},
        ]),
        object.clone(),
        &json!({"type": "object", "allOf": [{"anyOf": [a, b]}]}),
    );
    check(
        json!([{"effect": "allow"}, {"effect": "forbid", "arguments": a}]),
        object.clone(),
        &json!({"type": "object", "not": a}),
    );
    check(
        json!([{"effect": "allow"}, {"effect": "forbid", "arguments": a}, {"effect": "forbid", "arguments": b}]),
        object.clone(),
        &json!({"type": "object", "not": a, "allOf": [{"not": b}]}),
    );
    // A grant without arguments makes the others irrelevant.
    check(json!([{"effect": "allow"}, {"effect": "allow", "arguments": a}]), object.clone(), &object);
    check(json!([{"effect": "forbid"}]), object, &json!({"type": "object", "not": {}}));
}

#[test]
fn a_schema_without_argument_rules_keeps_its_text() {
    let schema = raw(r#"{ "type":"object", "x":1234567890123456789012345678901234567890 }"#);
    let unchanged = narrow(&rules(json!([{"effect": "allow", "tools": ["w*"]}])), &schema);
    assert_eq!(unchanged.get(), schema.get());
    let narrowed = narrow(&rules(json!([{"effect": "allow", "arguments": {"required": ["a"]}}])), &schema);
    assert_eq!(
        narrowed.get(),
        r#"{"type":"object","x":1234567890123456789012345678901234567890,"required":["a"]}"#
    );
    assert_eq!(narrow(&RuleSet::default(), &schema).get(), schema.get());
}

#[test]
fn constraints_of_a_property_keep_their_meaning() {
    let check = |property: Value, limit: Value, value: Value| {
        let schema = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "definitions": {"s": {"type": "string"}},
            "type": "object",
            "properties": {"a": property},
        });
        check_rejected(schema.clone(), &limit, &value);
        let mut modern = schema;
        modern["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
        check_rejected(modern, &limit, &value);
    };
    // Beside `$ref`, draft 7 ignores every other keyword.
    check(json!({"$ref": "#/definitions/s"}), json!({"pattern": "^/data/"}), json!("/etc"));
    // A property named by the rule is not one that the tool declares.
    check(json!({"additionalProperties": false}), json!({"properties": {"x": {}}}), json!({"x": 1}));
    check(
        json!({"additionalProperties": false, "maxProperties": 3}),
        json!({"patternProperties": {"x": {}}}),
        json!({"x": 1}),
    );
    // `then` of the rule must not be combined with `if` of the tool.
    check(json!({"else": {"type": "object"}}), json!({"if": {"const": 1}, "then": false}), json!(1));
}

#[test]
fn a_property_without_unevaluated_members_stays_so() {
    let property = json!({"type": "object", "unevaluatedProperties": false});
    let schema = json!({"type": "object", "properties": {"a": property}});
    check_rejected(schema, &json!({"properties": {"x": {"type": "integer"}}}), &json!({"x": 1}));
}

/// Checks that the narrowed schema rejects the value of the argument `a`, which the tool or the rule rejects.
fn check_rejected(schema: Value, limit: &Value, value: &Value) {
    let rules = rules(json!([{"effect": "allow", "arguments": {"properties": {"a": limit}}}]));
    let narrowed = narrow(&rules, &RawJson::from(schema)).value();
    assert!(!validator(&narrowed).is_valid(&json!({"a": value})), "{value} in {narrowed}");
}

fn validator(schema: &Value) -> Validator {
    jsonschema::options().should_validate_formats(true).build(schema).unwrap()
}

/// Schemas of one argument.
fn argument() -> impl Strategy<Value = Value> {
    let keywords = vec![
        ("type", json!("string")),
        ("type", json!(["string", "integer"])),
        ("pattern", json!("^/data/")),
        ("maxLength", json!(7)),
        ("enum", json!(["/data/a", "/etc", 3])),
        ("const", json!("/data/a")),
        ("maximum", json!(5)),
        ("minimum", json!(2)),
        ("format", json!("ipv4")),
        ("not", json!({"const": 3})),
        ("anyOf", json!([{"type": "integer"}, {"minLength": 3}])),
        ("items", json!({"type": "integer"})),
        ("contains", json!({"const": 1})),
        ("properties", json!({"x": {"type": "integer"}})),
        ("additionalProperties", json!(false)),
        ("required", json!(["x"])),
        ("description", json!("text")),
    ];
    let members = subsequence(keywords, 0..4).prop_map(|members| {
        Value::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    });
    prop_oneof![10 => members, 1 => any::<bool>().prop_map(Value::Bool)]
}

/// Argument schemas of a rule.
fn rule_schema() -> impl Strategy<Value = Value> {
    let properties = prop::collection::btree_map(select(vec!["path", "n", "other"]), argument(), 0..3);
    let extra = select(vec![
        json!({}),
        json!({}),
        json!({"required": ["path"]}),
        json!({"type": "object"}),
        json!({"additionalProperties": false}),
        json!({"minProperties": 1}),
        json!({"propertyNames": {"maxLength": 4}}),
        json!({"if": {"required": ["n"]}, "then": {"required": ["path"]}}),
        json!({"patternProperties": {"^o": {"type": "integer"}}}),
    ]);
    (properties, extra).prop_map(|(properties, mut schema)| {
        if !properties.is_empty() {
            schema["properties"] = json!(properties);
        }
        schema
    })
}

/// Argument schemas of a tool, with the forms that are difficult to extend.
fn tool_schema() -> impl Strategy<Value = Value> {
    let properties = prop::collection::btree_map(select(vec!["path", "n", "sub"]), argument(), 0..3);
    let draft_7 = "http://json-schema.org/draft-07/schema#";
    let extra = select(vec![
        json!({}),
        json!({"type": "object"}),
        json!({"type": ["object", "null"]}),
        json!({"type": "object", "additionalProperties": false}),
        json!({"type": "object", "additionalProperties": {"type": "integer"}}),
        json!({"type": "object", "unevaluatedProperties": false}),
        json!({"required": ["n"], "allOf": [{"minProperties": 1}], "not": {"required": ["no"]}}),
        json!({"$schema": draft_7, "type": "object"}),
        json!({"$schema": draft_7, "$ref": "#/definitions/a", "required": ["ignored"],
               "definitions": {"a": {"properties": {"n": {"type": "integer"}}}}}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"n": {"type": "integer"}}}}}),
        json!({"$ref": "#/$defs/a", "unevaluatedProperties": false, "$defs": {"a": {"properties": {"n": {}}}}}),
        json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://tool.example/s"}),
    ]);
    let special = select(vec![
        json!(null),
        json!({"sub": {"$ref": "#"}}),
        json!({"sub": {"$ref": "#/properties/path"}, "path": {"type": "string"}}),
        json!({"sub": {"$ref": "#/$defs/s"}}),
        json!({"path": {"$ref": "#/$defs/s"}}),
        json!({"path": {"type": "object", "properties": {"x": {}}, "unevaluatedProperties": false}}),
    ]);
    (properties, extra, special).prop_map(|(properties, mut schema, special)| {
        let mut properties = json!(properties);
        for (name, property) in special.as_object().into_iter().flatten() {
            properties[name] = property.clone();
        }
        schema["properties"] = properties;
        if special.to_string().contains("$defs") {
            schema["$defs"]["s"] = json!({"type": "string", "maxLength": 8});
        }
        schema
    })
}

fn instance() -> impl Strategy<Value = Value> {
    let value = || {
        select(vec![
            json!("/data/a"),
            json!("/etc"),
            json!("127.0.0.1"),
            json!(""),
            json!(1),
            json!(3),
            json!(9),
            json!(null),
            json!([1, 2]),
            json!(["a"]),
            json!({"x": 1}),
            json!({"x": "a", "y": 1}),
        ])
    };
    let flat = prop::collection::btree_map(select(vec!["path", "n", "other", "sub", "no"]), value(), 0..4);
    let object = (flat.clone(), prop::option::weighted(0.3, flat)).prop_map(|(mut object, sub)| {
        if let Some(sub) = sub {
            object.insert("sub", json!(sub));
        }
        json!(object)
    });
    prop_oneof![12 => object, 1 => value()]
}

fn argument_rules() -> impl Strategy<Value = Vec<RuleSpec>> {
    let effect = select(vec!["allow", "allow", "ask", "forbid"]);
    let rule = (effect, prop::option::weighted(0.85, rule_schema())).prop_map(|(effect, schema)| {
        let mut rule = json!({"effect": effect});
        if let Some(schema) = schema {
            rule["arguments"] = schema;
        }
        serde_json::from_value::<RuleSpec>(rule).unwrap()
    });
    prop::collection::vec(rule, 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn accepts_exactly_what_schema_and_rules_permit(
        specs in argument_rules(),
        schema in tool_schema(),
        instances in prop::collection::vec(instance(), 1..24),
    ) {
        let rules = RuleSet::compile(specs).unwrap();
        let narrowed = narrow(&rules, &RawJson::from(schema.clone())).value();
        let (before, after) = (validator(&schema), validator(&narrowed));
        let permissions = rules.for_principal(&caller());
        let source = Source::from_name("files");
        for instance in instances {
            let arguments = RawJson::from(instance.clone());
            let resource = AccessResource::tool(&source, &["write"]).with_arguments(&arguments);
            let permitted = !permissions.decide(Action::Call, &resource).is_forbidden();
            // Arguments that are no object are ambiguous: a rule that asks holds them, and the schema excludes them.
            let permitted = permitted && instance.is_object();
            let had_rules = narrowed != schema;
            let accepted = before.is_valid(&instance) && (permitted || (!had_rules && !instance.is_object()));
            prop_assert_eq!(after.is_valid(&instance), accepted, "{} in {}", instance, narrowed);
        }
    }
}
