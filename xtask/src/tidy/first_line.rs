//! Rule: the first line of every Rust file describes its content.
use super::{Finding, sources::Source};

const MIN_WORDS: usize = 3;

pub(super) fn check(source: &Source) -> Option<Finding> {
    let broken = source.is_rust() && !describes_content(&source.text);
    let message = "begin the file with a `//! ` sentence that says what it owns";
    broken.then(|| Finding::new(&source.path, 1, message))
}

fn describes_content(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    let words = first.strip_prefix("//! ").map(|sentence| sentence.split_whitespace().count());
    words.is_some_and(|count| count >= MIN_WORDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_first_lines() {
        for (text, expect) in [
            ("//! Owns the wire.\nuse x;", true),
            ("//! Owns the wire format,\n//! and no more.", true),
            ("//! Owns it", false),
            ("//!Owns the wire.", false),
            ("//! ", false),
            ("", false),
            ("\n//! Owns the wire.", false),
            ("// Owns the wire.", false),
            ("/// Owns the wire.", false),
            ("use x;\n//! Owns the wire.", false),
        ] {
            assert_eq!(describes_content(text), expect, "{text:?}");
        }
    }
}
