//! Builds a chat completion, or its chunks, from the events of a turn.

use std::collections::VecDeque;

use serde_json::{Value, json};
use toolhub_core::model::{ModelCall, StopReason, TokenUsage};

use crate::error::ApiError;
use crate::sse;
use crate::turn_event::{EndStatus, HubCall, TurnEnd, TurnEvent};

/// Between the texts of two replies of the model.
const REPLY_SEPARATOR: &str = "\n\n";

/// Who answers, and when.
#[derive(Debug, Clone)]
pub(crate) struct ChatHead {
    pub(crate) id: String,
    pub(crate) created: u64,
    pub(crate) model: String,
    pub(crate) fingerprint: String,
    pub(crate) includes_usage: bool,
    /// Whether the completion is streamed.
    pub(crate) is_stream: bool,
}

/// A call that the hub ran.
#[derive(Debug)]
struct Step {
    call: HubCall,
    /// Its output or its error; `None` while it runs.
    result: Option<Result<String, String>>,
}

/// A chat completion in progress.
#[derive(Debug)]
pub(crate) struct ChatAssembler {
    head: ChatHead,
    content: String,
    /// Whether a reply has ended since the last text.
    is_separated: bool,
    steps: Vec<Step>,
    frames: VecDeque<String>,
}

impl ChatAssembler {
    pub(crate) fn new(head: ChatHead) -> Self {
        let mut assembler = Self {
            head,
            content: String::new(),
            is_separated: false,
            steps: Vec::new(),
            frames: VecDeque::new(),
        };
        assembler.chunk(&json!({ "role": "assistant", "content": "" }), None);
        assembler
    }

    /// The next part of the stream.
    pub(crate) fn next_frame(&mut self) -> Option<String> {
        self.frames.pop_front()
    }

    pub(crate) fn feed(&mut self, event: TurnEvent) {
        match event {
            TurnEvent::Text(text) => {
                if std::mem::take(&mut self.is_separated) && !self.content.is_empty() {
                    self.text(REPLY_SEPARATOR);
                }
                self.text(&text);
            }
            TurnEvent::ReplyEnded => self.is_separated = true,
            TurnEvent::CallStarted(call) => self.steps.push(Step { call, result: None }),
            TurnEvent::CallFinished(id, result) => {
                if let Some(step) = self.steps.iter_mut().find(|step| step.call.id == id) {
                    step.result = Some(result);
                }
            }
            // Chat has no form for thoughts and approvals.
            TurnEvent::Thought(_) | TurnEvent::ApprovalNeeded(_) => {}
        }
    }

    fn text(&mut self, text: &str) {
        self.content.push_str(text);
        self.chunk(&json!({ "content": text }), None);
    }

    /// Ends the stream, and returns the completion or the error.
    pub(crate) fn finish(&mut self, end: &TurnEnd) -> Result<Value, ApiError> {
        let reason = match &end.status {
            EndStatus::Complete(_) if !end.client_calls.is_empty() => "tool_calls",
            EndStatus::Complete(StopReason::Filtered) => "content_filter",
            EndStatus::Complete(StopReason::Length) | EndStatus::Limit(_) => "length",
            EndStatus::Complete(StopReason::End | StopReason::Calls) => "stop",
            EndStatus::Failed(why) => {
                let error = ApiError::new(http::StatusCode::BAD_GATEWAY, "model_error", why.as_str());
                self.frames.push_back(sse::data(&json!({ "error": error.to_json() })));
                return Err(error);
            }
            EndStatus::Cancelled => {
                return Err(ApiError::new(
                    http::StatusCode::BAD_REQUEST,
                    "cancelled",
                    "the request was cancelled",
                ));
            }
        };
        let calls: Vec<Value> = end.client_calls.iter().map(tool_call).collect();
        for (index, call) in calls.iter().enumerate() {
            let mut call = call.clone();
            call["index"] = json!(index);
            self.chunk(&json!({ "tool_calls": [call] }), None);
        }
        let steps: Vec<Value> = self.steps.iter().map(step_json).collect();
        let delta = if steps.is_empty() { json!({}) } else { json!({ "toolhub": { "steps": steps } }) };
        self.chunk(&delta, Some(reason));
        let usage = usage(end.usage);
        if self.head.includes_usage {
            let mut chunk = self.base("chat.completion.chunk");
            chunk["choices"] = json!([]);
            chunk["usage"] = usage.clone();
            self.frames.push_back(sse::data(&chunk));
        }
        self.frames.push_back(sse::DONE.to_owned());
        let content = if self.content.is_empty() && !calls.is_empty() { None } else { Some(&self.content) };
        let mut message = json!({ "role": "assistant", "content": content, "refusal": null });
        if !calls.is_empty() {
            message["tool_calls"] = Value::Array(calls);
        }
        if !steps.is_empty() {
            message["toolhub"] = json!({ "steps": steps });
        }
        let mut completion = self.base("chat.completion");
        completion["choices"] =
            json!([{ "index": 0, "message": message, "logprobs": null, "finish_reason": reason }]);
        completion["usage"] = usage;
        Ok(completion)
    }

    fn base(&self, object: &str) -> Value {
        let ChatHead { id, created, model, fingerprint, .. } = &self.head;
        json!({ "id": id, "object": object, "created": created, "model": model, "system_fingerprint": fingerprint })
    }

    fn chunk(&mut self, delta: &Value, reason: Option<&str>) {
        if !self.head.is_stream {
            return;
        }
        let mut chunk = self.base("chat.completion.chunk");
        chunk["choices"] = json!([{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": reason }]);
        if self.head.includes_usage {
            chunk["usage"] = Value::Null;
        }
        self.frames.push_back(sse::data(&chunk));
    }
}

fn tool_call(call: &ModelCall) -> Value {
    json!({
        "id": call.id.as_str(),
        "type": "function",
        "function": { "name": call.tool.as_str(), "arguments": call.arguments.get() },
    })
}

/// A call that the hub ran, as the API shows it.
fn step_json(Step { call, result }: &Step) -> Value {
    let (output, error) = match result {
        Some(Ok(output)) => (Some(output), None),
        Some(Err(error)) => (None, Some(error)),
        None => (None, None),
    };
    json!({
        "server": call.server,
        "tool": call.tool,
        "arguments": call.arguments,
        "output": output,
        "error": error,
    })
}

fn usage(usage: TokenUsage) -> Value {
    json!({
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": { "cached_tokens": usage.cached },
        "completion_tokens_details": { "reasoning_tokens": 0 },
    })
}
