//! The chat of `/v1/chat/completions`: requests and their output.

pub(crate) mod assembler;
pub(crate) mod request;
