//! Generates `data/cedict.txt.gz` from a CC-CEDICT release: headwords with short English glosses, sorted and compressed.
//!
//! `cargo run --release -p toolhub-search --example make_dictionary -- cedict_ts.u8 crates/search/data/cedict.txt.gz`

use std::collections::BTreeMap;
use std::io::Write as _;

use anyhow::{Context as _, Result};
use flate2::{Compression, GzBuilder};

/// In characters. Longer headwords are proverbs.
const MAX_HEADWORD_CHARS: usize = 6;
/// In words. Longer glosses are explanations, not translations.
const MAX_GLOSS_WORDS: usize = 3;
const MAX_GLOSSES: usize = 8;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let source = arguments.next().context("first argument: the CC-CEDICT text")?;
    let target = arguments.next().context("second argument: the file to write")?;
    let text = std::fs::read_to_string(&source).with_context(|| source.clone())?;
    let mut words: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (headword, glosses) in text.lines().filter_map(entry) {
        let known = words.entry(headword).or_default();
        for gloss in glosses {
            if known.len() < MAX_GLOSSES && !known.contains(&gloss) {
                known.push(gloss);
            }
        }
    }
    words.retain(|_, glosses| !glosses.is_empty());
    let file = std::fs::File::create(&target).with_context(|| target.clone())?;
    // Reproducible output: the gzip header has no time and no file name.
    let mut packed = GzBuilder::new().write(file, Compression::best());
    for (headword, glosses) in &words {
        writeln!(packed, "{headword}\t{}", glosses.join(";"))?;
    }
    packed.finish()?;
    Ok(())
}

/// The simplified headword of a line and its usable glosses.
fn entry(line: &str) -> Option<(&str, Vec<String>)> {
    if line.starts_with('#') {
        return None;
    }
    let (words, rest) = line.split_once(" [")?;
    let (_, rest) = rest.split_once("] /")?;
    let headword = words.split(' ').nth(1)?;
    let length = headword.chars().count();
    if length > MAX_HEADWORD_CHARS || !headword.chars().all(is_han) {
        return None;
    }
    let glosses = rest.trim_end_matches('/').split('/').filter(|gloss| is_translation(gloss));
    let glosses: Vec<String> = glosses
        .flat_map(|gloss| without_brackets(gloss).split([';', ',']).map(plain).collect::<Vec<_>>())
        .flatten()
        .collect();
    Some((headword, glosses))
}

fn is_han(c: char) -> bool {
    ('\u{3400}'..='\u{9fff}').contains(&c)
}

/// Whether a gloss translates the headword; others are notes about it.
fn is_translation(gloss: &str) -> bool {
    const ABOUT: &[&str] = &[
        "CL:",
        "variant of",
        "old variant",
        "see ",
        "surname",
        "abbr. ",
        "used in",
        "also written",
        "Taiwan pr.",
        "also pr.",
        "erhua",
        "Japanese variant",
        "(bound form)",
        "classifier",
        "onom.",
        "(onom.)",
        "same as",
        "equivalent of",
    ];
    !ABOUT.iter().any(|start| gloss.starts_with(start)) && !gloss.chars().any(is_han)
}

fn without_brackets(gloss: &str) -> String {
    let mut depth = 0_usize;
    let mut plain = String::new();
    for c in gloss.chars() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            _ if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    plain
}

/// The words of a gloss in lower case, without function words; `None` if there are none or more than `MAX_GLOSS_WORDS`.
fn plain(gloss: &str) -> Option<String> {
    const EMPTY: &[&str] =
        &["to", "a", "an", "the", "be", "of", "sb", "sth", "one", "s", "oneself", "ones", "for", "in", "on"];
    let words: Vec<String> = gloss
        .split(|c: char| !c.is_ascii_alphanumeric())
        .map(str::to_ascii_lowercase)
        .filter(|word| !word.is_empty() && !EMPTY.contains(&word.as_str()))
        .collect();
    (!words.is_empty() && words.len() <= MAX_GLOSS_WORDS).then(|| words.join(" "))
}
