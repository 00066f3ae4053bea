//! Inserts the results of earlier steps into the arguments of a later step, converted to the type in the schema.

use std::collections::HashMap;

use serde_json::Value;
use toolhub_core::RawJson;
use toolhub_core::lang::LocalizedText;

use crate::item_id::{first_id, is_id};
use crate::step_result::StepResult;
use toolhub_planner::plan::{ArgumentSource, StepId};

/// Results of steps by step id.
pub(crate) type Results<'a> = HashMap<&'a str, &'a StepResult>;

/// Returns the value of an argument.
pub(crate) fn fill_in(
    name: &str,
    slot: &ArgumentSource,
    results: &Results<'_>,
    schema: Option<&RawJson>,
) -> Result<RawJson, LocalizedText> {
    match slot {
        ArgumentSource::Value(value) => Ok(value.clone()),
        ArgumentSource::ResultOf(id) => {
            let result = result(id.as_str(), results)?;
            convert_result(result, expected_type(name, schema).as_deref(), name, id.as_str())
        }
        ArgumentSource::Template(value) => {
            if let Some(id) = value.decode::<String>().ok().as_deref().and_then(only_placeholder) {
                let result = result(id, results)?;
                return convert_result(result, expected_type(name, schema).as_deref(), name, id);
            }
            if !value.get().contains("{{") {
                return Ok(value.clone());
            }
            Ok(RawJson::of(&replaced(value.value(), results)?))
        }
    }
}

fn result<'a>(id: &str, results: &Results<'a>) -> Result<&'a StepResult, LocalizedText> {
    results.get(id).copied().ok_or_else(|| {
        let id = StepId::new(id);
        let id = id.display_text();
        LocalizedText::new(
            format!("step {id} is needed, and not among those it depends on"),
            format!("需要步骤 {id} 的结果，但它不在依赖之中"),
        )
    })
}

/// The id in a text that consists of `{{id}}` only.
fn only_placeholder(text: &str) -> Option<&str> {
    let id = text.trim().strip_prefix("{{")?.strip_suffix("}}")?;
    (!id.contains(['{', '}'])).then(|| id.trim())
}

/// The type of an argument in the schema.
fn expected_type(name: &str, schema: Option<&RawJson>) -> Option<String> {
    let parameter = schema?.object()?.get("properties")?.object()?.get(name)?.object()?;
    parameter.get("type")?.decode().ok()
}

fn convert_result(
    result: &StepResult,
    kind: Option<&str>,
    name: &str,
    id: &str,
) -> Result<RawJson, LocalizedText> {
    let full_output = result.outcome.as_ref().and_then(|outcome| outcome.result.as_ref().ok());
    let text = match full_output.map(toolhub_core::ToolOutput::texts) {
        Some((texts, _)) if !texts.is_empty() => texts.join("\n"),
        _ => result.text.clone(),
    };
    match kind {
        Some("number" | "integer") => last_number(&text).ok_or_else(|| {
            let id = StepId::new(id);
            let id = id.display_text();
            LocalizedText::new(
                format!("`{name}` must be a number, but the result of step {id} has none"),
                format!("`{name}` 应为数字，但步骤 {id} 的结果中没有数字"),
            )
        }),
        Some("array" | "object") => {
            let data = full_output.and_then(|output| output.structured().cloned());
            let parsed = RawJson::parse(text.clone()).ok().or(data);
            Ok(match (kind, parsed) {
                (_, Some(value)) if kind == Some("object") || value.get().trim_start().starts_with('[') => {
                    value
                }
                _ => RawJson::of(&[text]),
            })
        }
        _ if is_id(name) => {
            let data = full_output.and_then(|output| output.structured()).map(RawJson::value);
            let found = first_id(name, data.as_ref(), &text).map(RawJson::from);
            found.ok_or_else(|| {
                let id = StepId::new(id);
                let id = id.display_text();
                LocalizedText::new(
                    format!("`{name}` must be an ID, but the result of step {id} has none"),
                    format!("`{name}` 应为编号，但步骤 {id} 的结果中没有编号"),
                )
            })
        }
        _ => Ok(RawJson::from(text.trim().to_owned())),
    }
}

/// The last number in a text, without thousands separators.
fn last_number(text: &str) -> Option<RawJson> {
    let ends: Vec<&str> = text
        .split(|letter: char| {
            !(letter.is_ascii_digit() || matches!(letter, '.' | ',' | '-' | 'e' | 'E' | '+'))
        })
        .filter(|word| word.contains(|letter: char| letter.is_ascii_digit()))
        .collect();
    ends.into_iter().rev().find_map(|word| {
        let word = word.replace(',', "");
        let word = word.trim_matches(|letter: char| !(letter.is_ascii_digit() || letter == '-'));
        RawJson::parse(word).ok().filter(|value| value.value().is_number())
    })
}

fn replaced(value: Value, results: &Results<'_>) -> Result<Value, LocalizedText> {
    Ok(match value {
        Value::String(text) => Value::String(replaced_text(&text, results)?),
        Value::Array(list) => {
            Value::Array(list.into_iter().map(|one| replaced(one, results)).collect::<Result<_, _>>()?)
        }
        Value::Object(members) => Value::Object(
            members
                .into_iter()
                .map(|(name, one)| Ok((name, replaced(one, results)?)))
                .collect::<Result<_, LocalizedText>>()?,
        ),
        other => other,
    })
}

fn replaced_text(text: &str, results: &Results<'_>) -> Result<String, LocalizedText> {
    let mut full_output = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        full_output.push_str(before);
        let Some((id, after)) = after.split_once("}}").filter(|(id, _)| results.contains_key(id.trim()))
        else {
            full_output.push_str("{{");
            rest = after;
            continue;
        };
        full_output.push_str(result(id.trim(), results)?.text.trim());
        rest = after;
    }
    full_output.push_str(rest);
    Ok(full_output)
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::time::Duration;

    use toolhub_planner::plan::StepId;

    fn result_with_text(text: &str) -> StepResult {
        StepResult {
            id: StepId::new("1"),
            description: String::new(),
            tool: None,
            arguments: None,
            outcome: None,
            text: text.to_owned(),
            full_output: text.to_owned(),
            error: None,
            verification: None,
            took: Duration::ZERO,
        }
    }

    #[test]
    fn converts_results_to_schema_types() {
        let schema = RawJson::parse(
            r#"{"properties":{"n":{"type":"number"},"t":{"type":"string"},"l":{"type":"array"}}}"#.to_owned(),
        )
        .unwrap();
        let check = |name: &str, slot: ArgumentSource, text: &str, expect: &str| {
            let result = result_with_text(text);
            let results = Results::from([("1", &result)]);
            let found = fill_in(name, &slot, &results, Some(&schema)).unwrap();
            assert_eq!(found.get(), expect, "{slot:?} of {text}");
        };
        let of = || ArgumentSource::ResultOf(StepId::new("1"));
        let template = |text: &str| ArgumentSource::Template(RawJson::parse(text.to_owned()).unwrap());
        check("t", of(), " 1081\n", r#""1081""#);
        check("n", of(), "23*47 = 1,081", "1081");
        check("n", of(), "about -2.5e3.", "-2.5e3");
        check("l", of(), "[1,2]", "[1,2]");
        check("l", of(), "one", r#"["one"]"#);
        check("n", template(r#""{{1}}""#), "7 apples", "7");
        check("t", template(r#""sum: {{1}} of {{9}}""#), "5", r#""sum: 5 of {{9}}""#);
        check("x", template(r#"[["{{1}}",2]]"#), "5", r#"[["5",2]]"#);
        check("mail_id", of(), r#"[{"id":"m-1"},{"id":"m-2"}]"#, r#""m-1""#);
        let result = result_with_text("none at all");
        let results = Results::from([("1", &result)]);
        assert!(fill_in("n", &of(), &results, Some(&schema)).is_err());
        assert!(fill_in("mail_id", &of(), &results, Some(&schema)).is_err());
    }
}
