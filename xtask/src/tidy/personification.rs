//! Rule: comments do not describe programs as people. A reader cannot search for such words, and cannot tell which caller, server or
//! task is meant.
use super::{Finding, sources::Source};

/// Split into parts, so that this file passes its own rule.
const PERSON_WORDS: &[&[&str]] = &[
    &["who", "ever"],
    &["no", "body"],
    &["some", "body"],
    &["any", "body"],
    &["every", "body"],
    &["who", "m"],
    &["watch", "man"],
    &["watch", "men"],
    &["door", "man"],
];

/// Where such words may occur in comments, with the reason.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("crates/planner/src/rewrite/remark.rs", "quotes a request"),
    ("crates/cli/src/args", "help texts, which are documented in two languages"),
    ("crates/testkit/src/postgres.rs", "names a system account"),
];

pub(super) fn check(source: &Source) -> Vec<Finding> {
    let path = source.path.to_string_lossy();
    let is_excepted = EXCEPTIONS.iter().any(|(start, _)| path.starts_with(start));
    if is_excepted || !path.ends_with(".rs") {
        return Vec::new();
    }
    let words: Vec<String> = PERSON_WORDS.iter().map(|parts| parts.concat()).collect();
    let mut findings = Vec::new();
    for (index, line) in source.text.lines().enumerate() {
        let Some(comment) = line.trim_start().strip_prefix("//") else { continue };
        let found = comment
            .split(|letter: char| !letter.is_alphanumeric() && letter != '_')
            .find(|word| words.contains(&word.to_ascii_lowercase()));
        if let Some(word) = found {
            let message =
                format!("`{word}` in a comment: name the caller, the server, the task or the process");
            findings.push(Finding::new(&source.path, index + 1, message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> usize {
        check(&Source { path: path.into(), text: text.to_owned() }).len()
    }

    #[test]
    fn reports_personification_in_comments_only() {
        let word = PERSON_WORDS[0].concat();
        assert_eq!(findings("crates/core/src/a.rs", &format!("    /// Wakes {word} waits.\n")), 1);
        assert_eq!(findings("crates/core/src/a.rs", &format!("let {word} = 1; call(\"{word}\");\n")), 0);
        assert_eq!(findings("crates/planner/src/rewrite/remark.rs", &format!("// {word}\n")), 0);
        assert_eq!(findings("docs/a.md", &format!("// {word}\n")), 0);
    }
}
