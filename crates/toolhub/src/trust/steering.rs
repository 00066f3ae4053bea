//! Files of the current folder that change what a program of the owner runs: package runners, interpreters and loaders of
//! variables read them from the folder they are started in. In a folder that is not trusted, such a program is started
//! elsewhere.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use toolhub_mcp::config::StdioSpec;

use super::launch::{Site, words_of_spec};

/// Programs, and what they read from the current folder or from those above it.
const STEERED: [(&[&str], &[&str]); 6] = [
    (
        &["npm", "npx", "pnpm", "pnpx", "yarn", "bun", "bunx", "node", "corepack"],
        &[
            "package.json",
            "node_modules",
            ".npmrc",
            ".yarnrc",
            ".yarnrc.yml",
            ".pnpmfile.cjs",
            "pnpm-workspace.yaml",
            "bunfig.toml",
            ".env",
        ],
    ),
    (
        &["uv", "uvx", "poetry", "pdm", "hatch", "pipx", "rye", "pixi"],
        &["pyproject.toml", "uv.toml", ".python-version", "poetry.toml", "pixi.toml", ".venv", ".env"],
    ),
    (&["deno"], &["deno.json", "deno.jsonc", "package.json", "node_modules", ".env"]),
    (&["ruby", "bundle", "gem"], &["Gemfile", ".bundle", ".ruby-version", ".env"]),
    (&["cargo", "go", "make", "just", "task"], &["Cargo.toml", ".cargo", "go.mod", "Makefile", "justfile"]),
    (&["docker", "docker-compose", "podman"], &["compose.yaml", "compose.yml", "docker-compose.yml", ".env"]),
];
/// Endings of files that are code.
const CODE: [&str; 11] = ["py", "pyc", "pyz", "so", "js", "mjs", "cjs", "ts", "sh", "rb", "pl"];
/// The most entries of the folder that are looked at.
const MAX_ENTRIES: usize = 10_000;

/// Files of the folder that may steer the owner's programs, as one would name them.
pub(super) fn files_in(folder: &Path) -> Vec<String> {
    let listed: BTreeSet<&str> = STEERED.iter().flat_map(|(_, files)| files.iter().copied()).collect();
    let mut names: Vec<String> = listed.into_iter().map(str::to_owned).collect();
    names.retain(|name| folder.join(name).symlink_metadata().is_ok());
    let mut entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(MAX_ENTRIES);
    names.extend(
        entries.find(|entry| has_code_ending(&entry.path())).map(|entry| named(folder, &entry.path())),
    );
    names
}

/// The first file by which the folder steers what `spec` runs, as one would name it.
pub(super) fn steered_by(folder: &Path, user: Option<&Path>, spec: &StdioSpec) -> Option<String> {
    let words = words_of_spec(spec);
    let stems: BTreeSet<String> = words.iter().filter_map(|word| program_name(word)).collect();
    let families = STEERED.iter().filter(|(names, _)| names.iter().any(|name| stems.contains(*name)));
    let above: Vec<&Path> = folder.ancestors().take_while(|part| Some(*part) != user).collect();
    for (_, files) in families {
        let found = above.iter().flat_map(|part| files.iter().map(|file| part.join(file)));
        if let Some(file) = found.into_iter().find(|file| file.symlink_metadata().is_ok()) {
            return Some(named(folder, &file));
        }
    }
    if stems.iter().any(|name| name.starts_with("python")) {
        let found = if words.iter().any(|word| is_module_flag(word)) { first_module(folder) } else { None };
        let env = folder.join(".env");
        if let Some(file) = found.or_else(|| env.symlink_metadata().is_ok().then_some(env)) {
            return Some(named(folder, &file));
        }
    }
    // A relative path means whatever lies in the folder; an absolute one is the owner's own choice.
    let site = Site { folder: folder.to_owned(), project: folder.to_owned() };
    let files = site.named_files(spec).unwrap_or_default();
    let absolute: BTreeSet<PathBuf> =
        words.iter().filter(|word| Path::new(word).is_absolute()).map(PathBuf::from).collect();
    let code = files
        .iter()
        .find(|(file, state)| (state.executable || has_code_ending(file)) && !absolute.contains(*file));
    code.map(|(file, _)| named(folder, file))
}

fn named(folder: &Path, file: &Path) -> String {
    file.strip_prefix(folder).unwrap_or(file).display().to_string()
}

/// The name of a program without its folder and version.
fn program_name(word: &str) -> Option<String> {
    let name = Path::new(word).file_name()?.to_str()?;
    let name = name.strip_suffix(".exe").or_else(|| name.strip_suffix(".cmd")).unwrap_or(name);
    Some(name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').to_lowercase())
}

/// Whether Python looks for modules in the folder it is started in: `-m`, `-c`, or code from its input.
fn is_module_flag(word: &str) -> bool {
    let letters = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
    letters.is_some_and(|letters| letters.is_empty() || letters.contains(['m', 'c']))
}

/// Something in the folder that Python could import.
fn first_module(folder: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?.flatten().take(MAX_ENTRIES);
    let holds_code = |path: &Path| {
        let inner = std::fs::read_dir(path).into_iter().flatten().flatten().take(MAX_ENTRIES);
        inner.into_iter().any(|entry| has_code_ending(&entry.path()) || entry.path().is_dir())
    };
    let mut paths = entries.map(|entry| entry.path());
    paths.find(|path| {
        let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        has_code_ending(path) || (!hidden && path.is_dir() && holds_code(path))
    })
}

fn has_code_ending(file: &Path) -> bool {
    file.extension().and_then(|end| end.to_str()).is_some_and(|end| CODE.contains(&end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(line: &str) -> StdioSpec {
        let mut words = line.split(' ').map(str::to_owned);
        StdioSpec { command: words.next().unwrap(), args: words.collect(), ..StdioSpec::default() }
    }

    #[test]
    fn finds_what_a_folder_changes_in_the_owners_programs() {
        for (file, line, steers) in [
            ("package.json", "npx -y server", true),
            ("node_modules/x/index.js", "/usr/bin/npx server", true),
            (".npmrc", "npx server", true),
            ("package.json", "/opt/server --stdio", false),
            ("uv.toml", "uvx excel-mcp-server stdio", true),
            ("pyproject.toml", "uvx excel-mcp-server", true),
            ("sales.xlsx", "uvx excel-mcp-server stdio", false),
            ("requests.py", "python3.11 -m my_server", true),
            ("my_server/x.py", "python -m my_server", true),
            ("notes.txt", "python -m my_server", false),
            ("tool.py", "python /opt/server.py", false),
            ("run.sh", "./run.sh", true),
            ("run.sh", "/bin/sh run.sh", true),
            ("data.db", "/opt/server --db data.db", false),
            (".env", "node /opt/server.js", true),
            ("bin/server", "FOLDER/bin/server --stdio", false),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let place = folder.path().join(file);
            std::fs::create_dir_all(place.parent().unwrap()).unwrap();
            std::fs::write(place, "").unwrap();
            let line = line.replace("FOLDER", &folder.path().display().to_string());
            let found = steered_by(folder.path(), None, &spec(&line));
            assert_eq!(found.is_some(), steers, "{file}: {line}: {found:?}");
        }
    }

    #[test]
    fn looks_above_the_folder_and_not_in_the_users_home() {
        let outer = tempfile::tempdir().unwrap();
        let inner = outer.path().join("a/b");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::write(outer.path().join("package.json"), "").unwrap();
        assert!(steered_by(&inner, None, &spec("npx x")).is_some());
        assert_eq!(steered_by(&inner, Some(outer.path()), &spec("npx x")), None);
    }
}
