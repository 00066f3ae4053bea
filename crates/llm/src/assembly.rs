//! Assembles a response from its pieces, for any wire format, and forwards them to a listener.

use toolhub_core::CallId;
use toolhub_core::model::{ChatReply, ModelCall, ReplyDelta, ReplyListener, StopReason, TokenUsage};

use crate::arguments::read_arguments;
use crate::names::WireNames;

/// A piece of a tool call.
#[derive(Debug, Default)]
pub(crate) struct CallPiece {
    /// The index of the call in the response, if the endpoint sends one.
    pub(crate) index: Option<u64>,
    /// The id, in the first piece or in every one.
    pub(crate) id: Option<String>,
    /// The name of the tool on the wire.
    pub(crate) name: Option<String>,
    /// The next part of the arguments.
    pub(crate) arguments: String,
}

/// A tool call that is still incomplete.
#[derive(Debug, Default)]
struct Draft {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

/// A response that is still incomplete.
pub(crate) struct Assembly<'a> {
    listener: ReplyListener<'a>,
    names: &'a WireNames,
    /// The tool whose arguments are the answer itself, for structured output.
    answer_tool: Option<&'a str>,
    text: String,
    drafts: Vec<Draft>,
    stop: Option<StopReason>,
    usage: Option<TokenUsage>,
    /// Whether the listener got anything; from then on the request must not be retried.
    has_output: bool,
}

impl<'a> Assembly<'a> {
    /// Creates an empty response.
    pub(crate) fn new(
        listener: ReplyListener<'a>,
        names: &'a WireNames,
        answer_tool: Option<&'a str>,
    ) -> Self {
        Self {
            listener,
            names,
            answer_tool,
            text: String::new(),
            drafts: Vec::new(),
            stop: None,
            usage: None,
            has_output: false,
        }
    }

    /// Whether the listener got anything.
    pub(crate) fn has_output(&self) -> bool {
        self.has_output
    }

    /// Whether a stop reason was received.
    pub(crate) fn stopped(&self) -> bool {
        self.stop.is_some()
    }

    pub(crate) fn text(&mut self, delta: &str) {
        if !delta.is_empty() {
            self.text.push_str(delta);
            self.emit(ReplyDelta::Text(delta.to_owned()));
        }
    }

    pub(crate) fn thought(&mut self, delta: &str) {
        if !delta.is_empty() {
            self.emit(ReplyDelta::Thought(delta.to_owned()));
        }
    }

    pub(crate) fn stop(&mut self, stop: StopReason) {
        self.stop = Some(stop);
    }

    /// The usage so far; later pieces update it.
    pub(crate) fn usage(&mut self) -> &mut TokenUsage {
        self.usage.get_or_insert_default()
    }

    pub(crate) fn call(&mut self, piece: CallPiece) {
        let at = self.draft_of(&piece);
        let draft = &mut self.drafts[at];
        if let Some(id) = piece.id.filter(|_| draft.id.is_empty()) {
            draft.id = id;
        }
        let begun = match piece.name {
            // Some endpoints repeat the name in every piece; none splits it.
            Some(name) if draft.name.is_empty() && !name.is_empty() => {
                draft.name = name;
                true
            }
            _ => false,
        };
        draft.arguments.push_str(&piece.arguments);
        let is_answer = self.answer_tool == Some(draft.name.as_str());
        if is_answer {
            if !piece.arguments.is_empty() {
                self.emit(ReplyDelta::Text(piece.arguments));
            }
        } else if begun {
            let tool = self.names.tool_name(&self.drafts[at].name);
            self.emit(ReplyDelta::ToolCallStarted(tool));
        }
    }

    /// Returns the draft of a piece. Endpoints identify calls by index or by id, or send each in one piece; some use
    /// index 0 for every call.
    fn draft_of(&mut self, piece: &CallPiece) -> usize {
        let id = piece.id.as_deref().filter(|id| !id.is_empty());
        let begins = piece.name.as_deref().is_some_and(|name| !name.is_empty());
        let same = |draft: &Draft| match (piece.index, id) {
            (Some(index), id) => {
                draft.index == Some(index)
                    && !(begins && id.is_some_and(|id| !draft.id.is_empty() && draft.id != id))
            }
            (None, Some(id)) => draft.id == id,
            (None, None) => !begins,
        };
        match self.drafts.iter().rposition(same) {
            Some(at) => at,
            None => {
                self.drafts.push(Draft { index: piece.index, ..Draft::default() });
                self.drafts.len() - 1
            }
        }
    }

    fn emit(&mut self, delta: ReplyDelta) {
        self.has_output = true;
        (self.listener)(delta);
    }

    /// Returns the complete response.
    pub(crate) fn finish(self) -> ChatReply {
        let mut reply = ChatReply { text: self.text, usage: self.usage, ..ChatReply::default() };
        let mut answered = false;
        for draft in self.drafts {
            if self.answer_tool == Some(draft.name.as_str()) {
                // Text before the answer tool is not part of the answer.
                reply.text = draft.arguments;
                answered = true;
                continue;
            }
            let tool = self.names.tool_name(&draft.name);
            match read_arguments(tool.as_str(), &draft.arguments) {
                Ok(read) => reply.calls.push(ModelCall {
                    id: id_of(&draft.id, &reply.calls),
                    tool,
                    arguments: read.object,
                    source: None,
                    repaired: read.repaired,
                }),
                Err(why) => reply.unreadable.push(why),
            }
        }
        reply.stop = match self.stop.unwrap_or_default() {
            // Not all endpoints report tool calls as the stop reason.
            StopReason::End if !reply.calls.is_empty() => StopReason::Calls,
            StopReason::Calls if answered && reply.calls.is_empty() => StopReason::End,
            stop => stop,
        };
        reply
    }
}

/// The id sent by the model; a new one if it is empty or not unique.
fn id_of(original: &str, others: &[ModelCall]) -> CallId {
    if original.is_empty() || others.iter().any(|call| call.id.as_str() == original) {
        CallId::generate()
    } else {
        CallId::new(original)
    }
}

impl std::fmt::Debug for Assembly<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Assembly")
            .field("text", &self.text)
            .field("drafts", &self.drafts)
            .finish_non_exhaustive()
    }
}
