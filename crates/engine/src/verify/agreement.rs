//! Text similarity: the share of common words; for Chinese, of character pairs.

use std::collections::HashSet;

/// Jaccard similarity of the word sets, from 0 to 1.
pub fn similarity(left: &str, right: &str) -> f64 {
    let (left, right) = (words(left), words(right));
    if left.is_empty() && right.is_empty() {
        return 1.0;
    }
    let both = left.intersection(&right).count();
    both as f64 / (left.len() + right.len() - both) as f64
}

/// The lowercase words of a text, and character pairs of its Chinese parts.
fn words(text: &str) -> HashSet<String> {
    let mut word_set = HashSet::new();
    let mut word = String::new();
    let mut run: Vec<char> = Vec::new();
    for letter in text.chars().chain([' ']) {
        let han = is_han(letter);
        if !han && !run.is_empty() {
            add_pairs(&mut word_set, &run);
            run.clear();
        }
        if (han || !letter.is_alphanumeric()) && !word.is_empty() {
            word_set.insert(std::mem::take(&mut word));
        }
        if han {
            run.push(letter);
        } else if letter.is_alphanumeric() {
            word.extend(letter.to_lowercase());
        }
    }
    word_set
}

fn add_pairs(word_set: &mut HashSet<String>, run: &[char]) {
    if let [single] = run {
        word_set.insert(single.to_string());
    }
    word_set.extend(run.windows(2).map(|pair| pair.iter().collect::<String>()));
}

fn is_han(letter: char) -> bool {
    matches!(letter, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similarity_is_the_share_of_common_words() {
        let check = |left: &str, right: &str, expect: f64| {
            let found = similarity(left, right);
            assert!((found - expect).abs() < 1e-9, "{left} / {right}: {found}");
        };
        check("", "", 1.0);
        check("a b", "B, A!", 1.0);
        check("a b", "c d", 0.0);
        check("a b c", "b c d", 0.5);
        check("今天下雨", "今天下雪", 0.5);
        check("雨", "雨", 1.0);
    }
}
