//! Rule: files that a crate includes at compile time are in its own directory; otherwise its package does not build.
use std::path::{Component, Path, PathBuf};

use super::{Finding, sources::Source};

const MACROS: &[&str] = &["include_str!(\"", "include_bytes!(\"", "include!(\""];

pub(super) fn check(source: &Source) -> Vec<Finding> {
    let mut parts = source.path.iter();
    let (Some(first), Some(name), Some(kind)) = (parts.next(), parts.next(), parts.next()) else {
        return Vec::new();
    };
    // Tests are not built from a package, and testkit is not published.
    if !source.is_rust() || first != "crates" || kind == "tests" || name == "testkit" {
        return Vec::new();
    }
    let own = Path::new(first).join(name);
    let folder = source.path.parent().unwrap_or(Path::new(""));
    let lines = source.text.lines().enumerate();
    let outside =
        lines.filter(|(_, line)| included(line).any(|path| !normalize(&folder.join(path)).starts_with(&own)));
    outside
        .map(|(index, _)| {
            let message = "includes a file of another folder: move it into this crate, or into one that this crate depends on";
            Finding::new(&source.path, index + 1, message)
        })
        .collect()
}

fn included(line: &str) -> impl Iterator<Item = &str> {
    let starts = MACROS.iter().flat_map(|start| line.match_indices(start));
    starts.filter_map(|(at, start)| line[at + start.len()..].split('"').next())
}

/// Resolves `..` lexically, without accessing the file system.
fn normalize(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut normalized, part| {
        match part {
            Component::ParentDir => drop(normalized.pop()),
            other => normalized.push(other),
        }
        normalized
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_files_of_other_folders() {
        for (path, line, expect) in [
            ("crates/a/src/x/y.rs", "include_str!(\"../../data/t.tsv\")", false),
            ("crates/a/src/y.rs", "include_str!(\"t.tsv\")", false),
            ("crates/a/src/y.rs", "[include_str!(\"t.tsv\"), include_bytes!(\"../../b/t\")]", true),
            ("crates/a/src/x/y.rs", "include_str!(\"../../../b/data/t.tsv\")", true),
            ("crates/a/tests/y.rs", "include_str!(\"../../../README.md\")", false),
            ("xtask/src/y.rs", "include_str!(\"../../README.md\")", false),
            ("crates/a/README.md", "include_str!(\"../../README.md\")", false),
        ] {
            let source = Source { path: path.into(), text: line.to_owned() };
            assert_eq!(!check(&source).is_empty(), expect, "{path}: {line}");
        }
    }
}
