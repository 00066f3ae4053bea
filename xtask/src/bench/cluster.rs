//! What a worker adds to a call: the same calls to a server of this process, and to one that a worker runs.
use anyhow::Result;

use crate::{
    run::{cargo, check},
    workspace::Workspace,
};

/// Numbers of calls and of concurrent callers.
const LOADS: [[&str; 2]; 2] = [["5000", "1"], ["40000", "32"]];

pub(super) fn run(workspace: &Workspace) -> Result<()> {
    let example = ["--package", "toolhub-cluster", "--example", "cluster_hop", "--"];
    LOADS.iter().try_for_each(|load| {
        check(cargo(&workspace.root).args(["run", "--quiet", "--profile", "dist"]).args(example).args(load))
    })
}
