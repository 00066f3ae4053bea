//! The format of `POST /chat/completions`, as OpenAI made it and many others speak it, each a little differently.

mod reader;
mod request;

pub(crate) use reader::Reader;
pub(crate) use request::{body, object_schema};
