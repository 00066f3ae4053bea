//! Conversations as lists of turns. A store keeps them; the agent conducts them.

use std::time::SystemTime;

use crate::boxed::BoxFuture;
use crate::store_error::StoreError;

/// The author of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TurnRole {
    /// The user.
    User,
    /// The agent.
    Assistant,
    /// A tool, with its result.
    Tool,
}

impl TurnRole {
    /// Name in storage and output.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }

    /// The role of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::User, Self::Assistant, Self::Tool].into_iter().find(|role| role.name() == name)
    }
}

/// One turn of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationTurn {
    /// The conversation.
    pub conversation: String,
    /// The author.
    pub role: TurnRole,
    /// The text.
    pub text: String,
    /// The time.
    pub at: SystemTime,
}

/// Summary of a conversation for lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationSummary {
    /// Its id.
    pub id: String,
    /// The text of the first turn.
    pub opening: String,
    /// Number of turns.
    pub turns: u64,
    /// Time of the first turn.
    pub first: SystemTime,
    /// Time of the last turn.
    pub last: SystemTime,
}

/// A filter for turns.
#[derive(Debug, Clone, Default)]
pub struct TurnQuery {
    /// Only turns of this conversation.
    pub conversation: Option<String>,
    /// Only turns that contain this text, case-insensitive.
    pub text: Option<String>,
    /// Only turns by this role.
    pub role: Option<TurnRole>,
    /// Maximum number of turns, the newest ones; `None` for all.
    pub limit: Option<usize>,
}

/// Storage of conversations.
pub trait Conversations: Send + Sync {
    /// Appends a turn; durable when it returns.
    fn append_turn(&self, turn: ConversationTurn) -> BoxFuture<'_, Result<(), StoreError>>;

    /// The matching turns, oldest first.
    fn turns(&self, query: TurnQuery) -> BoxFuture<'_, Result<Vec<ConversationTurn>, StoreError>>;

    /// The conversations, most recently active first.
    fn conversations(
        &self,
        limit: Option<usize>,
    ) -> BoxFuture<'_, Result<Vec<ConversationSummary>, StoreError>>;
}
