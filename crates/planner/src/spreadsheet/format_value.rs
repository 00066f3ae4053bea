//! Values of formats: colours as six hexadecimal digits, and number formats.

use serde_json::Value as Json;

use crate::lexer::labels::LabelSpan;
use crate::lexer::literal::Literal;
use crate::lexer::mention::MentionValue;
use crate::values::candidate::{ArgumentValue, GOOD, MatchContext, ValueCandidate};
use crate::values::parameter::Parameter;

/// Whether a code is a colour: `D9D9D9`, `#FF0000`.
pub(crate) fn is_colour(code: &str) -> bool {
    let digits = code.trim_start_matches('#');
    digits.len() == 6
        && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        && digits.bytes().any(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
}

/// A value in the form given in the description of a parameter: `owner/name`, a name with `#`.
pub(crate) fn number_formats(parameter: &Parameter, context: &MatchContext<'_>) -> Vec<ValueCandidate> {
    let description = parameter.description.to_lowercase();
    let text = context.parsed.text;
    let candidate = |value: &str, start: usize, end: usize| ValueCandidate {
        value: ArgumentValue::FromRequest(Json::from(value)),
        start,
        end,
        score: GOOD + 0.5,
    };
    let mut found = Vec::new();
    if ["owner/", "org/", "user/"].iter().any(|form| description.contains(form)) {
        for mention in &context.parsed.mentions {
            if let MentionValue::Literal(Literal::Code(code)) = &mention.value
                && code.split('/').count() == 2
            {
                found.push(candidate(code, mention.start, mention.end));
            }
        }
    }
    if description.contains('#') {
        for (at, _) in text.match_indices('#') {
            let rest = &text[at + 1..];
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '-' && c != '_').unwrap_or(rest.len());
            let alone = !text[..at].ends_with(|c: char| c.is_alphanumeric());
            if end > 0 && alone && rest[..end].contains(char::is_alphabetic) {
                found.push(candidate(&text[at..at + 1 + end], at, at + 1 + end));
            }
        }
    }
    found
}

/// `the number format 0.00%`, 数字格式 #,##0: the text after the label up to a blank.
pub(crate) fn number_format(
    parameter: &Parameter,
    context: &MatchContext<'_>,
    label_spans: &[LabelSpan],
) -> Option<ValueCandidate> {
    if !(parameter.has_word(&["format"]) && parameter.has_word(&["number", "date", "numeric"])) {
        return None;
    }
    let text = context.parsed.text;
    label_spans.iter().filter(|span| span.strength >= 1.2).find_map(|span| {
        let rest = text.get(span.end..)?;
        let skipped = rest.trim_start_matches(|c: char| c.is_whitespace() || "\"'“:：为是用成".contains(c));
        let skipped = skipped.strip_prefix("to ").unwrap_or(skipped);
        let skipped = skipped.trim_start_matches(|c: char| c.is_whitespace() || "\"'“".contains(c));
        let start = text.len() - skipped.len();
        let end =
            skipped.find(|c: char| c.is_whitespace() || "，。；\"'”、".contains(c)).unwrap_or(skipped.len());
        let code = skipped[..end].trim_end_matches(['.', ',', '!', '?']);
        let is_code = code.contains(['0', '#', '@'])
            && code.chars().all(|c| c.is_ascii_alphanumeric() || "#,.%$-/:;_@¥€ ".contains(c));
        is_code.then(|| ValueCandidate {
            value: ArgumentValue::FromRequest(Json::from(code)),
            start,
            end: start + code.len(),
            score: GOOD + 2.0,
        })
    })
}
