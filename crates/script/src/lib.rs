//! Code mode: runs small programs of models that call tools, so that intermediate results do not enter a model's context.
//!
//! A script runs in a process of its own (`toolhub script-host`, crate `toolhub-script-host`), which can do nothing but
//! compute and exchange messages with the hub. This crate contains no JavaScript engine: it starts the process in the
//! sandbox, checks all its messages, calls tools through [`ScriptTools`], keeps the [`Journal`] and makes the
//! [`ScriptReport`]. [`signature`] describes tools to models as TypeScript.
//!
//! ```no_run
//! # async fn example(tools: &dyn toolhub_script::ScriptTools) -> std::io::Result<()> {
//! use toolhub_script::{HostConfig, RunnerConfig, Script, ScriptRunner};
//!
//! let runner = ScriptRunner::new(RunnerConfig::new(HostConfig::of_current_program()?));
//! let script = Script::new("const rows = await tools.excel.read({ sheet: 1 }); rows.length");
//! let report = runner.run(&script, tools, None).await;
//! match report.value() {
//!     Some(value) => assert_eq!(value.get(), "12"),
//!     None => eprintln!("{}", report.notes(toolhub_core::Lang::En)),
//! }
//! # Ok(())
//! # }
//! ```

mod excerpt;
mod failure;
mod file_journal;
mod host;
mod host_process;
mod journal;
mod limits;
mod local_hosts;
mod pool;
pub mod protocol;
mod replay;
mod report;
mod runner;
mod session;
pub mod signature;
mod tools;
mod violation;

pub use excerpt::Position;
pub use file_journal::{FileJournal, JournalError};
pub use host_process::HostConfig;
pub use journal::{
    AnswerRecord, AnswerResult, CallRecord, EntryDurability, Journal, JournalEntry, RunHeader, WakeRecord,
};
pub use limits::{MAX_PENDING_SLEEPS, MAX_SLEEPS, ScriptLimits};
pub use local_hosts::LocalHosts;
pub use report::{
    CallReport, CallStatus, FailureKind, ScriptFailure, ScriptOutcome, ScriptReport, interruption_text,
};
pub use runner::{OtherHosts, RunnerConfig, Script, ScriptRunner};
pub use tools::{INVALID_ARGUMENTS, ScriptCall, ScriptTool, ScriptToolError, ScriptTools};
