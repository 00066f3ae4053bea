//! Attacks on subscriptions: a caller can remove only its own subscriptions, and leaves nothing behind beyond its budget.

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use toolhub_testkit::scripted::{Journal, Script};

use crate::access::two_principals_with;
use crate::raw_client::{Era, RawClient};
use crate::serving::TEST_TIMEOUT;

const SUBSCRIBE: &str = "resources/subscribe";
const UNSUBSCRIBE: &str = "resources/unsubscribe";

/// A server with one resource; listing takes `list_ms`, each subscription `subscribe_ms`.
fn script(journal: &Path, list_ms: u64, subscribe_ms: u64) -> Script {
    let resources = json!({"resources": [{"uri": "r://one", "name": "one"}]});
    let updated = json!({"method": "notifications/resources/updated", "params": {"uri": "r://one"}});
    Script::legacy()
        .set("capabilities", json!({"tools": {}, "resources": {"subscribe": true}}))
        .plain_tool("touch")
        .on("tools/call:touch", json!([{"notify": updated}, {"text": "touched"}]))
        .on("resources/list", json!([{"delay_ms": list_ms}, {"reply": resources}]))
        .on("resources/templates/list", json!([{"reply": {"resourceTemplates": []}}]))
        .on(SUBSCRIBE, json!([{"delay_ms": subscribe_ms}, {"reply": {}}]))
        .on(UNSUBSCRIBE, json!([{"reply": {}}]))
        .journal(journal)
}

/// The number of subscriptions at the server: at the end, and the maximum over time.
fn held(journal: &Journal) -> (i64, i64) {
    let (mut now, mut most) = (0, 0);
    for method in journal.methods() {
        now += i64::from(method == SUBSCRIBE) - i64::from(method == UNSUBSCRIBE);
        most = most.max(now);
    }
    (now, most)
}

const ONE: &str = r#""uri":"r://one""#;

#[tokio::test]
async fn cancelled_subscribe_keeps_subscriptions_of_others() {
    for pause in [100, 600, 1_000] {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("journal");
        let (serving, [ann, bob]) = two_principals_with(&script(&journal, 500, 200), "");
        let ann = RawClient::with_token(&serving.url(), Era::Legacy, Some(&ann)).await;
        let bob = RawClient::with_token(&serving.url(), Era::Legacy, Some(&bob)).await;
        bob.call("touch", "{}").await.text();
        let mut stream = bob.listen().await;
        // Cancelled during the list request, during the subscription, or after both.
        let cancelling = async {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            let cancel =
                json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
            assert_eq!(ann.post(cancel.to_string()).send().await.unwrap().status(), 202);
            assert!(bob.ask("1", SUBSCRIBE, ONE).await.last().result.is_some());
        };
        let (subscribed, ()) = tokio::join!(ann.ask("7", SUBSCRIBE, ONE), cancelling);
        let answered = subscribed.messages.iter().any(|message| message.result.is_some());
        assert_eq!(answered, pause == 1_000, "{pause} {subscribed:?}");
        for _ in 0..2 {
            assert!(ann.ask("8", UNSUBSCRIBE, ONE).await.last().result.is_some());
        }
        ann.end().await;
        // The cancelled subscription is removed by now, and bob still gets notifications.
        Journal::read(&journal).wait_for(|journal| held(journal).0 == 1, TEST_TIMEOUT);
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(held(&Journal::read(&journal)), (1, 1), "{pause}");
        bob.call("touch", "{}").await.text();
        stream.until("notifications/resources/updated").await;
        // Control: the last unsubscribe ends it.
        assert!(bob.ask("2", UNSUBSCRIBE, ONE).await.last().result.is_some());
        assert_eq!(held(&Journal::read(&journal)).0, 0, "{pause}");
    }
}

#[tokio::test]
async fn dropped_listen_releases_subscriptions() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let limits = "[serve.limits]\nsubscriptions = 50\n";
    let (serving, [ann, bob]) = two_principals_with(&script(&journal, 0, 5), limits);
    let ann = RawClient::with_token(&serving.url(), Era::Modern, Some(&ann)).await;
    ann.ask("1", "resources/list", "").await.result();
    let subscription = |round: usize| {
        let uris: Vec<String> = (0..50).map(|number| format!("r{round}://{number}")).collect();
        format!(r#""notifications":{{"resourceSubscriptions":{}}}"#, json!(uris))
    };
    for round in 0..10 {
        let listen = ann.request("1", "subscriptions/listen", &subscription(round));
        // Refused while the previous one is being removed, or dropped half-way.
        let _ = tokio::time::timeout(Duration::from_millis(100), listen.send()).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let seen = Journal::read(&journal);
    assert!(seen.count_method(SUBSCRIBE) > 20, "{}", seen.count_method(SUBSCRIBE));
    let mut seen = seen;
    seen.wait_for(|journal| held(journal).0 == 0, TEST_TIMEOUT);
    assert!(held(&seen).1 <= 50, "{:?}", held(&seen));
    // Control: the budget is free again, and that of another principal was never used.
    for token in [bob] {
        let other = RawClient::with_token(&serving.url(), Era::Modern, Some(&token)).await;
        for client in [&ann, &other] {
            let listen = client.request("1", "subscriptions/listen", &subscription(20)).send().await.unwrap();
            assert_eq!(listen.status(), 200);
        }
    }
}
