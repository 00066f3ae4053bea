//! From a request in words to a verified answer, with a language model and without one.

pub mod judge;
pub mod plan;
pub mod rules;

pub use plan::{Plan, Step, StepId};
