//! Ranks the tools of an index for one request: words first, then names, sentences, history and meaning.

use std::cmp::Ordering;
use std::collections::HashMap;

use toolhub_core::Tool;

use crate::document::Document;
use crate::explain::Parts;
use crate::fit::Evidence;
use crate::history::Past;
use crate::index::Index;
use crate::names::Named;
use crate::query::{self, Query};
use crate::text::is_han;
use crate::words::{parts_by_words, scores_by_words, worth_of};

/// How many of the best by words alone are looked at again.
const LOOKED_AT: usize = 64;

/// What to find.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// What is asked for, in English or Chinese.
    pub text: &'a str,
    /// At most this many tools.
    pub limit: usize,
    /// What is known of the past of tools.
    pub past: &'a [Past],
}

impl<'a> Request<'a> {
    /// The ten best tools for a text.
    pub fn new(text: &'a str) -> Self {
        Self { text, limit: 10, past: &[] }
    }

    /// At most this many tools.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// With what is known of the past.
    #[must_use]
    pub fn past(mut self, past: &'a [Past]) -> Self {
        self.past = past;
        self
    }
}

/// One tool that was found.
#[derive(Debug, Clone, Copy)]
pub struct Hit<'a> {
    /// The tool.
    pub tool: &'a Tool,
    /// How well it fits, to compare hits of one request with each other.
    pub score: f32,
    /// What the score is made of.
    pub parts: Parts,
}

/// The answer to a request.
#[derive(Debug, Clone)]
pub struct Ranking<'a> {
    /// The best tools, whether they fit or not, best first.
    pub hits: Vec<Hit<'a>>,
    /// How sure it is that the best tool fits, from 0 to 1.
    pub confidence: f32,
    /// Whether that is sure enough: below, none of the hits is worth showing.
    pub fits: bool,
    /// What the confidence was read from.
    pub evidence: Evidence,
}

impl<'a> Ranking<'a> {
    /// The tools to show: none where none fits.
    pub fn fitting(&self) -> &[Hit<'a>] {
        if self.fits { &self.hits } else { &[] }
    }
}

struct Candidate {
    number: usize,
    named: Option<Named>,
    parts: Parts,
    score: f32,
    success_rate: f32,
}

pub(crate) fn rank<'a>(index: &'a Index, request: &Request<'_>) -> Ranking<'a> {
    let text = query::cut(request.text);
    let query = Query::read(text, &index.tables, &index.settings);
    let worth = worth_of(index, &query);
    let mut scores = scores_by_words(index, &query, &worth);
    // The unit in which all that is not a word is measured: the best score by words.
    let unit = scores.iter().copied().fold(0.0_f32, f32::max).max(1.0);

    // The encoders that can be loaded know English: on Chinese they cost more than they give (docs/explanation/search.md).
    let vectors = index.vectors.as_ref().filter(|_| !text.chars().any(is_han));
    let closeness = vectors.map(|vectors| vectors.closeness(text)).unwrap_or_default();
    for (score, close) in scores.iter_mut().zip(&closeness) {
        *score += close * unit * index.settings.meaning;
    }
    let named: HashMap<usize, Named> = index
        .tables
        .names
        .mentioned(text, &index.documents)
        .into_iter()
        .map(|mention| (mention.document as usize, mention.named))
        .collect();
    let past = past_of(index, request.past);

    let mut looked_at = best_of(&scores, LOOKED_AT.max(request.limit));
    looked_at.extend(named.keys().chain(past.keys()));
    looked_at.sort_unstable();
    looked_at.dedup();

    let mut candidates: Vec<Candidate> = Vec::with_capacity(looked_at.len());
    for number in looked_at {
        let Some(document) = index.documents.get(number) else { continue };
        let mut parts = parts_by_words(index, document, &query.wanted, &worth);
        let named = named.get(&number).copied();
        parts.named = named.map_or(0.0, |named| weight_of(named, index.settings.phrase)) * unit;
        parts.meaning = closeness.get(number).copied().unwrap_or_default() * unit * index.settings.meaning;
        let past = past.get(&number);
        parts.history = past.map_or(0.0, |past| past.strength()) * unit * index.settings.history;
        let score = parts.sum();
        if score > 0.0 {
            let success_rate = past.and_then(|past| past.success_rate).unwrap_or(0.5);
            candidates.push(Candidate { number, named, parts, score, success_rate });
        }
    }
    candidates.sort_by(order);
    candidates.truncate(LOOKED_AT.max(request.limit));
    answer(index, &query, &candidates, request.limit)
}

fn answer<'a>(index: &'a Index, query: &Query, candidates: &[Candidate], limit: usize) -> Ranking<'a> {
    let best: Vec<(&'a Document, Parts)> = candidates
        .iter()
        .filter_map(|candidate| Some((&**index.documents.get(candidate.number)?, candidate.parts)))
        .collect();
    // Who writes a tool's name means it.
    let named = candidates.first().and_then(|first| first.named).is_some_and(|named| named > Named::InWords);
    let evidence = Evidence { named, ..Evidence::of(index, query, &best) };
    let confidence = if named { 1.0 } else { evidence.confidence() };
    let fits = confidence >= index.settings.fit && !best.is_empty();
    let hits = best.into_iter().take(limit);
    let hits =
        hits.map(|(document, parts)| Hit { tool: &document.tool, score: parts.sum(), parts }).collect();
    Ranking { hits, confidence, fits, evidence }
}

/// Scores that are equal to the third digit are a tie, which the success rate breaks; then the order of the index.
fn order(a: &Candidate, b: &Candidate) -> Ordering {
    let rounded = |score: f32| (score * 1024.0).round();
    rounded(b.score)
        .total_cmp(&rounded(a.score))
        .then(b.success_rate.total_cmp(&a.success_rate))
        .then(a.number.cmp(&b.number))
}

/// In units of the best score by words. The steps are wider than what words and focus give together, so that a surer
/// mention always comes first.
fn weight_of(named: Named, phrase: f32) -> f32 {
    match named {
        Named::InWords => phrase,
        Named::Loosely => 2.0,
        Named::Nearly => 4.0,
        Named::Mistyped => 6.0,
        Named::Respelled => 8.0,
        Named::Exactly => 10.0,
    }
}

/// The numbers of the best documents, in no order.
fn best_of(scores: &[f32], count: usize) -> Vec<usize> {
    let mut found: Vec<usize> =
        scores.iter().enumerate().filter(|(_, score)| **score > 0.0).map(|(number, _)| number).collect();
    let score = |number: &usize| scores.get(*number).copied().unwrap_or_default();
    if found.len() > count {
        found.select_nth_unstable_by(count, |a, b| score(b).total_cmp(&score(a)).then(a.cmp(b)));
        found.truncate(count);
    }
    found
}

fn past_of<'a>(index: &Index, past: &'a [Past]) -> HashMap<usize, &'a Past> {
    let place = |past: &Past| {
        let documents = &index.documents;
        documents.binary_search_by(|document| {
            (&document.tool.source, document.tool.name()).cmp(&(&past.source, &past.name))
        })
    };
    past.iter().filter_map(|past| Some((place(past).ok()?, past))).collect()
}
