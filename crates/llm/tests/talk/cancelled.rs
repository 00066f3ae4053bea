//! Dropping a request cancels it: the server sees the connection close.

use toolhub_core::model::{LanguageModel as _, ReplyDelta};
use toolhub_testkit::model::{Act, Ending, ModelServer, ScriptedReply};

use super::support::{BOTH, client, request};

#[tokio::test]
async fn cancels_before_first_token() {
    for api in BOTH {
        let server = ModelServer::start([Act::Hang]);
        let (client, asked) = (client(&server, api), request());
        let chat = client.chat(&asked, &|_| {});
        tokio::select! {
            reply = chat => panic!("{reply:?}"),
            _ = server.wait_for(|counters| counters.asked == 1) => {}
        }
        let counters = server.wait_for(|counters| counters.disconnected == 1).await;
        assert_eq!(counters.asked, 1);
    }
}

#[tokio::test]
async fn cancels_during_stream() {
    for api in BOTH {
        let reply = ScriptedReply::text(&"word ".repeat(40)).ending(Ending::SilentAfter(800));
        let server = ModelServer::start([reply.act()]);
        let (client, asked) = (client(&server, api), request());
        let (sender, mut receiver) = tokio::sync::mpsc::channel(100);
        let listener = |delta: ReplyDelta| sender.try_send(delta).unwrap();
        let chat = client.chat(&asked, &listener);
        tokio::select! {
            reply = chat => panic!("{reply:?}"),
            received = receiver.recv() => assert!(received.is_some()),
        }
        server.wait_for(|counters| counters.disconnected == 1).await;
    }
}
