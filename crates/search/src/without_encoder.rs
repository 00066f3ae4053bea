//! Replacement for the sentence encoder in builds without the feature `encoder`: no model can be opened.

use std::convert::Infallible;
use std::path::Path;

use crate::embedding::{Embedder, EmbeddingError};
#[cfg(not(feature = "encoder"))]
use crate::vector_cache::Fingerprint;

/// A sentence encoder. In builds without the feature this type has no values.
#[cfg_attr(feature = "encoder", expect(unreachable_pub, reason = "only the test below uses it then"))]
#[derive(Debug)]
pub struct SentenceEncoder(Infallible);

#[cfg_attr(feature = "encoder", expect(unreachable_pub, reason = "only the test below uses it then"))]
impl SentenceEncoder {
    /// Fails, and names the feature to build with.
    pub fn open(_: impl AsRef<Path>) -> Result<Self, EmbeddingError> {
        Err(EmbeddingError::WithoutEncoder)
    }

    /// Identifies the model.
    #[cfg(not(feature = "encoder"))]
    pub fn fingerprint(&self) -> Fingerprint {
        match self.0 {}
    }
}

impl Embedder for SentenceEncoder {
    fn embed(&self, _: &[&str]) -> Result<Vec<Box<[f32]>>, EmbeddingError> {
        match self.0 {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_models_and_names_the_missing_feature() {
        let error = SentenceEncoder::open("any").unwrap_err().to_string();
        assert!(error.contains("--features encoder"), "{error}");
    }
}
