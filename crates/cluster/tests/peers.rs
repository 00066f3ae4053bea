//! Requests between replicas over a real NATS server: each is processed at most once, its parts arrive in order, a slow receiver slows
//! the sender, and a refusal or a missing receiver certainly has no effect.

#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toolhub_cluster::bus::{Bus, BusError, BusOptions};
use toolhub_cluster::peer::{AnswerKind, PeerEnvelope, PeerParts, PeerService};
use toolhub_cluster::{JoinOptions, Replica};
use toolhub_core::BoxFuture;
use toolhub_core::cluster::{ClusterMember, ClusterStore, HeldPlacement, InstanceKey, Placement};
use toolhub_core::error::Effect;
use toolhub_core::ports::StoreError;
use toolhub_core::shared_state::ReplicaId;
use toolhub_testkit::nats::NatsServer;

const LIMIT: Duration = Duration::from_secs(10);

/// A database with a clock.
struct Clock;

impl ClusterStore for Clock {
    fn beat(&self, _: ClusterMember) -> BoxFuture<'_, Result<i64, StoreError>> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
        Box::pin(async move { Ok(i64::try_from(now).unwrap()) })
    }

    fn leave(&self, _: String) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async { Ok(()) })
    }

    fn members(&self, _: Duration) -> BoxFuture<'_, Result<Vec<ClusterMember>, StoreError>> {
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
        Box::pin(async { Ok(None) })
    }

    fn renew(
        &self,
        _: String,
        held: Vec<HeldPlacement>,
        _: Duration,
    ) -> BoxFuture<'_, Result<Vec<HeldPlacement>, StoreError>> {
        Box::pin(async { Ok(held) })
    }

    fn release(&self, _: String, _: HeldPlacement) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async { Ok(()) })
    }
}

/// Answers with the request; `stream` with many parts, `short parts` with many more of a few bytes, `refuse` not at all, `endless` never.
#[derive(Default)]
struct Echo {
    served: AtomicUsize,
    parts: Arc<AtomicUsize>,
    dropped: Arc<AtomicUsize>,
}

struct CountDrop(Arc<AtomicUsize>);

impl Drop for CountDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl PeerService for Echo {
    fn open<'a>(&'a self, _: &'a PeerEnvelope, sealed: Bytes) -> BoxFuture<'a, Option<PeerParts>> {
        Box::pin(async move {
            if &*sealed == b"refuse" {
                return None;
            }
            self.served.fetch_add(1, Ordering::Relaxed);
            let (parts, guard) = (Arc::clone(&self.parts), CountDrop(Arc::clone(&self.dropped)));
            Some(match &*sealed {
                b"stream" | b"short parts" => {
                    let (count, bytes) = if &*sealed == b"stream" { (400, 64 << 10) } else { (2_000, 10) };
                    stream::iter(0..count)
                        .map(move |number: u32| {
                            let _held = &guard;
                            parts.fetch_add(1, Ordering::Relaxed);
                            let mut part = number.to_be_bytes().to_vec();
                            part.resize(bytes, 0);
                            Bytes::from(part)
                        })
                        .boxed()
                }
                b"endless" => stream::once(async move {
                    let _held = &guard;
                    std::future::pending::<Bytes>().await
                })
                .boxed(),
                _ => stream::once(async move { sealed }).boxed(),
            })
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
    let bus = Bus::connect(options).await.unwrap();
    let options = JoinOptions { bus, store: Arc::new(Clock), address: "here".to_owned(), lease: LIMIT };
    let replica = Replica::join(options, ReplicaId(id));
    while replica.peers().envelope(ReplicaId(0)).is_none() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    replica
}

struct Pair {
    one: Replica,
    other: Replica,
    echo: Arc<Echo>,
    stop: CancellationToken,
    serving: JoinSet<()>,
    server: NatsServer,
}

/// Two replicas; the second one serves.
async fn pair() -> Pair {
    let server = NatsServer::start();
    let (one, other) = (join(&server, 1).await, join(&server, 2).await);
    let (echo, stop, mut serving) = (Arc::new(Echo::default()), CancellationToken::new(), JoinSet::new());
    let (peers, service, until) = (other.peers(), Arc::clone(&echo), stop.clone());
    serving.spawn(async move { peers.serve(service, until).await });
    let pair = Pair { one, other, echo, stop, serving, server };
    let since = Instant::now();
    while pair.send(b"ready").await.is_err() {
        assert!(since.elapsed() < LIMIT);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    pair
}

impl Pair {
    /// Sends a request, and returns the first part of the answer.
    async fn send(&self, message: &[u8]) -> Result<Option<Bytes>, BusError> {
        let peers = self.one.peers();
        let envelope = peers.envelope(ReplicaId(2)).unwrap();
        peers.send(&envelope, message, AnswerKind::Bounded).await?.next().await
    }
}

#[tokio::test]
async fn requests_are_answered_refused_or_certainly_not_received() {
    let pair = pair().await;
    let large = vec![7; 3 << 20];
    assert_eq!(pair.send(&large).await.unwrap().unwrap(), large);
    let refused = pair.send(b"refuse").await.unwrap_err();
    assert!(matches!(refused, BusError::Refused) && refused.effect() == Effect::None);
    let peers = pair.one.peers();
    let envelope = peers.envelope(ReplicaId(3)).unwrap();
    let missing = match peers.send(&envelope, b"x", AnswerKind::Bounded).await {
        Ok(mut answer) => answer.next().await.unwrap_err(),
        Err(error) => error,
    };
    assert!(matches!(missing, BusError::NoResponders) && missing.effect() == Effect::None);
}

#[tokio::test]
async fn request_is_processed_once_and_by_its_receiver_alone() {
    let pair = pair().await;
    let peers = pair.one.peers();
    let envelope = peers.envelope(ReplicaId(2)).unwrap();
    let mut first = peers.send(&envelope, b"a", AnswerKind::Bounded).await.unwrap();
    assert_eq!(first.next().await.unwrap().unwrap(), Bytes::from_static(b"a"));
    let served = pair.echo.served.load(Ordering::Relaxed);
    // A copy has no answer, and no effect.
    let mut copy = peers.send(&envelope, b"a", AnswerKind::Bounded).await.unwrap();
    assert!(tokio::time::timeout(Duration::from_millis(500), copy.next()).await.is_err());
    assert_eq!(pair.echo.served.load(Ordering::Relaxed), served);
    // A request of the second replica to itself is one for itself; one for another replica is not taken.
    let own = pair.other.peers();
    let envelope = own.envelope(ReplicaId(2)).unwrap();
    assert!(own.send(&envelope, b"b", AnswerKind::Bounded).await.unwrap().next().await.is_ok());
}

#[tokio::test]
async fn slow_receiver_slows_the_sender_and_loses_nothing() {
    // A window of 1 MiB, in parts of 64 KiB; and one of 256 parts of any size.
    for (message, count, max_waiting) in [(&b"stream"[..], 400_u32, 20), (b"short parts", 2_000, 260)] {
        let pair = pair().await;
        let peers = pair.one.peers();
        let envelope = peers.envelope(ReplicaId(2)).unwrap();
        let mut answer = peers.send(&envelope, message, AnswerKind::Endless).await.unwrap();
        let first = answer.next().await.unwrap().unwrap();
        assert_eq!(&first[..4], 0_u32.to_be_bytes());
        tokio::time::sleep(Duration::from_millis(500)).await;
        let made = pair.echo.parts.load(Ordering::Relaxed);
        assert!(made <= max_waiting, "{made} parts wait");
        for number in 1..count {
            let part = answer.next().await.unwrap().unwrap();
            assert_eq!(&part[..4], number.to_be_bytes());
        }
        assert!(answer.next().await.unwrap().is_none());
    }
}

#[tokio::test]
async fn dropped_answer_cancels_its_request_and_a_stop_finishes_the_others() {
    let mut pair = pair().await;
    let peers = pair.one.peers();
    let dropped = pair.echo.dropped.load(Ordering::Relaxed);
    let envelope = peers.envelope(ReplicaId(2)).unwrap();
    let mut answer = peers.send(&envelope, b"endless", AnswerKind::Endless).await.unwrap();
    assert!(tokio::time::timeout(Duration::from_millis(300), answer.next()).await.is_err());
    assert_eq!(pair.echo.dropped.load(Ordering::Relaxed), dropped);
    drop(answer);
    let since = Instant::now();
    while pair.echo.dropped.load(Ordering::Relaxed) == dropped {
        assert!(since.elapsed() < LIMIT, "the request runs on");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let envelope = peers.envelope(ReplicaId(2)).unwrap();
    let mut running = peers.send(&envelope, b"stream", AnswerKind::Endless).await.unwrap();
    running.next().await.unwrap();
    pair.stop.cancel();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let refused = pair.send(b"late").await.unwrap_err();
    assert_eq!(refused.effect(), Effect::None, "{refused:?}");
    for _ in 1..400 {
        assert!(running.next().await.unwrap().is_some());
    }
    assert!(tokio::time::timeout(LIMIT, pair.serving.join_next()).await.is_ok());
}

/// Requests that are on their way when their receiver ends: their senders know of each whether it had an effect.
#[tokio::test(flavor = "multi_thread")]
async fn requests_that_arrive_at_the_end_are_answered_or_certainly_not_processed() {
    for round in 0..5 {
        let mut pair = pair().await;
        let served = pair.echo.served.load(Ordering::Relaxed);
        let senders = (0..16).map(|_| async {
            for answered in 0_usize.. {
                match pair.send(b"x").await {
                    Ok(part) => assert_eq!(part.as_deref(), Some(&b"x"[..])),
                    Err(error) => return (answered, error),
                }
            }
            unreachable!("the receiver does not end")
        });
        let stopping = async {
            tokio::time::sleep(Duration::from_millis(100 + 20 * round)).await;
            pair.stop.cancel();
        };
        let (ended, ()) = tokio::join!(futures_util::future::join_all(senders), stopping);
        let answered: usize = ended.iter().map(|(answered, _)| answered).sum();
        for (_, error) in &ended {
            assert_eq!(error.effect(), Effect::None, "{error:?}");
        }
        assert!(answered > 16, "too little happened: {answered}");
        assert_eq!(pair.echo.served.load(Ordering::Relaxed) - served, answered);
        assert!(tokio::time::timeout(LIMIT, pair.serving.join_next()).await.is_ok());
    }
}

#[tokio::test]
async fn lost_receiver_leaves_the_effect_unknown() {
    let pair = pair().await;
    let peers = pair.one.peers();
    let envelope = peers.envelope(ReplicaId(2)).unwrap();
    let mut answer = peers.send(&envelope, b"endless", AnswerKind::Endless).await.unwrap();
    assert!(tokio::time::timeout(Duration::from_millis(300), answer.next()).await.is_err());
    pair.server.stop();
    let since = Instant::now();
    let error = answer.next().await.unwrap_err();
    assert_eq!(error.effect(), Effect::Unknown, "{error:?}");
    assert!(since.elapsed() < LIMIT);
}
