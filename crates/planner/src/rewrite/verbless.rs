//! Requests without a verb: `last 3 commits of X`, `New branch in X: Y`. Adds the verb if the noun implies it.

use crate::lexer::lexicon;
use crate::lexer::literal::Literal;
use crate::lexer::literal_scanner;
use crate::lexer::name::has_han;
use crate::lexer::split;
use crate::lexer::token::tokenize;
use crate::rewrite::masked_text::{free_text, has_word, is_open, mask_literals};
use crate::selection::verb_class::VERBS;

/// Kinds of things for which the implied verb reads.
const READABLE_NOUNS: [&str; 18] = [
    "commit",
    "branch",
    "status",
    "diff",
    "staged",
    "unstaged",
    "entity",
    "node",
    "graph",
    "event",
    "email",
    "folder",
    "tree",
    "size",
    "metadata",
    "relation",
    "modified",
    "permission",
];
/// Words before a thing to create.
const NEW: [&str; 6] = ["new ", "a new ", "brand new ", "a fresh ", "fresh ", "a brand new "];
const ANOTHER_WORDS: [&str; 7] =
    ["one more ", "another ", "an additional ", "additional ", "an extra ", "extra ", "also a "];
/// Words that show that a text is a sentence and not a noun phrase.
const SENTENCE: [&str; 34] = [
    "is", "are", "was", "were", "has", "have", "had", "do", "does", "did", "can", "could", "will", "would",
    "should", "must", "may", "might", "i", "we", "you", "they", "he", "she", "it", "what", "which", "who",
    "where", "why", "how", "keeps", "needs", "got",
];

/// Returns the request with the implied verbs added; `None` if every part has a verb.
pub(crate) fn with_verbs(text: &str) -> Option<String> {
    let literals = literal_scanner::find(text);
    let hidden = mask_literals(text, &literals);
    // Text after a colon is content and is not checked for questions.
    let free_text_start = hidden.find(": ").filter(|at| hidden[..*at].contains(' ')).unwrap_or(hidden.len());
    if has_han(&hidden) || is_open(&hidden[..free_text_start]) {
        return None;
    }
    let until = free_text(&hidden);
    let mut starts = vec![0];
    for mark in [", then ", " and then ", " then ", "; ", ". ", ", and then ", " after that "] {
        let ends = hidden.match_indices(mark).filter(|(at, _)| !hidden[..*at].ends_with('.'));
        starts.extend(ends.map(|(at, _)| at + mark.len()).filter(|at| *at < until));
    }
    // `… and switch it to X`: the next part starts with its own verb.
    for mark in [", and ", " and "] {
        let begins = |at: usize| {
            let word = hidden[at..].split(' ').next().unwrap_or_default();
            VERBS.english.contains_key(word) && split::is_verb(word)
        };
        starts.extend(
            hidden.match_indices(mark).map(|(at, _)| at + mark.len()).filter(|at| *at < until && begins(*at)),
        );
    }
    starts.sort_unstable();
    starts.dedup();
    let mut result = text.to_owned();
    let mut changed = false;
    for (index, start) in starts.iter().enumerate().rev() {
        let end = starts.get(index + 1).copied().unwrap_or(hidden.len());
        // `~/code/x: git status`: a location may stand at the start.
        let begin = match hidden[*start..end]
            .find(": ")
            .filter(|at| hidden[*start..start + at].bytes().all(|byte| byte == b'#'))
        {
            Some(at) => start + at + 2,
            None => *start,
        };
        let cells =
            literals.iter().any(|found| matches!(found.literal, Literal::Cells(_)) && *start <= found.start);
        if let Some(verb) = hidden.get(begin..end).and_then(|part| verb_for(part, starts.len() > 1, cells)) {
            let part = &text[begin..];
            let skip = if verb.is_empty() { 0 } else { part.len() - part.trim_start().len() };
            // `Status of X`: lowercases the first word, which would otherwise be read as a name after the added verb.
            let at = begin + skip;
            if result[at..].starts_with(|c: char| c.is_ascii_uppercase())
                && result[at + 1..].starts_with(|c: char| c.is_ascii_lowercase())
            {
                let small = result[at..=at].to_ascii_lowercase();
                result.replace_range(at..=at, &small);
            }
            result.insert_str(at, &format!("{verb} "));
            changed = true;
        }
    }
    changed.then_some(result)
}

/// The verb that a part implies.
fn verb_for(part: &str, is_one_of_several: bool, has_cells: bool) -> Option<&'static str> {
    let part = part.trim_start();
    let part = ["please ", "pls ", "kindly ", "just "]
        .iter()
        .fold(part, |part, word| part.strip_prefix(word).unwrap_or(part));
    let trimmed = part.trim_start_matches("the ").trim_start_matches("my ");
    let word = trimmed.split(|c: char| !c.is_ascii_alphabetic() && c != '\'' && c != '-').next()?;
    let is_name = |word: &str| word.is_empty() || word.starts_with('#');
    if is_name(word)
        || trimmed.starts_with("git ")
            && !trimmed.starts_with("git status")
            && !trimmed.starts_with("git log")
    {
        return None;
    }
    let made = NEW.iter().find(|new| part.starts_with(**new)).map(|_| "create");
    let made = made.or_else(|| ANOTHER_WORDS.iter().find(|more| part.starts_with(**more)).map(|_| "add"));
    let rest = match made {
        Some(_) => part,
        None => trimmed,
    };
    let head = rest.split([':', '#', '"']).next().unwrap_or_default();
    if SENTENCE.iter().any(|word| has_word(head, word)) {
        return None;
    }
    let word_matches = lexicon::word_matches(rest, &tokenize(rest), &|_| false);
    if made.is_some() {
        // `new branch …`: a noun for a kind of thing must precede the first literal, quote or colon.
        let things = word_matches
            .iter()
            .filter(|word_match| word_match.start < head.len() && !word_match.meaning.things.is_empty());
        return (things.count() > 0).then_some(made).flatten();
    }
    let colours = [
        "red", "yellow", "green", "blue", "grey", "gray", "orange", "white", "black", "light", "dark",
        "thin", "thick", "bold",
    ];
    let formats = ["background", "fill", "text", "font", "border", "borders", "shading", "highlight"];
    if has_cells && colours.contains(&word) && formats.iter().any(|format| has_word(head, format)) {
        return Some("set");
    }
    let known = |word: &str| VERBS.english.contains_key(word) || split::is_verb(word);
    let first_is_verb = known(word) && word != "git"
        || word_matches.first().is_some_and(|word_match| {
            word_match.start == 0
                && !word_match.meaning.verbs.is_empty()
                && word_match.meaning.things.is_empty()
                && word != "git"
        });
    let is_lookup = |word_match: &lexicon::WordMatch| {
        word_match.start < head.len().max(1)
            && word_match.meaning.things.iter().any(|row| READABLE_NOUNS.contains(&lexicon::thing(*row).name))
    };
    let times = is_one_of_several && has_word(head, "time");
    let noun = ["status", "commit", "diff", "log"].contains(&word) && !head[word.len()..].starts_with(" the");
    let other_verb = head.split(' ').skip(1).any(|word| {
        VERBS.english.contains_key(word)
            && ![
                "log", "commit", "branch", "diff", "status", "note", "email", "mail", "message", "file",
                "tree", "draft", "open", "set", "like", "record",
            ]
            .contains(&word)
    });
    ((!first_is_verb || noun && word != "commit")
        && !other_verb
        && (word_matches.iter().any(is_lookup) || times))
        .then_some("show")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds_verb_to_bare_nouns() {
        let check =
            |text: &str, expect: Option<&str>| assert_eq!(with_verbs(text).as_deref(), expect, "{text}");
        check("last 3 commits of ~/dev/a", Some("show last 3 commits of ~/dev/a"));
        check("remote branches of /srv/git/atlas", Some("show remote branches of /srv/git/atlas"));
        check("New branch in ~/labs/rpc: spike/grpc", Some("create new branch in ~/labs/rpc: spike/grpc"));
        check(
            "~/code/a: git status, then the last 5 commits",
            Some("~/code/a: show git status, then show the last 5 commits"),
        );
        check(
            "yellow background on B2:B15, sheet Risks, a.xlsx",
            Some("set yellow background on B2:B15, sheet Risks, a.xlsx"),
        );
        check("the branch main is broken", None);
        check("delete the branch", None);
        check("commit the changes in /srv/a", None);
        check("time in Tokyo", None);
    }
}
