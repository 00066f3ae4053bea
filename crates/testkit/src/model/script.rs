//! What a scripted model does: what it says, in which manner, and how it ends.

use std::time::Duration;

/// What one request is answered with.
#[derive(Debug, Clone)]
pub enum Act {
    /// An answer.
    Say(ScriptedReply),
    /// A refusal.
    Status {
        /// Its status.
        status: u16,
        /// Headers beside the usual.
        headers: Vec<(&'static str, String)>,
        /// Its body.
        body: String,
    },
    /// A body of any kind with status 200, to the letter.
    Raw {
        /// Its `content-type`.
        kind: &'static str,
        /// The body.
        body: String,
        /// How it ends.
        ending: Ending,
    },
    /// Nothing, not even a status, for as long as the client waits.
    Hang,
}

impl Act {
    /// A refusal with a message in the form that both formats share.
    #[must_use]
    pub fn refuse(status: u16, message: &str) -> Self {
        let body = serde_json::json!({"error": {"message": message, "type": "error"}}).to_string();
        Self::Status { status, headers: Vec::new(), body }
    }

    /// The same with a wish to be left alone for this many seconds.
    #[must_use]
    pub fn refuse_for(status: u16, seconds: &str) -> Self {
        let body = serde_json::json!({"error": {"message": "slow down", "type": "error"}}).to_string();
        Self::Status { status, headers: vec![("retry-after", seconds.to_owned())], body }
    }

    /// A stream of these events, to the letter.
    #[must_use]
    pub fn events(body: impl Into<String>) -> Self {
        Self::Raw { kind: "text/event-stream", body: body.into(), ending: Ending::Whole }
    }
}

/// What the model says.
#[derive(Debug, Clone, Default)]
pub struct ScriptedReply {
    /// Its thoughts.
    pub thought: String,
    /// Its words.
    pub text: String,
    /// Its calls: id, tool and arguments as text.
    pub calls: Vec<(String, String, String)>,
    /// Why it stops, in OpenAI's words; from what it says, where this is empty.
    pub stop: String,
    /// Tokens: read, of these from a cache, written.
    pub usage: Option<(u64, u64, u64)>,
    /// How calls are written.
    pub style: CallStyle,
    /// Whether the answer comes as one JSON document, whatever was asked for.
    pub whole: bool,
    /// In which pieces it comes.
    pub pacing: Pacing,
    /// How it ends.
    pub ending: Ending,
}

impl ScriptedReply {
    /// One that says these words.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }

    /// The same with a call.
    #[must_use]
    pub fn call(mut self, tool: &str, arguments: &str) -> Self {
        let id = format!("call_{}", self.calls.len() + 1);
        self.calls.push((id, tool.to_owned(), arguments.to_owned()));
        self
    }

    /// The same, thought over.
    #[must_use]
    pub fn thinking(self, thought: &str) -> Self {
        Self { thought: thought.to_owned(), ..self }
    }

    /// The same, counted.
    #[must_use]
    pub fn costing(self, read: u64, cached: u64, written: u64) -> Self {
        Self { usage: Some((read, cached, written)), ..self }
    }

    /// The same with calls written that way.
    #[must_use]
    pub fn styled(self, style: CallStyle) -> Self {
        Self { style, ..self }
    }

    /// The same in one JSON document.
    #[must_use]
    pub fn in_one_piece(self) -> Self {
        Self { whole: true, ..self }
    }

    /// The same in these pieces.
    #[must_use]
    pub fn paced(self, pacing: Pacing) -> Self {
        Self { pacing, ..self }
    }

    /// The same with another end.
    #[must_use]
    pub fn ending(self, ending: Ending) -> Self {
        Self { ending, ..self }
    }

    /// As an act.
    #[must_use]
    pub fn act(self) -> Act {
        Act::Say(self)
    }

    /// Why it stops, in OpenAI's words.
    pub(super) fn reason(&self) -> &str {
        match (self.stop.as_str(), self.style) {
            ("", CallStyle::WholeObject) => "stop",
            ("", _) if !self.calls.is_empty() => "tool_calls",
            ("", _) => "stop",
            (stop, _) => stop,
        }
    }
}

/// How calls are written in OpenAI's format, where endpoints differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CallStyle {
    /// As OpenAI does: name and id first, arguments in pieces, told apart by index, here interleaved.
    #[default]
    Streamed,
    /// Each call whole in one piece, with no index.
    Whole,
    /// The same with arguments as an object and without ids; it stops as if it were done.
    WholeObject,
    /// Each call whole, every one counted as the first.
    SameIndex,
    /// In pieces, with name and id repeated in each.
    Repeated,
}

/// In which pieces an answer comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pacing {
    /// In one.
    #[default]
    AtOnce,
    /// In two, cut before this byte.
    SplitAt(usize),
    /// Byte by byte.
    EveryByte,
    /// A line at a time, with this much time between.
    Drip(Duration),
}

/// How an answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ending {
    /// As it should.
    #[default]
    Whole,
    /// The connection breaks after this many bytes.
    CutAfter(usize),
    /// The body ends in good order after this many bytes.
    EndAfter(usize),
    /// Nothing comes after this many bytes, and the connection stays.
    SilentAfter(usize),
}
