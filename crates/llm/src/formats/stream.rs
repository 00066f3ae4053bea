//! Reads a text while it is still coming: words are told as soon as they certainly are words, and calls at the end are the
//! same as those of the whole text, wherever it was cut.

use toolhub_core::ToolName;

use super::known::KnownTools;
use super::scanner::{Coming, Kind, Walk};
use super::{Reading, read};
use crate::repair::{LOOK_BEHIND, Source};

/// What was heard since the last time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// Words for the person.
    Words(String),
    /// Words of a thought.
    Thought(String),
    /// A call of that tool was read.
    Call(ToolName),
}

/// Reads a text piece by piece.
#[derive(Debug)]
pub struct StreamReader<'k> {
    known: &'k KnownTools,
    text: String,
    walk: Walk,
    /// What is undecided is looked at again once it has grown to this length: each time twice as much, so that all of it
    /// together stays linear.
    look_at: usize,
    told: usize,
}

impl<'k> StreamReader<'k> {
    /// A reader that has heard nothing.
    pub fn new(known: &'k KnownTools) -> Self {
        Self { known, text: String::new(), walk: Walk::default(), look_at: 0, told: 0 }
    }

    /// Whether nothing was heard yet.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Hears more of the text.
    pub fn feed(&mut self, more: &str) -> Vec<Heard> {
        self.text.push_str(more);
        if self.text.len() < self.look_at {
            return Vec::new();
        }
        let base = self.walk.at;
        let mut held = base.saturating_sub(2 * LOOK_BEHIND);
        while !self.text.is_char_boundary(held) {
            held -= 1;
        }
        let source = Source::new(self.text.get(held..).unwrap_or_default());
        self.walk.at = base - held;
        let pieces = self.walk.pieces(&source, self.known, Coming::More);
        self.walk.at += held;
        let undecided = self.text.len() - self.walk.at;
        self.look_at = self.text.len() + undecided;
        let mut heard = Vec::new();
        for piece in pieces {
            let said = || source.slice(piece.from, piece.to).to_owned();
            match piece.kind {
                Kind::Words => {
                    self.told += piece.to - piece.from;
                    heard.push(Heard::Words(said()));
                }
                Kind::Thought => heard.push(Heard::Thought(said())),
                Kind::Calls(calls) => {
                    heard.extend(calls.into_iter().map(|call| Heard::Call(ToolName::new(call.tool))));
                }
                Kind::Broken | Kind::Answer | Kind::Mark => {}
            }
        }
        heard
    }

    /// The text is over: what all of it says, and the words that were not told yet.
    pub fn finish(self) -> (Reading, String) {
        let reading = read(&self.text, self.known);
        let rest = reading.prose.get(self.told..).unwrap_or_default().to_owned();
        (reading, rest)
    }
}
