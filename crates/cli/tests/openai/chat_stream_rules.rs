//! The rules of a stream of `/v1/chat/completions`: one delta with the role, then deltas of content or of calls of the client's
//! functions, one `finish_reason` in the last choice, optionally the usage, then `[DONE]`.

use serde_json::Value;

use crate::sse_frames::Frame;

/// What a stream that follows the rules contained.
#[derive(Debug, Default)]
pub(crate) struct CheckedChat {
    /// The deltas of text, in order.
    pub(crate) deltas: Vec<String>,
    /// The calls of the client's functions: name and arguments.
    pub(crate) calls: Vec<(String, String)>,
    /// Why it ended.
    pub(crate) finish: String,
    /// The usage, if it was sent.
    pub(crate) usage: Option<Value>,
}

/// Checks a whole stream. `functions` are the names of the client's functions.
pub(crate) fn check(frames: &[Frame], functions: &[&str]) -> Result<CheckedChat, String> {
    let (last, chunks) = frames.split_last().ok_or("the stream is empty")?;
    require(last.data == "[DONE]", "the stream does not end with `[DONE]`")?;
    let mut stream = Machine { functions, checked: CheckedChat::default(), identity: None };
    for (position, frame) in chunks.iter().enumerate() {
        let accepted = frame.json().and_then(|chunk| stream.accept(position, frame, &chunk));
        accepted.map_err(|error| format!("chunk {position}: {error}: {}", frame.data))?;
    }
    let checked = stream.checked;
    require(!checked.finish.is_empty(), "the stream has no `finish_reason`")?;
    let ends_with_calls = checked.finish == "tool_calls";
    require(ends_with_calls != checked.calls.is_empty(), "the calls do not match the `finish_reason`")?;
    Ok(checked)
}

struct Machine<'a> {
    functions: &'a [&'a str],
    checked: CheckedChat,
    /// `id`, `model` and `created` of the first chunk, which all others repeat.
    identity: Option<[Value; 3]>,
}

impl Machine<'_> {
    fn accept(&mut self, position: usize, frame: &Frame, chunk: &Value) -> Result<(), String> {
        require(frame.event.is_none(), "chunks have no field `event`")?;
        require(chunk["object"] == "chat.completion.chunk", "not a chunk")?;
        let identity = ["id", "model", "created"].map(|member| chunk[member].clone());
        require(!identity.contains(&Value::Null), "`id`, `model` or `created` is missing")?;
        require(*self.identity.get_or_insert(identity.clone()) == identity, "not of the same completion")?;
        require(self.checked.usage.is_none(), "a chunk after the usage")?;
        match chunk["choices"].as_array().map(Vec::as_slice) {
            Some([]) => {
                require(!self.checked.finish.is_empty(), "usage before the `finish_reason`")?;
                require(chunk["usage"].is_object(), "a chunk without choices and usage")?;
                self.checked.usage = Some(chunk["usage"].clone());
                Ok(())
            }
            Some([choice]) => {
                require(chunk["usage"].is_null(), "usage in a chunk with a choice")?;
                self.accept_choice(position, choice)
            }
            _ => Err("not exactly one choice".to_owned()),
        }
    }

    fn accept_choice(&mut self, position: usize, choice: &Value) -> Result<(), String> {
        require(choice["index"] == 0, "the index of the choice")?;
        require(self.checked.finish.is_empty(), "a choice after the `finish_reason`")?;
        let delta = choice["delta"].as_object().ok_or("no delta")?;
        for (member, value) in delta {
            match (member.as_str(), value) {
                ("role", role) => {
                    require(position == 0 && role == "assistant", "a role after the first chunk")?;
                }
                ("content", Value::String(text)) if position == 0 && text.is_empty() => {}
                ("content", Value::String(text)) => {
                    require(!text.is_empty(), "an empty delta")?;
                    self.checked.deltas.push(text.clone());
                }
                ("content" | "refusal", Value::Null) => {}
                ("tool_calls", Value::Array(calls)) => {
                    calls.iter().try_for_each(|call| self.accept_call(call))?;
                }
                // What the hub ran, with the last choice.
                ("toolhub", Value::Object(_)) => {
                    require(!choice["finish_reason"].is_null(), "`toolhub` before the `finish_reason`")?;
                }
                _ => return Err(format!("unexpected member `{member}` in a delta")),
            }
        }
        require(position != 0 || delta.contains_key("role"), "the first delta has no role")?;
        match &choice["finish_reason"] {
            Value::Null => {}
            Value::String(finish) => self.checked.finish.clone_from(finish),
            _ => return Err("the `finish_reason` is no text".to_owned()),
        }
        Ok(())
    }

    fn accept_call(&mut self, call: &Value) -> Result<(), String> {
        let index = call["index"].as_u64().and_then(|index| usize::try_from(index).ok()).ok_or("no index")?;
        let arguments = call["function"]["arguments"].as_str().ok_or("no arguments")?;
        let known = self.checked.calls.len();
        if index == known {
            let name = call["function"]["name"].as_str().ok_or("a new call without a name")?;
            require(self.functions.contains(&name), "a call of a function that the client does not have")?;
            require(call["id"].is_string() && call["type"] == "function", "a new call without id or type")?;
            self.checked.calls.push((name.to_owned(), String::new()));
        }
        require(index + 1 == self.checked.calls.len(), "the index of a call")?;
        self.checked.calls[index].1.push_str(arguments);
        Ok(())
    }
}

fn require(condition: bool, error: &str) -> Result<(), String> {
    if condition { Ok(()) } else { Err(error.to_owned()) }
}
