//! Rule: a Rust file covers one concept and therefore has a maximum length, which is larger for tests.
use std::path::Path;

use super::{Finding, sources::Source};

const MAX_LINES: usize = 600;
const MAX_TEST_LINES: usize = 1_200;

pub(super) fn check(source: &Source) -> Option<Finding> {
    if !source.is_rust() {
        return None;
    }
    let (length, longest) = if is_tests(&source.path) {
        (source.text.lines().count(), MAX_TEST_LINES)
    } else {
        (lines_without_tests(&source.text), MAX_LINES)
    };
    let message = || format!("{length} lines, at most {longest}: move the second concept to its own file");
    (length > longest).then(|| Finding::new(&source.path, longest + 1, message()))
}

pub(super) fn is_tests(path: &Path) -> bool {
    let in_folder = path.parent().is_some_and(|folder| folder.iter().any(|part| part == "tests"));
    in_folder || path.file_name().is_some_and(|name| name == "tests.rs")
}

/// Excludes an inline test module at the end. `clippy::items_after_test_module` ensures that no other item follows
/// it.
fn lines_without_tests(text: &str) -> usize {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let Some(module) = lines.iter().rposition(|line| *line == "mod tests {") else { return lines.len() };
    let attributes = lines[..module].iter().rev().take_while(|line| !line.is_empty());
    let Some(above) = attributes.into_iter().position(|line| *line == "#[cfg(test)]") else {
        return lines.len();
    };
    if lines.last() == Some(&"}") { module - above - 1 } else { lines.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_lines_before_the_tests() {
        for (text, expect) in [
            ("", 0),
            ("a\nb\n", 2),
            ("a\nb\n\n\n", 2),
            ("a\n\n#[cfg(test)]\nmod tests {\n    t\n}\n", 2),
            ("a\n\n#[cfg(test)]\n#[expect(x, reason = \"y\")]\nmod tests {\n    t\n}\n", 2),
            ("a\n\nmod tests {\n    t\n}\n", 5),
            ("a\n\n#[cfg(test)]\nfn f() {}\n\nmod tests {\n    t\n}\n", 8),
            ("a\n#[cfg(test)]\nmod tests;\n", 3),
            ("a\n#[cfg(test)]\nmod tests {\n}\nstatic A: B = C;\n", 5),
        ] {
            assert_eq!(lines_without_tests(text), expect, "{text:?}");
        }
    }

    #[test]
    fn enforces_line_limits() {
        for (path, lines, found) in [
            ("src/a.rs", MAX_LINES, false),
            ("src/a.rs", MAX_LINES + 1, true),
            ("src/a.md", MAX_LINES + 1, false),
            ("src/a/tests.rs", MAX_LINES + 1, false),
            ("src/a/tests.rs", MAX_TEST_LINES + 1, true),
            ("tests/a/b.rs", MAX_TEST_LINES, false),
            ("tests/a/b.rs", MAX_TEST_LINES + 1, true),
        ] {
            let source = Source { path: path.into(), text: "x\n".repeat(lines) };
            assert_eq!(check(&source).is_some(), found, "{path} of {lines}");
        }
    }
}
