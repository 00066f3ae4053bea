//! Talks to language models, and reads tool calls out of what they say.

mod anthropic;
mod arguments;
mod assembly;
mod client;
mod concession;
mod endpoint;
mod exchange;
mod failure;
pub mod formats;
mod key;
mod listing;
mod names;
mod openai;
mod retry;

pub use client::ModelClient;
pub use endpoint::{Api, Endpoint, ToolCalls};
pub use key::ApiKey;
