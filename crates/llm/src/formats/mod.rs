//! Parses tool calls that a model wrote as text: one file per format.

mod container;
mod dedup;
mod expression;
mod harmony;
mod json_shape;
mod key_value_tags;
mod known_tools;
mod parsed_call;
mod pythonic;
mod react;
mod scanner;
mod stream;
mod tag;
mod tag_kind;
mod unmarked;
mod xml;

use toolhub_core::lang::LocalizedText;
use toolhub_core::model::ModelCall;

use self::scanner::{InputState, PieceKind, ScanState, TextPiece};
use crate::repair::{Ending, SourceText};

pub use self::known_tools::{KnownTool, KnownTools, ParameterKind};
pub use self::stream::{StreamEvent, StreamReader};

/// The content of a text.
#[derive(Debug, Clone, Default)]
pub struct ParsedOutput {
    /// The calls, in order.
    pub calls: Vec<ModelCall>,
    /// The index of the call that was truncated inside its last value.
    pub cut: Option<usize>,
    /// Messages to the model about unreadable calls, with the correct syntax.
    pub unreadable: Vec<LocalizedText>,
    /// Whether the text contains a tool result, invented or repeated by the model.
    pub holds_result: bool,
    /// The text outside of calls and thoughts.
    pub prose: String,
    /// The thoughts.
    pub thoughts: String,
}

/// Parses a text written by a model.
pub fn parse_output(text: &str, known: &KnownTools) -> ParsedOutput {
    let source = SourceText::new(text);
    let pieces = ScanState::default().pieces(&source, known, InputState::Nothing);
    ParsedOutput::of(text, pieces)
}

impl ParsedOutput {
    fn of(text: &str, mut pieces: Vec<TextPiece>) -> Self {
        let mut reading = Self::default();
        dedup::remove_duplicates(&mut pieces);
        for piece in pieces {
            let piece_text = text.get(piece.from..piece.to).unwrap_or_default();
            match piece.kind {
                PieceKind::Prose => reading.prose.push_str(piece_text),
                PieceKind::Calls(calls) => {
                    for call in calls {
                        if call.ending == Ending::CutInside {
                            reading.cut = Some(reading.calls.len());
                        }
                        reading.calls.push(call.into_call());
                    }
                }
                PieceKind::Broken => reading.unreadable.push(unreadable(piece_text)),
                PieceKind::Thought if piece_text.starts_with("</") => {
                    // A closing tag without an opening one: the thoughts began in the prompt.
                    let Self { prose, .. } = std::mem::take(&mut reading);
                    reading.thoughts = prose;
                }
                PieceKind::Thought => reading.thoughts.push_str(piece_text),
                PieceKind::Answer => reading.holds_result = true,
                PieceKind::Mark => {}
            }
        }
        reading
    }
}

/// Explains to the model how to write a call.
fn unreadable(piece_text: &str) -> LocalizedText {
    /// Maximum length of the quoted call, in characters.
    const MAX_SHOWN_CHARS: usize = 120;
    let short: String = piece_text.trim().chars().take(MAX_SHOWN_CHARS).collect();
    let form = r#"<tool_call>{"tool_name": "…", "arguments": {…}}</tool_call>"#;
    LocalizedText::new(
        format!("this tool call could not be read: `{short}`; write it as {form}, with valid JSON inside"),
        format!("无法读取这个工具调用：`{short}`；请写成 {form}，其中必须是有效的 JSON"),
    )
}
