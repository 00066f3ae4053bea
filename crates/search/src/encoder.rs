//! A sentence encoder of the BERT family, loaded from a configured folder; runs on the CPU, offline.

mod activation;
mod folder;
mod network;
mod shape;
mod tensors;
mod wordpiece;

use std::fmt;
use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::embedding::{Embedder, EmbeddingError};
use crate::vector_cache::Fingerprint;
use folder::Folder;
use network::Network;
use shape::Shape;
use wordpiece::WordPiece;

/// Maximum number of threads: more gain little and slow down other processes.
const MAX_THREADS: usize = 8;

/// The files that identify a model.
const FILES: &[&str] = &[
    "config.json",
    "model.safetensors",
    "vocab.txt",
    "tokenizer.json",
    "1_Pooling/config.json",
    "sentence_bert_config.json",
];

/// The index of a text, and its vector.
type IndexedVector = (usize, Box<[f32]>);

/// A model in the layout of sentence-transformers: `config.json`, `model.safetensors`, and `vocab.txt` or
/// `tokenizer.json`. It must be an uncased BERT, such as all-MiniLM-L6-v2.
pub struct SentenceEncoder {
    words: WordPiece,
    network: Network,
    size: usize,
    fingerprint: Fingerprint,
}

impl SentenceEncoder {
    /// Loads the model from a folder. All files are validated here, so that later errors can only be numerical.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, EmbeddingError> {
        let folder = Folder::new(folder.as_ref());
        let shape = Shape::read(&folder)?;
        let words = WordPiece::read(&folder, &shape)?;
        let network = Network::read(&folder, &shape)?;
        let fingerprint = folder.fingerprint(FILES)?;
        Ok(Self { words, network, size: shape.hidden, fingerprint })
    }

    /// The hash of its files, which identifies the model.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The number of dimensions of a vector.
    pub fn size(&self) -> usize {
        self.size
    }

    fn vector(&self, text: &str) -> Result<Box<[f32]>, EmbeddingError> {
        let mut vector = self.network.run(&self.words.tokens(text));
        let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
        if !length.is_finite() || length <= 0.0 {
            let message = "its weights give no vector with a direction; the file may be damaged";
            return Err(EmbeddingError::Model(message.to_owned()));
        }
        vector.iter_mut().for_each(|number| *number /= length);
        Ok(vector)
    }

    /// Takes texts from the shared list until none is left; returns their vectors with their indexes.
    fn work(&self, texts: &[&str], next: &AtomicUsize) -> Result<Vec<IndexedVector>, EmbeddingError> {
        let mut made = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(text) = texts.get(at) else { return Ok(made) };
            made.push((at, self.vector(text)?));
        }
    }
}

impl fmt::Debug for SentenceEncoder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SentenceEncoder").field("size", &self.size).finish_non_exhaustive()
    }
}

impl Embedder for SentenceEncoder {
    fn embed(&self, texts: &[&str]) -> Result<Vec<Box<[f32]>>, EmbeddingError> {
        let next = AtomicUsize::new(0);
        let threads = thread::available_parallelism().map_or(1, NonZero::get).min(MAX_THREADS);
        let helpers = threads.min(texts.len()).saturating_sub(1);
        let mut made = thread::scope(|scope| {
            let work = || self.work(texts, &next);
            // If the system refuses to start a thread, the others process its texts.
            let helpers: Vec<_> =
                (0..helpers).map_while(|_| thread::Builder::new().spawn_scoped(scope, work).ok()).collect();
            let mut made = work()?;
            for helper in helpers {
                let broken = |_| EmbeddingError::Model("a thread that ran it broke off".to_owned());
                made.extend(helper.join().map_err(broken)??);
            }
            Ok(made)
        })?;
        made.sort_unstable_by_key(|(at, _)| *at);
        Ok(made.into_iter().map(|(_, vector)| vector).collect())
    }
}
