//! Lists of prompts and resources: answered from the cache; an incomplete list is marked as such.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolhub_testkit::scripted::{Journal, Script, binary};

use crate::raw_client::{ERAS, Era, RawClient};
use crate::serving::{Serving, hub};

const CHANGED: &str = "notifications/prompts/list_changed";

/// A server with one prompt, whose list takes `delay_ms`.
fn with_prompt(name: &str, delay_ms: u64) -> Script {
    let list = json!([{"delay_ms": delay_ms}, {"reply": {"prompts": [{"name": name}]}}]);
    Script::both()
        .set("capabilities", json!({"tools": {}, "prompts": {"listChanged": true}, "resources": {}}))
        .plain_tool(&format!("of_{name}"))
        .on("prompts/list", list)
}

/// The prompts in the list, and the servers that are missing in it.
async fn prompts(client: &RawClient) -> (Vec<String>, Vec<String>) {
    let response = client.ask("1", "prompts/list", "").await;
    let result: Value = serde_json::from_str(response.result()).unwrap();
    let texts = |list: &Value, key: Option<&str>| -> Vec<String> {
        let text = |item: &Value| key.map_or(item, |key| &item[key]).as_str().unwrap().to_owned();
        list.as_array().map(|list| list.iter().map(text).collect()).unwrap_or_default()
    };
    if let Some(ttl) = result["ttlMs"].as_u64() {
        assert_eq!(ttl == 0, !result["_meta"]["toolhub/incomplete"].is_null(), "{result}");
    }
    (texts(&result["prompts"], Some("name")), texts(&result["_meta"]["toolhub/incomplete"], None))
}

#[tokio::test]
async fn names_pending_list_and_notifies_when_it_arrives() {
    let mut cli = hub("");
    cli.server("quick", &with_prompt("quick", 0));
    cli.server("slow", &with_prompt("slow", 18_000));
    let serving = Serving::start(cli);
    let client = RawClient::connect(&serving.url(), Era::Legacy).await;
    let mut stream = client.listen().await;
    let since = Instant::now();
    assert_eq!(prompts(&client).await, (vec!["quick".to_owned()], vec!["slow".to_owned()]));
    assert!(since.elapsed() < Duration::from_secs(15), "{:?}", since.elapsed());
    stream.until(CHANGED).await;
    for era in ERAS {
        let client = RawClient::connect(&serving.url(), era).await;
        let all = vec!["quick".to_owned(), "slow".to_owned()];
        assert_eq!(prompts(&client).await, (all, Vec::new()));
    }
}

#[tokio::test]
async fn a_server_that_never_answers_delays_one_request() {
    let mut cli = hub("[[servers]]\nid = \"mute\"\nconnect_timeout = \"2s\"\n");
    cli.server("quick", &with_prompt("quick", 0));
    let mute = Script::both().plain_tool("of_mute").on("prompts/list", json!([{"ignore": true}]));
    let script = mute.write(cli.folder());
    cli.entry("mute", json!({"command": binary(), "args": [script]}));
    let serving = Serving::start(cli);
    let client = RawClient::connect(&serving.url(), Era::Modern).await;
    let incomplete = (vec!["quick".to_owned()], vec!["mute".to_owned()]);
    assert_eq!(prompts(&client).await, incomplete);
    tokio::time::sleep(Duration::from_secs(2)).await;
    // The shortest of three: other programs may delay one of them.
    let mut shortest = Duration::MAX;
    for _ in 0..3 {
        let since = Instant::now();
        assert_eq!(prompts(&client).await, incomplete);
        shortest = shortest.min(since.elapsed());
    }
    assert!(shortest < Duration::from_secs(1), "{shortest:?}");
}

#[tokio::test]
async fn restart_uses_cached_lists_without_starting_servers() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let mut cli = hub("");
    cli.server("s", &with_prompt("known", 0).journal(&journal));
    let serving = Serving::start(cli);
    let client = RawClient::connect(&serving.url(), Era::Modern).await;
    assert_eq!(prompts(&client).await.0, ["known"]);
    let list_requests = || Journal::read(&journal).count_method("prompts/list");
    let before = list_requests();
    // A list is stored after its answer, so that a killed hub may not have stored it.
    let serving = Serving::start(serving.stop());
    for era in ERAS {
        let client = RawClient::connect(&serving.url(), era).await;
        assert_eq!(prompts(&client).await, (vec!["known".to_owned()], Vec::new()));
    }
    assert_eq!(list_requests(), before, "the list is known");
}
