//! The protections by name, and why one of them is missing.

use std::fmt;
use std::str::FromStr;

/// One of the things that keep a confined process in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protection {
    /// It leads a process group of its own, and all of that can be ended.
    ProcessGroup,
    /// It cannot gain rights by starting a program that has more.
    NoNewPrivileges,
    /// It has none of the rights of an administrator.
    Capabilities,
    /// It opens only files that were granted.
    Landlock,
    /// It cannot change modes, owners and times of files that it may only read.
    ReadOnly,
    /// It cannot signal processes outside.
    Signals,
    /// It makes no system call that leads out, and none to the network unless that was granted.
    Seccomp,
    /// Memory, processor time, open files and file sizes are bounded.
    ResourceLimits,
    /// The number of its processes is bounded.
    ProcessCount,
    /// It sees no variable of the program that started it.
    CleanEnvironment,
    /// Its temporary files are its own.
    PrivateTemporary,
    /// Bubblewrap builds the fence.
    Bubblewrap,
}

impl Protection {
    /// All of them.
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

    /// The name that settings use.
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

/// A name that is no protection's.
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

/// A protection that this system does not offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Which one.
    pub protection: Protection,
    /// Why, in English.
    pub english: String,
    /// Why, in Chinese.
    pub chinese: String,
}

impl Missing {
    pub(crate) fn new(
        protection: Protection,
        english: impl Into<String>,
        chinese: impl Into<String>,
    ) -> Self {
        Self { protection, english: english.into(), chinese: chinese.into() }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` ({})", self.protection, self.english)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for protection in Protection::ALL {
            assert_eq!(protection.name().parse(), Ok(protection));
        }
        assert!("firewall".parse::<Protection>().unwrap_err().to_string().contains("landlock"));
    }
}
