//! Walks through a text from left to right and cuts it into pieces: words, calls, thoughts, quoted answers. Each piece is
//! decided by what stands before it and in it, so that a stream can be cut the same way while it is still coming.

use super::container::Held;
use super::envelope::{Meaning, ends, meaning};
use super::expression::{Context, Reading};
use super::found::{Found, Group, Setting};
use super::harmony::Message;
use super::known::KnownTools;
use super::tag::{Tag, find_tag};
use super::{pythonic, react};
use crate::repair::Source;

/// What a piece of text is.
#[derive(Debug)]
pub(super) enum Kind {
    Words,
    Calls(Vec<Found>),
    /// Something that was meant as a call and cannot be read.
    Broken,
    Thought,
    /// What a tool answered, or what the model made up in its place.
    Answer,
    /// Marks without a meaning of their own.
    Mark,
}

/// A piece of a text, up to the next one.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) kind: Kind,
}

/// How calls of a text are written; the first one found decides, so that a call that is told again in other words, or shown
/// as code, is not made twice. A call of a known tool that was not called yet is no such thing, however it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Marked,
    Json,
    Python,
    Fence,
    Lines,
}

/// Whether more text may come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coming {
    More,
    Nothing,
}

/// Where a walk stands. It can be kept, and gone on with once more text is there.
#[derive(Debug, Clone)]
pub(super) struct Walk {
    pub(super) at: usize,
    /// Whether nothing but white space stands before this place in its line.
    fresh: bool,
    /// Whether a mark stands before this place, and nothing but white space between.
    marked: bool,
    manner: Option<Manner>,
    /// The tools that were called so far.
    called: Vec<String>,
    in_code: bool,
}

impl Default for Walk {
    fn default() -> Self {
        Self { at: 0, fresh: true, marked: false, manner: None, called: Vec::new(), in_code: false }
    }
}

impl Walk {
    /// Cuts the text from here on. With more to come, it stops before the first piece that more text could change.
    pub(super) fn pieces(&mut self, source: &Source<'_>, known: &KnownTools, coming: Coming) -> Vec<Piece> {
        let context = Context { source, known };
        let mut pieces = Vec::new();
        let mut words = self.at;
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
            if source.take_end_seen() && coming == Coming::More {
                *self = before;
                break;
            }
            match found {
                Some((kind, to)) => {
                    let to = to.max(at + first.len_utf8()).min(source.len());
                    if words < at {
                        pieces.push(Piece { from: words, to: at, kind: Kind::Words });
                    }
                    self.marked = matches!(kind, Kind::Mark);
                    pieces.push(Piece { from: at, to, kind });
                    (self.at, words, self.fresh) = (to, to, true);
                }
                None if self.at > at => {}
                None => {
                    (self.fresh, self.marked) = (false, false);
                    self.at = next_place(source, at + first.len_utf8());
                }
            }
        }
        if words < self.at {
            pieces.push(Piece { from: words, to: self.at, kind: Kind::Words });
        }
        pieces
    }

    /// What begins here, if anything but words does. May move on past words that begin nothing.
    fn candidate(&mut self, context: &Context<'_, '_>, first: char) -> Option<(Kind, usize)> {
        match first {
            '<' => return self.tag(context),
            '◁' => {
                let end = context.source.starts_with(self.at, "◁think▷").then_some("◁/think▷")?;
                let close = context.source.find(self.at, end);
                return Some((Kind::Thought, close.map_or(context.source.len(), |at| at + end.len())));
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

    fn allows(&self, manner: Manner) -> bool {
        self.manner.is_none_or(|first| first == manner)
    }

    /// Whether calls that are written otherwise than those before them are meant, too.
    fn admits(&self, manner: Manner, group: &Group, known: &KnownTools) -> bool {
        let is_new = |call: &Found| known.named(&call.tool).is_some() && !self.called.contains(&call.tool);
        self.allows(manner) || group.calls.iter().all(is_new)
    }

    /// Whether calls of this manner are worth looking for.
    fn looks_for(&self, manner: Manner, known: &KnownTools) -> bool {
        self.allows(manner) || !known.is_empty()
    }

    fn calls(&mut self, manner: Manner, group: Group) -> (Kind, usize) {
        if self.allows(manner) || manner == Manner::Marked {
            self.manner = Some(manner);
        }
        self.called.extend(group.calls.iter().map(|call| call.tool.clone()));
        (Kind::Calls(group.calls), group.end)
    }

    /// What begins at the start of a line.
    fn line(&mut self, context: &Context<'_, '_>, first: char) -> Option<(Kind, usize)> {
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
                return self.held(context, at + "functools".len());
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
        if matches!(self.manner, Some(Manner::Lines)) && react::answer_at(source, at) {
            source.touch_end();
            return Some((Kind::Answer, source.len()));
        }
        if self.allows(Manner::Lines)
            && let Some(group) = context.react(at)
        {
            return Some(self.calls(Manner::Lines, group));
        }
        if (first.is_alphabetic() || first == '_')
            && self.looks_for(Manner::Python, context.known)
            && !shows_an_example(source, at)
        {
            let group = context.bare_python(at)?;
            return self
                .admits(Manner::Python, &group, context.known)
                .then(|| self.calls(Manner::Python, group));
        }
        None
    }

    /// JSON, or a list of calls as Python writes them, with nothing around it that says so.
    fn json(&mut self, context: &Context<'_, '_>) -> Option<(Kind, usize)> {
        let python = context.source.char_at(self.at) == Some('[')
            && context
                .source
                .char_at(context.source.skip_space(self.at + 1))
                .is_some_and(char::is_alphabetic);
        let manner = if python { Manner::Python } else { Manner::Json };
        let looks = self.looks_for(manner, context.known);
        if (!looks || shows_an_example(context.source, self.at)) && !self.marked {
            return None;
        }
        let Reading::Calls(mut group) = context.expression(self.at, None, Setting::Bare) else {
            return None;
        };
        if python && !context.plausible(&group, self.fresh) {
            return None;
        }
        if !self.marked && !self.admits(manner, &group, context.known) {
            return None;
        }
        group.end = past_separators(context.source, group.end);
        Some(self.calls(manner, group))
    }

    /// `>>>name` and its arguments on the next line; `>>>all` begins words.
    fn functionary(&mut self, context: &Context<'_, '_>) -> Option<(Kind, usize)> {
        let start = self.at + 3;
        if context.source.starts_with(start, "all\n") {
            return Some((Kind::Mark, start + 4));
        }
        let Reading::Calls(group) = context.expression(start, Some(context.source.len()), Setting::Marked)
        else {
            return None;
        };
        Some(self.calls(Manner::Marked, group))
    }

    fn held(&mut self, context: &Context<'_, '_>, from: usize) -> Option<(Kind, usize)> {
        match context.container(from) {
            Held::Calls { calls, broken, end } if !calls.is_empty() || broken.is_empty() => {
                Some(self.calls(Manner::Marked, Group { calls, end }))
            }
            Held::Calls { end, .. } => Some((Kind::Broken, end)),
            Held::Prose => None,
        }
    }

    /// `[TOOL_CALLS]` and its like.
    fn mark(&mut self, context: &Context<'_, '_>) -> Option<(Kind, usize)> {
        let (source, at) = (context.source, self.at);
        for mark in ["[TOOL_CALLS]", "[TOOL_CALL]", "[TOOL_REQUEST]"] {
            if source.starts_with(at, mark) {
                let (kind, mut end) = self.held(context, at + mark.len())?;
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
            ("[THINK]", "[/THINK]", Kind::Thought),
            ("[TOOL_RESULTS]", "[/TOOL_RESULTS]", Kind::Answer),
            ("[TOOL_RESULT]", "[END_TOOL_RESULT]", Kind::Answer),
        ] {
            if source.starts_with(at, open) {
                let end = source.find(at, close).map_or(source.len(), |found| found + close.len());
                return Some((kind, end));
            }
        }
        None
    }

    fn tag(&mut self, context: &Context<'_, '_>) -> Option<(Kind, usize)> {
        let source = context.source;
        let tag = Tag::at(source, self.at)?;
        let until_end = |kind| {
            let end =
                find_tag(source, tag.end, |close| ends(close, &tag)).map_or(source.len(), |close| close.end);
            Some((kind, end))
        };
        match meaning(&tag) {
            _ if is_inline(source, self.at) => None,
            Meaning::Thought if !tag.closing => until_end(Kind::Thought),
            // The opening tag stood in the prompt: all before this was thought.
            Meaning::Thought => {
                self.manner = None;
                self.called.clear();
                Some((Kind::Thought, tag.end))
            }
            Meaning::Result if !tag.closing => until_end(Kind::Answer),
            Meaning::Call | Meaning::NamedCall | Meaning::Result if tag.closing => {
                Some((Kind::Mark, tag.end))
            }
            Meaning::Call if tag.attribute("name").is_some() || tag.value.is_some() => {
                self.named(context, &tag)
            }
            Meaning::Call => self.held(context, tag.end).or_else(|| self.unreadable(source, &tag)),
            Meaning::NamedCall => self.named(context, &tag),
            Meaning::Token => self.token(context, &tag),
            Meaning::Other if !tag.closing && !self.in_code => {
                let name = source.slice(tag.start + 1, tag.end - 1).trim();
                context.known.named(name)?;
                let group = context.tool_tag(&tag, name)?;
                Some(self.calls(Manner::Marked, group))
            }
            Meaning::Result | Meaning::Other => None,
        }
    }

    /// Tags around what is no call: whoever wrote them meant one, and should hear that it was not understood.
    fn unreadable(&self, source: &Source<'_>, tag: &Tag<'_>) -> Option<(Kind, usize)> {
        /// What is longer than this is a text with tags in it.
        const LONGEST: usize = 2_000;
        let close = find_tag(source, tag.end, |close| ends(close, tag))?;
        let inside = source.slice(tag.end, close.start).trim();
        // Dots stand where a form is shown.
        let form = inside.contains("...") || inside.contains('…');
        let meant = !self.in_code && !form && !inside.is_empty() && inside.len() <= LONGEST;
        (meant && tag.name == "tool_call").then_some((Kind::Broken, close.end))
    }

    fn named(&mut self, context: &Context<'_, '_>, tag: &Tag<'_>) -> Option<(Kind, usize)> {
        let group = context.named_tag(tag)?;
        let plain = matches!(tag.name.as_str(), "function" | "invoke") || meaning(tag) == Meaning::Call;
        let known = group.calls.iter().all(|call| context.known.named(&call.tool).is_some());
        (plain || known).then(|| self.calls(Manner::Marked, group))
    }

    /// A token of a model's own: the header of a message, or a mark.
    fn token(&mut self, context: &Context<'_, '_>, tag: &Tag<'_>) -> Option<(Kind, usize)> {
        let source = context.source;
        match context.message(tag) {
            Some(Message::Call(call, end)) => {
                return Some(self.calls(Manner::Marked, Group { calls: vec![*call], end }));
            }
            Some(Message::Thought(end)) => return Some((Kind::Thought, end)),
            Some(Message::Header(end)) => return Some((Kind::Mark, end)),
            None => {}
        }
        if !matches!(tag.name.as_str(), "im_start" | "start_header_id") {
            return Some((Kind::Mark, tag.end));
        }
        let Some((role, end)) = pythonic::name_at(source, tag.end) else {
            return Some((Kind::Mark, tag.end));
        };
        match role {
            "assistant" => Some((Kind::Mark, end)),
            "tool" | "user" | "system" | "ipython" | "function" | "observation" => {
                let next = find_tag(source, end, |next| {
                    next.special && matches!(next.name.as_str(), "im_start" | "start_header_id")
                });
                Some((Kind::Answer, next.map_or(source.len(), |next| next.start)))
            }
            _ => Some((Kind::Mark, tag.end)),
        }
    }

    /// A fence: calls where nothing else stands in it, else code that nobody asked to run.
    fn fence(&mut self, context: &Context<'_, '_>) -> Option<(Kind, usize)> {
        let (source, at) = (context.source, self.at);
        if self.in_code {
            self.in_code = false;
            self.at += 3;
            return None;
        }
        let line = context.fence_line(at);
        let inner = source.skip_space(line);
        if let Some(tag) = Tag::at(source, inner)
            && matches!(meaning(&tag), Meaning::Call | Meaning::NamedCall)
            && !tag.closing
        {
            if shows_an_example(source, at) {
                self.at = source.find(line, "```").map_or(source.len(), |close| close + 3);
                return None;
            }
            return Some((Kind::Mark, line));
        }
        if self.looks_for(Manner::Fence, context.known)
            && !shows_an_example(source, at)
            && let Some(group) = context.fenced_calls(line, source.slice(at + 3, line))
            && self.admits(Manner::Fence, &group, context.known)
        {
            return Some(self.calls(Manner::Fence, group));
        }
        let close = source.find(line, "\n```");
        let stop = close.unwrap_or(source.len());
        let has_calls = find_tag(&source.up_to(stop), line, |tag| meaning(tag) == Meaning::Call).is_some();
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

/// The next place where something could begin.
fn next_place(source: &Source<'_>, at: usize) -> usize {
    source.rest(at).find(['<', '[', '{', '\n', '◁']).map_or(source.len(), |found| at + found)
}

/// Past `;` and `,` between two calls.
fn past_separators(source: &Source<'_>, end: usize) -> usize {
    let mut at = source.skip_space(end);
    let mut seen = false;
    while matches!(source.char_at(at), Some(';' | ',')) {
        seen = true;
        at = source.skip_space(at + 1);
    }
    if seen && matches!(source.char_at(at), Some('{' | '[')) { at } else { end }
}

/// Past `1. ` or `- `.
fn bullet(source: &Source<'_>, at: usize) -> Option<usize> {
    let rest = source.rest(at);
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    if rest.len() < digits + 2 {
        // More text may make it one.
        source.touch_end();
    }
    let sign = rest.as_bytes().get(digits)?;
    let fits =
        if digits == 0 { matches!(sign, b'-' | b'*') } else { digits < 4 && matches!(sign, b'.' | b')') };
    (fits && rest.as_bytes().get(digits + 1) == Some(&b' ')).then_some(at + digits + 2)
}

/// Whether a line is nothing but one piece of inline code.
fn inline_code(source: &Source<'_>, at: usize) -> bool {
    let line = source.slice(at, source.line_end(at)).trim_end();
    line.len() > 2 && line.ends_with('`') && !line.starts_with("``") && line.matches('`').count() == 2
}

/// Whether a tag stands in inline code with words around it, or behind words that say that it is only shown.
fn is_inline(source: &Source<'_>, at: usize) -> bool {
    let before = source.line_before(at);
    if before.trim_start() == "`" {
        return !inline_code(source, at - 1);
    }
    before.ends_with('`') && !before.ends_with("```")
}

/// Words before something that is only shown.
const SHOWING: &[&str] = &[
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

/// Whether the words before something say that it is only shown.
fn shows_an_example(source: &Source<'_>, at: usize) -> bool {
    let before = source.behind(at).trim_end();
    let line = before.rsplit('\n').next().unwrap_or_default().to_lowercase();
    SHOWING.iter().any(|word| line.contains(word))
}
