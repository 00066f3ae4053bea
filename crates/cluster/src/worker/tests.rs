//! What a worker does if it cannot receive the requests for an instance that it has taken.

use toolhub_testkit::nats::NatsServer;

use super::*;
use crate::bus::BusOptions;
use crate::test_store::CountingStore;

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
    let options = WorkerOptions {
        labels: Vec::new(),
        capacity: 1,
        scripts: None,
        skills: None,
        drain: Duration::from_secs(1),
    };
    let (events, _queued) = mpsc::channel(1);
    let parts = WorkerParts { lease: Duration::from_secs(6), options, servers: Arc::new(NoServers), events };
    let shared = WorkerState::new(member, bus.clone(), parts);
    let key = InstanceKey { server: "excel".to_owned(), instance: "0".to_owned() };
    let held = HeldPlacement { key, epoch: 7 };
    assert!(shared.receive_requests(&held).await.is_ok());
    assert_eq!(store.released.load(Ordering::Relaxed), 0);
    bus.close().await;
    assert!(shared.receive_requests(&held).await.is_err());
    assert_eq!(store.released.load(Ordering::Relaxed), 1);
}
