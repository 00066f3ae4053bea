//! From a clone to the first answer: crates, CPU time and wall time of the build, compared with an earlier commit, and the time
//! of an incremental build after a small change.
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Instant,
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{
    commands::{UsageError, unknown},
    run::{self, cargo, program},
    table::Table,
    workspace::Workspace,
};

/// This benchmark runs only if it is named on the command line.
pub(super) const NAME: &str = "build";

/// The first request, and the text that its answer must contain.
const REQUEST: &str = "2+2";
const ANSWER: &str = "4";

/// The file changed for the incremental build. Most crates above the engine depend on it.
const CHANGED_FILE: &str = "crates/engine/src/lib.rs";
const CHANGE: &str = "\n/// A change for a benchmark.\npub fn changed_for_a_benchmark() -> u8 {\n    1\n}\n";

pub(super) fn run(workspace: &Workspace, args: &[String]) -> Result<()> {
    let mut before = None;
    let mut words = args.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--before" => {
                let given = words.next().ok_or_else(|| UsageError("`--before` needs a commit".to_owned()))?;
                before = Some(git(workspace, &["rev-parse", "--verify", &format!("{given}^{{commit}}")])?);
            }
            other => return Err(unknown("argument", other, ["--before"])),
        }
    }
    let folder = workspace.target.join("bench/build");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let untracked = git(workspace, &["ls-files", "--others", "--exclude-standard"])?;
    ensure!(
        untracked.is_empty(),
        "git does not track these files, so a clone would not have them:\n{untracked}"
    );
    // Includes uncommitted changes as a snapshot: the files may change while the earlier commit is built.
    let uncommitted = git(workspace, &["stash", "create"])?;
    let commit = if uncommitted.is_empty() { git(workspace, &["rev-parse", "HEAD"])? } else { uncommitted };
    let mut table = Table::default();
    table.row(["", "crates", "CPU s", "wall s", "first answer s"].map(str::to_owned));
    let earlier = match &before {
        Some(commit) => {
            let clone = Clone::create(workspace, &folder.join("before"), commit)?;
            let built = clone.first_answer("release")?;
            let row = built.row(&format!("before ({}), `cargo run --release`", short_hash(commit)));
            eprintln!("{}", row.join("  "));
            table.row(row);
            fs::remove_dir_all(&clone.target)?;
            Some(built)
        }
        None => None,
    };
    let clone = Clone::create(workspace, &folder.join("now"), &commit)?;
    for (profile, command) in [("dev", "cargo run"), ("release", "cargo run --release")] {
        let built = clone.first_answer(profile)?;
        table.row(built.row(&format!("now ({}), `{command}`", short_hash(&commit))));
        if let Some(earlier) = &earlier {
            table.row(built.ratio(earlier));
        }
    }
    println!(
        "From a clone, dependencies downloaded before, to the answer of `toolhub ask \"{REQUEST}\"`. README.md starts with `cargo run`.\n{table}"
    );
    clone.incremental()
}

fn short_hash(commit: &str) -> &str {
    commit.get(..10).unwrap_or(commit)
}

fn git(workspace: &Workspace, args: &[&str]) -> Result<String> {
    let output = run::read(program("git").current_dir(&workspace.root).args(args))?;
    Ok(output.trim().to_owned())
}

/// A fresh clone with its own target folder.
struct Clone {
    sources: PathBuf,
    target: PathBuf,
}

/// CPU time of all started processes and wall time, in seconds.
#[derive(Clone, Copy)]
struct Cost {
    cpu: f64,
    wall: f64,
}

struct BuildResult {
    crates: usize,
    cost: Cost,
    answer: Cost,
}

impl BuildResult {
    fn row(&self, name: &str) -> [String; 5] {
        let seconds = |seconds: f64| format!("{seconds:.1}");
        [
            name.to_owned(),
            self.crates.to_string(),
            seconds(self.cost.cpu),
            seconds(self.cost.wall),
            seconds(self.cost.wall + self.answer.wall),
        ]
    }

    fn ratio(&self, earlier: &Self) -> [String; 5] {
        let ratio = |now: f64, before: f64| format!("{:.2}", now / before);
        [
            "  of the time before".to_owned(),
            ratio(self.crates as f64, earlier.crates as f64),
            ratio(self.cost.cpu, earlier.cost.cpu),
            ratio(self.cost.wall, earlier.cost.wall),
            ratio(self.cost.wall + self.answer.wall, earlier.cost.wall + earlier.answer.wall),
        ]
    }
}

impl Clone {
    fn create(workspace: &Workspace, folder: &Path, commit: &str) -> Result<Self> {
        let sources = folder.join("toolhub");
        fs::create_dir_all(folder)?;
        let mut clone = program("git");
        clone.args(["clone", "--quiet", "--no-checkout", "--shared"]).arg(&workspace.root).arg(&sources);
        run::check(&mut clone)?;
        run::check(program("git").current_dir(&sources).args(["checkout", "--quiet", "--detach", commit]))?;
        run::download(cargo(&sources).args(["fetch", "--locked"]))?;
        Ok(Self { target: folder.join("target"), sources })
    }

    /// Builds the program in one profile, and counts the compiled crates.
    fn build(&self, profile: &str) -> Result<(usize, Cost)> {
        let mut crates = BTreeSet::new();
        let cost = measure_cost(|| {
            let mut build = cargo(&self.sources);
            build.args(["build", "--locked", "--offline", "--profile", profile, "--quiet"]);
            build.arg("--message-format=json-render-diagnostics").env("CARGO_TARGET_DIR", &self.target);
            // These settings of the user would distort the measurement.
            for variable in ["RUSTC_WRAPPER", "RUSTFLAGS", "CARGO_INCREMENTAL"] {
                build.env_remove(variable);
            }
            for line in run::read(build.stderr(Stdio::inherit()))?.lines() {
                let message: Value = serde_json::from_str(line)?;
                if message["reason"] == "compiler-artifact" && message["fresh"] == false {
                    crates.insert(message["package_id"].to_string());
                }
            }
            Ok(())
        })?;
        Ok((crates.len(), cost))
    }

    fn first_answer(&self, profile: &str) -> Result<BuildResult> {
        let (crates, cost) = self.build(profile)?;
        let home = self.target.join("home");
        let folder = if profile == "dev" { "debug" } else { profile };
        let answer = measure_cost(|| {
            let mut ask = program(self.target.join(folder).join("toolhub"));
            ask.arg("--home").arg(&home).args(["ask", REQUEST]).current_dir(&self.target);
            let output = run::read(&mut ask)?;
            ensure!(output.contains(ANSWER), "the answer to `{REQUEST}` has no `{ANSWER}`: {output}");
            Ok(())
        })?;
        Ok(BuildResult { crates, cost, answer })
    }

    /// Changes a file of the engine and builds again, in both profiles, which were built before.
    fn incremental(&self) -> Result<()> {
        let mut table = Table::default();
        table.row(["after a change in the engine", "crates", "CPU s", "wall s"].map(str::to_owned));
        change(&self.sources.join(CHANGED_FILE))?;
        for (profile, command) in [("dev", "cargo build"), ("release", "cargo build --release")] {
            let (crates, cost) = self.build(profile)?;
            ensure!(crates > 0, "`{command}` compiled nothing after the change");
            let seconds = |seconds: f64| format!("{seconds:.1}");
            table.row([command.to_owned(), crates.to_string(), seconds(cost.cpu), seconds(cost.wall)]);
        }
        println!("{table}");
        Ok(())
    }
}

fn change(file: &Path) -> Result<()> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read `{}`", file.display()))?;
    Ok(fs::write(file, text + CHANGE)?)
}

fn measure_cost(work: impl FnOnce() -> Result<()>) -> Result<Cost> {
    let (cpu, since) = (cpu_of_children()?, Instant::now());
    work()?;
    Ok(Cost { wall: since.elapsed().as_secs_f64(), cpu: cpu_of_children()? - cpu })
}

/// User and system CPU time of all ended descendants, in seconds.
fn cpu_of_children() -> Result<f64> {
    let stat =
        fs::read_to_string("/proc/self/stat").context("`bench build` needs Linux: no /proc/self/stat")?;
    let ticks = ticks_of_children(&stat).context("/proc/self/stat was not understood")?;
    #[cfg(unix)]
    let per_second = rustix::param::clock_ticks_per_second();
    #[cfg(not(unix))]
    let per_second = 100;
    Ok(ticks as f64 / per_second as f64)
}

/// `cutime` and `cstime`, fields 16 and 17 (proc(5)). The program name, field 2, may contain spaces and parentheses.
fn ticks_of_children(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(13).map(|field| field.parse::<u64>().ok());
    Some(fields.next()?? + fields.next()??)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_child_ticks_for_any_program_name() {
        let stat = "7 (a) b) R 1 7 7 0 -1 4194304 100 200 0 0 11 12 1300 14 20 0 1 0 99";
        assert_eq!(ticks_of_children(stat), Some(1314));
        assert_eq!(ticks_of_children("7 (a) R 1"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn measures_cpu_time_of_child() {
        let busy =
            || run::check(program("sh").args(["-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"]));
        let cost = measure_cost(busy).unwrap();
        assert!(cost.cpu > 0.0 && cost.wall > 0.0);
    }
}
