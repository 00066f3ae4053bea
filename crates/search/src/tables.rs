//! The search tables of a list of documents, always built together: postings, names, vocabulary.

use std::sync::Arc;

use crate::document::Document;
use crate::names::Names;
use crate::postings::Postings;
use crate::settings::RankingSettings;
use crate::vocabulary::Vocabulary;

/// The tables over one list of documents.
#[derive(Debug)]
pub(crate) struct Tables {
    pub(crate) postings: Postings,
    pub(crate) names: Names,
    pub(crate) vocabulary: Vocabulary,
}

impl Tables {
    /// Builds the tables of these documents.
    pub(crate) fn build(documents: &[Arc<Document>], settings: &RankingSettings) -> Self {
        Self {
            postings: Postings::build(documents, settings),
            names: Names::build(documents),
            vocabulary: Vocabulary::build(documents),
        }
    }
}
