//! Words of a command line, quoted so that a user can copy the line into a POSIX shell.

use std::fmt::Write as _;

/// Characters other than letters and digits that a shell reads as they are. `…` stands for an omitted value in examples.
const PLAIN: &str = "-_=:./,@%+…";

/// Quotes a word, if necessary, so that a shell reads it as one word with this text. The result has no control characters: a
/// word with such is written with escapes, as `$'a\nb'`.
pub fn shell_quote(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || PLAIN.contains(letter);
    // `=word` is a path in zsh.
    if !word.is_empty() && !word.starts_with('=') && word.chars().all(is_plain) {
        return word.to_owned();
    }
    if !word.contains(char::is_control) {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    let mut quoted = "$'".to_owned();
    for letter in word.chars() {
        match letter {
            '\n' => quoted.push_str(r"\n"),
            '\r' => quoted.push_str(r"\r"),
            '\t' => quoted.push_str(r"\t"),
            '\'' | '\\' => quoted.extend(['\\', letter]),
            // Always four digits, so that no further digit of the text belongs to the number.
            _ if letter.is_control() => {
                let _ = write!(quoted, r"\u{:04x}", u32::from(letter));
            }
            _ => quoted.push(letter),
        }
    }
    quoted.push('\'');
    quoted
}

/// A command line of these words, each quoted if necessary.
pub fn command_line<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words.into_iter().map(shell_quote).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_what_a_shell_would_interpret() {
        for (word, expected) in [
            ("calculate", "calculate"),
            ("./my-server.py", "./my-server.py"),
            ("--yes", "--yes"),
            ("path=新.txt", "path=新.txt"),
            ("读取表格", "读取表格"),
            ("名 字", "'名 字'"),
            ("value=…", "value=…"),
            ("", "''"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("it's; rm -rf /", r"'it'\''s; rm -rf /'"),
            ("\"a\"", "'\"a\"'"),
            (r"a\b", r"'a\b'"),
            ("$(id)", "'$(id)'"),
            ("${KEY}", "'${KEY}'"),
            ("`id`", "'`id`'"),
            ("*.rs", "'*.rs'"),
            ("~/notes", "'~/notes'"),
            ("#a", "'#a'"),
            ("!!", "'!!'"),
            ("=ls", "'=ls'"),
            ("a,b", "a,b"),
            ("{a,b}", "'{a,b}'"),
            ("。", "'。'"),
        ] {
            assert_eq!(shell_quote(word), expected);
        }
    }

    #[test]
    fn escapes_control_characters() {
        for (word, expected) in [
            ("a\nb", r"$'a\nb'"),
            ("it's\r\t\\", r"$'it\'s\r\t\\'"),
            ("\u{1b}[2K1", r"$'\u001b[2K1'"),
            ("\u{7f}\u{9b}", r"$'\u007f\u009b'"),
        ] {
            assert_eq!(shell_quote(word), expected);
        }
    }

    #[test]
    fn joins_quoted_words() {
        assert_eq!(command_line(["sh", "-c", "echo 'a b'"]), r"sh -c 'echo '\''a b'\'''");
        assert_eq!(command_line([]), "");
    }
}
