//! Project rules that can be checked automatically: collects the findings of all rules and prints them.
mod architecture;
mod cli_help;
mod config_keys;
mod config_reference;
mod cycles;
mod edges;
mod first_line;
mod forbidden_text;
mod includes;
mod manifests;
mod parameters;
mod personification;
mod program_names;
mod readme;
mod readme_commands;
mod security_table;
mod size;
mod sources;
mod translations;

use std::{fmt, path::PathBuf};

use anyhow::{Result, bail};

use crate::{commands::no_arguments, workspace::Workspace};

/// A violation of a rule at one location. The message states the correction.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: PathBuf,
    line: usize,
    message: String,
}

impl Finding {
    fn new(path: impl Into<PathBuf>, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.into(), line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path.display(), self.line, self.message)
    }
}

pub(crate) fn command(workspace: &Workspace, args: &[String]) -> Result<()> {
    no_arguments(args)?;
    check(workspace)
}

pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let files = sources::read_all(&workspace.root)?;
    let mut findings = Vec::new();
    findings.extend(manifests::check(workspace)?);
    findings.extend(files.iter().flat_map(first_line::check));
    findings.extend(files.iter().flat_map(size::check));
    findings.extend(files.iter().flat_map(forbidden_text::check));
    findings.extend(files.iter().flat_map(personification::check));
    findings.extend(files.iter().flat_map(program_names::check));
    findings.extend(files.iter().flat_map(includes::check));
    findings.extend(files.iter().flat_map(parameters::check));
    findings.extend(architecture::check(&files));
    findings.extend(cycles::check(&files));
    findings.extend(translations::check(&files));
    findings.extend(readme_commands::check(workspace, &files)?);
    findings.extend(config_keys::check(&files));
    findings.extend(config_reference::check(&files));
    findings.extend(security_table::check(&workspace.root, &files));
    findings.sort();

    for finding in &findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => println!("tidy: {} files, nothing found", files.len()),
        1 => bail!("tidy: 1 finding"),
        count => bail!("tidy: {count} findings"),
    }
    Ok(())
}
