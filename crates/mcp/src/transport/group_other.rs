//! Where there are no process groups: only the child itself can be ended, which its owner does.

use tokio::process::{Child, Command};

/// Nothing that could be signalled.
#[derive(Debug)]
pub(super) struct Group;

impl Group {
    pub(super) fn prepare(_: &mut Command) {}

    pub(super) fn of(_: &Child) -> Self {
        Self
    }

    pub(super) fn ask_to_leave(&self) {}

    pub(super) fn kill(&self) {}

    pub(super) fn forget(&mut self) {}
}
