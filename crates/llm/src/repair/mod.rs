//! Malformed JSON whose meaning is plain becomes the JSON that was meant, and what was mended is told. Linear in the
//! text, bounded in depth; numbers keep their spelling.

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
pub(crate) use self::text::{LOOK_BEHIND, Source};

/// How far a value got before its text ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ending {
    /// To its own end.
    #[default]
    Whole,
    /// The text ended between two members: what is there is whole.
    Unclosed,
    /// The text ended inside a value, which is therefore shorter than it was meant to be.
    CutInside,
}

/// A value that was read.
#[derive(Debug, Clone)]
pub struct Mended {
    /// The value.
    pub json: RawJson,
    /// The byte behind it.
    pub end: usize,
    /// What was mended.
    pub repairs: Repairs,
    /// How far it got.
    pub ending: Ending,
    /// Whether it holds a `...` where a value would stand: somebody shows a form and means no value.
    pub placeholder: bool,
}

/// The first value in `text`, whatever stands around it.
pub fn repair(text: &str) -> Option<Mended> {
    /// A text with more braces than this before its value is no malformed JSON.
    const TRIES: usize = 8;
    let source = Source::new(text);
    let begins = |(at, character): (usize, char)| matches!(character, '{' | '[' | '｛' | '［').then_some(at);
    let mut from = 0;
    for _ in 0..TRIES {
        let at = from + text.get(from..)?.char_indices().find_map(begins)?;
        if let Some(mut mended) = value_at(&source, at) {
            if !text.get(..at)?.trim().is_empty() || !text.get(mended.end..)?.trim().is_empty() {
                mended.repairs.add(Repair::TextAround);
            }
            return Some(mended);
        }
        from = at + text.get(at..)?.chars().next()?.len_utf8();
    }
    None
}

/// The object or list that begins at `at`.
pub(crate) fn value_at(source: &Source<'_>, at: usize) -> Option<Mended> {
    strict_at(source, at).or_else(|| lenient_at(source, at))
}

/// The object or list that begins at `at`, where nothing has to be mended.
pub(crate) fn strict_at(source: &Source<'_>, at: usize) -> Option<Mended> {
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
            // A lone half of a surrogate pair is JSON by its grammar, and no text.
            let whole = json.too_deep().is_none() && (!raw.get().contains("\\u") || decodes(raw.get()));
            let (end, repairs) = (at + stream.byte_offset(), Repairs::default());
            whole.then_some(Mended { json, end, repairs, ending: Ending::Whole, placeholder: false })
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

fn lenient_at(source: &Source<'_>, at: usize) -> Option<Mended> {
    let mut reader = Reader::new(source, at);
    let read = reader.container();
    source.spend(reader.at.saturating_sub(at));
    read?;
    reader.skip_space();
    let end = reader.at;
    reader.finish(end)
}

/// What a value stands in: decides what may follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The name of a member.
    Key,
    /// The value of a member.
    Member,
    /// An item of a list.
    Item,
    /// An argument of a call as Python writes it.
    Argument,
}

/// Reads a value by a grammar that is wider than JSON's, and writes what was meant.
pub(crate) struct Reader<'s, 't> {
    source: &'s Source<'t>,
    at: usize,
    out: String,
    repairs: Repairs,
    ending: Ending,
    placeholder: bool,
    /// What stands around what is read, outermost first: its closing character.
    open: Vec<char>,
    /// Looking ahead is paid for, so that no text takes more than linear time.
    steps: usize,
}

impl<'s, 't> Reader<'s, 't> {
    pub(crate) fn new(source: &'s Source<'t>, at: usize) -> Self {
        let (out, repairs, open) = (String::new(), Repairs::default(), Vec::new());
        let steps = 4096 + 16 * source.rest(at).len();
        Self { source, at, out, repairs, ending: Ending::Whole, placeholder: false, open, steps }
    }

    /// The character here, punctuation of full width taken for what it means.
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

    /// Pays for `count` characters looked at; `None` once there is nothing left to pay with.
    fn pay(&mut self, count: usize) -> Option<()> {
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

    fn finish(self, end: usize) -> Option<Mended> {
        let json = RawJson::parse(self.out).ok()?;
        let (repairs, ending, placeholder) = (self.repairs, self.ending, self.placeholder);
        Some(Mended { json, end, repairs, ending, placeholder })
    }
}

/// Punctuation of full width as its plain form.
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
