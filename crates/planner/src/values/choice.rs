//! Finds the values of a schema's `enum` that a request refers to, in English or Chinese.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::Value;

use crate::lexer::labels::{self, Label, LabelSpan};
use crate::lexer::mention::ParsedText;
use crate::values::parameter::name_words;

const TABLE: &str = include_str!("../../data/choices.tsv");

/// Words used for a value, by value.
static VALUE_LABELS: LazyLock<HashMap<&'static str, Vec<&'static str>>> = LazyLock::new(|| {
    let mut aliases: HashMap<&'static str, Vec<&'static str>> = HashMap::new();
    for row in TABLE.lines().filter(|line| !line.starts_with('#')) {
        let mut columns = row.split('\t');
        let values = columns.next().unwrap_or_default();
        let names: Vec<&'static str> = columns.flat_map(str::split_whitespace).collect();
        for value in values.split('|') {
            aliases.entry(value).or_default().extend(&names);
        }
    }
    aliases
});

const KINDS: &str = include_str!("../../data/kinds.tsv");

/// The usual values of parameters with such a name, if their schema lists none.
pub(crate) fn kinds(words: &[String]) -> Vec<Value> {
    let rows = KINDS.lines().filter(|line| !line.starts_with('#'));
    // The last word of a name is the most significant: a border's colour is a colour.
    let row = rows
        .filter_map(|row| row.split_once('\t'))
        .filter_map(|(names, values)| {
            let at = words.iter().rposition(|word| names.split_whitespace().any(|name| name == word))?;
            Some((at, values))
        })
        .max_by_key(|(at, _)| *at);
    row.map(|(_, values)| values.split_whitespace().map(Value::from).collect()).unwrap_or_default()
}

/// The words and phrases for a listed value.
fn value_labels(value: &str, description: &str) -> Vec<Label> {
    let lower = value.to_lowercase();
    let mut found = vec![Label::new(&name_words(value).join("_"), 4.0)];
    if crate::lexer::name::has_han(value) {
        found = vec![Label::new(value, 4.0)];
    }
    found.extend(VALUE_LABELS.get(lower.as_str()).into_iter().flatten().map(|name| Label::new(name, 2.6)));
    found.extend(described(&lower, description));
    // A single character is part of too many words.
    let distinctive = |label: &Label| {
        let alone = |word: &String| {
            word.chars().nth(1).is_some()
                || word == "男"
                || word == "女"
                || !crate::lexer::name::has_han(word)
        };
        label.words.iter().all(alone) || value.chars().nth(1).is_none()
    };
    found.retain(distinctive);
    found.retain(|label| !label.words.is_empty() && label.words.iter().any(|word| !word.is_empty()));
    found
}

/// `'a' for apples`, `m (meters)`, `1 = low`: the explanation of a value in a description.
fn described(value: &str, description: &str) -> Option<Label> {
    let lower = description.to_lowercase();
    let at = lower.find(&format!("'{value}'")).or_else(|| lower.find(&format!("`{value}`")))?;
    let rest = lower.get(at + value.len() + 2..)?;
    let rest = rest.trim_start_matches([' ', ':', '=', '(', '-', '（', '：']);
    let rest = rest.strip_prefix("for ").or_else(|| rest.strip_prefix("means ")).unwrap_or(rest);
    let end = rest.find([',', ')', ';', '.', '\'', '`', '，', '）', '、']).unwrap_or(rest.len());
    let phrase = rest[..end].trim();
    let short = !phrase.is_empty()
        && phrase.split(' ').count() <= 3
        && phrase.chars().count() <= 24
        && !["or", "and", "或"].contains(&phrase);
    short.then(|| Label::new(&phrase.replace(' ', "_"), 2.4))
}

/// A listed value and its span in the request.
#[derive(Debug, Clone)]
pub(crate) struct EnumMatch {
    pub(crate) value: Value,
    pub(crate) span: LabelSpan,
}

/// The listed values in a text, in its order; of overlapping ones the strongest.
pub(crate) fn chosen(
    choices: &[Value],
    description: &str,
    parsed: &ParsedText<'_>,
    stems: &[String],
) -> Vec<EnumMatch> {
    let mut found: Vec<EnumMatch> = Vec::new();
    for choice in choices {
        let phrase = match choice {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => continue,
        };
        for span in labels::find(&value_labels(&phrase, description), parsed, stems) {
            found.push(EnumMatch { value: choice.clone(), span });
        }
        // `Europe` for the listed value `European`.
        for token in
            parsed.tokens.iter().filter(|token| labels::alike(&phrase, token.text) && !token.is_word(&phrase))
        {
            let span = LabelSpan { start: token.start, end: token.end, strength: 2.0 };
            found.push(EnumMatch { value: choice.clone(), span });
        }
    }
    let length = |chosen: &EnumMatch| chosen.span.end - chosen.span.start;
    // `with sizes, sorted by size`: the value after `by` is preferred.
    for one in &mut found {
        let before = parsed.text.get(..one.span.start).unwrap_or_default().trim_end();
        one.span.strength += if before.ends_with(" by") || before.ends_with('按') { 0.5 } else { 0.0 };
    }
    found.sort_by(|a, b| {
        (b.span.strength.total_cmp(&a.span.strength))
            .then(length(b).cmp(&length(a)))
            .then(a.span.start.cmp(&b.span.start))
    });
    let mut selected: Vec<EnumMatch> = Vec::new();
    for chosen in found {
        let overlaps =
            |other: &EnumMatch| other.span.start < chosen.span.end && chosen.span.start < other.span.end;
        // The longer of overlapping phrases counts: `premium economy` is not `economy`.
        if !selected.iter().any(|other| overlaps(other) || other.value == chosen.value) {
            selected.push(chosen);
        } else if let Some(other) = selected
            .iter_mut()
            .find(|other| overlaps(other) && length(&chosen) > other.span.end - other.span.start)
        {
            *other = chosen;
        }
    }
    selected.sort_by_key(|chosen| chosen.span.start);
    // `local and remote` of `local`, `remote` and `all`: a request that names all other values means `all`.
    let is_all = |chosen: &EnumMatch| chosen.value.as_str() == Some("all");
    let others = choices.iter().filter(|choice| choice.as_str() != Some("all")).count();
    if others > 1
        && others < choices.len()
        && selected.iter().filter(|chosen| !is_all(chosen)).count() == others
    {
        let (start, end) = (selected[0].span.start, selected[selected.len() - 1].span.end);
        let span = LabelSpan { start, end, strength: 4.0 };
        return vec![EnumMatch { value: Value::from("all"), span }];
    }
    selected
}

/// The number of listed values that the words of a tool contain, in any of their forms.
pub(crate) fn named_by(choices: &[Value], tool_words: &[String]) -> usize {
    let phrase = |choice: &&Value| {
        let value = choice.as_str().unwrap_or_default().to_lowercase();
        let aliases = VALUE_LABELS.get(value.as_str()).into_iter().flatten().copied();
        aliases.chain([value.as_str()]).any(|name| tool_words.contains(&labels::stem(name)))
    };
    choices.iter().filter(phrase).count()
}

/// Names of languages or currencies in a text, with the code from the table.
pub(crate) fn find_codes(
    codes: &[&'static str],
    parsed: &ParsedText<'_>,
    stems: &[String],
) -> Vec<EnumMatch> {
    let values: Vec<Value> = codes.iter().map(|code| Value::from(*code)).collect();
    let mut found = chosen(&values, "", parsed, stems);
    // Two-letter codes such as `it` and `de` are also words.
    let is_name = |chosen: &EnumMatch| {
        parsed
            .text
            .get(chosen.span.start..chosen.span.end)
            .is_some_and(|phrase| phrase.chars().count() > 2 || crate::lexer::name::has_han(phrase))
    };
    found.retain(is_name);
    found
}

/// Languages with names in the table.
pub(crate) const LANGUAGES: [&str; 12] =
    ["en", "zh", "ja", "ko", "fr", "de", "es", "ru", "it", "pt", "ar", "hi"];
/// Currencies with names in the table.
pub(crate) const CURRENCIES: [&str; 12] =
    ["usd", "cny", "eur", "gbp", "jpy", "krw", "hkd", "aud", "cad", "chf", "inr", "sgd"];

#[cfg(test)]
mod tests {
    use jiff::civil::Date;

    use super::*;

    #[test]
    fn finds_enum_values() {
        let check = |choices: &[&str], text: &str, expect: &[&str]| {
            let parsed = ParsedText::of(text, Date::constant(2026, 1, 15));
            let choices: Vec<Value> = choices.iter().map(|choice| Value::from(*choice)).collect();
            let found = chosen(&choices, "", &parsed, &labels::stems(&parsed));
            assert_eq!(
                found.iter().filter_map(|chosen| chosen.value.as_str()).collect::<Vec<_>>(),
                expect,
                "{text}"
            );
        };
        check(&["celsius", "fahrenheit"], "in Celsius please", &["celsius"]);
        check(&["celsius", "fahrenheit"], "用华氏度", &["fahrenheit"]);
        check(&["bar", "line", "pie"], "画一个柱状图", &["bar"]);
        check(&["asc", "desc"], "按降序排列", &["desc"]);
        check(&["economy", "premium_economy"], "a premium economy seat", &["premium_economy"]);
        check(&["low", "high"], "what is this", &[]);
    }
}
