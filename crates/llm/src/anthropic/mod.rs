//! The Anthropic wire format: `POST /v1/messages`.

mod reader;
mod request;

pub(crate) use reader::Reader;
pub(crate) use request::{answer_tool, request_body};
