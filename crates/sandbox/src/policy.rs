//! What a confined process may do, as data; everything that is not said here is forbidden.

use std::path::PathBuf;
use std::time::Duration;

use crate::program::Program;
use crate::protection::Protection;

/// What a confined process may do. The default may read the system's own programs and use its private folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Folders and files that the owner grants for reading and executing, besides the system's own programs and
    /// libraries. Links are followed, unless they lead to a folder that holds everything.
    pub read: Vec<PathBuf>,
    /// Folders and files that the owner grants for reading, executing and writing. The private folder is always among
    /// them.
    pub write: Vec<PathBuf>,
    /// Folders and files of the confined code itself, for reading and executing. Their paths must be canonical: a link in
    /// one is refused.
    pub own: Vec<PathBuf>,
    /// Programs that are run, with what they need of their own.
    pub programs: Vec<Program>,
    /// Folders that hold secrets: they hold no interpreter that a script names, and no installation contains them.
    pub protected: Vec<PathBuf>,
    /// Whom it may talk to.
    pub network: Network,
    /// Whether it may talk to other programs by Unix sockets that have a path: the desktop's bus, a key agent, a
    /// container engine. Pairs of connected sockets within itself are always there.
    pub unix_sockets: bool,
    /// Variables on top of a clean environment.
    pub environment: Vec<(String, String)>,
    /// How much it may use up.
    pub limits: Limits,
    /// Who builds the fence.
    pub isolation: Isolation,
    /// Protections that the owner allowed to be missing.
    pub allow_missing: Vec<Protection>,
}

/// Whom a confined process may talk to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Network {
    /// Nobody, this machine included.
    #[default]
    None,
    /// Everybody.
    All,
}

/// Who builds the fence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// Bubblewrap where it is installed and works, else this crate by itself.
    #[default]
    Auto,
    /// This crate by itself: quick, and the rest of the file system can be seen though not read.
    Builtin,
    /// Bubblewrap: what is not granted does not exist for the process, which also sees no other process.
    Bubblewrap,
}

/// How much a confined process may use up, together with all that it starts where nothing else is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of memory, for each process and for all together: anonymous, shared, and files in memory.
    pub memory: u64,
    /// Time on the processor, for each process and for all together.
    pub cpu: Duration,
    /// Processes and threads.
    pub processes: u64,
    /// Open files, for each process.
    pub open_files: u64,
    /// Bytes in one file.
    pub file_size: u64,
    /// Bytes in the private folder, and in `/tmp` where Bubblewrap shows one of its own.
    pub disk: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: 1 << 30,
            cpu: Duration::from_secs(60),
            processes: 128,
            open_files: 1024,
            file_size: 256 << 20,
            disk: 512 << 20,
        }
    }
}
