//! Replaces colloquial words of a request by the words in the other tables: `ditch the tab X`, 瞅一眼. Quotes, paths and free
//! text after a label are not changed.

use std::sync::LazyLock;

use crate::lexer::literal::{Literal, LiteralSpan};
use crate::lexer::literal_scanner;
use crate::lexer::name::has_han;
use crate::rewrite::masked_text::{free_text, mask_literals};

const TABLE: &str = include_str!("../../data/colloquial.tsv");

/// How a phrase of the table is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EntryKind {
    /// The phrase has no meaning and is removed.
    Drop,
    /// The phrase is replaced in the position of a verb.
    Verb,
    /// The same, if a destination follows in its clause.
    VerbWithDestination,
    /// The phrase is replaced anywhere.
    Anywhere,
}

struct PhraseEntry {
    kind: EntryKind,
    plain: &'static str,
    phrase: String,
}

/// Sorted by length, longest first.
static ENTRIES: LazyLock<Vec<PhraseEntry>> = LazyLock::new(|| {
    let mut entries = Vec::new();
    for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
        let mut columns = line.split('\t');
        let kind = match columns.next() {
            Some("drop") => EntryKind::Drop,
            Some("verb") => EntryKind::Verb,
            Some("into") => EntryKind::VerbWithDestination,
            Some("say") => EntryKind::Anywhere,
            _ => continue,
        };
        let plain = columns.next().unwrap_or_default();
        let phrases = columns.next().unwrap_or_default().split_whitespace();
        entries.extend(phrases.map(|phrase| PhraseEntry { kind, plain, phrase: phrase.replace('_', " ") }));
    }
    entries.sort_by_key(|entry| {
        std::cmp::Reverse((entry.phrase.len(), entry.kind == EntryKind::VerbWithDestination))
    });
    entries
});

/// Words before a verb, with the blank between them.
const BEFORE_VERBS: [&str; 24] = [
    ", ",
    ". ",
    "; ",
    ": ",
    "! ",
    "? ",
    " - ",
    "and ",
    "then ",
    "please ",
    "can you ",
    "could you ",
    "would you ",
    "just ",
    "so ",
    "to ",
    "let's ",
    "now ",
    "hey ",
    "hi ",
    "ok ",
    "quickly ",
    "go and ",
    "…",
];
/// Prepositions before a destination.
const DESTINATION_PREPOSITIONS: [&str; 4] = [" into ", " in ", " to ", " under "];

/// The request in plain words; `None` if nothing changes.
pub(crate) fn plain(text: &str) -> Option<String> {
    let mut result = text.to_owned();
    let mut changed = false;
    for entry in ENTRIES.iter() {
        while let Some(other) = replaced(&result, entry) {
            result = other;
            changed = true;
        }
    }
    // `… without node_modules please.`
    let trimmed = result.trim_end_matches(['.', '!', ' ']);
    if let Some(shorter) =
        trimmed.strip_suffix(" please").filter(|shorter| !shorter.ends_with([',', '"', '\'']))
        && free_text(&mask_literals(&result, &literal_scanner::find(&result))) >= result.len()
    {
        result = shorter.to_owned();
        changed = true;
    }
    let result = result.trim().trim_start_matches([',', '，', '、', '。', '!', '！']).trim_start();
    (changed && !result.is_empty()).then(|| result.to_owned())
}

/// The text with the first applicable occurrence of an entry replaced.
fn replaced(text: &str, entry: &PhraseEntry) -> Option<String> {
    // Fast path: most phrases do not occur, and finding literals is expensive.
    if !text.to_ascii_lowercase().replace('’', "'").contains(&entry.phrase)
        || text.contains('’') && entry.phrase.contains('\'')
    {
        return None;
    }
    let literals = literal_scanner::find(text);
    let masked = mask_literals(text, &literals);
    let until = free_text(&masked);
    let ascii = entry.phrase.is_ascii();
    let at = masked.match_indices(&entry.phrase).map(|(at, _)| at).find(|at| {
        let end = at + entry.phrase.len();
        let fits = entry.kind != EntryKind::VerbWithDestination || path_follows(&literals, end);
        end <= until && (!ascii || is_whole(&masked, *at, end)) && fits && applies(&masked, *at, end, entry)
    })?;
    let end = at + entry.phrase.len();
    let (before, after) = (&text[..at], &text[end..]);
    if entry.kind == EntryKind::Drop {
        let before = before.trim_end_matches([' ', ',', '，', '-', '–', '、', '~', '～']);
        let after = after.trim_start_matches(['!', '！', '~', '～', '啊', '哈', '呀', '哦', '啦']);
        let after =
            if before.is_empty() { after.trim_start_matches([' ', ',', '，', '.', '。']) } else { after };
        let gap = if before.is_empty()
            || after.starts_with([' ', ',', '，', '.', '。', '?', '!', ';', '；'])
            || after.is_empty()
        {
            ""
        } else if has_han(text) {
            "，"
        } else {
            " "
        };
        return Some(format!(
            "{before}{gap}{}",
            after.trim_start_matches(if gap.is_empty() { &[][..] } else { &[' '][..] })
        ));
    }
    Some(format!("{before}{}{after}", entry.plain))
}

/// Whether a path directly follows a byte offset.
fn path_follows(literals: &[LiteralSpan], at: usize) -> bool {
    literals.iter().any(|found| {
        let path = match &found.literal {
            Literal::Path(_) => true,
            Literal::Code(code) => code.contains('/'),
            _ => false,
        };
        path && found.start == at + 1
    })
}

fn is_whole(text: &str, start: usize, end: usize) -> bool {
    let letter =
        |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '\'' | '-' | '_' | '#'));
    !letter(text[..start].chars().next_back()) && !letter(text[end..].chars().next())
}

fn applies(masked: &str, start: usize, end: usize, entry: &PhraseEntry) -> bool {
    let before = &masked[..start];
    let is_verb = || before.trim().is_empty() || BEFORE_VERBS.iter().any(|word| before.ends_with(word));
    match entry.kind {
        // `entity` is replaced by its Chinese word in a Chinese request only.
        EntryKind::Anywhere => {
            let mixed = entry.phrase.is_ascii() && !entry.plain.is_ascii();
            !entry.plain.contains(&entry.phrase) && (!mixed || has_han(masked))
        }
        EntryKind::Verb => is_verb(),
        EntryKind::VerbWithDestination => {
            let clause = &masked[end..];
            let clause = &clause[..clause.find([';', '.']).unwrap_or(clause.len())];
            // `chuck FILE into FOLDER`: requires an object and a destination.
            let thing = clause.trim_start().starts_with('#');
            is_verb()
                && thing
                && DESTINATION_PREPOSITIONS.iter().any(|word| {
                    clause.find(word).is_some_and(|at| {
                        let goal = clause[at + word.len()..]
                            .trim_start_matches("the ")
                            .trim_start_matches("folder ");
                        goal.starts_with('#') || goal.starts_with("there")
                    })
                })
        }
        // `thanks` must be a separate word at the beginning or end of a part.
        EntryKind::Drop => {
            let alone = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
            if !entry.phrase.is_ascii() {
                let closes = masked[end..]
                    .chars()
                    .next()
                    .is_none_or(|c| !c.is_alphanumeric() || "啊哈呀哦啦，。".contains(c));
                let opens = before.chars().next_back().is_none_or(|c| !c.is_alphanumeric());
                return closes && opens;
            }
            let opens = before.trim_end().chars().next_back().is_none_or(|c| ",.!?;:-–…\n".contains(c));
            let closes = masked[end..].trim_start().chars().next().is_none_or(|c| ",.!?;:-–…\n".contains(c));
            alone(before.chars().next_back()) && (opens || closes)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_colloquial_words() {
        let check = |text: &str, expect: Option<&str>| assert_eq!(plain(text).as_deref(), expect, "{text}");
        check("ditch the tab Old from a.xlsx", Some("delete the tab Old from a.xlsx"));
        check("Chuck /in/a.csv into /out/", Some("move /in/a.csv into /out/"));
        check("chuck it", None);
        check("spin up a branch x/y in /srv/a? cheers", Some("spin up a branch x/y in /srv/a?"));
        check("commit /srv/a, message: ditch the cheers", None);
        check("write 'cheers' to a.txt", None);
        check("瞅一眼 /srv/a 的状态", Some("看看 /srv/a 的状态"));
        check("读一下 a.txt，谢啦", Some("读一下 a.txt"));
    }
}
