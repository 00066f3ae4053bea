//! From the items of a conversation to the messages of an agent: user and assistant texts, calls with their results, and
//! approvals.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use toolhub_core::model::{ChatMessage, ModelCall};
use toolhub_core::{CallId, RawJson, ToolName};

use crate::error::ApiError;

const NOT_APPROVED: &str = "the user did not approve this call; it did not run";
const UNKNOWN_RESULT: &str = "it is not known whether this call ran";

/// The messages of a conversation.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    /// Texts of the roles `system` and `developer`.
    pub(crate) instructions: Vec<String>,
    pub(crate) before: Vec<ChatMessage>,
    /// The ids of the approval requests that the new items approve.
    pub(crate) approved: Vec<String>,
    /// The positions of the new items that answer approval requests, by the ids of the requests.
    pub(crate) approval_items: HashMap<String, usize>,
    pub(crate) after: Vec<ChatMessage>,
}

impl Messages {
    /// The messages of earlier items and of the new items of a request.
    pub(crate) fn of(earlier: &[Value], new: &[Value]) -> Result<Self, ApiError> {
        let mut builder = Builder::default();
        for item in earlier {
            // Stored items were checked when they came in.
            builder.add(item, Origin::Earlier)?;
        }
        for (index, item) in new.iter().enumerate() {
            builder.add(item, Origin::New).map_err(|error| match error.param {
                None => ApiError { param: Some(format!("input[{index}]")), ..error },
                Some(_) => error,
            })?;
            if let ("mcp_approval_response", Some(id)) = (kind_of(item), item["approval_request_id"].as_str())
            {
                builder.messages.approval_items.insert(id.to_owned(), index);
            }
        }
        builder
            .flush()
            .map_err(|error| ApiError { param: error.param.or(Some("input".to_owned())), ..error })?;
        let messages = builder.messages;
        if messages.before.is_empty() && messages.after.is_empty() {
            return Err(ApiError::invalid("input", "the conversation has no message (对话中没有消息)"));
        }
        Ok(messages)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Earlier,
    New,
}

/// The result of a call.
enum CallResult {
    Text(String, Failed),
    /// The client has approved it, and it runs first.
    Approved,
}

type Failed = bool;

/// A call of the open assistant message.
struct OpenCall {
    call: ModelCall,
    is_function: bool,
    result: Option<CallResult>,
}

#[derive(Default)]
struct Builder {
    messages: Messages,
    /// The text of the open assistant message.
    text: String,
    calls: Vec<OpenCall>,
    /// The positions of the open calls, by id.
    positions: HashMap<String, usize>,
    /// The ids of all calls: an id that occurs twice would mix results.
    seen: HashSet<String>,
}

impl Builder {
    fn add(&mut self, item: &Value, origin: Origin) -> Result<(), ApiError> {
        match kind_of(item) {
            "message" => self.message(item),
            "function_call" => {
                let id = required(item, "call_id")?;
                self.call(item, &id, true, None)
            }
            "function_call_output" => {
                let id = required(item, "call_id")?;
                let text = content(&item["output"], "output")?;
                match self.open(&id).filter(|open| open.is_function) {
                    Some(open) if open.result.is_some() => Err(error(format!(
                        "the function call `{id}` has an output already: give one for each call (此函数调用已有结果)"
                    ))),
                    Some(open) => {
                        open.result = Some(CallResult::Text(text, false));
                        Ok(())
                    }
                    None => Err(error(format!(
                        "no function call has the `call_id` `{id}` of this output (找不到对应的函数调用)"
                    ))),
                }
            }
            "mcp_call" => self.hub_call(item),
            "mcp_approval_request" => {
                let id = required(item, "id")?;
                self.call(item, &id, false, None)
            }
            "mcp_approval_response" => self.approval_response(item, origin),
            // What the agent thought is not given back to it; tools are listed anew.
            "reasoning" | "mcp_list_tools" => Ok(()),
            "item_reference" => Err(error("this item does not exist, or has expired (此项不存在或已过期)")),
            other => Err(error(format!("items of type `{other}` are not supported (不支持此类项)"))),
        }
    }

    fn message(&mut self, item: &Value) -> Result<(), ApiError> {
        let text = content(&item["content"], "content")?;
        match item["role"].as_str() {
            Some("user") => {
                self.flush()?;
                self.push(ChatMessage::User(text));
            }
            Some("assistant") => {
                if !self.calls.is_empty() {
                    self.flush()?;
                }
                if !self.text.is_empty() && !text.is_empty() {
                    self.text.push_str("\n\n");
                }
                self.text.push_str(&text);
            }
            Some("system" | "developer") => self.messages.instructions.push(text),
            _ => return Err(error("`role` is `user`, `assistant`, `system` or `developer`")),
        }
        Ok(())
    }

    /// An open call.
    fn open(&mut self, id: &str) -> Option<&mut OpenCall> {
        self.calls.get_mut(*self.positions.get(id)?)
    }

    fn call(
        &mut self,
        item: &Value,
        id: &str,
        is_function: bool,
        result: Option<CallResult>,
    ) -> Result<(), ApiError> {
        if !self.seen.insert(id.to_owned()) {
            return Err(error(format!("the call `{id}` occurs twice (调用重复)")));
        }
        let arguments = item["arguments"].as_str().unwrap_or("{}");
        let arguments = RawJson::parse(arguments.to_owned())
            .ok()
            .filter(|arguments| arguments.is_object())
            .unwrap_or_else(RawJson::empty_object);
        let call = ModelCall {
            id: CallId::new(id),
            tool: ToolName::new(required(item, "name")?),
            arguments,
            source: item["server_label"].as_str().map(str::to_owned),
            repaired: Vec::new(),
        };
        self.positions.insert(id.to_owned(), self.calls.len());
        self.calls.push(OpenCall { call, is_function, result });
        Ok(())
    }

    /// A call that the hub made, with its result.
    fn hub_call(&mut self, item: &Value) -> Result<(), ApiError> {
        let result = match (&item["error"], &item["output"]) {
            (Value::Null, Value::String(output)) => CallResult::Text(output.clone(), false),
            (Value::Null, _) => CallResult::Text(UNKNOWN_RESULT.to_owned(), true),
            (Value::String(why), _) => CallResult::Text(why.clone(), true),
            (why, _) => CallResult::Text(why.to_string(), true),
        };
        let request = item["approval_request_id"].as_str();
        if let Some(open) = request.and_then(|request| self.open(request)).filter(|open| !open.is_function) {
            open.result = Some(result);
            return Ok(());
        }
        let id = required(item, "id")?;
        self.call(item, &id, false, Some(result))
    }

    fn approval_response(&mut self, item: &Value, origin: Origin) -> Result<(), ApiError> {
        let id = required(item, "approval_request_id")?;
        let Some(is_approved) = item["approve"].as_bool() else {
            return Err(error("`approve` must be true or false"));
        };
        let reason = item["reason"].as_str().map(|reason| format!(": {reason}")).unwrap_or_default();
        let Some(open) = self.open(&id).filter(|open| !open.is_function) else {
            return Err(error(format!(
                "the conversation has no open approval request `{id}` (对话中没有此待审批请求)"
            )));
        };
        if open.result.is_some() {
            return Err(error(format!(
                "the approval request `{id}` was answered before (此批准请求已回答过)"
            )));
        }
        open.result = Some(match (is_approved, origin) {
            (false, _) => CallResult::Text(format!("{NOT_APPROVED}{reason}"), true),
            (true, Origin::New) => CallResult::Approved,
            // Its result follows, unless the turn ended before it.
            (true, Origin::Earlier) => CallResult::Text(UNKNOWN_RESULT.to_owned(), true),
        });
        Ok(())
    }

    /// Ends the open assistant message.
    fn flush(&mut self) -> Result<(), ApiError> {
        let (text, open) = (std::mem::take(&mut self.text), std::mem::take(&mut self.calls));
        self.positions.clear();
        if text.is_empty() && open.is_empty() {
            return Ok(());
        }
        let calls = open.iter().map(|open| open.call.clone()).collect();
        self.push(ChatMessage::Assistant { text, calls });
        let mut approved = Vec::new();
        for OpenCall { call, is_function, result } in open {
            let (text, failed) = match result {
                Some(CallResult::Text(text, failed)) => (text, failed),
                Some(CallResult::Approved) => {
                    approved.push(call.id.as_str().to_owned());
                    continue;
                }
                None if is_function => {
                    return Err(error(format!(
                        "no output was given for the function call `{}` (缺少此函数调用的结果)",
                        call.id.as_str()
                    )));
                }
                None => (NOT_APPROVED.to_owned(), true),
            };
            self.push(ChatMessage::Tool { call: call.id, tool: call.tool, text, failed });
        }
        self.messages.approved.extend(approved);
        Ok(())
    }

    fn push(&mut self, message: ChatMessage) {
        let messages = &mut self.messages;
        if messages.approved.is_empty() {
            messages.before.push(message);
        } else {
            messages.after.push(message);
        }
    }
}

/// The type of an item. A message needs none.
fn kind_of(item: &Value) -> &str {
    item["type"].as_str().unwrap_or(if item["role"].is_string() { "message" } else { "" })
}

fn error(message: impl Into<String>) -> ApiError {
    ApiError { param: None, ..ApiError::invalid("input", message) }
}

fn required(item: &Value, name: &str) -> Result<String, ApiError> {
    item[name].as_str().map(str::to_owned).ok_or_else(|| error(format!("`{name}` is required in this item")))
}

/// The text of a content: a string, or a list of parts.
pub(crate) fn content(content: &Value, name: &str) -> Result<String, ApiError> {
    match content {
        Value::String(text) => Ok(text.clone()),
        Value::Null => Ok(String::new()),
        Value::Array(parts) => {
            let texts: Result<Vec<&str>, ApiError> = parts.iter().map(part_text).collect();
            Ok(texts?.join("\n"))
        }
        _ => Err(error(format!("`{name}` must be a string or a list of parts"))),
    }
}

fn part_text(part: &Value) -> Result<&str, ApiError> {
    let field = match part["type"].as_str() {
        Some("input_text" | "output_text" | "text" | "summary_text" | "reasoning_text") => "text",
        Some("refusal") => "refusal",
        Some(other) => {
            return Err(error(format!(
                "content of type `{other}` is not supported: the agent reads text (仅支持文本内容)"
            )));
        }
        None => return Err(error("a part of a content needs a `type`")),
    };
    part[field].as_str().ok_or_else(|| error(format!("`{field}` is required in this part")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A short form of the messages: roles, with calls and results.
    fn shape(messages: &[ChatMessage]) -> String {
        let one = |message: &ChatMessage| match message {
            ChatMessage::User(text) => format!("user({text})"),
            ChatMessage::Assistant { text, calls } => {
                let calls: Vec<&str> = calls.iter().map(|call| call.tool.as_str()).collect();
                format!("assistant({text}){calls:?}")
            }
            ChatMessage::Tool { call, text, failed, .. } => {
                format!("tool({} {text} {failed})", call.as_str())
            }
        };
        messages.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn calls_keep_their_results() {
        let items = [
            json!({"role": "system", "content": "be brief"}),
            json!({"role": "user", "content": [{"type": "input_text", "text": "hi"}]}),
            json!({"type": "mcp_call", "id": "mcp_1", "server_label": "s", "name": "look", "arguments": "{}", "output": "seen"}),
            json!({"type": "function_call", "call_id": "c1", "name": "mine", "arguments": "{\"a\":1}"}),
            json!({"type": "function_call_output", "call_id": "c1", "output": "42"}),
        ];
        let messages = Messages::of(&[], &items).unwrap();
        assert_eq!(messages.instructions, ["be brief"]);
        assert_eq!(
            shape(&messages.before),
            "user(hi) assistant()[\"look\", \"mine\"] tool(mcp_1 seen false) tool(c1 42 false)"
        );
        // A function without its output cannot be continued.
        let error = Messages::of(&[], &items[..4]).unwrap_err();
        assert!(error.message.contains("`c1`"), "{error:?}");
        // Nor is a second output accepted.
        let twice = [&items[..], &items[4..]].concat();
        let error = Messages::of(&[], &twice).unwrap_err();
        assert_eq!(error.param.as_deref(), Some("input[5]"));
        assert!(error.message.contains("`c1`"), "{error:?}");
        // Nor can an output without its call.
        let error = Messages::of(&[], &items[4..]).unwrap_err();
        assert_eq!(error.param.as_deref(), Some("input[0]"));
    }

    #[test]
    fn only_new_approvals_are_run() {
        let request = json!({"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "s", "name": "wipe", "arguments": "{}"});
        let approve = |flag: bool| json!({"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": flag});
        let user = json!({"role": "user", "content": "wipe it"});
        let earlier = [user.clone(), request];
        let next = json!({"role": "user", "content": "and then?"});
        let messages = Messages::of(&earlier, &[approve(true), next.clone()]).unwrap();
        assert_eq!(messages.approved, ["mcpr_1"]);
        assert_eq!(shape(&messages.after), "user(and then?)");
        let messages = Messages::of(&earlier, &[approve(false)]).unwrap();
        assert!(messages.approved.is_empty() && shape(&messages.before).contains("did not approve"));
        // An approval of an earlier request is not repeated.
        let earlier: Vec<Value> = earlier.into_iter().chain([approve(true)]).collect();
        let messages = Messages::of(&earlier, std::slice::from_ref(&next)).unwrap();
        assert!(messages.approved.is_empty() && shape(&messages.before).contains("not known"));
        let done = json!({"type": "mcp_call", "id": "mcp_2", "approval_request_id": "mcpr_1", "name": "wipe", "arguments": "{}", "output": "gone"});
        let earlier: Vec<Value> = earlier.into_iter().chain([done]).collect();
        let messages = Messages::of(&earlier, &[next]).unwrap();
        assert!(shape(&messages.before).contains("tool(mcpr_1 gone false)"), "{}", shape(&messages.before));
        // Two answers to one request, in whatever order.
        for answers in [[true, true], [false, true], [true, false]] {
            let request = json!({"type": "mcp_approval_request", "id": "mcpr_2", "server_label": "s", "name": "wipe", "arguments": "{}"});
            let answer = |approve: bool| json!({"type": "mcp_approval_response", "approval_request_id": "mcpr_2", "approve": approve});
            let error = Messages::of(&[user.clone(), request], &answers.map(answer)).unwrap_err();
            assert_eq!(error.param.as_deref(), Some("input[1]"));
            assert!(error.message.contains("`mcpr_2`"), "{error:?}");
        }
        // An answer to no request.
        assert!(Messages::of(&[user], &[approve(true)]).is_err());
    }
}
