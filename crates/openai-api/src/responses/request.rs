//! A request for a response.

use serde_json::{Value, json};
use toolhub_core::RawJson;
use toolhub_core::model::ToolChoice;

use crate::chat::request::answer_schema;
use crate::error::ApiError;
use crate::parameters::{Parameters, missing_parameter};
use crate::tools::{RequestTools, parse_tool_choice};

const MAX_METADATA: usize = 16;
/// Parts that `include` may name. They are included anyway, or the agent has none of them.
const INCLUDED: [&str; 6] = [
    "reasoning.encrypted_content",
    "web_search_call.action.sources",
    "file_search_call.results",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
];

/// A request for a response.
#[derive(Debug)]
pub(crate) struct ResponseRequest {
    pub(crate) model: String,
    /// The new items.
    pub(crate) input: Vec<Value>,
    pub(crate) instructions: Option<String>,
    pub(crate) previous: Option<String>,
    pub(crate) is_stream: bool,
    pub(crate) is_stored: bool,
    pub(crate) is_background: bool,
    pub(crate) tools: RequestTools,
    pub(crate) choice: ToolChoice,
    pub(crate) only_tool: Option<String>,
    pub(crate) max_tokens: Option<u32>,
    pub(crate) max_calls: Option<u32>,
    pub(crate) temperature: Option<f32>,
    pub(crate) answer_schema: Option<(String, RawJson)>,
    /// Members of the response that repeat the request.
    pub(crate) echo: Value,
}

impl ResponseRequest {
    /// Parses a request that was sent to a host; `None` if it was checked before.
    pub(crate) fn parse(body: &[u8], host: Option<&str>) -> Result<Self, ApiError> {
        let mut members = Parameters::parse(body)?;
        let model = members.required_text("model")?;
        let input = new_items(members.take("input"))?;
        let instructions = members.text("instructions")?;
        let previous = members.text("previous_response_id")?;
        let is_stream = members.flag("stream")?.unwrap_or(false);
        let is_stored = members.flag("store")?.unwrap_or(true);
        let is_background = members.flag("background")?.unwrap_or(false);
        if is_background {
            check_background(is_stored, is_stream)?;
        }
        let tool_values = members.list("tools")?;
        let choice_value = members.take("tool_choice");
        let tools = RequestTools::parse(tool_values.clone(), host)?;
        let (choice, only_tool) = parse_tool_choice(choice_value.as_ref(), &tools)?;
        let max_tokens = members.count("max_output_tokens", 1)?;
        let max_calls = members.count("max_tool_calls", 0)?;
        let parallel = members.flag("parallel_tool_calls")?.unwrap_or(true);
        let temperature = members.number("temperature", 0.0, 2.0)?;
        let metadata = metadata(members.take("metadata"))?;
        let (text, answer_schema) = text_format(members.take("text"))?;
        let reasoning = reasoning(members.take("reasoning"))?;
        check_without_effect(&mut members)?;
        let [user, safety, cache_key] =
            ["user", "safety_identifier", "prompt_cache_key"].map(|name| members.take(name));
        members.accept(&["stream_options", "prompt_cache_retention"]);
        members.finish("")?;
        let echo = json!({
            "background": is_background,
            "instructions": instructions,
            "max_output_tokens": max_tokens,
            "max_tool_calls": max_calls,
            "metadata": metadata,
            "model": model,
            "parallel_tool_calls": parallel,
            "previous_response_id": previous,
            "prompt_cache_key": cache_key,
            "reasoning": reasoning,
            "safety_identifier": safety,
            "service_tier": "default",
            "store": is_stored,
            "temperature": temperature.unwrap_or(1.0),
            "text": text,
            "tool_choice": choice_value.unwrap_or(json!("auto")),
            "tools": tool_values.into_iter().map(echoed_tool).collect::<Vec<_>>(),
            "top_logprobs": 0,
            "top_p": 1.0,
            "presence_penalty": 0.0,
            "frequency_penalty": 0.0,
            "truncation": "disabled",
            "user": user,
        });
        Ok(Self {
            model,
            input,
            instructions,
            previous,
            is_stream,
            is_stored,
            is_background,
            tools,
            choice,
            only_tool,
            max_tokens,
            max_calls,
            temperature: temperature.map(|number| number as f32),
            answer_schema,
            echo,
        })
    }
}

/// The items of `input`: a text is a message of the user.
fn new_items(input: Option<Value>) -> Result<Vec<Value>, ApiError> {
    match input {
        Some(Value::String(text)) => Ok(vec![json!({ "type": "message", "role": "user", "content": text })]),
        Some(Value::Array(items)) if !items.is_empty() => Ok(items),
        Some(_) => Err(ApiError::invalid("input", "`input` is a text or a list of items")),
        None => Err(missing_parameter("input")),
    }
}

/// A background response is stored and is not streamed.
fn check_background(is_stored: bool, is_stream: bool) -> Result<(), ApiError> {
    if !is_stored {
        let why = "a background response is read later: leave out `store`, or set it to true";
        return Err(ApiError::invalid("store", why));
    }
    if is_stream {
        let why = "read a background response with `GET /v1/responses/ID`";
        return Err(ApiError::unsupported("stream", why));
    }
    Ok(())
}

/// The member `reasoning` as the response repeats it.
fn reasoning(value: Option<Value>) -> Result<Value, ApiError> {
    let value = value.unwrap_or(json!({}));
    if !value.is_object() {
        return Err(ApiError::invalid("reasoning", "`reasoning` must be an object"));
    }
    Ok(completed(value, &json!({ "effort": null, "summary": null })))
}

/// Checks the members without effect: only their default values are accepted.
fn check_without_effect(members: &mut Parameters) -> Result<(), ApiError> {
    for name in members.list("include")? {
        if !name.as_str().is_some_and(|name| INCLUDED.contains(&name)) {
            return Err(ApiError::invalid("include", format!("{name} cannot be included (不支持)")));
        }
    }
    members.neutral("top_p", &[json!(1)])?;
    members.neutral("top_logprobs", &[json!(0)])?;
    members.neutral("truncation", &[json!("disabled")])?;
    members.neutral("service_tier", &[json!("auto"), json!("default")])?;
    members.neutral("frequency_penalty", &[json!(0)])?;
    members.neutral("presence_penalty", &[json!(0)])?;
    for name in ["conversation", "prompt", "context_management"] {
        members.neutral(name, &[])?;
    }
    Ok(())
}

/// An object with the defaults of the members that it does not have.
fn completed(mut object: Value, defaults: &Value) -> Value {
    for (name, value) in defaults.as_object().into_iter().flatten() {
        if object.get(name).is_none() {
            object[name] = value.clone();
        }
    }
    object
}

/// A tool as the response repeats it: the specification requires all members of a function.
fn echoed_tool(tool: Value) -> Value {
    match tool["type"].as_str() {
        Some("function") => {
            completed(tool, &json!({ "description": null, "parameters": null, "strict": false }))
        }
        _ => tool,
    }
}

fn metadata(value: Option<Value>) -> Result<Value, ApiError> {
    match value {
        None => Ok(json!({})),
        Some(Value::Object(members))
            if members.len() <= MAX_METADATA && members.values().all(Value::is_string) =>
        {
            Ok(Value::Object(members))
        }
        Some(_) => Err(ApiError::invalid("metadata", format!("`metadata` has at most {MAX_METADATA} texts"))),
    }
}

/// `text`, as the response repeats it, and the schema of a structured answer.
fn text_format(value: Option<Value>) -> Result<(Value, Option<(String, RawJson)>), ApiError> {
    let plain = json!({ "type": "text" });
    let Some(text) = value else { return Ok((json!({ "format": plain }), None)) };
    if !text.is_object() {
        return Err(ApiError::invalid("text", "`text` must be an object"));
    }
    let format = text.get("format").filter(|format| !format.is_null()).cloned();
    let schema = answer_schema(format.clone(), "text.format")?;
    let format = match format {
        Some(format) if format["type"] == json!("json_schema") => {
            completed(format, &json!({ "description": null, "strict": false }))
        }
        Some(format) => format,
        None => plain,
    };
    let mut text = text;
    text["format"] = format;
    Ok((text, schema))
}
