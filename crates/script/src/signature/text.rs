//! Foreign text inside TypeScript: comments, string literals and names that cannot end early or hide anything.

/// Whether a name can follow a dot and can be a key without quotes. Names with other letters than ASCII are quoted.
pub fn is_identifier(name: &str) -> bool {
    let is_start = |letter: char| letter.is_ascii_alphabetic() || matches!(letter, '_' | '$');
    name.starts_with(is_start) && name.chars().all(|letter| is_start(letter) || letter.is_ascii_digit())
}

/// A key of an object type.
pub(super) fn key(name: &str) -> String {
    if is_identifier(name) { name.to_owned() } else { literal(name) }
}

/// A string literal.
pub(super) fn literal(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            letter if is_hidden(letter) => {
                let mut units = [0; 2];
                for unit in letter.encode_utf16(&mut units) {
                    quoted.push_str(&format!("\\u{unit:04x}"));
                }
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

/// The text of a comment: one line of at most `max_chars` characters that cannot end the comment.
pub(super) fn comment(text: &str, max_chars: usize) -> String {
    let mut line = String::new();
    let mut count = 0;
    for word in text.split(|letter: char| letter.is_whitespace() || letter.is_control()) {
        let word: String = word.chars().filter(|letter| !is_hidden(*letter)).collect();
        if word.is_empty() {
            continue;
        }
        let length = word.chars().count() + usize::from(!line.is_empty());
        if count + length > max_chars {
            if line.is_empty() {
                line.extend(word.chars().take(max_chars));
            }
            line.push('…');
            break;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&word);
        count += length;
    }
    line.replace("*/", "* /").replace("/*", "/ *")
}

/// Characters that show nothing, or change the order or the lines of what is shown.
fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{00ad}'
                | '\u{034f}'
                | '\u{061c}'
                | '\u{115f}'
                | '\u{1160}'
                | '\u{17b4}'
                | '\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn comments_do_not_end_early() {
        for (text, expect) in [
            ("a\nb\r\n  c\td", "a b c d"),
            ("end */ alert() /* again", "end * / alert() / * again"),
            ("**//", "** //"),
            ("*\u{200b}/", "* /"),
            ("a\u{202e}b\u{2066}c\u{e0041}", "abc"),
            ("a\u{2028}b\u{0}c", "a b c"),
            ("", ""),
        ] {
            assert_eq!(comment(text, 100), expect, "{text:?}");
        }
        assert_eq!(comment("one two three", 9), "one two…");
        assert_eq!(comment("abcdefghij", 4), "abcd…");
    }

    #[test]
    fn names_that_are_no_identifiers_are_quoted() {
        for (name, expect) in [
            ("a_B$1", "a_B$1"),
            ("1a", "\"1a\""),
            ("get-item", "\"get-item\""),
            ("", "\"\""),
            ("日期", "\"日期\""),
            ("a\"b\\", "\"a\\\"b\\\\\""),
            ("a\u{202e}\u{2028}", "\"a\\u202e\\u2028\""),
            ("\u{e0041}", "\"\\udb40\\udc41\""),
        ] {
            assert_eq!(key(name), expect);
        }
    }

    proptest! {
        #[test]
        fn no_text_leaves_its_comment_or_literal(text in ".*") {
            let line = comment(&text, 50);
            let breaks = ['\n', '\r', '\u{2028}', '\u{2029}', '\u{202e}'];
            prop_assert!(!line.contains("*/") && !line.contains(breaks));
            prop_assert!(line.chars().count() <= 120);
            let quoted = literal(&text);
            prop_assert_eq!(serde_json::from_str::<String>(&quoted).unwrap(), text);
            prop_assert!(!quoted.contains(breaks));
        }
    }
}
