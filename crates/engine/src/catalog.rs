//! The catalog: an immutable snapshot of all tools, swapped whole, so that readers never wait.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use toolhub_core::{RawJson, Source, Tool, ToolError, ToolName};

use crate::schema::Schema;

/// One tool in the catalog, with its schema compiled when it is first needed.
#[derive(Debug)]
pub struct Entry {
    /// The tool.
    pub tool: Tool,
    schema: OnceLock<Result<Schema, String>>,
}

impl Entry {
    fn new(tool: Tool) -> Self {
        Self { tool, schema: OnceLock::new() }
    }

    /// Checks arguments against the tool's schema.
    pub fn check(&self, arguments: &RawJson) -> Result<(), ToolError> {
        let schema = self.schema.get_or_init(|| Schema::compile(self.tool.definition.input_schema()));
        let name = self.tool.name();
        match schema {
            Err(detail) => Err(ToolError::UnusableSchema { tool: name.clone(), detail: detail.clone() }),
            Ok(schema) => schema
                .check(arguments)
                .map_err(|problems| ToolError::InvalidArguments { tool: name.clone(), problems }),
        }
    }
}

/// All tools at one moment.
#[derive(Debug, Default)]
pub struct Catalog {
    entries: Vec<Arc<Entry>>,
    by_name: HashMap<ToolName, Vec<usize>>,
}

impl Catalog {
    /// A catalog of these tools, in this order.
    pub fn new(tools: impl IntoIterator<Item = Tool>) -> Self {
        Self::of(tools.into_iter().map(|tool| Arc::new(Entry::new(tool))).collect())
    }

    fn of(entries: Vec<Arc<Entry>>) -> Self {
        let mut by_name: HashMap<ToolName, Vec<usize>> = HashMap::with_capacity(entries.len());
        for (index, entry) in entries.iter().enumerate() {
            by_name.entry(entry.tool.name().clone()).or_default().push(index);
        }
        Self { entries, by_name }
    }

    /// The same catalog with the tools of one source replaced; the other entries are shared, not built again.
    #[must_use]
    pub fn with_source(&self, source: &Source, tools: Vec<Tool>) -> Self {
        let kept = self.entries.iter().filter(|entry| entry.tool.source != *source).cloned();
        Self::of(kept.chain(tools.into_iter().map(|tool| Arc::new(Entry::new(tool)))).collect())
    }

    /// The tools called `name`, wherever they live.
    pub fn named<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a Arc<Entry>> {
        self.by_name.get(name).into_iter().flatten().filter_map(|index| self.entries.get(*index))
    }

    /// Every tool.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.entries.iter()
    }

    /// Every name, each once, in no order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(ToolName::as_str)
    }

    /// How many tools there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// The place where the current catalog is found.
#[derive(Debug, Default)]
pub struct CatalogCell(ArcSwap<Catalog>);

impl CatalogCell {
    /// The catalog as it is now; it does not change under the reader.
    pub fn snapshot(&self) -> Arc<Catalog> {
        self.0.load_full()
    }

    /// Replaces the tools of one source.
    pub fn replace_source(&self, source: &Source, tools: &[Tool]) {
        self.0.rcu(|catalog| catalog.with_source(source, tools.to_vec()));
    }
}
