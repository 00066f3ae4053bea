//! Separates clauses that no available tool can serve: they are reported, and the rest is planned without their words.

use jiff::civil::Date;

use crate::lexer::literal_scanner;
use crate::lexer::mention::ParsedText;
use crate::lexer::split::Clause;
use crate::lexer::token::is_han;
use crate::rewrite::masked_text::{free_text, mask_literals};
use crate::selection::candidates::Candidates;
use crate::selection::choose::Schemas;
use crate::selection::clause_intent;

/// 把 支付网关 这个节点打开: Chinese characters between blanks are a name and not an action.
fn without_names(phrase: &str) -> String {
    let parts: Vec<&str> = phrase.split(' ').collect();
    let last = parts.len().saturating_sub(1);
    let is_name =
        |index: usize, part: &str| index > 0 && index < last && !part.is_empty() && part.chars().all(is_han);
    let replaced =
        parts.iter().enumerate().map(|(index, part)| if is_name(index, part) { "某" } else { part });
    replaced.collect::<Vec<_>>().join(" ")
}

/// The only run of clauses that tools may serve, and the other parts, which none does.
pub(crate) fn split(
    text: &str,
    clauses: &[Clause],
    candidates: &Candidates,
) -> Option<(Clause, Vec<String>)> {
    if clauses.len() < 2 {
        return None;
    }
    let until = free_text(&mask_literals(text, &literal_scanner::find(text)));
    let mut schemas = Schemas::default();
    let is_foreign = |clause: &Clause, schemas: &mut Schemas| {
        let phrase = text.get(clause.start..clause.end).unwrap_or_default();
        let phrase = without_names(phrase);
        let intent = clause_intent::intent(&ParsedText::of(&phrase, Date::ZERO));
        clause.start < until
            && intent.is_beyond(|fits| candidates.tools().any(|tool| fits(&schemas.profile(tool))))
    };
    let foreign: Vec<bool> = clauses.iter().map(|clause| is_foreign(clause, &mut schemas)).collect();
    let first = foreign.iter().position(|foreign| !foreign)?;
    let last = foreign.iter().rposition(|foreign| !foreign)?;
    if !foreign.contains(&true) || foreign[first..=last].contains(&true) {
        return None;
    }
    let parts = clauses.iter().zip(&foreign).filter(|(_, foreign)| **foreign).map(|(clause, _)| clause);
    let parts = parts.map(|clause| text[clause.start..clause.end].trim().to_owned()).collect();
    Some((Clause { start: clauses[first].start, end: clauses[last].end }, parts))
}
