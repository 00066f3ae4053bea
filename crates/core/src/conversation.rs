//! Conversations: what was said by whom. Keeping them is a store's business, leading them the agent's.

use std::time::SystemTime;

use crate::ports::{BoxFuture, StoreError};

/// Who said something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The person who asks.
    User,
    /// The agent that answers.
    Assistant,
    /// A tool, by its result.
    Tool,
}

impl Role {
    /// Its name, as it is kept and shown.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }

    /// The role of that name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::User, Self::Assistant, Self::Tool].into_iter().find(|role| role.name() == name)
    }
}

/// One thing that was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// In which conversation.
    pub conversation: String,
    /// By whom.
    pub role: Role,
    /// What.
    pub text: String,
    /// When.
    pub at: SystemTime,
}

/// A conversation as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationSummary {
    /// Its id.
    pub id: String,
    /// What was said first.
    pub opening: String,
    /// How many turns it has.
    pub turns: u64,
    /// When it began.
    pub first: SystemTime,
    /// When something was last said.
    pub last: SystemTime,
}

/// Which turns are wanted.
#[derive(Debug, Clone, Default)]
pub struct TurnQuery {
    /// Of that conversation.
    pub conversation: Option<String>,
    /// That contain this text, whatever its case.
    pub text: Option<String>,
    /// By that role.
    pub role: Option<Role>,
    /// At most so many, the newest; all where it is `None`.
    pub limit: Option<usize>,
}

/// Where conversations are kept.
pub trait Conversations: Send + Sync {
    /// Adds what was said; safe when it returns.
    fn say(&self, turn: Turn) -> BoxFuture<'_, Result<(), StoreError>>;

    /// The turns that fit, oldest first.
    fn turns(&self, query: TurnQuery) -> BoxFuture<'_, Result<Vec<Turn>, StoreError>>;

    /// The conversations, the one with the newest turn first.
    fn conversations(
        &self,
        limit: Option<usize>,
    ) -> BoxFuture<'_, Result<Vec<ConversationSummary>, StoreError>>;
}
