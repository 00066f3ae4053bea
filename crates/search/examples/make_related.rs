//! Generates `data/related.bin.gz` from a sentence encoder and the compressed dictionary: English stems with their nearest
//! neighbours.
//!
//! `cargo run --release -p toolhub-search --example make_related -- MODEL crates/search/data/cedict.txt.gz
//! crates/search/data/related.bin.gz`, where MODEL is the folder of a model; see `docs/explanation/search.md`.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use flate2::read::GzDecoder;
use flate2::{Compression, GzBuilder};
use ndarray::{Array2, Axis, Slice};
use rust_stemmers::{Algorithm, Stemmer};
use toolhub_search::{Embedder as _, SentenceEncoder};

/// Word lengths in bytes. Shorter words are mostly units and letters, longer ones chemical terms.
const LENGTHS: std::ops::RangeInclusive<usize> = 3..=20;
/// Shorter words are not stemmed, as in the index.
const MIN_STEMMED_CHARS: usize = 4;
/// Minimum number of occurrences in the glosses; a word that occurs once is rare.
const MIN_GLOSSES: usize = 2;
/// Maximum number of forms that the vector of a stem is computed from.
const MAX_FORMS: usize = 3;
/// Maximum number of neighbours of a stem.
const NEIGHBOURS: usize = 16;
/// Minimum cosine similarity of related words.
const MIN_SIMILARITY: f32 = 0.35;
/// Number of stems per matrix multiplication with all others.
const BLOCK: usize = 512;

/// A stem and its forms in input order.
struct StemEntry {
    stem: String,
    forms: Vec<String>,
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().context("first argument: the folder of the model")?;
    let dictionary = arguments.next().context("second argument: the packed dictionary")?;
    let target = arguments.next().context("third argument: the file to write")?;
    let entries = entries(&words(Path::new(&folder), &dictionary)?);
    let model = SentenceEncoder::open(&folder)?;
    let vectors = vectors(&model, &entries)?;
    let related: Vec<Vec<(usize, f32)>> = neighbours(&vectors);
    write(&target, &entries, &related)
}

/// The whole words of the model's vocabulary in its order, then the words that occur more than once in the glosses.
fn words(folder: &Path, dictionary: &str) -> Result<Vec<String>> {
    let vocabulary = std::fs::read_to_string(folder.join("vocab.txt")).context("vocab.txt of the model")?;
    let mut glosses = String::new();
    let file = File::open(dictionary).with_context(|| dictionary.to_owned())?;
    GzDecoder::new(file).read_to_string(&mut glosses).with_context(|| dictionary.to_owned())?;
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let of_glosses = || {
        let glosses = glosses.lines().filter_map(|line| line.split_once('\t'));
        glosses.flat_map(|(_, glosses)| glosses.split([';', ' '])).filter(|word| is_word(word))
    };
    of_glosses().for_each(|word| *counts.entry(word).or_default() += 1);
    let usual = of_glosses().filter(|word| counts.get(word).is_some_and(|count| *count >= MIN_GLOSSES));
    let mut seen = HashSet::new();
    let all = vocabulary.lines().filter(|word| is_word(word)).chain(usual);
    Ok(all.filter(|word| seen.insert(*word)).map(str::to_owned).collect())
}

fn is_word(word: &str) -> bool {
    LENGTHS.contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_lowercase())
}

fn entries(words: &[String]) -> Vec<StemEntry> {
    let stemmer = Stemmer::create(Algorithm::English);
    let mut entries: Vec<StemEntry> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for word in words {
        let stem =
            if word.len() < MIN_STEMMED_CHARS { word.clone() } else { stemmer.stem(word).into_owned() };
        let index = *places.entry(stem.clone()).or_insert(entries.len());
        if index == entries.len() {
            entries.push(StemEntry { stem, forms: Vec::new() });
        }
        if let Some(entry) = entries.get_mut(index).filter(|entry| entry.forms.len() < MAX_FORMS) {
            entry.forms.push(word.clone());
        }
    }
    entries
}

/// One row per stem: the mean of its forms, normalized to length 1. The first form, the most frequent one, counts twice.
fn vectors(model: &SentenceEncoder, entries: &[StemEntry]) -> Result<Array2<f32>> {
    let texts: Vec<&str> = entries.iter().flat_map(|entry| &entry.forms).map(String::as_str).collect();
    let mut made = model.embed(&texts)?.into_iter();
    let mut rows = Array2::<f32>::zeros((entries.len(), model.size()));
    for (mut row, entry) in rows.axis_iter_mut(Axis(0)).zip(entries) {
        for number in 0..entry.forms.len() {
            let vector = made.next().context("a vector for each word")?;
            let counts = if number == 0 { 2.0 } else { 1.0 };
            row.iter_mut().zip(&vector).for_each(|(sum, value)| *sum += counts * value);
        }
        let length = row.dot(&row).sqrt();
        row /= length;
    }
    Ok(rows)
}

/// For each row, the nearest other rows with their cosine similarity in descending order; ties in row order.
fn neighbours(vectors: &Array2<f32>) -> Vec<Vec<(usize, f32)>> {
    let mut all = Vec::with_capacity(vectors.nrows());
    for start in (0..vectors.nrows()).step_by(BLOCK) {
        let end = vectors.nrows().min(start + BLOCK);
        let close = vectors.slice_axis(Axis(0), Slice::from(start..end)).dot(&vectors.t());
        for (own, row) in (start..).zip(close.axis_iter(Axis(0))) {
            let others = row.iter().copied().enumerate();
            let mut found: Vec<(usize, f32)> =
                others.filter(|(other, close)| *other != own && *close > MIN_SIMILARITY).collect();
            found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            found.truncate(NEIGHBOURS);
            all.push(found);
        }
    }
    all
}

/// Writes the format described in `data/README.md`, without stems that have no neighbours.
fn write(target: &str, entries: &[StemEntry], related: &[Vec<(usize, f32)>]) -> Result<()> {
    let mut places: HashMap<usize, u16> = HashMap::new();
    let with_some = || (0..).zip(entries).zip(related).filter(|(_, neighbours)| !neighbours.is_empty());
    for ((number, _), _) in with_some() {
        places.insert(number, u16::try_from(places.len()).context("too many stems for two bytes")?);
    }
    ensure!(!places.is_empty(), "the model relates no words");
    let file = File::create(target).with_context(|| target.to_owned())?;
    // Reproducible output: the gzip header has no time and no file name.
    let mut packed = GzBuilder::new().write(file, Compression::best());
    packed.write_all(&u32::try_from(places.len())?.to_le_bytes())?;
    for ((_, entry), _) in with_some() {
        writeln!(packed, "{}", entry.stem)?;
    }
    for (_, neighbours) in with_some() {
        packed.write_all(&[u8::try_from(neighbours.len())?])?;
        for (number, close) in neighbours {
            // Cosine similarity is symmetric, so that every neighbour has a neighbour itself.
            let index = places.get(number).context("a neighbour without neighbours")?;
            packed.write_all(&index.to_le_bytes())?;
            packed.write_all(&[(close.clamp(0.0, 1.0) * 255.0).round() as u8])?;
        }
    }
    packed.finish()?;
    Ok(())
}
