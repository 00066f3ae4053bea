//! Ranks tools for a request by names, words and translations between English and Chinese, and decides whether any
//! tool is relevant.

mod definition;
mod dictionary;
mod document;
mod embedding;
#[cfg(feature = "encoder")]
mod encoder;
mod explain;
mod field;
mod fit;
mod history;
mod index;
pub mod metrics;
mod names;
mod null_model;
mod postings;
mod query;
mod quotes;
mod rank;
mod related;
mod settings;
mod synonyms;
mod tables;
pub mod terms;
mod text;
mod vector_cache;
mod vocabulary;
#[cfg(any(test, not(feature = "encoder")))]
mod without_encoder;
mod words;

pub use embedding::{Embedder, EmbeddingError};
#[cfg(feature = "encoder")]
pub use encoder::SentenceEncoder;
pub use explain::ScoreComponents;
pub use field::Field;
pub use fit::FitEvidence;
pub use history::ToolHistory;
pub use index::ToolIndex;
pub use rank::{RankedTool, Ranking, SearchRequest};
pub use settings::RankingSettings;
pub use vector_cache::{Fingerprint, VectorCache};
#[cfg(not(feature = "encoder"))]
pub use without_encoder::SentenceEncoder;
