//! `cargo xtask chaos`: kills and freezes the parts of a cluster at random under load. The load and its checks are in the test
//! `cluster_chaos` of `toolhub-cli`, which `cargo xtask test` runs for a short time.
use anyhow::Result;

use crate::{
    commands::{number_after, unknown},
    run::{cargo, check},
    workspace::Workspace,
};

const OPTIONS: [&str; 3] = ["--minutes", "--seconds", "--seed"];
const TEST: &str = "nothing_runs_twice_and_every_answered_call_is_recorded_once_in_chaos";

pub(crate) fn command(workspace: &Workspace, args: &[String]) -> Result<()> {
    let (mut seconds, mut seed) = (60.0, None);
    let mut words = args.iter();
    while let Some(word) = words.next() {
        let mut number = || number_after(word, &mut words);
        match word.as_str() {
            "--minutes" => seconds = number()? * 60.0,
            "--seconds" => seconds = number()?,
            "--seed" => seed = Some(number()? as u64),
            other => return Err(unknown("argument", other, OPTIONS)),
        }
    }
    let mut test = cargo(&workspace.root);
    test.args(["test", "--workspace", "--test", "cluster", "--", "--nocapture", TEST]);
    test.env("TOOLHUB_CHAOS_SECONDS", (seconds as u64).to_string());
    if let Some(seed) = seed {
        test.env("TOOLHUB_CHAOS_SEED", seed.to_string());
    }
    check(&mut test)
}
