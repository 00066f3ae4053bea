//! Repairs malformed JSON whose meaning is unambiguous, and records the repairs. Time is linear in the text, depth is
//! bounded; numbers keep their spelling.

mod arguments;
mod containers;
mod notes;
mod quoting;
mod scalars;
mod strings;
mod text;

use serde_json::value::RawValue;
use toolhub_core::RawJson;

pub use self::notes::{Repair, Repairs};

pub(crate) use self::arguments::Arguments;
pub(crate) use self::text::{MAX_LOOK_BEHIND_BYTES, SourceText};

/// Whether a value is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ending {
    /// Complete.
    #[default]
    Whole,
    /// The text ended between two members: the members are complete.
    Unclosed,
    /// The text ended inside a value, which is truncated.
    CutInside,
}

/// A parsed value.
#[derive(Debug, Clone)]
pub struct RepairedJson {
    /// The value.
    pub json: RawJson,
    /// The offset after it.
    pub end: usize,
    /// The repairs.
    pub repairs: Repairs,
    /// Whether it is complete.
    pub ending: Ending,
    /// Whether it contains `...` in place of a value, as in an illustration of the syntax.
    pub placeholder: bool,
}

/// Parses the first value in `text`, ignoring the text around it.
pub fn repair_json(text: &str) -> Option<RepairedJson> {
    /// Maximum number of opening brackets at which a value is tried.
    const MAX_ATTEMPTS: usize = 8;
    let source = SourceText::new(text);
    let begins = |(at, character): (usize, char)| matches!(character, '{' | '[' | '｛' | '［').then_some(at);
    let mut from = 0;
    for _ in 0..MAX_ATTEMPTS {
        let at = from + text.get(from..)?.char_indices().find_map(begins)?;
        if let Some(mut repaired) = value_at(&source, at) {
            if !text.get(..at)?.trim().is_empty() || !text.get(repaired.end..)?.trim().is_empty() {
                repaired.repairs.add(Repair::TextAround);
            }
            return Some(repaired);
        }
        from = at + text.get(at..)?.chars().next()?.len_utf8();
    }
    None
}

/// Parses the object or list at `at`.
pub(crate) fn value_at(source: &SourceText<'_>, at: usize) -> Option<RepairedJson> {
    strict_at(source, at).or_else(|| lenient_at(source, at))
}

/// Parses the object or list at `at` if it is valid JSON.
pub(crate) fn strict_at(source: &SourceText<'_>, at: usize) -> Option<RepairedJson> {
    let rest = source.rest(at);
    if !rest.starts_with(['{', '[']) {
        return None;
    }
    source.spend(64);
    let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<&RawValue>();
    match stream.next()? {
        Ok(raw) => {
            source.spend(raw.get().len());
            let json = RawJson::from(raw);
            // A lone surrogate escape is valid by the grammar of JSON, but not a valid string.
            let is_valid = json.too_deep().is_none() && (!raw.get().contains("\\u") || decodes(raw.get()));
            let (end, repairs) = (at + stream.byte_offset(), Repairs::default());
            is_valid.then_some(RepairedJson { json, end, repairs, ending: Ending::Whole, placeholder: false })
        }
        Err(error) => {
            if error.is_eof() {
                source.touch_end();
                source.spend(rest.len());
            }
            None
        }
    }
}

fn decodes(text: &str) -> bool {
    serde_json::from_str::<serde_json::Value>(text).is_ok()
}

fn lenient_at(source: &SourceText<'_>, at: usize) -> Option<RepairedJson> {
    let mut reader = Reader::new(source, at);
    let read = reader.container();
    source.spend(reader.at.saturating_sub(at));
    read?;
    reader.skip_space();
    let end = reader.at;
    reader.finish(end)
}

/// The context of a value, which determines what may follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueContext {
    /// The key of a member.
    Key,
    /// The value of a member.
    Member,
    /// An item of a list.
    Item,
    /// An argument of a Python-style call.
    Argument,
}

/// Parses a superset of JSON and writes valid JSON.
pub(crate) struct Reader<'s, 't> {
    source: &'s SourceText<'t>,
    at: usize,
    out: String,
    repairs: Repairs,
    ending: Ending,
    placeholder: bool,
    /// The closing characters of the open containers, outermost first.
    open: Vec<char>,
    /// Remaining budget: lookahead consumes it, so that the time is linear.
    steps: usize,
}

impl<'s, 't> Reader<'s, 't> {
    pub(crate) fn new(source: &'s SourceText<'t>, at: usize) -> Self {
        let (out, repairs, open) = (String::new(), Repairs::default(), Vec::new());
        let steps = 4096 + 16 * source.rest(at).len();
        Self { source, at, out, repairs, ending: Ending::Whole, placeholder: false, open, steps }
    }

    /// The character at this position, with full-width punctuation normalized.
    fn peek(&self) -> Option<char> {
        self.source.char_at(self.at).map(plain)
    }

    fn advance(&mut self) {
        if let Some(character) = self.source.char_at(self.at) {
            if plain(character) != character {
                self.repairs.add(Repair::FullWidth);
            }
            self.at += character.len_utf8();
        }
    }

    /// Consumes budget for `count` characters; `None` if it is exhausted.
    fn spend_steps(&mut self, count: usize) -> Option<()> {
        self.steps = self.steps.checked_sub(count)?;
        Some(())
    }

    fn skip_space(&mut self) {
        let (at, comments) = self.source.skip_space_and_comments(self.at);
        self.at = at;
        if comments {
            self.repairs.add(Repair::Comments);
        }
    }

    fn cut(&mut self, ending: Ending) {
        if self.ending != Ending::CutInside {
            self.ending = ending;
        }
        self.repairs.add(if ending == Ending::CutInside { Repair::CutOff } else { Repair::Unclosed });
    }

    fn finish(self, end: usize) -> Option<RepairedJson> {
        let json = RawJson::parse(self.out).ok()?;
        let (repairs, ending, placeholder) = (self.repairs, self.ending, self.placeholder);
        Some(RepairedJson { json, end, repairs, ending, placeholder })
    }
}

/// Converts full-width punctuation to ASCII.
pub(crate) fn plain(character: char) -> char {
    match character {
        '：' => ':',
        '，' | '、' => ',',
        '｛' => '{',
        '｝' => '}',
        '［' | '【' => '[',
        '］' | '】' => ']',
        '（' => '(',
        '）' => ')',
        '＝' => '=',
        '；' => ';',
        '＂' => '"',
        '＇' => '\'',
        other => other,
    }
}
