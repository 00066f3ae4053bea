//! Virtual environments of Python in the project: each start of their interpreter runs the lines of their `*.pth` files, and
//! `pyvenv.cfg` chooses the interpreter's modules.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Programs that start the virtual environment of the folder.
const RUNNERS: [&str; 5] = ["uv", "poetry", "pdm", "hatch", "pipenv"];
/// The names of such environments.
const NAMES: [&str; 2] = [".venv", "venv"];
/// Modules that Python loads at startup.
const STARTUP: [&str; 4] =
    ["sitecustomize.py", "usercustomize.py", "sitecustomize/__init__.py", "usercustomize/__init__.py"];

/// The files that Python loads at startup from the environments of the entry.
pub(super) fn files(
    words: &BTreeSet<String>,
    searched: &[PathBuf],
    stems: &BTreeSet<&str>,
    project: &Path,
) -> BTreeSet<PathBuf> {
    let is_runner = RUNNERS.iter().any(|runner| stems.contains(runner));
    let mut roots = BTreeSet::new();
    for folder in searched {
        let named = words.iter().map(|word| folder.join(word)).filter(|path| path.starts_with(project));
        for path in named {
            // A program of the environment, its folder of programs (as in `PATH`), or the environment itself (`VIRTUAL_ENV`).
            let is_root = |root: &&Path| root.join("pyvenv.cfg").exists() || root.join("lib").is_dir();
            let above = path.ancestors().take(3).filter(|root| root.starts_with(project));
            roots.extend(above.filter(is_root).map(Path::to_path_buf));
        }
        roots.extend(NAMES.iter().filter(|_| is_runner).map(|name| folder.join(name)));
    }
    roots.iter().flat_map(|root| startup_files(root)).collect()
}

fn startup_files(root: &Path) -> Vec<PathBuf> {
    let entries = |folder: PathBuf| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let mut libraries = vec![root.join("Lib")];
    libraries.extend(["lib", "lib64"].iter().flat_map(|name| entries(root.join(name))));
    let mut found = vec![root.join("pyvenv.cfg")];
    for packages in libraries.into_iter().map(|library| library.join("site-packages")) {
        found.extend(STARTUP.iter().map(|name| packages.join(name)));
        let is_path_file = |file: &PathBuf| file.extension().is_some_and(|ending| ending == "pth");
        found.extend(entries(packages).into_iter().filter(is_path_file));
    }
    found
}
