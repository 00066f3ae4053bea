//! Decides whether a request proves a step that changes something.
//!
//! `proof` collects doubts about each step while the plan is assembled; `change_guard` adds reasons from the whole request;
//! `request_check` finds negations, conditions and questions. They only mark: `Plan::is_withheld`, and the agent before it runs a
//! plan, keep marked steps from running.

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
