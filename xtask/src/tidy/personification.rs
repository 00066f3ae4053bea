//! Rule: comments do not describe programs as people. A reader cannot search for such words, and cannot tell which caller, server or
//! task is meant.
use super::{Finding, sources::Source};

/// Words that are not used. Split into parts, so that this file passes its own rule.
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
    &["remem", "bers"],
];

/// Phrases that are not used, each split into two parts.
const PERSON_PHRASES: &[[&str; 2]] = &[
    ["asks", "here"],
    ["wants", "to"],
    ["was heard", "of"],
    ["it heard", "of"],
    ["introduced", "itself"],
    ["introduced", "themselves"],
    ["gave", "no answer"],
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
    let phrases: Vec<String> = PERSON_PHRASES.iter().map(|parts| format!(" {} ", parts.join(" "))).collect();
    let mut findings = Vec::new();
    for (index, line) in source.text.lines().enumerate() {
        let Some(comment) = line.trim_start().strip_prefix("//") else { continue };
        let comment_words: Vec<String> = comment
            .split(|letter: char| !letter.is_alphanumeric() && letter != '_')
            .filter(|word| !word.is_empty())
            .map(str::to_ascii_lowercase)
            .collect();
        let text = format!(" {} ", comment_words.join(" "));
        let word = comment_words.iter().find(|word| words.contains(word));
        let phrase = || phrases.iter().find(|phrase| text.contains(phrase.as_str()));
        if let Some(found) = word.or_else(phrase) {
            let found = found.trim();
            let message =
                format!("`{found}` in a comment: name the caller, the server, the task or the process");
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
        let phrase = PERSON_PHRASES[0].join(" ");
        assert_eq!(
            findings("crates/core/src/a.rs", &format!("//! Every surface {phrase}, and only once.\n")),
            1
        );
        assert_eq!(findings("crates/core/src/a.rs", &format!("// Not{phrase}\n")), 0);
        assert_eq!(findings("crates/planner/src/rewrite/remark.rs", &format!("// {word}\n")), 0);
        assert_eq!(findings("docs/a.md", &format!("// {word}\n")), 0);
    }
}
