//! How several candidates are run. One file per strategy.

pub(crate) mod first;
