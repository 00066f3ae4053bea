//! The language of a request.

use toolhub_core::lang::Lang;

/// The language of a request. Prompts to the model use the same language.
pub fn detect_language(request: &str) -> Lang {
    let chinese = request.chars().any(|letter| ('\u{4e00}'..='\u{9fff}').contains(&letter));
    if chinese { Lang::Zh } else { Lang::En }
}

/// Whether a request is written in Chinese, as opposed to containing a Chinese name: `rename 一月 to Jan`.
pub(crate) fn is_chinese(request: &str) -> bool {
    let han = request.chars().filter(|letter| ('\u{4e00}'..='\u{9fff}').contains(letter)).count();
    let is_word =
        |word: &&str| !word.contains(['.', '/']) && word.chars().all(|letter| letter.is_ascii_alphabetic());
    let words = request.split_whitespace().filter(|word| !word.is_empty()).filter(is_word).count();
    han > 0 && han >= words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detects_language_of_request() {
        for request in ["现在几点", "README.md 里有什么", "读取 sales.xlsx 的 March", "把 Sheet1 改名为 Jan"]
        {
            assert!(is_chinese(request), "{request}");
        }
        for request in ["rename 一月 to Jan in 2026.xlsx", "what time is it", "2 + 2", ""] {
            assert!(!is_chinese(request), "{request}");
        }
    }
}
