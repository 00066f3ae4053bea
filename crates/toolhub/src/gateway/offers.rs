//! What servers offer beside tools, put together for clients: lists that are kept until they change, and whose each
//! thing is.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant;
use toolhub_core::{RawJson, ServerId, Source};
use toolhub_engine::ReservedNames;
use toolhub_engine::reserved::{hashed, qualified};
use toolhub_mcp::{Offer, Server};

/// A list is asked for again after so long, whether or not its server tells of changes.
const KEEPS: Duration = Duration::from_secs(300);
/// How long a server may take to tell its list before it is left out.
const PATIENCE: Duration = Duration::from_secs(10);

/// One thing that is offered.
#[derive(Debug, Clone)]
pub(super) struct Thing {
    pub(super) server: Arc<Server>,
    /// What its server calls it: a name, or a uri.
    pub(super) key: String,
    /// How it is offered: a name, or a uri.
    pub(super) shown: String,
    pub(super) item: RawJson,
}

type Kept = (Instant, Arc<Vec<RawJson>>);

/// The lists that are kept.
#[derive(Debug)]
pub(super) struct OfferBook {
    lists: Mutex<HashMap<(ServerId, &'static str), Kept>>,
    reserved: ReservedNames,
}

impl OfferBook {
    /// Without any list; prompts do not take these names.
    pub(super) fn new(reserved: &ReservedNames) -> Self {
        Self { lists: Mutex::default(), reserved: reserved.clone() }
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<(ServerId, &'static str), Kept>> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets the lists of a server that changed.
    pub(super) fn forget(&self, server: Option<&ServerId>, offers: &[Offer]) {
        self.kept().retain(|(id, key), _| {
            server.is_some_and(|server| server != id) || !offers.iter().any(|offer| offer.key() == *key)
        });
    }

    async fn of(&self, server: &Arc<Server>, offer: Offer) -> Arc<Vec<RawJson>> {
        let place = (server.id().clone(), offer.key());
        if let Some((at, list)) = self.kept().get(&place)
            && at.elapsed() < KEEPS
        {
            return Arc::clone(list);
        }
        match tokio::time::timeout(PATIENCE, server.offers(offer)).await {
            Ok(Ok(list)) => {
                let list = Arc::new(list);
                self.kept().insert(place, (Instant::now(), Arc::clone(&list)));
                list
            }
            // One that does not answer has nothing to offer now, and does not hide what others have.
            Ok(Err(_)) | Err(_) => Arc::default(),
        }
    }

    /// All of a kind that these servers offer, in their order. Names that two use are told apart; of two resources with
    /// one uri the first is meant.
    pub(super) async fn all(&self, servers: &[Arc<Server>], offer: Offer) -> Vec<Thing> {
        let lists = join_all(servers.iter().map(|server| self.of(server, offer))).await;
        let member = match offer {
            Offer::Resources => "uri",
            Offer::ResourceTemplates => "uriTemplate",
            Offer::Prompts => "name",
        };
        let mut things = Vec::new();
        let mut count: BTreeMap<String, usize> = BTreeMap::new();
        for (server, list) in servers.iter().zip(&lists) {
            for item in list.iter() {
                let key = item.object().and_then(|item| item.get(member)?.decode::<String>().ok());
                let Some(key) = key else { continue };
                *count.entry(key.clone()).or_default() += 1;
                let (server, shown, item) = (Arc::clone(server), key.clone(), item.clone());
                things.push(Thing { server, key, shown, item });
            }
        }
        if offer == Offer::Prompts {
            self.name_prompts(&mut things, &count);
            return things;
        }
        let mut seen = std::collections::HashSet::new();
        things.retain(|thing| seen.insert(thing.key.clone()));
        things
    }
}

impl OfferBook {
    /// Prefixes the names of prompts that several servers have or that are reserved. A prefixed name belongs to the prompt
    /// that the hub made it for, whatever the order of the servers.
    fn name_prompts(&self, things: &mut [Thing], count: &BTreeMap<String, usize>) {
        let source = |thing: &Thing| Source::Server(thing.server.id().clone());
        let prefixed = |thing: &Thing| {
            count.get(&thing.key).is_some_and(|many| *many > 1)
                || self.reserved.reserves(&source(thing), &thing.key)
        };
        let (first, second): (Vec<&mut Thing>, Vec<&mut Thing>) =
            things.iter_mut().partition(|thing| prefixed(thing));
        let mut taken = std::collections::HashSet::new();
        for thing in first.into_iter().chain(second) {
            let names = [qualified(&source(thing), &thing.key), hashed(&source(thing), &thing.key)];
            let own = (!prefixed(thing)).then(|| thing.key.clone());
            let mut free = own.into_iter().chain(names);
            let Some(name) = free.find(|name| taken.insert(name.clone())) else { continue };
            if name != thing.key {
                let item = thing.item.object().unwrap_or_default().with("name", name.as_str());
                (thing.shown, thing.item) = (name, item.into_raw());
            }
        }
    }
}

/// Whether a uri is one of those that a template stands for: its fixed parts come in their order.
pub(super) fn fits_template(template: &str, uri: &str) -> bool {
    let mut rest = uri;
    let mut parts = template.split('{');
    let Some(begin) = parts.next() else { return false };
    let Some(after) = rest.strip_prefix(begin) else { return false };
    rest = after;
    let fixed: Vec<&str> = parts.map(|part| part.split_once('}').map_or("", |(_, fixed)| fixed)).collect();
    let Some((last, middle)) = fixed.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last) && rest.len() > last.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_fit_their_uris() {
        let check = |template: &str, uri: &str, expect: bool| {
            assert_eq!(fits_template(template, uri), expect, "{template} {uri}");
        };
        check("test://template/{id}/data", "test://template/123/data", true);
        check("test://template/{id}/data", "test://template//data", false);
        check("test://template/{id}/data", "test://other/123/data", false);
        check("file:///{path}", "file:///a/b", true);
        check("a://{x}-{y}.z", "a://1-2.z", true);
        check("a://{x}-{y}.z", "a://12.z", false);
        check("plain://x", "plain://x", true);
    }
}
