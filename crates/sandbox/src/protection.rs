//! The names of the protections, and the reason why one is missing.

use std::fmt;
use std::str::FromStr;

/// A protection of the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protection {
    /// A process group of its own, which can be killed as a whole.
    ProcessGroup,
    /// No additional privileges by setuid programs (`no_new_privs`).
    NoNewPrivileges,
    /// No capabilities.
    Capabilities,
    /// Only granted files can be opened.
    Landlock,
    /// Modes, owners and times of read-only files cannot be changed.
    ReadOnly,
    /// No signals to processes outside.
    Signals,
    /// Dangerous system calls are denied, and those of the network unless granted.
    Seccomp,
    /// Limits of memory, CPU time, open files and file sizes.
    ResourceLimits,
    /// A limit of the number of processes.
    ProcessCount,
    /// No variables of the parent process.
    CleanEnvironment,
    /// A private folder for temporary files.
    PrivateTemporary,
    /// Isolation by Bubblewrap.
    Bubblewrap,
}

impl Protection {
    /// All protections.
    pub const ALL: [Self; 12] = [
        Self::ProcessGroup,
        Self::NoNewPrivileges,
        Self::Capabilities,
        Self::Landlock,
        Self::ReadOnly,
        Self::Signals,
        Self::Seccomp,
        Self::ResourceLimits,
        Self::ProcessCount,
        Self::CleanEnvironment,
        Self::PrivateTemporary,
        Self::Bubblewrap,
    ];

    /// The name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::ProcessGroup => "process-group",
            Self::NoNewPrivileges => "no-new-privileges",
            Self::Capabilities => "capabilities",
            Self::Landlock => "landlock",
            Self::ReadOnly => "read-only",
            Self::Signals => "signals",
            Self::Seccomp => "seccomp",
            Self::ResourceLimits => "resource-limits",
            Self::ProcessCount => "process-count",
            Self::CleanEnvironment => "clean-environment",
            Self::PrivateTemporary => "private-temporary",
            Self::Bubblewrap => "bubblewrap",
        }
    }
}

impl fmt::Display for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An unknown name of a protection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no protection is called `{0}`: it is one of {known}", known = known())]
pub struct UnknownProtection(pub String);

fn known() -> String {
    Protection::ALL.map(Protection::name).join(", ")
}

impl FromStr for Protection {
    type Err = UnknownProtection;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|protection| protection.name() == name);
        found.ok_or_else(|| UnknownProtection(name.to_owned()))
    }
}

/// A protection that is unavailable on this system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingProtection {
    /// The protection.
    pub protection: Protection,
    /// The reason in English.
    pub english: String,
    /// The reason in Chinese.
    pub chinese: String,
}

impl MissingProtection {
    pub(crate) fn new(
        protection: Protection,
        english: impl Into<String>,
        chinese: impl Into<String>,
    ) -> Self {
        Self { protection, english: english.into(), chinese: chinese.into() }
    }
}

impl fmt::Display for MissingProtection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` ({})", self.protection, self.english)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protection_names_round_trip() {
        for protection in Protection::ALL {
            assert_eq!(protection.name().parse(), Ok(protection));
        }
        assert!("firewall".parse::<Protection>().unwrap_err().to_string().contains("landlock"));
    }
}
