//! Builds a response, and the events of its stream, from the events of a turn.

use std::collections::VecDeque;

use serde_json::{Value, json};
use toolhub_core::model::{ModelCall, StopReason, TokenUsage};
use toolhub_core::responses::ResponseStatus;

use crate::sse;
use crate::turn_event::{EndStatus, HubCall, TurnEnd, TurnEvent};

/// What a response is before its turn.
#[derive(Debug, Clone)]
pub(crate) struct ResponseHead {
    /// The id without its prefix; part of the ids of its items.
    pub(crate) key: String,
    pub(crate) created: u64,
    /// Members that repeat the request.
    pub(crate) echo: Value,
    /// Whether the response is streamed.
    pub(crate) is_stream: bool,
}

impl ResponseHead {
    pub(crate) fn id(&self) -> String {
        format!("{RESPONSE_ID_PREFIX}{}", self.key)
    }
}

/// The prefix of ids of responses.
pub(crate) const RESPONSE_ID_PREFIX: &str = "resp_";

/// The id of the response to which an item belongs.
pub(crate) fn response_of_item(item: &str) -> Option<String> {
    let (_, rest) = item.split_once('_')?;
    let (key, number) = rest.rsplit_once('_')?;
    number.parse::<u32>().ok()?;
    Some(format!("{RESPONSE_ID_PREFIX}{key}"))
}

/// A part of the output that receives text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextKind {
    Message,
    Reasoning,
}

/// The item that is being written.
#[derive(Debug)]
struct OpenText {
    kind: TextKind,
    index: usize,
    text: String,
    /// Whether its reply has ended. It stays open, since it is not known yet whether the reply was cut off.
    is_ended: bool,
}

/// A response in progress.
#[derive(Debug)]
pub(crate) struct ResponseAssembler {
    head: ResponseHead,
    output: Vec<Value>,
    /// The hub's ids of the calls, with the indexes of their items.
    calls: Vec<(String, usize)>,
    open: Option<OpenText>,
    status: ResponseStatus,
    usage: Option<TokenUsage>,
    sequence: u64,
    frames: VecDeque<String>,
}

impl ResponseAssembler {
    /// A response with the output that it has so far.
    pub(crate) fn new(head: ResponseHead, output: Vec<Value>) -> Self {
        let mut assembler = Self {
            head,
            output,
            calls: Vec::new(),
            open: None,
            status: ResponseStatus::InProgress,
            usage: None,
            sequence: 0,
            frames: VecDeque::new(),
        };
        for name in ["response.created", "response.in_progress"] {
            let body = assembler.body();
            assembler.emit(name, json!({ "response": body }));
        }
        assembler
    }

    /// The next part of the stream.
    pub(crate) fn next_frame(&mut self) -> Option<String> {
        self.frames.pop_front()
    }

    pub(crate) fn output(&self) -> &[Value] {
        &self.output
    }

    pub(crate) fn status(&self) -> ResponseStatus {
        self.status
    }

    /// The number of items of a type so far.
    pub(crate) fn count(&self, kind: &str) -> u32 {
        let count = self.output.iter().filter(|item| item["type"] == kind).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    pub(crate) fn id(&self) -> String {
        self.head.id()
    }

    /// The response as it is now.
    pub(crate) fn body(&self) -> Value {
        let mut body = json!({
            "id": self.head.id(),
            "object": "response",
            "created_at": self.head.created,
            "status": self.status.name(),
            "completed_at": null,
            "error": null,
            "incomplete_details": null,
            "output": self.output,
            "usage": self.usage.map(usage),
        });
        for (name, value) in self.head.echo.as_object().into_iter().flatten() {
            body[name] = value.clone();
        }
        body
    }

    /// Lists the tools of a server.
    pub(crate) fn list_tools(&mut self, server: &str, tools: &Value) {
        let id = self.item_id("mcpl");
        let mut item = json!({ "id": id, "type": "mcp_list_tools", "server_label": server, "tools": [] });
        let index = self.add(item.clone());
        let at = json!({ "item_id": id, "output_index": index });
        self.emit("response.mcp_list_tools.in_progress", at.clone());
        self.emit("response.mcp_list_tools.completed", at);
        item["tools"] = tools.clone();
        self.done(index, item);
    }

    pub(crate) fn feed(&mut self, event: TurnEvent) {
        match event {
            TurnEvent::Text(text) => self.text(TextKind::Message, &text),
            TurnEvent::Thought(text) => self.text(TextKind::Reasoning, &text),
            TurnEvent::ReplyEnded => {
                if let Some(open) = &mut self.open {
                    open.is_ended = true;
                }
            }
            TurnEvent::CallStarted(call) => self.call_started(call),
            TurnEvent::CallFinished(id, result) => self.call_finished(&id, result),
            TurnEvent::ApprovalNeeded(call) => self.approval_needed(&call),
        }
    }

    /// The time at which the response ended is given, since the turn may have been cancelled.
    pub(crate) fn finish(&mut self, end: &TurnEnd, now: u64) -> Value {
        let (status, name) = match &end.status {
            EndStatus::Complete(StopReason::Length | StopReason::Filtered) | EndStatus::Limit(_) => {
                (ResponseStatus::Incomplete, "response.incomplete")
            }
            EndStatus::Complete(_) => (ResponseStatus::Completed, "response.completed"),
            EndStatus::Failed(_) => (ResponseStatus::Failed, "response.failed"),
            // The API has no event of its own for it.
            EndStatus::Cancelled => (ResponseStatus::Cancelled, "response.incomplete"),
        };
        self.close_text(if status == ResponseStatus::Completed { "completed" } else { "incomplete" });
        self.close_calls();
        for call in &end.client_calls {
            self.function_call(call);
        }
        self.status = status;
        self.usage = Some(end.usage);
        let mut body = self.body();
        match &end.status {
            EndStatus::Complete(StopReason::Filtered) => {
                body["incomplete_details"] = json!({ "reason": "content_filter" });
            }
            EndStatus::Complete(StopReason::Length) => {
                body["incomplete_details"] = json!({ "reason": "max_output_tokens" });
            }
            EndStatus::Limit(why) => {
                body["incomplete_details"] = json!({ "reason": "max_output_tokens", "message": why });
            }
            EndStatus::Failed(why) => body["error"] = json!({ "code": "server_error", "message": why }),
            EndStatus::Cancelled => {}
            EndStatus::Complete(_) => body["completed_at"] = json!(now),
        }
        self.emit(name, json!({ "response": body }));
        body
    }

    /// The id of the next item.
    fn item_id(&self, prefix: &str) -> String {
        format!("{prefix}_{}_{}", self.head.key, self.output.len())
    }

    fn add(&mut self, item: Value) -> usize {
        let index = self.output.len();
        self.emit("response.output_item.added", json!({ "output_index": index, "item": item }));
        self.output.push(item);
        index
    }

    fn done(&mut self, index: usize, item: Value) {
        self.emit("response.output_item.done", json!({ "output_index": index, "item": item }));
        self.output[index] = item;
    }

    fn text(&mut self, kind: TextKind, text: &str) {
        if self.open.as_ref().is_none_or(|open| open.kind != kind || open.is_ended) {
            self.close_text("completed");
            self.open_text(kind);
        }
        let Some(open) = &mut self.open else { return };
        open.text.push_str(text);
        let index = open.index;
        let mut event = self.at(index);
        event["delta"] = json!(text);
        match kind {
            TextKind::Message => {
                event["logprobs"] = json!([]);
                self.emit("response.output_text.delta", event);
            }
            TextKind::Reasoning => self.emit("response.reasoning_text.delta", event),
        }
    }

    fn open_text(&mut self, kind: TextKind) {
        let index = match kind {
            TextKind::Message => {
                let id = self.item_id("msg");
                let item = json!({ "id": id, "type": "message", "status": "in_progress", "role": "assistant", "content": [] });
                let index = self.add(item);
                let mut event = self.at(index);
                event["part"] = text_part("");
                self.emit("response.content_part.added", event);
                index
            }
            TextKind::Reasoning => {
                let id = self.item_id("rs");
                self.add(json!({ "id": id, "type": "reasoning", "summary": [], "content": [] }))
            }
        };
        self.open = Some(OpenText { kind, index, text: String::new(), is_ended: false });
    }

    fn close_text(&mut self, status: &str) {
        let Some(OpenText { kind, index, text, .. }) = self.open.take() else { return };
        let mut item = self.output[index].clone();
        let mut event = self.at(index);
        event["text"] = json!(text);
        match kind {
            TextKind::Message => {
                event["logprobs"] = json!([]);
                self.emit("response.output_text.done", event);
                let mut event = self.at(index);
                event["part"] = text_part(&text);
                self.emit("response.content_part.done", event);
                item["content"] = json!([text_part(&text)]);
                item["status"] = json!(status);
            }
            TextKind::Reasoning => {
                self.emit("response.reasoning_text.done", event);
                item["content"] = json!([{ "type": "reasoning_text", "text": text }]);
            }
        }
        self.done(index, item);
    }

    /// The place of a text part.
    fn at(&self, index: usize) -> Value {
        json!({ "item_id": self.output[index]["id"], "output_index": index, "content_index": 0 })
    }

    fn call_started(&mut self, call: HubCall) {
        self.close_text("completed");
        let id = self.item_id("mcp");
        let mut item = json!({
            "id": id,
            "type": "mcp_call",
            "status": "in_progress",
            "approval_request_id": call.approval,
            "server_label": call.server,
            "name": call.tool,
            "arguments": "",
            "output": null,
            "error": null,
        });
        let index = self.add(item.clone());
        let at = json!({ "item_id": id, "output_index": index });
        self.emit("response.mcp_call.in_progress", at.clone());
        self.arguments("response.mcp_call_arguments", at, &call.arguments);
        item["arguments"] = json!(call.arguments);
        if call.is_read_only {
            // A hub that was stopped while the call ran may repeat it.
            item["toolhub"] = json!({ "read_only": true });
        }
        self.output[index] = item;
        self.calls.push((call.id, index));
    }

    fn arguments(&mut self, name: &str, at: Value, arguments: &str) {
        let mut delta = at.clone();
        delta["delta"] = json!(arguments);
        self.emit(&format!("{name}.delta"), delta);
        let mut done = at;
        done["arguments"] = json!(arguments);
        self.emit(&format!("{name}.done"), done);
    }

    fn call_finished(&mut self, id: &str, result: Result<String, String>) {
        let Some(position) = self.calls.iter().position(|(call, _)| call == id) else { return };
        let (_, index) = self.calls.remove(position);
        let mut item = self.output[index].clone();
        let at = json!({ "item_id": item["id"], "output_index": index });
        match result {
            Ok(output) => {
                item["output"] = json!(output);
                item["status"] = json!("completed");
                self.emit("response.mcp_call.completed", at);
            }
            Err(error) => {
                item["error"] = json!(error);
                item["status"] = json!("failed");
                self.emit("response.mcp_call.failed", at);
            }
        }
        self.done(index, item);
    }

    /// Ends the calls that have no result: the turn was cancelled while they ran.
    fn close_calls(&mut self) {
        let open: Vec<String> = self.calls.iter().map(|(id, _)| id.clone()).collect();
        for id in open {
            self.call_finished(&id, Err("it is not known whether this call had an effect".to_owned()));
        }
    }

    fn approval_needed(&mut self, call: &HubCall) {
        self.close_text("completed");
        let item = json!({
            "id": call.approval,
            "type": "mcp_approval_request",
            "server_label": call.server,
            "name": call.tool,
            "arguments": call.arguments,
        });
        let index = self.add(item.clone());
        self.done(index, item);
    }

    fn function_call(&mut self, call: &ModelCall) {
        let id = self.item_id("fc");
        let (name, arguments) = (call.tool.as_str(), call.arguments.get());
        let mut item = json!({
            "id": id,
            "type": "function_call",
            "status": "in_progress",
            "call_id": call.id.as_str(),
            "name": name,
            "arguments": "",
        });
        let index = self.add(item.clone());
        let at = json!({ "item_id": id, "output_index": index, "name": name });
        self.arguments("response.function_call_arguments", at, arguments);
        item["arguments"] = json!(arguments);
        item["status"] = json!("completed");
        self.done(index, item);
    }

    fn emit(&mut self, name: &str, members: Value) {
        if !self.head.is_stream {
            return;
        }
        let mut event = json!({ "type": name, "sequence_number": self.sequence });
        self.sequence += 1;
        if let Value::Object(members) = members {
            for (member, value) in members {
                event[member] = value;
            }
        }
        self.frames.push_back(sse::event(name, &event));
    }
}

fn text_part(text: &str) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
}

fn usage(usage: TokenUsage) -> Value {
    json!({
        "input_tokens": usage.input,
        "input_tokens_details": { "cached_tokens": usage.cached },
        "output_tokens": usage.output,
        "output_tokens_details": { "reasoning_tokens": 0 },
        "total_tokens": usage.input + usage.output,
    })
}
