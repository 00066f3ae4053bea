//! Code mode: the tool `run_script`, whose scripts call the tools of their caller.

mod caller_tools;
mod dry_run;
mod journals;
mod local_calls;
mod run_script;
mod shares;

pub use caller_tools::declaration_of;
pub(crate) use caller_tools::signature_of;
pub use dry_run::{DryRun, DryRunCall};
pub use local_calls::ResumeError;
pub(crate) use run_script::RunScript;
