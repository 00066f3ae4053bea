//! Splits a text from left to right into prose, calls, thoughts and quoted results. Each piece depends only on itself
//! and the text before it, so that a stream is split in the same way while it arrives.

use super::container::ContainerContent;
use super::expression::{ExpressionResult, ParseContext};
use super::harmony::MessageKind;
use super::known_tools::KnownTools;
use super::parsed_call::{CallMarking, Group, ParsedCall};
use super::tag::{Tag, find_tag};
use super::tag_kind::{TagKind, ends, tag_kind};
use super::{pythonic, react};
use crate::repair::SourceText;

/// The kind of a piece.
#[derive(Debug)]
pub(super) enum PieceKind {
    Prose,
    Calls(Vec<ParsedCall>),
    /// An unreadable call.
    Broken,
    Thought,
    /// A tool result, real or invented by the model.
    Answer,
    /// Markers without meaning of their own.
    Mark,
}

/// A piece of a text, up to the next one.
#[derive(Debug)]
pub(super) struct TextPiece {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) kind: PieceKind,
}

/// The syntax of calls. The first one found is kept, so that a call that is repeated in another syntax, or shown as
/// code, is not made twice. A call of a known tool that has not been called yet is accepted in any syntax.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallSyntax {
    Marked,
    Json,
    Python,
    Fence,
    Lines,
}

/// Whether more text may come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InputState {
    More,
    Nothing,
}

/// The state of a scan, which can be resumed when more text arrives.
#[derive(Debug, Clone)]
pub(super) struct ScanState {
    pub(super) at: usize,
    /// Whether only white space precedes this position on its line.
    fresh: bool,
    /// Whether a marker precedes this position, with only white space between.
    marked: bool,
    syntax: Option<CallSyntax>,
    /// The tools called so far.
    called: Vec<String>,
    in_code: bool,
}

impl Default for ScanState {
    fn default() -> Self {
        Self { at: 0, fresh: true, marked: false, syntax: None, called: Vec::new(), in_code: false }
    }
}

impl ScanState {
    /// Splits the text from the current position on. If more text may arrive, stops before the first piece that it
    /// could change.
    pub(super) fn pieces(
        &mut self,
        source: &SourceText<'_>,
        known: &KnownTools,
        coming: InputState,
    ) -> Vec<TextPiece> {
        let context = ParseContext { source, known };
        let mut pieces = Vec::new();
        let mut prose_start = self.at;
        source.take_end_seen();
        while let Some(first) = source.rest(self.at).chars().next() {
            let at = self.at;
            if source.exhausted() {
                self.at = source.len();
                break;
            }
            if first.is_whitespace() {
                self.fresh |= first == '\n';
                self.at += first.len_utf8();
                continue;
            }
            let before = self.clone();
            source.take_end_seen();
            let found = self.candidate(&context, first);
            if source.take_end_seen() && coming == InputState::More {
                *self = before;
                break;
            }
            match found {
                Some((kind, to)) => {
                    let to = to.max(at + first.len_utf8()).min(source.len());
                    if prose_start < at {
                        pieces.push(TextPiece { from: prose_start, to: at, kind: PieceKind::Prose });
                    }
                    self.marked = matches!(kind, PieceKind::Mark);
                    pieces.push(TextPiece { from: at, to, kind });
                    (self.at, prose_start, self.fresh) = (to, to, true);
                }
                None if self.at > at => {}
                None => {
                    (self.fresh, self.marked) = (false, false);
                    self.at = next_place(source, at + first.len_utf8());
                }
            }
        }
        if prose_start < self.at {
            pieces.push(TextPiece { from: prose_start, to: self.at, kind: PieceKind::Prose });
        }
        pieces
    }

    /// Returns the piece at this position if it is not prose. May skip prose.
    fn candidate(&mut self, context: &ParseContext<'_, '_>, first: char) -> Option<(PieceKind, usize)> {
        match first {
            '<' => return self.tag(context),
            '◁' => {
                let end = context.source.starts_with(self.at, "◁think▷").then_some("◁/think▷")?;
                let close = context.source.find(self.at, end);
                return Some((PieceKind::Thought, close.map_or(context.source.len(), |at| at + end.len())));
            }
            '[' if !self.in_code => {
                if let Some(found) = self.mark(context) {
                    return Some(found);
                }
            }
            _ => {}
        }
        if self.fresh {
            return self.line(context, first);
        }
        let before = context.source.char_before(self.at)?;
        let apart = before.is_whitespace() || matches!(before, ':' | '：');
        if apart && !self.in_code && matches!(first, '{' | '[') {
            return self.json(context);
        }
        None
    }

    fn allows(&self, syntax: CallSyntax) -> bool {
        self.syntax.is_none_or(|first| first == syntax)
    }

    /// Whether calls in another syntax than the first one are accepted.
    fn admits(&self, syntax: CallSyntax, group: &Group, known: &KnownTools) -> bool {
        let is_new =
            |call: &ParsedCall| known.named(&call.tool).is_some() && !self.called.contains(&call.tool);
        self.allows(syntax) || group.calls.iter().all(is_new)
    }

    /// Whether to search for calls in this syntax.
    fn looks_for(&self, syntax: CallSyntax, known: &KnownTools) -> bool {
        self.allows(syntax) || !known.is_empty()
    }

    fn calls(&mut self, syntax: CallSyntax, group: Group) -> (PieceKind, usize) {
        if self.allows(syntax) || syntax == CallSyntax::Marked {
            self.syntax = Some(syntax);
        }
        self.called.extend(group.calls.iter().map(|call| call.tool.clone()));
        (PieceKind::Calls(group.calls), group.end)
    }

    /// Returns the piece at the start of a line.
    fn line(&mut self, context: &ParseContext<'_, '_>, first: char) -> Option<(PieceKind, usize)> {
        let (source, at) = (context.source, self.at);
        if first == '`' && source.starts_with(at, "```") {
            return self.fence(context);
        }
        if self.in_code {
            return None;
        }
        match first {
            '{' | '[' | '｛' | '［' => return self.json(context),
            '>' if source.starts_with(at, ">>>") => return self.functionary(context),
            'f' if source.starts_with(at, "functools[") => {
                return self.container_calls(context, at + "functools".len());
            }
            '`' if inline_code(source, at) => {
                self.at += 1;
                return None;
            }
            '-' | '*' | '•' | '0'..='9' if !context.known.is_empty() => {
                if let Some(after) = bullet(source, at) {
                    self.at = after;
                    return None;
                }
            }
            _ => {}
        }
        if matches!(self.syntax, Some(CallSyntax::Lines)) && react::answer_at(source, at) {
            source.touch_end();
            return Some((PieceKind::Answer, source.len()));
        }
        if self.allows(CallSyntax::Lines)
            && let Some(group) = context.react(at)
        {
            return Some(self.calls(CallSyntax::Lines, group));
        }
        if (first.is_alphabetic() || first == '_')
            && self.looks_for(CallSyntax::Python, context.known)
            && !shows_an_example(source, at)
        {
            let group = context.bare_python(at)?;
            return self
                .admits(CallSyntax::Python, &group, context.known)
                .then(|| self.calls(CallSyntax::Python, group));
        }
        None
    }

    /// JSON or a list of Python-style calls, without markers.
    fn json(&mut self, context: &ParseContext<'_, '_>) -> Option<(PieceKind, usize)> {
        let python = context.source.char_at(self.at) == Some('[')
            && context
                .source
                .char_at(context.source.skip_space(self.at + 1))
                .is_some_and(char::is_alphabetic);
        let syntax = if python { CallSyntax::Python } else { CallSyntax::Json };
        let looks = self.looks_for(syntax, context.known);
        if (!looks || shows_an_example(context.source, self.at)) && !self.marked {
            return None;
        }
        let ExpressionResult::Calls(mut group) = context.expression(self.at, None, CallMarking::Bare) else {
            return None;
        };
        if python && !context.plausible(&group, self.fresh) {
            return None;
        }
        if !self.marked && !self.admits(syntax, &group, context.known) {
            return None;
        }
        group.end = past_separators(context.source, group.end);
        Some(self.calls(syntax, group))
    }

    /// `>>>name` with the arguments on the next line, as in Functionary; `>>>all` begins prose.
    fn functionary(&mut self, context: &ParseContext<'_, '_>) -> Option<(PieceKind, usize)> {
        let start = self.at + 3;
        if context.source.starts_with(start, "all\n") {
            return Some((PieceKind::Mark, start + 4));
        }
        let ExpressionResult::Calls(group) =
            context.expression(start, Some(context.source.len()), CallMarking::Marked)
        else {
            return None;
        };
        Some(self.calls(CallSyntax::Marked, group))
    }

    fn container_calls(&mut self, context: &ParseContext<'_, '_>, from: usize) -> Option<(PieceKind, usize)> {
        match context.container(from) {
            ContainerContent::Calls { calls, broken, end } if !calls.is_empty() || broken.is_empty() => {
                Some(self.calls(CallSyntax::Marked, Group { calls, end }))
            }
            ContainerContent::Calls { end, .. } => Some((PieceKind::Broken, end)),
            ContainerContent::Prose => None,
        }
    }

    /// `[TOOL_CALLS]` and similar markers.
    fn mark(&mut self, context: &ParseContext<'_, '_>) -> Option<(PieceKind, usize)> {
        let (source, at) = (context.source, self.at);
        for mark in ["[TOOL_CALLS]", "[TOOL_CALL]", "[TOOL_REQUEST]"] {
            if source.starts_with(at, mark) {
                let (kind, mut end) = self.container_calls(context, at + mark.len())?;
                for close in ["[/TOOL_CALLS]", "[/TOOL_CALL]", "[END_TOOL_REQUEST]"] {
                    let next = source.skip_space(end);
                    if source.starts_with(next, close) {
                        end = next + close.len();
                    }
                }
                return Some((kind, end));
            }
        }
        for (open, close, kind) in [
            ("[THINK]", "[/THINK]", PieceKind::Thought),
            ("[TOOL_RESULTS]", "[/TOOL_RESULTS]", PieceKind::Answer),
            ("[TOOL_RESULT]", "[END_TOOL_RESULT]", PieceKind::Answer),
        ] {
            if source.starts_with(at, open) {
                let end = source.find(at, close).map_or(source.len(), |found| found + close.len());
                return Some((kind, end));
            }
        }
        None
    }

    fn tag(&mut self, context: &ParseContext<'_, '_>) -> Option<(PieceKind, usize)> {
        let source = context.source;
        let tag = Tag::at(source, self.at)?;
        let until_end = |kind| {
            let end =
                find_tag(source, tag.end, |close| ends(close, &tag)).map_or(source.len(), |close| close.end);
            Some((kind, end))
        };
        match tag_kind(&tag) {
            _ if is_inline(source, self.at) => None,
            TagKind::Thought if !tag.closing => until_end(PieceKind::Thought),
            // The opening tag was in the prompt, so everything before is a thought.
            TagKind::Thought => {
                self.syntax = None;
                self.called.clear();
                Some((PieceKind::Thought, tag.end))
            }
            TagKind::Result if !tag.closing => until_end(PieceKind::Answer),
            TagKind::Call | TagKind::NamedCall | TagKind::Result if tag.closing => {
                Some((PieceKind::Mark, tag.end))
            }
            TagKind::Call if tag.attribute("name").is_some() || tag.value.is_some() => {
                self.named(context, &tag)
            }
            TagKind::Call => self.container_calls(context, tag.end).or_else(|| self.unreadable(source, &tag)),
            TagKind::NamedCall => self.named(context, &tag),
            TagKind::Token => self.token(context, &tag),
            TagKind::Other if !tag.closing && !self.in_code => {
                let name = source.slice(tag.start + 1, tag.end - 1).trim();
                context.known.named(name)?;
                let group = context.tool_tag(&tag, name)?;
                Some(self.calls(CallSyntax::Marked, group))
            }
            TagKind::Result | TagKind::Other => None,
        }
    }

    /// Call tags around something unreadable: the model is informed that its call was not understood.
    fn unreadable(&self, source: &SourceText<'_>, tag: &Tag<'_>) -> Option<(PieceKind, usize)> {
        /// Maximum length of an unreadable call, in bytes.
        const MAX_UNREADABLE_BYTES: usize = 2_000;
        let close = find_tag(source, tag.end, |close| ends(close, tag))?;
        let inside = source.slice(tag.end, close.start).trim();
        // An ellipsis means that the syntax is only illustrated.
        let form = inside.contains("...") || inside.contains('…');
        let is_intended =
            !self.in_code && !form && !inside.is_empty() && inside.len() <= MAX_UNREADABLE_BYTES;
        (is_intended && tag.name == "tool_call").then_some((PieceKind::Broken, close.end))
    }

    fn named(&mut self, context: &ParseContext<'_, '_>, tag: &Tag<'_>) -> Option<(PieceKind, usize)> {
        let group = context.named_tag(tag)?;
        let plain = matches!(tag.name.as_str(), "function" | "invoke") || tag_kind(tag) == TagKind::Call;
        let known = group.calls.iter().all(|call| context.known.named(&call.tool).is_some());
        (plain || known).then(|| self.calls(CallSyntax::Marked, group))
    }

    /// A special token: the header of a message, or a marker.
    fn token(&mut self, context: &ParseContext<'_, '_>, tag: &Tag<'_>) -> Option<(PieceKind, usize)> {
        let source = context.source;
        match context.message(tag) {
            Some(MessageKind::Call(call, end)) => {
                return Some(self.calls(CallSyntax::Marked, Group { calls: vec![*call], end }));
            }
            Some(MessageKind::Thought(end)) => return Some((PieceKind::Thought, end)),
            Some(MessageKind::Header(end)) => return Some((PieceKind::Mark, end)),
            None => {}
        }
        if !matches!(tag.name.as_str(), "im_start" | "start_header_id") {
            return Some((PieceKind::Mark, tag.end));
        }
        let Some((role, end)) = pythonic::name_at(source, tag.end) else {
            return Some((PieceKind::Mark, tag.end));
        };
        match role {
            "assistant" => Some((PieceKind::Mark, end)),
            "tool" | "user" | "system" | "ipython" | "function" | "observation" => {
                let next = find_tag(source, end, |next| {
                    next.special && matches!(next.name.as_str(), "im_start" | "start_header_id")
                });
                Some((PieceKind::Answer, next.map_or(source.len(), |next| next.start)))
            }
            _ => Some((PieceKind::Mark, tag.end)),
        }
    }

    /// A fence: calls if it contains nothing else, otherwise code.
    fn fence(&mut self, context: &ParseContext<'_, '_>) -> Option<(PieceKind, usize)> {
        let (source, at) = (context.source, self.at);
        if self.in_code {
            self.in_code = false;
            self.at += 3;
            return None;
        }
        let line = context.fence_line(at);
        let inner = source.skip_space(line);
        if let Some(tag) = Tag::at(source, inner)
            && matches!(tag_kind(&tag), TagKind::Call | TagKind::NamedCall)
            && !tag.closing
        {
            if shows_an_example(source, at) {
                self.at = source.find(line, "```").map_or(source.len(), |close| close + 3);
                return None;
            }
            return Some((PieceKind::Mark, line));
        }
        if self.looks_for(CallSyntax::Fence, context.known)
            && !shows_an_example(source, at)
            && let Some(group) = context.fenced_calls(line, source.slice(at + 3, line))
            && self.admits(CallSyntax::Fence, &group, context.known)
        {
            return Some(self.calls(CallSyntax::Fence, group));
        }
        let close = source.find(line, "\n```");
        let stop = close.unwrap_or(source.len());
        let has_calls = find_tag(&source.up_to(stop), line, |tag| tag_kind(tag) == TagKind::Call).is_some();
        match close {
            Some(close) if !has_calls => self.at = close + 4,
            _ => {
                self.in_code = close.is_some();
                self.at = line;
            }
        }
        None
    }
}

/// The first characters of the markers of all formats. Elsewhere in a line, no piece begins.
const MARKER_STARTS: [char; 5] = ['<', '[', '{', '\n', '◁'];

/// The next position at which a piece may begin.
fn next_place(source: &SourceText<'_>, at: usize) -> usize {
    source.rest(at).find(MARKER_STARTS).map_or(source.len(), |found| at + found)
}

/// Skips `;` and `,` between two calls.
fn past_separators(source: &SourceText<'_>, end: usize) -> usize {
    let mut at = source.skip_space(end);
    let mut seen = false;
    while matches!(source.char_at(at), Some(';' | ',')) {
        seen = true;
        at = source.skip_space(at + 1);
    }
    if seen && matches!(source.char_at(at), Some('{' | '[')) { at } else { end }
}

/// Skips `1. ` or `- `.
fn bullet(source: &SourceText<'_>, at: usize) -> Option<usize> {
    let rest = source.rest(at);
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    if rest.len() < digits + 2 {
        // More text may complete the bullet.
        source.touch_end();
    }
    let sign = rest.as_bytes().get(digits)?;
    let fits =
        if digits == 0 { matches!(sign, b'-' | b'*') } else { digits < 4 && matches!(sign, b'.' | b')') };
    (fits && rest.as_bytes().get(digits + 1) == Some(&b' ')).then_some(at + digits + 2)
}

/// Whether a line consists of a single inline code span.
fn inline_code(source: &SourceText<'_>, at: usize) -> bool {
    let line = source.slice(at, source.line_end(at)).trim_end();
    line.len() > 2 && line.ends_with('`') && !line.starts_with("``") && line.matches('`').count() == 2
}

/// Whether a tag is in an inline code span within prose.
fn is_inline(source: &SourceText<'_>, at: usize) -> bool {
    let before = source.line_before(at);
    if before.trim_start() == "`" {
        return !inline_code(source, at - 1);
    }
    before.ends_with('`') && !before.ends_with("```")
}

/// Words that announce an example.
const EXAMPLE_PHRASES: &[&str] = &[
    "example",
    "for instance",
    "e.g.",
    "how you ",
    "how i would",
    "how to ",
    "you could ",
    "you can use",
    "例如",
    "示例",
    "比如",
    "举例",
    "样例",
    "如何",
];

/// Whether the preceding words announce an example.
fn shows_an_example(source: &SourceText<'_>, at: usize) -> bool {
    let before = source.preceding(at).trim_end();
    let line = before.rsplit('\n').next().unwrap_or_default().to_lowercase();
    EXAMPLE_PHRASES.iter().any(|word| line.contains(word))
}
