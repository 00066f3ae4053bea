//! Subscriptions of clients to resources, as guards: each holds its part of its principal's budget, and takes back exactly what
//! it added when it goes. Subscribing and unsubscribing run to their ends in tasks of their own, so that a client that
//! cancels or goes away meanwhile leaves nothing behind.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use tokio::sync::OwnedMutexGuard;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Gateway;
use super::backend::{Backend, RpcError};
use super::budget::Permit;

/// What has to be taken back.
struct Added {
    uri: String,
    backend: Arc<dyn Backend>,
    /// Given back after the server was told.
    permit: Permit,
}

impl Added {
    async fn take_back(self) -> Result<(), RpcError> {
        let Self { uri, backend, permit } = self;
        let _turn = UriLock::take(&uri).await;
        let ended = backend.watch(&uri, false).await;
        drop(permit);
        ended
    }
}

/// One resource that a client is subscribed to.
pub(crate) struct Subscription {
    added: Option<Added>,
    tasks: TaskTracker,
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let uri = self.added.as_ref().map(|added| &added.uri);
        f.debug_tuple("Subscription").field(&uri).finish()
    }
}

impl Subscription {
    /// Unsubscribes; the server was told when this ends, whether or not anybody waits for that.
    pub(crate) async fn end(mut self) -> Result<(), RpcError> {
        let Some(added) = self.added.take() else { return Ok(()) };
        self.tasks.spawn(added.take_back()).await.unwrap_or(Ok(()))
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let Some(added) = self.added.take() else { return };
        run_beside(&self.tasks, async move {
            let _ = added.take_back().await;
        });
    }
}

/// The subscriptions of one client or stream. They end one after another when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions(Vec<Subscription>);

impl From<Vec<Subscription>> for Subscriptions {
    fn from(all: Vec<Subscription>) -> Self {
        Self(all)
    }
}

impl Drop for Subscriptions {
    fn drop(&mut self) {
        let Some(tasks) = self.0.first().map(|one| one.tasks.clone()) else { return };
        let all: Vec<Added> = self.0.drain(..).filter_map(|mut one| one.added.take()).collect();
        run_beside(&tasks, async move {
            for added in all {
                let _ = added.take_back().await;
            }
        });
    }
}

/// Runs something in a task, if there is still a runtime to run it.
fn run_beside(tasks: &TaskTracker, work: impl Future<Output = ()> + Send + 'static) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        tasks.spawn_on(work, &runtime);
    }
}

impl Gateway {
    /// Subscribes to a resource.
    pub(super) async fn subscribe(&self, uri: String, permit: Permit) -> Result<Subscription, RpcError> {
        let (backend, tasks) = (Arc::clone(&self.backend), self.tasks.clone());
        let subscribing = self.tasks.spawn(subscribed(backend, tasks, (uri, permit)));
        subscribing.await.unwrap_or_else(|_| Err(RpcError::new(-32603, "subscribing failed")))
    }

    /// Subscribes to several resources, as far as that can be done. One whose client goes away meanwhile stops, and takes
    /// back what it has.
    pub(super) async fn subscribe_all(&self, wanted: Vec<(String, Permit)>) -> Subscriptions {
        if wanted.is_empty() {
            return Subscriptions::default();
        }
        let (backend, tasks) = (Arc::clone(&self.backend), self.tasks.clone());
        let unwanted = CancellationToken::new();
        let _unwanted_if_dropped = unwanted.clone().drop_guard();
        let subscribing = self.tasks.spawn(async move {
            let mut all = Subscriptions::default();
            for one in wanted {
                if unwanted.is_cancelled() {
                    break;
                }
                all.0.extend(subscribed(Arc::clone(&backend), tasks.clone(), one).await.ok());
            }
            all
        });
        subscribing.await.unwrap_or_default()
    }
}

async fn subscribed(
    backend: Arc<dyn Backend>,
    tasks: TaskTracker,
    (uri, permit): (String, Permit),
) -> Result<Subscription, RpcError> {
    let turn = UriLock::take(&uri).await;
    backend.watch(&uri, true).await?;
    drop(turn);
    Ok(Subscription { added: Some(Added { uri, backend, permit }), tasks })
}

/// Those who subscribe to a resource or unsubscribe from it, one after another. Otherwise the message that ends the last
/// subscription of one client could reach the server after the one that begins the first of another.
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
        let mut all = uri_locks();
        drop(self.lock.take());
        // Those who wait hold it as well.
        if all.get(&self.uri).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            all.remove(&self.uri);
        }
    }
}
