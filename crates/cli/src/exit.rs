//! Exit codes and their mapping from errors.

use std::process::ExitCode;

use toolhub_core::ToolError;

/// The exit status of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Done,
    Failed,
    Usage,
    Unreachable,
    TimedOut,
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Unreachable => 3,
            Exit::TimedOut => 124,
            Exit::Interrupted => 130,
        })
    }
}

impl From<&ToolError> for Exit {
    fn from(error: &ToolError) -> Self {
        match error {
            ToolError::ConnectionFailed { .. } => Self::Unreachable,
            ToolError::UnknownSource { .. } => Self::Usage,
            ToolError::TimedOut { .. } => Self::TimedOut,
            ToolError::Cancelled => Self::Interrupted,
            _ => Self::Failed,
        }
    }
}

/// A usage error: printed unchanged, with exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub(crate) String);

/// The process received SIGINT (Ctrl-C), SIGTERM or SIGHUP.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub(crate) struct Interrupted;
