//! What happens in a turn, in order. Both interfaces build their streams and their final objects from the same events, so that
//! streamed and unstreamed answers are equal.

use toolhub_core::model::{ModelCall, StopReason, TokenUsage};

/// A call that the hub makes.
#[derive(Debug, Clone)]
pub(crate) struct HubCall {
    /// The id of the call in the hub.
    pub(crate) id: String,
    pub(crate) server: String,
    pub(crate) tool: String,
    /// The arguments, as JSON.
    pub(crate) arguments: String,
    pub(crate) is_read_only: bool,
    /// The approval request that allowed it.
    pub(crate) approval: Option<String>,
}

/// Something that happens in a turn.
#[derive(Debug, Clone)]
pub(crate) enum TurnEvent {
    /// Text of the answer.
    Text(String),
    /// Text of the reasoning.
    Thought(String),
    /// A reply of the model is complete.
    ReplyEnded,
    CallStarted(HubCall),
    /// The result of a call: its output or its error.
    CallFinished(String, Result<String, String>),
    /// A call waits for the approval of the client.
    ApprovalNeeded(HubCall),
}

impl TurnEvent {
    /// The size of its texts, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Text(text) | Self::Thought(text) => text.len(),
            Self::ReplyEnded => 0,
            Self::CallStarted(call) | Self::ApprovalNeeded(call) => call.tool.len() + call.arguments.len(),
            Self::CallFinished(_, Ok(text) | Err(text)) => text.len(),
        }
    }

    /// Whether the model streams it.
    pub(crate) fn is_streamed(&self) -> bool {
        matches!(self, Self::Text(_) | Self::Thought(_))
    }
}

/// The end of a turn.
#[derive(Debug, Clone)]
pub(crate) struct TurnEnd {
    pub(crate) client_calls: Vec<ModelCall>,
    pub(crate) status: EndStatus,
    pub(crate) usage: TokenUsage,
}

/// How a turn ended.
#[derive(Debug, Clone)]
pub(crate) enum EndStatus {
    Complete(StopReason),
    /// A limit of the request was reached.
    Limit(String),
    /// The model or the hub failed.
    Failed(String),
    Cancelled,
}
