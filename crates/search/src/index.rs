//! The index: an immutable snapshot of analysed tools, cheap to clone and to update by source.

use std::ops::Range;
use std::sync::Arc;

use toolhub_core::{Source, Tool};

use crate::document::{Analyzer, Document};
use crate::embedding::{Embedder, EmbeddingError, Vectors};
use crate::settings::RankingSettings;
use crate::tables::Tables;
use crate::vector_cache::VectorCache;

/// The searchable tools. Clones share all data.
#[derive(Debug, Clone)]
pub struct ToolIndex {
    /// Sorted by source and name, independent of the order in which sources were added.
    pub(crate) documents: Arc<[Arc<Document>]>,
    pub(crate) tables: Arc<Tables>,
    pub(crate) settings: Arc<RankingSettings>,
    pub(crate) vectors: Option<Vectors>,
}

impl ToolIndex {
    /// Creates an index of these tools.
    pub fn new(tools: impl IntoIterator<Item = Tool>, settings: RankingSettings) -> Self {
        let mut analyzer = Analyzer::default();
        let documents = tools.into_iter().map(|tool| Arc::new(analyzer.document(tool))).collect();
        Self::of(documents, Arc::new(settings))
    }

    fn of(mut documents: Vec<Arc<Document>>, settings: Arc<RankingSettings>) -> Self {
        documents.sort_by(|a, b| (&a.tool.source, a.tool.name()).cmp(&(&b.tool.source, b.tool.name())));
        let tables = Arc::new(Tables::build(&documents, &settings));
        Self { documents: documents.into(), tables, settings, vectors: None }
    }

    /// Replaces the tools of one source. The other tools are neither analysed nor embedded again.
    pub fn replace_source(
        &self,
        source: &Source,
        tools: impl IntoIterator<Item = Tool>,
    ) -> Result<Self, EmbeddingError> {
        let mut analyzer = Analyzer::default();
        let kept = self.documents.iter().filter(|document| document.tool.source != *source).cloned();
        let fresh = tools.into_iter().map(|tool| Arc::new(analyzer.document(tool)));
        let mut index = Self::of(kept.chain(fresh).collect(), Arc::clone(&self.settings));
        if let Some(vectors) = &self.vectors {
            index.vectors = Some(vectors.update(&self.documents, &index.documents)?);
        }
        Ok(index)
    }

    /// Adds an encoder model. Takes the time of embedding every tool.
    pub fn with_embedder(mut self, model: Arc<dyn Embedder>) -> Result<Self, EmbeddingError> {
        self.vectors = Some(Vectors::of(model, None, &self.documents)?);
        Ok(self)
    }

    /// Adds an encoder model with a vector cache file, so that later runs embed only new tools.
    pub fn with_cached_embedder(
        mut self,
        model: Arc<dyn Embedder>,
        vector_cache: VectorCache,
    ) -> Result<Self, EmbeddingError> {
        self.vectors = Some(Vectors::of(model, Some(vector_cache), &self.documents)?);
        Ok(self)
    }

    /// The index range of a source's documents, which are contiguous.
    pub(crate) fn of_source(&self, source: &Source) -> Range<u32> {
        let from = self.documents.partition_point(|other| other.tool.source < *source);
        let to = self.documents.partition_point(|other| other.tool.source <= *source);
        from as u32..to as u32
    }

    /// The number of tools.
    pub fn len(&self) -> usize {
        self.documents.len()
    }

    /// Whether the index is empty.
    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    /// The ranking settings.
    pub fn settings(&self) -> &RankingSettings {
        &self.settings
    }
}
