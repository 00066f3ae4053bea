//! Enumerations: `Tokyo and Berlin`, `1, 2, 3 and 4`, `苹果、香蕉和梨`.

use crate::lexer::literal::Literal;
use crate::lexer::mention::{Mention, MentionValue, ParsedText};
use crate::lexer::token::TokenKind;

/// Words and marks that may stand between two items of an enumeration.
const JOINTS: [&str; 18] = [
    ",", "，", "、", "and", "or", "&", "和", "与", "及", "以", "跟", "还", "有", "in", "for", "at", "the",
    "of",
];

/// Whether two kinds of mentions can be items of one enumeration.
fn alike(first: &MentionValue, second: &MentionValue) -> bool {
    match (first, second) {
        (MentionValue::Name | MentionValue::Place, MentionValue::Name | MentionValue::Place) => true,
        (MentionValue::Number(_), MentionValue::Number(_))
        | (MentionValue::Moment(_), MentionValue::Moment(_)) => true,
        (MentionValue::Literal(first), MentionValue::Literal(second)) => {
            std::mem::discriminant(first) == std::mem::discriminant(second)
        }
        _ => false,
    }
}

/// The index range of the enumeration that contains the mention at `at`.
pub(crate) fn range_around(parsed: &ParsedText<'_>, at: usize) -> std::ops::Range<usize> {
    let joined = |first: &Mention, second: &Mention| {
        let between: Vec<_> = parsed
            .tokens
            .iter()
            .filter(|token| token.start >= first.end && token.end <= second.start)
            .collect();
        let is_joint = between
            .iter()
            .any(|token| token.is_any(&[",", "，", "、", "and", "or", "&", "和", "与", "及", "跟"]));
        // A unit may follow each number: `5 kg and 3 kg`.
        let unit = usize::from(
            matches!(first.value, MentionValue::Number(_))
                && between
                    .first()
                    .is_some_and(|token| token.kind == TokenKind::Word && !token.is_any(&JOINTS)),
        );
        // `git add a.rs b.rs`: files may be separated by spaces only.
        let files = |mention: &Mention| matches!(&mention.value, MentionValue::Literal(Literal::Path(path)) if !path.starts_with(['/', '~']));
        let beside = between.is_empty() && files(first) && files(second);
        (is_joint || beside)
            && alike(&first.value, &second.value)
            && between.iter().skip(unit).all(|token| token.is_any(&JOINTS))
    };
    let (mut first, mut last) = (at, at);
    while first > 0 && joined(&parsed.mentions[first - 1], &parsed.mentions[first]) {
        first -= 1;
    }
    while last + 1 < parsed.mentions.len() && joined(&parsed.mentions[last], &parsed.mentions[last + 1]) {
        last += 1;
    }
    first..last + 1
}

/// The items of an enumeration in free text: `flour, sugar and eggs`.
pub(crate) fn members(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for part in text.split([',', '，', '、', ';', '；']) {
        for part in part.split(" and ").flat_map(|part| part.split(" or ")).flat_map(|part| part.split('和'))
        {
            let part = part
                .trim()
                .trim_start_matches("and ")
                .trim_matches(|c: char| "\"'“”.。?？".contains(c))
                .trim();
            if !part.is_empty() {
                found.push(part);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use jiff::civil::Date;

    use super::*;

    #[test]
    fn finds_enumerations() {
        let check = |text: &str, expect: &[&str]| {
            let parsed = ParsedText::of(text, Date::constant(2026, 1, 15));
            let range = range_around(&parsed, 0);
            let found: Vec<_> =
                parsed.mentions[range].iter().map(|mention| parsed.written(mention)).collect();
            assert_eq!(found, expect, "{text}");
        };
        check("time in Tokyo and in Berlin", &["Tokyo", "Berlin"]);
        check("1, 2, 3 and 4", &["1", "2", "3", "4"]);
        check("东京和柏林的时间", &["东京", "柏林"]);
        check("东京、柏林以及巴黎", &["东京", "柏林", "巴黎"]);
        check("from Tokyo to Berlin", &["Tokyo"]);
        check("5 kg and 3 kg", &["5", "3"]);
        assert_eq!(members("flour, sugar and eggs"), ["flour", "sugar", "eggs"]);
        assert_eq!(members("苹果、香蕉和梨"), ["苹果", "香蕉", "梨"]);
    }
}
