//! Subscriptions of clients to resources, as guards: each holds its part of the principal's budget, and unsubscribes
//! exactly once when it is dropped. Subscribing and unsubscribing run to completion in separate tasks, so that a client
//! that cancels or disconnects meanwhile leaves nothing behind.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use tokio::sync::OwnedMutexGuard;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolhub_core::ServerId;

use crate::Gateway;
use crate::backend::Backend;
use crate::budget::BudgetPermit;
use crate::rpc_error::RpcError;

/// A subscription that has to be undone.
struct ActiveSubscription {
    server: ServerId,
    uri: String,
    backend: Arc<dyn Backend>,
    /// Released after the server has been notified.
    permit: BudgetPermit,
}

impl ActiveSubscription {
    async fn unsubscribe(self) -> Result<(), RpcError> {
        let Self { server, uri, backend, permit } = self;
        let _uri_lock = UriLock::take(&uri).await;
        let ended = backend.unsubscribe(&server, &uri).await;
        drop(permit);
        ended
    }
}

/// A subscription of a client to one resource.
pub(crate) struct Subscription {
    active: Option<ActiveSubscription>,
    tasks: TaskTracker,
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let uri = self.active.as_ref().map(|active| &active.uri);
        f.debug_tuple("Subscription").field(&uri).finish()
    }
}

impl Subscription {
    /// Returns whether this is a subscription to the resource of that server.
    pub(crate) fn is_to(&self, server: &ServerId, uri: &str) -> bool {
        self.active.as_ref().is_some_and(|active| active.server == *server && active.uri == uri)
    }

    /// Unsubscribes. The server is notified even if the returned future is dropped.
    pub(crate) async fn end(mut self) -> Result<(), RpcError> {
        let Some(active) = self.active.take() else { return Ok(()) };
        self.tasks.spawn(active.unsubscribe()).await.unwrap_or(Ok(()))
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let Some(active) = self.active.take() else { return };
        spawn_detached(&self.tasks, async move {
            let _ = active.unsubscribe().await;
        });
    }
}

/// The subscriptions of one client or stream. On drop they end one after another.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions(Vec<Subscription>);

impl Subscriptions {
    /// Returns whether one of them is to the resource of that server.
    pub(crate) fn contain(&self, server: &ServerId, uri: &str) -> bool {
        self.0.iter().any(|subscription| subscription.is_to(server, uri))
    }
}

impl From<Vec<Subscription>> for Subscriptions {
    fn from(subscriptions: Vec<Subscription>) -> Self {
        Self(subscriptions)
    }
}

impl Drop for Subscriptions {
    fn drop(&mut self) {
        let Some(tasks) = self.0.first().map(|subscription| subscription.tasks.clone()) else { return };
        let active_subscriptions: Vec<ActiveSubscription> =
            self.0.drain(..).filter_map(|mut subscription| subscription.active.take()).collect();
        spawn_detached(&tasks, async move {
            for active in active_subscriptions {
                let _ = active.unsubscribe().await;
            }
        });
    }
}

/// Runs `work` in a task, if there still is a runtime.
fn spawn_detached(tasks: &TaskTracker, work: impl Future<Output = ()> + Send + 'static) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        tasks.spawn_on(work, &runtime);
    }
}

impl Gateway {
    /// Subscribes to a resource.
    pub(super) async fn subscribe(
        &self,
        uri: String,
        permit: BudgetPermit,
    ) -> Result<Subscription, RpcError> {
        let (backend, tasks) = (Arc::clone(&self.backend), self.tasks.clone());
        let subscribing = self.tasks.spawn(start_subscription(backend, tasks, uri, permit));
        subscribing.await.unwrap_or_else(|_| Err(RpcError::new(-32603, "subscribing failed")))
    }

    /// Subscribes to several resources, skipping those that fail. If the client disconnects meanwhile, this stops and
    /// undoes the subscriptions made so far.
    pub(super) async fn subscribe_all(&self, requested: Vec<(String, BudgetPermit)>) -> Subscriptions {
        if requested.is_empty() {
            return Subscriptions::default();
        }
        let (backend, tasks) = (Arc::clone(&self.backend), self.tasks.clone());
        let cancelled = CancellationToken::new();
        let _cancel_on_drop = cancelled.clone().drop_guard();
        let subscribing = self.tasks.spawn(async move {
            let mut subscriptions = Subscriptions::default();
            for (uri, permit) in requested {
                if cancelled.is_cancelled() {
                    break;
                }
                subscriptions
                    .0
                    .extend(start_subscription(Arc::clone(&backend), tasks.clone(), uri, permit).await.ok());
            }
            subscriptions
        });
        subscribing.await.unwrap_or_default()
    }
}

async fn start_subscription(
    backend: Arc<dyn Backend>,
    tasks: TaskTracker,
    uri: String,
    permit: BudgetPermit,
) -> Result<Subscription, RpcError> {
    let uri_lock = UriLock::take(&uri).await;
    let server = backend.subscribe(&uri, permit.holder().identity()).await?;
    drop(uri_lock);
    Ok(Subscription { active: Some(ActiveSubscription { server, uri, backend, permit }), tasks })
}

/// Serializes subscribing to and unsubscribing from a resource. Otherwise the message that ends the last subscription of
/// one client could reach the server after the message that begins the first subscription of another.
struct UriLock {
    uri: String,
    lock: Option<(Arc<tokio::sync::Mutex<()>>, OwnedMutexGuard<()>)>,
}

/// The resources that are being subscribed to or unsubscribed from, in all profiles.
static URI_LOCKS: LazyLock<Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>> =
    LazyLock::new(Mutex::default);

impl UriLock {
    async fn take(uri: &str) -> Self {
        let lock = Arc::clone(uri_locks().entry(uri.to_owned()).or_default());
        let held = Arc::clone(&lock).lock_owned().await;
        Self { uri: uri.to_owned(), lock: Some((lock, held)) }
    }
}

fn uri_locks() -> MutexGuard<'static, HashMap<String, Arc<tokio::sync::Mutex<()>>>> {
    URI_LOCKS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for UriLock {
    fn drop(&mut self) {
        let mut locks = uri_locks();
        drop(self.lock.take());
        // Waiting tasks hold a reference as well.
        if locks.get(&self.uri).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            locks.remove(&self.uri);
        }
    }
}
