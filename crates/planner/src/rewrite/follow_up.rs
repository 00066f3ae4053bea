//! Completes requests that refer to earlier ones of the conversation: `and times 3`, `what about Tokyo?`, 那伦敦呢, `now rename
//! it` for a file named earlier. The result is a self-contained request.

use jiff::civil::Date;

use crate::arithmetic::continuation;
use crate::arithmetic::recognize;
use crate::lexer::labels;
use crate::lexer::literal::Literal;
use crate::lexer::mention::{Mention, MentionValue, ParsedText};
use crate::lexer::name::has_han;
use crate::selection::implied_need;
use crate::spreadsheet::sheet;
use crate::values::candidate::MatchContext;

/// Maximum number of earlier exchanges considered.
const MAX_EARLIER_EXCHANGES: usize = 8;

/// A request and its answer.
#[derive(Debug, Clone, Copy)]
pub struct EarlierExchange<'a> {
    /// The text of the request.
    pub request: &'a str,
    /// The text of the answer.
    pub answer: &'a str,
}

/// Openings of a request that continues another; longer ones before their prefixes.
const OPENINGS: [&str; 27] = [
    "and what about",
    "and how about",
    "what about",
    "how about",
    "what if it were",
    "and for",
    "and in",
    "and at",
    "and",
    "or",
    "now",
    "then",
    "also",
    "same for",
    "the same for",
    "the same in",
    "那么",
    "那换成",
    "换成",
    "改成",
    "那",
    "还有",
    "再看看",
    "再看一下",
    "再查一下",
    "以及",
    "和",
];
/// Endings of such a request.
const CLOSINGS: [&str; 17] = [
    "?",
    "？",
    "。",
    ".",
    "!",
    "！",
    "呢",
    "怎么样",
    "怎样",
    "如何",
    "的话",
    "then",
    "instead",
    "too",
    "as well",
    "please",
    "吧",
];
/// Function words before the replacement.
const BEFORE: [&str; 9] = ["in", "at", "for", "on", "with", "of", "the", "在", "是"];

/// The self-contained form of a request that continues an earlier one. `before` has the oldest exchange first.
pub fn in_context(request: &str, before: &[EarlierExchange<'_>]) -> Option<String> {
    let before = before.get(before.len().saturating_sub(MAX_EARLIER_EXCHANGES)..)?;
    let (last, earlier) = before.split_last()?;
    let text = crate::normalize_request(request);
    let resolve_last =
        || in_context(last.request, earlier).unwrap_or_else(|| crate::normalize_request(last.request));
    continue_calculation(&text, &resolve_last, last).or_else(|| {
        let resolved = resolve_last();
        // A question never repeats a change.
        let changes =
            crate::selection::clause_intent::intent(&ParsedText::of(&resolved, Date::ZERO)).changes();
        if changes && is_follow_up_question(request) {
            return None;
        }
        exchanged(&text, &resolved)
    })
}

/// Whether a request that continues another is a question.
fn is_follow_up_question(request: &str) -> bool {
    let text = request.trim().to_lowercase();
    text.ends_with(['?', '？', '呢', '吗'])
        || ["what", "how", "and what", "and how"].iter().any(|word| text.starts_with(word))
        || ["怎么样", "怎样", "如何", "呢。", "呢！"].iter().any(|word| text.ends_with(word))
}

/// The request with the file (and its sheet) that was mentioned last, and that file; `None` if the request itself contains a
/// path.
pub fn add_last_file(request: &str, before: &[EarlierExchange<'_>]) -> Option<(String, String)> {
    let text = crate::normalize_request(request);
    let path = |text: &str| {
        let parsed = ParsedText::of(text, Date::ZERO);
        let named = parsed.mentions.iter().rev().find_map(|mention| match &mention.value {
            MentionValue::Literal(Literal::Path(path)) => Some(path.clone()),
            _ => None,
        });
        let context = MatchContext { parsed: &parsed, stems: labels::stems(&parsed), tool_words: Vec::new() };
        named.map(|path| (path, sheet::find(&context).last().map(|sheet| sheet.text.to_owned())))
    };
    if path(&text).is_some() {
        return None;
    }
    let (file, sheet) = before
        .iter()
        .rev()
        .take(MAX_EARLIER_EXCHANGES)
        .find_map(|one| path(&crate::normalize_request(one.request)))?;
    let own = ParsedText::of(&text, Date::ZERO);
    let context = MatchContext { parsed: &own, stems: labels::stems(&own), tool_words: Vec::new() };
    let sheet = sheet.filter(|_| sheet::find(&context).is_empty());
    let rewritten = match (has_han(&text), sheet) {
        (true, Some(sheet)) => format!("在 {file} 的“{sheet}”工作表里，{text}"),
        (true, None) => format!("在 {file} 里，{text}"),
        (false, Some(sheet)) => format!("In sheet \"{sheet}\" of {file}: {text}"),
        (false, None) => format!("In {file}: {text}"),
    };
    Some((rewritten, file))
}

/// `times 3`: continues with the previous result as shown in the answer, so that it is not rounded twice.
fn continue_calculation(
    text: &str,
    resolve_last: &dyn Fn() -> String,
    last: &EarlierExchange<'_>,
) -> Option<String> {
    let trimmed = text.trim_end_matches(['?', '？', '。', '.', '!', '！', '=', ' ']);
    let trimmed = ["是多少", "等于多少", "等于几", "是几", "呢", "吧"]
        .iter()
        .fold(trimmed, |trimmed, word| trimmed.strip_suffix(word).unwrap_or(trimmed).trim_end());
    let tokens = crate::lexer::token::tokenize(trimmed);
    let question_tokens = usize::from(tokens.first().is_some_and(|token| token.is_any(&["what's"])))
        + if tokens.get(1).is_some_and(|token| token.is_word("is")) && tokens[0].is_word("what") {
            2
        } else {
            0
        };
    let lead = continuation::joints(&tokens, 0);
    let starts = [lead, question_tokens];
    let continued = starts.into_iter().find_map(|start| {
        let (first, mut after) = continuation::read(&tokens, start)?;
        let mut all = vec![first];
        // `times 3 and then plus 5`.
        while after < tokens.len() {
            let lead = continuation::joints(&tokens, after);
            let (next, end) = continuation::read(&tokens, after + lead)?;
            all.push(next);
            after = end;
        }
        Some(all)
    })?;
    let rewritten = |inner: &str| {
        let text = continued.iter().fold(inner.to_owned(), |inner, one| one.apply(&inner));
        let tokens = crate::lexer::token::tokenize(&text);
        let found = recognize::find(&text, &tokens, &|_| true);
        let alone = matches!(found.as_slice(), [one] if one.start == 0 && one.end == text.len());
        alone.then_some(text)
    };
    let before = resolve_last();
    let earlier_parsed = ParsedText::of(&before, Date::ZERO);
    let exact = match earlier_parsed.expressions.as_slice() {
        [one] => rewritten(&one.text),
        _ => None,
    };
    let expression = exact.or_else(|| rewritten(&only_number(last.answer)?))?;
    Some(if has_han(text) { format!("计算 {expression}") } else { format!("calculate {expression}") })
}

/// The number in an answer that contains little else.
fn only_number(answer: &str) -> Option<String> {
    let line = answer.trim();
    let numbers: Vec<&str> = line
        .split(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-' || c == ','))
        .filter(|part| part.contains(|c: char| c.is_ascii_digit()))
        .collect();
    match numbers.as_slice() {
        [one] if !line.contains('\n') && line.chars().count() < 60 => {
            let number = one.trim_end_matches(['.', ',', '-']).replace(',', "");
            number.parse::<f64>().is_ok().then_some(number)
        }
        _ => None,
    }
}

/// `what about Tokyo?`: the previous request with its value of the same kind replaced.
pub(crate) fn exchanged(text: &str, before: &str) -> Option<String> {
    let (trimmed, opened, closed) = trimmed(text);
    if !(opened || closed) || trimmed.is_empty() {
        return None;
    }
    let parsed = ParsedText::of(trimmed, Date::ZERO);
    let [mention] = parsed.mentions.as_slice() else { return None };
    let head = trimmed[..mention.start].trim();
    let alone = trimmed[mention.end..].trim().is_empty()
        && head.split_whitespace().all(|word| BEFORE.contains(&word.to_lowercase().as_str()));
    if !alone {
        return None;
    }
    let old = ParsedText::of(before, Date::ZERO);
    let new = &trimmed[mention.start..mention.end];
    if let Some(counterpart) = old.mentions.iter().rev().find(|other| is_alike(other, mention)) {
        return Some(format!("{}{new}{}", &before[..counterpart.start], &before[counterpart.end..]));
    }
    // `what time is it?`, `and in Tokyo?`: the previous request has no place to replace.
    let asks_time = !implied_need::needs(&old).is_empty() && mention.value == MentionValue::Place;
    asks_time.then(|| match has_han(before) {
        true => format!("{new}{before}"),
        false => format!("{} in {new}", before.trim_end_matches(['?', '.', '!', ' '])),
    })
}

/// A text without its opening and ending words, and whether it had them.
fn trimmed(text: &str) -> (&str, bool, bool) {
    let mut rest = text.trim();
    let mut opened = false;
    let lower = rest.to_lowercase();
    if let Some(opening) = OPENINGS.iter().find(|opening| {
        let after = lower.get(opening.len()..).unwrap_or_default();
        lower.starts_with(**opening) && (has_han(opening) || after.starts_with([' ', ',']))
    }) {
        rest = rest[opening.len()..].trim_start_matches([' ', ',', '，']);
        opened = true;
    }
    let mut closed = false;
    while let Some(closing) = CLOSINGS.iter().find(|closing| rest.ends_with(**closing)) {
        // Punctuation alone does not count: `Tokyo?` need not continue a request.
        closed = closed || has_han(closing);
        rest = rest[..rest.len() - closing.len()].trim_end();
    }
    (rest, opened, closed)
}

fn is_alike(one: &Mention, other: &Mention) -> bool {
    match (&one.value, &other.value) {
        (MentionValue::Literal(one), MentionValue::Literal(other)) => {
            std::mem::discriminant(one) == std::mem::discriminant(other)
        }
        (MentionValue::Number(_), MentionValue::Number(_))
        | (MentionValue::Moment(_), MentionValue::Moment(_)) => true,
        (MentionValue::Place, MentionValue::Place | MentionValue::Name)
        | (MentionValue::Name, MentionValue::Place) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(turns: &[(&str, &str)], request: &str, expect: &str) {
        let before: Vec<EarlierExchange<'_>> =
            turns.iter().map(|(request, answer)| EarlierExchange { request, answer }).collect();
        assert_eq!(in_context(request, &before).unwrap_or_default(), expect, "{request}");
    }

    #[test]
    fn does_not_repeat_change_for_question() {
        for question in ["and \"amy\"?", "what about \"eve\"", "how about \"eve\"?", "那“amy”呢"] {
            check(&[("remove user \"bob\"", "done")], question, "");
            check(&[("删除用户“bob”", "done")], question, "");
        }
        check(&[("remove user \"bob\"", "done")], "and \"amy\"", "remove user \"amy\"");
    }

    #[test]
    fn continues_earlier_calculation() {
        check(&[("what is 12 / 5", "2.4")], "and times 3", "calculate 12 / 5 * 3");
        check(&[("算一下 23*47", "1081")], "再乘以 4", "计算 23 * 47 * 4");
        check(&[("1+1", "2"), ("times 3", "6")], "minus 1", "calculate (1 + 1) * 3 - 1");
        check(&[("求 84 和 126 的最大公约数", "42")], "再加 8 呢？", "计算 42 + 8");
        check(&[("what is 12 / 5", "2.4")], "times 3 and then plus 5", "calculate 12 / 5 * 3 + 5");
        check(&[("what time is it", "2026-11-15 12:00:00")], "times 3", "");
        check(&[], "times 3", "");
    }

    #[test]
    fn replaces_place_of_earlier_request() {
        let tokyo = [("what time is it in Tokyo?", "12:00")];
        check(&tokyo, "what about Berlin?", "what time is it in Berlin?");
        check(&tokyo, "and in Paris", "what time is it in Paris?");
        check(&[("东京现在几点？", "12:00")], "那伦敦呢？", "伦敦现在几点？");
        check(&[("what time is it?", "12:00")], "and in Tokyo?", "what time is it in Tokyo");
        check(&tokyo, "Berlin", "");
        check(&tokyo, "what about lunch", "");
        check(&[("read docs/a.txt", "one")], "and docs/b.txt?", "read docs/b.txt");
    }

    #[test]
    fn adds_file_of_earlier_request() {
        let check = |before: &str, request: &str, expect: &str| {
            let before = [EarlierExchange { request: before, answer: "" }];
            assert_eq!(add_last_file(request, &before).unwrap_or_default().0, expect, "{request}");
        };
        check(
            "create sheet Poll in poll.xlsx",
            "write 5 into A1",
            "In sheet \"Poll\" of poll.xlsx: write 5 into A1",
        );
        check("打开 销售.xlsx 看看", "新建工作表 六月", "在 销售.xlsx 里，新建工作表 六月");
        check("read a.xlsx", "read b.xlsx", "");
        check("what time is it", "write 5 into A1", "");
    }
}
