//! Ranks the tools of an index for one request: by words first, then by names, sentences, history and meaning.

use std::cmp::Ordering;
use std::collections::HashMap;

use toolhub_core::Tool;

use crate::document::Document;
use crate::explain::ScoreComponents;
use crate::fit::FitEvidence;
use crate::history::ToolHistory;
use crate::index::ToolIndex;
use crate::names::NameMatch;
use crate::query::{self, Query};
use crate::text::is_han;
use crate::words::{components_by_words, scores_by_words, term_weights};

/// Number of the best documents by words that are scored exactly.
const MAX_SCORED_DOCUMENTS: usize = 64;

/// A search request.
#[derive(Debug, Clone, Copy)]
pub struct SearchRequest<'a> {
    /// The text, in English or Chinese.
    pub text: &'a str,
    /// Maximum number of hits.
    pub limit: usize,
    /// Past calls of tools.
    pub past: &'a [ToolHistory],
}

impl<'a> SearchRequest<'a> {
    /// A request for the ten best tools.
    pub fn new(text: &'a str) -> Self {
        Self { text, limit: 10, past: &[] }
    }

    /// Sets the maximum number of hits.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Sets the past calls of tools.
    #[must_use]
    pub fn past(mut self, past: &'a [ToolHistory]) -> Self {
        self.past = past;
        self
    }
}

/// A hit.
#[derive(Debug, Clone, Copy)]
pub struct RankedTool<'a> {
    /// The tool.
    pub tool: &'a Tool,
    /// Relevance, comparable only within one request.
    pub score: f32,
    /// The components of the score.
    pub parts: ScoreComponents,
}

/// The result of a request.
#[derive(Debug, Clone)]
pub struct Ranking<'a> {
    /// The best tools, relevant or not, best first.
    pub hits: Vec<RankedTool<'a>>,
    /// The confidence that the best tool is relevant, from 0 to 1.
    pub confidence: f32,
    /// Whether the confidence is sufficient; otherwise no hit should be shown.
    pub fits: bool,
    /// The evidence for the confidence.
    pub evidence: FitEvidence,
}

impl<'a> Ranking<'a> {
    /// The hits to show; empty if none is relevant.
    pub fn fitting(&self) -> &[RankedTool<'a>] {
        if self.fits { &self.hits } else { &[] }
    }
}

struct Candidate {
    number: usize,
    named: Option<NameMatch>,
    parts: ScoreComponents,
    score: f32,
    success_rate: f32,
}

impl ToolIndex {
    /// The best tools for a request, and whether any is relevant.
    pub fn rank(&self, request: &SearchRequest<'_>) -> Ranking<'_> {
        rank(self, request)
    }
}

fn rank<'a>(index: &'a ToolIndex, request: &SearchRequest<'_>) -> Ranking<'a> {
    let text = query::used_part(request.text);
    let query = Query::read(text, &index.tables, &index.settings);
    let weights = term_weights(index, &query);
    let mut scores = scores_by_words(index, &query, &weights);
    // The unit of all other components: the best score by words.
    let unit = scores.iter().copied().fold(0.0_f32, f32::max).max(1.0);

    // The supported encoders are English: for Chinese they degrade the results (docs/explanation/search.md).
    let vectors = index.vectors.as_ref().filter(|_| !text.chars().any(is_han));
    let similarities = vectors.map(|vectors| vectors.similarities(text)).unwrap_or_default();
    for (score, similarity) in scores.iter_mut().zip(&similarities) {
        *score += similarity * unit * index.settings.semantic_weight;
    }
    let named: HashMap<usize, NameMatch> = index
        .tables
        .names
        .mentioned(text, &index.documents)
        .into_iter()
        .map(|mention| (mention.document as usize, mention.named))
        .collect();
    let past = past_of(index, request.past);

    let mut looked_at = best_of(&scores, MAX_SCORED_DOCUMENTS.max(request.limit));
    looked_at.extend(named.keys().chain(past.keys()));
    looked_at.sort_unstable();
    looked_at.dedup();

    let mut candidates: Vec<Candidate> = Vec::with_capacity(looked_at.len());
    for number in looked_at {
        let Some(document) = index.documents.get(number) else { continue };
        let mut parts = components_by_words(index, document, &query.wanted, &weights);
        let named = named.get(&number).copied();
        parts.named = named.map_or(0.0, |named| weight_of(named, index.settings.phrase)) * unit;
        parts.meaning =
            similarities.get(number).copied().unwrap_or_default() * unit * index.settings.semantic_weight;
        let past = past.get(&number);
        parts.history = past.map_or(0.0, |past| past.strength()) * unit * index.settings.history;
        let score = parts.sum();
        if score > 0.0 {
            let success_rate = past.and_then(|past| past.success_rate).unwrap_or(0.5);
            candidates.push(Candidate { number, named, parts, score, success_rate });
        }
    }
    candidates.sort_by(order);
    candidates.truncate(MAX_SCORED_DOCUMENTS.max(request.limit));
    answer(index, &query, &candidates, request.limit)
}

fn answer<'a>(index: &'a ToolIndex, query: &Query, candidates: &[Candidate], limit: usize) -> Ranking<'a> {
    let best: Vec<(&'a Document, ScoreComponents)> = candidates
        .iter()
        .filter_map(|candidate| Some((&**index.documents.get(candidate.number)?, candidate.parts)))
        .collect();
    // A tool whose name is written out is certainly relevant.
    let named =
        candidates.first().and_then(|first| first.named).is_some_and(|named| named > NameMatch::Words);
    let evidence = FitEvidence { named, ..FitEvidence::of(index, query, &best) };
    let confidence = if named { 1.0 } else { evidence.confidence() };
    let fits = confidence >= index.settings.min_confidence && !best.is_empty();
    let hits = best.into_iter().take(limit);
    let hits = hits
        .map(|(document, parts)| RankedTool { tool: &document.tool, score: parts.sum(), parts })
        .collect();
    Ranking { hits, confidence, fits, evidence }
}

/// Scores that are equal after rounding to 1/1024 are a tie, decided by the success rate, then by the order of the
/// index.
fn order(a: &Candidate, b: &Candidate) -> Ordering {
    let rounded = |score: f32| (score * 1024.0).round();
    rounded(b.score)
        .total_cmp(&rounded(a.score))
        .then(b.success_rate.total_cmp(&a.success_rate))
        .then(a.number.cmp(&b.number))
}

/// In units of the best score by words. The steps exceed the maximum of words and focus together, so that a more
/// certain mention always ranks first.
fn weight_of(named: NameMatch, phrase: f32) -> f32 {
    match named {
        NameMatch::Words => phrase,
        NameMatch::Loose => 2.0,
        NameMatch::RespelledWithTypo => 4.0,
        NameMatch::WithTypo => 6.0,
        NameMatch::Respelled => 8.0,
        NameMatch::Exact => 10.0,
    }
}

/// The indexes of the best documents, unordered.
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

fn past_of<'a>(index: &ToolIndex, past: &'a [ToolHistory]) -> HashMap<usize, &'a ToolHistory> {
    let place = |past: &ToolHistory| {
        let documents = &index.documents;
        documents.binary_search_by(|document| {
            (&document.tool.source, document.tool.name()).cmp(&(&past.source, &past.name))
        })
    };
    past.iter().filter_map(|past| Some((place(past).ok()?, past))).collect()
}
