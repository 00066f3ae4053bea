//! Calls as tags: `<function=name><parameter=key>value</parameter></function>` of Qwen coder and Seed, `<invoke
//! name="…">` of Anthropic, MiniMax, DeepSeek and Step, `<function=name>{…}</function>` of Functionary, and calls with
//! a tag per field.

use toolhub_core::{RawJson, RawObject};

use super::expression::ParseContext;
use super::json_shape::arguments_in_text;
use super::known_tools::ParameterKind;
use super::parsed_call::{Group, Name, ParsedCall};
use super::tag::{Tag, find_tag};
use super::tag_kind::{TagKind, tag_kind};
use crate::repair::{Ending, Repair, Repairs};

const PARAMETERS: &[&str] = &["parameter", "param", "argument", "arg"];
const NAMES: &[&str] = &["name", "tool_name", "function_name", "toolname", "tool", "function"];
const ARGUMENTS: &[&str] =
    &["arguments", "parameters", "args", "params", "input", "tool_input", "arguments_json"];

/// The content between an opening and a closing tag.
struct Body<'t> {
    text: &'t str,
    start: usize,
    /// The offset after the closing tag.
    end: usize,
    closed: bool,
}

impl<'s, 't> ParseContext<'s, 't> {
    /// Parses the call whose name is in the tag `open`.
    pub(super) fn named_tag(&self, open: &Tag<'t>) -> Option<Group> {
        let raw_name = open.value.or_else(|| open.attribute("name"))?;
        let name = Name::read(raw_name, self.known)?;
        let body = self.call_body(open);
        let mut repairs = Repairs::default();
        if !body.closed {
            repairs.add(Repair::Unclosed);
        }
        let inside = self.source.skip_space(body.start);
        let (arguments, ending, end) = if matches!(self.source.char_at(inside), Some('{')) {
            let repaired = self.json_at(inside, body.start + body.text.len())?;
            repairs.join(repaired.repairs);
            let end = body.end.max(repaired.end);
            (repaired.json.is_object().then_some(repaired.json)?, repaired.ending, end)
        } else {
            (self.parameters(&body, &name, &mut repairs)?, Ending::Whole, body.end)
        };
        let mut call = ParsedCall::new(name, arguments);
        call.repairs.join(repairs);
        call.ending = ending;
        Some(Group { calls: vec![call], end })
    }

    /// The content up to the closing tag; if that is missing, up to the next call or the end of the calls.
    fn call_body(&self, open: &Tag<'t>) -> Body<'t> {
        // A JSON string may contain the closing tag.
        let inside = self.source.skip_space(open.end);
        let from = crate::repair::strict_at(self.source, inside).map_or(open.end, |repaired| repaired.end);
        let ends = |tag: &Tag<'t>| {
            matches!(tag_kind(tag), TagKind::Call | TagKind::Result)
                || (tag.name == open.name && (tag.closing || tag_kind(tag) == TagKind::NamedCall))
        };
        let found = find_tag(self.source, from, ends);
        let closed = found.as_ref().is_some_and(|tag| tag.closing && tag.name == open.name);
        let stop = found.as_ref().map_or(self.source.len(), |tag| tag.start);
        let end = found.filter(|_| closed).map_or(stop, |tag| tag.end);
        Body { text: self.source.slice(open.end, stop), start: open.end, end, closed }
    }

    /// Parses the parameters of a call, each in its own tag.
    fn parameters(&self, body: &Body<'t>, name: &Name<'_>, repairs: &mut Repairs) -> Option<RawJson> {
        let source = self.source.up_to(body.start + body.text.len());
        let mut members = RawObject::default();
        let mut at = body.start;
        while let Some(tag) = find_tag(&source, at, |tag| !tag.closing) {
            let listed = PARAMETERS.contains(&tag.name.as_str());
            let key = match (listed, tag.value.or_else(|| tag.attribute("name"))) {
                (true, Some(key)) => key.to_owned(),
                (true, None) => return None,
                (false, _) if ARGUMENTS.contains(&tag.name.as_str()) && !has_parameter(name, &tag.name) => {
                    let (inner, _) = element(&source, &tag);
                    let start = source.skip_space(tag.end);
                    if source.char_at(start) == Some('{') {
                        return arguments_in_text(inner, name, repairs);
                    }
                    at = tag.end;
                    continue;
                }
                (false, _) => source.slice(tag.start + 1, tag.end - 1).trim().to_owned(),
            };
            let (text, end) = element(&source, &tag);
            let parameter_kind = match tag.attribute("string") {
                Some("true") => Some(ParameterKind::Text),
                Some(_) => Some(ParameterKind::Other),
                None => name.tool.and_then(|tool| tool.parameter_kind(&key)),
            };
            members.set(key, typed(text, parameter_kind, repairs));
            at = end;
        }
        let bare = body.text.trim();
        if members.is_empty() && !bare.is_empty() && !bare.contains('<') {
            return arguments_in_text(bare, name, repairs);
        }
        self.source.spend(body.text.len());
        Some(members.into_raw())
    }

    /// A call with a tag per field at `at`: `<name>get_time</name><arguments>{…}</arguments>`.
    pub(super) fn fields(&self, at: usize, limit: usize) -> Option<Group> {
        let first = Tag::at(self.source, at)?;
        if first.closing || !NAMES.contains(&first.name.as_str()) || first.value.is_some() {
            // `<server_name>` may come first, as in Cline's `<use_mcp_tool>`.
            if !matches!(first.name.as_str(), "server_name" | "server" | "id" | "source") {
                return None;
            }
            let (text, end) = element(self.source, &first);
            let mut group = self.fields(self.source.skip_space(end), limit)?;
            if let (Some(call), true) = (group.calls.first_mut(), first.name != "id") {
                call.source = Some(text.trim().to_owned());
            }
            return Some(group);
        }
        let (raw_name, after) = element(self.source, &first);
        let name = Name::read(raw_name, self.known)?;
        let mut repairs = Repairs::default();
        let body = Body { text: self.source.slice(after, limit), start: after, end: limit, closed: true };
        let arguments = self.parameters(&body, &name, &mut repairs)?;
        let mut call = ParsedCall::new(name, arguments);
        call.repairs.join(repairs);
        Some(Group { calls: vec![call], end: limit })
    }
}

/// Whether the tool with this name has such a parameter; `false` if the tool is unknown.
fn has_parameter(name: &Name<'_>, parameter: &str) -> bool {
    name.tool.is_some_and(|tool| tool.has(parameter))
}

/// The text of an element and the offset after it. An unclosed element ends at the next tag of the same name.
pub(super) fn element<'t>(source: &crate::repair::SourceText<'t>, open: &Tag<'t>) -> (&'t str, usize) {
    let same = |tag: &Tag<'t>| tag.name == open.name;
    match find_tag(source, open.end, same) {
        Some(close) if close.closing => (source.slice(open.end, close.start), close.end),
        Some(next) => (source.slice(open.end, next.start), next.start),
        None => (source.rest(open.end), source.len()),
    }
}

/// Converts the text of an element: JSON if it is valid and the parameter is not a string, otherwise a string.
pub(super) fn typed(text: &str, parameter_kind: Option<ParameterKind>, repairs: &mut Repairs) -> RawJson {
    let as_text = || {
        let text = text.strip_prefix("\r\n").or_else(|| text.strip_prefix('\n')).unwrap_or(text);
        RawJson::from(text.strip_suffix("\r\n").or_else(|| text.strip_suffix('\n')).unwrap_or(text))
    };
    let trimmed = text.trim();
    if parameter_kind == Some(ParameterKind::Text) {
        return as_text();
    }
    match trimmed {
        "True" | "False" | "None" => {
            repairs.add(Repair::Literal);
            return RawJson::parse(match trimmed {
                "True" => "true",
                "False" => "false",
                _ => "null",
            })
            .unwrap_or_else(|_| RawJson::null());
        }
        _ => {}
    }
    // Long digit sequences are telephone or identity numbers, not quantities.
    if parameter_kind.is_none() && trimmed.len() > 10 && trimmed.bytes().all(|byte| byte.is_ascii_digit()) {
        return as_text();
    }
    // Quotes are part of a string unless the parameter accepts other types.
    let quoted = trimmed.starts_with('"');
    if let Ok(json) = RawJson::parse(trimmed)
        && (!quoted || parameter_kind == Some(ParameterKind::Other))
    {
        return json;
    }
    if trimmed.starts_with(['{', '[']) {
        let source = crate::repair::SourceText::new(trimmed);
        let repaired = crate::repair::value_at(&source, 0);
        // Without a declared type, truncated JSON is a string.
        let is_usable = |ending: Ending| parameter_kind.is_some() || ending == Ending::Whole;
        let usable = repaired.filter(|repaired| {
            repaired.end == trimmed.len() && !repaired.placeholder && is_usable(repaired.ending)
        });
        if let Some(repaired) = usable {
            repairs.join(repaired.repairs);
            return repaired.json;
        }
    }
    as_text()
}
