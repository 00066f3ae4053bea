//! Turns a request in natural language into a verified answer, with or without a language model.

mod absolute;
mod agent;
mod allowed;
mod allowed_finder;
mod answer;
mod call_tool;
mod change_summary;
mod desk;
mod execute;
mod fill_in;
mod found_id;
mod greeting;
pub mod judge;
mod model_plan;
mod model_talk;
mod named_call;
pub mod prompt;
mod rounds;
mod server_choice;
mod step_result;
mod withheld;

pub use agent::{Agent, AgentMode, Asked, spoken};
pub use allowed::Allowed;
pub use answer::Answer;
pub use change_summary::ChangeSummary;
pub use desk::{AgreedBefore, Budget, Consent, Desk, NobodyThere, Permission};
pub use server_choice::ServerChoice;
pub use step_result::StepResult;
pub use toolhub_planner::plan::{Plan, Step, StepId};

/// The current date in the local time zone.
pub fn today() -> jiff::civil::Date {
    jiff::Zoned::now().date()
}
