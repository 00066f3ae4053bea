//! Wishes in the form of a statement or a question: `X is what I need`, `could X be renamed to Y, please?`, `There is a typo in
//! F: change …`. Each becomes a plain imperative.

use crate::lexer::literal::{self, Literal};
use crate::lexer::literal_scanner;
use crate::lexer::name::has_han;
use crate::lexer::split;
use crate::rewrite::masked_text::{free_text, is_open, mask_literals};
use crate::rewrite::statement::begins_order;
use crate::rewrite::statement_words::{SUBJECTS, binds};
use crate::selection::verb_class::VERBS;

/// Phrases after the wish.
const NEEDED: [&str; 15] = [
    " is needed",
    " would be great",
    " would be nice",
    " would be helpful",
    " would help me",
    " is what i'd need",
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
const MAX_STATEMENT_WORDS: usize = 10;

/// `A new branch X is what I need in Y`: moves the wish to the front.
pub(crate) fn needed_object(text: &str) -> Option<String> {
    let masked = mask_literals(text, &literal_scanner::find(text));
    let (at, words) = NEEDED.iter().find_map(|words| masked.find(words).map(|at| (at, *words)))?;
    // `Row 3 is needed` is no wish; `a new sheet is needed` is one.
    let wished = !words.ends_with("needed") || masked.starts_with("a ") || masked.starts_with("an ");
    let is_whole_word =
        wished && (masked[at + words.len()..].starts_with([' ', '.', '!', ',']) || masked.ends_with(words));
    (is_whole_word && !is_open(&masked) && !masked[..at].contains([',', ';'])).then(|| {
        let mut head = text[..at].to_owned();
        if head.starts_with(|c: char| c.is_ascii_uppercase()) && head[1..].starts_with([' ', 'n', 'h']) {
            head[..1].make_ascii_lowercase();
        }
        format!("I need {head}{}", &text[at + words.len()..])
    })
}

/// `Could the folder A be renamed to B, please?`: `please` marks an order; rewrites it into the form that `active` parses.
pub(crate) fn passive_question(text: &str) -> Option<String> {
    let masked = mask_literals(text, &literal_scanner::find(text));
    let lead = COULD.iter().find(|lead| masked.starts_with(**lead))?;
    let trimmed = masked.trim_end_matches(['?', ' ']);
    let end = [", please", " please"].iter().find_map(|word| trimmed.strip_suffix(word)).map(str::len);
    let polite = end.is_some() || lead.starts_with("please");
    let end = end.unwrap_or(trimmed.len());
    let be = masked.find(" be ").filter(|at| *at > lead.len() && *at < end)?;
    let plain = masked.matches('?').count() <= 1
        && !is_open(&masked[..end])
        && !["you ", "i ", "we ", "it ", "there "].iter().any(|word| masked[lead.len()..].starts_with(word));
    (polite && plain).then(|| format!("{} should be {}", &text[lead.len()..be], &text[be + 4..end]))
}

/// `There's a typo in F: change A to B there`, `The total is missing on the sheet S in F: …`: the location in the statement
/// applies to the order.
pub(crate) fn mentioned_location(text: &str) -> Option<String> {
    let literals = literal_scanner::find(text);
    let masked = mask_literals(text, &literals);
    let path = |found: &&literal::LiteralSpan| matches!(found.literal, Literal::Path(_));
    let file = literals.iter().find(path)?;
    let mark = BREAKS.iter().find(|mark| masked[file.end..].starts_with(**mark))?;
    let start = file.end + mark.len();
    let order = masked.get(start..)?;
    let at = [" in ", " on "].iter().filter_map(|word| masked[..file.start].find(word)).min()?;
    let (clause, place) = (masked.get(..at)?, text.get(at..file.end)?);
    let first = clause.split(' ').next()?;
    let states = SUBJECTS.contains(&first) || ["a", "an", "i", "some"].contains(&first);
    let plain = states
        && !has_han(&masked)
        && !clause.contains(['#', ',', ';', '?', '"'])
        && !clause.contains(|c: char| c.is_ascii_digit())
        && (2..=MAX_STATEMENT_WORDS).contains(&clause.split(' ').count())
        && !clause.contains("n't ")
        && !binds(clause)
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

/// `It would be good if X got staged`, `X isn't needed any more and should be cancelled`: plain passives.
pub(crate) fn passive_wish(text: &str) -> Option<String> {
    const GOOD: [&str; 6] = [
        "it would be good if ",
        "it would be great if ",
        "it would be nice if ",
        "it'd be good if ",
        "it'd be great if ",
        "it would help if ",
    ];
    const UNNEEDED: [&str; 8] = [
        " isn't needed any more and ",
        " isn't needed anymore and ",
        " is not needed any more and ",
        " is no longer needed and ",
        " isn't used any more and ",
        " is not needed anymore and ",
        " isn't needed and ",
        " is no longer used and ",
    ];
    let masked = mask_literals(text, &literal_scanner::find(text));
    if let Some((at, words)) = UNNEEDED.iter().find_map(|words| masked.find(words).map(|at| (at, *words))) {
        let rest = &masked[at + words.len()..];
        let passive = ["should be ", "has to be ", "must be ", "needs to be "]
            .iter()
            .any(|lead| rest.starts_with(lead));
        return (passive && !is_open(rest)).then(|| format!("{} {}", &text[..at], &text[at + words.len()..]));
    }
    let lead = GOOD.iter().find(|lead| masked.starts_with(**lead))?;
    let (at, got) = [" got ", " were ", " was ", " could be "]
        .iter()
        .find_map(|got| masked.find(got).map(|at| (at, *got)))?;
    (at > lead.len() && !is_open(&masked[lead.len()..]))
        .then(|| format!("{} should be {}", &text[lead.len()..at], &text[at + got.len()..]))
}

/// `A meeting called 'X' needs to be in the calendar on D …`: creates an event.
pub(crate) fn event_wish(text: &str) -> Option<String> {
    let literals = literal_scanner::find(text);
    let masked = mask_literals(text, &literals);
    let title = literals.first().filter(|found| matches!(found.literal, Literal::Quoted(_)))?;
    let lead = [
        "a meeting called ",
        "a meeting named ",
        "an event called ",
        "an appointment called ",
        "a meeting titled ",
        "a meeting ",
    ];
    let places = [
        " needs to be in the calendar",
        " should be in the calendar",
        " has to be in the calendar",
        " needs to be in my calendar",
        " should be in my calendar",
        " has to go into the calendar",
        " should go into my calendar",
        " needs to go into the calendar",
    ];
    let begins = lead.contains(&&masked[..title.start]);
    let place = places.iter().find(|place| masked[title.end..].starts_with(**place))?;
    (begins && !is_open(&masked)).then(|| {
        let rest = text[title.end + place.len()..].replacen(", room ", ", location ", 1);
        format!("create an event {}{rest}", &text[title.start..title.end])
    })
}

/// `Message m-4 belongs in the folder Contracts, please put it there`: moves a mail.
pub(crate) fn mail_move(text: &str) -> Option<String> {
    let masked = mask_literals(text, &literal_scanner::find(text));
    let kind = ["message ", "email ", "mail "].iter().find(|kind| masked.starts_with(**kind))?;
    let (at, verb) = [" belongs in the folder ", " belongs into the folder ", " belongs in folder "]
        .iter()
        .find_map(|verb| masked.find(verb).map(|at| (at, *verb)))?;
    let name = text.get(kind.len()..at)?;
    let rest = text.get(at + verb.len()..)?;
    let (folder, order) = rest.split_once([',', ';', '.'])?;
    let order = order.to_ascii_lowercase();
    let order =
        order.trim_matches([' ', '.', '!', '?']).trim_start_matches("so ").trim_start_matches("please ");
    let order =
        order.trim_start_matches("can you ").trim_start_matches("could you ").trim_end_matches(" please");
    let numbered = name.contains(|c: char| c.is_ascii_digit()) && !name.contains(' ');
    let ordered =
        ["put it there", "move it there", "move it", "file it there", "move it over"].contains(&order);
    (numbered && ordered && folder.split(' ').count() <= 3)
        .then(|| format!("move {kind}{name} to the folder {folder}"))
}

/// `The scan F belongs in D, can you move it there?`: moves a file into a folder.
pub(crate) fn file_move(text: &str) -> Option<String> {
    const VERBS_OF_PLACE: [&str; 8] = [
        " belongs in ",
        " belongs into ",
        " belongs under ",
        " belongs to the folder ",
        " should go into ",
        " should be in ",
        " should live in ",
        " goes into ",
    ];
    const ORDERS: [&str; 9] = [
        "move it there",
        "put it there",
        "move it over there",
        "move it",
        "file it there",
        "move that there",
        "move it over",
        "put it in there",
        "move it in there",
    ];
    let literals = literal_scanner::find(text);
    let masked = mask_literals(text, &literals);
    let (at, verb) = VERBS_OF_PLACE.iter().find_map(|verb| masked.find(verb).map(|at| (at, *verb)))?;
    let [file, folder] = literals.as_slice() else { return None };
    let path = |found: &literal::LiteralSpan| match &found.literal {
        Literal::Path(_) => true,
        Literal::Code(code) => code.contains('/'),
        _ => false,
    };
    let between = masked.get(at + verb.len()..folder.start)?;
    let placed = ["", "the folder ", "the directory ", "folder "].contains(&between);
    let order = masked[folder.end..].trim_start_matches([',', '.', ';', ' ', '-']);
    let order =
        order.trim_end_matches(['.', '?', '!', ' ']).trim_end_matches(" please").trim_end_matches(',');
    let order = ["so ", "please ", "can you ", "could you ", "would you ", "please "]
        .iter()
        .fold(order, |order, lead| order.strip_prefix(lead).unwrap_or(order));
    let clause = masked.get(..file.start)?;
    let plain = clause.split(' ').count() <= 4 && !clause.contains([',', '.', '?']) && !binds(clause);
    (path(file) && path(folder) && file.end == at && placed && plain && ORDERS.contains(&order)).then(|| {
        format!("move {} into the folder {}", &text[file.start..file.end], &text[folder.start..folder.end])
    })
}

/// `X can be deleted. Please do that.`: a permission with an order to use it.
pub(crate) fn permission(text: &str) -> Option<String> {
    const MAY: [&str; 6] =
        [" can be ", " may be ", " can now be ", " can go ahead and be ", " could be ", " may now be "];
    const DONE: [&str; 10] = [
        "please do that",
        "please do so",
        "please do it",
        "so please do that",
        "so please do it",
        "do that please",
        "do it please",
        "please go ahead",
        "go ahead",
        "please take care of that",
    ];
    let masked = mask_literals(text, &literal_scanner::find(text));
    let trimmed = masked.trim_end_matches(['.', '!', ' ']);
    let head = DONE.iter().find_map(|order| trimmed.strip_suffix(order))?.trim_end();
    let end = head.strip_suffix(['.', ';', ',', '-', ':'])?.trim_end().len();
    let (at, may) = MAY.iter().find_map(|may| masked[..end].find(may).map(|at| (at, *may)))?;
    (!is_open(&masked[..end]) && !binds(&masked[..end]))
        .then(|| format!("{} should be {}", &text[..at], &text[at + may.len()..end]))
}

/// `Would you mind staging X?`: converts the gerund to an imperative.
pub(crate) fn gerund_request(text: &str) -> Option<String> {
    let masked = mask_literals(text, &literal_scanner::find(text));
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
pub(crate) fn event_field_change(text: &str) -> Option<String> {
    const FIELDS: [&str; 7] = ["title", "location", "description", "start", "end", "start time", "end time"];
    const SHOULD: [&str; 6] =
        [" should be ", " should read ", " has to be ", " must be ", " needs to be ", " should become "];
    let masked = mask_literals(text, &literal_scanner::find(text));
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
    let new_value = text.get(at + should.len()..)?;
    let value = new_value.starts_with(|c: char| c.is_ascii_digit() || c.is_uppercase() || "\"'“".contains(c));
    let plain = thing.split(' ').count() <= 3 && !is_open(&masked) && value;
    (event && plain).then(|| {
        format!("change {} to {}", text[..at].replacen("The ", "the ", 1), &text[at + should.len()..])
    })
}

/// `the email with the ID 7731`, `event whose id is ev-3`: moves the ID directly after its kind.
pub(crate) fn id_after_kind(text: &str) -> Option<String> {
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
    let literals = literal_scanner::find(text);
    let masked = mask_literals(text, &literals);
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
    fn rewrites_wishes_as_imperatives() {
        let check = |step: fn(&str) -> Option<String>, text: &str, expect: Option<&str>| {
            assert_eq!(step(text).as_deref(), expect, "{text}");
        };
        check(
            needed_object,
            "A new branch named exam-2026 is what I need in courses/physics.",
            Some("I need a new branch named exam-2026 in courses/physics."),
        );
        check(needed_object, "If row 3 is what I need, keep it", None);
        check(
            passive_question,
            "Could the folder a/b be renamed to a/c, please?",
            Some("the folder a/b should be renamed to a/c"),
        );
        check(passive_question, "Could the folder a/b be renamed to a/c?", None);
        check(passive_question, "Can row 3 be deleted?", None);
        check(passive_question, "Could row 3 not be deleted, please?", None);
        check(
            mentioned_location,
            "There's a typo in docs/welcome.md: change 'recieve' to 'receive' there, please.",
            Some("change 'recieve' to 'receive' in docs/welcome.md"),
        );
        check(
            mentioned_location,
            "The total is missing on the sheet Expenses in trip.xlsx: enter the formula =SUM(B2:B14) in B15.",
            Some("enter the formula =SUM(B2:B14) in B15 on the sheet Expenses in trip.xlsx"),
        );
        check(mentioned_location, "There's a typo in a.md: change 'x' to 'y' in b.md", None);
        check(mentioned_location, "Row 3 is wrong in a.xlsx: delete the sheet B", None);
        check(mentioned_location, "There's a typo in a.md that must stay: change 'x' to 'y'", None);
        check(
            file_move,
            "The scan /in/a.pdf belongs in /data/contracts, can you move it there?",
            Some("move /in/a.pdf into the folder /data/contracts"),
        );
        check(file_move, "/in/a.pdf belongs in /data/contracts, not there", None);
        check(file_move, "/in/a.pdf belongs in /data/contracts", None);
        check(
            permission,
            "the entity Old Warehouse can be deleted from the graph. Please do that.",
            Some("the entity Old Warehouse should be deleted from the graph"),
        );
        check(permission, "the entity Old Warehouse can be deleted from the graph.", None);
        check(permission, "the entity A can be deleted if B agrees. Please do that.", None);
        check(gerund_request, "Would you mind staging a.ts in /srv/w?", Some("please stage a.ts in /srv/w"));
        check(gerund_request, "Would you mind if I deleted a.ts?", None);
        check(
            event_field_change,
            "The title of event ev-12 should be \"Plan\".",
            Some("change the title of event ev-12 to \"Plan\"."),
        );
        check(event_field_change, "The title of event ev-12 should be shorter.", None);
        check(
            id_after_kind,
            "Please read me the email with the ID 7731.",
            Some("Please read me the email 7731."),
        );
        check(id_after_kind, "cancel the event (id ev-3) today", Some("cancel the event ev-3 today"));
        check(id_after_kind, "delete the email with the word 7731", None);
    }
}
