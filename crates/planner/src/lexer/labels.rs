//! Labels of parameters in a request: families of synonyms in both languages, and their spans in a text.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::lexer::mention::ParsedText;
use crate::lexer::name::has_han;
use crate::lexer::token::TokenKind;

const TABLE: &str = include_str!("../../data/labels.tsv");

static FAMILIES: LazyLock<HashMap<&'static str, Vec<&'static str>>> = LazyLock::new(|| {
    let mut families: HashMap<&'static str, Vec<&'static str>> = HashMap::new();
    for row in TABLE.lines().filter(|line| !line.starts_with('#')) {
        let names: Vec<&'static str> = row.split_whitespace().collect();
        let english = row.split('\t').next().unwrap_or_default();
        for name in english.split_whitespace() {
            families.entry(name).or_default().extend(names.iter().filter(|other| **other != name));
        }
    }
    families
});

/// A name of a parameter, and its weight.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Label {
    pub(crate) words: Vec<String>,
    pub(crate) strength: f32,
}

/// The byte range of a label in a text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LabelSpan {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) strength: f32,
}

impl Label {
    pub(crate) fn new(name: &str, strength: f32) -> Self {
        let words = if has_han(name) {
            vec![name.to_owned()]
        } else {
            name.split(['_', ' ']).filter(|word| !word.is_empty()).map(stem).collect()
        };
        Self { words, strength }
    }
}

/// The other names of a family.
pub(crate) fn family(name: &str) -> &'static [&'static str] {
    FAMILIES.get(name).map_or(&[], Vec::as_slice)
}

/// The stem of a word: `sides` becomes `side`, `cities` becomes `city`.
pub(crate) fn stem(word: &str) -> String {
    let word = word.to_lowercase();
    let word = word.strip_suffix("'s").or_else(|| word.strip_suffix("’s")).unwrap_or(&word);
    if let Some(stem) = word.strip_suffix("ies").filter(|stem| stem.len() > 1) {
        return format!("{stem}y");
    }
    let keeps = word.ends_with("ss") || word.ends_with("us") || word.ends_with("is") || word.len() < 4;
    if keeps { word.to_owned() } else { word.strip_suffix('s').unwrap_or(word).to_owned() }
}

/// Whether two words differ only in their endings or hyphens: `detail` and `detailed`, `multi-player` and `multiplayer`.
pub(crate) fn alike(word: &str, candidate: &str) -> bool {
    let (word, candidate) = (word.to_lowercase().replace('-', ""), candidate.to_lowercase().replace('-', ""));
    let same = word.bytes().zip(candidate.bytes()).take_while(|(one, other)| one == other).count();
    same >= 5 && same + 3 >= word.len().max(candidate.len())
}

/// 底色: whether a character is only a part of a longer label.
fn in_longer(text: &str, start: usize, length: usize) -> bool {
    static LONGER: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
        let names = TABLE.lines().filter(|line| !line.starts_with('#')).flat_map(str::split_whitespace);
        names.filter(|name| has_han(name) && name.chars().nth(1).is_some()).collect()
    });
    let character = &text[start..start + length];
    LONGER.iter().any(|name| {
        name.match_indices(character).any(|(at, _)| {
            start
                .checked_sub(at)
                .is_some_and(|from| text.get(from..).is_some_and(|rest| rest.starts_with(name)))
        })
    })
}

/// Finds all spans of these labels in a text.
pub(crate) fn find(labels: &[Label], parsed: &ParsedText<'_>, stems: &[String]) -> Vec<LabelSpan> {
    let mut found = Vec::new();
    for label in labels {
        let Some(first) = label.words.first() else { continue };
        if has_han(first) {
            let single = first.chars().nth(1).is_none();
            for (start, text) in parsed.text.match_indices(first.as_str()) {
                if single && in_longer(parsed.text, start, text.len()) {
                    continue;
                }
                found.push(LabelSpan { start, end: start + text.len(), strength: label.strength });
            }
            continue;
        }
        let count = label.words.len();
        for at in 0..stems.len().saturating_sub(count - 1) {
            if stems[at..at + count] == label.words[..] {
                let (start, end) = (parsed.tokens[at].start, parsed.tokens[at + count - 1].end);
                found.push(LabelSpan { start, end, strength: label.strength });
            }
        }
    }
    found
}

/// The stems of a text's tokens.
pub(crate) fn stems(parsed: &ParsedText<'_>) -> Vec<String> {
    let stem_of = |token: &crate::lexer::token::Token<'_>| match token.kind {
        TokenKind::Word => stem(token.text),
        _ => token.text.to_owned(),
    };
    parsed.tokens.iter().map(stem_of).collect()
}

/// Words that may occur between a label and its value.
const FILLERS: [&str; 34] = [
    "of", "is", "are", "as", "=", ":", "：", "a", "an", "the", "to", "at", "be", "was", "in", "by", "named",
    "called", "equals", "equal", "set", "with", "于", "为", "是", "的", "等", "成", "有", "叫", "(",
    "around", "about", "that",
];

/// Words between a value and the object that contains it.
const SPOTS: [&str; 9] =
    ["in our", "in my", "in this", "in that", "from our", "from my", "of our", "in the", "in your"];

/// The strength with which a label marks a value, from 0 up, by the words between them.
pub(crate) fn closeness(span: LabelSpan, parsed: &ParsedText<'_>, start: usize, end: usize) -> f32 {
    if span.start < end && start < span.end {
        return 0.0;
    }
    let before = span.end <= start;
    let (from, to) = if before { (span.end, start) } else { (end, span.start) };
    let (first, last) = (parsed.token_at(from), parsed.token_at(to.saturating_sub(1).max(from)));
    let mut score = if before { 1.0 } else { 0.85 };
    let mut strangers = 0;
    for token in parsed.tokens.get(first..last.max(first)).unwrap_or_default() {
        if token.start < from || token.end > to {
            continue;
        }
        score *= match token.kind {
            TokenKind::Mark if matches!(token.text, "." | "?" | "!" | "。" | "；" | ";" | "！" | "？") => {
                0.2
            }
            TokenKind::Mark if matches!(token.text, "," | "，" | "、") => 0.6,
            TokenKind::Mark => 1.0,
            _ if token.is_word("and") || token.text == "和" => 0.6,
            _ if token.is_any(&FILLERS) => {
                if before {
                    1.0
                } else {
                    0.9
                }
            }
            TokenKind::Number => 0.55,
            TokenKind::Han => 0.85,
            TokenKind::Word => 0.75,
        };
        strangers += 1;
        if strangers > 12 {
            return 0.0;
        }
    }
    // `"x" in our conversation` is a location, and not the name of the conversation.
    let word_match = parsed.text.get(from..to).unwrap_or_default().trim().to_lowercase();
    if !before && SPOTS.contains(&word_match.as_str()) {
        score *= 0.1;
    }
    // Only `=` or a colon in between: the strongest form of a label.
    let plain = before && matches!(parsed.text.get(from..to).map(str::trim), Some("=" | ":" | "："));
    span.strength * score * if plain { 1.6 } else { 1.0 }
}
