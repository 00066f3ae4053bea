//! Selects the calls of each scenario: usually every listed tool, with valid arguments.

use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolhub::{Catalog, RawJson, ToolCall};

use super::SERVER;
use super::setup::Scenario;

/// The calls of a scenario.
pub(super) fn calls(scenario: &Scenario, catalog: &Catalog) -> Result<Vec<ToolCall>> {
    let call = |tool: &str, arguments: Value| ToolCall::new(tool, RawJson::from(arguments)).at(SERVER);
    match scenario.name.as_str() {
        // Only lists the tools: the schema of the tool refers to another document, so it cannot be called.
        "json-schema-ref-no-deref" => return Ok(Vec::new()),
        "json-schema-2020-12-preservation" => {
            let entry = catalog.named("json_schema_2020_12_tool").next().context("the tool is not listed")?;
            let schema = entry.tool.definition.input_schema();
            return Ok(vec![call("json_schema_echo", json!({"schema": schema.value()}))]);
        }
        _ => {}
    }
    if scenario.context.get("toolCalls").is_some() {
        let expected = ExpectedCalls::deserialize(&scenario.context)?;
        let call = |expected: ExpectedCall| {
            call(&expected.name, Value::Object(placeholder_arguments(expected.arguments)))
        };
        return Ok(expected.tool_calls.into_iter().map(call).collect());
    }
    let every = catalog.iter().map(|entry| {
        let schema = entry.tool.definition.input_schema().value();
        call(entry.tool.name().as_str(), example_value(&schema))
    });
    Ok(every.collect())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExpectedCalls {
    tool_calls: Vec<ExpectedCall>,
}

#[derive(Deserialize)]
struct ExpectedCall {
    name: String,
    arguments: Map<String, Value>,
}

/// Removes null arguments: the schemas do not allow them, so toolhub would reject the call. The suite treats a null
/// like an omitted argument.
fn placeholder_arguments(mut arguments: Map<String, Value>) -> Map<String, Value> {
    arguments.retain(|_, value| !value.is_null());
    arguments
}

/// An object with a value for every property of a simple type.
fn example_value(schema: &Value) -> Value {
    let mut arguments = Map::new();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let value = match property["type"].as_str() {
            Some("number" | "integer") => json!(2),
            Some("string") => json!("text"),
            Some("boolean") => json!(true),
            _ => continue,
        };
        arguments.insert(name.clone(), value);
    }
    Value::Object(arguments)
}
