//! One or several adjacent calls in any syntax; the text at a position selects the parser.

use super::json_shape::{JsonCalls, parse_calls};
use super::known_tools::KnownTools;
use super::parsed_call::{CallMarking, Group, Name, ParsedCall};
use super::pythonic;
use super::tag::Tag;
use super::tag_kind::{TagKind, tag_kind};
use crate::repair::{Ending, Repair, RepairedJson, SourceText, strict_at, value_at};

/// A text and the known tools.
#[derive(Clone, Copy)]
pub(super) struct ParseContext<'s, 't> {
    pub(super) source: &'s SourceText<'t>,
    pub(super) known: &'s KnownTools,
}

/// The result of parsing at a position.
#[derive(Debug)]
pub(super) enum ExpressionResult {
    Calls(Group),
    /// A call that cannot be parsed, up to that byte.
    Broken(usize),
    Nothing,
}

impl<'s, 't> ParseContext<'s, 't> {
    /// Parses the calls at `at`. Repairs stop at `limit`, the end of the surrounding markers; without markers, at the
    /// next one.
    pub(super) fn expression(
        &self,
        at: usize,
        limit: Option<usize>,
        setting: CallMarking,
    ) -> ExpressionResult {
        let first = self.source.char_at(at);
        let brace = matches!(first, Some('{' | '[' | '｛' | '［'));
        let limit = match limit {
            Some(limit) => limit,
            None if brace && self.is_strict(at) => self.source.len(),
            None => self.bare_limit(at),
        };
        let found = match first {
            Some('{' | '[' | '｛' | '［') => return self.json(at, limit, setting),
            Some('<') => self.tagged(at, limit),
            Some('"' | '\'') => return self.quoted(at, limit, setting),
            Some(_) => self.by_name(at, limit, setting),
            None => None,
        };
        found.map_or(ExpressionResult::Nothing, ExpressionResult::Calls)
    }

    /// Parses the JSON value at `at`; if it is invalid, repairs it within `limit`.
    pub(super) fn json_at(&self, at: usize, limit: usize) -> Option<RepairedJson> {
        if let Some(repaired) = strict_at(self.source, at) {
            return Some(repaired);
        }
        let bounded = self.source.up_to(limit);
        let repaired = value_at(&bounded, at);
        self.source.spend(bounded.work());
        if limit >= self.source.len() && bounded.take_end_seen() {
            self.source.touch_end();
        }
        repaired
    }

    /// Whether the value at `at` is valid JSON, so that no limit is needed.
    fn is_strict(&self, at: usize) -> bool {
        strict_at(self.source, at).is_some()
    }

    fn json(&self, at: usize, limit: usize, setting: CallMarking) -> ExpressionResult {
        let name_follows = |at: usize| {
            let next = self.source.skip_space(at + 1);
            self.source.char_at(next).is_some_and(|first| first.is_alphabetic() || first == '_')
        };
        if self.source.char_at(at) == Some('[') && name_follows(at) {
            return pythonic::list_at(self.source, at, self.known)
                .map_or(ExpressionResult::Nothing, ExpressionResult::Calls);
        }
        let read = self.json_at(at, limit);
        let shape =
            read.as_ref().map_or(JsonCalls::NotACall, |repaired| parse_calls(repaired, setting, self.known));
        // `['f(x='a')]`: unmatched quotes.
        if matches!(shape, JsonCalls::NotACall)
            && self.source.char_at(at) == Some('[')
            && matches!(self.source.char_at(self.source.skip_space(at + 1)), Some('\'' | '"' | '{'))
            && let Some(group) = pythonic::list_at(self.source, at, self.known)
        {
            return ExpressionResult::Calls(group);
        }
        let Some(repaired) = read else {
            return if setting == CallMarking::Marked {
                ExpressionResult::Broken(limit)
            } else {
                ExpressionResult::Nothing
            };
        };
        match shape {
            JsonCalls::Calls(calls) => {
                ExpressionResult::Calls(Group { calls, end: self.stray_closers(repaired.end) })
            }
            JsonCalls::Broken => ExpressionResult::Broken(repaired.end),
            JsonCalls::NotACall if setting == CallMarking::Marked && !repaired.placeholder => {
                ExpressionResult::Broken(repaired.end)
            }
            JsonCalls::NotACall => ExpressionResult::Nothing,
        }
    }

    /// Skips unmatched closing brackets.
    fn stray_closers(&self, end: usize) -> usize {
        let mut at = end;
        while matches!(self.source.char_at(at), Some('}' | ']')) {
            at += 1;
        }
        at
    }

    /// A call inside quotes, from a list without brackets.
    fn quoted(&self, at: usize, limit: usize, setting: CallMarking) -> ExpressionResult {
        let Some(quote) = self.source.char_at(at) else { return ExpressionResult::Nothing };
        let inner = at + 1;
        if setting == CallMarking::Bare || !matches!(self.source.char_at(inner), Some('{' | '[')) {
            return ExpressionResult::Nothing;
        }
        match self.json(inner, limit, setting) {
            ExpressionResult::Calls(mut group) => {
                if self.source.char_at(group.end) == Some(quote) {
                    group.end += 1;
                }
                ExpressionResult::Calls(group)
            }
            other => other,
        }
    }

    fn tagged(&self, at: usize, limit: usize) -> Option<Group> {
        let tag = Tag::at(self.source, at)?;
        if tag.closing {
            return None;
        }
        if tag_kind(&tag) == TagKind::NamedCall {
            return self.named_tag(&tag);
        }
        // `<get_time><city>Kyoto</city></get_time>`: the tag is the name of the tool.
        self.fields(at, limit)
    }

    /// A call that starts with a name: `f(…)`, `f {…}`, `f[ARGS]{…}`, `call:f{…}`, `functions.f:0<|…|>{…}`,
    /// `f<arg_key>…`.
    fn by_name(&self, at: usize, limit: usize, setting: CallMarking) -> Option<Group> {
        let (word, mut end) = pythonic::name_at(self.source, at)?;
        let word = word.strip_prefix("call:").unwrap_or(word);
        if self.source.char_at(end) == Some('(') {
            return pythonic::all_calls(self.source, at, self.known);
        }
        let mut raw_name = word;
        if matches!(word, "function" | "tool" | "json") {
            // DeepSeek writes the kind of call first; Step then uses tags for the call.
            let next = self.separators(end);
            if next > end && self.source.char_at(next) == Some('<') {
                return self.tagged(next, limit);
            }
            if next > end
                && let Some((second, after)) = pythonic::name_at(self.source, next)
            {
                (raw_name, end) = (second, after);
            }
        }
        let name = Name::read(raw_name, self.known)?;
        let next = self.separators(end);
        match self.source.char_at(next) {
            Some('{' | '｛') => {
                let repaired = self.json_at(next, limit).filter(|repaired| !repaired.placeholder)?;
                let mut call = ParsedCall::new(name, repaired.json);
                call.repairs.join(repaired.repairs);
                call.ending = repaired.ending;
                Some(Group { calls: vec![call], end: self.stray_closers(repaired.end) })
            }
            Some('<') if self.source.starts_with(next, "<arg_key>") => self.pairs(next, name),
            _ if setting == CallMarking::Marked && name.is_known() && next >= limit => {
                let mut call = ParsedCall::new(name, toolhub_core::RawJson::empty_object());
                call.repairs.add(Repair::NoValue);
                call.ending = Ending::Whole;
                Some(Group { calls: vec![call], end: limit })
            }
            _ => None,
        }
    }

    /// Skips what may separate a name from its arguments: spaces, colons, tokens, `[ARGS]`, a fence.
    fn separators(&self, mut at: usize) -> usize {
        loop {
            at = self.source.skip_space(at);
            let next = match self.source.char_at(at) {
                Some(':' | '：') => Some(at + self.source.char_at(at).map_or(1, char::len_utf8)),
                Some('[') if self.source.starts_with(at, "[ARGS]") => Some(at + 6),
                Some('[') if self.source.starts_with(at, "[CALL_ID]") => {
                    self.source.find(at + 9, "[ARGS]").filter(|args| args - at < 64)
                }
                Some('`') if self.source.starts_with(at, "```") => Some(self.source.line_end(at)),
                Some('<') => Tag::at(self.source, at).filter(separates).map(|tag| tag.end),
                _ => None,
            };
            match next {
                Some(next) => at = next,
                None => return at,
            }
        }
    }
}

/// Whether a tag separates a name from its arguments.
fn separates(tag: &Tag<'_>) -> bool {
    let token = tag.special && tag_kind(tag) == TagKind::Token && !super::tag_kind::ends_calls(tag);
    token || matches!(tag.name.as_str(), "tool_sep" | "tool_call_argument_begin")
}
