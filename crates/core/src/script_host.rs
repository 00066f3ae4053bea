//! The port for processes that run one script each. Those of this machine and those of other machines are used alike. The messages
//! between hub and host are lines that this port does not read.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::lang::LocalizedText;
use crate::ports::BoxFuture;

/// Gives scripts to hosts.
pub trait ScriptHosts: Send + Sync {
    /// Gives a script to a host. `first` is the message with the script, as one line with its line break.
    ///
    /// A host only computes: whatever a script changes, it changes by calls that the hub makes. After an error, the script has not
    /// begun, and another host may get it.
    fn begin<'a>(&'a self, first: &'a [u8]) -> BoxFuture<'a, Result<Box<dyn ScriptHost>, LocalizedText>>;
}

/// A host that runs a script. Dropping it ends the script.
pub trait ScriptHost: Send {
    /// Queues lines, each with its line break; [`Self::next`] writes them.
    fn send(&mut self, lines: &[u8]);

    /// Bytes that are queued and that the host has not taken.
    fn unsent(&self) -> usize;

    /// The next event. Without `reads` no line is taken, so that the host waits as soon as the buffers are full. Cancel safe.
    fn next(&mut self, reads: bool) -> BoxFuture<'_, ScriptHostEvent>;

    /// CPU time that the host has used, as far as it is known.
    fn cpu_time(&self) -> Option<Duration>;
}

/// What a host did.
#[derive(Debug)]
pub enum ScriptHostEvent {
    /// It sent a line, which is here without its line break.
    Line(Vec<u8>),
    /// It has taken everything that was queued.
    Written,
    /// It ended. Nothing follows.
    Ended(ScriptHostEnd),
}

/// How a host ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptHostEnd {
    /// What ended it.
    pub cause: ScriptHostEndCause,
    /// The cause in words.
    pub text: LocalizedText,
}

/// What ended a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScriptHostEndCause {
    /// The script used up its memory.
    Memory,
    /// The script used up its CPU time.
    Cpu,
    /// Anything else: an exit, a signal, the loss of its machine.
    Other,
}
