//! Meaning, optional: a model that turns texts into vectors, and the vectors of all tools.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::document::Document;

/// What a model reads of a description.
const MOST_CHARACTERS: usize = 600;

/// A model that places texts so that those of like meaning are near each other.
pub trait Meaning: fmt::Debug + Send + Sync {
    /// A vector of length one for each text, all of the same size.
    fn embed(&self, texts: &[&str]) -> Result<Vec<Box<[f32]>>, MeaningError>;
}

/// Why there is no meaning.
#[derive(Debug, thiserror::Error)]
pub enum MeaningError {
    /// A file of the model cannot be read.
    #[error("`{path}` of the model cannot be read")]
    File {
        /// Which file.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file of the model is not what it should be.
    #[error("the model cannot be used: {0}")]
    Model(String),
    /// The model gave fewer vectors than it was given texts.
    #[error("the model gave {given} vectors for {asked} texts")]
    Count {
        /// How many texts there were.
        asked: usize,
        /// How many vectors came.
        given: usize,
    },
}

/// A model and what it makes of every document.
#[derive(Debug, Clone)]
pub(crate) struct Vectors {
    model: Arc<dyn Meaning>,
    /// In the order of the documents.
    vectors: Arc<[Arc<[f32]>]>,
}

impl Vectors {
    /// Asks the model for every document.
    pub(crate) fn of(model: Arc<dyn Meaning>, documents: &[Arc<Document>]) -> Result<Self, MeaningError> {
        Self { model, vectors: Arc::from([]) }.renewed(&[], documents)
    }

    /// Asks the model for those of `now` that are not in `before`, whose vectors these are.
    pub(crate) fn renewed(
        &self,
        before: &[Arc<Document>],
        now: &[Arc<Document>],
    ) -> Result<Self, MeaningError> {
        let known: HashMap<*const Document, &Arc<[f32]>> =
            before.iter().map(Arc::as_ptr).zip(self.vectors.iter()).collect();
        let fresh = now.iter().filter(|document| !known.contains_key(&Arc::as_ptr(document)));
        let texts: Vec<String> = fresh.map(|document| text_of(document)).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let mut made = self.embed(&texts)?.into_iter().map(Arc::from);
        let vectors = now.iter().filter_map(|document| {
            known.get(&Arc::as_ptr(document)).map(|vector| Arc::clone(vector)).or_else(|| made.next())
        });
        Ok(Self { model: Arc::clone(&self.model), vectors: vectors.collect() })
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Box<[f32]>>, MeaningError> {
        let vectors = self.model.embed(texts)?;
        if vectors.len() == texts.len() {
            Ok(vectors)
        } else {
            Err(MeaningError::Count { asked: texts.len(), given: vectors.len() })
        }
    }

    /// How close each document is to a text, from 0 to 1; nothing where the model fails.
    pub(crate) fn closeness(&self, text: &str) -> Vec<f32> {
        let Some(asked) = self.embed(&[text]).ok().and_then(|mut vectors| vectors.pop()) else {
            return Vec::new();
        };
        let dot = |vector: &Arc<[f32]>| asked.iter().zip(vector.iter()).map(|(a, b)| a * b).sum::<f32>();
        self.vectors.iter().map(|vector| dot(vector).clamp(0.0, 1.0)).collect()
    }
}

/// What a model is told of a tool: its name in words, and what it is for.
fn text_of(document: &Document) -> String {
    let mut text = String::new();
    crate::text::runs(document.tool.name().as_str(), |run| {
        if let crate::text::Run::Word(word) | crate::text::Run::Han(word) = run {
            text.push_str(word);
            text.push(' ');
        }
    });
    text.push_str(": ");
    text.extend(document.tool.definition.description().chars().take(MOST_CHARACTERS));
    text
}
