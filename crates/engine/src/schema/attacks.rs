//! Arguments that are made to cost more than they should: every problem they have is found in bounded work, and told in a
//! bounded text. Work is counted, not timed.

use serde_json::{Value, json};
use toolhub_core::error::{ArgumentProblem, Expected};
use toolhub_core::{Lang, RawJson, Say, ToolError};

use super::Schema;
use crate::mend::mend;
use crate::near::near_names;

/// The most that may be told of wrong arguments.
const MAX_TOLD: usize = 4 << 10;

fn problems(schema: &Value, arguments: impl Into<String>) -> Vec<ArgumentProblem> {
    let arguments = RawJson::parse(arguments.into()).unwrap();
    Schema::compile(&RawJson::from(schema.clone())).unwrap().check(&arguments).unwrap_err()
}

fn told(problems: Vec<ArgumentProblem>) -> String {
    let error = ToolError::InvalidArguments { tool: "t".into(), problems };
    for lang in [Lang::En, Lang::Zh] {
        assert!(error.say(lang).len() <= MAX_TOLD, "{} bytes", error.say(lang).len());
    }
    error.say(Lang::En)
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
fn unknown_arguments_are_counted_and_the_first_few_named() {
    let found = problems(&closed(), many_members(250_000, "1"));
    assert!(found.len() <= 9, "{}", found.len());
    let text = told(found);
    assert!(text.contains("there is no argument `filepath0`"), "{text}");
    assert!(text.contains("and 249992 more"), "{text}");
    // A few are told as they always were.
    let few = told(problems(&closed(), r#"{"filepath_of3":"a","zzz":1}"#));
    assert!(few.contains("did you mean `filepath_of_3`?") && few.contains("`zzz`"), "{few}");
    assert!(!few.contains("more"), "{few}");
}

/// The same one level deeper, where no name is looked for.
#[test]
fn unknown_members_deeper_down_are_counted_too() {
    let schema = json!({"type": "object", "properties": {"options": closed()}});
    let text = told(problems(&schema, format!(r#"{{"options":{}}}"#, many_members(5_000, "1"))));
    assert!(text.contains("`options.filepath0`") && text.contains("more"), "{text}");
}

#[test]
fn arguments_of_many_values_are_explained_by_their_first_problem() {
    let items = |count: usize| format!(r#"{{"rows":[{}]}}"#, vec![r#""x""#; count].join(","));
    let plain =
        json!({"type": "object", "properties": {"rows": {"type": "array", "items": {"type": "integer"}}}});
    let few = problems(&plain, items(20));
    assert_eq!((few.len(), few.last().map(|last| last.expected.clone())), (9, Some(Expected::More(12))));
    let many = problems(&plain, items(250_000));
    assert_eq!(many.len(), 1);
    assert!(told(many).contains("`rows[0]` should be integer"));
    // With alternatives nothing can be found without looking at all of them.
    let branches: Vec<Value> =
        (0..50).map(|number| json!({"type": "object", "required": [number.to_string()]})).collect();
    let either =
        json!({"type": "object", "properties": {"rows": {"type": "array", "items": {"anyOf": branches}}}});
    assert_eq!(problems(&either, items(250_000)).len(), 1);
    let text = told(problems(&either, items(3)));
    assert!(text.contains("`rows[2]` should be object"), "{text}");
}

#[test]
fn names_values_and_lists_in_messages_are_cut() {
    let long = "n".repeat(1 << 20);
    let text = told(problems(&closed(), format!(r#"{{"{long}":1}}"#)));
    assert!(text.contains("there is no argument `nnnn"), "{text}");
    let options: Vec<String> = (0..10_000).map(|number| format!("option-{number}")).collect();
    let schema = json!({"type": "object", "properties": {"mode": {"enum": options}, "list": {"maxItems": 1}, "deep": {
        "additionalProperties": {"additionalProperties": {"type": "integer"}}}}});
    let text = told(problems(&schema, r#"{"mode":"x"}"#));
    assert!(text.contains("option-0") && !text.contains("option-999"), "{text}");
    told(problems(&schema, format!(r#"{{"list":["{long}","{long}"]}}"#)));
    told(problems(&schema, format!(r#"{{"deep":{{"{long}":{{"{long}":"{long}"}}}}}}"#)));
}

/// Both would need a table of the length of one name times that of the other.
#[test]
fn near_names_are_not_looked_for_where_a_name_is_no_name() {
    let long = "read_data_from_excel_".repeat(200_000);
    assert!(near_names(&long, ["read_data_from_excel"], 1).is_empty());
    assert!(near_names("read_data_from_excel", [long.as_str()], 1).is_empty());
    assert!(near_names(&"_".repeat(1 << 20), ["a_b_c"], 1).is_empty());
    assert_eq!(near_names("read_data_from_exel", ["read_data_from_excel"], 1), ["read_data_from_excel"]);
}

#[test]
fn nothing_is_renamed_among_very_many_arguments() {
    let schema = RawJson::from(json!({"type": "object", "required": ["filepath"], "properties": {
        "filepath": {"type": "string"}, "count": {"type": "integer"}}}));
    let many = RawJson::parse(many_members(250_000, "\"1\"")).unwrap();
    assert!(mend(&schema, &many).is_none());
    let few = RawJson::parse(r#"{"file_path":"a","count":"1"}"#).unwrap();
    assert_eq!(mend(&schema, &few).unwrap().arguments.get(), r#"{"filepath":"a","count":1}"#);
}
