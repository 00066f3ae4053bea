//! Talks to language models, and reads tool calls out of what they say.

mod anthropic;
mod arguments;
mod assembly;
mod client;
mod concession;
pub mod discover;
mod endpoint;
mod exchange;
mod failure;
pub mod formats;
mod key;
mod listing;
mod names;
mod openai;
mod retry;
mod synthesizer;

pub use client::ModelClient;
pub use endpoint::{Api, Endpoint, ToolCalls};
pub use key::ApiKey;
pub use synthesizer::merge;
