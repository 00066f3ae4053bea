//! Code mode: the tool `run_script` and the scripts of skills, which call the tools of their caller.

mod caller_tools;
mod dry_run;
mod journals;
mod last_interruption;
mod local_calls;
mod output_meta;
mod run_script;
mod script_runs;
mod shares;
mod skill_scripts;

pub use caller_tools::declaration_of;
pub(crate) use caller_tools::signature_of;
pub use dry_run::{DryRun, DryRunCall};
pub use local_calls::ResumeError;
pub use output_meta::script_failure;
pub(crate) use run_script::RunScript;
pub(crate) use script_runs::ScriptRuns;
pub(crate) use skill_scripts::SkillScripts;
