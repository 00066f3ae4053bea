//! Commands about who may call what: `keys` and `waiting`.

pub(crate) mod keys;
pub(crate) mod waiting;
