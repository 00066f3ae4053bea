//! Finds tools: the search index of the catalog, updated on demand, with past requests as evidence.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use toolhub_core::call_log::{CallQuery, CallStatus};
use toolhub_core::finder::{SearchHit, SearchResult, ToolFinder};
use toolhub_core::ports::HubStore;
use toolhub_core::tool::ApprovalStatus;
use toolhub_core::{BoxFuture, Event, EventKind, RawObject, Source, Tool, ToolName};
use toolhub_engine::verify::similarity;
use toolhub_engine::{Catalog, CatalogEntry, Engine, MAX_SUGGESTIONS, RouteRequest, similar_names};
use toolhub_search::{
    RankedTool, RankingSettings, SearchRequest, SentenceEncoder, ToolHistory, ToolIndex, VectorCache,
};

/// The number of recent calls that are compared with a request.
const MAX_RECENT_CALLS: usize = 1_000;
/// The minimum similarity of requests that count as evidence.
const MIN_SIMILARITY: f64 = 0.25;
/// Maximum number of cached indexes of parts of the catalog, one for each set of tools that principals see.
const MAX_PARTIAL_INDEXES: usize = 16;

/// Finds tools in an engine's catalog.
pub(crate) struct CatalogFinder {
    engine: Arc<Engine>,
    store: Option<Arc<dyn HubStore>>,
    index_cache: Arc<IndexCache>,
}

/// A sentence encoder on disk, and the file of its vectors for tools.
pub(crate) struct EncoderFiles {
    /// The folder of the model, loaded by the first search.
    pub(crate) model: PathBuf,
    /// The file of the vectors.
    pub(crate) vectors: PathBuf,
}

/// The index and its inputs. Used on blocking threads.
struct IndexCache {
    engine: Arc<Engine>,
    settings: RankingSettings,
    encoder: Option<EncoderFiles>,
    cached: Mutex<Option<CachedIndex>>,
    /// Indexes of parts of the catalog, the last used one last.
    partial: Mutex<Vec<CachedIndex>>,
}

/// The index, and the catalog it was built from.
#[derive(Clone)]
struct CachedIndex {
    catalog: Arc<Catalog>,
    index: ToolIndex,
}

impl IndexCache {
    /// Ranks the tools of the catalog, or of a part of it. May run a model, so it must not be called on an async thread.
    fn search(
        &self,
        request: &str,
        limit: usize,
        past: &[ToolHistory],
        part: Option<&Arc<Catalog>>,
    ) -> SearchResult {
        let index = match part {
            Some(part) => self.partial_index(part),
            None => self.index().index,
        };
        let ranking = index.rank(&SearchRequest::new(request).limit(limit).past(past));
        SearchResult {
            hits: ranking.hits.iter().map(search_hit).collect(),
            fits: ranking.fits,
            confidence: f64::from(ranking.confidence),
        }
    }

    /// The index of the current catalog. Only sources that changed since the last call are indexed again.
    fn index(&self) -> CachedIndex {
        let catalog = self.engine.catalog();
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let index = match &*cached {
            Some(cached) if Arc::ptr_eq(&cached.catalog, &catalog) => return cached.clone(),
            Some(cached) => self.updated_index(cached, &catalog),
            None => self.full_index(&catalog),
        };
        let index = CachedIndex { catalog, index };
        *cached = Some(index.clone());
        index
    }

    /// The index of a part of the catalog. Scores and confidence depend on all tools of an index, so that tools outside of
    /// the part must not be in it.
    fn partial_index(&self, part: &Arc<Catalog>) -> ToolIndex {
        let is_same = |cached: &CachedIndex| changed(&cached.catalog, part).is_empty();
        let mut partial = self.partial.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = partial.iter().position(is_same) {
            let cached = partial.remove(place);
            partial.push(cached.clone());
            return cached.index;
        }
        drop(partial);
        let index = self.updated_index(&self.index(), part);
        let mut partial = self.partial.lock().unwrap_or_else(PoisonError::into_inner);
        if partial.len() >= MAX_PARTIAL_INDEXES {
            partial.remove(0);
        }
        partial.push(CachedIndex { catalog: Arc::clone(part), index: index.clone() });
        index
    }

    fn full_index(&self, catalog: &Catalog) -> ToolIndex {
        let tools = catalog.iter().filter(|entry| is_visible(entry)).map(|entry| tagged(entry));
        let index = ToolIndex::new(tools, self.settings.clone());
        let Some(encoder) = &self.encoder else { return index };
        let with_model = SentenceEncoder::open(&encoder.model).and_then(|model| {
            let cache = VectorCache::new(&encoder.vectors, model.fingerprint());
            index.clone().with_cached_embedder(Arc::new(model), cache)
        });
        with_model.unwrap_or_else(|error| {
            let cause =
                std::error::Error::source(&error).map(|cause| format!(" ({cause})")).unwrap_or_default();
            let folder = encoder.model.display();
            let detail = format!("the model in `{folder}` is not used, words alone count: {error}{cause}");
            self.report_error(detail);
            index
        })
    }

    fn report_error(&self, detail: String) {
        self.engine.events().emit(Event::now(None, EventKind::InternalError { detail }));
    }

    fn updated_index(&self, cached: &CachedIndex, catalog: &Catalog) -> ToolIndex {
        let mut index = cached.index.clone();
        for source in changed(&cached.catalog, catalog) {
            let source_tools =
                catalog.iter().filter(|entry| entry.tool.source == source && is_visible(entry));
            let source_tools = source_tools.map(|entry| tagged(entry));
            index = match index.replace_source(&source, source_tools) {
                Ok(index) => index,
                // Only the model can fail; an index of words cannot.
                Err(_) => return self.full_index(catalog),
            };
        }
        index
    }
}

impl CatalogFinder {
    pub(crate) fn new(
        engine: Arc<Engine>,
        store: Option<Arc<dyn HubStore>>,
        encoder: Option<EncoderFiles>,
    ) -> Self {
        let index_cache = IndexCache {
            engine: Arc::clone(&engine),
            settings: RankingSettings::default(),
            encoder,
            cached: Mutex::new(None),
            partial: Mutex::default(),
        };
        Self { engine, store, index_cache: Arc::new(index_cache) }
    }

    /// Searches a part of the catalog, as if there were no other tools.
    pub(crate) async fn search_part(
        &self,
        request: &str,
        limit: usize,
        part: Option<Arc<Catalog>>,
    ) -> SearchResult {
        let past = self.history_for(request).await;
        let (index_cache, request) = (Arc::clone(&self.index_cache), request.to_owned());
        let ranked =
            tokio::task::spawn_blocking(move || index_cache.search(&request, limit, &past, part.as_ref()));
        ranked.await.unwrap_or_else(|_| {
            self.index_cache.report_error("ranking the tools broke off; nothing was found".to_owned());
            SearchResult::default()
        })
    }

    /// Evidence from past calls for a similar request.
    async fn history_for(&self, request: &str) -> Vec<ToolHistory> {
        let Some(store) = &self.store else { return Vec::new() };
        let query = CallQuery {
            limit: Some(MAX_RECENT_CALLS),
            status: Some(CallStatus::Succeeded),
            ..CallQuery::default()
        };
        let mut similar: HashMap<(Source, ToolName), f32> = HashMap::new();
        for call in store.calls(query).await.unwrap_or_default() {
            let Some(other) = &call.start.request else { continue };
            let alike = similarity(request, other);
            if alike < MIN_SIMILARITY {
                continue;
            }
            for attempt in call.attempts {
                *similar.entry((attempt.source, attempt.tool)).or_default() += alike as f32;
            }
        }
        let with_rate = |((source, name), similar_successes): ((Source, ToolName), f32)| {
            let tally = self.engine.scores().of(&source, &name).tally;
            let success_rate = (tally.total() > 0).then(|| tally.successes as f32 / tally.total() as f32);
            ToolHistory { source, name, similar_successes, success_rate }
        };
        similar.into_iter().map(with_rate).collect()
    }
}

/// The sources whose tools differ.
fn changed(before: &Catalog, now: &Catalog) -> HashSet<Source> {
    let by_source = |catalog: &Catalog| {
        let mut entries_by_source: HashMap<Source, Vec<*const CatalogEntry>> = HashMap::new();
        for entry in catalog.iter() {
            entries_by_source.entry(entry.tool.source.clone()).or_default().push(Arc::as_ptr(entry));
        }
        entries_by_source
    };
    let (before, now) = (by_source(before), by_source(now));
    before.keys().chain(now.keys()).filter(|source| before.get(source) != now.get(source)).cloned().collect()
}

/// Whether a tool can be found. Quarantined tools are not shown to a model, since their texts may be the reason. `use_skill` is
/// shown separately with the skills: its text describes all of them, and would match every request.
fn is_visible(entry: &CatalogEntry) -> bool {
    let tool = &entry.tool;
    let of_skills = tool.source == Source::Skill && tool.name().as_str() == toolhub_core::USE_SKILL;
    // Code mode shows it; its text would match requests for other tools.
    let of_scripts = tool.source == Source::Native && tool.name().as_str() == toolhub_core::RUN_SCRIPT;
    tool.approval != ApprovalStatus::Quarantined && !of_skills && !of_scripts
}

fn tagged(entry: &CatalogEntry) -> Tool {
    Tool { tags: entry.tags().to_vec(), ..entry.tool.clone() }
}

fn search_hit(hit: &RankedTool<'_>) -> SearchHit {
    let parts = &hit.parts;
    let parts = [
        ("named", parts.named),
        ("name", parts.name),
        ("description", parts.description),
        ("parameters", parts.parameters),
        ("tags", parts.tags),
        ("source", parts.source),
        ("examples", parts.examples),
        ("cross_language", parts.cross_language),
        ("related", parts.related),
        ("focus", parts.focus),
        ("history", parts.history),
        ("meaning", parts.meaning),
    ];
    let parts = parts.map(|(name, value)| (name, f64::from(value))).to_vec();
    SearchHit { tool: hit.tool.clone(), score: f64::from(hit.score), parts }
}

impl ToolFinder for CatalogFinder {
    fn search<'a>(&'a self, request: &'a str, limit: usize) -> BoxFuture<'a, SearchResult> {
        Box::pin(self.search_part(request, limit, None))
    }

    fn describe(&self, name: &str) -> Vec<RawObject> {
        match self.engine.route(RouteRequest::named(name)) {
            Ok(route) => route.candidates.iter().map(|candidate| candidate.entry.describe()).collect(),
            Err(_) => {
                let catalog = self.engine.catalog();
                catalog.named(name).filter(|entry| is_visible(entry)).map(|entry| entry.describe()).collect()
            }
        }
    }

    fn similar_names(&self, name: &str) -> Vec<String> {
        similar_names(name, self.engine.catalog().names(), MAX_SUGGESTIONS)
    }
}
