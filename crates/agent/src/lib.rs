//! From a request in words to a verified answer, with a language model and without one.

mod absolute;
mod agent;
mod allowed;
mod allowed_finder;
mod answer;
mod call_tool;
mod caution;
mod desk;
mod execute;
mod fill_in;
pub mod judge;
mod model_plan;
mod model_talk;
pub mod plan;
pub mod prompt;
mod rounds;
pub mod rules;
mod step_result;
mod withheld;

pub use agent::{Agent, Asked, Way, spoken};
pub use allowed::Allowed;
pub use answer::Answer;
pub use desk::{AgreedBefore, Budget, Consent, Desk, NobodyThere, Permission};
pub use plan::{Plan, Step, StepId};
pub use step_result::StepResult;

/// The day it is where this runs.
pub fn today() -> jiff::civil::Date {
    jiff::Zoned::now().date()
}
