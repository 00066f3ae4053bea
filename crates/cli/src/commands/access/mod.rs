//! Commands about who may call what: `keys`, `waiting` and `audit`.

pub(crate) mod audit;
pub(crate) mod held_calls;
pub(crate) mod keys;
