//! Replacement for the sentence encoder in builds without the feature `encoder`: no model can be opened.

use std::convert::Infallible;
use std::path::Path;

#[cfg(not(feature = "encoder"))]
use crate::kept::Fingerprint;
use crate::meaning::{Meaning, MeaningError};

/// A sentence encoder. In builds without the feature this type has no values.
#[cfg_attr(feature = "encoder", expect(unreachable_pub, reason = "only the test below uses it then"))]
#[derive(Debug)]
pub struct SentenceEncoder(Infallible);

#[cfg_attr(feature = "encoder", expect(unreachable_pub, reason = "only the test below uses it then"))]
impl SentenceEncoder {
    /// Fails, and names the feature to build with.
    pub fn open(_: impl AsRef<Path>) -> Result<Self, MeaningError> {
        Err(MeaningError::WithoutEncoder)
    }

    /// Identifies the model.
    #[cfg(not(feature = "encoder"))]
    pub fn fingerprint(&self) -> Fingerprint {
        match self.0 {}
    }
}

impl Meaning for SentenceEncoder {
    fn embed(&self, _: &[&str]) -> Result<Vec<Box<[f32]>>, MeaningError> {
        match self.0 {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_model_is_refused_with_the_feature_to_build_with() {
        let error = SentenceEncoder::open("any").unwrap_err().to_string();
        assert!(error.contains("--features encoder"), "{error}");
    }
}
