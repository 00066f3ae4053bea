//! Wishes in the form of a statement or a question: `X is what I need`, `could X be renamed to Y, please?`, `There is a typo in
//! F: change …`. Each becomes a plain imperative.

use super::casual::free_text;
use super::literal::{self, Literal};
use super::name::has_han;
use super::rephrase::{is_open, masked};
use super::split;
use super::statement::begins_order;
use super::statement_words::{SUBJECTS, binds};
use super::verb_class::VERBS;

/// Phrases after the wish.
const NEEDED: [&str; 9] = [
    " is what i need",
    " is what i want",
    " is what i'm after",
    " is what i am after",
    " is what we need",
    " is what we want",
    " are what i need",
    " are what i want",
    " are what we need",
];
/// Openings of a question that `please` turns into an order.
const COULD: [&str; 4] = ["could ", "can ", "please could ", "would it be possible to have "];
/// Separators between a statement of a location and its order.
const BREAKS: [&str; 6] = [": ", "; ", ". ", ", so please ", ", so ", ", please "];
/// The maximum number of words of such a statement before the location.
const LONGEST: usize = 10;

/// `A new branch X is what I need in Y`: moves the wish to the front.
pub(super) fn needed(text: &str) -> Option<String> {
    let masked = masked(text, &literal::find(text));
    let (at, words) = NEEDED.iter().find_map(|words| masked.find(words).map(|at| (at, *words)))?;
    let whole = masked[at + words.len()..].starts_with([' ', '.', '!', ',']) || masked.ends_with(words);
    (whole && !is_open(&masked) && !masked[..at].contains([',', ';'])).then(|| {
        let mut head = text[..at].to_owned();
        if head.starts_with(|c: char| c.is_ascii_uppercase()) && head[1..].starts_with([' ', 'n', 'h']) {
            head[..1].make_ascii_lowercase();
        }
        format!("I need {head}{}", &text[at + words.len()..])
    })
}

/// `Could the folder A be renamed to B, please?`: `please` marks an order; rewrites it into the form that `active` parses.
pub(super) fn passive_question(text: &str) -> Option<String> {
    let masked = masked(text, &literal::find(text));
    let lead = COULD.iter().find(|lead| masked.starts_with(**lead))?;
    let bare = masked.trim_end_matches(['?', ' ']);
    let end = [", please", " please"].iter().find_map(|word| bare.strip_suffix(word)).map(str::len);
    let polite = end.is_some() || lead.starts_with("please");
    let end = end.unwrap_or(bare.len());
    let be = masked.find(" be ").filter(|at| *at > lead.len() && *at < end)?;
    let plain = masked.matches('?').count() <= 1
        && !is_open(&masked[..end])
        && !["you ", "i ", "we ", "it ", "there "].iter().any(|word| masked[lead.len()..].starts_with(word));
    (polite && plain).then(|| format!("{} should be {}", &text[lead.len()..be], &text[be + 4..end]))
}

/// `There's a typo in F: change A to B there`, `The total is missing on the sheet S in F: …`: the location in the statement
/// applies to the order.
pub(super) fn found_in(text: &str) -> Option<String> {
    let literals = literal::find(text);
    let masked = masked(text, &literals);
    let path = |found: &&literal::Found| matches!(found.literal, Literal::Path(_));
    let file = literals.iter().find(path)?;
    let mark = BREAKS.iter().find(|mark| masked[file.end..].starts_with(**mark))?;
    let start = file.end + mark.len();
    let order = masked.get(start..)?;
    let at = [" in ", " on "].iter().filter_map(|word| masked[..file.start].find(word)).min()?;
    let (said, place) = (masked.get(..at)?, text.get(at..file.end)?);
    let first = said.split(' ').next()?;
    let states = SUBJECTS.contains(&first) || ["a", "an", "i", "some"].contains(&first);
    let plain = states
        && !has_han(&masked)
        && !said.contains(['#', ',', ';', '?', '"'])
        && !said.contains(|c: char| c.is_ascii_digit())
        && (2..=LONGEST).contains(&said.split(' ').count())
        && !said.contains("n't ")
        && !binds(said)
        && place.split(' ').count() <= 8;
    let own = literals.iter().any(|found| path(&found) && found.start >= start);
    if !plain || own || !begins_order(order) || free_text(&masked) < start || is_open(order) {
        return None;
    }
    let order = text[start..].trim_end_matches(['.', '!', ' ']);
    let order = order.strip_suffix(", please").unwrap_or(order);
    let order = [" in there", " there"].iter().find_map(|word| order.strip_suffix(word)).unwrap_or(order);
    Some(format!("{order}{place}"))
}

/// `Would you mind staging X?`: converts the gerund to an imperative.
pub(super) fn minded(text: &str) -> Option<String> {
    let masked = masked(text, &literal::find(text));
    let lead = ["would you mind ", "do you mind ", "would you please mind "]
        .iter()
        .find(|lead| masked.starts_with(**lead))?;
    let word = masked[lead.len()..].split(' ').next()?;
    let root = word.strip_suffix("ing")?;
    let shorter = root
        .char_indices()
        .next_back()
        .map(|(at, _)| &root[..at])
        .filter(|shorter| shorter.ends_with(|c: char| root.ends_with(c)));
    let verb = [Some(root.to_owned()), Some(format!("{root}e")), shorter.map(str::to_owned)]
        .into_iter()
        .flatten()
        .find(|verb| VERBS.english.contains_key(verb) || split::is_verb(verb))?;
    let rest = text[lead.len() + word.len()..].trim_end_matches(['?', ' ']);
    Some(format!("please {verb}{rest}"))
}

/// `The title of event X should be "Y"`: sets a field of an event.
pub(super) fn becomes(text: &str) -> Option<String> {
    const FIELDS: [&str; 7] = ["title", "location", "description", "start", "end", "start time", "end time"];
    const SHOULD: [&str; 6] =
        [" should be ", " should read ", " has to be ", " must be ", " needs to be ", " should become "];
    let masked = masked(text, &literal::find(text));
    let rest = masked.strip_prefix("the ")?;
    let field = FIELDS
        .iter()
        .filter(|field| rest.starts_with(&format!("{field} of ")))
        .max_by_key(|field| field.len())?;
    let (at, should) = SHOULD.iter().find_map(|should| masked.find(should).map(|at| (at, *should)))?;
    let thing = masked.get("the ".len() + field.len() + " of ".len()..at)?;
    let event =
        ["event ", "the event ", "meeting ", "the meeting "].iter().any(|kind| thing.starts_with(kind));
    // `should be shorter` contains no value.
    let told = text.get(at + should.len()..)?;
    let value = told.starts_with(|c: char| c.is_ascii_digit() || c.is_uppercase() || "\"'“".contains(c));
    let plain = thing.split(' ').count() <= 3 && !is_open(&masked) && value;
    (event && plain).then(|| {
        format!("change {} to {}", text[..at].replacen("The ", "the ", 1), &text[at + should.len()..])
    })
}

/// `the email with the ID 7731`, `event whose id is ev-3`: moves the ID directly after its kind.
pub(super) fn with_id(text: &str) -> Option<String> {
    const LEADS: [&str; 12] = [
        " with the id of ",
        " with the id number ",
        " with the id ",
        " with id ",
        " with the number ",
        " with number ",
        " whose id is ",
        " that has the id ",
        " having the id ",
        ", id ",
        " (id ",
        " id ",
    ];
    const KINDS: [&str; 6] = ["email", "mail", "message", "event", "invitation", "meeting"];
    let literals = literal::find(text);
    let masked = masked(text, &literals);
    let until = free_text(&masked);
    LEADS.iter().find_map(|lead| {
        masked.match_indices(lead).map(|(at, _)| at).filter(|at| *at < until).find_map(|at| {
            let from = at + lead.len();
            let kind = KINDS.iter().any(|kind| {
                masked[..at].strip_suffix(kind).is_some_and(|head| !head.ends_with(char::is_alphanumeric))
            });
            let rest = text.get(from..)?;
            let end = rest.find(|c: char| c.is_whitespace() || ",;?!)".contains(c)).unwrap_or(rest.len());
            let name = rest[..end].trim_end_matches('.');
            let numbered = name.contains(|c: char| c.is_ascii_digit());
            let after = &text[from + name.len()..];
            let after = if lead.contains('(') { after.strip_prefix(')')? } else { after };
            (kind && numbered).then(|| format!("{} {name}{after}", &text[..at]))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_become_orders() {
        let check = |step: fn(&str) -> Option<String>, text: &str, expect: Option<&str>| {
            assert_eq!(step(text).as_deref(), expect, "{text}");
        };
        check(
            needed,
            "A new branch named exam-2026 is what I need in courses/physics.",
            Some("I need a new branch named exam-2026 in courses/physics."),
        );
        check(needed, "If row 3 is what I need, keep it", None);
        check(
            passive_question,
            "Could the folder a/b be renamed to a/c, please?",
            Some("the folder a/b should be renamed to a/c"),
        );
        check(passive_question, "Could the folder a/b be renamed to a/c?", None);
        check(passive_question, "Can row 3 be deleted?", None);
        check(passive_question, "Could row 3 not be deleted, please?", None);
        check(
            found_in,
            "There's a typo in docs/welcome.md: change 'recieve' to 'receive' there, please.",
            Some("change 'recieve' to 'receive' in docs/welcome.md"),
        );
        check(
            found_in,
            "The total is missing on the sheet Expenses in trip.xlsx: enter the formula =SUM(B2:B14) in B15.",
            Some("enter the formula =SUM(B2:B14) in B15 on the sheet Expenses in trip.xlsx"),
        );
        check(found_in, "There's a typo in a.md: change 'x' to 'y' in b.md", None);
        check(found_in, "Row 3 is wrong in a.xlsx: delete the sheet B", None);
        check(found_in, "There's a typo in a.md that must stay: change 'x' to 'y'", None);
        check(minded, "Would you mind staging a.ts in /srv/w?", Some("please stage a.ts in /srv/w"));
        check(minded, "Would you mind if I deleted a.ts?", None);
        check(
            becomes,
            "The title of event ev-12 should be \"Plan\".",
            Some("change the title of event ev-12 to \"Plan\"."),
        );
        check(becomes, "The title of event ev-12 should be shorter.", None);
        check(with_id, "Please read me the email with the ID 7731.", Some("Please read me the email 7731."));
        check(with_id, "cancel the event (id ev-3) today", Some("cancel the event ev-3 today"));
        check(with_id, "delete the email with the word 7731", None);
    }
}
