//! Corrects misspelt words that are in the tables: verbs at the start of a clause, and longer nouns.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use crate::lexer::lexicon;
use crate::lexer::literal_scanner;
use crate::lexer::split;
use crate::lexer::stop_words::is_stop;
use crate::lexer::token::{Token, TokenKind, tokenize};
use crate::selection::verb_class::VERBS;

/// The minimum length of a verb to correct, in letters; shorter verbs resemble too many words.
const MIN_VERB_LETTERS: usize = 5;
/// The minimum length of a noun to correct, in letters.
const MIN_NOUN_LETTERS: usize = 7;

/// Words that may precede the verb of a clause.
const BEFORE_VERB: [&str; 16] = [
    "please", "pls", "plz", "kindly", "and", "then", "to", "you", "now", "just", "also", "me", "so", "hey",
    "hi", "finally",
];

/// Nouns of the tables, including the single words of phrases.
static NOUNS: LazyLock<BTreeSet<&'static str>> = LazyLock::new(|| {
    lexicon::thing_words()
        .flat_map(|words| words.split('_'))
        .filter(|word| word.len() >= MIN_NOUN_LETTERS && word.bytes().all(|byte| byte.is_ascii_lowercase()))
        .collect()
});

/// The text with misspelt words corrected; `None` if there are none.
pub(crate) fn correct(text: &str) -> Option<String> {
    let literals = literal_scanner::find(text);
    let all = tokenize(text);
    let mut result = String::with_capacity(text.len());
    let mut copied = 0;
    for (at, token) in all.iter().enumerate() {
        let inside = literals.iter().any(|found| found.start < token.end && token.start < found.end);
        if token.kind != TokenKind::Word || inside || is_known(token) {
            continue;
        }
        let before = at.checked_sub(1).and_then(|at| all.get(at));
        let begins =
            before.is_none_or(|before| before.kind == TokenKind::Mark || before.is_any(&BEFORE_VERB));
        let lower = token.text.to_lowercase();
        let name = token.is_capital() && at > 0;
        let correction = match begins {
            _ if name => None,
            true => verb(&lower).or_else(|| noun(&lower)),
            false => noun(&lower),
        };
        if let Some(correction) = correction {
            result.push_str(&text[copied..token.start]);
            result.push_str(correction);
            copied = token.end;
        }
    }
    (copied > 0).then(|| {
        result.push_str(&text[copied..]);
        result
    })
}

fn is_known(token: &Token<'_>) -> bool {
    let lower = token.text.to_lowercase();
    !lower.bytes().all(|byte| byte.is_ascii_lowercase())
        || is_stop(&lower)
        || split::is_verb(&lower)
        || !lexicon::word_matches(token.text, &tokenize(token.text), &|_| false).is_empty()
        || VERBS.english.contains_key(&lower)
        || VERBS.tools.contains_key(lower.as_str())
        || NOUNS.contains(lower.trim_end_matches('s'))
        || crate::assembly::coverage::is_function_word(token)
}

/// The verb that differs by a missing or doubled letter or by two swapped letters, if there is exactly one.
fn verb(word: &str) -> Option<&'static str> {
    if word.len() < MIN_VERB_LETTERS {
        return None;
    }
    let mut candidates = VERBS.english.keys().filter(|known| {
        known.len() >= MIN_VERB_LETTERS && !known.contains(' ') && is_near_misspelling(known, word)
    });
    let first = candidates.next()?;
    candidates.next().is_none().then_some(first.as_str())
}

/// The noun that differs by a slip or by one wrong letter, if there is exactly one.
fn noun(word: &str) -> Option<&'static str> {
    if word.len() + 1 < MIN_NOUN_LETTERS {
        return None;
    }
    let mut candidates =
        NOUNS.iter().filter(|known| is_near_misspelling(known, word) || is_wrong_letter(known, word));
    let first = candidates.next()?;
    candidates.next().is_none().then_some(*first)
}

/// Whether a word is another with one letter missing or doubled, or with two neighbours swapped. The first letter must match.
fn is_near_misspelling(known: &str, word: &str) -> bool {
    let (known, word) = (known.as_bytes(), word.as_bytes());
    let same = known.iter().zip(word).take_while(|(a, b)| a == b).count();
    if same == 0 || known == word {
        return false;
    }
    let (left, right) = (&known[same..], &word[same..]);
    match (left, right) {
        ([a, b, rest @ ..], [c, d, others @ ..]) if known.len() == word.len() => {
            a == d && b == c && rest == others
        }
        ([_, rest @ ..], _) if known.len() == word.len() + 1 => rest == right,
        (_, [doubled, others @ ..]) if known.len() + 1 == word.len() => {
            left == others && *doubled == word[same - 1]
        }
        _ => false,
    }
}

fn is_wrong_letter(known: &str, word: &str) -> bool {
    known.len() == word.len()
        && known.as_bytes()[0] == word.as_bytes()[0]
        && known.bytes().zip(word.bytes()).filter(|(a, b)| a != b).count() == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corrects_misspelt_words() {
        let check = |text: &str, expect: Option<&str>| assert_eq!(correct(text).as_deref(), expect, "{text}");
        check("delte row 3 of sheet A in a.xlsx", Some("delete row 3 of sheet A in a.xlsx"));
        check("please creat a branch x", Some("please create a branch x"));
        check("put it in my calender", Some("put it in my calendar"));
        check("search the knowlege graph", Some("search the knowledge graph"));
        check("write \"delte\" to delte.txt", None);
        check("rename the sheet Calender to Plan", None);
        check("the states of the crates", None);
        check("remote work", None);
    }
}
