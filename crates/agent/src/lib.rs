//! From a request in words to a verified answer, with a language model and without one.

pub mod plan;

pub use plan::{Plan, Step, StepId};
