//! The script of a model server: its replies, their format and their end.

use std::time::Duration;

/// The response to a request.
#[derive(Debug, Clone)]
pub enum Act {
    /// A reply.
    Reply(ScriptedReply),
    /// An error response.
    Status {
        /// The status.
        status: u16,
        /// Additional headers.
        headers: Vec<(&'static str, String)>,
        /// The body.
        body: String,
    },
    /// A body with status 200, verbatim.
    Raw {
        /// The `content-type`.
        kind: &'static str,
        /// The body.
        body: String,
        /// How it ends.
        ending: Ending,
    },
    /// No response, not even a status.
    Hang,
}

impl Act {
    /// An error response in the format that both APIs share.
    #[must_use]
    pub fn refuse(status: u16, message: &str) -> Self {
        let body = serde_json::json!({"error": {"message": message, "type": "error"}}).to_string();
        Self::Status { status, headers: Vec::new(), body }
    }

    /// An error response with `Retry-After`.
    #[must_use]
    pub fn refuse_with_retry_after(status: u16, seconds: &str) -> Self {
        let body = serde_json::json!({"error": {"message": "slow down", "type": "error"}}).to_string();
        Self::Status { status, headers: vec![("retry-after", seconds.to_owned())], body }
    }

    /// A stream of these events, verbatim.
    #[must_use]
    pub fn events(body: impl Into<String>) -> Self {
        Self::Raw { kind: "text/event-stream", body: body.into(), ending: Ending::Whole }
    }
}

/// A reply of the model.
#[derive(Debug, Clone, Default)]
pub struct ScriptedReply {
    /// Thoughts.
    pub thought: String,
    /// Text.
    pub text: String,
    /// Calls: id, tool and arguments as text.
    pub calls: Vec<(String, String, String)>,
    /// The stop reason of the OpenAI format; derived from the reply if empty.
    pub stop: String,
    /// Tokens: input, cached input, output.
    pub usage: Option<(u64, u64, u64)>,
    /// The format of calls.
    pub style: CallStyle,
    /// Whether the reply is a single JSON document even if streaming was requested.
    pub whole: bool,
    /// How the reply is split.
    pub pacing: Pacing,
    /// How it ends.
    pub ending: Ending,
}

impl ScriptedReply {
    /// A reply with this text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }

    /// Adds a call.
    #[must_use]
    pub fn call(mut self, tool: &str, arguments: &str) -> Self {
        let id = format!("call_{}", self.calls.len() + 1);
        self.calls.push((id, tool.to_owned(), arguments.to_owned()));
        self
    }

    /// Sets the thoughts.
    #[must_use]
    pub fn thinking(self, thought: &str) -> Self {
        Self { thought: thought.to_owned(), ..self }
    }

    /// Sets the usage.
    #[must_use]
    pub fn with_usage(self, read: u64, cached: u64, written: u64) -> Self {
        Self { usage: Some((read, cached, written)), ..self }
    }

    /// Sets the format of calls.
    #[must_use]
    pub fn with_style(self, style: CallStyle) -> Self {
        Self { style, ..self }
    }

    /// Sends a single JSON document.
    #[must_use]
    pub fn unstreamed(self) -> Self {
        Self { whole: true, ..self }
    }

    /// Sets how the reply is split.
    #[must_use]
    pub fn paced(self, pacing: Pacing) -> Self {
        Self { pacing, ..self }
    }

    /// Sets the end.
    #[must_use]
    pub fn ending(self, ending: Ending) -> Self {
        Self { ending, ..self }
    }

    /// Converts it to an action.
    #[must_use]
    pub fn act(self) -> Act {
        Act::Reply(self)
    }

    /// The stop reason of the OpenAI format.
    pub(super) fn reason(&self) -> &str {
        match (self.stop.as_str(), self.style) {
            ("", CallStyle::WholeObject) => "stop",
            ("", _) if !self.calls.is_empty() => "tool_calls",
            ("", _) => "stop",
            (stop, _) => stop,
        }
    }
}

/// The format of calls in OpenAI's format, in which endpoints differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CallStyle {
    /// As OpenAI: name and id first, arguments in pieces, identified by index, interleaved.
    #[default]
    Streamed,
    /// Each call in one piece, without index.
    Whole,
    /// The same with arguments as an object and without ids; the stop reason is `stop`.
    WholeObject,
    /// Each call in one piece, all with index 0.
    SameIndex,
    /// In pieces, with name and id repeated in each.
    Repeated,
}

/// How a reply is split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pacing {
    /// In one piece.
    #[default]
    AtOnce,
    /// In two pieces, split before this byte.
    SplitAt(usize),
    /// Byte by byte.
    EveryByte,
    /// Line by line, with this delay.
    Delayed(Duration),
}

/// How a reply ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ending {
    /// Regularly.
    #[default]
    Whole,
    /// The connection is aborted after this many bytes.
    CutAfter(usize),
    /// The body ends regularly after this many bytes.
    EndAfter(usize),
    /// Nothing is sent after this many bytes, and the connection stays open.
    SilentAfter(usize),
}
