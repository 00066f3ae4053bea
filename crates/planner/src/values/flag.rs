//! Finds values of boolean parameters: a request sets a flag by mentioning it, or clears it by a negation.

use serde_json::Value as Json;

use crate::lexer::labels::{self, Label, LabelSpan};
use crate::lexer::mention::ParsedText;
use crate::lexer::stop_words::is_stop;
use crate::values::candidate::{ArgumentValue, MatchContext, ValueCandidate};
use crate::values::parameter::Parameter;

/// Words in names of flags that do not identify the flag.
const EMPTY: [&str; 22] = [
    "include",
    "is",
    "with",
    "show",
    "get",
    "enable",
    "use",
    "has",
    "should",
    "only",
    "allow",
    "return",
    "in",
    "and",
    "flag",
    "do",
    "be",
    "to",
    "include_all",
    "required",
    "requires",
    "display",
];
const AGAINST: [&str; 20] = [
    "no",
    "not",
    "without",
    "don't",
    "dont",
    "never",
    "exclude",
    "excluding",
    "disable",
    "don’t",
    "不",
    "不要",
    "别",
    "无需",
    "不用",
    "除去",
    "没有",
    "不带",
    "不含",
    "关闭",
];

const TABLE: &str = include_str!("../../data/flags.tsv");

/// The labels of a flag: the words of its name, and its entries in the table.
fn labels_of(parameter: &Parameter) -> Vec<Label> {
    let distinctive: Vec<&String> =
        parameter.words.iter().filter(|word| !EMPTY.contains(&word.as_str())).collect();
    let mut labels = Vec::new();
    if !distinctive.is_empty() {
        let all_words: Vec<String> = distinctive.iter().map(|word| (*word).clone()).collect();
        labels.push(Label::new(&all_words.join("_"), 2.6));
        for word in &distinctive {
            labels.push(Label::new(word, if distinctive.len() == 1 { 2.6 } else { 1.4 }));
        }
    }
    for row in TABLE.lines().filter(|line| !line.starts_with('#')) {
        let mut columns = row.split('\t');
        let mut names = columns.next().unwrap_or_default().split_whitespace();
        if names.all(|name| parameter.has_word(&[name])) {
            labels.extend(columns.flat_map(str::split_whitespace).map(|name| Label::new(name, 2.6)));
        }
    }
    labels.extend(
        parameter
            .labels
            .iter()
            .filter(|label| label.words.first().is_some_and(|word| crate::lexer::name::has_han(word)))
            .cloned(),
    );
    labels
}

/// The spans of a request that mention a flag, the longest phrase first.
pub(crate) fn find(parameter: &Parameter, parsed: &ParsedText<'_>, stems: &[String]) -> Vec<LabelSpan> {
    let mut found = labels::find(&labels_of(parameter), parsed, stems);
    found.sort_by_key(|span| std::cmp::Reverse(span.end - span.start));
    found
}

pub(crate) fn candidates(parameter: &Parameter, context: &MatchContext<'_>) -> Vec<ValueCandidate> {
    let distinctive: Vec<&String> =
        parameter.words.iter().filter(|word| !EMPTY.contains(&word.as_str())).collect();
    let mut found: Vec<ValueCandidate> = find(parameter, context.parsed, &context.stems)
        .into_iter()
        .map(|span| {
            let value = Json::from(!denied(context, span.start));
            ValueCandidate {
                value: ArgumentValue::FromRequest(value),
                start: span.start,
                end: span.start,
                score: span.strength,
            }
        })
        .collect();
    // `detailed` matches `details`, and `multi-player` matches `multiplayer`.
    for token in
        context.parsed.tokens.iter().filter(|token| token.kind == crate::lexer::token::TokenKind::Word)
    {
        let stated = token.text.to_lowercase().replace('-', "");
        if distinctive.iter().any(|word| labels::alike(word, &stated))
            && !context.tool_words[..context.tool_words.len().min(3)].contains(&stated)
            // A noun such as `cells` does not set a flag.
            && !crate::lexer::lexicon::is_kind(&stated)
        {
            let value = ArgumentValue::FromRequest(Json::from(!denied(context, token.start)));
            found.push(ValueCandidate { value, start: token.start, end: token.start, score: 2.1 });
        }
    }
    // A flag also counts as mentioned if the text contains half of the words of its description.
    let described: Vec<String> = parameter
        .description
        .split(|c: char| !c.is_alphabetic())
        .filter(|word| word.len() > 3 && !is_stop(word))
        .map(labels::stem)
        .filter(|word| {
            !context.tool_words.contains(word)
                && !["default", "true", "false", "whether", "boolean"].contains(&word.as_str())
        })
        .take(6)
        .collect();
    let stated = described.iter().filter(|word| context.stems.contains(word)).count();
    if stated >= 2 && stated * 2 >= described.len() {
        let at = context.stems.iter().position(|stem| described.contains(stem)).unwrap_or(0);
        let start = context.parsed.tokens.get(at).map_or(0, |token| token.start);
        found.push(ValueCandidate {
            value: ArgumentValue::FromRequest(Json::from(!denied(context, start))),
            start,
            end: start,
            score: 2.1,
        });
    }
    found
}

/// Whether one of the four tokens before is a negation.
fn denied(context: &MatchContext<'_>, start: usize) -> bool {
    let at = context.parsed.token_at(start);
    let first = at.saturating_sub(4);
    let before = context.parsed.tokens.get(first..at).unwrap_or_default();
    let from = before.first().map_or(start, |token| token.start);
    let text = context.parsed.text.get(from..start).unwrap_or_default();
    let last_clause = text.rsplit([',', '，', '.', '。', ';']).next().unwrap_or_default().to_lowercase();
    AGAINST.iter().any(|word| {
        if crate::lexer::name::has_han(word) {
            last_clause.contains(word)
        } else {
            last_clause.split_whitespace().any(|other| other == *word)
        }
    })
}
