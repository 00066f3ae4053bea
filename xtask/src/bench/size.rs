//! How much of the packaged program its parts take: the sizes of their functions and data, from the symbol table.
use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

use crate::{
    run::{self, Profile, build, program},
    table::Table,
    workspace::Workspace,
};

/// A part of the program.
struct Part {
    name: &'static str,
    /// A symbol that names one of these crates belongs to the part, generic code of other crates included.
    crates: &'static [&'static str],
    /// A library of C functions of the part.
    library: Option<&'static str>,
    /// A folder with files that the program contains.
    files: Option<&'static str>,
}

const PARTS: [Part; 4] = [
    Part {
        name: "console and JSON API",
        crates: &["toolhub_console"],
        library: None,
        files: Some("crates/console/assets"),
    },
    Part {
        name: "code mode",
        crates: &["toolhub_script", "toolhub_script_host", "rquickjs", "rquickjs_core", "rquickjs_sys"],
        library: Some("libquickjs.a"),
        files: None,
    },
    Part { name: "OpenAI-compatible endpoint", crates: &["toolhub_openai_api"], library: None, files: None },
    Part { name: "cluster", crates: &["toolhub_cluster", "async_nats"], library: None, files: None },
];

pub(super) fn run(workspace: &Workspace) -> Result<()> {
    let toolhub = build(workspace, "toolhub-cli", "toolhub", Profile::Dist)?;
    let symbols = symbols(&toolhub)?;
    let whole = fs::metadata(&toolhub)?.len();
    let known: u64 = symbols.iter().map(|symbol| symbol.size).sum();
    println!(
        "program: {}, of it {} in symbols; the rest are texts and tables without a symbol",
        megabytes(whole),
        megabytes(known)
    );
    let mut table = Table::default();
    table.row(["part", "functions and data", "files", "sum"].map(str::to_owned));
    for part in &PARTS {
        let functions =
            part.library.map_or(Ok(Vec::new()), |library| library_functions(workspace, library))?;
        let belongs = |symbol: &Symbol| {
            part.crates.iter().any(|one| symbol.names_crate(one)) || functions.contains(&symbol.name)
        };
        let code: u64 = symbols.iter().filter(|symbol| belongs(symbol)).map(|symbol| symbol.size).sum();
        ensure!(code > 0, "no symbol belongs to `{}`: was the program stripped?", part.name);
        let files = part.files.map_or(Ok(0), |folder| folder_bytes(&workspace.root.join(folder)))?;
        table.row([part.name.to_owned(), megabytes(code), megabytes(files), megabytes(code + files)]);
    }
    println!("\n{table}");
    Ok(())
}

struct Symbol {
    name: String,
    size: u64,
}

impl Symbol {
    /// Whether the name contains a path of this crate.
    fn names_crate(&self, name: &str) -> bool {
        let is_word = |character: char| character.is_alphanumeric() || character == '_';
        self.name.match_indices(name).any(|(at, _)| {
            let (before, after) = (&self.name[..at], &self.name[at + name.len()..]);
            !before.ends_with(is_word) && after.starts_with("::")
        })
    }
}

/// The symbols that take space in the file.
fn symbols(program_file: &Path) -> Result<Vec<Symbol>> {
    let listed = run::read(
        program("nm").args(["--demangle=rust", "--print-size", "--defined-only"]).arg(program_file),
    )?;
    Ok(listed.lines().filter_map(read_symbol).collect())
}

/// Reads `ADDRESS SIZE TYPE NAME`; some symbols have no size. Variables without initial value (`b`) are not in the file.
fn read_symbol(line: &str) -> Option<Symbol> {
    let (_, rest) = line.split_once(' ')?;
    let (size, rest) = rest.split_once(' ')?;
    let (kind, name) = rest.split_once(' ')?;
    let size = u64::from_str_radix(size, 16).ok().filter(|_| size.len() == 16)?;
    (!kind.eq_ignore_ascii_case("b")).then(|| Symbol { name: name.to_owned(), size })
}

/// The names of the functions in a C library that the build of the program made.
fn library_functions(workspace: &Workspace, library: &str) -> Result<Vec<String>> {
    let builds = fs::read_dir(workspace.target.join("dist/build"))?;
    let files = builds.filter_map(|build| Some(build.ok()?.path().join("out").join(library)));
    let file: PathBuf = files
        .filter(|file| file.is_file())
        .max_by_key(|file| file.metadata().and_then(|data| data.modified()).ok())
        .with_context(|| format!("the build has no {library}"))?;
    let listed = run::read(program("nm").arg("--defined-only").arg(file))?;
    Ok(listed.lines().filter_map(|line| line.split(' ').nth(2)).map(str::to_owned).collect())
}

fn folder_bytes(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for file in fs::read_dir(folder)? {
        let metadata = file?.metadata()?;
        ensure!(metadata.is_file(), "a folder in {} is not counted", folder.display());
        bytes += metadata.len();
    }
    Ok(bytes)
}

fn megabytes(bytes: u64) -> String {
    format!("{:.2} MB", bytes as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_belong_to_the_crates_they_name() {
        let line = "0000000000000001 0000000000000010 t <toolhub_console::Page as core::fmt::Debug>::fmt";
        let symbol = read_symbol(line).unwrap();
        assert_eq!(symbol.size, 16);
        assert!(symbol.names_crate("toolhub_console") && symbol.names_crate("core"));
        assert!(!symbol.names_crate("console") && !symbol.names_crate("toolhub"));
        assert!(read_symbol("0000000000000001 0000000000000010 b js_heap").is_none());
        assert!(read_symbol("0000000000000001 d <A as B>::without_size").is_none());
    }
}
