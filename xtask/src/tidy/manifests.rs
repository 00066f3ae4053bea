//! Rules for the manifests of crates: only allowed dependencies, and the lints of the workspace.
use std::fs;

use anyhow::{Context, Result};

use super::{
    Finding,
    edges::{self, Verdict},
};
use crate::workspace::{Package, Workspace};

/// The crate with system calls and unsafe code.
const SYSTEM_CALLS: &str = "toolhub-sandbox";

pub(super) fn check(workspace: &Workspace) -> Result<Vec<Finding>> {
    let members: Vec<&str> = workspace.packages.iter().map(|package| package.name.as_str()).collect();
    let root = fs::read_to_string(workspace.root.join("Cargo.toml")).context("cannot read `Cargo.toml`")?;
    let mut findings = Vec::new();
    for package in &workspace.packages {
        let manifest = fs::read_to_string(workspace.root.join(&package.manifest))
            .with_context(|| format!("cannot read `{}`", package.manifest.display()))?;
        check_edges(package, &manifest, &members, &mut findings);
        if package.name == SYSTEM_CALLS {
            check_own_lints(package, &manifest, &root, &mut findings);
        } else if !takes_workspace_lints(&manifest) {
            let message = "add `lints.workspace = true`: the lints are the same in every crate";
            findings.push(Finding::new(&package.manifest, 1, message));
        }
    }
    Ok(findings)
}

/// The only crate with unsafe code repeats the workspace's lints, since Cargo inherits either all of them or none.
fn check_own_lints(package: &Package, manifest: &str, root: &str, findings: &mut Vec<Finding>) {
    let own = lints(manifest, "[lints.");
    for lint in lints(root, "[workspace.lints.").iter().filter(|lint| !own.contains(lint)) {
        if !lint.ends_with("unsafe_code=\"forbid\"") {
            let message = format!("repeat the workspace's lint `{lint}`: only `unsafe_code` may differ");
            findings.push(Finding::new(&package.manifest, 1, message));
        }
    }
}

/// The lines of all sections whose header begins with `start`, without spaces, each prefixed by the name of its
/// section.
fn lints(manifest: &str, start: &str) -> Vec<String> {
    let mut section = None;
    let mut found = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line.strip_prefix(start).map(|rest| rest.trim_end_matches(']'));
        } else if let Some(section) = section.filter(|_| !line.is_empty() && !line.starts_with('#')) {
            let setting: String = line.split_whitespace().collect();
            found.push(format!("{section}.{setting}"));
        }
    }
    found
}

fn check_edges(package: &Package, manifest: &str, members: &[&str], findings: &mut Vec<Finding>) {
    if !edges::is_known(&package.name) {
        let message = format!(
            "`{}` is a new crate: add it to ARCHITECTURE.md and to {}",
            package.name,
            edges::RULES_FILE
        );
        findings.push(Finding::new(&package.manifest, 1, message));
        return;
    }
    for dependency in package.dependencies.iter().filter(|edge| members.contains(&edge.name.as_str())) {
        if let Verdict::Forbidden(reason) = edges::judge(&package.name, &dependency.name, dependency.kind) {
            let message = format!(
                "`{}` may not depend on `{}`: {reason}; see the map in ARCHITECTURE.md",
                package.name, dependency.name
            );
            let line = line_of_dependency(manifest, &dependency.name);
            findings.push(Finding::new(&package.manifest, line, message));
        }
    }
}

/// The line with the name as a key, or else the first line.
fn line_of_dependency(manifest: &str, name: &str) -> usize {
    let names_it = |line: &str| {
        let key = line.trim_start().split(['.', '=', ' ', ']']).next().unwrap_or_default();
        key == name || (line.starts_with('[') && line.trim_end().ends_with(&format!("dependencies.{name}]")))
    };
    manifest.lines().position(names_it).map_or(1, |index| index + 1)
}

fn takes_workspace_lints(manifest: &str) -> bool {
    let mut section = "";
    manifest.lines().map(str::trim).any(|line| {
        if line.starts_with('[') {
            section = line;
        }
        let setting: String = line.split('#').next().unwrap_or_default().split_whitespace().collect();
        (section == "[lints]" && setting == "workspace=true")
            || (section.is_empty() && setting == "lints.workspace=true")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detects_workspace_lints() {
        for (manifest, expect) in [
            ("[package]\nname = \"a\"\n\n[lints]\nworkspace = true\n", true),
            ("lints.workspace = true\n[package]\n", true),
            ("[lints]\nworkspace=true # as everywhere\n", true),
            ("[lints]\nworkspace = false\n", false),
            ("[lints.rust]\nunsafe_code = \"forbid\"\n", false),
            ("[lints]\n[dependencies.x]\nworkspace = true\n", false),
            ("[package]\nlints.workspace = true\n", false),
            ("", false),
        ] {
            assert_eq!(takes_workspace_lints(manifest), expect, "{manifest:?}");
        }
    }

    #[test]
    fn parses_lints_of_sections() {
        let manifest = "[package]\nname = \"a\"\n\n[lints.rust]\n# why\na = \"warn\"\n\n[lints.clippy]\nb=\"warn\"\n[x]\nc = 1\n";
        assert_eq!(lints(manifest, "[lints."), ["rust.a=\"warn\"", "clippy.b=\"warn\""]);
        assert_eq!(lints(manifest, "[workspace.lints."), [""; 0]);
    }

    #[test]
    fn finds_lines_of_dependencies() {
        for (manifest, expect) in [
            ("[dependencies]\ntoolhub-core.workspace = true\n", 2),
            ("[dependencies]\ntoolhub-core = { workspace = true }\n", 2),
            ("[a]\n\n[dev-dependencies.toolhub-core]\n", 3),
            ("[dependencies]\ntoolhub-core-x = \"1\"\n", 1),
        ] {
            assert_eq!(line_of_dependency(manifest, "toolhub-core"), expect, "{manifest:?}");
        }
    }
}
