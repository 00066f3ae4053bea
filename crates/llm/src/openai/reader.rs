//! Parses responses of a `chat/completions` endpoint, streamed or not.

use serde::Deserialize;
use serde_json::Value;
use toolhub_core::RawJson;
use toolhub_core::model::StopReason;

use crate::assembly::{Assembly, CallPiece};
use crate::exchange::{ResponseError, ResponseState};
use crate::failure::EndpointError;

/// Parses one response.
#[derive(Debug, Default)]
pub(crate) struct Reader;

#[derive(Deserialize)]
struct Chunk {
    choices: Option<Vec<Choice>>,
    usage: Option<Counts>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    index: Option<u64>,
    #[serde(alias = "message")]
    delta: Option<Delta>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Delta {
    content: Option<Value>,
    #[serde(alias = "reasoning")]
    reasoning_content: Option<Value>,
    refusal: Option<String>,
    tool_calls: Option<Vec<Call>>,
}

#[derive(Deserialize)]
struct Call {
    index: Option<u64>,
    id: Option<String>,
    function: Option<Function>,
}

#[derive(Deserialize)]
struct Function {
    name: Option<String>,
    arguments: Option<RawJson>,
}

#[derive(Deserialize)]
struct Counts {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<Details>,
    /// The field name of DeepSeek.
    prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct Details {
    cached_tokens: Option<u64>,
}

impl Reader {
    /// Parses the data of one SSE event.
    pub(crate) fn event(
        &mut self,
        data: &str,
        assembly: &mut Assembly<'_>,
    ) -> Result<ResponseState, ResponseError> {
        if data.trim() == "[DONE]" {
            return Ok(ResponseState::Done);
        }
        self.full_body(data, assembly)
    }

    /// Parses a complete response; chunks of a stream have the same structure.
    pub(crate) fn full_body(
        &mut self,
        body: &str,
        assembly: &mut Assembly<'_>,
    ) -> Result<ResponseState, ResponseError> {
        let chunk: Chunk =
            serde_json::from_str(body).map_err(|error| ResponseError::Format(error.to_string()))?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(ResponseError::EndpointError(EndpointError::of(&error, body)));
        }
        if chunk.choices.is_none() && chunk.usage.is_none() {
            return Err(ResponseError::Format("it has no `choices`".to_owned()));
        }
        for choice in chunk.choices.into_iter().flatten() {
            if choice.index.unwrap_or_default() == 0 {
                take(choice, assembly);
            }
        }
        if let Some(counts) = chunk.usage {
            count(&counts, assembly);
        }
        Ok(ResponseState::More)
    }
}

fn take(choice: Choice, assembly: &mut Assembly<'_>) {
    if let Some(delta) = choice.delta {
        if let Some(thought) = delta.reasoning_content {
            assembly.thought(&content_text(&thought).0);
        }
        if let Some(content) = delta.content {
            let (text, thought) = content_text(&content);
            assembly.thought(&thought);
            assembly.text(&text);
        }
        if let Some(refusal) = delta.refusal.filter(|refusal| !refusal.is_empty()) {
            assembly.text(&refusal);
        }
        for call in delta.tool_calls.into_iter().flatten() {
            let (name, arguments) = match call.function {
                Some(function) => (function.name, function.arguments),
                None => (None, None),
            };
            let arguments = arguments.map(|raw| written(&raw)).unwrap_or_default();
            assembly.call(CallPiece { index: call.index, id: call.id, name, arguments });
        }
    }
    let stop = match choice.finish_reason.as_deref() {
        None | Some("") => return,
        Some("tool_calls" | "function_call") => StopReason::Calls,
        Some("length") => StopReason::Length,
        Some("content_filter") => StopReason::Filtered,
        Some(_) => StopReason::End,
    };
    assembly.stop(stop);
}

/// Text and thoughts of a content: a string, or a list of parts.
fn content_text(content: &Value) -> (String, String) {
    let (mut text, mut thought) = (String::new(), String::new());
    match content {
        Value::String(content_text) => text.push_str(content_text),
        Value::Array(parts) => {
            for part in parts {
                if let Some(content_text) = part.get("text").and_then(Value::as_str) {
                    text.push_str(content_text);
                } else if let Some(inner) = part.get("thinking") {
                    thought.push_str(&content_text(inner).0);
                }
            }
        }
        _ => {}
    }
    (text, thought)
}

/// The arguments as written: the format has a string with JSON; some endpoints send the object itself.
fn written(raw: &RawJson) -> String {
    match raw.decode::<String>() {
        Ok(text) => text,
        Err(_) if raw.get() == "null" => String::new(),
        Err(_) => raw.get().to_owned(),
    }
}

fn count(counts: &Counts, assembly: &mut Assembly<'_>) {
    let usage = assembly.usage();
    usage.input = counts.prompt_tokens.unwrap_or(usage.input);
    usage.output = counts.completion_tokens.unwrap_or(usage.output);
    let cached = counts.prompt_tokens_details.as_ref().and_then(|details| details.cached_tokens);
    usage.cached = cached.or(counts.prompt_cache_hit_tokens).unwrap_or(usage.cached);
}
