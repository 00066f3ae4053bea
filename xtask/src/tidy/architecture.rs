//! Rule: every module and source file that `ARCHITECTURE.md` names exists, and its map names every module at the top of a crate.
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{Finding, sources::Source};

const DOCUMENT: &str = "ARCHITECTURE.md";
/// Modules that every crate may have and that need no description.
const COMMON: [&str; 5] = ["lib", "main", "error", "fuzzing", "tests"];

pub(super) fn check(files: &[Source]) -> Vec<Finding> {
    let Some(document) = files.iter().find(|file| file.path == Path::new(DOCUMENT)) else {
        return vec![Finding::new(DOCUMENT, 1, "is missing: it has the map of the crates")];
    };
    let sources: Vec<&str> =
        files.iter().filter(|file| file.is_rust()).filter_map(|file| file.path.to_str()).collect();
    let mut findings = Vec::new();
    let mut section = None;
    let mut described: BTreeMap<&str, (usize, BTreeSet<&str>)> = BTreeMap::new();
    let lines: Vec<&str> = document.text.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        if let Some(heading) = line.strip_prefix('#') {
            // The map has one section of level 3 per crate: "### `cli`: the program".
            section =
                heading.strip_prefix("## `").and_then(|rest| rest.split_once('`')).map(|(name, _)| name);
        }
        if let Some(name) = section.filter(|_| !line.starts_with('#')) {
            let (_, words) = described.entry(name).or_insert((index + 1, BTreeSet::new()));
            let quoted = line.split('`').skip(1).step_by(2);
            words.extend(quoted.flat_map(|word| word.trim_end_matches(".rs").split('/')));
        }
        let mut missing: Vec<String> = line.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        missing.retain(|word| word.ends_with(".rs") && !has_file(&sources, word));
        if let Some(name) = section {
            let mut modules = listed_modules(&item(&lines[index..]));
            modules.retain(|module| !has_module(&sources, name, module));
            missing.extend(modules);
        }
        for word in missing {
            findings.push(Finding::new(DOCUMENT, index + 1, format!("names `{word}`, which does not exist")));
        }
    }
    for (name, (line, words)) in described {
        for module in top_modules(&sources, name).into_iter().filter(|module| !words.contains(module)) {
            let message = format!("does not name the module `{module}` of `{name}`: add it to the map");
            findings.push(Finding::new(DOCUMENT, line, message));
        }
    }
    findings
}

/// The modules directly below `src` of a crate, without tests and those that every crate may have.
fn top_modules<'a>(sources: &[&'a str], name: &str) -> BTreeSet<&'a str> {
    let root = format!("crates/{name}/src/");
    let paths = sources.iter().filter_map(|source| source.strip_prefix(&root));
    let modules = paths.filter_map(|path| path.split('/').next()).map(|part| part.trim_end_matches(".rs"));
    modules.filter(|module| !COMMON.contains(module) && !module.ends_with("_tests")).collect()
}

/// The list item that starts at the first line, with its further lines; empty if no item starts there.
fn item(lines: &[&str]) -> String {
    let Some((first, rest)) = lines.split_first() else { return String::new() };
    let Some(first) = first.strip_prefix("- ") else { return String::new() };
    let further = rest.iter().take_while(|line| line.starts_with("  ")).map(|line| line.trim());
    [first].into_iter().chain(further).collect::<Vec<_>>().join(" ")
}

/// The modules that a list item of the map describes: the words in backticks at the start of a sentence, before its colon.
fn listed_modules(item: &str) -> Vec<String> {
    let mut modules = Vec::new();
    for sentence in item.split(". ").filter(|sentence| sentence.starts_with('`')) {
        let Some((subject, _)) = sentence.split_once(": ") else { continue };
        let is_list = subject.split('`').step_by(2).all(|between| matches!(between, "" | ", " | " and "));
        if is_list {
            modules.extend(subject.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    modules
}

fn has_module(sources: &[&str], name: &str, module: &str) -> bool {
    let module = module.trim_end_matches('/');
    // Folders beside `src`.
    let beside = format!("crates/{name}/{}/", module.trim_start_matches("../"));
    if sources.iter().any(|source| source.starts_with(&beside)) {
        return true;
    }
    let root = format!("crates/{name}/src/");
    sources.iter().filter_map(|source| source.strip_prefix(&root)).any(|source| {
        let folder = format!("{module}/");
        source.strip_suffix(".rs") == Some(module)
            || source.starts_with(&folder)
            || source.contains(&format!("/{folder}"))
            || source.ends_with(&format!("/{module}.rs"))
    })
}

/// Whether a path relative to `crates/`, with or without `src/`, or the end of a path exists.
fn has_file(sources: &[&str], word: &str) -> bool {
    let end = format!("/{word}");
    let with_source = word.split_once('/').map(|(name, rest)| format!("/{name}/src/{rest}"));
    sources.iter().any(|source| {
        *source == word
            || source.ends_with(&end)
            || with_source.as_ref().is_some_and(|path| source.ends_with(path.as_str()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_modules_and_files_that_do_not_exist() {
        let source = |path: &str, text: &str| Source { path: path.into(), text: text.to_owned() };
        let map = "### `new`: text\n\n- `a`, `b/c`: text.\n  `gone`: text of `nothing`.\n\nSee `new/src/a.rs` and `b/gone.rs`.\n";
        let files = ["src/a.rs", "src/b/c.rs", "src/extra.rs", "src/lib.rs"]
            .map(|path| source(&format!("crates/new/{path}"), ""));
        let files: Vec<Source> = [source(DOCUMENT, map)].into_iter().chain(files).collect();
        let findings: Vec<String> = check(&files).into_iter().map(|finding| finding.message).collect();
        assert_eq!(
            findings,
            [
                "names `gone`, which does not exist",
                "names `b/gone.rs`, which does not exist",
                "does not name the module `extra` of `new`: add it to the map",
            ]
        );
    }
}
