//! `cargo xtask mutants`: changes the code whose mistakes do harm, one operator at a time, and counts the changes that a test
//! notices.
use std::{fs, path::Path};

use anyhow::{Context as _, Result, bail};

use crate::{
    cargo_tools::CargoTool,
    commands::{UsageError, unknown},
    run::program,
    table::Table,
    workspace::Workspace,
};

const CARGO_MUTANTS: CargoTool = CargoTool { name: "cargo-mutants", version: "27.1.0" };

/// The share of mutants that the tests must catch.
const MIN_CAUGHT: f64 = 0.9;

/// Survivors that change nothing a test could see, with the reason: `file<TAB>mutant<TAB>reason`.
const SURVIVORS: &str = "docs/explanation/mutants.tsv";

/// Files to mutate, and the package whose own tests must notice.
struct Area {
    name: &'static str,
    package: &'static str,
    files: &'static [&'static str],
}

const AREAS: &[Area] = &[
    Area { name: "engine", package: "toolhub-engine", files: &["crates/engine/src/**"] },
    Area {
        name: "store",
        package: "toolhub-store",
        files: &[
            "crates/store/src/*.rs",
            "crates/store/src/blocks/**",
            "crates/store/src/journal/**",
            "crates/store/src/queue/**",
            "crates/store/src/sqlite/**",
        ],
    },
    Area {
        name: "approval",
        package: "toolhub-skills",
        files: &[
            "crates/skills/src/approval_state.rs",
            "crates/skills/src/file_set.rs",
            "crates/skills/src/grants.rs",
        ],
    },
    Area {
        name: "access",
        package: "toolhub-server",
        files: &["crates/server/src/access.rs", "crates/server/src/authority.rs"],
    },
    Area {
        name: "breaker",
        package: "toolhub-mcp-client",
        files: &["crates/mcp-client/src/breaker.rs", "crates/mcp-client/src/server_status.rs"],
    },
];

pub(crate) fn command(workspace: &Workspace, args: &[String]) -> Result<()> {
    let names = || AREAS.iter().map(|area| area.name);
    let mut shard = None;
    let mut areas = Vec::new();
    let mut words = args.iter();
    while let Some(word) = words.next() {
        if word == "--shard" {
            let missing = || UsageError("`--shard` needs a part, such as `0/10`".to_owned());
            shard = Some(words.next().ok_or_else(missing)?.as_str());
        } else {
            let area = AREAS.iter().find(|area| area.name == word);
            areas.push(area.ok_or_else(|| unknown("area", word, names().chain(["--shard"])))?);
        }
    }
    if areas.is_empty() {
        areas.extend(AREAS);
    }
    let tool = CARGO_MUTANTS.find_or_install(workspace)?;
    let known = Survivors::read(workspace)?;
    let (mut table, mut total) = (Table::default(), Counts::default());
    table.row(["area", "mutants", "caught", "excused", "missed", "share caught"].map(str::to_owned));
    for area in areas {
        let output = workspace.target.join("mutants").join(area.name);
        fs::create_dir_all(&output)?;
        let mut run = program(&tool);
        run.current_dir(&workspace.root)
            .args(["mutants", "--package", area.package, "--output"])
            .arg(&output);
        for file in area.files {
            run.args(["--file", file]);
        }
        if let Some(shard) = shard {
            // Every n-th mutant of the whole list, so that a part is a sample of all files.
            run.args(["--shard", shard, "--sharding", "round-robin"]);
        }
        // Debug information takes a third of each build.
        run.args(["--no-shuffle", "--colors", "never", "--minimum-test-timeout", "120"]);
        run.env("CARGO_PROFILE_DEV_DEBUG", "0");
        // Exits with 2 if a mutant is missed and with 3 if one hangs; both are counted below.
        let status = run.status().context("cargo-mutants could not be started")?;
        if !matches!(status.code(), Some(0 | 2 | 3)) {
            bail!("cargo-mutants failed in `{}` ({status}); its logs are in {}", area.name, output.display());
        }
        let counts = known.count(&output.join("mutants.out"))?;
        table.row(counts.row(area.name));
        total.add(&counts);
    }
    table.row(total.row("all"));
    print!("\n{table}");
    for missed in &total.missed {
        println!("missed: {missed}");
    }
    if total.share() < MIN_CAUGHT {
        bail!("fewer than {:.0} % of the mutants were caught", MIN_CAUGHT * 100.0);
    }
    Ok(())
}

#[derive(Default)]
struct Counts {
    /// Noticed by a failing or hanging test.
    caught: usize,
    excused: usize,
    missed: Vec<String>,
}

impl Counts {
    fn mutants(&self) -> usize {
        self.caught + self.excused + self.missed.len()
    }

    /// The share of those that a test could notice.
    fn share(&self) -> f64 {
        let noticeable = self.caught + self.missed.len();
        if noticeable == 0 { 1.0 } else { self.caught as f64 / noticeable as f64 }
    }

    fn row(&self, name: &str) -> [String; 6] {
        [
            name.to_owned(),
            self.mutants().to_string(),
            self.caught.to_string(),
            self.excused.to_string(),
            self.missed.len().to_string(),
            format!("{:.1} %", self.share() * 100.0),
        ]
    }

    fn add(&mut self, other: &Self) {
        self.caught += other.caught;
        self.excused += other.excused;
        self.missed.extend_from_slice(&other.missed);
    }
}

/// Excused mutants: those that behave as the code does.
struct Survivors(Vec<(String, String)>);

impl Survivors {
    fn read(workspace: &Workspace) -> Result<Self> {
        let text =
            fs::read_to_string(workspace.root.join(SURVIVORS)).with_context(|| SURVIVORS.to_owned())?;
        let mut rows = Vec::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let mut cells = line.split('\t');
            match (cells.next(), cells.next(), cells.next(), cells.next()) {
                (Some(file), Some(mutant), Some(_), None) => rows.push((file.to_owned(), mutant.to_owned())),
                _ => bail!("{SURVIVORS}: three cells are needed: `{line}`"),
            }
        }
        Ok(Self(rows))
    }

    /// Whether a line of the report, `FILE:LINE:COLUMN: MUTANT`, is listed.
    fn excuse(&self, line: &str) -> bool {
        let Some((location, mutant)) = line.split_once(": ") else { return false };
        let file = location.split(':').next().unwrap_or(location);
        self.0.iter().any(|(known, excused)| known == file && excused == mutant)
    }

    fn count(&self, report: &Path) -> Result<Counts> {
        let lines = |name: &str| -> Result<Vec<String>> {
            let file = report.join(name);
            let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
            Ok(text.lines().map(str::to_owned).collect())
        };
        let caught = lines("caught.txt")?.len() + lines("timeout.txt")?.len();
        let (excused, missed): (Vec<_>, Vec<_>) =
            lines("missed.txt")?.into_iter().partition(|line| self.excuse(line));
        Ok(Counts { caught, excused: excused.len(), missed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excuses_only_the_listed_mutant_of_the_listed_file() {
        let known = Survivors(vec![("a.rs".to_owned(), "replace f with ()".to_owned())]);
        assert!(known.excuse("a.rs:3:5: replace f with ()"));
        assert!(!known.excuse("b.rs:3:5: replace f with ()"));
        assert!(!known.excuse("a.rs:3:5: replace g with ()"));
    }
}
