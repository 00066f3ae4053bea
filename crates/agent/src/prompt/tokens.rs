//! Estimates the number of tokens of a text; errs high, since models differ.

/// Consecutive letters and digits per token.
const CHARS_PER_TOKEN: usize = 4;

/// Estimates the number of tokens: one per four letters or digits of a word, one per other character except spaces.
pub fn estimate_tokens(text: &str) -> usize {
    let (mut count, mut word) = (0, 0_usize);
    for letter in text.chars() {
        if letter.is_ascii_alphanumeric() {
            word += 1;
            continue;
        }
        count += word.div_ceil(CHARS_PER_TOKEN);
        word = 0;
        // A space is counted with the word after it.
        if letter != ' ' {
            count += 1;
        }
    }
    count + word.div_ceil(CHARS_PER_TOKEN)
}

#[cfg(test)]
mod tests {
    use super::estimate_tokens;

    #[test]
    fn counts_tokens_of_words_characters_and_punctuation() {
        let check = |text: &str, expect: usize| assert_eq!(estimate_tokens(text), expect, "{text}");
        check("", 0);
        check("word", 1);
        check("calculate this", 4);
        check("读取表格", 4);
        check("a, b", 3);
        check("{\"a\": 1}", 7);
    }
}
