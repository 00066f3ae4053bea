//! Generates `docs/explanation/faults.md`, the list of faults that tests inject; every complete test run compares it.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs;

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;

/// Collects the names of passed tests from the output of `cargo test`.
#[derive(Default)]
pub(crate) struct Passed(HashSet<String>);

impl Passed {
    /// Processes one line of the output.
    pub(crate) fn parse_line(&mut self, line: &str) {
        let name = line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... ok"));
        if let Some(name) = name.and_then(|name| name.rsplit("::").next()) {
            self.0.insert(name.to_owned());
        }
    }
}

/// Compares the generated list with the file, or writes it. Fails if the test of a fault did not pass.
pub(crate) fn check(workspace: &Workspace, passed: &Passed, write: bool) -> Result<()> {
    let folder = workspace.root.join("docs/explanation");
    let table = fs::read_to_string(folder.join("faults.tsv"))
        .context("docs/explanation/faults.tsv cannot be read")?;
    let text = render(&table, passed)?;
    let file = folder.join("faults.md");
    if fs::read_to_string(&file).is_ok_and(|current| current == text) {
        return Ok(());
    }
    if !write {
        bail!(
            "docs/explanation/faults.md does not match faults.tsv: write it with `cargo xtask test --write-docs`, and commit it"
        );
    }
    fs::write(&file, text).context("docs/explanation/faults.md cannot be written")?;
    println!("docs/explanation/faults.md was written anew: commit it");
    Ok(())
}

fn render(table: &str, passed: &Passed) -> Result<String> {
    let mut out = String::from(
        "# Faults that are made on purpose\n\nWritten by `cargo xtask test --write-docs` from `docs/explanation/faults.tsv`: every line is a class \
         of fault that tests make for real,\nthrough the program or the public API, and that passed in the last run.\n",
    );
    let mut group = "";
    let mut missing = Vec::new();
    for line in table.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [heading, fault, seen, tests] = fields.as_slice() else {
            bail!("docs/explanation/faults.tsv: four fields in `{line}`")
        };
        if *heading != group {
            group = heading;
            write!(out, "\n## {}\n\n| fault | what a user sees | tests |\n|---|---|---|\n", capital(group))?;
        }
        let tests: Vec<&str> = tests.split(',').map(str::trim).collect();
        missing.extend(tests.iter().filter(|test| !passed.0.contains(**test)).map(ToString::to_string));
        let tests = tests.iter().map(|test| format!("`{test}` ✓")).collect::<Vec<_>>().join("<br>");
        writeln!(out, "| {fault} | {seen} | {tests} |")?;
    }
    if !missing.is_empty() {
        bail!(
            "docs/explanation/faults.tsv names tests that did not pass or do not exist: {}",
            missing.join(", ")
        );
    }
    Ok(out)
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn publishes_only_passed_tests() {
        let mut passed = Passed::default();
        for line in ["test a_fault ... ok", "test module::tests::another ... ok", "test third ... FAILED"] {
            passed.parse_line(line);
        }
        let table = "# comment\ng\tf\ts\ta_fault, another\n";
        let text = render(table, &passed).unwrap();
        assert!(text.contains("## G\n") && text.contains("| f | s | `a_fault` ✓<br>`another` ✓ |"), "{text}");
        assert!(render("g\tf\ts\tthird\n", &passed).unwrap_err().to_string().contains("third"));
    }
}
