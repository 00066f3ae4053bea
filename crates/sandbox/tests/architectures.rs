//! The sources define the same items on every architecture: an attribute for one architecture applies to whatever follows it, so
//! that a constant inserted there silently leaves every other architecture.

#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::path::{Path, PathBuf};

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// The lines after an attribute for one architecture that define an item, or that describe one.
fn items_of_one_architecture(text: &str) -> Vec<String> {
    const ITEMS: [&str; 9] = ["///", "const ", "static ", "fn ", "type ", "struct ", "enum ", "use ", "pub"];
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let is_attribute = |line: &str| line.starts_with("#[");
    let attributes = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| is_attribute(line) && line.contains("target_arch") && !line.contains("test"));
    let next = attributes.filter_map(|(at, _)| lines.iter().skip(at + 1).find(|line| !is_attribute(line)));
    next.filter(|line| ITEMS.iter().any(|item| line.starts_with(item)))
        .map(|line| (*line).to_owned())
        .collect()
}

#[test]
fn every_architecture_defines_the_same_items() {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    assert!(files.len() > 20, "{files:?}");
    for file in files {
        let found = items_of_one_architecture(&std::fs::read_to_string(&file).unwrap());
        assert!(found.is_empty(), "{}: use `cfg!` in the value instead: {found:?}", file.display());
    }
    // Control: the check finds a constant that only one architecture has, and permits an element of a list.
    let constant = "#[cfg(target_arch = \"x86_64\")]\n/// Text.\nconst A: u32 = 1;\n";
    assert_eq!(items_of_one_architecture(constant), ["/// Text."]);
    assert!(items_of_one_architecture("#[cfg(target_arch = \"x86_64\")]\nlibc::SYS_open,\n").is_empty());
}
