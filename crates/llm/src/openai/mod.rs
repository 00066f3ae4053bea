//! The OpenAI wire format: `POST /chat/completions`, with the variations of compatible servers.

mod reader;
mod request;

pub(crate) use reader::Reader;
pub(crate) use request::{object_schema, request_body};
