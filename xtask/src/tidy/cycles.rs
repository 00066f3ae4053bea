//! Rule: the files of a crate do not use each other in cycles. What two files need of each other is a third file below both.
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use super::{Finding, sources::Source};

/// A module path within a crate; empty for the root.
type Module = Vec<String>;

pub(super) fn check(files: &[Source]) -> Vec<Finding> {
    let mut crates: BTreeMap<String, BTreeMap<Module, &Source>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        if let Some((name, module)) = module_of(&file.path) {
            crates.entry(name).or_default().insert(module, file);
        }
    }
    let mut findings = Vec::new();
    for (name, modules) in &crates {
        for cycle in cycles(modules) {
            let files: Vec<String> = cycle.iter().map(|module| module.join("/")).collect();
            findings.push(Finding::new(
                PathBuf::from("crates").join(name).join("src"),
                1,
                format!("these files use each other in a cycle: {}", files.join(", ")),
            ));
        }
    }
    findings
}

/// The crate and the module of a source file of `crates/`; `None` for binaries, tests and fuzz targets.
fn module_of(path: &Path) -> Option<(String, Module)> {
    let path = path.to_str()?.strip_prefix("crates/")?.strip_suffix(".rs")?;
    let (name, module) = path.split_once("/src/")?;
    let mut module: Module = module.split('/').map(str::to_owned).collect();
    let last = module.last().map(String::as_str);
    if module.first().is_some_and(|first| first == "bin")
        || matches!(last, Some("tests" | "attacks" | "fuzzing"))
        || last.is_some_and(|last| last.ends_with("_tests"))
    {
        return None;
    }
    if matches!(last, Some("mod" | "lib" | "main")) {
        module.pop();
    }
    Some((name.to_owned(), module))
}

/// The groups of modules that use each other. A module and its submodules count as one.
fn cycles(modules: &BTreeMap<Module, &Source>) -> Vec<Vec<Module>> {
    let uses: BTreeMap<&Module, BTreeSet<&Module>> =
        modules.iter().map(|(module, source)| (module, used_by(module, &source.text, modules))).collect();
    let reachable: BTreeMap<&Module, BTreeSet<&Module>> = uses
        .keys()
        .map(|module| {
            let (mut seen, mut pending) = (BTreeSet::new(), vec![*module]);
            while let Some(next) = pending.pop() {
                for used in uses.get(next).into_iter().flatten() {
                    if seen.insert(*used) {
                        pending.push(used);
                    }
                }
            }
            (*module, seen)
        })
        .collect();
    let (mut cycles, mut done) = (Vec::new(), BTreeSet::new());
    for (module, seen) in reachable.iter().filter(|(module, seen)| seen.contains(*module)) {
        if done.contains(module) {
            continue;
        }
        let returns = |other: &&&Module| reachable.get(**other).is_some_and(|seen| seen.contains(module));
        let cycle: Vec<Module> = seen.iter().filter(returns).map(|other| (*other).clone()).collect();
        done.extend(seen.iter().filter(returns).copied());
        cycles.push(cycle);
    }
    cycles
}

fn used_by<'a>(module: &Module, text: &str, modules: &'a BTreeMap<Module, &Source>) -> BTreeSet<&'a Module> {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let code: String =
        text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let mut used = BTreeSet::new();
    for path in paths(&code, module) {
        let target = (0..=path.len()).rev().find_map(|length| modules.get_key_value(&path[..length]));
        if let Some((target, _)) = target
            && !module.starts_with(target)
            && !target.starts_with(module)
        {
            used.insert(target);
        }
    }
    used
}

/// The paths in the code that start with `crate`, `super` or `self`, relative to the root of the crate.
fn paths(code: &str, module: &Module) -> Vec<Module> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(start) = ["crate::", "super::", "self::"].iter().filter_map(|word| rest.find(word)).min() {
        let before = rest[..start].chars().next_back();
        let (mut base, mut path) = (module.clone(), &rest[start..]);
        if path.starts_with("crate::") {
            base.clear();
            path = &path["crate::".len()..];
        }
        while let Some(inner) = path.strip_prefix("super::") {
            base.pop();
            path = inner;
        }
        path = path.strip_prefix("self::").unwrap_or(path);
        if !before.is_some_and(|before| before.is_alphanumeric() || before == '_' || before == ':') {
            loop {
                let length = path.find(|letter: char| {
                    !letter.is_ascii_lowercase() && letter != '_' && !letter.is_ascii_digit()
                });
                let (word, behind) = path.split_at(length.unwrap_or(path.len()));
                match behind.strip_prefix("::") {
                    Some(behind) if !word.is_empty() => {
                        base.push(word.to_owned());
                        path = behind;
                    }
                    _ if word.is_empty() && behind.starts_with('{') => {
                        let list = behind.split(';').next().unwrap_or_default();
                        for item in list.split(['{', ',']).map(str::trim_start) {
                            let end = item.find(|letter: char| !letter.is_ascii_lowercase() && letter != '_');
                            let item = &item[..end.unwrap_or(item.len())];
                            found.push([&base[..], &[item.to_owned()]].concat());
                        }
                        break;
                    }
                    _ => {
                        base.push(word.to_owned());
                        break;
                    }
                }
            }
            found.push(base);
        }
        rest = &rest[start + "self::".len()..];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.into(), text: text.to_owned() }
    }

    #[test]
    fn finds_a_cycle_of_two_files() {
        let a = source("crates/new/src/a.rs", "use crate::b::B;\n");
        let b = source("crates/new/src/b.rs", "use super::{c, a::A};\n");
        let c = source("crates/new/src/c.rs", "fn c() {}\n");
        assert!(check(&[source("crates/new/src/a.rs", "use crate::b::B;\n"), c]).is_empty());
        let findings = check(&[a, b]);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].message, "these files use each other in a cycle: a, b");
    }

    #[test]
    fn a_module_and_its_submodules_are_one() {
        let parent = source("crates/new/src/a/mod.rs", "mod b;\nuse self::b::B;\n");
        let child = source("crates/new/src/a/b.rs", "use super::A;\nuse crate::a::A;\n");
        assert!(check(&[parent, child]).is_empty());
    }

    #[test]
    fn tests_and_comments_do_not_count() {
        let a = source("crates/new/src/a.rs", "use crate::b::B;\n");
        let b = source(
            "crates/new/src/b.rs",
            "// crate::a::A\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n",
        );
        assert!(check(&[a, b]).is_empty());
    }
}
