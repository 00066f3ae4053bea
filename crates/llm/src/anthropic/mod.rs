//! The format of `POST /v1/messages`, as Anthropic made it.

mod reader;
mod request;

pub(crate) use reader::Reader;
pub(crate) use request::{answer_tool, body};
