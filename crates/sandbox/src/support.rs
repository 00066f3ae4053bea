//! What this system offers, found out once.

use std::path::PathBuf;

use crate::policy::Isolation;
use crate::protection::{Missing, Protection};

/// What this system offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Support {
    /// What is missing where this crate builds the fence.
    pub builtin: Vec<Missing>,
    /// What is missing where Bubblewrap builds it.
    pub bubblewrap: Vec<Missing>,
    /// Who builds it where that is not said.
    pub auto: Isolation,
    /// Where Bubblewrap was found.
    pub bubblewrap_program: Option<PathBuf>,
    /// The generation of Landlock; 0 where there is none.
    pub landlock: u32,
    /// Whether the file system can be made read-only for one process alone.
    pub mount_namespace: bool,
}

impl Support {
    /// Which isolation `wanted` comes to here.
    pub fn chosen(&self, wanted: Isolation) -> Isolation {
        match wanted {
            Isolation::Auto => self.auto,
            other => other,
        }
    }

    /// Each protection that is there.
    pub fn present(&self, isolation: Isolation) -> impl Iterator<Item = Protection> {
        let chosen = self.chosen(isolation);
        let missing = self.missing(chosen);
        // Without Bubblewrap nothing is missing, where it was not asked for.
        let asked_for =
            move |one: &Protection| *one != Protection::Bubblewrap || chosen == Isolation::Bubblewrap;
        let there = |one: &Protection| missing.iter().all(|missing| missing.protection != *one);
        Protection::ALL.into_iter().filter(asked_for).filter(there)
    }

    /// Each protection that is not there, and why.
    pub fn missing(&self, isolation: Isolation) -> &[Missing] {
        match self.chosen(isolation) {
            Isolation::Bubblewrap => &self.bubblewrap,
            _ => &self.builtin,
        }
    }
}
