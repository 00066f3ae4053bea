//! The rules of a stream of `/v1/responses`, as a state machine over its events.
//!
//! The stream is a sequence of events with consecutive numbers. It begins with `response.created` and
//! `response.in_progress` (after `response.queued` for one in the background), opens and closes output items, and ends with one
//! terminal event, whose response contains exactly the items that were closed.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::sse_frames::Frame;

/// What a stream that follows the rules contained.
#[derive(Debug)]
pub(crate) struct CheckedStream {
    /// The response of the terminal event.
    pub(crate) response: Value,
    /// The deltas of text, in order.
    pub(crate) deltas: Vec<String>,
}

/// Checks a whole stream.
pub(crate) fn check(frames: &[Frame]) -> Result<CheckedStream, String> {
    let mut machine = Machine::default();
    for (position, frame) in frames.iter().enumerate() {
        machine
            .accept(position, frame)
            .map_err(|error| format!("event {position}: {error}: {}", frame.data))?;
    }
    let response = machine.response.ok_or("the stream has no terminal event")?;
    Ok(CheckedStream { response, deltas: machine.deltas })
}

#[derive(Default)]
struct Machine {
    phase: Phase,
    id: Value,
    /// How many items were added.
    added: u64,
    /// By output index. Several items are open while calls run concurrently.
    open: BTreeMap<u64, OpenItem>,
    /// By output index.
    done: BTreeMap<u64, Value>,
    deltas: Vec<String>,
    response: Option<Value>,
}

#[derive(Default, PartialEq, Clone, Copy)]
enum Phase {
    #[default]
    Begin,
    Created,
    InProgress,
    Ended,
}

/// An output item between `response.output_item.added` and `response.output_item.done`.
struct OpenItem {
    id: Value,
    kind: String,
    part: Option<OpenPart>,
    /// The content parts that are complete.
    parts: Vec<Value>,
    arguments: Arguments,
    call: CallPhase,
}

/// A content part between its `added` and its `done`.
struct OpenPart {
    kind: Value,
    text: String,
    /// The complete text, once `done` of the text has come.
    complete: Option<String>,
}

#[derive(Default)]
struct Arguments {
    streamed: String,
    complete: Option<String>,
}

/// The state of an `mcp_call` or `mcp_list_tools`.
#[derive(Default, PartialEq)]
enum CallPhase {
    #[default]
    Added,
    InProgress,
    Ended {
        is_failed: bool,
    },
}

impl Machine {
    fn accept(&mut self, position: usize, frame: &Frame) -> Result<(), String> {
        let event = frame.json()?;
        let kind = event["type"].as_str().ok_or("no type")?;
        require(frame.event.as_deref() == Some(kind), || format!("the field `event` is {:?}", frame.event))?;
        require(event["sequence_number"] == position, || {
            "the sequence number is not consecutive".to_owned()
        })?;
        require(self.phase != Phase::Ended, || "an event after the terminal one".to_owned())?;
        match kind {
            "response.created" => {
                self.id = event["response"]["id"].clone();
                require(self.id.is_string(), || "the response has no id".to_owned())?;
                self.move_to(Phase::Begin, Phase::Created, &event)
            }
            "response.queued" => self.move_to(Phase::Created, Phase::Created, &event),
            "response.in_progress" => self.move_to(Phase::Created, Phase::InProgress, &event),
            "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" => {
                self.end(kind, &event)
            }
            _ => {
                let working = self.phase == Phase::InProgress;
                require(working, || "before `response.in_progress`".to_owned())?;
                self.accept_item_event(kind, &event)
            }
        }
    }

    fn move_to(&mut self, from: Phase, to: Phase, event: &Value) -> Result<(), String> {
        require(self.phase == from, || "not at this place".to_owned())?;
        self.phase = to;
        let response = &event["response"];
        require(response["id"] == self.id, || "another response".to_owned())?;
        require(response["output"] == json!([]), || "output at the beginning".to_owned())?;
        let status = response["status"].as_str().unwrap_or_default();
        require(matches!(status, "queued" | "in_progress"), || format!("status `{status}`"))
    }

    fn end(&mut self, kind: &str, event: &Value) -> Result<(), String> {
        require(self.phase != Phase::Begin, || "before `response.created`".to_owned())?;
        self.phase = Phase::Ended;
        require(self.open.is_empty(), || "an item is still open".to_owned())?;
        let response = &event["response"];
        require(response["id"] == self.id, || "another response".to_owned())?;
        let status = kind.strip_prefix("response.");
        require(response["status"].as_str() == status, || format!("status {}", response["status"]))?;
        let done: Value = self.done.values().cloned().collect();
        require(response["output"] == done, || {
            format!("the output is not the items that were done: {done}")
        })?;
        self.response = Some(response.clone());
        Ok(())
    }

    fn accept_item_event(&mut self, kind: &str, event: &Value) -> Result<(), String> {
        let index = event["output_index"].as_u64().ok_or("no output index")?;
        match kind {
            "response.output_item.added" => {
                require(index == self.added, || format!("the output index is not {}", self.added))?;
                self.added += 1;
                self.open.insert(index, OpenItem::new(&event["item"])?);
                Ok(())
            }
            "response.output_item.done" => {
                let open = self.open.remove(&index).ok_or("no item with this index is open")?;
                let item = &event["item"];
                open.close(item)?;
                self.done.insert(index, item.clone());
                Ok(())
            }
            _ => {
                let open = self.open.get_mut(&index).ok_or("no item with this index is open")?;
                require(event["item_id"] == open.id, || "another item".to_owned())?;
                let text = open.accept(kind, event)?;
                self.deltas.extend(text);
                Ok(())
            }
        }
    }
}

impl OpenItem {
    fn new(item: &Value) -> Result<Self, String> {
        require(item["id"].is_string(), || "the item has no id".to_owned())?;
        let kind = item["type"].as_str().ok_or("the item has no type")?;
        match kind {
            "message" => require(item["content"] == json!([]), || "content at the beginning".to_owned())?,
            "function_call" | "mcp_call" => {
                require(item["arguments"] == "", || "arguments at the beginning".to_owned())?;
            }
            _ => {}
        }
        let id = item["id"].clone();
        let (arguments, call) = Default::default();
        Ok(Self { id, kind: kind.to_owned(), part: None, parts: Vec::new(), arguments, call })
    }

    /// Returns the delta of visible text, if it is one.
    fn accept(&mut self, kind: &str, event: &Value) -> Result<Option<String>, String> {
        let name = kind.strip_prefix("response.").ok_or("not an event of a response")?;
        match (self.kind.as_str(), name) {
            ("message", "content_part.added") => self.open_part(event).map(|()| None),
            ("message", "content_part.done") => self.close_part(event).map(|()| None),
            ("message", "output_text.delta" | "refusal.delta") => {
                let delta = text(event, "delta")?;
                self.part(event, name)?.append(&delta)?;
                Ok(Some(delta))
            }
            ("message", "output_text.done") => {
                let complete = text(event, "text")?;
                self.part(event, name)?.complete(complete).map(|()| None)
            }
            ("message", "refusal.done") => {
                let complete = text(event, "refusal")?;
                self.part(event, name)?.complete(complete).map(|()| None)
            }
            ("message", "output_text.annotation.added") => Ok(None),
            ("reasoning", "reasoning_text.delta") => self.think(event).map(|()| None),
            ("reasoning", "reasoning_text.done") => self.end_thought(event).map(|()| None),
            ("function_call", "function_call_arguments.delta") => self.arguments.append(event).map(|()| None),
            ("function_call", "function_call_arguments.done") => {
                self.arguments.complete(event).map(|()| None)
            }
            ("mcp_call", "mcp_call_arguments.delta" | "mcp_call_arguments.done")
                if self.call != CallPhase::InProgress =>
            {
                Err("arguments of a call that is not in progress".to_owned())
            }
            ("mcp_call", "mcp_call_arguments.delta") => self.arguments.append(event).map(|()| None),
            ("mcp_call", "mcp_call_arguments.done") => self.arguments.complete(event).map(|()| None),
            ("mcp_call" | "mcp_list_tools", _) => self.advance_call(name).map(|()| None),
            (item, _) => Err(format!("not an event of an item of type `{item}`")),
        }
    }

    fn open_part(&mut self, event: &Value) -> Result<(), String> {
        require(self.part.is_none(), || "another content part is still open".to_owned())?;
        require(event["content_index"] == self.parts.len(), || "the content index".to_owned())?;
        let part = &event["part"];
        let member = part_text(part)?;
        require(part[member] == "", || "a content part with text at the beginning".to_owned())?;
        self.part = Some(OpenPart { kind: part["type"].clone(), text: String::new(), complete: None });
        Ok(())
    }

    fn close_part(&mut self, event: &Value) -> Result<(), String> {
        let open = self.part.take().ok_or("no content part is open")?;
        require(event["content_index"] == self.parts.len(), || "the content index".to_owned())?;
        let part = &event["part"];
        require(part["type"] == open.kind, || "the content part has another type".to_owned())?;
        let complete = open.complete.ok_or("the text of the content part is not done")?;
        require(part[part_text(part)?] == complete, || "the content part has another text".to_owned())?;
        self.parts.push(part.clone());
        Ok(())
    }

    fn part(&mut self, event: &Value, name: &str) -> Result<&mut OpenPart, String> {
        require(event["content_index"] == self.parts.len(), || "the content index".to_owned())?;
        let part = self.part.as_mut().ok_or("no content part is open")?;
        let kind = name.split('.').next().unwrap_or_default();
        require(part.kind == kind, || "the content part has another type".to_owned())?;
        Ok(part)
    }

    /// Thoughts have no `content_part` events.
    fn think(&mut self, event: &Value) -> Result<(), String> {
        require(event["content_index"] == self.parts.len(), || "the content index".to_owned())?;
        let begin = || OpenPart { kind: "reasoning_text".into(), text: String::new(), complete: None };
        self.part.get_or_insert_with(begin).append(&text(event, "delta")?)
    }

    fn end_thought(&mut self, event: &Value) -> Result<(), String> {
        let mut open = self.part.take().ok_or("no thought is open")?;
        let complete = text(event, "text")?;
        self.parts.push(json!({ "type": open.kind, "text": complete }));
        open.complete(complete)
    }

    fn advance_call(&mut self, name: &str) -> Result<(), String> {
        let step = name.strip_prefix(&self.kind).and_then(|rest| rest.strip_prefix('.'));
        self.call = match (&self.call, step) {
            (CallPhase::Added, Some("in_progress")) => CallPhase::InProgress,
            (CallPhase::InProgress, Some(end @ ("completed" | "failed"))) => {
                let is_call = self.kind == "mcp_call";
                require(!is_call || self.arguments.complete.is_some(), || {
                    "arguments are not done".to_owned()
                })?;
                CallPhase::Ended { is_failed: end == "failed" }
            }
            _ => return Err("not at this place of a call".to_owned()),
        };
        Ok(())
    }

    fn close(self, item: &Value) -> Result<(), String> {
        require(item["id"] == self.id, || "another item".to_owned())?;
        require(item["type"] == self.kind, || "the item has another type".to_owned())?;
        require(self.part.is_none(), || "a content part is still open".to_owned())?;
        match self.kind.as_str() {
            "message" => {
                let parts = Value::from(self.parts);
                require(item["content"] == parts, || format!("the content is not {parts}"))?;
                let status = &item["status"];
                require(status == "completed" || status == "incomplete", || format!("status {status}"))
            }
            "reasoning" => {
                let parts = Value::from(self.parts);
                require(item["content"] == parts, || format!("the content is not {parts}"))
            }
            "function_call" => self.arguments.require_in(item),
            "mcp_call" => {
                self.arguments.require_in(item)?;
                match self.call {
                    CallPhase::Ended { is_failed } => require(item["error"].is_null() != is_failed, || {
                        format!("is_failed: {is_failed}, error: {}", item["error"])
                    }),
                    _ => Err("the call has no end".to_owned()),
                }
            }
            "mcp_list_tools" => {
                let is_ended = matches!(self.call, CallPhase::Ended { .. });
                require(is_ended, || "the list has no end".to_owned())
            }
            _ => Ok(()),
        }
    }
}

impl OpenPart {
    fn append(&mut self, delta: &str) -> Result<(), String> {
        require(self.complete.is_none(), || "a delta after the text is done".to_owned())?;
        self.text.push_str(delta);
        Ok(())
    }

    fn complete(&mut self, complete: String) -> Result<(), String> {
        require(self.complete.is_none(), || "the text is done twice".to_owned())?;
        require(self.text == complete, || format!("the deltas are `{}`", self.text))?;
        self.complete = Some(complete);
        Ok(())
    }
}

impl Arguments {
    fn append(&mut self, event: &Value) -> Result<(), String> {
        require(self.complete.is_none(), || "a delta after the arguments are done".to_owned())?;
        self.streamed.push_str(&text(event, "delta")?);
        Ok(())
    }

    fn complete(&mut self, event: &Value) -> Result<(), String> {
        require(self.complete.is_none(), || "the arguments are done twice".to_owned())?;
        let complete = text(event, "arguments")?;
        require(self.streamed == complete, || format!("the deltas are `{}`", self.streamed))?;
        self.complete = Some(complete);
        Ok(())
    }

    fn require_in(&self, item: &Value) -> Result<(), String> {
        let complete = self.complete.as_deref().ok_or("the arguments are not done")?;
        require(item["arguments"] == complete, || "the item has other arguments".to_owned())
    }
}

fn part_text(part: &Value) -> Result<&'static str, String> {
    match part["type"].as_str() {
        Some("output_text") => Ok("text"),
        Some("refusal") => Ok("refusal"),
        _ => Err("a content part of an unknown type".to_owned()),
    }
}

fn text(event: &Value, member: &str) -> Result<String, String> {
    event[member].as_str().map(str::to_owned).ok_or_else(|| format!("no text `{member}`"))
}

fn require(condition: bool, error: impl FnOnce() -> String) -> Result<(), String> {
    if condition { Ok(()) } else { Err(error()) }
}
