//! Many concurrent clients of both eras with the same request ids: each response matches the arguments of its call.

use futures_util::future::join_all;
use serde_json::json;
use toolhub_testkit::scripted::Script;

use crate::raw_client::{Era, RawClient};
use crate::serving::Serving;

const CLIENTS: usize = 32;
/// The number of concurrent calls per client.
const AT_ONCE: usize = 8;
const WAVES: usize = 40;

#[tokio::test]
async fn responses_reach_only_their_clients() {
    // The server waits for all calls of a wave and answers them in a different order.
    let mixed = json!([{"shuffle": {"of": CLIENTS * AT_ONCE, "seed": 20_260_728}}]);
    let script = Script::both().plain_tool("echo").on("tools/call:echo", mixed);
    let serving = Serving::before(&script, "");
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        let era = if number % 2 == 0 { Era::Legacy } else { Era::Modern };
        clients.push(RawClient::connect(&serving.url(), era).await);
    }
    let mut answered = 0;
    for wave in 0..WAVES {
        let calls = clients.iter().enumerate().flat_map(|(number, client)| {
            (0..AT_ONCE).map(move |place| async move {
                let arguments = format!(r#"{{"client":{number},"wave":{wave},"place":{place}}}"#);
                let params = format!(r#""name":"echo","arguments":{arguments}"#);
                let answer = client.ask(&place.to_string(), "tools/call", &params).await;
                assert_eq!(answer.text(), arguments);
                assert_eq!(answer.last().id, Some(json!(place)));
            })
        });
        answered += join_all(calls).await.len();
    }
    assert_eq!(answered, 10_240);
}
