//! Client for language models, and parser for tool calls in their output.

mod anthropic;
mod arguments;
mod assembly;
mod client;
mod compat;
pub mod discover;
mod endpoint;
mod exchange;
mod failure;
pub mod formats;
mod key;
mod listing;
mod names;
mod openai;
pub mod repair;
mod retry;
mod synthesizer;
pub mod text_model;

pub use client::ModelClient;
pub use endpoint::{Endpoint, ToolCalls, WireFormat};
pub use key::ApiKey;
pub use synthesizer::merge_results;
