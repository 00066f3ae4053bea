//! Talks to language models, and reads tool calls out of what they say.

pub mod formats;
pub mod repair;
pub mod text_model;
