//! Finds the tools whose name a request contains: as an identifier, as words, qualified by the server's name, or with
//! a typo.

use std::sync::Arc;

use crate::document::{Document, key_of};
use crate::text::{Term, TermMap, letters_of};

/// Maximum length of a name in a request.
const MAX_TOOL_NAME_CHARS: usize = 96;
/// Maximum number of words of a request that is looked up as a whole.
const MAX_PHRASE_WORDS: usize = 8;
/// Minimum length of a name for one typo; in shorter names a typo yields another name.
const MIN_CHARS_WITH_TYPO: usize = 5;
/// Minimum length of a name for two typos.
const MIN_CHARS_WITH_TWO_TYPOS: usize = 10;

/// Maximum number of identifiers of a request that are compared with typos; values look like identifiers too.
const MAX_FUZZY_IDENTIFIERS: usize = 8;

/// How a request names a tool, in ascending certainty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NameMatch {
    /// Its words are consecutive in the request.
    Words,
    /// Its identifier with more than one typo.
    Loose,
    /// Its identifier in another spelling, with one typo.
    RespelledWithTypo,
    /// Its exact identifier with one typo.
    WithTypo,
    /// Its identifier in another spelling: `readFile` for `read_file`.
    Respelled,
    /// Its exact identifier.
    Exact,
}

/// A tool whose name a request contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NameMention {
    pub(crate) document: u32,
    pub(crate) named: NameMatch,
}

#[derive(Debug)]
struct IndexedName {
    letters: u64,
    length: u16,
    document: u32,
}

/// The names of all documents.
#[derive(Debug, Default)]
pub(crate) struct Names {
    by_key: TermMap<Vec<u32>>,
    entries: Vec<IndexedName>,
}

impl Names {
    /// Indexes the names of these documents.
    pub(crate) fn build(documents: &[Arc<Document>]) -> Self {
        let mut by_key: TermMap<Vec<u32>> = TermMap::default();
        let mut entries = Vec::with_capacity(documents.len());
        for (number, document) in (0..).zip(documents) {
            let key = &document.name_key;
            by_key.entry(Term::of(key)).or_default().push(number);
            // Prefixed by the server's name, as gateways write it.
            let qualified = key_of(&document.tool.source.to_string()) + key;
            by_key.entry(Term::of(&qualified)).or_default().push(number);
            entries.push(IndexedName { letters: letters_of(key), length: length(key), document: number });
        }
        Self { by_key, entries }
    }

    /// The tools whose names a request contains, each once, with its most certain mention.
    pub(crate) fn mentioned(&self, request: &str, documents: &[Arc<Document>]) -> Vec<NameMention> {
        let mut found: Vec<NameMention> = Vec::new();
        let mut note =
            |document: u32, named: NameMatch| match found.iter_mut().find(|m| m.document == document) {
                Some(mention) => mention.named = mention.named.max(named),
                None => found.push(NameMention { document, named }),
            };
        let mut looked_for = 0;
        for written in identifiers(request) {
            let key = key_of(written);
            let known = self.by_key.get(&Term::of(&key));
            for document in known.into_iter().flatten() {
                let as_written = name_of(documents, *document).is_some_and(|name| name == written);
                note(*document, if as_written { NameMatch::Exact } else { NameMatch::Respelled });
            }
            // Also for known names: a typo may turn one name into another.
            if looked_for < MAX_FUZZY_IDENTIFIERS {
                looked_for += 1;
                self.similar(written, documents, &mut note);
            }
        }
        for key in phrases(request) {
            for document in self.by_key.get(&Term::of(&key)).into_iter().flatten() {
                note(*document, NameMatch::Words);
            }
        }
        found
    }

    fn similar(&self, written: &str, documents: &[Arc<Document>], note: &mut impl FnMut(u32, NameMatch)) {
        let key = &key_of(written);
        let own = length(key);
        if usize::from(own) < MIN_CHARS_WITH_TYPO {
            return;
        }
        let max_typos = if usize::from(own) < MIN_CHARS_WITH_TWO_TYPOS { 1 } else { 2 };
        let letters = letters_of(key);
        for entry in &self.entries {
            if entry.length.abs_diff(own) > max_typos
                || (entry.letters ^ letters).count_ones() > 2 * u32::from(max_typos)
            {
                continue;
            }
            let Some(document) = documents.get(entry.document as usize) else { continue };
            match strsim::osa_distance(&document.name_key, key) {
                0 => note(entry.document, NameMatch::Respelled),
                1 if strsim::osa_distance(document.tool.name().as_str(), written) == 1 => {
                    note(entry.document, NameMatch::WithTypo);
                }
                1 => note(entry.document, NameMatch::RespelledWithTypo),
                2 if max_typos == 2 => note(entry.document, NameMatch::Loose),
                _ => {}
            }
        }
    }
}

fn length(key: &str) -> u16 {
    u16::try_from(key.chars().count()).unwrap_or(u16::MAX)
}

fn name_of(documents: &[Arc<Document>], number: u32) -> Option<&str> {
    documents.get(number as usize).map(|document| document.tool.name().as_str())
}

/// Possible identifiers: the whole text of a short request, and each word that is not a plain word.
fn identifiers(request: &str) -> impl Iterator<Item = &str> {
    let trimmed = request.trim();
    let is_short =
        trimmed.len() <= MAX_TOOL_NAME_CHARS && trimmed.split_whitespace().nth(MAX_PHRASE_WORDS).is_none();
    let words = request
        .split(|c: char| c.is_whitespace() || "\"'`“”‘’「」『』()（）[]{}<>,，。；;?？!！".contains(c))
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()))
        .filter(|word| word.len() <= MAX_TOOL_NAME_CHARS && is_identifier(word));
    Some(trimmed).filter(|_| is_short).into_iter().chain(words.filter(move |word| *word != trimmed))
}

/// `read_file`, `aws.s3.list`, `readFile`: punctuation or an uppercase letter inside.
fn is_identifier(word: &str) -> bool {
    let inside = word.chars().skip(1);
    let starts_well = word.starts_with(char::is_alphabetic);
    let humps = word.chars().zip(inside.clone()).any(|(a, b)| a.is_lowercase() && b.is_uppercase());
    starts_well && (humps || inside.clone().any(|c| matches!(c, '_' | '.' | '-' | '/' | ':')))
}

/// The keys of all sequences of two to six words.
fn phrases(request: &str) -> Vec<String> {
    let words: Vec<String> = request
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .take(400)
        .map(str::to_lowercase)
        .collect();
    let mut keys = Vec::new();
    for start in 0..words.len() {
        let mut key = String::new();
        for (count, word) in words.iter().skip(start).take(6).enumerate() {
            key.push_str(word);
            if count > 0 {
                keys.push(key.clone());
            }
        }
    }
    keys
}
