//! JSON that represents a call: `{"name", "arguments"}` under any of the keys that models use, lists of them, and
//! complete API messages.

use toolhub_core::{RawJson, RawObject};

use super::known_tools::KnownTools;
use super::parsed_call::{CallMarking, Name, ParsedCall, positional};
use super::pythonic;
use crate::repair::{Ending, Repair, RepairedJson, Repairs, SourceText, value_at};

/// Maximum nesting of a call; API messages need four levels.
const MAX_DEPTH: usize = 6;

const CALL_LIST_KEYS: &[&str] =
    &["tool_calls", "toolCalls", "function_calls", "functionCalls", "calls", "tools_to_call"];
const WRAPPER_KEYS: &[&str] =
    &["function_call", "functionCall", "function", "tool_call", "toolUse", "tool_use", "toolCall", "message"];
const NAME_KEYS: &[&str] = &[
    "tool_name",
    "toolName",
    "function_name",
    "functionName",
    "name",
    "tool",
    "function",
    "action",
    "api_name",
    "api",
    "recipient_name",
    "tool_call",
    "method",
];
const ARGUMENT_KEYS: &[&str] = &[
    "arguments",
    "parameters",
    "args",
    "params",
    "input",
    "tool_input",
    "toolInput",
    "action_input",
    "tool_arguments",
    "tool_args",
    "tool_parameters",
    "function_arguments",
    "function_args",
    "argument",
    "parameter",
    "kwargs",
    "inputs",
];
/// Keys of arguments that only occur in calls.
const UNAMBIGUOUS_ARGUMENT_KEYS: &[&str] =
    &["arguments", "action_input", "tool_input", "tool_arguments", "tool_args"];
const ID_KEYS: &[&str] = &["id", "tool_call_id", "call_id", "toolUseId", "toolCallId"];
const SOURCE_KEYS: &[&str] = &["source", "server", "server_name"];
/// Keys that may accompany a call and are not arguments.
const IGNORED_KEYS: &[&str] =
    &["type", "index", "reason", "thought", "description", "role", "content", "status"];

/// The member that names a tool, and its text.
struct NameMember<'a> {
    key: &'a str,
    text: &'a str,
}

/// The classification of a value.
#[derive(Debug)]
pub(super) enum JsonCalls {
    /// Calls.
    Calls(Vec<ParsedCall>),
    /// A call whose arguments cannot be parsed.
    Broken,
    /// Not a call.
    NotACall,
}

/// Extracts the calls of a value.
pub(super) fn parse_calls(repaired: &RepairedJson, setting: CallMarking, known: &KnownTools) -> JsonCalls {
    if repaired.placeholder {
        return JsonCalls::NotACall;
    }
    let reader = Reader { setting, known };
    let mut calls = Vec::new();
    match reader.value(&repaired.json, MAX_DEPTH, &mut calls) {
        ReadResult::Call if !calls.is_empty() => {
            for call in &mut calls {
                call.repairs.join(repaired.repairs);
            }
            if let (Some(last), true) = (calls.last_mut(), repaired.ending == Ending::CutInside) {
                last.ending = repaired.ending;
            }
            JsonCalls::Calls(calls)
        }
        ReadResult::Call | ReadResult::NotACall => JsonCalls::NotACall,
        ReadResult::Broken => JsonCalls::Broken,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadResult {
    Call,
    Broken,
    NotACall,
}

#[derive(Clone, Copy)]
struct Reader<'k> {
    setting: CallMarking,
    known: &'k KnownTools,
}

impl<'k> Reader<'k> {
    fn value(self, json: &RawJson, depth: usize, calls: &mut Vec<ParsedCall>) -> ReadResult {
        let Some(depth) = depth.checked_sub(1) else { return ReadResult::NotACall };
        match json.get().as_bytes().first() {
            Some(b'{') => match json.object() {
                Some(object) => self.object(&object, depth, calls),
                None => ReadResult::NotACall,
            },
            Some(b'[') => {
                let items: Vec<RawJson> = json.decode().unwrap_or_default();
                self.all(&items, depth, calls)
            }
            Some(b'"') => self.text(&json.decode::<String>().unwrap_or_default(), depth, calls),
            _ => ReadResult::NotACall,
        }
    }

    /// A list contains calls only if each item is a call.
    fn all(self, items: &[RawJson], depth: usize, calls: &mut Vec<ParsedCall>) -> ReadResult {
        let mut found = Vec::new();
        for item in items {
            match self.value(item, depth, &mut found) {
                ReadResult::Call => {}
                other => return other,
            }
        }
        if found.is_empty() {
            return ReadResult::NotACall;
        }
        calls.extend(found);
        ReadResult::Call
    }

    /// A string inside the JSON: a Python-style call, or encoded JSON.
    fn text(self, text: &str, depth: usize, calls: &mut Vec<ParsedCall>) -> ReadResult {
        let source = SourceText::new(text.trim());
        if source.text().starts_with(['{', '[']) {
            return match value_at(&source, 0) {
                Some(inner) if inner.end == source.len() => self.value(&inner.json, depth, calls),
                _ => ReadResult::NotACall,
            };
        }
        match pythonic::all_calls(&source, 0, self.known) {
            Some(group) if group.end == source.len() => {
                calls.extend(group.calls);
                ReadResult::Call
            }
            _ => ReadResult::NotACall,
        }
    }

    fn object(self, object: &RawObject, depth: usize, calls: &mut Vec<ParsedCall>) -> ReadResult {
        if is_answer(object) {
            return ReadResult::NotACall;
        }
        for holder in CALL_LIST_KEYS {
            if let Some(items) = object.get(holder).and_then(|value| value.decode::<Vec<RawJson>>().ok()) {
                return Self { setting: CallMarking::Marked, ..self }.all(&items, depth, calls);
            }
        }
        if let Some(step) = self.message(object, depth, calls) {
            return step;
        }
        for wrapper in WRAPPER_KEYS {
            if let Some(inner) = object.get(wrapper).and_then(RawJson::object) {
                let before = calls.len();
                let step = self.object(&inner, depth.saturating_sub(1), calls);
                if let (ReadResult::Call, Some(call)) = (step, calls.get_mut(before)) {
                    call.id = call.id.take().or_else(|| text_of(object, ID_KEYS));
                    return step;
                }
            }
        }
        let named = NAME_KEYS.iter().find_map(|key| Some((*key, object.get(key)?.decode::<String>().ok()?)));
        match named {
            Some((key, given)) => self.named(object, NameMember { key, text: &given }, calls),
            None => self.keyed_by_tool(object, calls),
        }
    }

    /// API messages: Anthropic's `content`, Gemini's `parts`, OpenAI's `choices`.
    fn message(self, object: &RawObject, depth: usize, calls: &mut Vec<ParsedCall>) -> Option<ReadResult> {
        let list = ["content", "parts", "choices", "candidates"]
            .iter()
            .find_map(|key| object.get(key)?.decode::<Vec<RawJson>>().ok())?;
        let reader = Self { setting: CallMarking::Marked, ..self };
        let mut found = Vec::new();
        for item in list.iter().filter(|item| item.is_object()) {
            let Some(part) = item.object() else { continue };
            let kind = text_of(&part, &["type"]);
            if !matches!(
                kind.as_deref(),
                None | Some("tool_use" | "function_call" | "function" | "tool_call")
            ) {
                continue;
            }
            // Text parts are mixed with calls; they add nothing.
            reader.value(item, depth, &mut found);
        }
        if found.is_empty() {
            return None;
        }
        calls.extend(found);
        Some(ReadResult::Call)
    }

    fn named(
        self,
        object: &RawObject,
        NameMember { key, text }: NameMember<'_>,
        calls: &mut Vec<ParsedCall>,
    ) -> ReadResult {
        let Some(name) = Name::read(text, self.known) else { return ReadResult::NotACall };
        if ["finalanswer", "final_answer", "final"].contains(&name.text.to_lowercase().as_str()) {
            return ReadResult::NotACall;
        }
        let given = ARGUMENT_KEYS
            .iter()
            .find_map(|word| Some((*word, object.get(word)?)))
            .filter(|(word, _)| *word != key);
        let plainly =
            given.is_some_and(|(word, _)| UNAMBIGUOUS_ARGUMENT_KEYS.contains(&word)) || key == "tool_name";
        let bare = self.setting == CallMarking::Bare;
        if bare && !name.is_known() && !(plainly || (self.known.is_empty() && given.is_some())) {
            return ReadResult::NotACall;
        }
        let mut repairs = Repairs::default();
        let arguments = match given {
            Some((_, value)) if is_schema(value) && !name.tool.is_some_and(|tool| tool.has("properties")) => {
                return ReadResult::NotACall;
            }
            Some((_, value)) => match arguments(value, &name, &mut repairs) {
                Some(arguments) => arguments,
                None if bare && !name.is_known() => return ReadResult::NotACall,
                None => return ReadResult::Broken,
            },
            None => match flat(object, FlatCall { key, name: &name }, self.setting, &mut repairs) {
                Some(arguments) => arguments,
                None => return ReadResult::NotACall,
            },
        };
        let mut call = ParsedCall::new(name, arguments);
        call.id = text_of(object, ID_KEYS);
        call.source = text_of(object, SOURCE_KEYS);
        call.repairs.join(repairs);
        calls.push(call);
        ReadResult::Call
    }

    /// `{"get_time": {"city": "Kyoto"}}`: each key is the name of a tool.
    fn keyed_by_tool(self, object: &RawObject, calls: &mut Vec<ParsedCall>) -> ReadResult {
        let mut found = Vec::new();
        for (key, value) in object.iter() {
            let Some(name) = Name::read(key, self.known).filter(Name::is_known) else {
                return ReadResult::NotACall;
            };
            let mut repairs = Repairs::default();
            let Some(arguments) = arguments(value, &name, &mut repairs) else { return ReadResult::NotACall };
            let mut call = ParsedCall::new(name, arguments);
            call.repairs.join(repairs);
            found.push(call);
        }
        if found.is_empty() {
            return ReadResult::NotACall;
        }
        calls.extend(found);
        ReadResult::Call
    }
}

/// Converts the arguments to an object, if possible.
pub(super) fn arguments(value: &RawJson, name: &Name<'_>, repairs: &mut Repairs) -> Option<RawJson> {
    match value.get().as_bytes().first()? {
        b'{' => Some(value.clone()),
        b'n' => Some(RawJson::empty_object()),
        b'"' => {
            let text: String = value.decode().ok()?;
            arguments_in_text(&text, name, repairs)
        }
        b'[' => {
            let items: Vec<RawJson> = value.decode().ok()?;
            match items.as_slice() {
                [] => Some(RawJson::empty_object()),
                [one] if one.is_object() => Some(one.clone()),
                _ => positional(&items, name, repairs),
            }
        }
        _ => positional(std::slice::from_ref(value), name, repairs),
    }
}

/// Arguments in a single string: JSON, or the value of the only parameter.
pub(super) fn arguments_in_text(text: &str, name: &Name<'_>, repairs: &mut Repairs) -> Option<RawJson> {
    let text = text.trim();
    if text.is_empty() || text == "None" || text == "null" {
        return Some(RawJson::empty_object());
    }
    if text.starts_with('{') {
        let source = SourceText::new(text);
        let repaired =
            value_at(&source, 0).filter(|repaired| repaired.json.is_object() && !repaired.placeholder);
        if let Some(repaired) = repaired {
            repairs.join(repaired.repairs);
            return Some(repaired.json);
        }
    }
    let parameter = name.tool?.only_parameter()?;
    repairs.add(Repair::BareArgument);
    Some(RawObject::default().with(parameter.to_owned(), text).into_raw())
}

/// The member with the name of a call, and that name.
struct FlatCall<'a> {
    key: &'a str,
    name: &'a Name<'a>,
}

/// Arguments beside the name, or none.
fn flat(
    object: &RawObject,
    FlatCall { key, name }: FlatCall<'_>,
    setting: CallMarking,
    repairs: &mut Repairs,
) -> Option<RawJson> {
    let bare = setting == CallMarking::Bare;
    let beside = |member: &str| {
        let spoken_of = name.tool.is_some_and(|tool| tool.has(member));
        member == key
            || (!spoken_of
                && (ID_KEYS.contains(&member)
                    || SOURCE_KEYS.contains(&member)
                    || IGNORED_KEYS.contains(&member)))
    };
    let mut members = RawObject::default();
    for (member, value) in object.iter().filter(|(member, _)| !beside(member)) {
        members.set(member.to_owned(), value.clone());
    }
    if members.is_empty() {
        return (!bare || name.is_known()).then(RawJson::empty_object);
    }
    let fits = match name.tool {
        Some(tool) => members.iter().all(|(member, _)| tool.has(member)),
        None => !bare,
    };
    repairs.add(Repair::FlatArguments);
    fits.then(|| members.into_raw())
}

/// Whether an object is a tool result, not a call.
fn is_answer(object: &RawObject) -> bool {
    let kind = text_of(object, &["type"]);
    let role = text_of(object, &["role"]);
    matches!(kind.as_deref(), Some("tool_result" | "function_call_output" | "function_response" | "text"))
        || matches!(role.as_deref(), Some("tool" | "user" | "system" | "function"))
}

/// Whether a value is a schema of arguments, as in a quoted tool definition.
fn is_schema(value: &RawJson) -> bool {
    let Some(object) = value.object() else { return false };
    let kind = text_of(&object, &["type"]);
    object.get("properties").is_some_and(RawJson::is_object)
        && matches!(kind.as_deref(), Some("object" | "dict"))
}

fn text_of(object: &RawObject, keys: &[&str]) -> Option<String> {
    keys.iter().find_map(|key| object.get(key)?.decode().ok())
}
