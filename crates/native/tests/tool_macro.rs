//! The output of `#[tool]`: definitions, and calls through them.

use std::sync::Arc;

use serde_json::{Value, json};
use toolhub_core::ports::NullSink;
use toolhub_core::{CallContext, CallId, NativeTool, RawJson, ToolError, ToolOutput};
use toolhub_macros::tool;

/// Stands in for the module of the `toolhub` crate.
mod private {
    pub(crate) use ::{schemars, serde, serde_json, toolhub_core as core};
}

/// Current weather
/// for a city.
///
/// Kinds:
/// - rain
/// - sun
#[tool(read_only, open_world = false, title = "Weather", crate = crate::private)]
async fn weather(
    #[doc = "City name"] city: String,
    /// How many days,
    /// at most 16
    #[schemars(range(max = 16))]
    days: Option<u8>,
) -> Result<String, ToolError> {
    if city.is_empty() {
        return Err("no city".into());
    }
    Ok(format!("{city} {days:?}"))
}

#[derive(Debug, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Unit {
    Metric,
    UsCustomary,
}

#[tool(name = "unit.of", idempotent, destructive = false, crate = crate::private)]
async fn unit_of(
    #[default(Unit::Metric)] unit: Unit,
    #[default("km")] short: String,
    #[default(3)] mut times: u8,
    r#type: Option<bool>,
) -> Value {
    times += 1;
    json!({"unit": unit, "short": short, "times": times, "type": r#type})
}

/// Gives back what it was given.
#[tool(crate = crate::private)]
async fn echo(raw: RawJson, list: Option<Vec<RawJson>>, value: Value) -> ToolOutput {
    ToolOutput::json(RawJson::of(&json!({"raw": raw.get(), "list": list.map(|l| l.len()), "value": value})))
}

/// State of a tool.
#[derive(Debug)]
pub struct Counter(u32);

/// Counts on.
#[tool(crate = crate::private)]
pub async fn count(context: &CallContext, #[state] counter: &Counter, by: u32) -> String {
    format!("{} {}", context.call, counter.0 + by)
}

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Inner {
    side: std::num::NonZeroU8,
}

#[tool(crate = crate::private)]
async fn kinds(list: Vec<u64>, pair: (i8, i8), size: f64, inner: Inner) -> String {
    format!("{list:?} {pair:?} {size} {}", inner.side)
}

#[tool(crate = crate::private)]
async fn nothing() {}

/// Identifiers of the expansion are not reserved: a tool may use any of these names.
mod odd {
    #[super::tool(crate = crate::private)]
    pub(super) async fn schema(arguments: u8, context: u8, run: u8) -> u8 {
        arguments + context + run
    }

    fn generated() -> u8 {
        2
    }

    #[super::tool(crate = super::private)]
    pub(super) async fn generator(#[default(generated())] default: u8) -> u8 {
        default
    }

    #[super::tool(crate = super::private)]
    pub(super) async fn d(#[default(d::default())] r#type: u8) -> u8 {
        r#type
    }

    impl d {
        fn default() -> u8 {
            3
        }
    }
}

fn context() -> CallContext {
    CallContext {
        call: CallId::new("call_1"),
        conversation: None,
        caller: None,
        events: Arc::new(NullSink),
        nested: None,
    }
}

async fn call(tool: &dyn NativeTool, arguments: Value) -> String {
    match tool.call(RawJson::from(arguments), &context()).await {
        Ok(output) => output.texts().0.join("\n"),
        Err(error) => format!("{}: {error}", error.kind()),
    }
}

#[track_caller]
fn check_definition(tool: &dyn NativeTool, expect: &Value) {
    let definition = tool.definition().raw().value();
    assert_eq!(&definition, expect, "{definition:#}");
}

#[test]
fn definition_matches_function_signature() {
    check_definition(
        &weather,
        &json!({
            "name": "weather",
            "title": "Weather",
            "description": "Current weather for a city.\n\nKinds:\n- rain\n- sun",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "city": {"description": "City name", "type": "string"},
                    "days": {
                        "description": "How many days, at most 16",
                        "type": "integer", "minimum": 0, "maximum": 16,
                    },
                },
                "additionalProperties": false,
                "required": ["city"],
            },
            "annotations": {"readOnlyHint": true, "openWorldHint": false},
        }),
    );
    // The order of the parameters is kept, for readers and prompt caches.
    let text = weather.definition().input_schema().get().to_owned();
    assert!(text.find("\"city\"") < text.find("\"days\""), "{text}");
}

#[test]
fn schema_contains_enums_and_defaults() {
    check_definition(
        &unit_of,
        &json!({
            "name": "unit.of",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "unit": {"type": "string", "enum": ["metric", "us_customary"], "default": "metric"},
                    "short": {"type": "string", "default": "km"},
                    "times": {"type": "integer", "minimum": 0, "maximum": 255, "default": 3},
                    "type": {"type": "boolean"},
                },
                "additionalProperties": false,
            },
            "annotations": {"idempotentHint": true, "destructiveHint": false},
        }),
    );
}

#[test]
fn schema_omits_context_and_state() {
    let counter = count(Arc::new(Counter(1)));
    let schema: Value = counter.definition().input_schema().decode().unwrap();
    assert_eq!(schema["required"], json!(["by"]));
    assert_eq!(schema["properties"].as_object().unwrap().len(), 1);
    check_definition(
        &nothing,
        &json!({"name": "nothing", "inputSchema": {"type": "object", "properties": {}, "additionalProperties": false}}),
    );
}

#[tokio::test]
async fn calls_reach_the_function() {
    assert_eq!(call(&weather, json!({"city": "Kyoto"})).await, "Kyoto None");
    assert_eq!(call(&weather, json!({"city": "Kyoto", "days": 3})).await, "Kyoto Some(3)");
    assert_eq!(call(&weather, json!({"city": "Kyoto", "days": null})).await, "Kyoto None");
    // JSON Schema treats `3.0` as an integer.
    assert_eq!(call(&weather, json!({"city": "Kyoto", "days": 3.0})).await, "Kyoto Some(3)");
    assert_eq!(call(&count(Arc::new(Counter(40))), json!({"by": 2e0})).await, "call_1 42");
    assert_eq!(call(&weather, json!({"city": ""})).await, "tool_failed: no city");
    assert_eq!(weather::run("Oslo".to_owned(), Some(1)).await.unwrap(), "Oslo Some(1)");
    assert_eq!(call(&unit_of, json!({})).await, r#"{"unit":"metric","short":"km","times":4,"type":null}"#);
    assert_eq!(
        call(&unit_of, json!({"unit": "us_customary", "type": true, "times": 1})).await,
        r#"{"unit":"us_customary","short":"km","times":2,"type":true}"#
    );
    assert_eq!(call(&count(Arc::new(Counter(40))), json!({"by": 2})).await, "call_1 42");
    assert_eq!(call(&nothing, json!({})).await, "done");
    assert_eq!(call(&odd::schema, json!({"arguments": 1, "context": 2, "run": 3})).await, "6");
    assert_eq!(call(&odd::generator, json!({})).await, "2");
    assert_eq!(call(&odd::d, json!({})).await, "3");
}

#[tokio::test]
async fn forwards_numbers_of_any_size() {
    let input =
        r#"{"raw": 123456789012345678901234567890, "list": [1e400, {}], "value": 18446744073709551615}"#;
    let result = echo.call(RawJson::parse(input).unwrap(), &context()).await.unwrap();
    assert_eq!(
        result.structured().unwrap().get(),
        r#"{"raw":"123456789012345678901234567890","list":2,"value":18446744073709551615}"#
    );
    let schema: Value = echo.definition().input_schema().decode().unwrap();
    assert_eq!(schema["required"], json!(["raw", "value"]));
}

#[tokio::test]
async fn names_invalid_arguments() {
    let check = async |arguments: Value, expect: &str| {
        let result = call(&weather, arguments).await;
        let tail = "; see `toolhub tools show weather`";
        assert_eq!(result, format!("invalid_arguments: wrong arguments for `weather`: {expect}{tail}"));
    };
    check(json!({}), "`city` is missing").await;
    check(json!({"city": 7}), "`city` should be a string, got 7").await;
    check(json!({"city": "x", "days": 300}), "`days` should be an integer from 0 to 255, got 300").await;
    check(json!({"city": "x", "days": 2.5}), "`days` should be an integer from 0 to 255, got 2.5").await;
    check(json!({"city": "x", "days": -1.0}), "`days` should be an integer from 0 to 255, got -1.0").await;
    check(json!({"city": [1]}), "`city` should be a string, got [1]").await;
    check(json!({"citty": "x"}), "`city` is missing; there is no argument `citty`").await;
    check(json!({"city": "x", "day": 1}), "there is no argument `day`").await;
    check(json!(["x"]), "the arguments should be object, got [\"x\"]").await;
    check(json!(null), "the arguments should be object, got null").await;
    let twice = RawJson::parse(r#"{"city":"a","city":"b"}"#).unwrap();
    let error = weather.call(twice, &context()).await.unwrap_err();
    assert!(error.to_string().contains("duplicate field `city`"), "{error}");
    let result = call(&kinds, json!({"list": {}, "pair": 1, "size": "x", "inner": 1})).await;
    for part in [
        "`list` should be an array",
        "`pair` should be an array of the right length",
        "`size` should be a number",
        "`inner` should be an object",
    ] {
        assert!(result.contains(part), "{result}");
    }
    let result = call(&kinds, json!({"list": [-1], "pair": [1, 2], "size": 1, "inner": {"side": 0}})).await;
    assert!(result.contains("`list` should be an integer from 0, got [-1]"), "{result}");
    assert!(result.contains("`inner` should be an integer other than 0"), "{result}");
    let result = call(&unit_of, json!({"unit": "imperial"})).await;
    assert!(result.contains("`unit` should be `metric` or `us_customary`, got \"imperial\""), "{result}");
}

#[test]
fn tool_is_a_value() {
    let tools: Vec<Arc<dyn NativeTool>> = vec![Arc::new(weather), Arc::new(count(Arc::new(Counter(0))))];
    assert_eq!(tools.len(), 2);
    assert_eq!(format!("{:?} {:?}", weather, count(Arc::new(Counter(0)))), "weather count");
    let copy = weather;
    assert_eq!(copy.definition().version(), weather.definition().version());
}
