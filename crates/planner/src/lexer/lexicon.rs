//! Finds the words of requests and tools that are in the tables of actions and objects. Of overlapping words, the longest is
//! used.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::lexer::labels;
use crate::lexer::token::{Token, TokenKind, is_han};

const VERBS: &str = include_str!("../../data/verbs.tsv");
const NOUNS: &str = include_str!("../../data/things.tsv");

/// Minimum length of a word for spelling correction, in letters.
const MIN_CORRECTED_LETTERS: usize = 4;

/// A row of a table.
#[derive(Debug)]
pub(crate) struct TableRow {
    pub(crate) name: &'static str,
    /// The mark after its name: `!`, `~`, `?` or none.
    pub(crate) mark: Option<char>,
}

/// The meanings of a word, as rows of the tables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Meaning {
    pub(crate) verbs: Vec<usize>,
    pub(crate) things: Vec<usize>,
}

/// A word of the tables and its byte range.
#[derive(Debug, Clone)]
pub(crate) struct WordMatch {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) meaning: Meaning,
}

struct Lexicon {
    verbs: Vec<TableRow>,
    things: Vec<TableRow>,
    /// By the first character; longest first.
    chinese: HashMap<char, Vec<(&'static str, Meaning)>>,
    /// By the first word; longest first.
    english: HashMap<&'static str, Vec<(Vec<&'static str>, Meaning)>>,
}

static LEXICON: LazyLock<Lexicon> = LazyLock::new(|| {
    let mut meanings: HashMap<&'static str, Meaning> = HashMap::new();
    let verbs = read(VERBS, &mut meanings, |meaning| &mut meaning.verbs);
    let things = read(NOUNS, &mut meanings, |meaning| &mut meaning.things);
    let mut chinese: HashMap<char, Vec<(&'static str, Meaning)>> = HashMap::new();
    let mut english: HashMap<&'static str, Vec<(Vec<&'static str>, Meaning)>> = HashMap::new();
    for (word, meaning) in meanings {
        match word.chars().next().filter(|_| word.contains(is_han)) {
            Some(first) => chinese.entry(first).or_default().push((word, meaning)),
            None => {
                let words: Vec<&'static str> = word.split('_').collect();
                english.entry(words[0]).or_default().push((words, meaning));
            }
        }
    }
    for entries in chinese.values_mut() {
        entries.sort_by_key(|(word, _)| std::cmp::Reverse(word.len()));
    }
    for entries in english.values_mut() {
        entries.sort_by_key(|(words, _)| std::cmp::Reverse(words.len()));
    }
    Lexicon { verbs, things, chinese, english }
});

/// Parses a table. Words of rows named `-` are recognised and have no meaning.
fn read(
    table: &'static str,
    meanings: &mut HashMap<&'static str, Meaning>,
    of: fn(&mut Meaning) -> &mut Vec<usize>,
) -> Vec<TableRow> {
    let mut rows = Vec::new();
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let mut columns = line.split('\t');
        let head = columns.next().unwrap_or_default();
        let name = head.trim_end_matches(['!', '~', '?']);
        let row = rows.len();
        for word in columns.flat_map(str::split_whitespace) {
            let meaning = meanings.entry(word).or_default();
            if name != "-" && !of(meaning).contains(&row) {
                of(meaning).push(row);
            }
        }
        rows.push(TableRow {
            name,
            mark: head.chars().last().filter(|mark| matches!(mark, '!' | '~' | '?')),
        });
    }
    rows
}

/// The row of an action.
pub(crate) fn verb(row: usize) -> &'static TableRow {
    &LEXICON.verbs[row]
}

/// The row of a kind of object.
pub(crate) fn thing(row: usize) -> &'static TableRow {
    &LEXICON.things[row]
}

/// The English words of the table of objects. The words of a compound are joined by `_`.
pub(crate) fn thing_words() -> impl Iterator<Item = &'static str> {
    let rows = NOUNS.lines().filter(|line| !line.starts_with('#'));
    rows.flat_map(|row| row.split('\t').skip(1).flat_map(str::split_whitespace))
        .filter(|word| word.is_ascii())
}

/// The row number of a kind of object.
pub(crate) fn thing_named(name: &str) -> Option<usize> {
    LEXICON.things.iter().position(|row| row.name == name)
}

/// Whether a text is only the noun for a kind of object, such as `sheet`, and therefore not a name.
pub(crate) fn is_kind(text: &str) -> bool {
    let words = crate::lexer::token::tokenize(text);
    let lower = text.to_lowercase();
    let found = word_matches(text, &words, &|_| false);
    found.len() == 1
        && found[0].start == 0
        && found[0].end == text.len()
        && lower == text
        && found[0]
            .meaning
            .things
            .iter()
            .any(|row| matches!(thing(*row).name, "sheet" | "workbook" | "cell" | "file"))
}

/// The words of the tables among the tokens that are not taken.
pub(crate) fn word_matches(
    text: &str,
    tokens: &[Token<'_>],
    is_taken: &dyn Fn(&Token<'_>) -> bool,
) -> Vec<WordMatch> {
    let mut found: Vec<WordMatch> = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let word_match = (!is_taken(token)).then(|| match token.kind {
            TokenKind::Han => chinese(text, tokens, at, is_taken),
            TokenKind::Word => english(tokens, at, is_taken),
            TokenKind::Number | TokenKind::Mark => None,
        });
        match word_match.flatten() {
            Some(word_match) => {
                at += tokens[at..].iter().take_while(|token| token.start < word_match.end).count().max(1);
                if word_match.meaning != Meaning::default() {
                    found.push(word_match);
                }
            }
            None => at += 1,
        }
    }
    found
}

fn chinese(
    text: &str,
    tokens: &[Token<'_>],
    at: usize,
    is_taken: &dyn Fn(&Token<'_>) -> bool,
) -> Option<WordMatch> {
    let start = tokens[at].start;
    let rest = &text[start..];
    let entries = LEXICON.chinese.get(&rest.chars().next()?)?;
    let (word, length, meaning) = entries.iter().find_map(|(word, meaning)| {
        let length = begins(rest, word)?;
        let free = !tokens[at..].iter().take_while(|token| token.start < start + length).any(is_taken);
        free.then_some((*word, length, meaning))
    })?;
    // 行 and 列 have many meanings; they are rows and columns only after a number, a letter or a determiner.
    if matches!(word, "行" | "列") && !is_counted(&text[..start]) {
        return None;
    }
    Some(WordMatch { start, end: start + length, meaning: meaning.clone() })
}

/// The length of `word` at the beginning of `text`. A blank may precede Latin letters.
fn begins(text: &str, word: &str) -> Option<usize> {
    let mut rest = text;
    for c in word.chars() {
        if c.is_ascii() && rest.len() < text.len() {
            rest = rest.trim_start();
        }
        let first = rest.chars().next()?;
        if !first.eq_ignore_ascii_case(&c) {
            return None;
        }
        rest = &rest[first.len_utf8()..];
    }
    Some(text.len() - rest.len())
}

fn is_counted(before: &str) -> bool {
    before.trim_end().ends_with(|c: char| {
        c.is_ascii_alphanumeric() || "一二三四五六七八九十两几第整空该这那每首末前后条数多些按".contains(c)
    })
}

fn english(tokens: &[Token<'_>], at: usize, is_taken: &dyn Fn(&Token<'_>) -> bool) -> Option<WordMatch> {
    let token = &tokens[at];
    for form in forms(token.text) {
        let Some(entries) = LEXICON.english.get(form.as_str()) else { continue };
        let fits = |words: &[&str]| {
            words.iter().enumerate().skip(1).all(|(offset, word)| {
                tokens.get(at + offset).is_some_and(|token| token.is_word(word) && !is_taken(token))
            })
        };
        if let Some((words, meaning)) = entries.iter().find(|(words, _)| fits(words)) {
            let end = tokens[at + words.len() - 1].end;
            return Some(WordMatch { start: token.start, end, meaning: meaning.clone() });
        }
    }
    None
}

/// A word as written, and without endings as in `merging`, `inserted` and `deletes`.
fn forms(word: &str) -> Vec<String> {
    let lower = word.to_lowercase();
    let lower = lower.trim_end_matches("'s").trim_end_matches("’s").to_owned();
    let mut found = vec![lower.clone(), labels::stem(&lower)];
    for ending in ["ing", "ed"] {
        if let Some(root) = lower.strip_suffix(ending).filter(|root| root.len() > 2) {
            found.push(root.to_owned());
            found.push(format!("{root}e"));
            let mut letters = root.chars().rev();
            if letters.next() == letters.next() {
                found.push(root[..root.len() - 1].to_owned());
            }
        }
    }
    found.dedup();
    found
}

/// The verb that a misspelt word stands for: two letters swapped, or one added, missing or wrong.
pub(crate) fn misspelt(word: &str) -> Option<&'static Meaning> {
    let lower = word.to_lowercase();
    if lower.len() < MIN_CORRECTED_LETTERS || !lower.is_ascii() {
        return None;
    }
    let entries = LEXICON.english.iter().filter(|(known, _)| known.len() >= MIN_CORRECTED_LETTERS);
    let singles = entries.flat_map(|(known, entries)| {
        entries
            .iter()
            .filter(|(words, meaning)| words.len() == 1 && !meaning.verbs.is_empty())
            .map(move |entry| (*known, &entry.1))
    });
    // Assumes that the first letter is right. The alphabetical minimum makes the result deterministic.
    singles
        .filter(|(known, _)| known.as_bytes()[0] == lower.as_bytes()[0] && is_near(known, &lower))
        .min_by_key(|(known, _)| *known)
        .map(|(_, meaning)| meaning)
}

fn is_near(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let same = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    let (one, other) = (&one[same..], &other[same..]);
    match (one, other) {
        ([a, rest @ ..], [b, others @ ..]) if one.len() == other.len() => {
            rest == others
                || matches!((rest, others), ([c, rest @ ..], [d, others @ ..]) if a == d && b == c && rest == others)
        }
        ([_, rest @ ..], _) if one.len() == other.len() + 1 => rest == other,
        (_, [_, rest @ ..]) if one.len() + 1 == other.len() => one == rest,
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::token::tokenize;

    fn names(text: &str) -> Vec<&'static str> {
        let found = word_matches(text, &tokenize(text), &|_| false);
        let things =
            found.iter().flat_map(|word_match| word_match.meaning.things.iter().map(|row| thing(*row).name));
        things.collect()
    }

    #[test]
    fn prefers_longest_word() {
        assert_eq!(names("做个数据透视表"), ["pivot"]);
        assert_eq!(names("表头加粗"), Vec::<&str>::new());
        assert_eq!(names("which sheets are there"), ["metadata"]);
        assert_eq!(names("第 3 行的行程"), ["row"]);
        assert_eq!(names("deleting the merged columns"), ["merged", "column"]);
    }

    #[test]
    fn recognises_misspelt_verbs() {
        let verbs = |word: &str| misspelt(word).map(|meaning| verb(meaning.verbs[0]).name);
        assert_eq!(verbs("delte"), Some("delete"));
        assert_eq!(verbs("raed"), Some("read"));
        assert_eq!(verbs("inser"), Some("write"));
        assert_eq!(verbs("banana"), None);
    }
}
