//! Resources, resource templates and prompts of all servers, merged for clients. Their lists are stored between runs like those
//! of tools: a request is answered with the stored lists, and names the servers whose lists are missing.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{Notify, OnceCell, watch};
use toolhub_core::ports::CachedOffers;
use toolhub_core::{Event, EventKind, RawJson, ServerId};
use toolhub_mcp_client::Server;
use toolhub_mcp_wire::Offer;

use super::list_keys::ListKeys;
use super::prompt_names::{OfferedItem, PromptNames};
use crate::discovery::DEFAULT_LIST_TTL;
use crate::hub::Hub;

/// How long a request waits for missing lists.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);
/// How long after a failure a list is not requested again.
const RETRY_AFTER: Duration = Duration::from_secs(60);
/// How long after the announcement of a change a list is fetched without a request of a client.
const REFRESH_PAUSE: Duration = Duration::from_secs(1);
/// The largest list that is stored, in bytes.
const MAX_STORED_BYTES: usize = 4 << 20;

/// A list that differs from the one fetched before.
#[derive(Debug, Clone)]
pub(super) struct ListChange {
    pub(super) server: ServerId,
    pub(super) offer: Offer,
    pub(super) before: Arc<Vec<RawJson>>,
    pub(super) after: Arc<Vec<RawJson>>,
    /// Whether it was missing or outdated in a response to a client.
    pub(super) is_promised: bool,
}

/// The merged list of several servers.
#[derive(Debug)]
pub(super) struct OfferedItems {
    pub(super) entries: Vec<OfferedItem>,
    /// The servers whose lists are missing.
    pub(super) missing: Vec<ServerId>,
}

/// The key of a list: its server and its kind.
type ListKey = (ServerId, &'static str);

#[derive(Debug)]
struct List {
    listed_at: SystemTime,
    items: Arc<Vec<RawJson>>,
    /// The names or URIs of the items.
    keys: Arc<ListKeys>,
    /// Whether the server announced a change since.
    changed: bool,
}

impl List {
    fn new(offer: Offer, listed_at: SystemTime, items: Arc<Vec<RawJson>>) -> Self {
        let keys = Arc::new(items.iter().filter_map(|item| key_of(offer, item)).collect());
        Self { listed_at, items, keys, changed: false }
    }
}

#[derive(Debug, Default)]
struct OfferCacheState {
    lists: HashMap<ListKey, List>,
    /// Requests that wait to be sent.
    queue: Vec<(Arc<Server>, Offer)>,
    /// Lists that are being requested, queued or in flight.
    requested: HashSet<ListKey>,
    /// When a request last failed.
    failed: HashMap<ListKey, SystemTime>,
    /// Lists that were missing in a response to a client: the client is notified once they are fetched.
    promised: HashSet<ListKey>,
}

/// The fetched lists of all servers.
#[derive(Debug)]
pub(super) struct OfferCache {
    hub: Arc<Hub>,
    state: Mutex<OfferCacheState>,
    /// Set once the stored lists have been read.
    loaded: OnceCell<()>,
    queued: Notify,
    /// Counts the responses to requests.
    answered: watch::Sender<u64>,
}

impl OfferCache {
    pub(super) fn new(hub: Arc<Hub>) -> Self {
        Self {
            hub,
            state: Mutex::default(),
            loaded: OnceCell::new(),
            queued: Notify::new(),
            answered: watch::Sender::new(0),
        }
    }

    fn state(&self) -> MutexGuard<'_, OfferCacheState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the stored lists.
    async fn load(&self) {
        let Some(store) = &self.hub.store else { return };
        let stored = match store.load_offers().await {
            Ok(stored) => stored,
            Err(error) => {
                self.hub
                    .events
                    .emit(Event::now(None, EventKind::InternalError { detail: error.to_string() }));
                return;
            }
        };
        let mut state = self.state();
        for (id, CachedOffers { fingerprint, kind, listed_at, items }) in stored {
            let server = self.hub.servers.find(id.as_str());
            let offer = Offer::ALL.into_iter().find(|offer| offer.key() == kind);
            let (Some(server), Some(offer)) = (server, offer) else { continue };
            if server.spec().fingerprint() == fingerprint {
                let list = List::new(offer, listed_at, Arc::new(items));
                state.lists.entry((id, offer.key())).or_insert(list);
            }
        }
    }

    /// Marks the lists of one server, or of all servers, as changed.
    pub(super) fn note_changed(&self, server: Option<&ServerId>, offers: &[Offer]) {
        let mut state = self.state();
        let concerned = |(id, key): &ListKey| {
            server.is_none_or(|server| server == id) && offers.iter().any(|offer| offer.key() == *key)
        };
        state.failed.retain(|list_key, _| !concerned(list_key));
        state
            .lists
            .iter_mut()
            .filter(|(list_key, _)| concerned(list_key))
            .for_each(|(_, list)| list.changed = true);
        drop(state);
        self.queued.notify_one();
    }

    /// The list of a server as it was last fetched; empty if it never was.
    pub(super) fn fetched(&self, server: &ServerId, offer: Offer) -> Arc<Vec<RawJson>> {
        let state = self.state();
        state
            .lists
            .get(&(server.clone(), offer.key()))
            .map(|list| Arc::clone(&list.items))
            .unwrap_or_default()
    }

    /// The lists that connected servers announced as changed, and that are neither requested nor failed since.
    fn announced(&self) -> Vec<(Arc<Server>, Offer)> {
        let state = self.state();
        let is_open = |key: &ListKey| !state.requested.contains(key) && !state.failed.contains_key(key);
        let changed = state.lists.iter().filter(|(key, list)| list.changed && is_open(key));
        let listed = changed.filter_map(|((id, kind), _)| {
            let offer = Offer::ALL.into_iter().find(|offer| offer.key() == *kind)?;
            let server = self.hub.servers.find(id.as_str())?;
            server.capabilities().is_some().then_some((server, offer))
        });
        listed.collect()
    }

    /// Requests the missing lists of servers that are connected and declare the capability.
    pub(super) fn prefetch(&self, servers: &[Arc<Server>]) {
        for server in servers {
            let Some(capabilities) = server.capabilities() else { continue };
            for offer in Offer::ALL {
                let capability = match offer {
                    Offer::Resources | Offer::ResourceTemplates => "resources",
                    Offer::Prompts => "prompts",
                };
                if capabilities.contains(capability) {
                    self.request(server, offer);
                }
            }
        }
    }

    /// Requests a list unless it is fresh, already requested or failed recently. Returns whether to wait for the response: a
    /// request is in flight, and there is no current list.
    fn request(&self, server: &Arc<Server>, offer: Offer) -> bool {
        let list_key = (server.id().clone(), offer.key());
        let mut state = self.state();
        let cached_list = state.lists.get(&list_key);
        let unknown = cached_list.is_none_or(|list| list.changed);
        if !unknown && cached_list.is_some_and(|list| is_recent(list.listed_at, DEFAULT_LIST_TTL)) {
            return false;
        }
        if state.requested.contains(&list_key) {
            return unknown;
        }
        if state.failed.get(&list_key).is_some_and(|at| is_recent(*at, RETRY_AFTER)) {
            return false;
        }
        state.requested.insert(list_key);
        state.queue.push((Arc::clone(server), offer));
        drop(state);
        self.queued.notify_one();
        unknown
    }

    /// Sends the queued requests while it is polled, and reports the lists that differ from those fetched before. If
    /// `is_restricted`, lists that servers announce as changed are fetched soon: whether a principal that rules restrict is
    /// notified depends on their content.
    pub(super) async fn follow(&self, is_restricted: impl Fn() -> bool, notify: impl Fn(ListChange)) {
        let mut running = FuturesUnordered::new();
        loop {
            let queue = std::mem::take(&mut self.state().queue);
            running.extend(queue.into_iter().map(|(server, offer)| self.fetch(server, offer)));
            let announced = if is_restricted() { self.announced() } else { Vec::new() };
            tokio::select! {
                () = self.queued.notified() => {}
                () = tokio::time::sleep(REFRESH_PAUSE), if !announced.is_empty() => {
                    for (server, offer) in &announced {
                        self.request(server, *offer);
                    }
                }
                Some(change) = running.next(), if !running.is_empty() => {
                    self.answered.send_modify(|count| *count += 1);
                    if let Some(change) = change {
                        notify(change);
                    }
                }
            }
        }
    }

    /// Fetches and stores a list. Returns the difference from the list before, if any.
    async fn fetch(&self, server: Arc<Server>, offer: Offer) -> Option<ListChange> {
        let list_key = (server.id().clone(), offer.key());
        let permit = self.hub.start_permit(&server).await;
        let fetched = server.offers(offer).await;
        drop(permit);
        let listed_at = SystemTime::now();
        let Ok(items) = fetched else {
            let mut state = self.state();
            state.requested.remove(&list_key);
            state.failed.insert(list_key, listed_at);
            drop(state);
            return None;
        };
        let items = Arc::new(items);
        let list = List::new(offer, listed_at, Arc::clone(&items));
        let (before, is_promised) = {
            let mut state = self.state();
            state.requested.remove(&list_key);
            state.failed.remove(&list_key);
            let before = state.lists.insert(list_key.clone(), list);
            let before = before.map(|before| before.items).unwrap_or_default();
            (before, state.promised.remove(&list_key))
        };
        let (fingerprint, kind) = (server.spec().fingerprint(), offer.key().to_owned());
        self.save(&server, CachedOffers { fingerprint, kind, listed_at, items: items.to_vec() }).await;
        let is_changed = !is_same(&before, &items);
        let server = server.id().clone();
        is_changed.then(|| ListChange { server, offer, before, after: items, is_promised })
    }

    async fn save(&self, server: &Server, offers: CachedOffers) {
        let bytes: usize = offers.items.iter().map(|item| item.get().len()).sum();
        let Some(store) = self.hub.store.as_ref().filter(|_| bytes <= MAX_STORED_BYTES) else { return };
        if let Err(error) = store.save_offers(server.id(), &offers).await {
            self.hub.events.emit(Event::now(None, EventKind::InternalError { detail: error.to_string() }));
        }
    }

    /// The visible items of one kind from these servers, in their order. Prompts with the same name get different names, which are
    /// assigned among all prompts, so that one that is not visible does not free its name for another server. Of two visible
    /// resources with the same URI the first is used.
    pub(super) async fn all(
        &self,
        servers: &[Arc<Server>],
        offer: Offer,
        prompt_names: &PromptNames,
        is_visible: impl Fn(&OfferedItem) -> bool,
    ) -> OfferedItems {
        let OfferedItems { mut entries, missing } = self.every(servers, offer).await;
        if offer == Offer::Prompts {
            prompt_names.assign(&self.hub.engine.reserved(), &mut entries, missing.is_empty());
            entries.retain(is_visible);
        } else {
            entries.retain(is_visible);
            let mut seen = HashSet::new();
            entries.retain(|entry| seen.insert(entry.key.clone()));
        }
        OfferedItems { entries, missing }
    }

    /// Every item of one kind from these servers, in their order, under its own name.
    async fn every(&self, servers: &[Arc<Server>], offer: Offer) -> OfferedItems {
        self.wait_for_lists(servers, offer).await;
        let (lists, missing) = self.cached_lists(servers, offer, |list| &list.items);
        let mut entries = Vec::new();
        for (server, list) in servers.iter().zip(&lists) {
            for item in list.iter() {
                let Some(key) = key_of(offer, item) else { continue };
                let (server, exposed_name, item) = (Arc::clone(server), key.clone(), item.clone());
                entries.push(OfferedItem { server, key, exposed_name, item });
            }
        }
        OfferedItems { entries, missing }
    }

    /// The names or URIs of one kind from these servers, in their order.
    pub(super) async fn keys(&self, servers: &[Arc<Server>], offer: Offer) -> Vec<Arc<ListKeys>> {
        self.wait_for_lists(servers, offer).await;
        self.cached_lists(servers, offer, |list| &list.keys).0
    }

    /// Requests the lists that are missing or outdated, and waits for them for a limited time.
    async fn wait_for_lists(&self, servers: &[Arc<Server>], offer: Offer) {
        self.loaded.get_or_init(|| self.load()).await;
        let mut answered = self.answered.subscribe();
        let mut awaited: Vec<ListKey> = Vec::new();
        for server in servers {
            if self.request(server, offer) {
                awaited.push((server.id().clone(), offer.key()));
            }
        }
        let done = answered.wait_for(|_| {
            let state = self.state();
            !awaited.iter().any(|list_key| state.requested.contains(list_key))
        });
        let _ = tokio::time::timeout(LIST_TIMEOUT, done).await;
    }

    /// A part of the fetched list of each of these servers, and the servers whose list is missing.
    fn cached_lists<T: Default>(
        &self,
        servers: &[Arc<Server>],
        offer: Offer,
        part: impl Fn(&List) -> &Arc<T>,
    ) -> (Vec<Arc<T>>, Vec<ServerId>) {
        let mut state = self.state();
        let (mut lists, mut missing) = (Vec::new(), Vec::new());
        for server in servers {
            let list_key = (server.id().clone(), offer.key());
            let cached_list = state.lists.get(&list_key).map(|list| Arc::clone(part(list)));
            if cached_list.is_none() {
                missing.push(server.id().clone());
            }
            if cached_list.is_none() || state.requested.contains(&list_key) {
                state.promised.insert(list_key);
            }
            lists.push(cached_list.unwrap_or_default());
        }
        (lists, missing)
    }
}

/// The name or URI of an item at its server.
pub(super) fn key_of(offer: Offer, item: &RawJson) -> Option<String> {
    let member = match offer {
        Offer::Resources => "uri",
        Offer::ResourceTemplates => "uriTemplate",
        Offer::Prompts => "name",
    };
    item.object()?.get(member)?.decode::<String>().ok()
}

fn is_same(one: &[RawJson], other: &[RawJson]) -> bool {
    one.iter().map(RawJson::get).eq(other.iter().map(RawJson::get))
}

/// Whether a time is less than `span` ago. A time in the future, after the clock was set back, is not.
fn is_recent(at: SystemTime, span: Duration) -> bool {
    SystemTime::now().duration_since(at).is_ok_and(|age| age < span)
}
