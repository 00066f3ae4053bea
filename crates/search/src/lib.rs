//! Ranks tools for a request by names, words and translations between English and Chinese, and decides whether any
//! tool is relevant.

mod chance;
mod definition;
mod dictionary;
mod document;
#[cfg(feature = "encoder")]
mod encoder;
mod explain;
mod field;
mod fit;
mod history;
mod index;
mod kept;
mod meaning;
pub mod metrics;
mod names;
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
mod vocabulary;
#[cfg(any(test, not(feature = "encoder")))]
mod without_encoder;
mod words;

#[cfg(feature = "encoder")]
pub use encoder::SentenceEncoder;
pub use explain::Parts;
pub use field::Field;
pub use fit::Evidence;
pub use history::Past;
pub use index::Index;
pub use kept::{Fingerprint, KeptVectors};
pub use meaning::{Meaning, MeaningError};
pub use rank::{Hit, Ranking, Request};
pub use settings::Settings;
#[cfg(not(feature = "encoder"))]
pub use without_encoder::SentenceEncoder;
