//! Requests between replicas whose cancellation is lost.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::{StreamExt as _, stream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toolhub_core::BoxFuture;
use toolhub_testkit::nats::NatsServer;

use super::*;
use crate::JoinOptions;
use crate::bus::{Bus, BusOptions};
use crate::cluster_protocol::WAITING_TIMEOUT;
use crate::test_store::CountingStore;

const LIMIT: Duration = Duration::from_secs(10);

/// Answers that never end.
#[derive(Default)]
struct Endless {
    opened: AtomicUsize,
    dropped: Arc<AtomicUsize>,
}

struct CountDrop(Arc<AtomicUsize>);

impl Drop for CountDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl PeerService for Endless {
    fn open<'a>(&'a self, _: &'a PeerEnvelope, _: Bytes) -> BoxFuture<'a, Option<PeerParts>> {
        self.opened.fetch_add(1, Ordering::Relaxed);
        let guard = CountDrop(Arc::clone(&self.dropped));
        Box::pin(async move {
            let parts = stream::once(async move {
                let _held = &guard;
                std::future::pending::<Bytes>().await
            });
            Some(parts.boxed())
        })
    }
}

async fn join(server: &NatsServer, id: i64) -> Replica {
    let options = BusOptions {
        servers: vec![server.url()],
        prefix: "test".to_owned(),
        credentials: None,
        authorities: None,
        name: "test".to_owned(),
    };
    let (bus, store) = (Bus::connect(options).await.unwrap(), Arc::new(CountingStore::default()));
    let replica =
        Replica::join(JoinOptions { bus, store, address: "here".to_owned(), lease: LIMIT }, ReplicaId(id));
    until(|| replica.peers().envelope(ReplicaId(0)).is_some()).await;
    replica
}

async fn until(mut is_met: impl FnMut() -> bool) {
    let met = async {
        while !is_met() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LIMIT, met).await.expect("it happens in time");
}

#[tokio::test]
async fn stream_ends_although_its_cancellation_was_lost_and_one_that_nobody_reads_stays() {
    let server = NatsServer::start();
    let (one, other) = (join(&server, 1).await, join(&server, 2).await);
    let (service, mut serving) = (Arc::new(Endless::default()), JoinSet::new());
    let (peers, own) = (other.peers(), Arc::clone(&service));
    serving.spawn(async move { peers.serve(own, CancellationToken::new()).await });
    let (peers, dropped) = (one.peers(), || service.dropped.load(Ordering::Relaxed));
    let mut answers = Vec::new();
    // Until the other replica has subscribed, there is no receiver.
    while service.opened.load(Ordering::Relaxed) < 2 {
        let envelope = peers.envelope(ReplicaId(2)).unwrap();
        let mut answer = peers.send(&envelope, b"x", AnswerKind::Endless).await.unwrap();
        match tokio::time::timeout(Duration::from_millis(300), answer.next()).await {
            Err(_) => answers.push(answer),
            Ok(result) => drop(result.unwrap_err()),
        }
    }
    let mut lost = answers.pop().unwrap();
    assert_eq!((answers.len(), dropped()), (1, 0));
    // As if its message did not arrive.
    lost.is_over = true;
    drop(lost);
    until(|| dropped() == 1).await;
    tokio::time::sleep(WAITING_TIMEOUT * 2).await;
    assert_eq!(dropped(), 1);
    drop(answers);
    until(|| dropped() == 2).await;
}
