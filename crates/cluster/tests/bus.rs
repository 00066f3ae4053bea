//! The bus over a real NATS server: answers in order, large messages, and what is known about a request after a failure.

#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::task::JoinSet;
use toolhub_cluster::bus::{Bus, BusError, BusOptions, IncomingRequest};
use toolhub_core::error::Effect;
use toolhub_testkit::nats::NatsServer;

const LIMIT: Duration = Duration::from_secs(5);

async fn connect(server: &NatsServer) -> Bus {
    let options = BusOptions {
        servers: vec![server.url()],
        prefix: "test".to_owned(),
        credentials: None,
        authorities: None,
        name: "test".to_owned(),
    };
    Bus::connect(options).await.unwrap()
}

/// Answers each request with its size, its bytes, and `done`.
async fn echo(bus: &Bus, subject: &str) -> JoinSet<()> {
    let mut requests = bus.serve(subject, Some("workers")).await.unwrap();
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        while let Some(IncomingRequest { payload, mut reply }) = requests.next().await {
            reply.send(&Bytes::from(payload.len().to_string())).await.unwrap();
            reply.send(&payload).await.unwrap();
            reply.finish(&Bytes::from_static(b"done")).await.unwrap();
        }
    });
    serving
}

#[tokio::test]
async fn answers_arrive_in_order_and_whole() {
    let server = NatsServer::start();
    let (one, other) = (connect(&server).await, connect(&server).await);
    let _serving = echo(&one, "test.call.a").await;
    // Sizes around the limit of a frame, and several frames.
    for size in [0, 1, (512 << 10) - 1, 512 << 10, (512 << 10) + 1, 5 << 20] {
        let message: Bytes = (0..size).map(|index| u8::try_from(index % 251).unwrap()).collect();
        let mut replies = other.request("test.call.a", message.clone()).await.unwrap();
        assert_eq!(replies.next(LIMIT).await.unwrap().unwrap(), Bytes::from(size.to_string()));
        assert!(replies.next(LIMIT).await.unwrap().unwrap() == message, "{size}");
        assert_eq!(replies.next(LIMIT).await.unwrap().unwrap(), Bytes::from_static(b"done"));
        assert!(replies.next(LIMIT).await.unwrap().is_none());
    }
}

#[tokio::test]
async fn requests_to_nothing_certainly_have_no_effect() {
    let server = NatsServer::start();
    let bus = connect(&server).await;
    for message in [Bytes::from_static(b"small"), Bytes::from(vec![0; 2 << 20])] {
        // The server refuses it at once; without its answer the error would be a timeout.
        let error = match bus.request("test.call.nothing", message).await {
            Ok(mut replies) => replies.next(LIMIT).await.unwrap_err(),
            Err(error) => error,
        };
        assert!(matches!(error, BusError::NoResponders), "{error:?}");
        assert_eq!(error.effect(), Effect::None);
    }
}

#[tokio::test]
async fn silence_and_gaps_leave_the_effect_unknown() {
    let server = NatsServer::start();
    let bus = connect(&server).await;
    let mut requests = bus.serve("test.call.silent", None).await.unwrap();
    let mut replies = bus.request("test.call.silent", Bytes::from_static(b"a")).await.unwrap();
    let _unanswered = requests.next().await.unwrap();
    let error = replies.next(Duration::from_millis(100)).await.unwrap_err();
    assert!(matches!(error, BusError::Silent(_)) && error.effect() == Effect::Unknown, "{error:?}");

    // A frame is lost, as while a client reconnects.
    let mut raw = async_nats::connect(server.url()).await.unwrap().subscribe("test.call.raw").await.unwrap();
    let raw_client = async_nats::connect(server.url()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let mut replies = bus.request("test.call.raw", Bytes::from_static(b"a")).await.unwrap();
    let request = futures_util::StreamExt::next(&mut raw).await.unwrap();
    let reply = request.reply.unwrap();
    raw_client.publish(reply.clone(), Bytes::from_static(b"\0\0\0\0\0first")).await.unwrap();
    raw_client.publish(reply, Bytes::from_static(b"\x01\0\0\0\x02third")).await.unwrap();
    assert_eq!(replies.next(LIMIT).await.unwrap().unwrap(), Bytes::from_static(b"first"));
    let error = replies.next(LIMIT).await.unwrap_err();
    assert!(matches!(error, BusError::Gap) && error.effect() == Effect::Unknown, "{error:?}");
}

#[tokio::test]
async fn nothing_is_sent_without_a_connection_nor_after_it_is_back() {
    let server = NatsServer::start();
    let (one, other) = (connect(&server).await, connect(&server).await);
    let mut requests = one.serve("test.call.a", None).await.unwrap();
    server.stop();
    let deadline = Instant::now() + LIMIT;
    while other.is_connected() {
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let error = other.request("test.call.a", Bytes::from_static(b"while away")).await.unwrap_err();
    assert!(matches!(error, BusError::Disconnected) && error.effect() == Effect::None, "{error:?}");
    server.restart();
    while !(other.is_connected() && one.is_connected()) {
        assert!(Instant::now() < deadline + LIMIT);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // Subscriptions are made again. The request above does not arrive.
    let mut served = None;
    while served.is_none() {
        let mut replies = other.request("test.call.a", Bytes::from_static(b"later")).await.unwrap();
        tokio::select! {
            request = requests.next() => served = request,
            answer = replies.next(LIMIT) => assert!(matches!(answer, Err(BusError::NoResponders))),
        }
    }
    assert_eq!(served.unwrap().payload, Bytes::from_static(b"later"));
}

#[tokio::test]
async fn frozen_server_is_noticed() {
    let server = NatsServer::start();
    let bus = connect(&server).await;
    let _serving = echo(&bus, "test.call.a").await;
    server.freeze();
    let mut replies = bus.request("test.call.a", Bytes::from_static(b"a")).await.unwrap();
    let error = replies.next(Duration::from_millis(300)).await.unwrap_err();
    assert_eq!(error.effect(), Effect::Unknown);
    server.thaw();
}
