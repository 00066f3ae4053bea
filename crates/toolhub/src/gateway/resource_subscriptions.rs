//! Reference counts of resource subscriptions: the server is unsubscribed when the last client unsubscribes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolhub_core::ServerId;
use toolhub_mcp_client::Server;

type Counts = HashMap<(ServerId, String), usize>;

/// The number of client subscriptions of each resource, over all profiles.
#[derive(Debug, Default)]
pub(super) struct ResourceSubscriptions(Mutex<Counts>);

impl ResourceSubscriptions {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a subscription. Returns whether it is the first.
    pub(super) fn add(&self, server: &Server, uri: &str) -> bool {
        let mut counts = self.counts();
        let count = counts.entry((server.id().clone(), uri.to_owned())).or_default();
        *count += 1;
        *count == 1
    }

    /// Removes a subscription. Returns whether it was the last.
    pub(super) fn remove(&self, server: &ServerId, uri: &str) -> bool {
        let (mut counts, key) = (self.counts(), (server.clone(), uri.to_owned()));
        let Some(count) = counts.get_mut(&key) else { return false };
        *count -= 1;
        let last = *count == 0;
        if last {
            counts.remove(&key);
        }
        last
    }

    /// Whether any client is subscribed to the resource at this server.
    pub(super) fn has(&self, server: &ServerId, uri: &str) -> bool {
        self.counts().contains_key(&(server.clone(), uri.to_owned()))
    }

    /// The first of these servers at which the resource has subscriptions.
    pub(super) fn server<'a>(&self, servers: &'a [Arc<Server>], uri: &str) -> Option<&'a Arc<Server>> {
        let counts = self.counts();
        servers.iter().find(|server| counts.contains_key(&(server.id().clone(), uri.to_owned())))
    }
}
