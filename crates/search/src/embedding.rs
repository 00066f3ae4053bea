//! Optional semantic similarity: an encoder model that maps texts to vectors, and the vectors of all tools.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::document::Document;
use crate::vector_cache::{TextHash, VectorCache};

/// Maximum characters of a description that are embedded.
const MAX_TEXT_CHARS: usize = 600;

/// A model that maps texts of similar meaning to similar vectors.
pub trait Embedder: fmt::Debug + Send + Sync {
    /// A vector of length one for each text, all with the same number of dimensions.
    fn embed(&self, texts: &[&str]) -> Result<Vec<Box<[f32]>>, EmbeddingError>;
}

/// Errors of an encoder model.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddingError {
    /// A file of the model cannot be read.
    #[error("`{path}` of the model cannot be read")]
    File {
        /// The file.
        path: String,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// A file of the model has invalid content.
    #[error("the model cannot be used: {0}")]
    Model(String),
    /// The program was built without the feature `encoder`.
    #[error("this program was built without sentence encoders: build with `--features encoder`")]
    WithoutEncoder,
    /// The number of vectors differs from the number of texts.
    #[error("the model gave {received} vectors for {requested} texts")]
    Count {
        /// The number of texts.
        requested: usize,
        /// The number of vectors.
        received: usize,
    },
}

/// A model and the vectors of all documents.
#[derive(Debug, Clone)]
pub(crate) struct Vectors {
    model: Arc<dyn Embedder>,
    /// The vector cache file, if any.
    vector_cache: Option<VectorCache>,
    /// In the order of the documents.
    vectors: Arc<[Arc<[f32]>]>,
}

impl Vectors {
    /// Embeds all documents that are not cached.
    pub(crate) fn of(
        model: Arc<dyn Embedder>,
        vector_cache: Option<VectorCache>,
        documents: &[Arc<Document>],
    ) -> Result<Self, EmbeddingError> {
        Self { model, vector_cache, vectors: Arc::from([]) }.update(&[], documents)
    }

    /// Embeds the documents of `now` that are not in `before`; `self` holds the vectors of `before`.
    pub(crate) fn update(
        &self,
        before: &[Arc<Document>],
        now: &[Arc<Document>],
    ) -> Result<Self, EmbeddingError> {
        let known: HashMap<*const Document, &Arc<[f32]>> =
            before.iter().map(Arc::as_ptr).zip(self.vectors.iter()).collect();
        let fresh = now.iter().filter(|document| !known.contains_key(&Arc::as_ptr(document)));
        let texts: Vec<String> = fresh.map(|document| text_of(document)).collect();
        let mut computed = self.vectors_of(&texts)?.into_iter();
        let vectors = now.iter().filter_map(|document| {
            known.get(&Arc::as_ptr(document)).map(|vector| Arc::clone(vector)).or_else(|| computed.next())
        });
        Ok(Self {
            model: Arc::clone(&self.model),
            vector_cache: self.vector_cache.clone(),
            vectors: vectors.collect(),
        })
    }

    /// The vectors of texts: from the cache, or else from the model and then cached.
    fn vectors_of(&self, texts: &[String]) -> Result<Vec<Arc<[f32]>>, EmbeddingError> {
        let known = match &self.vector_cache {
            Some(vector_cache) if !texts.is_empty() => vector_cache.read(),
            _ => HashMap::new(),
        };
        let keys: Vec<TextHash> = texts.iter().map(|text| TextHash::of(text)).collect();
        let missing: Vec<&str> = texts
            .iter()
            .zip(&keys)
            .filter(|(_, key)| !known.contains_key(key))
            .map(|(text, _)| text.as_str())
            .collect();
        let mut computed = self.embed(&missing)?.into_iter().map(Arc::from);
        let vectors: Vec<Arc<[f32]>> =
            keys.iter().filter_map(|key| known.get(key).cloned().or_else(|| computed.next())).collect();
        if let Some(vector_cache) = self.vector_cache.as_ref().filter(|_| !missing.is_empty()) {
            let used: Vec<(TextHash, Arc<[f32]>)> = keys.into_iter().zip(vectors.iter().cloned()).collect();
            // A failure only costs the next run time.
            let _ = vector_cache.write(&used);
        }
        Ok(vectors)
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Box<[f32]>>, EmbeddingError> {
        let vectors = self.model.embed(texts)?;
        if vectors.len() == texts.len() {
            Ok(vectors)
        } else {
            Err(EmbeddingError::Count { requested: texts.len(), received: vectors.len() })
        }
    }

    /// The similarity of each document to a text, from 0 to 1; empty if the model fails.
    pub(crate) fn similarities(&self, text: &str) -> Vec<f32> {
        let Some(requested) = self.embed(&[text]).ok().and_then(|mut vectors| vectors.pop()) else {
            return Vec::new();
        };
        let dot = |vector: &Arc<[f32]>| requested.iter().zip(vector.iter()).map(|(a, b)| a * b).sum::<f32>();
        self.vectors.iter().map(|vector| dot(vector).clamp(0.0, 1.0)).collect()
    }
}

/// The text of a tool for embedding: its name as words, and its description.
fn text_of(document: &Document) -> String {
    let mut text = String::new();
    crate::text::runs(document.tool.name().as_str(), |run| {
        if let crate::text::TextRun::Word(word) | crate::text::TextRun::Han(word) = run {
            text.push_str(word);
            text.push(' ');
        }
    });
    text.push_str(": ");
    text.extend(document.tool.definition.description().chars().take(MAX_TEXT_CHARS));
    text
}
