//! What a worker does if it cannot receive the requests for an instance that it has taken.

use std::sync::atomic::AtomicUsize;

use toolhub_core::BoxFuture;
use toolhub_core::cluster::{ClusterStore, Member, Placement};
use toolhub_core::ports::StoreError;
use toolhub_testkit::nats::NatsServer;

use super::*;
use crate::bus::BusOptions;

/// Counts what is released; the rest works and does nothing.
#[derive(Default)]
struct CountingStore {
    released: AtomicUsize,
}

impl ClusterStore for CountingStore {
    fn beat(&self, _: Member) -> BoxFuture<'_, Result<i64, StoreError>> {
        Box::pin(async { Ok(1) })
    }

    fn leave(&self, _: String) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async { Ok(()) })
    }

    fn members(&self, _: Duration) -> BoxFuture<'_, Result<Vec<Member>, StoreError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn placements(&self) -> BoxFuture<'_, Result<Vec<Placement>, StoreError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn placement(&self, _: InstanceKey) -> BoxFuture<'_, Result<Option<Placement>, StoreError>> {
        Box::pin(async { Ok(None) })
    }

    fn claim(
        &self,
        _: InstanceKey,
        _: String,
        _: Duration,
    ) -> BoxFuture<'_, Result<Option<i64>, StoreError>> {
        Box::pin(async { Ok(Some(7)) })
    }

    fn renew(
        &self,
        _: String,
        held: Vec<HeldPlacement>,
        _: Duration,
    ) -> BoxFuture<'_, Result<Vec<HeldPlacement>, StoreError>> {
        Box::pin(async { Ok(held) })
    }

    fn release(&self, _: String, held: HeldPlacement) -> BoxFuture<'_, Result<(), StoreError>> {
        assert_eq!(held.epoch, 7);
        self.released.fetch_add(1, Ordering::Relaxed);
        Box::pin(async { Ok(()) })
    }
}

struct NoServers;

impl ServerSource for NoServers {
    fn server(&self, _: &str, _: &str, _: Arc<dyn ClientHandler>) -> Result<Arc<Server>, LocalizedText> {
        Err(LocalizedText::new("none", "无"))
    }

    fn capabilities(&self) -> RawJson {
        RawJson::empty_object()
    }
}

#[tokio::test]
async fn placement_whose_requests_cannot_be_received_is_released() {
    let server = NatsServer::start();
    let options = BusOptions {
        servers: vec![server.url()],
        prefix: "test".to_owned(),
        credentials: None,
        authorities: None,
        name: "test".to_owned(),
    };
    let bus = Bus::connect(options).await.unwrap();
    let store = Arc::new(CountingStore::default());
    let member = Membership {
        id: "worker-1".to_owned(),
        kind: MemberKind::Worker,
        address: "here".to_owned(),
        store: Arc::clone(&store) as _,
        clock: DatabaseClock::default(),
    };
    let options = WorkerOptions { labels: Vec::new(), capacity: 1, drain: Duration::from_secs(1) };
    let (events, _queued) = mpsc::channel(1);
    let parts = WorkerParts { lease: Duration::from_secs(6), options, servers: Arc::new(NoServers), events };
    let shared = Shared::new(member, bus.clone(), parts);
    let key = InstanceKey { server: "excel".to_owned(), instance: "0".to_owned() };
    let held = HeldPlacement { key, epoch: 7 };
    assert!(shared.receive_requests(&held).await.is_ok());
    assert_eq!(store.released.load(Ordering::Relaxed), 0);
    bus.close().await;
    assert!(shared.receive_requests(&held).await.is_err());
    assert_eq!(store.released.load(Ordering::Relaxed), 1);
}
