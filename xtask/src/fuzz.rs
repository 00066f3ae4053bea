//! `cargo xtask fuzz`: coverage-guided fuzzing of the parsers of external input, for a given time.
use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::Stdio,
};

use anyhow::{Context as _, Result, bail};

use crate::{
    cargo_tools::CargoTool,
    commands::{UsageError, unknown},
    run::program,
    table::Table,
    workspace::Workspace,
};

const CARGO_FUZZ: CargoTool = CargoTool { name: "cargo-fuzz", version: "0.13.2" };
const TARGETS: &[&str] = &[
    "client_answers",
    "client_requests",
    "formats",
    "gateway_ids",
    "gateway_messages",
    "json_members",
    "server_requests",
    "skill_frontmatter",
];
const DEFAULT_SECONDS: u64 = 60;
/// Longer inputs find nothing new and take the time of many short ones.
const MAX_INPUT_BYTES: usize = 16 << 10;
/// The prefix of the line with which libFuzzer reports the number of executed inputs.
const EXECUTED: &str = "stat::number_of_executed_units:";
const COVERED: &str = "cov: ";

pub(crate) fn command(workspace: &Workspace, args: &[String]) -> Result<()> {
    let usage = || {
        let usage = format!("say what: `cargo xtask fuzz --all|{} [--seconds N]`", TARGETS.join("|"));
        UsageError(usage)
    };
    let (target, seconds) = match args {
        [target] => (target.as_str(), DEFAULT_SECONDS),
        [target, flag, seconds] if flag == "--seconds" => {
            let seconds = seconds.parse().with_context(|| format!("`{seconds}` is no number of seconds"))?;
            (target.as_str(), seconds)
        }
        _ => return Err(usage().into()),
    };
    let targets = match target {
        "--all" => TARGETS,
        name => match TARGETS.iter().position(|target| *target == name) {
            Some(index) => &TARGETS[index..=index],
            None => return Err(unknown("fuzz target", name, TARGETS.iter().copied())),
        },
    };
    let fuzz = Fuzz { workspace, program: CARGO_FUZZ.find_or_install(workspace)?, seconds };
    let (mut table, mut failed) = (Table::default(), Vec::new());
    table.row(["target", "seconds", "inputs", "edges", "failure"].map(str::to_owned));
    for target in targets {
        let run = fuzz.run(target)?;
        table.row([
            (*target).to_owned(),
            seconds.to_string(),
            run.executed.to_string(),
            run.covered.to_string(),
            run.failure.clone().unwrap_or_else(|| "none".to_owned()),
        ]);
        failed.extend(run.failure.map(|_| *target));
    }
    print!("\n{table}");
    if !failed.is_empty() {
        bail!(
            "{} failed: fix it, and keep the input above as a seed in fuzz/seeds/TARGET",
            failed.join(", ")
        );
    }
    Ok(())
}

struct Fuzz<'a> {
    workspace: &'a Workspace,
    program: PathBuf,
    seconds: u64,
}

/// The result of fuzzing one target.
#[derive(Default)]
struct Run {
    /// Number of executed inputs.
    executed: u64,
    /// Number of covered edges.
    covered: u64,
    /// The file with the failing input.
    failure: Option<String>,
}

impl Run {
    fn parse_line(&mut self, line: &str) {
        let number = |text: &str| text.split_whitespace().next().and_then(|number| number.parse().ok());
        if let Some(executed) = line.strip_prefix(EXECUTED).and_then(number) {
            self.executed = executed;
        } else if let Some(covered) = line.split_once(COVERED).and_then(|(_, rest)| number(rest)) {
            self.covered = covered;
        } else if let Some((_, file)) = line.split_once("Test unit written to ") {
            self.failure = Some(file.trim().to_owned());
        }
    }
}

impl Fuzz<'_> {
    fn run(&self, target: &str) -> Result<Run> {
        let folder = self.workspace.root.join("fuzz");
        let corpus = folder.join("corpus").join(target);
        fs::create_dir_all(&corpus)?;
        if target == "formats" {
            for (number, line) in seeds_of_formats(self.workspace)?.iter().enumerate() {
                fs::write(corpus.join(format!("seed-{number:03}")), line)?;
            }
        }
        let mut command = program(&self.program);
        command.current_dir(&self.workspace.root);
        command.args(["run", target, "--sanitizer", "none"]).arg(&corpus);
        let seeds = folder.join("seeds").join(target);
        if seeds.is_dir() {
            command.arg(seeds);
        }
        command.arg("--");
        let dictionary = folder.join("dictionaries").join(format!("{target}.dict"));
        if dictionary.is_file() {
            command.arg(format!("-dict={}", dictionary.display()));
        }
        command.args([
            format!("-max_total_time={}", self.seconds),
            format!("-max_len={MAX_INPUT_BYTES}"),
            "-timeout=10".to_owned(),
            "-rss_limit_mb=2048".to_owned(),
            "-print_final_stats=1".to_owned(),
        ]);
        // Allows the unstable coverage flags of cargo-fuzz with a stable compiler.
        command.env("RUSTC_BOOTSTRAP", "1");
        let mut child = command.stderr(Stdio::piped()).spawn().context("cargo-fuzz did not start")?;
        let mut run = Run::default();
        for line in child.stderr.take().into_iter().flat_map(|errors| BufReader::new(errors).split(b'\n')) {
            let line = line.context("a line of its output cannot be read")?;
            let line = String::from_utf8_lossy(&line);
            eprintln!("{line}");
            run.parse_line(&line);
        }
        let status = child.wait().context("its end cannot be waited for")?;
        if !status.success() && run.failure.is_none() {
            bail!("`cargo fuzz run {target}` failed ({status})");
        }
        Ok(run)
    }
}

/// The texts of the llm tests, which seed the corpus with known formats.
fn seeds_of_formats(workspace: &Workspace) -> Result<Vec<String>> {
    let lines = fs::read_to_string(workspace.root.join("crates/llm/tests/texts.jsonl"))?;
    let text = |line: &str| {
        let case: serde_json::Value = serde_json::from_str(line)?;
        Ok(case["text"].as_str().unwrap_or_default().to_owned())
    };
    lines.lines().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_libfuzzer_statistics() {
        let mut run = Run::default();
        for line in [
            "#2\tINITED cov: 120 ft: 130 corp: 1/1b exec/s: 0 rss: 30Mb",
            "#9999\tREDUCE cov: 345 ft: 900 corp: 40/2Kb lim: 4096 exec/s: 3333 rss: 40Mb L: 8/90 MS: 1 EraseBytes-",
            "stat::number_of_executed_units: 123456",
            "artifact_prefix='fuzz/artifacts/x/'; Test unit written to fuzz/artifacts/x/crash-0a",
        ] {
            run.parse_line(line);
        }
        assert_eq!((run.executed, run.covered), (123_456, 345));
        assert_eq!(run.failure.as_deref(), Some("fuzz/artifacts/x/crash-0a"));
    }

    #[test]
    fn every_fuzz_target_has_a_program_and_seeds() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz");
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        for target in TARGETS {
            assert!(manifest.contains(&format!("name = \"{target}\"")), "{target}");
            assert!(folder.join("fuzz_targets").join(format!("{target}.rs")).is_file(), "{target}");
            let seeds = folder.join("seeds").join(target);
            assert!(*target == "formats" || seeds.read_dir().unwrap().next().is_some(), "{target}");
        }
    }
}
