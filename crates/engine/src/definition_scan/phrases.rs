//! Detects phrases that address the model instead of the reader of a definition. The patterns are data, in
//! `phrases.tsv`; they are matched against normalised text, so that formatting and homoglyphs do not hide them.

use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use aho_corasick::AhoCorasick;
use regex::Regex;
use toolhub_core::lang::LocalizedText;

use super::characters::decode_tag;
use super::letters::plain;
use super::{FindingKind, TextFinding, quote_of};

const TABLE: &str = include_str!("phrases.tsv");

static PHRASES: LazyLock<Phrases> = LazyLock::new(|| Phrases::read(TABLE));

struct Phrases {
    rows: Vec<Row>,
    /// Finds the keywords of all rows in one pass, so that most texts need no regular expression.
    keys: Option<AhoCorasick>,
    /// The row and keyword group of each keyword.
    owners: Vec<(usize, u32)>,
}

struct Row {
    kind: FindingKind,
    /// One bit per keyword group; one keyword of each group must occur.
    groups: u32,
    pattern: &'static str,
    /// Compiled when its keywords first occur.
    compiled: OnceLock<Option<Regex>>,
    why: LocalizedText,
}

impl Phrases {
    fn read(table: &'static str) -> Self {
        let mut keys = Vec::new();
        let (mut rows, mut owners) = (Vec::new(), Vec::new());
        for line in table.lines().filter(|line| !line.starts_with('#')) {
            let [kind, words, pattern, en, zh] = line.split('\t').collect::<Vec<_>>()[..] else { continue };
            let Some(kind) = FindingKind::from_name(kind) else { continue };
            let mut groups = 0;
            for (index, group) in words.split(';').enumerate() {
                let bit = 1 << index;
                groups |= bit;
                for word in group.split(',') {
                    keys.push(word);
                    owners.push((rows.len(), bit));
                }
            }
            rows.push(Row {
                kind,
                groups,
                pattern,
                compiled: OnceLock::new(),
                why: LocalizedText::new(en, zh),
            });
        }
        Self { rows, owners, keys: AhoCorasick::new(&keys).ok() }
    }
}

/// Phrases in a text that address the model.
pub(super) fn scan(text: &str) -> Vec<TextFinding> {
    let phrases = &*PHRASES;
    let Some(keys) = &phrases.keys else { return Vec::new() };
    let read = as_read(text, |_, _| {});
    let mut met = vec![0_u32; phrases.rows.len()];
    for key in keys.find_overlapping_iter(&read) {
        if let Some((row, group)) = phrases.owners.get(key.pattern().as_usize()) {
            met[*row] |= group;
        }
    }
    let candidates = phrases.rows.iter().zip(met).filter(|(row, met)| row.groups == *met);
    let seen = candidates.filter_map(|(row, _)| {
        let pattern = row.compiled.get_or_init(|| compile(row.pattern)).as_ref()?;
        let matched = pattern.find(&read)?;
        Some(TextFinding {
            kind: row.kind,
            quote: quote_of(original(text, matched.range())),
            why: row.why.clone(),
        })
    });
    seen.collect()
}

/// Uses ASCII word boundaries: Chinese has none, and Unicode tables take long to compile.
fn compile(pattern: &str) -> Option<Regex> {
    Regex::new(&pattern.replace(r"\b", r"(?-u:\b)")).ok()
}

/// Normalises a text: lowercase plain letters, single spaces, no invisible characters. For each character of the
/// original, `step` receives the length of the output so far and the character's offset.
fn as_read(original: &str, mut step: impl FnMut(usize, usize)) -> String {
    let mut read = String::with_capacity(original.len());
    for (at, character) in original.char_indices() {
        step(read.len(), at);
        if character.is_ascii_alphanumeric() {
            read.push(character.to_ascii_lowercase());
            continue;
        }
        let character = decode_tag(character).unwrap_or(character);
        if character.is_whitespace() {
            if !read.ends_with(' ') {
                read.push(' ');
            }
        } else if is_read(character) {
            read.extend(plain(character).to_lowercase());
        }
    }
    read
}

/// The original text of a match in the normalised text.
fn original(text: &str, range: Range<usize>) -> &str {
    let (mut start, mut end) = (0, text.len());
    as_read(text, |length, at| {
        if length <= range.start {
            start = at;
        }
        if length >= range.end {
            end = end.min(at);
        }
    });
    text.get(start..end).unwrap_or_default()
}

/// Whether a character is kept: Markdown emphasis, code marks and invisible characters are not.
fn is_read(character: char) -> bool {
    !matches!(
        character,
        '*' | '`'
            | '\u{AD}'
            | '\u{34F}'
            | '\u{180E}'
            | '\u{200B}'..='\u{200F}'
            | '\u{202A}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}'
            | '\u{FE00}'..='\u{FE0F}'
            | '\u{FEFF}'
            | '\u{E0000}'..='\u{E01EF}'
    ) && !character.is_control()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrase_table_is_valid() {
        let lines = TABLE.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(PHRASES.rows.len(), lines, "a line has five columns and a known kind");
        assert!(PHRASES.keys.is_some());
        for row in &PHRASES.rows {
            assert!(compile(row.pattern).is_some(), "{}", row.pattern);
        }
    }
}
