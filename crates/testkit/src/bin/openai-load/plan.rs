//! What the model writes for a request. The client puts the plan into the message of the user, so that it arrives through any
//! server in between, and knows the expected text.

use anyhow::{Context as _, Result};

/// Tokens of the text, in turn.
const TOKENS: [&str; 6] = [" the", " row", "数据", " is", " “ok”", "\n"];
const PREFIX: &str = "plan";

/// What the model writes, and how fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) tokens: usize,
    /// The pause between two tokens.
    pub(crate) pause_micros: u64,
    /// The pause after the first token.
    pub(crate) hold_millis: u64,
}

impl Plan {
    /// The message of the user.
    pub(crate) fn request(self) -> String {
        let Self { tokens, pause_micros, hold_millis } = self;
        format!("{PREFIX} {tokens} {pause_micros} {hold_millis}")
    }

    /// The plan of a message.
    pub(crate) fn parse(request: &str) -> Result<Self> {
        let mut words = request.split(' ');
        let mut next = || words.next().with_context(|| format!("`{request}` is not a plan"));
        anyhow::ensure!(next()? == PREFIX, "`{request}` is not a plan");
        Ok(Self { tokens: next()?.parse()?, pause_micros: next()?.parse()?, hold_millis: next()?.parse()? })
    }

    /// The token with this number.
    pub(crate) fn token(number: usize) -> &'static str {
        TOKENS[number % TOKENS.len()]
    }

    /// The whole text.
    pub(crate) fn text(self) -> String {
        (0..self.tokens).map(Self::token).collect()
    }
}
