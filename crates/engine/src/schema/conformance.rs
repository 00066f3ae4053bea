//! Compares the evaluator with an independent JSON Schema validator, and with the official test suite if a copy is
//! available.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

use super::budget::StepBudget;
use super::compile::compile;
use super::evaluate::Evaluation;
use super::verdict::Verdict;

fn verdict(schema: &Value, value: &Value) -> Result<Verdict, String> {
    let program = compile(schema)?;
    let steps = StepBudget::for_bytes(1 << 20);
    Evaluation::new(&program, &steps).node(program.root, value).map_err(|_| "exhausted".to_owned())
}

const DRAFTS: [&str; 5] = [
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
];

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        (-4_i64..8).prop_map(Value::from),
        select(vec![0.5, 1.0, 2.5, -1.5]).prop_map(Value::from),
        select(vec!["", "a", "ab", "中文", "a-1"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((select(vec!["a", "b", "c", "ab"]), inner), 0..4).prop_map(|members| {
                Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
            }),
        ]
    })
}

fn keyword(inner: impl Strategy<Value = Value> + Clone + 'static) -> BoxedStrategy<(String, Value)> {
    let name = || select(vec!["a", "b", "c"]);
    let list = || prop::collection::vec(inner.clone(), 1..3).prop_map(Value::from);
    let map = || {
        prop::collection::vec((name(), inner.clone()), 1..3).prop_map(|members| {
            Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
        })
    };
    let named = |key: &'static str, strategy: BoxedStrategy<Value>| {
        strategy.prop_map(move |value| (key.to_owned(), value)).boxed()
    };
    let kinds = ["null", "boolean", "string", "integer", "number", "array", "object"];
    let counts = || (0_u64..3).prop_map(Value::from).boxed();
    let numbers = || select(vec![json!(0), json!(1.5), json!(3)]).boxed();
    let pattern = select(vec!["^a", "b$", "^[a-z]+$", "\\d", "."]).prop_map(Value::from).boxed();
    let reference = select(vec!["#", "#/$defs/a", "#/%24defs/b", "#c"]).prop_map(Value::from).boxed();
    let required = prop::collection::hash_set(name(), 1..3)
        .prop_map(|names| json!(names.into_iter().collect::<Vec<_>>()))
        .boxed();
    prop::strategy::Union::new(vec![
        named("type", select(kinds.to_vec()).prop_map(Value::from).boxed()),
        named("type", Just(json!(["object", "string", "integer"])).boxed()),
        named("enum", prop::collection::vec(values(), 1..4).prop_map(Value::from).boxed()),
        named("const", values().boxed()),
        named("minimum", numbers()),
        named("maximum", numbers()),
        named("multipleOf", select(vec![json!(2), json!(0.5), json!(1.0)]).boxed()),
        named("minLength", counts()),
        named("maxLength", counts()),
        named("pattern", pattern),
        named("minItems", counts()),
        named("maxItems", counts()),
        named("uniqueItems", Just(json!(true)).boxed()),
        named("items", inner.clone().boxed()),
        named("prefixItems", list().boxed()),
        named("contains", inner.clone().boxed()),
        named("minContains", counts()),
        named("maxContains", counts()),
        named("minProperties", counts()),
        named("maxProperties", counts()),
        named("propertyNames", inner.clone().boxed()),
        named("properties", map().boxed()),
        named("properties", map().boxed()),
        named("patternProperties", map().boxed()),
        named("additionalProperties", inner.clone().boxed()),
        named("required", required.clone()),
        named("dependentRequired", (name(), required).prop_map(|(name, list)| json!({name: list})).boxed()),
        named("dependentSchemas", map().boxed()),
        named("dependencies", map().boxed()),
        named("$ref", reference),
        named("allOf", list().boxed()),
        named("anyOf", list().boxed()),
        named("oneOf", list().boxed()),
        named("not", inner.clone().boxed()),
        named("if", inner.clone().boxed()),
        named("then", inner.clone().boxed()),
        named("else", inner.clone().boxed()),
        named("unevaluatedProperties", inner.clone().boxed()),
        named("unevaluatedItems", inner.boxed()),
    ])
    .boxed()
}

fn schemas() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        3 => Just(json!({})),
        1 => Just(json!(false)),
        3 => select(vec!["string", "integer", "object", "array"]).prop_map(|kind| json!({"type": kind})),
    ];
    let schema = leaf.prop_recursive(4, 24, 4, |inner| {
        prop::collection::vec(keyword(inner.boxed()), 1..4)
            .prop_map(|keywords| Value::Object(keywords.into_iter().collect::<Map<String, Value>>()))
    });
    (prop::collection::vec(schema, 4), select(DRAFTS.to_vec())).prop_map(|(mut parts, draft)| {
        let mut root = match parts.pop() {
            Some(Value::Object(root)) => root,
            _ => Map::new(),
        };
        let c = json!({"$anchor": "c", "allOf": [parts.pop()]});
        root.insert("$schema".to_owned(), json!(draft));
        root.insert("$defs".to_owned(), json!({"a": parts.pop(), "b": parts.pop(), "c": c}));
        Value::Object(root)
    })
}

/// Whether a reference may lead back to the same value: validators interpret such schemas differently.
fn has_loops(schema: &Value) -> bool {
    let text = schema.to_string();
    text.matches("\"$ref\"").count() > 1 || refers_to_root(schema)
}

/// Whether a schema that applies to the value itself, not to a part of it, refers to the root.
fn refers_to_root(schema: &Value) -> bool {
    const IN_PLACE: [&str; 9] =
        ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"];
    let Value::Object(members) = schema else { return false };
    members.get("$ref").is_some_and(|target| target == "#")
        || members.iter().filter(|(key, _)| IN_PLACE.contains(&key.as_str())).any(|(_, inner)| match inner {
            Value::Array(list) => list.iter().any(refers_to_root),
            Value::Object(map) => refers_to_root(inner) || map.values().any(refers_to_root),
            _ => false,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn verdicts_agree_with_an_independent_validator(schema in schemas(), values in prop::collection::vec(values(), 6)) {
        let Ok(validator) = jsonschema::options().should_validate_formats(false).build(&schema) else {
            return Ok(());
        };
        // In 2019-09, `contains` marks no items as evaluated, which the other validator ignores.
        let text = schema.to_string();
        let differs = text.contains("2019-09") && text.contains("\"contains\"");
        prop_assume!(!has_loops(&schema) && !differs);
        for value in values {
            let expect = Ok(Verdict::from(validator.is_valid(&value)));
            prop_assert_eq!(verdict(&schema, &value), expect, "{} {}", schema, value);
        }
    }
}

/// `JSON_SCHEMA_TEST_SUITE` is the path of the folder `tests` of the official suite.
#[test]
#[ignore = "needs the official suite: set `JSON_SCHEMA_TEST_SUITE` and run `cargo xtask test`"]
fn verdicts_agree_with_the_official_suite() {
    let folder = std::env::var("JSON_SCHEMA_TEST_SUITE").expect("`JSON_SCHEMA_TEST_SUITE` is set");
    let (mut passed, mut undecided, mut failed) = (0, 0, Vec::new());
    for (draft, uri) in ["draft4", "draft6", "draft7", "draft2019-09", "draft2020-12"].iter().zip(DRAFTS) {
        for file in std::fs::read_dir(format!("{folder}/{draft}")).unwrap() {
            let path = file.unwrap().path();
            // Custom meta-schemas are not supported.
            if path.ends_with("vocabulary.json") {
                continue;
            }
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            let groups: Vec<Value> = serde_json::from_str(&text).unwrap();
            for group in groups {
                let mut schema = group["schema"].clone();
                if let Some(members) = schema.as_object_mut() {
                    members.entry("$schema").or_insert_with(|| json!(uri));
                }
                for test in group["tests"].as_array().unwrap() {
                    let expect = Verdict::from(test["valid"] == json!(true));
                    match verdict(&schema, &test["data"]) {
                        Ok(found) if found == expect => passed += 1,
                        Ok(Verdict::Undecided) => undecided += 1,
                        // Other documents are never loaded.
                        Err(error) if error.contains("not part of it") => undecided += 1,
                        found => failed.push(format!(
                            "{draft} {} | {} | {}: {found:?}",
                            path.file_name().unwrap().display(),
                            group["description"],
                            test["description"]
                        )),
                    }
                }
            }
        }
    }
    eprintln!("{passed} passed, {undecided} undecided, {} failed", failed.len());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
