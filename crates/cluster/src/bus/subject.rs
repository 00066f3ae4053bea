//! Subjects. A name that may contain any character becomes one token of a subject.

use std::fmt::Write as _;

/// One token of a subject: letters, digits, `-` and `_` stay, other bytes become `=` and two hexadecimal digits. Different names
/// have different tokens.
pub fn subject_token(name: &str) -> String {
    let mut token = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') {
            token.push(char::from(byte));
        } else {
            let _ = write!(token, "={byte:02x}");
        }
    }
    if token.is_empty() {
        token.push('=');
    }
    token
}

#[cfg(test)]
mod tests {
    use super::subject_token;

    #[test]
    fn tokens_have_no_special_characters_and_differ() {
        for (name, expected) in [
            ("excel", "excel"),
            ("a.b", "a=2eb"),
            ("a=2eb", "a=3d2eb"),
            ("*", "=2a"),
            (">", "=3e"),
            ("", "="),
            (" ", "=20"),
        ] {
            assert_eq!(subject_token(name), expected);
        }
        assert!(subject_token("表格").is_ascii());
    }
}
