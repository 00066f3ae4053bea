//! Members and placements of a cluster in a real PostgreSQL database: one holder at a time, by the database's clock.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use toolhub_core::cluster::{ClusterMember, ClusterStore, HeldPlacement, InstanceKey, MemberKind};
use toolhub_store::PgCluster;
use toolhub_testkit::postgres::{PostgresServer, Stop};

const LEASE: Duration = Duration::from_millis(600);

fn key(server: &str) -> InstanceKey {
    InstanceKey { server: server.to_owned(), instance: "0".to_owned() }
}

async fn open(url: &str) -> PgCluster {
    PgCluster::connect(&url.parse().unwrap()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_gives_an_instance_to_one_of_many_workers() {
    let url = PostgresServer::shared().new_database();
    let stores = [Arc::new(open(&url).await), Arc::new(open(&url).await)];
    let mut claims = JoinSet::new();
    for worker in 0..16 {
        let store = Arc::clone(&stores[worker % 2]);
        claims.spawn(async move {
            store.claim(key("s"), format!("w{worker}"), Duration::from_secs(60)).await.unwrap()
        });
    }
    let epochs: Vec<i64> = claims.join_all().await.into_iter().flatten().collect();
    assert_eq!(epochs.len(), 1);
    let placement = stores[0].placement(key("s")).await.unwrap().unwrap();
    assert_eq!(placement.epoch, epochs[0]);
    assert!(placement.remaining_lease > Duration::from_secs(50));
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_fences_a_worker_whose_lease_has_ended() {
    let store = open(&PostgresServer::shared().new_database()).await;
    let (old, new) = ("old".to_owned(), "new".to_owned());
    let first = store.claim(key("s"), old.clone(), LEASE).await.unwrap().unwrap();
    assert_eq!(store.claim(key("s"), new.clone(), LEASE).await.unwrap(), None);
    let held = HeldPlacement { key: key("s"), epoch: first };
    assert_eq!(
        store.renew(old.clone(), vec![held.clone()], LEASE).await.unwrap(),
        std::slice::from_ref(&held)
    );
    // Another worker's epoch is not extended, nor given up.
    assert_eq!(store.renew(new.clone(), vec![held.clone()], LEASE).await.unwrap(), []);
    store.release(new.clone(), held.clone()).await.unwrap();
    assert_eq!(store.claim(key("s"), new.clone(), LEASE).await.unwrap(), None);
    tokio::time::sleep(LEASE + Duration::from_millis(100)).await;
    // The lease has ended: it is not extended, although no other worker has taken the instance.
    assert_eq!(store.renew(old.clone(), vec![held.clone()], LEASE).await.unwrap(), []);
    assert_eq!(store.placement(key("s")).await.unwrap(), None);
    let second = store.claim(key("s"), new.clone(), LEASE).await.unwrap().unwrap();
    assert!(second > first);
    // What the former holder still does has no effect.
    assert_eq!(store.renew(old.clone(), vec![held.clone()], LEASE).await.unwrap(), []);
    store.release(old.clone(), held).await.unwrap();
    assert_eq!(store.placement(key("s")).await.unwrap().unwrap().worker, new);
    // Given up by its holder, it is free at once.
    store.release(new, HeldPlacement { key: key("s"), epoch: second }).await.unwrap();
    assert!(store.claim(key("s"), old, LEASE).await.unwrap().unwrap() > second);
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_members_are_listed_while_they_live() {
    let server = PostgresServer::start();
    let store = open(&server.new_database()).await;
    let member = ClusterMember {
        id: "w".to_owned(),
        kind: MemberKind::Worker,
        address: "machine".to_owned(),
        labels: vec!["gpu".to_owned(), "办公".to_owned()],
        capacity: 3,
        load: 1,
        version: "1".to_owned(),
        draining: true,
        silent_for: Duration::ZERO,
    };
    let now = store.beat(member.clone()).await.unwrap();
    assert!(now > 1_600_000_000_000);
    let mut listed = store.members(Duration::from_secs(5)).await.unwrap();
    assert!(listed[0].silent_for < Duration::from_secs(5));
    listed[0].silent_for = Duration::ZERO;
    assert_eq!(listed, std::slice::from_ref(&member));
    // After a restart of the database, with a new connection.
    server.stop(Stop::Immediate);
    server.restart();
    assert!(store.beat(member).await.unwrap() >= now);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(store.members(Duration::from_millis(100)).await.unwrap(), []);
    store.leave("w".to_owned()).await.unwrap();
    assert_eq!(store.members(Duration::from_secs(60)).await.unwrap(), []);
}
