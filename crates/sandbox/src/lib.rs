//! A sandbox for child processes, built from features of the operating system: restricts files, network, system calls
//! and resources.
//!
//! [`confine`] prepares a command; the child is confined from its first instruction on. The returned [`Confinement`]
//! watches the child, reports why it was stopped, and kills all its descendants. If `main` begins with
//! [`run_guard_if_requested`], this also happens if the calling program is killed. If the system lacks a protection,
//! the command is refused unless the policy allows that protection to be missing.
//!
//! ```no_run
//! use std::process::{Command, Stdio};
//! use toolhub_sandbox::{SandboxPolicy, confine};
//!
//! let policy = SandboxPolicy { read: vec!["/srv/skill".into()], ..SandboxPolicy::default() };
//! let mut command = Command::new("/srv/skill/scripts/count.py");
//! let mut confinement = confine(&policy, &mut command)?;
//! // Set the streams after `confine`, which may replace the command by `bwrap`.
//! let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
//! confinement.started(child.id());
//! let status = child.wait()?;
//! // Kill descendants that keep the streams open.
//! confinement.end_rest();
//! let words = std::io::read_to_string(child.stderr.take().ok_or("no stderr")?)?;
//! if let Some(stop) = confinement.verdict(status, &words) {
//!     eprintln!("it was stopped: {stop}");
//! }
//! confinement.finish();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod environment;
mod error;
mod policy;
mod program;
mod protection;
mod stop_reason;
mod support;
#[cfg(target_os = "linux")]
mod symptoms;

#[cfg(target_os = "linux")]
#[path = "linux/mod.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "elsewhere.rs"]
mod system;

pub use error::SandboxError;
pub use policy::{Isolation, NetworkAccess, SandboxLimits, SandboxPolicy};
pub use program::{NamedBy, ProgramRefusal, SandboxProgram};
pub use protection::{MissingProtection, Protection, UnknownProtection};
pub use stop_reason::StopReason;
pub use support::SandboxSupport;
pub use system::{
    Confinement, confine, restrict_to_computation, run_guard_if_requested, stop_guard, support,
};
