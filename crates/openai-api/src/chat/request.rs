//! A chat request, translated to the items of a conversation.

use serde_json::{Value, json};
use toolhub_core::RawJson;
use toolhub_core::model::ToolChoice;

use crate::error::ApiError;
use crate::parameters::{Parameters, missing_parameter};
use crate::tools::{RequestTools, parse_tool_choice};

/// A chat request.
#[derive(Debug)]
pub(crate) struct ChatCompletion {
    pub(crate) model: String,
    pub(crate) items: Vec<Value>,
    pub(crate) tools: RequestTools,
    pub(crate) choice: ToolChoice,
    pub(crate) only_tool: Option<String>,
    pub(crate) is_stream: bool,
    pub(crate) includes_usage: bool,
    pub(crate) max_tokens: Option<u32>,
    pub(crate) temperature: Option<f32>,
    pub(crate) answer_schema: Option<(String, RawJson)>,
}

impl ChatCompletion {
    pub(crate) fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let mut members = Parameters::parse(body)?;
        let model = members.required_text("model")?;
        let messages = members.list("messages")?;
        if messages.is_empty() {
            return Err(missing_parameter("messages"));
        }
        let mut items = Vec::new();
        for (index, message) in messages.into_iter().enumerate() {
            let at = |error: ApiError| ApiError { param: Some(format!("messages[{index}]")), ..error };
            items.extend(message_items(&message).map_err(at)?);
        }
        let tools = RequestTools::parse_chat(members.list("tools")?)?;
        let (choice, only_tool) = parse_tool_choice(members.take("tool_choice").as_ref(), &tools)?;
        let is_stream = members.flag("stream")?.unwrap_or(false);
        let mut includes_usage = false;
        if let Some(mut options) = members.object("stream_options")? {
            includes_usage = options.flag("include_usage")?.unwrap_or(false);
            options.accept(&["include_obfuscation"]);
            options.finish("stream_options.")?;
        }
        let max_tokens = match members.count("max_completion_tokens", 1)? {
            Some(limit) => Some(limit),
            None => members.count("max_tokens", 1)?,
        };
        members.accept(&["max_tokens"]);
        let temperature = members.number("temperature", 0.0, 2.0)?.map(|number| number as f32);
        let answer_schema = answer_schema(members.take("response_format"), "response_format")?;
        members.neutral("n", &[json!(1)])?;
        members.neutral("top_p", &[json!(1)])?;
        members.neutral("frequency_penalty", &[json!(0)])?;
        members.neutral("presence_penalty", &[json!(0)])?;
        members.neutral("logprobs", &[json!(false)])?;
        members.neutral("top_logprobs", &[json!(0)])?;
        members.neutral("logit_bias", &[json!({})])?;
        members.neutral("stop", &[json!([])])?;
        members.neutral("modalities", &[json!(["text"])])?;
        members.neutral("store", &[json!(false)])?;
        members.neutral("service_tier", &[json!("auto"), json!("default")])?;
        for name in ["seed", "functions", "function_call", "audio", "prediction", "web_search_options"] {
            members.neutral(name, &[])?;
        }
        // They do not change the answer.
        members.accept(&[
            "user",
            "metadata",
            "parallel_tool_calls",
            "safety_identifier",
            "prompt_cache_key",
            "prompt_cache_retention",
            "reasoning_effort",
            "verbosity",
        ]);
        members.finish("")?;
        Ok(Self {
            model,
            items,
            tools,
            choice,
            only_tool,
            is_stream,
            includes_usage,
            max_tokens,
            temperature,
            answer_schema,
        })
    }
}

/// The items of a message.
fn message_items(message: &Value) -> Result<Vec<Value>, ApiError> {
    match message["role"].as_str() {
        Some("tool") => {
            let id = message["tool_call_id"].as_str().ok_or_else(|| missing_parameter("tool_call_id"))?;
            Ok(vec![json!({ "type": "function_call_output", "call_id": id, "output": message["content"] })])
        }
        Some("assistant") => {
            let mut items = Vec::new();
            if !message["content"].is_null() {
                items.push(json!({ "role": "assistant", "content": message["content"] }));
            }
            for call in message["tool_calls"].as_array().into_iter().flatten() {
                let function = &call["function"];
                items.push(json!({
                    "type": "function_call",
                    "call_id": call["id"],
                    "name": function["name"],
                    "arguments": function["arguments"],
                }));
            }
            Ok(items)
        }
        Some(role @ ("user" | "system" | "developer")) => {
            Ok(vec![json!({ "role": role, "content": message["content"] })])
        }
        _ => Err(ApiError::invalid(
            "messages",
            "`role` is `system`, `developer`, `user`, `assistant` or `tool`",
        )),
    }
}

/// The schema of a structured answer: `response_format` of chat, or `text.format` of responses, in which it is not nested.
pub(crate) fn answer_schema(format: Option<Value>, at: &str) -> Result<Option<(String, RawJson)>, ApiError> {
    let Some(format) = format else { return Ok(None) };
    match format["type"].as_str() {
        Some("text") => Ok(None),
        Some("json_object") => Ok(Some(("answer".to_owned(), RawJson::from(json!({ "type": "object" }))))),
        Some("json_schema") => {
            let inner = if format["json_schema"].is_object() { &format["json_schema"] } else { &format };
            let schema = &inner["schema"];
            if !schema.is_object() {
                return Err(missing_parameter(&format!("{at}.schema")));
            }
            let name = inner["name"].as_str().unwrap_or("answer");
            Ok(Some((name.to_owned(), RawJson::from(schema.clone()))))
        }
        _ => Err(ApiError::invalid(at, format!("`{at}.type` is `text`, `json_object` or `json_schema`"))),
    }
}
