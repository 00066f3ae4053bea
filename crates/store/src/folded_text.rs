//! Case-insensitive search in texts.

/// Whether a text contains `lowercase`, a text in lower case, if its own case is ignored.
pub(crate) fn folded_contains(text: &str, lowercase: &str) -> bool {
    if !text.is_ascii() {
        return text.to_lowercase().contains(lowercase);
    }
    // Most texts are ASCII and need no copy.
    let (text, lowercase) = (text.as_bytes(), lowercase.as_bytes());
    lowercase.is_empty() || text.windows(lowercase.len()).any(|part| part.eq_ignore_ascii_case(lowercase))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_lower_case_texts_contain() {
        let texts = ["", "a", "Order 12 of K", "ORDER", "\u{212a}elvin", "Über 京都", "İstanbul", "ab\0C"];
        let needles = ["", "a", "order", "order 12", "k", "kelvin", "über", "京", "i", "b\0c", "orders"];
        for text in texts {
            for needle in needles {
                let expected = text.to_lowercase().contains(needle);
                assert_eq!(folded_contains(text, needle), expected, "{needle:?} in {text:?}");
            }
        }
    }
}
