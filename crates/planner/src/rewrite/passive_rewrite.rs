//! Coordinated passives: `X should be staged and then committed`, `Have A created and B moved to C`, `event 1 should be
//! retitled, event 2 cancelled`. Each part becomes an imperative.

use crate::lexer::literal_scanner;
use crate::lexer::name::has_han;
use crate::rewrite::masked_text::{is_open, mask_literals};
use crate::selection::verb_class::VERBS;

/// Words between two parts, longer ones first.
const JOINTS: [&str; 10] = [
    ", and after that ",
    " and after that ",
    ", and then ",
    " and then ",
    ", afterwards ",
    " and afterwards ",
    ", then ",
    ", and ",
    " and ",
    ", ",
];
/// Adverbs of order at the end of a part.
const ADVERBS: [&str; 5] = [" first", " after that", " afterwards", " instead", " then"];
/// Maximum length of the object of a part in words.
const MAX_OBJECT_WORDS: usize = 8;

/// The request with each passive part as an imperative; `None` if it has fewer than two such parts.
pub(crate) fn to_imperatives(text: &str) -> Option<String> {
    let literals = literal_scanner::find(text);
    let masked = mask_literals(text, &literals);
    if has_han(&masked) || is_open(&masked) {
        return None;
    }
    let trimmed_length = masked.trim_end_matches(['.', '!', ' ']).len();
    if let Some(other) = later_have(text, &masked[..trimmed_length]) {
        return Some(other);
    }
    let (prefix, first) = first_part(&masked[..trimmed_length])?;
    let mut result = format!("{}{} {}", &text[..prefix], first.verb, &text[first.object.0..first.object.1]);
    // `retitled 'X'`: the new title follows the participle.
    if first.verb == "retitle" && masked[first.rest..].starts_with(" #") {
        result.push_str(" to");
    }
    let mut from = first.rest;
    let mut found = 1;
    // Each joint with a participle after it begins another part; other joints belong to the part before.
    let mut at = from;
    while at < trimmed_length {
        let joint = JOINTS.iter().find(|joint| masked[at..trimmed_length].starts_with(**joint));
        let next = joint.and_then(|joint| later_part(&masked[..trimmed_length], at + joint.len()));
        let Some(part) = next else {
            at += masked[at..].chars().next().map_or(1, char::len_utf8);
            continue;
        };
        result.push_str(without_adverb(&text[from..at]));
        let object = match part.object.0 == part.object.1 {
            // `staged and then committed`: a commit has no object of its own.
            true if part.verb == "commit" => String::new(),
            true => format!(" {}", &text[first.object.0..first.object.1]),
            false => format!(" {}", &text[part.object.0..part.object.1]),
        };
        result.push_str(&format!(" and then {}{object}", part.verb));
        (from, at) = (part.rest, part.rest);
        found += 1;
    }
    result.push_str(without_adverb(&text[from..trimmed_length]));
    (found > 1).then_some(result)
}

/// `let me see F, afterwards have A in it replaced with B`: a later part with `have`.
fn later_have(text: &str, masked: &str) -> Option<String> {
    let (at, joint) =
        [", afterwards have ", ", and afterwards have ", " and then have ", ", then have ", " and have "]
            .iter()
            .find_map(|joint| masked.find(joint).map(|at| (at, *joint)))?;
    let start = at + joint.len();
    let mut position = start;
    for word in masked.get(start..)?.split(' ').take(MAX_OBJECT_WORDS) {
        if let Some((verb, rest)) = participle(masked, position).filter(|_| position > start) {
            let (object, inside) = match text.get(start..position)?.trim_end() {
                object if object.ends_with(" in it") => (&object[..object.len() - " in it".len()], " in it"),
                object => (object, ""),
            };
            let named = masked.get(start..position)?.contains('#');
            let head = text[..at].strip_prefix("First ").unwrap_or(&text[..at]);
            return named
                .then(|| format!("{head} and then {verb} {object}{}{inside}", &text[rest..masked.len()]));
        }
        position += word.len() + 1;
    }
    None
}

/// An imperative and the byte offsets of its object and of the words after the participle.
struct PassiveOrder {
    verb: String,
    object: (usize, usize),
    rest: usize,
}

/// `X should be Ved`, `Have X Ved`: the first part, after a place such as `In R, `.
fn first_part(masked: &str) -> Option<(usize, PassiveOrder)> {
    if let Some((at, passive)) =
        PASSIVES.iter().filter_map(|passive| masked.find(passive).map(|at| (at, *passive))).min()
    {
        let start = masked[..at].rfind([':', ';', '.', ',']).map_or(0, |mark| mark + 1);
        let start = start + masked[start..].len() - masked[start..].trim_start().len();
        let (verb, rest) = participle(masked, at + passive.len())?;
        let object = masked.get(start..at)?;
        let plain =
            !object.is_empty() && object.split(' ').count() <= MAX_OBJECT_WORDS && !object.starts_with("it ");
        return plain.then_some((start, PassiveOrder { verb, object: (start, at), rest }));
    }
    let lead = ["have ", "please have ", "i'd like ", "i want ", "first have "]
        .iter()
        .find(|lead| masked.starts_with(**lead))?;
    let part = later_part(masked, lead.len())?;
    (part.object.1 > part.object.0).then_some((0, part))
}

/// The verb of the participle at a byte offset, and the offset after it.
fn participle(masked: &str, at: usize) -> Option<(String, usize)> {
    let rest = masked.get(at..)?;
    let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    Some((verb_of(&rest[..end])?, at + end))
}

/// `event 2 cancelled`, `committed with …`: an object, which may be missing, and a participle.
fn later_part(masked: &str, from: usize) -> Option<PassiveOrder> {
    let rest = masked.get(from..)?;
    let skipped =
        ["then ", "also ", "have "].iter().find(|word| rest.starts_with(**word)).map_or(0, |word| word.len());
    let start = from + skipped;
    let mut at = start;
    for (count, word) in masked.get(start..)?.split(' ').enumerate() {
        let trimmed = word.trim_end_matches([',', ';']);
        // `the staged changes`, `a sheet named X`: a participle that describes the object.
        let describes = ["named", "called", "titled", "staged", "unstaged", "merged", "set", "put", "cut"]
            .contains(&trimmed)
            && count > 0
            || masked[..at].ends_with("the ");
        if !describes && let Some((verb, rest)) = participle(masked, at) {
            let end = masked[..at].trim_end().len().max(start);
            let object = masked.get(start..end)?;
            let named =
                object.is_empty() || object.contains('#') || object.contains(|c: char| c.is_ascii_digit());
            let plain = !object.contains([',', ';', '.'])
                && !PREPOSITIONS.iter().any(|word| object.starts_with(word));
            return (named && plain).then_some(PassiveOrder { verb, object: (start, end), rest });
        }
        if word.ends_with([',', ';', '.']) || count >= MAX_OBJECT_WORDS {
            return None;
        }
        at += word.len() + 1;
    }
    None
}

/// Words that continue the part before.
const PREPOSITIONS: [&str; 8] = ["with ", "to ", "from ", "in ", "on ", "as ", "by ", "for "];

fn without_adverb(text: &str) -> &str {
    ADVERBS.iter().find_map(|adverb| text.strip_suffix(adverb)).unwrap_or(text)
}

/// Phrases between the object and the participle of a passive order.
pub(crate) const PASSIVES: [&str; 12] = [
    " should be ",
    " must be ",
    " needs to be ",
    " need to be ",
    " has to be ",
    " have to be ",
    " is to be ",
    " are to be ",
    " should now be ",
    " ought to be ",
    " is supposed to be ",
    " are supposed to be ",
];

/// The verb of a past participle: `renamed` of `rename`, `written` of `write`.
pub(crate) fn verb_of(word: &str) -> Option<String> {
    const IRREGULAR: [(&str, &str); 10] = [
        ("written", "write"),
        ("sent", "send"),
        ("cut", "create"),
        ("made", "make"),
        ("put", "put"),
        ("set", "set"),
        ("shown", "show"),
        ("drawn", "draw"),
        ("built", "build"),
        ("taken", "take"),
    ];
    if ["called", "named", "titled"].contains(&word) {
        return Some("rename".to_owned());
    }
    if let Some((_, verb)) = IRREGULAR.iter().find(|(participle, _)| *participle == word) {
        return Some((*verb).to_owned());
    }
    let root = word.strip_suffix("ed")?;
    let mut forms = vec![root.to_owned(), format!("{root}e")];
    forms.extend(root.strip_suffix('i').map(|root| format!("{root}y")));
    if let Some(shorter) = root.char_indices().next_back().map(|(at, _)| &root[..at])
        && shorter.ends_with(|c: char| root.ends_with(c))
    {
        forms.push(shorter.to_owned());
    }
    forms
        .into_iter()
        .find(|form| VERBS.english.contains_key(form) || ["fetch", "list", "read"].contains(&form.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rewrites_coordinated_passives_as_imperatives() {
        let check =
            |text: &str, expect: Option<&str>| assert_eq!(to_imperatives(text).as_deref(), expect, "{text}");
        check(
            "In /srv/checkout, app.py has to be staged and then committed with the message 'Fix tax'.",
            Some("In /srv/checkout, stage app.py and then commit with the message 'Fix tax'"),
        );
        check(
            "Have the folder archive/2025 created first and logs/jan.log moved to archive/2025/jan.log after that.",
            Some("create the folder archive/2025 and then move logs/jan.log to archive/2025/jan.log"),
        );
        check(
            "Event ev-31 should be renamed to 'Data sync', event ev-32 cancelled.",
            Some("rename Event ev-31 to 'Data sync' and then cancel event ev-32"),
        );
        check(
            "First let me see a/v.yaml, afterwards have 'x: 2' in it replaced with 'x: 4'.",
            Some("let me see a/v.yaml and then replace 'x: 2' with 'x: 4' in it"),
        );
        check("The sheet Old must not be deleted and the sheet New renamed", None);
        check("Event ev-31 should be cancelled if event ev-32 moved", None);
        check("Event ev-31 should be cancelled", None);
    }
}
