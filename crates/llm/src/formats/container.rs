//! The content between the markers of calls: optional noise, calls, optional noise.

use super::expression::{ExpressionResult, ParseContext};
use super::parsed_call::{CallMarking, ParsedCall};
use super::tag::{Tag, find_tag};
use super::tag_kind::{TagKind, ends_calls, tag_kind};
use crate::repair::Repair;

/// The content of a container.
#[derive(Debug)]
pub(super) enum ContainerContent {
    Calls {
        calls: Vec<ParsedCall>,
        broken: Vec<(usize, usize)>,
        end: usize,
    },
    /// No calls.
    Prose,
}

impl<'s, 't> ParseContext<'s, 't> {
    /// Parses the text after an opening marker that ends at `from`.
    pub(super) fn container(&self, from: usize) -> ContainerContent {
        let (mut calls, mut broken): (Vec<ParsedCall>, Vec<(usize, usize)>) = (Vec::new(), Vec::new());
        let (start, fenced) = self.opening(from);
        let mut at = start;
        let mut limit = self.limit(at);
        let mut end = at;
        loop {
            match self.expression(at, Some(limit), CallMarking::Marked) {
                ExpressionResult::Calls(group) => {
                    end = group.end.max(at + 1);
                    calls.extend(group.calls);
                }
                ExpressionResult::Broken(stop) => {
                    end = stop.max(at + 1).max(limit.min(self.source.len()));
                    broken.push((at, stop));
                }
                ExpressionResult::Nothing => break,
            }
            let next = self.between(end);
            if next >= self.source.len() {
                break;
            }
            limit = self.limit(next);
            at = next;
        }
        if calls.is_empty() && (broken.is_empty() || self.is_shown(start, limit)) {
            return ContainerContent::Prose;
        }
        let (end, closed) = self.closing(end, fenced);
        if let (false, Some(last)) = (closed, calls.last_mut()) {
            last.repairs.add(Repair::Unclosed);
        }
        ContainerContent::Calls { calls, broken, end }
    }

    /// The limit of repairs: the next marker of calls, or of a quoted result.
    fn limit(&self, at: usize) -> usize {
        let stops = |tag: &Tag<'t>| {
            ends_calls(tag)
                || matches!(tag_kind(tag), TagKind::Call | TagKind::Result)
                || (tag_kind(tag) == TagKind::Token
                    && matches!(tag.name.as_str(), "im_start" | "start_header_id"))
        };
        let mut limit = find_tag(self.source, at, stops).map_or(self.source.len(), |tag| tag.start);
        if let Some(mark) = self.source.slice(at, limit).find("[TOOL_CALLS]") {
            limit = at + mark;
        }
        limit
    }

    /// Skips what may precede a call: spaces, further markers, tokens, declarations, a fence.
    fn opening(&self, mut at: usize) -> (usize, bool) {
        let mut fenced = false;
        loop {
            at = self.source.skip_space(at);
            let next = match self.source.char_at(at) {
                Some('<')
                    if self.source.starts_with(at, "<?xml") || self.source.starts_with(at, "<![CDATA[") =>
                {
                    let end = if self.source.starts_with(at, "<?") { ">" } else { "[CDATA[" };
                    self.source.find(at, end).map(|found| found + end.len())
                }
                Some('<') => {
                    Tag::at(self.source, at).filter(|tag| !tag.closing && is_opening(tag)).map(|tag| tag.end)
                }
                Some('`') if self.source.starts_with(at, "```") => {
                    fenced = true;
                    Some(self.fence_line(at))
                }
                _ => None,
            };
            match next {
                Some(next) => at = next,
                None => return (at, fenced),
            }
        }
    }

    /// The end of the first line of a fence; the call itself may be on that line.
    pub(super) fn fence_line(&self, at: usize) -> usize {
        let end = self.source.line_end(at);
        let line = self.source.slice(at, end);
        line.find(['{', '[', '<']).map_or(end, |brace| at + brace)
    }

    /// Skips what may separate two calls of a container.
    fn between(&self, at: usize) -> usize {
        let mut at = self.source.skip_space(at);
        while matches!(self.source.char_at(at), Some(',' | ';' | '，' | '；')) {
            at = self.source.skip_space(at + self.source.char_at(at).map_or(1, char::len_utf8));
        }
        // Kimi, DeepSeek and Step use markers around each call within a section.
        while let Some(tag) = Tag::at(self.source, at).filter(|tag| tag.special && is_inner(tag)) {
            at = self.source.skip_space(tag.end);
        }
        at
    }

    /// Skips what closes the container. Returns whether it was closed.
    fn closing(&self, end: usize, fenced: bool) -> (usize, bool) {
        let (mut at, mut closed, mut fenced) = (end, fenced, fenced);
        loop {
            let next = self.source.skip_space(at);
            let after = match self.source.char_at(next) {
                Some('<') => Tag::at(self.source, next).filter(ends_calls).map(|tag| tag.end),
                Some('`') if fenced && self.source.starts_with(next, "```") => {
                    fenced = false;
                    Some(next + 3)
                }
                Some(']') if self.source.starts_with(next, "]]>") => Some(next + 3),
                _ => None,
            };
            match after {
                Some(after) => {
                    at = after;
                    closed = true;
                }
                None => return (at, closed),
            }
        }
    }

    /// Whether unreadable content only illustrates the syntax of a call.
    fn is_shown(&self, start: usize, limit: usize) -> bool {
        let inside = self.source.slice(start, limit);
        inside.contains("...")
            || inside.contains('…')
            || !inside.trim_start().starts_with(['{', '[', '"', '\''])
    }
}

fn is_opening(tag: &Tag<'_>) -> bool {
    // `<tool_call name="x">` is not skipped, since its name would be lost; it is parsed as a named tag.
    match tag_kind(tag) {
        TagKind::Call => tag.value.is_none(),
        TagKind::Token => {
            tag.special && !matches!(tag.name.as_str(), "im_start" | "start_header_id" | "channel")
        }
        _ => false,
    }
}

fn is_inner(tag: &Tag<'_>) -> bool {
    matches!(
        tag.name.as_str(),
        "tool_call_end" | "tool_call_begin" | "end_function_call" | "start_function_call"
    )
}
