//! The catalog: an immutable snapshot of all tools, replaced as a whole, so that readers never wait.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use toolhub_core::{
    CallBy, Coercion, FastMap, RUN_SCRIPT, RawJson, RawObject, Source, Tool, ToolCall, ToolError, ToolName,
};

use crate::definition_scan::{Finding, scan_definition};
use crate::schema::{Instance, Schema, StepBudget};
use crate::tags::Tagger;

/// The tool that runs scripts, with its source.
const QUALIFIED_RUN_SCRIPT: &str = "native__run_script";

/// A tool in the catalog. Its schema is compiled on first use.
#[derive(Debug)]
pub struct CatalogEntry {
    /// The tool.
    pub tool: Tool,
    /// Boxed, because most schemas are never compiled.
    schema: OnceLock<Result<Box<Schema>, String>>,
    tagger: Arc<Tagger>,
    tags: OnceLock<Vec<String>>,
    findings: OnceLock<Vec<Finding>>,
}

impl CatalogEntry {
    fn new(tool: Tool, tagger: &Arc<Tagger>) -> Self {
        let (schema, tags, findings) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Self { tool, schema, tagger: Arc::clone(tagger), tags, findings }
    }

    /// The capabilities of the tool, computed on first use.
    pub fn tags(&self) -> &[String] {
        self.tags.get_or_init(|| self.tagger.tags_of(&self.tool))
    }

    /// Suspicious parts of the definition, computed on first use. Native tools are part of the program and not
    /// scanned.
    pub fn findings(&self) -> &[Finding] {
        if self.tool.source == Source::Native {
            return &[];
        }
        self.findings.get_or_init(|| scan_definition(&self.tool.definition))
    }

    /// The tool's description as shown to users and clients.
    pub fn describe(&self) -> RawObject {
        self.tool.describe(self.tags())
    }

    /// Checks arguments against the tool's schema.
    pub fn check(&self, arguments: &RawJson) -> Result<(), ToolError> {
        let steps = StepBudget::for_bytes(arguments.get().len());
        self.check_within(&Instance::new(arguments, &steps))
    }

    /// Checks parsed arguments within their step budget.
    pub(crate) fn check_within(&self, arguments: &Instance<'_>) -> Result<(), ToolError> {
        let name = self.tool.name();
        match self.schema() {
            Err(detail) => Err(ToolError::UnusableSchema { tool: name.clone(), detail: detail.clone() }),
            Ok(schema) => schema
                .check(arguments)
                .map_err(|problems| ToolError::InvalidArguments { tool: name.clone(), problems }),
        }
    }
}

impl CatalogEntry {
    /// Whether the schema declares all given arguments. A tool chosen by capability should not receive arguments that
    /// it would ignore.
    pub fn declares_all(&self, arguments: &RawJson) -> bool {
        let (Ok(schema), Some(object)) = (self.schema(), arguments.object()) else { return false };
        object.iter().all(|(key, _)| schema.declares(key))
    }

    /// Whether the arguments are certainly valid, and, with coercion on, also all declared, so that nothing needs
    /// coercion. `false` does not mean that they are invalid.
    pub(crate) fn certainly_accepts(&self, arguments: &RawJson, coercion: Coercion) -> bool {
        let fits = self.schema().as_ref().ok().and_then(|schema| schema.check_certain(arguments));
        fits.is_some_and(|all_known| all_known || coercion == Coercion::Off)
    }

    fn schema(&self) -> &Result<Box<Schema>, String> {
        self.schema.get_or_init(|| Schema::compile(self.tool.definition.input_schema()).map(Box::new))
    }
}

/// What becomes of a tool in a copy of the catalog.
#[derive(Debug)]
pub enum Projection {
    /// It is left out.
    Omit,
    /// The entry is shared.
    Keep,
    /// Another definition replaces it.
    Replace(Tool),
}

/// All tools at one moment.
#[derive(Debug, Default)]
pub struct Catalog {
    entries: Vec<Arc<CatalogEntry>>,
    by_name: FastMap<ToolName, Vec<usize>>,
    /// Built on first use; most processes never need it.
    by_tag: OnceLock<HashMap<String, Vec<Group>>>,
    tagger: Arc<Tagger>,
    /// Whether any tool is a script of a skill.
    has_scripts: bool,
}

/// The indexes of the tools of one source, in order. Never empty.
type Group = Vec<usize>;

impl Catalog {
    /// A catalog of these tools, in this order.
    pub fn new(tools: impl IntoIterator<Item = Tool>) -> Self {
        let tagger = Arc::default();
        let entries = tools.into_iter().map(|tool| Arc::new(CatalogEntry::new(tool, &tagger))).collect();
        Self::of(entries, tagger)
    }

    fn of(entries: Vec<Arc<CatalogEntry>>, tagger: Arc<Tagger>) -> Self {
        let mut by_name: FastMap<ToolName, Vec<usize>> = FastMap::default();
        by_name.reserve(entries.len());
        for (index, entry) in entries.iter().enumerate() {
            by_name.entry(entry.tool.name().clone()).or_default().push(index);
        }
        let has_scripts = entries.iter().any(|entry| entry.tool.is_script);
        Self { entries, by_name, by_tag: OnceLock::new(), tagger, has_scripts }
    }

    /// A copy of the catalog with the tools of one source replaced; the other entries are shared.
    #[must_use]
    pub fn with_source(&self, source: &Source, tools: Vec<Tool>) -> Self {
        let others = self.entries.iter().filter(|entry| entry.tool.source != *source).cloned();
        let new = tools.into_iter().map(|tool| Arc::new(CatalogEntry::new(tool, &self.tagger)));
        Self::of(others.chain(new).collect(), Arc::clone(&self.tagger))
    }

    /// A catalog of some of the tools; the entries are shared.
    #[must_use]
    pub fn filtered(&self, mut is_kept: impl FnMut(&CatalogEntry) -> bool) -> Self {
        let kept = self.entries.iter().filter(|entry| is_kept(entry)).cloned();
        Self::of(kept.collect(), Arc::clone(&self.tagger))
    }

    /// A catalog of some of the tools, partly with other definitions.
    #[must_use]
    pub fn projected(&self, mut project: impl FnMut(&CatalogEntry) -> Projection) -> Self {
        let kept = self.entries.iter().filter_map(|entry| match project(entry) {
            Projection::Omit => None,
            Projection::Keep => Some(Arc::clone(entry)),
            Projection::Replace(tool) => Some(Arc::new(CatalogEntry::new(tool, &self.tagger))),
        });
        Self::of(kept.collect(), Arc::clone(&self.tagger))
    }

    /// The tools called `name`, of all sources.
    pub fn named<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a Arc<CatalogEntry>> {
        self.by_name.get(name).into_iter().flatten().filter_map(|index| self.entries.get(*index))
    }

    /// The tools with `capability`, grouped by source: the source, the number of tools, and the tools.
    pub fn tagged<'a>(
        &'a self,
        capability: &str,
    ) -> impl Iterator<Item = (&'a Source, usize, impl Iterator<Item = &'a Arc<CatalogEntry>>)> {
        let groups = self.by_tag().get(capability).into_iter().flatten();
        groups.filter_map(|group| {
            let first = self.entries.get(*group.first()?)?;
            let entries = group.iter().filter_map(|index| self.entries.get(*index));
            Some((&first.tool.source, group.len(), entries))
        })
    }

    /// All capabilities of the tools, sorted.
    pub fn capabilities(&self) -> Vec<&str> {
        let mut tags: Vec<&str> = self.by_tag().keys().map(String::as_str).collect();
        tags.sort_unstable();
        tags
    }

    fn by_tag(&self) -> &HashMap<String, Vec<Group>> {
        self.by_tag.get_or_init(|| {
            let mut by_tag: HashMap<String, Vec<Group>> = HashMap::new();
            let mut places: HashMap<(&str, &Source), usize> = HashMap::new();
            for (index, entry) in self.entries.iter().enumerate() {
                for tag in entry.tags() {
                    let groups = by_tag.entry(tag.clone()).or_default();
                    let group_index = *places.entry((tag, &entry.tool.source)).or_insert(groups.len());
                    match groups.get_mut(group_index) {
                        Some(group) => group.push(index),
                        None => groups.push(vec![index]),
                    }
                }
            }
            by_tag
        })
    }

    /// Every tool.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<CatalogEntry>> {
        self.entries.iter()
    }

    /// Whether a call means the native tool that runs scripts. A tool of that name at another source, and a capability of that
    /// name, are ordinary ones.
    pub fn is_run_script(&self, call: &ToolCall) -> bool {
        let native = Source::Native;
        let name = call.tool.as_str();
        let is_named = call.by == CallBy::Name && (name == RUN_SCRIPT || name == QUALIFIED_RUN_SCRIPT);
        is_named
            && call.source.as_deref().is_none_or(|source| source == native.to_string())
            && call.sources.as_ref().is_none_or(|sources| sources.contains(&native))
            && self.named(RUN_SCRIPT).any(|entry| entry.tool.source == native)
    }

    /// The scripts of skills that a call by this name or capability may reach.
    pub fn scripts<'a>(&'a self, by: CallBy, tool: &'a str) -> impl Iterator<Item = &'a Arc<CatalogEntry>> {
        let tool = Some(tool).filter(|_| self.has_scripts);
        let (name, capability) = match by {
            CallBy::Name => (tool, None),
            CallBy::Capability => (None, tool),
        };
        let unqualified_name = name.and_then(|name| name.strip_prefix("skill__"));
        let named = name.into_iter().chain(unqualified_name).flat_map(|name| self.named(name));
        let tagged = capability.into_iter().flat_map(|capability| self.tagged(capability));
        named.chain(tagged.flat_map(|(_, _, entries)| entries)).filter(|entry| entry.tool.is_script)
    }

    /// Every name, each once, in no particular order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(ToolName::as_str)
    }

    /// The number of tools.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the catalog is empty.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// Holds the current catalog.
#[derive(Debug, Default)]
pub struct CatalogCell(ArcSwap<Catalog>);

impl CatalogCell {
    /// Creates an empty catalog whose tools get their capabilities from `tagger`.
    pub fn new(tagger: Tagger) -> Self {
        Self(ArcSwap::from_pointee(Catalog::of(Vec::new(), Arc::new(tagger))))
    }

    /// The current catalog; the snapshot never changes.
    pub fn snapshot(&self) -> Arc<Catalog> {
        self.0.load_full()
    }

    /// Replaces the tools of one source.
    pub fn replace_source(&self, source: &Source, tools: &[Tool]) {
        self.0.rcu(|catalog| catalog.with_source(source, tools.to_vec()));
    }
}
