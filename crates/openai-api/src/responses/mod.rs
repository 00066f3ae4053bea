//! The responses of `/v1/responses`: requests, their output, stored responses, and responses that run in the background.

mod abandoned;
pub(crate) mod assembler;
pub(crate) mod background;
pub(crate) mod final_state;
pub(crate) mod history;
pub(crate) mod progress;
pub(crate) mod request;
pub(crate) mod stored;
