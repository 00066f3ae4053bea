//! Parses responses of a `messages` endpoint, streamed or not.

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
struct Event {
    #[serde(rename = "type")]
    kind: String,
    message: Option<Whole>,
    index: Option<u64>,
    content_block: Option<Block>,
    delta: Option<Delta>,
    usage: Option<Counts>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Whole {
    content: Option<Vec<Block>>,
    stop_reason: Option<String>,
    usage: Option<Counts>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Block {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    thinking: Option<String>,
    id: Option<String>,
    name: Option<String>,
    input: Option<RawJson>,
}

#[derive(Deserialize)]
struct Delta {
    text: Option<String>,
    thinking: Option<String>,
    partial_json: Option<String>,
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
struct Counts {
    input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

impl Reader {
    /// Parses the data of one SSE event.
    pub(crate) fn event(
        &mut self,
        data: &str,
        assembly: &mut Assembly<'_>,
    ) -> Result<ResponseState, ResponseError> {
        let event: Event = parse(data)?;
        match event.kind.as_str() {
            "message_start" => {
                if let Some(counts) = event.message.and_then(|message| message.usage) {
                    count(&counts, assembly);
                }
            }
            "content_block_start" => {
                if let Some(block) = event.content_block {
                    take(block, event.index, assembly);
                }
            }
            "content_block_delta" => {
                let Some(delta) = event.delta else { return Ok(ResponseState::More) };
                assembly.thought(&delta.thinking.unwrap_or_default());
                assembly.text(&delta.text.unwrap_or_default());
                if let Some(arguments) = delta.partial_json {
                    assembly.call(CallPiece { index: event.index, arguments, ..CallPiece::default() });
                }
            }
            "message_delta" => {
                if let Some(counts) = event.usage {
                    count(&counts, assembly);
                }
                stop(event.delta.and_then(|delta| delta.stop_reason).as_deref(), assembly);
            }
            "message_stop" => return Ok(ResponseState::Done),
            "error" => {
                return Err(ResponseError::EndpointError(EndpointError::of(
                    &event.error.unwrap_or_default(),
                    data,
                )));
            }
            // Pings and unknown events.
            _ => {}
        }
        Ok(ResponseState::More)
    }

    /// Parses a response that is not streamed.
    pub(crate) fn full_body(
        &mut self,
        body: &str,
        assembly: &mut Assembly<'_>,
    ) -> Result<ResponseState, ResponseError> {
        let full_body: Whole = parse(body)?;
        if let Some(error) = full_body.error.filter(|error| !error.is_null()) {
            return Err(ResponseError::EndpointError(EndpointError::of(&error, body)));
        }
        let blocks =
            full_body.content.ok_or_else(|| ResponseError::Format("it has no `content`".to_owned()))?;
        for (index, block) in (0..).zip(blocks) {
            take(block, Some(index), assembly);
        }
        if let Some(counts) = full_body.usage {
            count(&counts, assembly);
        }
        stop(full_body.stop_reason.as_deref(), assembly);
        Ok(ResponseState::Done)
    }
}

fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, ResponseError> {
    serde_json::from_str(text).map_err(|error| ResponseError::Format(error.to_string()))
}

fn take(block: Block, index: Option<u64>, assembly: &mut Assembly<'_>) {
    match block.kind.as_str() {
        "text" => assembly.text(&block.text.unwrap_or_default()),
        "thinking" => assembly.thought(&block.thinking.unwrap_or_default()),
        "tool_use" => {
            // In a stream the input starts as an empty object, followed by the complete input in deltas.
            let input = block.input.filter(|input| input.object().is_none_or(|object| !object.is_empty()));
            let arguments = input.map(|input| input.get().to_owned()).unwrap_or_default();
            assembly.call(CallPiece { index, id: block.id, name: block.name, arguments });
        }
        _ => {}
    }
}

fn stop(reason: Option<&str>, assembly: &mut Assembly<'_>) {
    let stop = match reason {
        None => return,
        Some("tool_use") => StopReason::Calls,
        Some("max_tokens" | "model_context_window_exceeded") => StopReason::Length,
        Some("refusal") => StopReason::Filtered,
        Some(_) => StopReason::End,
    };
    assembly.stop(stop);
}

/// `input_tokens` excludes tokens read from or written to a cache.
fn count(counts: &Counts, assembly: &mut Assembly<'_>) {
    let usage = assembly.usage();
    if let Some(fresh) = counts.input_tokens.filter(|fresh| *fresh > 0 || usage.input == 0) {
        let written = counts.cache_creation_input_tokens.unwrap_or_default();
        usage.cached = counts.cache_read_input_tokens.unwrap_or_default();
        usage.input = fresh + written + usage.cached;
    }
    usage.output = counts.output_tokens.unwrap_or(usage.output);
}
