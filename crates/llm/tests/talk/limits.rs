//! Timeouts: of the whole request, and between two chunks of the stream.

use std::time::Duration;

use toolhub_core::model::{ChatRequest, LanguageModel as _, ModelError};
use toolhub_llm::ModelClient;
use toolhub_testkit::model::{Act, Ending, ModelServer, Pacing, ScriptedReply};

use super::support::{BOTH, ask, client, endpoint, request};

#[tokio::test]
async fn times_out_without_response() {
    for api in BOTH {
        let server = ModelServer::start([Act::Hang]);
        let client = client(&server, api);
        let asked = ChatRequest { timeout: Some(Duration::from_secs(100)), ..request() };
        let mut chat = client.chat(&asked, &|_| {});
        tokio::select! {
            reply = &mut chat => panic!("{reply:?}"),
            _ = server.wait_for(|counters| counters.asked == 1) => {}
        }
        tokio::time::pause();
        assert!(tokio::time::timeout(Duration::from_secs(98), &mut chat).await.is_err(), "too early");
        let error = chat.await.unwrap_err();
        let ModelError::TimedOut { after, .. } = &error else { panic!("{error:?}") };
        assert_eq!(*after, Duration::from_secs(100));
        tokio::time::resume();
        server.wait_for(|counters| counters.disconnected == 1).await;
    }
}

#[tokio::test]
async fn aborts_stream_after_idle_timeout() {
    for api in BOTH {
        let reply = ScriptedReply::text(&"word ".repeat(40)).ending(Ending::SilentAfter(800));
        let server = ModelServer::start([reply.act()]);
        let client = ModelClient::new(endpoint(&server, api)).with_idle_timeout(Duration::from_millis(300));
        let error = ask(&client, &request()).await.unwrap_err();
        let ModelError::TimedOut { after, .. } = &error else { panic!("{error:?}") };
        assert_eq!(*after, Duration::from_millis(300));
        server.wait_for(|counters| counters.disconnected == 1).await;
        assert_eq!(server.bodies().len(), 1);
    }
}

#[tokio::test]
async fn accepts_slow_stream_within_idle_timeout() {
    for api in BOTH {
        let reply = ScriptedReply::text("one two three").paced(Pacing::Delayed(Duration::from_millis(20)));
        let server = ModelServer::start([reply.act()]);
        let client = ModelClient::new(endpoint(&server, api)).with_idle_timeout(Duration::from_secs(2));
        assert_eq!(ask(&client, &request()).await.unwrap().text, "one two three");
    }
}

#[tokio::test]
async fn does_not_retry_past_deadline() {
    let server = ModelServer::start([Act::refuse(500, "oops")]);
    let asked = ChatRequest { timeout: Some(Duration::from_millis(400)), ..request() };
    let error = ask(&client(&server, BOTH[0]), &asked).await.unwrap_err();
    assert!(matches!(error, ModelError::Refused { status: 500, .. }), "{error:?}");
    assert_eq!(server.bodies().len(), 1);
}
