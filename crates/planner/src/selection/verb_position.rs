//! Whether a word is used as a verb: in a tool's name, after a negation, or in the position of a noun.

use crate::lexer::lexicon::{self, WordMatch};
use crate::lexer::mention::ParsedText;
use crate::lexer::name::has_han;
use crate::lexer::token::{is_han, tokenize};

/// Words that precede a noun.
pub(crate) const NOUN_LEADS: [&str; 23] = [
    "the", "a", "an", "this", "that", "my", "of", "in", "on", "its", "each", "no", "by", "with", "next",
    "last", "one", "latest", "newest", "recent", "previous", "any", "every",
];

/// Whether a word of a tool's name is its verb: the first verb of the name, or of its last part; other words are nouns. Words
/// before the first verb are a namespace, as in `git_commit`.
pub(crate) fn is_name_verb(name: &str, start: usize) -> bool {
    let before = name[..start].trim_end();
    let own = before.rsplit('.').next().unwrap_or_default();
    let verb = |word_match: &WordMatch| !word_match.meaning.verbs.is_empty();
    before.ends_with(|c: char| c == '.' || c.is_ascii_digit() || is_han(c))
        || !lexicon::word_matches(own, &tokenize(own), &|_| false).iter().any(verb)
}

/// Whether a negation precedes the verb.
pub(crate) fn is_denied(parsed: &ParsedText<'_>, word_match: &WordMatch) -> bool {
    let before = parsed.text[..word_match.start].trim_end().to_lowercase();
    // 不用上网搜: the negation of a Chinese verb may stand anywhere before it in the clause.
    if has_han(parsed.text.get(word_match.start..word_match.end).unwrap_or_default()) {
        let clause = before.rsplit(['，', '。', '；', ',', '？', '！']).next().unwrap_or_default();
        if ["不用", "不要", "不必", "无需", "没必要", "不需要"].iter().any(|word| clause.contains(word))
        {
            return true;
        }
    }
    ["without", "don't", "do not", "not", "never", "不要", "别", "不用", "不必", "无需", "先不", "不"]
        .iter()
        .any(|word| before.ends_with(word))
}

/// Whether an ambiguous word is a verb at its position.
pub(crate) fn is_verb(parsed: &ParsedText<'_>, word_match: &WordMatch, is_first: bool) -> bool {
    let word = parsed.text.get(word_match.start..word_match.end).unwrap_or_default();
    if has_han(word) {
        // 最近一次提交, 之间的提交: after a counter or a possessive the word is a noun.
        let before = parsed.text[..word_match.start].trim_end();
        let counted =
            ["的", "次", "条", "笔", "些", "最近", "最新"].iter().any(|word| before.ends_with(word));
        if counted && !word_match.meaning.things.is_empty() {
            return false;
        }
        let single = word.chars().nth(1).is_none();
        let alone = word_match.meaning.verbs.iter().all(|verb| lexicon::verb(*verb).mark == Some('!'));
        return is_first || !(single && alone) || word == "删";
    }
    // `commits since Monday`: a plural form is a noun if a table lists it as one.
    let lower = word.to_lowercase();
    let plural = lower.ends_with('s') && !lower.ends_with("ss") && !word_match.meaning.things.is_empty();
    if plural && !lower.contains(' ') {
        return false;
    }
    let before = parsed.text[..word_match.start].trim_end().to_lowercase();
    let last = before.rsplit(|c: char| !c.is_alphanumeric() && c != '\'').next().unwrap_or_default();
    !NOUN_LEADS.contains(&last) || ["what", "which", "how"].contains(&word.to_lowercase().as_str())
}
