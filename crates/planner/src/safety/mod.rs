//! Decides whether a request proves a step that changes something.

pub(crate) mod bare_change;
pub(crate) mod change_guard;
pub(crate) mod doubt;
pub(crate) mod guessed_argument;
pub(crate) mod mood;
pub(crate) mod number_bound;
pub(crate) mod number_mismatch;
pub(crate) mod proof;
pub(crate) mod reported_order;
pub(crate) mod request_check;
pub(crate) mod request_scope;
pub(crate) mod unknown_verb;
