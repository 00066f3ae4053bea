//! Rule: every test, fuzz target and source file that `SECURITY.md` refers to exists.
use std::path::Path;

use super::{Finding, sources::Source};

const DOCUMENT: &str = "SECURITY.md";
/// Minimum length of the name of a test; shorter words in backticks are commands, settings and types.
const MIN_NAME_CHARS: usize = 12;

pub(super) fn check(root: &Path, files: &[Source]) -> Vec<Finding> {
    let Some(document) = files.iter().find(|file| file.path == Path::new(DOCUMENT)) else {
        return vec![Finding::new(DOCUMENT, 1, "is missing: it tells which test covers which threat")];
    };
    let rust = || files.iter().filter(|file| file.is_rust());
    let mut findings = Vec::new();
    for (index, line) in document.text.lines().enumerate() {
        for word in line.split('`').skip(1).step_by(2) {
            let exists = match kind(word) {
                Kind::Test => {
                    let head = format!("fn {word}(");
                    let target = format!("fuzz/fuzz_targets/{word}.rs");
                    rust().any(|file| file.text.contains(&head)) || root.join(target).is_file()
                }
                Kind::Source => root.join("crates").join(word).exists(),
                Kind::Other => true,
            };
            if !exists {
                findings.push(Finding::new(
                    DOCUMENT,
                    index + 1,
                    format!("names `{word}`, which does not exist"),
                ));
            }
        }
    }
    findings
}

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Test,
    Source,
    Other,
}

fn kind(word: &str) -> Kind {
    let is_name = word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    if is_name && word.contains('_') && word.len() >= MIN_NAME_CHARS {
        return Kind::Test;
    }
    match word.split_once("/src/") {
        Some((name, _)) if !name.contains(['/', ' ', ':']) => Kind::Source,
        _ => Kind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinguishes_tests_and_sources_from_commands() {
        for (word, expect) in [
            ("refuses_broken_hosts", Kind::Test),
            ("oauth/src/binding.rs", Kind::Source),
            ("toolhub/src/trust", Kind::Source),
            ("toolhub trust", Kind::Other),
            ("mcp.json", Kind::Other),
            ("TOOLHUB_TRUST", Kind::Other),
            ("sandbox", Kind::Other),
        ] {
            assert_eq!(kind(word), expect, "{word}");
        }
    }

    #[test]
    fn reports_missing_test() {
        let file = |path: &str, text: &str| Source { path: path.into(), text: text.to_owned() };
        let table = file(DOCUMENT, "| `holds_all_the_time` | `was_renamed_since` |");
        let code = file("crates/core/src/a.rs", "fn holds_all_the_time() {}");
        let found = check(Path::new("nowhere"), &[table, code]);
        assert_eq!(found.len(), 1);
        assert!(found[0].message.contains("was_renamed_since"), "{}", found[0].message);
    }
}
