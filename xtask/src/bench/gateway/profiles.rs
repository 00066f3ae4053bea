//! Compares a plain `cargo build --release` with the build of the packages: CPU time per call of both, in front of the same
//! server and in one run.
use anyhow::Result;
use serde_json::json;

use super::{Measurement, Programs, RunningServer, SECONDS, SESSION, median, processor_time, turn};
use crate::{
    run::{self, Profile, build, program},
    table::Table,
    workspace::Workspace,
};

const ROUNDS: usize = 10;
const CALLERS: [usize; 2] = [1, 32];

pub(super) fn show(workspace: &Workspace, dist: &Programs) -> Result<()> {
    let release = Programs {
        toolhub: build(workspace, "toolhub-cli", "toolhub", Profile::Release)?,
        load: dist.load.clone(),
        rmcp: None,
        folder: dist.folder.join("release"),
        peers: Vec::new(),
    };
    let upstream = dist.upstream(1)?;
    let server = json!({"type": "http", "url": upstream.url});
    let hubs = [dist.gateway("dist", &server)?, release.gateway("release", &server)?];
    let mut table = Table::default();
    table.row(["in a session, server over http", "callers", "dist", "release", "of dist"].map(str::to_owned));
    for (tool, kind) in [("echo_0", "read-only"), ("change_0", "may change")] {
        for callers in CALLERS {
            let mut turns = [Vec::new(), Vec::new()];
            for round in 0..=ROUNDS {
                for (hub, turns) in hubs.iter().zip(&mut turns) {
                    let measured = Load { tool, callers }.measure(dist, hub)?;
                    // The first round connects to the server.
                    if round > 0 {
                        turns.push(measured);
                    }
                }
            }
            let [dist, release] = turns.each_ref().map(|turns| median(turns, |turn| turn.processor));
            table.row([
                kind.to_owned(),
                callers.to_string(),
                format!("{dist:.1} µs"),
                format!("{release:.1} µs"),
                format!("{:.2}", release / dist),
            ]);
        }
    }
    println!("CPU time of the gateway per call, median of {ROUNDS} rounds of {SECONDS} s\n{table}");
    Ok(())
}

struct Load {
    tool: &'static str,
    callers: usize,
}

impl Load {
    fn measure(&self, programs: &Programs, hub: &RunningServer) -> Result<Measurement> {
        let before = processor_time(hub.child.id())?;
        let mut load = program(&programs.load);
        load.args(["load", &hub.url, &self.callers.to_string(), &SECONDS.to_string()]);
        let report = run::read(load.args(&SESSION[..2]).arg(self.tool))?;
        turn(&report, processor_time(hub.child.id())? - before)
    }
}
