//! The port for whoever fences children in: what that is made of, this crate does not know.

use std::fmt::Debug;
use std::process::{Command, ExitStatus};

use toolhub_core::lang::Text;

/// Fences a server's program in.
pub trait ProcessSandbox: Debug + Send + Sync {
    /// Prepares a command, whose program, arguments, folder and variables are set, so that what it starts is fenced in.
    /// An error says why that cannot be, and nothing is started.
    fn enclose(&self, command: &mut Command) -> Result<Box<dyn SandboxedProcess>, Text>;
}

/// The fence around one program; with it goes all that the program left behind.
pub trait SandboxedProcess: Debug + Send + Sync {
    /// Why the fence stopped the program or held it back, if it did, from its end and its last words.
    fn verdict(&self, status: ExitStatus, last_words: &str) -> Option<Text>;
}
