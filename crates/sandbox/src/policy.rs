//! The permissions of a confined process, as data; everything not listed is denied.

use std::path::PathBuf;
use std::time::Duration;

use crate::program::SandboxProgram;
use crate::protection::Protection;

/// The permissions of a confined process. The default allows to read system programs and to use the private folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxPolicy {
    /// Configured files and folders for reading and executing, in addition to system programs and libraries. Links are
    /// followed, unless they lead to a folder that is too wide, such as `/`.
    pub read: Vec<PathBuf>,
    /// Configured files and folders for reading, executing and writing. The private folder is always included.
    pub write: Vec<PathBuf>,
    /// Files and folders of the confined code itself, for reading and executing. The paths must be canonical, without
    /// symbolic links.
    pub own: Vec<PathBuf>,
    /// The programs to run; their installations are readable.
    pub programs: Vec<SandboxProgram>,
    /// Folders with secrets: an interpreter named by a script must not be in them, and an installation must not contain
    /// them.
    pub protected: Vec<PathBuf>,
    /// Network access.
    pub network: NetworkAccess,
    /// Whether Unix sockets with a path are allowed, such as those of D-Bus, ssh-agent or Docker. Socket pairs are
    /// always allowed.
    pub unix_sockets: bool,
    /// Variables added to the clean environment.
    pub environment: Vec<(String, String)>,
    /// Resource limits.
    pub limits: SandboxLimits,
    /// The isolation method.
    pub isolation: Isolation,
    /// Protections that are allowed to be missing.
    pub allow_missing: Vec<Protection>,
}

/// Network access of a confined process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NetworkAccess {
    /// No access, not even to localhost.
    #[default]
    None,
    /// Full access.
    All,
}

/// The isolation method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// Bubblewrap if it is installed and works, otherwise the builtin isolation.
    #[default]
    Auto,
    /// The builtin isolation: fast; paths that are not granted are visible but not readable.
    Builtin,
    /// Bubblewrap: paths that are not granted, and other processes, are invisible.
    Bubblewrap,
}

/// Resource limits of a confined process and its descendants together, unless stated otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SandboxLimits {
    /// Bytes of memory, per process and in total: anonymous, shared, and files in memory.
    pub memory: u64,
    /// CPU time, per process and in total.
    pub cpu: Duration,
    /// Processes and threads.
    pub processes: u64,
    /// Open files per process.
    pub open_files: u64,
    /// Bytes per file.
    pub file_size: u64,
    /// Bytes in the private folder, which includes `/tmp` under Bubblewrap.
    pub disk: u64,
}

impl Default for SandboxLimits {
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
