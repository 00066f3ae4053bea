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
        let works = self.bubblewrap.iter().all(|missing| missing.protection != Protection::Bubblewrap);
        match wanted {
            Isolation::Auto if works => Isolation::Bubblewrap,
            Isolation::Auto => Isolation::Builtin,
            other => other,
        }
    }

    /// Each protection that is not there, and why.
    pub fn missing(&self, isolation: Isolation) -> &[Missing] {
        match self.chosen(isolation) {
            Isolation::Bubblewrap => &self.bubblewrap,
            _ => &self.builtin,
        }
    }
}
