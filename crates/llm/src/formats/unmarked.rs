//! Calls without surrounding markers: a line of Python, a name above an object, code in a fence. Known tool names
//! distinguish them from prose; if no tools are known, the text must contain nothing else.

use super::expression::{ExpressionResult, ParseContext};
use super::parsed_call::{CallMarking, Group, Name, ParsedCall};
use super::pythonic;
use super::tag::Tag;
use crate::repair::{Ending, Repair, SourceText};

impl<'s, 't> ParseContext<'s, 't> {
    /// The limit of repairs for a value without markers: the next special token or call tag.
    pub(super) fn bare_limit(&self, at: usize) -> usize {
        let stops =
            |tag: &Tag<'t>| tag.special || super::tag_kind::tag_kind(tag) != super::tag_kind::TagKind::Other;
        let find = || super::tag::find_tag(self.source, at, stops).map_or(self.source.len(), |tag| tag.start);
        self.source.memoized(at, find)
    }

    /// Whether Python-style calls are intended as calls.
    pub(super) fn plausible(&self, group: &Group, begins_line: bool) -> bool {
        let plain = |call: &ParsedCall| call.ending == Ending::Whole && !call.repairs.has(Repair::Positional);
        let known = |call: &ParsedCall| self.known.named(&call.tool).is_some();
        // A list on a line of its own is sufficient, even with a misspelled name.
        (begins_line && group.calls.iter().all(plain)) || group.calls.iter().all(known)
    }

    /// Calls on a line of their own: `get_time(city="Kyoto")`, or a name with its arguments on the next line.
    pub(super) fn bare_python(&self, at: usize) -> Option<Group> {
        let (raw_name, end) = pythonic::name_at(self.source, at)?;
        let name = Name::read(raw_name, self.known)?;
        if !self.known.is_empty() && !name.is_known() {
            return None;
        }
        if self.source.char_at(end) != Some('(') {
            return self.name_over_object(name, end);
        }
        let group = pythonic::all_calls(self.source, at, self.known)?;
        let next = self.source.skip_space(group.end);
        let over = self.source.char_at(next).is_none();
        let alone = over
            || self.source.slice(group.end, next).contains('\n')
            || self.source.char_at(next) == Some('`');
        let is_intended = |call: &ParsedCall| {
            // `get_time(city)` in a sentence refers to a parameter and has no value.
            let guessed = call.repairs.has(Repair::Positional) && call.repairs.has(Repair::Literal);
            self.known.named(&call.tool).is_some() && !guessed
        };
        let is_complete =
            |call: &ParsedCall| call.ending == Ending::Whole && !call.repairs.has(Repair::Positional);
        let is_plausible = if self.known.is_empty() {
            over && at == self.source.skip_space(0)
                && group.calls.iter().all(is_complete)
                && group.calls.iter().any(|call| call.arguments.get() != "{}")
        } else {
            alone && group.calls.iter().all(is_intended)
        };
        is_plausible.then_some(group)
    }

    /// A tool name on one line and an object on the next, as in GLM 4.
    fn name_over_object(&self, name: Name<'_>, end: usize) -> Option<Group> {
        let brace = self.source.skip_space(end);
        if self.source.char_at(brace) != Some('{') || !self.source.slice(end, brace).contains('\n') {
            return None;
        }
        let repaired =
            self.json_at(brace, self.bare_limit(brace)).filter(|repaired| !repaired.placeholder)?;
        let doubtful = name.tool.is_none() && (repaired.ending != Ending::Whole || name.text.len() < 3);
        if doubtful || !repaired.json.is_object() {
            return None;
        }
        let mut call = ParsedCall::new(name, repaired.json);
        call.repairs.join(repaired.repairs);
        call.ending = repaired.ending;
        Some(Group { calls: vec![call], end: repaired.end })
    }

    /// The calls in a fence whose first line ends at `line`, if the fence contains nothing else.
    pub(super) fn fenced_calls(&self, line: usize, language: &str) -> Option<Group> {
        let language = language.trim().to_lowercase();
        let marked =
            ["tool_call", "tool_calls", "tool_code", "function_call", "tool_use"].contains(&&*language);
        let close = self.source.find(line, "```");
        let stop = close.unwrap_or(self.source.len());
        let inside = self.source.up_to(stop);
        let context = ParseContext { source: &inside, known: self.known };
        let calls = context.statements(line, if marked { CallMarking::Marked } else { CallMarking::Bare });
        self.source.spend(inside.work());
        let mut calls = calls?;
        if close.is_none() {
            calls.last_mut()?.repairs.add(Repair::Unclosed);
        }
        Some(Group { calls, end: close.map_or(stop, |close| close + 3) })
    }

    /// Parses consecutive calls up to the end; `None` if there is anything else.
    fn statements(&self, from: usize, setting: CallMarking) -> Option<Vec<ParsedCall>> {
        let mut calls = Vec::new();
        let mut at = self.next_statement(from);
        while self.source.char_at(at).is_some() {
            let (start, wrapped) = self.inside_statement(at);
            let ExpressionResult::Calls(group) = self.expression(start, Some(self.source.len()), setting)
            else {
                return None;
            };
            let python = matches!(self.source.char_at(start), Some(first) if first != '{' && first != '<');
            if python && setting == CallMarking::Bare && !self.known.is_empty() {
                let known = group.calls.iter().all(|call| self.known.named(&call.tool).is_some());
                if !known {
                    return None;
                }
            }
            if python
                && self.known.is_empty()
                && self.source.char_at(start) != Some('[')
                && group.calls.iter().any(|call| call.arguments.get() == "{}")
                && setting == CallMarking::Bare
            {
                return None;
            }
            calls.extend(group.calls);
            let end = if wrapped { self.source.find(group.end, ")")? + 1 } else { group.end };
            at = self.next_statement(end);
        }
        (!calls.is_empty()).then_some(calls)
    }

    fn next_statement(&self, at: usize) -> usize {
        let mut at = self.source.skip_space_and_comments(at).0;
        while matches!(self.source.char_at(at), Some(';' | ',')) {
            at = self.source.skip_space_and_comments(at + 1).0;
        }
        at
    }

    /// Skips `print(` and `result =` before a call. Returns whether a parenthesis is to be closed.
    fn inside_statement(&self, at: usize) -> (usize, bool) {
        if self.source.starts_with(at, "print(") {
            return (at + "print(".len(), true);
        }
        let assigned = pythonic::name_at(self.source, at).and_then(|(_, end)| {
            let equals = self.source.skip_space(end);
            let is_assignment =
                self.source.char_at(equals) == Some('=') && !self.source.starts_with(equals, "==");
            is_assignment.then(|| self.source.skip_space(equals + 1))
        });
        (assigned.unwrap_or(at), false)
    }

    /// A call whose tag is the name of the tool, with a tag per argument.
    pub(super) fn tool_tag(&self, tag: &Tag<'t>, name: &str) -> Option<Group> {
        let close = format!("</{name}>");
        let end = self.source.find(tag.end, &close)?;
        let named = Tag { value: Some(self.source.slice(tag.start + 1, tag.end - 1).trim()), ..tag.clone() };
        let bounded = SourceText::new(self.source.slice(0, end + close.len()));
        let context = ParseContext { source: &bounded, known: self.known };
        context.named_tag(&named)
    }
}
