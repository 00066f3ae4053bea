//! Okapi BM25 as a baseline, computed over the same sets in the same run: on lower-cased words of name and description,
//! and on the terms that the index itself uses.
//!
//! The formula is the one of Lucene: idf = ln(1 + (N − n + 0.5) / (n + 0.5)), and for each term of the request
//! idf · f · (k1 + 1) / (f + k1 · (1 − b + b · length / mean length)). A term that occurs twice in the request counts twice.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::hash::Hash;

use toolhub_core::Tool;
use toolhub_search::metrics::{SearchReport, SearchTally};
use toolhub_search::terms::Tokenizer;

use crate::sets::Set;

/// Term frequency saturation, as in Lucene and Elasticsearch.
const K1: f64 = 1.2;
/// Document length normalization, as in Lucene and Elasticsearch.
const B: f64 = 0.75;
/// Number of documents considered for R@10 and nDCG@10.
const DEPTH: usize = 10;

/// The terms used by BM25.
#[derive(Clone, Copy)]
pub(crate) enum Terms {
    /// Lower-cased runs of letters and digits in name and description. A run of Chinese characters is one word.
    Plain,
    /// The terms of the index, over all texts of the definition: identifiers split, stems without stop words, parameters,
    /// Chinese by characters and pairs.
    Index,
}

/// The quality of BM25 on one set.
pub(crate) fn measure(queries: &Set, tools: &Set, terms: Terms) -> SearchReport {
    match terms {
        Terms::Plain => report(queries, tools, plain_of_tool, plain),
        Terms::Index => {
            let (mut of_tools, mut of_requests) = (Tokenizer::default(), Tokenizer::default());
            report(queries, tools, |tool| of_tools.tool(tool), |text| of_requests.text(text))
        }
    }
}

fn report<T: Hash + Eq>(
    queries: &Set,
    tools: &Set,
    of_tool: impl FnMut(&Tool) -> Vec<T>,
    mut of_request: impl FnMut(&str) -> Vec<T>,
) -> SearchReport {
    let ids: Vec<&str> = tools.tools.iter().map(|(id, _)| id.as_str()).collect();
    let index = Bm25::new(tools.tools.iter().map(|(_, tool)| tool).map(of_tool));
    let mut tally = SearchTally::default();
    for query in &queries.queries {
        let best = index.rank(&of_request(&query.query));
        let found: Vec<&str> = best.into_iter().filter_map(|document| ids.get(document).copied()).collect();
        let right: Vec<&str> = query.relevant.iter().map(String::as_str).collect();
        tally.add(&found, &right, std::time::Duration::ZERO);
    }
    tally.report(std::time::Duration::ZERO)
}

fn plain(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

fn plain_of_tool(tool: &Tool) -> Vec<String> {
    plain(&format!("{} {}", tool.name(), tool.definition.description()))
}

/// An inverted index.
struct Bm25<T> {
    /// For each term, the documents that contain it with its frequency.
    postings: HashMap<T, Vec<(usize, f64)>>,
    lengths: Vec<f64>,
    mean_length: f64,
}

impl<T: Hash + Eq> Bm25<T> {
    fn new(documents: impl Iterator<Item = Vec<T>>) -> Self {
        let mut postings: HashMap<T, Vec<(usize, f64)>> = HashMap::new();
        let mut lengths = Vec::new();
        for (document, terms) in documents.enumerate() {
            lengths.push(terms.len() as f64);
            for term in terms {
                let documents = postings.entry(term).or_default();
                match documents.last_mut() {
                    Some((last, count)) if *last == document => *count += 1.0,
                    _ => documents.push((document, 1.0)),
                }
            }
        }
        let mean_length = lengths.iter().sum::<f64>() / (lengths.len() as f64).max(1.0);
        Self { postings, lengths, mean_length }
    }

    /// The score of every document.
    fn scores(&self, request: &[T]) -> Vec<f64> {
        let mut scores = vec![0.0; self.lengths.len()];
        for documents in request.iter().filter_map(|term| self.postings.get(term)) {
            let (all, with_term) = (self.lengths.len() as f64, documents.len() as f64);
            let idf = ((all - with_term + 0.5) / (with_term + 0.5)).ln_1p();
            for (document, count) in documents {
                let (Some(score), Some(length)) = (scores.get_mut(*document), self.lengths.get(*document))
                else {
                    continue;
                };
                let norm = K1 * (1.0 - B + B * length / self.mean_length);
                *score += idf * count * (K1 + 1.0) / (count + norm);
            }
        }
        scores
    }

    /// The best documents in descending order, without those that contain no term of the request.
    fn rank(&self, request: &[T]) -> Vec<usize> {
        let scores = self.scores(request);
        let mut found: Vec<(usize, f64)> =
            scores.into_iter().enumerate().filter(|(_, score)| *score > 0.0).collect();
        // Equal scores keep the order of the set.
        found.sort_by(|(_, a), (_, b)| b.partial_cmp(a).unwrap_or(Ordering::Equal));
        found.into_iter().take(DEPTH).map(|(document, _)| document).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(documents: &[&str]) -> Bm25<String> {
        Bm25::new(documents.iter().map(|text| plain(text)))
    }

    #[test]
    fn weighs_rare_words_more_and_long_documents_less() {
        let index =
            index(&["read a file", "read a mail", "read a file and a list of many other words", "sun"]);
        assert_eq!(index.rank(&plain("File")), [0, 2]);
        assert_eq!(index.rank(&plain("read mail")), [1, 0, 2]);
        assert!(index.rank(&plain("moon")).is_empty());
    }

    /// By hand: N = 2, n = 1, f = 2, length 3, mean length 2, so ln(2) · 2 · 2.2 / (2 + 1.2 · (0.25 + 0.75 · 1.5)), and
    /// twice that for a term that occurs twice in the request.
    #[test]
    fn score_matches_bm25_formula() {
        let index = index(&["x x y", "z"]);
        for (request, expected) in [("x", 0.835_575), ("x x", 1.671_149)] {
            let scores = index.scores(&plain(request));
            assert!((scores[0] - expected).abs() < 1e-5 && scores[1] == 0.0, "{request}: {scores:?}");
        }
    }
}
