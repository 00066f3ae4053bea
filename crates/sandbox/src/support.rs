//! The protections that this system supports.

use std::path::PathBuf;

use crate::policy::Isolation;
use crate::protection::{MissingProtection, Protection};

/// The protections that this system supports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxSupport {
    /// Missing protections of the builtin isolation.
    pub builtin: Vec<MissingProtection>,
    /// Missing protections with Bubblewrap.
    pub bubblewrap: Vec<MissingProtection>,
    /// The isolation that `Auto` selects.
    pub auto: Isolation,
    /// The path of Bubblewrap.
    pub bubblewrap_program: Option<PathBuf>,
    /// The Landlock ABI version; 0 if unavailable.
    pub landlock: u32,
    /// Whether the file system can be made read-only for a single process.
    pub mount_namespace: bool,
}

impl SandboxSupport {
    /// Resolves `Auto`.
    pub fn chosen(&self, requested: Isolation) -> Isolation {
        match requested {
            Isolation::Auto => self.auto,
            other => other,
        }
    }

    /// The available protections.
    pub fn present(&self, isolation: Isolation) -> impl Iterator<Item = Protection> {
        let chosen = self.chosen(isolation);
        let missing = self.missing(chosen);
        // Bubblewrap counts as a protection only if it is used.
        let is_requested =
            move |one: &Protection| *one != Protection::Bubblewrap || chosen == Isolation::Bubblewrap;
        let is_available = |one: &Protection| missing.iter().all(|missing| missing.protection != *one);
        Protection::ALL.into_iter().filter(is_requested).filter(is_available)
    }

    /// The missing protections, with reasons.
    pub fn missing(&self, isolation: Isolation) -> &[MissingProtection] {
        match self.chosen(isolation) {
            Isolation::Bubblewrap => &self.bubblewrap,
            _ => &self.builtin,
        }
    }
}
