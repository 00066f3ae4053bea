//! Parses a text while it arrives: prose is emitted as soon as it is certain, and the calls at the end are those of the
//! complete text, however it was split.

use toolhub_core::ToolName;

use super::known_tools::KnownTools;
use super::scanner::{InputState, PieceKind, ScanState};
use super::{ParsedOutput, parse_output};
use crate::repair::{MAX_LOOK_BEHIND_BYTES, SourceText};

/// Output since the last piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamEvent {
    /// Prose for the user.
    Prose(String),
    /// A part of a thought.
    Thought(String),
    /// A call of that tool.
    Call(ToolName),
}

/// Parses a text incrementally.
#[derive(Debug)]
pub struct StreamReader<'k> {
    known: &'k KnownTools,
    text: String,
    state: ScanState,
    /// Undecided text is parsed again at this length, which doubles each time, so that the total work is linear.
    look_at: usize,
    emitted: usize,
}

impl<'k> StreamReader<'k> {
    /// Creates a reader.
    pub fn new(known: &'k KnownTools) -> Self {
        Self { known, text: String::new(), state: ScanState::default(), look_at: 0, emitted: 0 }
    }

    /// Whether no text has arrived yet.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Adds text and returns the new output.
    pub fn feed(&mut self, more: &str) -> Vec<StreamEvent> {
        self.text.push_str(more);
        if self.text.len() < self.look_at {
            return Vec::new();
        }
        let base = self.state.at;
        let mut held = base.saturating_sub(2 * MAX_LOOK_BEHIND_BYTES);
        while !self.text.is_char_boundary(held) {
            held -= 1;
        }
        let source = SourceText::new(self.text.get(held..).unwrap_or_default());
        self.state.at = base - held;
        let pieces = self.state.pieces(&source, self.known, InputState::More);
        self.state.at += held;
        let undecided = self.text.len() - self.state.at;
        self.look_at = self.text.len() + undecided;
        let mut events = Vec::new();
        for piece in pieces {
            let piece_text = || source.slice(piece.from, piece.to).to_owned();
            match piece.kind {
                PieceKind::Prose => {
                    self.emitted += piece.to - piece.from;
                    events.push(StreamEvent::Prose(piece_text()));
                }
                PieceKind::Thought => events.push(StreamEvent::Thought(piece_text())),
                PieceKind::Calls(calls) => {
                    events.extend(calls.into_iter().map(|call| StreamEvent::Call(ToolName::new(call.tool))));
                }
                PieceKind::Broken | PieceKind::Answer | PieceKind::Mark => {}
            }
        }
        events
    }

    /// Ends the text. Returns its content, and the prose not emitted yet.
    pub fn finish(self) -> (ParsedOutput, String) {
        let reading = parse_output(&self.text, self.known);
        let rest = reading.prose.get(self.emitted..).unwrap_or_default().to_owned();
        (reading, rest)
    }
}
