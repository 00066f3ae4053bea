//! Requests in natural language: `ask`, `chat` and `prompt`.

pub(crate) mod ask;
pub(crate) mod chat;
pub(crate) mod interrupted;
pub(crate) mod prompt;
