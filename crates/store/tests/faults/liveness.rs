//! Stores that lose their connection to PostgreSQL and return: what they own stays their own, while a store that does not return
//! is replaced.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use toolhub_core::RawJson;
use toolhub_core::call_log::{CallQuery, CallStatus, RecordId};
use toolhub_core::ports::HubStore;
use toolhub_core::responses::{ResponseStatus, ResponseUpdate, StoredResponse};
use toolhub_testkit::network::Network;
use toolhub_testkit::postgres::{PostgresServer, Stop};

use crate::open_at;
use crate::server_away::call;

/// Waits that take longer fail the test.
const TEST_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a store is kept away after a restart: longer than the absence that proves an end while nothing restarts.
const DELAY: Duration = Duration::from_secs(4);

fn response() -> StoredResponse {
    StoredResponse {
        id: format!("resp_{}", RecordId::generate()),
        principal: "key:ann".to_owned(),
        previous: None,
        status: ResponseStatus::InProgress,
        request: RawJson::null(),
        input: RawJson::null(),
        body: RawJson::empty_object(),
        created_at: SystemTime::now(),
        expires_at: SystemTime::now() + Duration::from_hours(1),
    }
}

/// A store that owns a response and a call, its network, and another store in the same database.
struct TwoStores {
    server: PostgresServer,
    network: Network,
    owner: Arc<dyn HubStore>,
    other: Arc<dyn HubStore>,
    response: StoredResponse,
    call: RecordId,
}

impl TwoStores {
    async fn open() -> Self {
        let server = PostgresServer::start();
        let network = Network::to(server.port()).await;
        let url = server.new_database();
        let other = open_at(&url).await.unwrap();
        let through = url.replace(&format!(":{}/", server.port()), &format!(":{}/", network.port()));
        assert_ne!(through, url);
        let owner = open_at(&through).await.unwrap();
        let (response, (call, _)) = (response(), call());
        owner.add_response(response.clone()).await.unwrap();
        owner.begin(call.clone()).await.unwrap();
        Self { server, network, owner, other, response, call: call.record }
    }

    /// Fails if the other store takes over anything of the owner.
    async fn assert_owned(&self) {
        assert!(self.other.is_alive(self.owner.replica()).await.unwrap());
        assert!(self.other.unfinished_responses().await.unwrap().is_empty());
        let calls = self.other.calls(CallQuery::default()).await.unwrap();
        let call = calls.iter().find(|call| call.start.record == self.call).unwrap();
        assert_eq!(call.status, CallStatus::Running);
    }

    /// The owner works on its response.
    async fn work(&self) -> ResponseUpdate {
        self.owner.update_response(self.response.clone()).await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn store_that_connects_late_after_a_restart_keeps_what_it_owns() {
    let stores = TwoStores::open().await;
    for how in [Stop::Immediate, Stop::Fast] {
        stores.network.cut();
        stores.server.stop(how);
        stores.server.restart();
        let since = Instant::now();
        while since.elapsed() < DELAY {
            stores.assert_owned().await;
        }
        stores.network.connect();
        assert_eq!(stores.work().await, ResponseUpdate::Written);
        // Its lock is back: its age does not matter any more.
        while since.elapsed() < DELAY + Duration::from_secs(8) {
            stores.assert_owned().await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(stores.work().await, ResponseUpdate::Written);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_connection_does_not_end_a_store() {
    let stores = TwoStores::open().await;
    for _ in 0..20 {
        stores.network.cut();
        stores.assert_owned().await;
        stores.network.connect();
        stores.assert_owned().await;
        assert_eq!(stores.work().await, ResponseUpdate::Written);
    }
    stores.assert_owned().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn store_that_does_not_return_is_replaced() {
    let stores = TwoStores::open().await;
    stores.network.cut();
    let since = Instant::now();
    while stores.other.unfinished_responses().await.unwrap().is_empty() {
        assert!(since.elapsed() < TEST_TIMEOUT, "its response stays unfinished");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(!stores.other.is_alive(stores.owner.replica()).await.unwrap());
    // It returns too late: the response belongs to the other store, which is told to be its owner.
    stores.network.connect();
    assert_eq!(stores.work().await, ResponseUpdate::OtherOwner);
    assert!(stores.owner.owned_responses().await.unwrap().is_empty());
    assert_eq!(stores.other.owned_responses().await.unwrap()[0].id, stores.response.id);
    // What it owns from now on is its own.
    let later = response();
    stores.owner.add_response(later.clone()).await.unwrap();
    let since = Instant::now();
    while !stores.other.is_alive(stores.owner.replica()).await.unwrap() {
        assert!(since.elapsed() < TEST_TIMEOUT, "it has returned");
    }
    let found = stores.other.unfinished_responses().await.unwrap();
    assert!(found.iter().all(|one| one.id != later.id), "{found:?}");
}
