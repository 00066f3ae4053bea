//! Fuzzing: arbitrary input for whatever reads text from outside, for as long as is wanted.
use std::fs;

use anyhow::{Context as _, Result};

use crate::{
    cargo_tools::CargoTool,
    commands::{UsageError, unknown},
    run::{self, program},
    workspace::Workspace,
};

const CARGO_FUZZ: CargoTool = CargoTool { name: "cargo-fuzz", version: "0.13.2" };
const TARGETS: &[&str] = &["formats"];
const SECONDS: u64 = 60;
/// Longer texts find nothing new and take the time of many short ones.
const LONGEST: usize = 16 << 10;

pub(crate) fn command(workspace: &Workspace, args: &[String]) -> Result<()> {
    let (target, seconds) = match args {
        [target] => (target, SECONDS),
        [target, flag, seconds] if flag == "--seconds" => {
            (target, seconds.parse().with_context(|| format!("`{seconds}` is no number of seconds"))?)
        }
        _ => {
            let usage = format!("say what: `cargo xtask fuzz {} [--seconds N]`", TARGETS.join("|"));
            return Err(UsageError(usage).into());
        }
    };
    if !TARGETS.contains(&target.as_str()) {
        return Err(unknown("fuzz target", target, TARGETS.iter().copied()));
    }
    let fuzz = CARGO_FUZZ.find_or_install(workspace)?;
    let corpus = workspace.root.join("fuzz/corpus").join(target);
    fs::create_dir_all(&corpus)?;
    for (number, line) in seeds(workspace)?.iter().enumerate() {
        fs::write(corpus.join(format!("seed-{number:03}")), line)?;
    }
    let mut command = program(fuzz);
    command.current_dir(&workspace.root);
    command.args(["run", target, "--sanitizer", "none", "--"]);
    command.args([
        format!("-max_total_time={seconds}"),
        format!("-max_len={LONGEST}"),
        "-timeout=10".to_owned(),
        "-rss_limit_mb=2048".to_owned(),
    ]);
    // The flags that count coverage are not stable; the compiler is.
    command.env("RUSTC_BOOTSTRAP", "1");
    run::check(&mut command)
}

/// The texts of the tests, so that fuzzing begins with forms that are known.
fn seeds(workspace: &Workspace) -> Result<Vec<String>> {
    let lines = fs::read_to_string(workspace.root.join("crates/llm/tests/texts.jsonl"))?;
    let text = |line: &str| {
        let case: serde_json::Value = serde_json::from_str(line)?;
        Ok(case["text"].as_str().unwrap_or_default().to_owned())
    };
    lines.lines().map(text).collect()
}
