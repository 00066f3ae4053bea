//! Decides whether a request proves a step that changes something.

pub(crate) mod doubt;
pub(crate) mod extent;
pub(crate) mod guess;
pub(crate) mod mood;
pub(crate) mod proof;
pub(crate) mod reserve;
pub(crate) mod spoken_of;
pub(crate) mod unknown_verb;
