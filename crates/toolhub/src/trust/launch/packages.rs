//! Installed packages of Node.js that an entry names. `npx NAME` and `node -r NAME/FILE` prefer them to everything else, in the
//! folder of the entry and in its parents. A package is bound as a whole: its `package.json` chooses the file that runs.

use std::collections::BTreeSet;
use std::path::PathBuf;

/// Programs that start a package by its name. They find the programs of packages in `node_modules/.bin` by names that the
/// packages choose, so that all of these are bound.
const RUNNERS: [&str; 7] = ["npm", "npx", "pnpm", "pnpx", "yarn", "bun", "bunx"];
/// Folders with programs and plugins of Yarn that its configuration names.
const YARN: [&str; 2] = [".yarn/releases", ".yarn/plugins"];

/// The folders of the packages that the words may name, in `node_modules` of the folders.
pub(super) fn folders(
    words: &BTreeSet<String>,
    stems: &BTreeSet<&str>,
    searched: &[PathBuf],
) -> BTreeSet<PathBuf> {
    let names: BTreeSet<String> = words.iter().filter_map(|word| package_of(word)).collect();
    let runs_packages = RUNNERS.iter().any(|runner| stems.contains(runner));
    let mut found = BTreeSet::new();
    for folder in searched {
        let installed = folder.join("node_modules");
        if installed.is_dir() {
            found.extend(names.iter().map(|name| installed.join(name)).filter(|package| package.is_dir()));
            found.extend(Some(installed.join(".bin")).filter(|programs| runs_packages && programs.is_dir()));
        }
        if stems.contains("yarn") {
            found.extend(YARN.iter().map(|name| folder.join(name)).filter(|named| named.is_dir()));
        }
    }
    found
}

/// The package that a word may name: without version and subpath.
fn package_of(word: &str) -> Option<String> {
    let without_version =
        |part: &str| part.split_once('@').map_or_else(|| part.to_owned(), |(name, _)| name.to_owned());
    let mut parts = word.split('/');
    let name = match word.strip_prefix('@') {
        Some(_) => {
            let scope = parts.next()?;
            format!("{scope}/{}", without_version(parts.next()?))
        }
        None => without_version(parts.next()?),
    };
    let is_path =
        name.is_empty() || name.ends_with('/') || name.starts_with(['.', '-', '~']) || name.contains("/.");
    (!is_path).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_packages_without_version_and_subpath() {
        for (word, package) in [
            ("acme-server", Some("acme-server")),
            ("acme-server@1.0.0", Some("acme-server")),
            ("dotenv/config", Some("dotenv")),
            ("dotenv@16/config", Some("dotenv")),
            ("@acme/server", Some("@acme/server")),
            ("@acme/server@1.0.0", Some("@acme/server")),
            ("@acme/server/lib/a.js", Some("@acme/server")),
            ("@acme", None),
            ("@acme/..", None),
            ("./a.js", None),
            ("../a", None),
            ("/a", None),
            ("-y", None),
            ("", None),
        ] {
            assert_eq!(package_of(word).as_deref(), package, "{word}");
        }
    }
}
