//! What a worker adds to a call: the same calls to a server of this process, and to one that a worker runs.
use anyhow::Result;

use crate::{
    run::{Profile, build, check, program},
    workspace::Workspace,
};

/// Numbers of calls and of concurrent callers.
const LOADS: [[&str; 2]; 2] = [["5000", "1"], ["40000", "32"]];

pub(super) fn run(workspace: &Workspace) -> Result<()> {
    let hop = build(workspace, "toolhub-testkit", "cluster-hop", Profile::Dist)?;
    LOADS.iter().try_for_each(|load| check(program(&hop).args(load)))
}
