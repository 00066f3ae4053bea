//! A fence around a child process, of the operating system's own making: what it may read, write, reach and use up.
//!
//! [`confine`] prepares a command, spawning it confines the child from its first instruction on, and the
//! [`Confinement`] that comes back watches it, says why it was stopped, and leaves nothing of it behind; nothing is left
//! either where the program itself is killed, if its `main` begins with [`run_reaper_if_requested`]. Where the system
//! lacks a protection the command is refused, unless its owner allowed exactly that protection to be missing.
//!
//! ```no_run
//! use std::process::{Command, Stdio};
//! use toolhub_sandbox::{Policy, confine};
//!
//! let policy = Policy { read: vec!["/srv/skill".into()], ..Policy::default() };
//! let mut command = Command::new("/srv/skill/scripts/count.py");
//! let mut confinement = confine(&policy, &mut command)?;
//! // What the child's streams are is said last: another isolation may have put another program in front.
//! let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
//! confinement.started(child.id());
//! let status = child.wait()?;
//! // What it left behind would hold its streams open.
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
mod stop;
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
pub use policy::{Isolation, Limits, Network, Policy};
pub use program::{NamedBy, Program, Refusal};
pub use protection::{Missing, Protection, UnknownProtection};
pub use stop::Stop;
pub use support::Support;
pub use system::{Confinement, confine, dismiss_guard, run_reaper_if_requested, support};
