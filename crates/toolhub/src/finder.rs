//! Finds tools: the search index of the catalog, updated on demand, with past requests as evidence.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use toolhub_core::call_log::{CallQuery, Status};
use toolhub_core::finder::{SearchHit, SearchResult, ToolFinder};
use toolhub_core::ports::HubStore;
use toolhub_core::tool::Trust;
use toolhub_core::{BoxFuture, Event, EventKind, RawObject, Source, Tool, ToolName};
use toolhub_engine::verify::similarity;
use toolhub_engine::{Catalog, Engine, Entry, Request as RouteRequest, similar_names};
use toolhub_search::{Hit, Index, KeptVectors, Past, Request, SentenceEncoder, Settings};

/// The number of recent calls that are compared with a request.
const LOOKED_AT: usize = 1_000;
/// The minimum similarity of requests that count as evidence.
const ALIKE: f64 = 0.25;
/// The number of similar names that are suggested.
const NEAR: usize = 3;

/// Finds tools in an engine's catalog.
pub(crate) struct Finder {
    engine: Arc<Engine>,
    store: Option<Arc<dyn HubStore>>,
    shelf: Arc<Shelf>,
}

/// A sentence encoder on disk, and the file of its vectors for tools.
pub(crate) struct Encoder {
    /// The folder of the model, loaded by the first search.
    pub(crate) model: PathBuf,
    /// The file of the vectors.
    pub(crate) vectors: PathBuf,
}

/// The index and its inputs. Used on blocking threads.
struct Shelf {
    engine: Arc<Engine>,
    settings: Settings,
    encoder: Option<Encoder>,
    known: Mutex<Option<Known>>,
}

/// The index, and the catalog it was built from.
#[derive(Clone)]
struct Known {
    catalog: Arc<Catalog>,
    index: Index,
}

impl Shelf {
    /// Ranks the tools of the catalog. May run a model, so it must not be called on an async thread.
    fn search(&self, request: &str, limit: usize, past: &[Past]) -> SearchResult {
        let index = self.index();
        let ranking = index.rank(&Request::new(request).limit(limit).past(past));
        SearchResult {
            hits: ranking.hits.iter().map(found).collect(),
            fits: ranking.fits,
            confidence: f64::from(ranking.confidence),
        }
    }

    /// The index of the current catalog. Only sources that changed since the last call are indexed again.
    fn index(&self) -> Index {
        let catalog = self.engine.catalog();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let index = match &*known {
            Some(known) if Arc::ptr_eq(&known.catalog, &catalog) => return known.index.clone(),
            Some(known) => self.renewed(known, &catalog),
            None => self.whole(&catalog),
        };
        *known = Some(Known { catalog, index: index.clone() });
        index
    }

    fn whole(&self, catalog: &Catalog) -> Index {
        let tools = catalog.iter().filter(|entry| shown(entry)).map(|entry| tagged(entry));
        let index = Index::new(tools, self.settings.clone());
        let Some(encoder) = &self.encoder else { return index };
        let with_model = SentenceEncoder::open(&encoder.model).and_then(|model| {
            let kept = KeptVectors::new(&encoder.vectors, model.fingerprint());
            index.clone().with_kept_meaning(Arc::new(model), kept)
        });
        with_model.unwrap_or_else(|error| {
            let cause =
                std::error::Error::source(&error).map(|cause| format!(" ({cause})")).unwrap_or_default();
            let folder = encoder.model.display();
            let detail = format!("the model in `{folder}` is not used, words alone count: {error}{cause}");
            self.fault(detail);
            index
        })
    }

    fn fault(&self, detail: String) {
        self.engine.events().emit(Event::now(None, EventKind::InternalError { detail }));
    }

    fn renewed(&self, known: &Known, catalog: &Catalog) -> Index {
        let mut index = known.index.clone();
        for source in changed(&known.catalog, catalog) {
            let own = catalog.iter().filter(|entry| entry.tool.source == source && shown(entry));
            let own = own.map(|entry| tagged(entry));
            index = match index.replace_source(&source, own) {
                Ok(index) => index,
                // Only the model can fail; an index of words cannot.
                Err(_) => return self.whole(catalog),
            };
        }
        index
    }
}

impl Finder {
    pub(crate) fn new(
        engine: Arc<Engine>,
        store: Option<Arc<dyn HubStore>>,
        encoder: Option<Encoder>,
    ) -> Self {
        let known = Mutex::new(None);
        let shelf = Shelf { engine: Arc::clone(&engine), settings: Settings::default(), encoder, known };
        Self { engine, store, shelf: Arc::new(shelf) }
    }

    /// Evidence from past calls for a similar request.
    async fn past(&self, request: &str) -> Vec<Past> {
        let Some(store) = &self.store else { return Vec::new() };
        let query =
            CallQuery { limit: Some(LOOKED_AT), status: Some(Status::Succeeded), ..CallQuery::default() };
        let mut similar: HashMap<(Source, ToolName), f32> = HashMap::new();
        for call in store.calls(query).await.unwrap_or_default() {
            let Some(other) = &call.start.request else { continue };
            let alike = similarity(request, other);
            if alike < ALIKE {
                continue;
            }
            for attempt in call.attempts {
                *similar.entry((attempt.source, attempt.tool)).or_default() += alike as f32;
            }
        }
        let with_rate = |((source, name), similar_successes): ((Source, ToolName), f32)| {
            let tally = self.engine.scores().of(&source, &name).tally;
            let success_rate = (tally.total() > 0).then(|| tally.successes as f32 / tally.total() as f32);
            Past { source, name, similar_successes, success_rate }
        };
        similar.into_iter().map(with_rate).collect()
    }
}

/// The sources whose tools differ.
fn changed(before: &Catalog, now: &Catalog) -> HashSet<Source> {
    let by_source = |catalog: &Catalog| {
        let mut found: HashMap<Source, Vec<*const Entry>> = HashMap::new();
        for entry in catalog.iter() {
            found.entry(entry.tool.source.clone()).or_default().push(Arc::as_ptr(entry));
        }
        found
    };
    let (before, now) = (by_source(before), by_source(now));
    before.keys().chain(now.keys()).filter(|source| before.get(source) != now.get(source)).cloned().collect()
}

/// Whether a tool can be found. Quarantined tools are not shown to a model, since their texts may be the reason. `use_skill` is
/// shown separately with the skills: its text describes all of them, and would match every request.
fn shown(entry: &Entry) -> bool {
    let tool = &entry.tool;
    let of_skills = tool.source == Source::Skill && tool.name().as_str() == toolhub_skills::use_skill::NAME;
    tool.trust != Trust::Quarantined && !of_skills
}

fn tagged(entry: &Entry) -> Tool {
    Tool { tags: entry.tags().to_vec(), ..entry.tool.clone() }
}

fn found(hit: &Hit<'_>) -> SearchHit {
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

impl ToolFinder for Finder {
    fn search<'a>(&'a self, request: &'a str, limit: usize) -> BoxFuture<'a, SearchResult> {
        Box::pin(async move {
            let past = self.past(request).await;
            let (shelf, request) = (Arc::clone(&self.shelf), request.to_owned());
            let ranked = tokio::task::spawn_blocking(move || shelf.search(&request, limit, &past)).await;
            ranked.unwrap_or_else(|_| {
                self.shelf.fault("ranking the tools broke off; nothing was found".to_owned());
                SearchResult::default()
            })
        })
    }

    fn describe(&self, name: &str) -> Vec<RawObject> {
        match self.engine.explain(RouteRequest::named(name)) {
            Ok(route) => route.candidates.iter().map(|candidate| candidate.entry.describe()).collect(),
            Err(_) => {
                let catalog = self.engine.catalog();
                catalog.named(name).filter(|entry| shown(entry)).map(|entry| entry.describe()).collect()
            }
        }
    }

    fn similar_names(&self, name: &str) -> Vec<String> {
        similar_names(name, self.engine.catalog().names(), NEAR)
    }
}
