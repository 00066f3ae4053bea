//! Meaning, optional: a model that turns texts into vectors, and the vectors of all tools.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::document::Document;
use crate::kept::{KeptVectors, Key};

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
    /// The program was built without the feature `encoder`.
    #[error("this program was built without sentence encoders: build with `--features encoder`")]
    WithoutEncoder,
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
    /// Where vectors of tools outlive this run.
    kept: Option<KeptVectors>,
    /// In the order of the documents.
    vectors: Arc<[Arc<[f32]>]>,
}

impl Vectors {
    /// Asks the model for every document that is not kept.
    pub(crate) fn of(
        model: Arc<dyn Meaning>,
        kept: Option<KeptVectors>,
        documents: &[Arc<Document>],
    ) -> Result<Self, MeaningError> {
        Self { model, kept, vectors: Arc::from([]) }.renewed(&[], documents)
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
        let mut made = self.vectors_of(&texts)?.into_iter();
        let vectors = now.iter().filter_map(|document| {
            known.get(&Arc::as_ptr(document)).map(|vector| Arc::clone(vector)).or_else(|| made.next())
        });
        Ok(Self { model: Arc::clone(&self.model), kept: self.kept.clone(), vectors: vectors.collect() })
    }

    /// The vectors of tools' texts: those that are kept, and the model's for the rest, which are kept from then on.
    fn vectors_of(&self, texts: &[String]) -> Result<Vec<Arc<[f32]>>, MeaningError> {
        let known = match &self.kept {
            Some(kept) if !texts.is_empty() => kept.read(),
            _ => HashMap::new(),
        };
        let keys: Vec<Key> = texts.iter().map(|text| Key::of(text)).collect();
        let missing: Vec<&str> = texts
            .iter()
            .zip(&keys)
            .filter(|(_, key)| !known.contains_key(key))
            .map(|(text, _)| text.as_str())
            .collect();
        let mut made = self.embed(&missing)?.into_iter().map(Arc::from);
        let vectors: Vec<Arc<[f32]>> =
            keys.iter().filter_map(|key| known.get(key).cloned().or_else(|| made.next())).collect();
        if let Some(kept) = self.kept.as_ref().filter(|_| !missing.is_empty()) {
            let used: Vec<(Key, Arc<[f32]>)> = keys.into_iter().zip(vectors.iter().cloned()).collect();
            // A saving for the next run, which this one can do without.
            let _ = kept.write(&used);
        }
        Ok(vectors)
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
