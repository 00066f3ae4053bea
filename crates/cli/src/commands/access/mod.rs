//! Commands about who may call what: `keys`, `waiting` and `audit`.

pub(crate) mod audit;
pub(crate) mod keys;
pub(crate) mod waiting;
