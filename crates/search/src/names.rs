//! Finds the tools that a request names: as written, split into words, behind a server's name, or with a typo.

use std::sync::Arc;

use crate::document::Document;
use crate::text::{Term, TermMap, letters_of};

/// Longer stretches of a request are not a name.
const LONGEST_NAME: usize = 96;
/// A name of more words is named by its identifier.
const MOST_WORDS: usize = 8;
/// In shorter names one other letter makes another name.
const SHORTEST_WITH_TYPO: usize = 5;
/// From this length on, two typos are forgiven.
const SHORTEST_WITH_TWO: usize = 10;

/// How many identifiers of a request are looked for with typos; values look like identifiers too.
const MOST_LOOKED_FOR: usize = 8;

/// How a request names a tool, the surest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Named {
    /// Its words stand in the request one after the other.
    InWords,
    /// Its identifier with more than one typo.
    Loosely,
    /// Its identifier with one typo, in another spelling.
    Nearly,
    /// Its identifier with one typo, and else letter by letter.
    Mistyped,
    /// Its identifier in another spelling: `readFile` for `read_file`.
    Respelled,
    /// Its identifier, letter by letter.
    Exactly,
}

/// A tool that a request names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mention {
    pub(crate) document: u32,
    pub(crate) named: Named,
}

/// A name without its punctuation, in small letters: the same for every way to spell it.
pub(crate) fn key_of(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[derive(Debug)]
struct Entry {
    letters: u64,
    length: u16,
    document: u32,
}

/// The names of all documents.
#[derive(Debug, Default)]
pub(crate) struct Names {
    by_key: TermMap<Vec<u32>>,
    entries: Vec<Entry>,
}

impl Names {
    /// The names of these documents.
    pub(crate) fn build(documents: &[Arc<Document>]) -> Self {
        let mut by_key: TermMap<Vec<u32>> = TermMap::default();
        let mut entries = Vec::with_capacity(documents.len());
        for (number, document) in (0..).zip(documents) {
            let key = &document.name_key;
            by_key.entry(Term::of(key)).or_default().push(number);
            // With the server's name before it, as gateways write it.
            let qualified = key_of(&document.tool.source.to_string()) + key;
            by_key.entry(Term::of(&qualified)).or_default().push(number);
            entries.push(Entry { letters: letters_of(key), length: length(key), document: number });
        }
        Self { by_key, entries }
    }

    /// The tools a request names, each once, by its surest mention.
    pub(crate) fn mentioned(&self, request: &str, documents: &[Arc<Document>]) -> Vec<Mention> {
        let mut found: Vec<Mention> = Vec::new();
        let mut note = |document: u32, named: Named| match found.iter_mut().find(|m| m.document == document) {
            Some(mention) => mention.named = mention.named.max(named),
            None => found.push(Mention { document, named }),
        };
        let mut looked_for = 0;
        for written in identifiers(request) {
            let key = key_of(written);
            let known = self.by_key.get(&Term::of(&key));
            for document in known.into_iter().flatten() {
                let as_written = name_of(documents, *document).is_some_and(|name| name == written);
                note(*document, if as_written { Named::Exactly } else { Named::Respelled });
            }
            // Also where it is known: with a typo, one name can become another.
            if looked_for < MOST_LOOKED_FOR {
                looked_for += 1;
                self.near(written, documents, &mut note);
            }
        }
        for key in phrases(request) {
            for document in self.by_key.get(&Term::of(&key)).into_iter().flatten() {
                note(*document, Named::InWords);
            }
        }
        found
    }

    fn near(&self, written: &str, documents: &[Arc<Document>], note: &mut impl FnMut(u32, Named)) {
        let key = &key_of(written);
        let own = length(key);
        if usize::from(own) < SHORTEST_WITH_TYPO {
            return;
        }
        let most = if usize::from(own) < SHORTEST_WITH_TWO { 1 } else { 2 };
        let letters = letters_of(key);
        for entry in &self.entries {
            if entry.length.abs_diff(own) > most
                || (entry.letters ^ letters).count_ones() > 2 * u32::from(most)
            {
                continue;
            }
            let Some(document) = documents.get(entry.document as usize) else { continue };
            match strsim::osa_distance(&document.name_key, key) {
                0 => note(entry.document, Named::Respelled),
                1 if strsim::osa_distance(document.tool.name().as_str(), written) == 1 => {
                    note(entry.document, Named::Mistyped);
                }
                1 => note(entry.document, Named::Nearly),
                2 if most == 2 => note(entry.document, Named::Loosely),
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

/// What may be an identifier: the whole of a short request, and each word of it that is not written like a word.
fn identifiers(request: &str) -> impl Iterator<Item = &str> {
    let whole = request.trim();
    let is_short = whole.len() <= LONGEST_NAME && whole.split_whitespace().nth(MOST_WORDS).is_none();
    let words = request
        .split(|c: char| c.is_whitespace() || "\"'`“”‘’「」『』()（）[]{}<>,，。；;?？!！".contains(c))
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()))
        .filter(|word| word.len() <= LONGEST_NAME && is_identifier(word));
    Some(whole).filter(|_| is_short).into_iter().chain(words.filter(move |word| *word != whole))
}

/// `read_file`, `aws.s3.list`, `readFile`: punctuation or a capital inside, or letters and digits together.
fn is_identifier(word: &str) -> bool {
    let inside = word.chars().skip(1);
    let starts_well = word.starts_with(char::is_alphabetic);
    let humps = word.chars().zip(inside.clone()).any(|(a, b)| a.is_lowercase() && b.is_uppercase());
    starts_well && (humps || inside.clone().any(|c| matches!(c, '_' | '.' | '-' | '/' | ':')))
}

/// The keys of every two to six words in a row.
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
