//! Moves a location at the end of a request that applies to all parts, `…, both in sheet Poll of poll.xlsx`, to the
//! beginning.

use jiff::civil::Date;

use crate::lexer::literal::Literal;
use crate::lexer::mention::{MentionValue, ParsedText};
use crate::lexer::split;
use crate::selection::clause_intent;

/// Words that introduce a location shared by all parts.
const LEADS: [&str; 16] = [
    "both in",
    "both on",
    "both are in",
    "all in",
    "all on",
    "all of it in",
    "all of this in",
    "everything in",
    "全都在",
    "全部在",
    "都是在",
    "都在",
    "均在",
    "以上都在",
    "两步都在",
    "都是",
];

/// The text with such an end moved to its beginning; `None` if it has none.
pub(crate) fn move_to_front(text: &str) -> Option<String> {
    let parsed = ParsedText::of(text, Date::ZERO);
    let clauses = split::clauses(&parsed);
    let (last, others) = clauses.split_last().filter(|(_, others)| others.len() > 1)?;
    let own = text.get(last.start..last.end)?;
    // The end may have begun with 都, which was removed as a separator.
    let cut = text.get(others.last()?.end..last.start)?.trim_matches([',', '，', ' ', '.', '。', ';', '；']);
    let joined = format!("{cut}{}{own}", if cut.is_ascii() && !cut.is_empty() { " " } else { "" });
    let lower = joined.to_lowercase();
    let lead = LEADS.iter().filter(|lead| lower.starts_with(**lead)).map(|lead| lead.len()).max()?;
    let shared = joined.get(lead..)?.trim_matches([' ', '.', '。', '!', '！']);
    let is_file = |from: usize, to: usize| {
        parsed.mentions.iter().any(|mention| {
            matches!(mention.value, MentionValue::Literal(Literal::Path(_)))
                && from <= mention.start
                && mention.end <= to
        })
    };
    let with_verb = others.iter().filter(|clause| {
        let part = text.get(clause.start..clause.end).unwrap_or_default();
        clause_intent::intent(&ParsedText::of(part, Date::ZERO)).has_verb()
    });
    let fits = is_file(last.start, last.end) && !is_file(0, last.start) && with_verb.count() > 1;
    let head = text.get(..others.last()?.end)?.trim_end();
    let chinese = crate::lexer::name::has_han(&joined);
    fits.then(|| if chinese { format!("在 {shared} 里，{head}") } else { format!("In {shared}: {head}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_shared_location_to_front() {
        let check =
            |text: &str, expect: Option<&str>| assert_eq!(move_to_front(text).as_deref(), expect, "{text}");
        check(
            "create a pie chart with A1:B5 at D1, then merge A10:C10. Both in sheet Poll of poll.xlsx",
            Some("In sheet Poll of poll.xlsx: create a pie chart with A1:B5 at D1, then merge A10:C10"),
        );
        check("write 5 into B2. All in a.xlsx", None);
        check("read a.txt and then list docs/", None);
    }
}
