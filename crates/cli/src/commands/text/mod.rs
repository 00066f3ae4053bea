//! Tool calls in the text of a model: `parse` and `run`.

pub(crate) mod parse;
pub(crate) mod run;
