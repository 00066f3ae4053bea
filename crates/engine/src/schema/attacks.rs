//! Arguments and schemas that try to cause excessive work: validation finds all problems with bounded work and
//! reports them in a bounded text. Work is counted, not timed.

use serde_json::{Value, json};
use toolhub_core::error::{ArgumentExpectation, ArgumentProblem};
use toolhub_core::suggest::similar_names;
use toolhub_core::{Lang, Localize, RawJson, ToolError};

use super::{Instance, Schema, StepBudget};
use crate::coerce::coerce;

/// Maximum length of an error message about arguments, in bytes.
const MAX_MESSAGE_BYTES: usize = 4 << 10;

fn problems(schema: &Value, arguments: impl Into<String>) -> Vec<ArgumentProblem> {
    let arguments = RawJson::parse(arguments.into()).unwrap();
    let steps = StepBudget::for_bytes(arguments.get().len());
    let schema = Schema::compile(&RawJson::from(schema.clone())).unwrap();
    schema.check(&Instance::new(&arguments, &steps)).unwrap_err()
}

fn message(problems: Vec<ArgumentProblem>) -> String {
    let error = ToolError::InvalidArguments { tool: "t".into(), problems };
    for lang in [Lang::En, Lang::Zh] {
        assert!(error.localize(lang).len() <= MAX_MESSAGE_BYTES, "{} bytes", error.localize(lang).len());
    }
    error.localize(Lang::En)
}

fn many_members(count: usize, value: &str) -> String {
    let members: Vec<String> = (0..count).map(|number| format!(r#""filepath{number}":{value}"#)).collect();
    format!("{{{}}}", members.join(","))
}

fn closed() -> Value {
    let properties: serde_json::Map<String, Value> =
        (0..20).map(|number| (format!("filepath_of_{number}"), json!({"type": "string"}))).collect();
    json!({"type": "object", "additionalProperties": false, "properties": properties})
}

#[test]
fn counts_unknown_arguments_and_names_the_first() {
    let found = problems(&closed(), many_members(150_000, "1"));
    assert!(found.len() <= 9, "{}", found.len());
    let text = message(found);
    assert!(text.contains("there is no argument `filepath0`"), "{text}");
    assert!(text.contains("and 149992 more"), "{text}");
    // A few problems are listed completely.
    let few = message(problems(&closed(), r#"{"filepath_of3":"a","zzz":1}"#));
    assert!(few.contains("did you mean `filepath_of_3`?") && few.contains("`zzz`"), "{few}");
    assert!(!few.contains("more"), "{few}");
}

/// The same one level deeper, where no similar names are suggested.
#[test]
fn counts_unknown_members_of_nested_objects() {
    let schema = json!({"type": "object", "properties": {"options": closed()}});
    let text = message(problems(&schema, format!(r#"{{"options":{}}}"#, many_members(5_000, "1"))));
    assert!(text.contains("`options.filepath0`") && text.contains("more"), "{text}");
}

#[test]
fn counts_problems_of_many_values_and_reports_the_first() {
    let items = |count: usize| format!(r#"{{"rows":[{}]}}"#, vec![r#""x""#; count].join(","));
    let plain =
        json!({"type": "object", "properties": {"rows": {"type": "array", "items": {"type": "integer"}}}});
    let few = problems(&plain, items(20));
    assert_eq!(
        (few.len(), few.last().map(|last| last.expected.clone())),
        (9, Some(ArgumentExpectation::More(12)))
    );
    let many = problems(&plain, items(250_000));
    assert_eq!(
        (many.len(), many.last().map(|last| last.expected.clone())),
        (9, Some(ArgumentExpectation::More(249_992)))
    );
    assert!(message(many).contains("`rows[0]` should be integer"));
    let branches: Vec<Value> =
        (0..50).map(|number| json!({"type": "object", "required": [number.to_string()]})).collect();
    let either =
        json!({"type": "object", "properties": {"rows": {"type": "array", "items": {"anyOf": branches}}}});
    assert!(message(problems(&either, items(250_000))).contains("`rows[0]` should be object"));
    let text = message(problems(&either, items(3)));
    assert!(text.contains("`rows[2]` should be object"), "{text}");
}

#[test]
fn truncates_names_values_and_lists_in_messages() {
    let long = "n".repeat(1 << 20);
    let text = message(problems(&closed(), format!(r#"{{"{long}":1}}"#)));
    assert!(text.contains("there is no argument `nnnn"), "{text}");
    let options: Vec<String> = (0..10_000).map(|number| format!("option-{number}")).collect();
    let schema = json!({"type": "object", "properties": {"mode": {"enum": options}, "list": {"maxItems": 1}, "deep": {
        "additionalProperties": {"additionalProperties": {"type": "integer"}}}}});
    let text = message(problems(&schema, r#"{"mode":"x"}"#));
    assert!(text.contains("option-0") && !text.contains("option-999"), "{text}");
    message(problems(&schema, format!(r#"{{"list":["{long}","{long}"]}}"#)));
    message(problems(&schema, format!(r#"{{"deep":{{"{long}":{{"{long}":"{long}"}}}}}}"#)));
}

/// Comparing them would need a table of the product of both lengths.
#[test]
fn does_not_suggest_names_for_overlong_input() {
    let long = "read_data_from_excel_".repeat(200_000);
    assert!(similar_names(&long, ["read_data_from_excel"], 1).is_empty());
    assert!(similar_names("read_data_from_excel", [long.as_str()], 1).is_empty());
    assert!(similar_names(&"_".repeat(1 << 20), ["a_b_c"], 1).is_empty());
    assert_eq!(similar_names("read_data_from_exel", ["read_data_from_excel"], 1), ["read_data_from_excel"]);
}

#[test]
fn does_not_rename_among_very_many_arguments() {
    let schema = RawJson::from(json!({"type": "object", "required": ["filepath"], "properties": {
        "filepath": {"type": "string"}, "count": {"type": "integer"}}}));
    let many = RawJson::parse(many_members(250_000, "\"1\"")).unwrap();
    assert!(coerce(&schema, &many).is_none());
    let few = RawJson::parse(r#"{"file_path":"a","count":"1"}"#).unwrap();
    assert_eq!(coerce(&schema, &few).unwrap().arguments.get(), r#"{"filepath":"a","count":1}"#);
}

/// Checks arguments and counts the steps.
fn check(schema: &Value, arguments: &Value) -> (Result<(), Vec<ArgumentProblem>>, u64) {
    let schema = Schema::compile(&RawJson::from(schema.clone())).unwrap();
    let arguments = RawJson::from(arguments.clone());
    let steps = StepBudget::for_bytes(arguments.get().len());
    let before = steps.remaining_steps();
    let checked = schema.check(&Instance::new(&arguments, &steps));
    (checked, before - steps.remaining_steps())
}

/// `Filter = And | Or`, as schema generators write it.
fn filters() -> Value {
    let either = json!({"oneOf": [{"$ref": "#/$defs/And"}, {"$ref": "#/$defs/Or"}]});
    let node = |name: &str| {
        json!({"type": "object", "required": ["type", "args"],
            "properties": {"args": {"type": "array", "items": either}, "type": {"const": name}}})
    };
    json!({"type": "object", "properties": {"filter": either}, "$defs": {"And": node("and"), "Or": node("or")}})
}

fn nested(depth: usize, innermost: &str) -> Value {
    let leaf = json!({"type": innermost, "args": []});
    let filter = (0..depth).fold(leaf, |inner, _| json!({"type": "and", "args": [inner]}));
    json!({"filter": filter})
}

#[test]
fn recursive_alternatives_take_linear_steps_in_depth() {
    for (innermost, fits) in [("or", true), ("xx", false)] {
        let (shallow, few) = check(&filters(), &nested(5, innermost));
        let (deep, many) = check(&filters(), &nested(40, innermost));
        assert_eq!((shallow.is_ok(), deep.is_ok()), (fits, fits));
        assert!(many < 12 * few, "{few} steps at depth 5, {many} at depth 40");
    }
}

/// Each definition refers twice to the previous one, by every kind of reference.
#[test]
fn doubling_references_of_any_form_take_few_steps() {
    const TIMES: usize = 40;
    let two = |link: &Value| json!({"allOf": [link, link]});
    let kinds: [(&str, &dyn Fn(usize) -> Value); 13] = [
        ("pointer", &|n| two(&json!({"$ref": format!("#/$defs/a{n}")}))),
        ("percent-encoded", &|n| two(&json!({"$ref": format!("#/%24defs/%61{n}")}))),
        ("anchor", &|n| two(&json!({"$ref": format!("#a{n}")}))),
        ("id", &|n| two(&json!({"$ref": format!("https://x.example/a{n}")}))),
        ("relative id", &|n| two(&json!({"$ref": format!("./a{n}")}))),
        ("dynamic", &|n| two(&json!({"$dynamicRef": format!("#a{n}")}))),
        ("dependentSchemas", &|n| {
            let link = json!({"$ref": format!("#/$defs/a{n}")});
            json!({"dependentSchemas": {"x": link}, "allOf": [link]})
        }),
        ("dependencies", &|n| {
            let link = json!({"$ref": format!("#/$defs/a{n}")});
            json!({"dependencies": {"x": link}, "anyOf": [link]})
        }),
        ("if", &|n| {
            let link = json!({"$ref": format!("#/$defs/a{n}")});
            json!({"if": link, "then": link, "else": link})
        }),
        ("not", &|n| {
            let link = json!({"$ref": format!("#/$defs/a{n}")});
            json!({"not": {"not": link}, "oneOf": [link, false]})
        }),
        ("members", &|n| {
            let link = json!({"$ref": format!("#/$defs/a{n}")});
            json!({"additionalProperties": link, "patternProperties": {".": link}, "propertyNames": link})
        }),
        ("unevaluated", &|n| {
            let link = json!({"$ref": format!("#/$defs/a{n}")});
            json!({"allOf": [link, link], "unevaluatedProperties": link})
        }),
        ("recursive", &|n| {
            let link = json!({"$ref": format!("#/$defs/a{n}")});
            json!({"anyOf": [{"$recursiveRef": "#"}, link, link]})
        }),
    ];
    for (kind, make) in kinds {
        let mut definitions = serde_json::Map::new();
        for number in 0..=TIMES {
            let mut definition = match number.checked_sub(1) {
                Some(before) => make(before),
                None => json!({"type": ["object", "string", "integer"]}),
            };
            match kind {
                "anchor" => definition["$anchor"] = json!(format!("a{number}")),
                "dynamic" => definition["$dynamicAnchor"] = json!(format!("a{number}")),
                "id" | "relative id" => definition["$id"] = json!(format!("https://x.example/a{number}")),
                _ => {}
            }
            definitions.insert(format!("a{number}"), definition);
        }
        let mut schema = make(TIMES);
        schema["$defs"] = Value::Object(definitions);
        if kind == "relative id" {
            schema["$id"] = json!("https://x.example/root");
        }
        if kind == "recursive" {
            schema["$schema"] = json!("https://json-schema.org/draft/2019-09/schema");
        }
        let (checked, steps) = check(&schema, &json!({"x": 1}));
        assert!(checked.is_ok(), "{kind}: {checked:?}");
        assert!(steps < 100_000, "{kind}: {steps} steps");
    }
}

#[test]
fn matches_patterns_in_linear_time_or_skips_them() {
    let schema = |pattern: &str| {
        json!({"type": "object", "properties": {
            "one": {"type": "string", "pattern": pattern}, "many": {"type": "array", "items": {"pattern": pattern}}}})
    };
    // Look-around and back-references are left to the server, for any text.
    for pattern in ["(?<!-)[a-z]+(?!.*--)$", r"^(a+)+\1$", "(?=.*[0-9]).{8,}"] {
        let long = format!("{}--", "a".repeat(200_000));
        let (checked, steps) = check(&schema(pattern), &json!({"one": long, "many": [long, "a"]}));
        assert!(checked.is_ok(), "{checked:?}");
        assert!(steps < 1_000_000, "{steps}");
    }
    // Other patterns are tested until the pattern budget is exhausted.
    let (checked, _) = check(&schema("^(a|aa)+$"), &json!({"one": format!("{}b", "a".repeat(20_000))}));
    assert!(checked.is_err());
    let steps = StepBudget::for_bytes(1 << 20);
    assert!(steps.spend_pattern(super::budget::MAX_PATTERN_STEPS) && !steps.spend_pattern(1));
    let (checked, _) = check(&schema("^[a-z]+$"), &json!({"many": vec!["-".repeat(4 << 10); 500]}));
    assert!(checked.is_err());
    let (checked, _) = check(&schema("^(?:[a-z]{1,900}-){1,9}$"), &json!({"one": "-".repeat(1 << 20)}));
    assert!(checked.is_ok(), "too much work for so large a pattern: {checked:?}");
}

/// Undecided parts neither reject a call nor hide decided ones.
#[test]
fn leaves_undecidable_keywords_to_the_server() {
    let ahead = json!({"pattern": "^(?=x)"});
    let schema = json!({"type": "object", "properties": {
        "not": {"not": ahead}, "one": {"oneOf": [ahead, {"type": "integer"}]}, "any": {"anyOf": [ahead, {"const": "q"}]},
        "all": {"allOf": [ahead, {"maxLength": 2}]}, "if": {"if": ahead, "then": {"maxLength": 1}, "else": {"maxLength": 1}},
        "names": {"type": "object", "patternProperties": {"^(?=x)": {"type": "integer"}}, "additionalProperties": false}}});
    let ok = json!({"not": "a", "one": "a", "any": "a", "all": "a", "if": "a", "names": {"y": "z"}});
    assert!(check(&schema, &ok).0.is_ok());
    for wrong in [json!({"all": "abc"}), json!({"if": "ab"})] {
        assert!(check(&schema, &wrong).0.is_err(), "{wrong}");
    }
}

#[test]
fn rejects_arguments_beyond_the_step_budget_with_reason() {
    let branches: Vec<Value> = (0..2_000).map(|number| json!({"required": [number.to_string()]})).collect();
    let schema =
        json!({"type": "object", "properties": {"rows": {"type": "array", "items": {"anyOf": branches}}}});
    let row = json!({"1999": 1});
    let (checked, _) = check(&schema, &json!({"rows": vec![&row; 5]}));
    assert!(checked.is_ok(), "{checked:?}");
    let (checked, steps) = check(&schema, &json!({"rows": vec![&row; 5_000]}));
    let text = message(checked.unwrap_err());
    assert!(text.contains("wrong arguments for `t`") && text.contains("takes too much work"), "{text}");
    assert!(steps <= super::budget::MAX_VALIDATION_STEPS);
}

#[test]
fn finds_duplicate_items_and_options_without_pairwise_comparison() {
    let schema = json!({"type": "object", "properties": {
        "set": {"uniqueItems": true}, "one": {"items": {"enum": (0..20_000).collect::<Vec<_>>()}}}});
    let numbers: Vec<u32> = (0..20_000).collect();
    assert!(check(&schema, &json!({"set": numbers, "one": numbers})).0.is_ok());
    assert!(check(&schema, &json!({"set": [1, 2, {"a": [1], "b": 2}, {"b": 2.0, "a": [1.0]}]})).0.is_err());
}

/// Test threads have a stack of 2 MiB, as runtime threads do.
#[test]
fn deep_schemas_and_long_reference_chains_do_not_overflow_the_stack() {
    let mut definitions = json!({"a0": {"type": "integer"}});
    for number in 1..20_000 {
        definitions[format!("a{number}")] = json!({"$ref": format!("#/$defs/a{}", number - 1)});
    }
    let schema =
        json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/a19999"}}, "$defs": definitions});
    assert!(check(&schema, &json!({"x": "text"})).0.is_err());
    let recursive = json!({"type": "object", "$defs": {"n": {"anyOf": [{"type": "integer"}, {"allOf": [{"$ref": "#/$defs/m"}]}]},
        "m": {"type": "object", "additionalProperties": {"$ref": "#/$defs/n"}}}, "$ref": "#/$defs/m"});
    let deep = |innermost: Value| (0..100).fold(innermost, |inner, _| json!({"a": inner}));
    assert!(check(&recursive, &deep(json!(1))).0.is_ok());
    assert!(check(&recursive, &deep(json!("text"))).0.is_err());
}

/// Nested alternatives of the schema, multiplied by the values of the arguments.
#[test]
fn coercion_takes_bounded_work() {
    let many: Vec<Value> = (0..2_000).map(|_| json!({"$ref": "#/$defs/a"})).collect();
    let options: Vec<String> = (0..10_000).map(|number| format!("option {number}")).collect();
    let schema = RawJson::from(json!({"type": "object", "$defs": {"a": {"anyOf": many}}, "properties": {
        "x": {"$ref": "#/$defs/a"}, "list": {"type": "array", "items": {"type": "string", "enum": options}},
        "n": {"type": "integer"}}}));
    let coerced = |arguments: Value| coerce(&schema, &RawJson::from(arguments));
    assert_eq!(coerced(json!({"n": "1"})).unwrap().arguments.get(), r#"{"n":1}"#);
    assert_eq!(coerced(json!({"list": "Option 7"})).unwrap().arguments.get(), r#"{"list":["option 7"]}"#);
    assert!(coerced(json!({"x": 1, "n": "1"})).is_none());
    assert!(coerced(json!({"list": vec!["Option 9999"; 10_000], "n": "1"})).is_none());
    assert!(coerced(json!({"free": "x".repeat(1 << 20), "n": "1"})).is_none());
}

#[test]
fn long_identifiers_are_not_copied_repeatedly() {
    let usable = |base: usize, count: usize| {
        let parts: serde_json::Map<String, Value> =
            (0..count).map(|n| (n.to_string(), json!({"$id": format!("p{n}"), "type": "string"}))).collect();
        let id = format!("https://example.invalid/{}/", "i".repeat(base));
        let schema = json!({"$id": id, "type": "object", "$defs": parts});
        Schema::compile(&RawJson::from(schema)).is_ok()
    };
    assert!(usable(100, 500));
    assert!(!usable(40_000, 1) && !usable(100, 3_000));
}
