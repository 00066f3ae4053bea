//! The set of letters of a word, as a fast filter for similar words.

/// The letters of a word as a bit set. One typo changes at most two bits.
pub(crate) fn letters_of(word: &str) -> u64 {
    word.chars().fold(0, |letters, c| {
        letters
            | 1 << match c {
                'a'..='z' => u32::from(c) - u32::from('a'),
                '0'..='9' => 26 + u32::from(c) - u32::from('0'),
                other => 36 + u32::from(other) % 28,
            }
    })
}
