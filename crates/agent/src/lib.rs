//! Turns a request in natural language into a verified answer, with or without a language model.

mod absolute_path;
mod agent;
mod agent_context;
mod allowlist;
mod answer;
mod call_tool;
mod change_summary;
mod execute;
mod fill_in;
mod filtered_finder;
mod greeting;
mod item_id;
pub mod judge;
mod language;
mod model_plan;
mod model_session;
mod named_call;
pub mod prompt;
mod script_call;
mod server_choice;
mod step_result;
mod supervision;
mod tool_loop;
mod turn;
mod withheld;

pub use agent::{Agent, AgentMode, AgentRequest, planned_by_rules_note};
pub use agent_context::{
    AgentBudget, AgentContext, AllowAll, Confirmation, DenyAll, PermissionDecision, SignatureText,
};
pub use allowlist::ToolAllowlist;
pub use answer::Answer;
pub use change_summary::ChangeSummary;
pub use language::detect_language;
pub use server_choice::ServerChoice;
pub use step_result::StepResult;
pub use supervision::{CallDecision, CallSupervisor, SupervisedCall};
pub use toolhub_planner::plan::{ArgumentSource, Plan, PlanStep, StepId};
pub use turn::{TurnFailure, TurnRequest, TurnResult};

/// The current date in the local time zone.
pub fn today() -> jiff::civil::Date {
    jiff::Zoned::now().date()
}
