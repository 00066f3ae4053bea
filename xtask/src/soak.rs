//! `cargo xtask soak`: full load through the gateway while its servers are killed and restarted. The load and its
//! checks are in `gateway-load`, which a test also runs for half a minute.
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;

use crate::{
    commands::{number_after, unknown},
    run::{Profile, build, check, program},
    workspace::Workspace,
};

const OPTIONS: [&str; 4] = ["--minutes", "--seconds", "--seed", "--debug"];

pub(crate) fn command(workspace: &Workspace, args: &[String]) -> Result<()> {
    let (mut seconds, mut profile) = (15.0 * 60.0, Profile::Dist);
    let mut seed = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let mut words = args.iter();
    while let Some(word) = words.next() {
        let mut number = || number_after(word, &mut words);
        match word.as_str() {
            "--minutes" => seconds = number()? * 60.0,
            "--seconds" => seconds = number()?,
            "--seed" => seed = number()? as u64,
            "--debug" => profile = Profile::Debug,
            other => return Err(unknown("argument", other, OPTIONS)),
        }
    }
    let toolhub = build(workspace, "toolhub-cli", "toolhub", profile)?;
    build(workspace, "toolhub-testkit", "scripted-mcp", profile)?;
    let load = build(workspace, "toolhub-testkit", "gateway-load", profile)?;
    let folder = workspace.target.join("soak");
    let mut soak = program(&load);
    soak.arg("soak").arg(toolhub).arg(folder).args([seconds.to_string(), seed.to_string()]);
    check(&mut soak)
}
