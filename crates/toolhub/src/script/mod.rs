//! Code mode: the tool `run_script`, whose scripts call the tools of their caller.

mod dry_run;
mod journals;
mod local_calls;
mod nested_scripts;
mod run_script;
mod shares;

pub use dry_run::{DryRun, DryRunCall};
pub use local_calls::ResumeError;
pub(crate) use nested_scripts::{declaration_of, signature_of};
pub(crate) use run_script::{NAME, RunScript};
