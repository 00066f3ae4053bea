//! Changes of what rules hide: a principal is notified of changes of what it sees, and of nothing else.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use toolhub_testkit::CommandLine;
use toolhub_testkit::scripted::{Journal, Script};

use crate::raw_client::{ERAS, Era, RawClient, Stream};
use crate::serving::{Serving, TEST_TIMEOUT, hub};

const UPDATED: &str = "notifications/resources/updated";
const SUBSCRIBE: &str = "resources/subscribe";
const UNSUBSCRIBE: &str = "resources/unsubscribe";

/// A server with a prompt and the resource `r://one`. Calls of `touch_ID` announce an update of the resource, and calls of
/// `grow_ID` changed lists: the next list of tools and of prompts has one more item.
fn script(folder: &Path, id: &str) -> Script {
    let notify = |method: &str, params: Value| json!({"notify": {"method": method, "params": params}});
    let tool = |name: String| json!({"name": name, "description": name, "inputSchema": {"type": "object"}});
    let tools = [tool(format!("touch_{id}")), tool(format!("grow_{id}")), tool(format!("new_{id}"))];
    let list = |count: usize| json!([{"reply": {"tools": tools[..count]}}]);
    let prompts = |names: &[&str]| {
        let prompts: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        json!([{"reply": {"prompts": prompts}}])
    };
    Script::legacy()
        .set(
            "capabilities",
            json!({"tools": {"listChanged": true}, "prompts": {"listChanged": true}, "resources": {"subscribe": true}}),
        )
        .on("tools/list", json!([list(2), list(3)]))
        .on(
            &format!("tools/call:touch_{id}"),
            json!([notify(UPDATED, json!({"uri": "r://one"})), {"text": "touched"}]),
        )
        .on(
            &format!("tools/call:grow_{id}"),
            json!([
                notify("notifications/tools/list_changed", json!({})),
                notify("notifications/prompts/list_changed", json!({})),
                {"text": "grown"}
            ]),
        )
        .on("prompts/list", json!([prompts(&["greet"]), prompts(&["greet", &format!("more_{id}")])]))
        .on("prompts/get", json!([{"reply": {"messages": []}}]))
        .on("resources/list", json!([{"reply": {"resources": [{"uri": "r://one", "name": id}]}}]))
        .on("resources/templates/list", json!([{"reply": {"resourceTemplates": []}}]))
        .on("resources/read", json!([{"reply": {"contents": [{"uri": "r://one", "text": id}]}}]))
        .on(SUBSCRIBE, json!([{"reply": {}}]))
        .on(UNSUBSCRIBE, json!([{"reply": {}}]))
        .journal(folder.join(format!("{id}.journal")))
}

/// A gateway before the servers `red` and `green`. `ann` sees both, `bob` only `green`.
fn start() -> (Serving, [String; 2]) {
    let mut cli = hub("[native]\nenabled = false\n");
    for id in ["red", "green"] {
        let script = script(cli.folder(), id);
        cli.server(id, &script);
    }
    let keys = ["ann", "bob"].map(|name| {
        let made = cli.run(&["keys", "new", name, "--json"]);
        made.json()["key"].as_str().unwrap_or_else(|| panic!("{made:?}")).to_owned()
    });
    add_rule(&cli, "effect = \"allow\"\nprincipals = [\"ann\"]");
    add_rule(&cli, "effect = \"allow\"\nprincipals = [\"bob\"]\nservers = [\"green\"]");
    (Serving::start(cli), keys)
}

fn add_rule(cli: &CommandLine, rule: &str) {
    let file = cli.folder().join("toolhub.toml");
    let before = fs::read_to_string(&file).unwrap();
    fs::write(file, format!("{before}\n[[auth.rules]]\n{rule}\n")).unwrap();
}

async fn connect(serving: &Serving, era: Era, key: &str) -> RawClient {
    let client = RawClient::with_token(&serving.url(), era, Some(key)).await;
    client.tools().await;
    client.ask("1", "prompts/list", "").await.result();
    client.ask("1", "resources/list", "").await.result();
    client
}

/// The notifications of a client: changes of lists, and updates of `r://one`.
async fn notifications(client: &RawClient, era: Era) -> Stream {
    if let Era::Legacy = era {
        let stream = client.listen().await;
        client.ask("2", SUBSCRIBE, r#""uri":"r://one""#).await.result();
        return stream;
    }
    let filter = r#""notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourceSubscriptions":["r://one"]}"#;
    let mut stream = Stream::open(client.request("2", "subscriptions/listen", filter)).await;
    stream.until("notifications/subscriptions/acknowledged").await;
    stream
}

#[tokio::test]
async fn updates_of_a_resource_end_when_a_rule_forbids_it() {
    for era in ERAS {
        let (serving, [ann, bob]) = start();
        let (ann, bob) = (connect(&serving, era, &ann).await, connect(&serving, era, &bob).await);
        let mut stream = notifications(&bob, era).await;
        ann.call("touch_green", "{}").await.text();
        stream.until(UPDATED).await;
        add_rule(
            serving.cli(),
            "effect = \"forbid\"\nprincipals = [\"bob\"]\nkinds = [\"resource\"]\ntools = [\"r://one\"]",
        );
        let since = std::time::Instant::now();
        while bob.ask("3", "resources/read", r#""uri":"r://one""#).await.last().error.is_none() {
            assert!(since.elapsed() < TEST_TIMEOUT, "the rule is not applied");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        ann.call("touch_green", "{}").await.text();
        assert!(stream.nothing_more(UPDATED).await, "{era:?}");
    }
}

/// Two servers have the same URI. Each client is subscribed at the server that it may see, is notified of updates of that
/// server, and unsubscribes there.
#[tokio::test]
async fn subscriptions_to_the_same_uri_are_kept_apart_by_server() {
    for era in ERAS {
        let (serving, [ann, bob]) = start();
        let (ann, bob) = (connect(&serving, era, &ann).await, connect(&serving, era, &bob).await);
        let mut of_ann = notifications(&ann, era).await;
        let mut of_bob = notifications(&bob, era).await;
        ann.call("touch_red", "{}").await.text();
        of_ann.until(UPDATED).await;
        assert!(of_bob.nothing_more(UPDATED).await, "{era:?}: an update of a hidden server");
        match era {
            Era::Legacy => {
                bob.ask("4", UNSUBSCRIBE, r#""uri":"r://one""#).await.result();
            }
            Era::Modern => drop(of_bob),
        }
        let green = serving.folder().join("green.journal");
        let ended = |journal: &Journal| journal.count_method(UNSUBSCRIBE) == 1;
        Journal::read(green).wait_for_async(ended, TEST_TIMEOUT).await;
        let red = Journal::read(serving.folder().join("red.journal"));
        assert_eq!(red.count_method(UNSUBSCRIBE), 0, "{era:?}");
        ann.call("touch_red", "{}").await.text();
        of_ann.until(UPDATED).await;
    }
}

#[tokio::test]
async fn prompts_have_the_same_names_for_every_caller() {
    let (serving, [ann, bob]) = start();
    let names = async |key: &str| -> Vec<String> {
        let client = RawClient::with_token(&serving.url(), Era::Modern, Some(key)).await;
        let list: Value = serde_json::from_str(client.ask("1", "prompts/list", "").await.result()).unwrap();
        for prompt in list["prompts"].as_array().unwrap() {
            client.ask("2", "prompts/get", &format!(r#""name":{}"#, prompt["name"])).await.result();
        }
        let prompts = list["prompts"].as_array().unwrap().iter();
        prompts.map(|prompt| prompt["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&bob).await, ["green__greet"]);
    assert_eq!(names(&ann).await, ["red__greet", "green__greet"]);
    // Of two resources with the same URI, the visible one is listed and read.
    let client = RawClient::with_token(&serving.url(), Era::Modern, Some(&bob)).await;
    let listed = client.ask("1", "resources/list", "").await;
    assert!(listed.result().contains(r#""name":"green""#), "{listed:?}");
    let read = client.ask("1", "resources/read", r#""uri":"r://one""#).await;
    assert!(read.result().contains(r#""text":"green""#), "{read:?}");
}

#[tokio::test]
async fn changed_lists_of_a_hidden_server_are_not_announced() {
    for era in ERAS {
        let (serving, [ann, bob]) = start();
        let (ann, bob) = (connect(&serving, era, &ann).await, connect(&serving, era, &bob).await);
        let mut of_ann = notifications(&ann, era).await;
        let mut of_bob = notifications(&bob, era).await;
        let lists = ["notifications/tools/list_changed", "notifications/prompts/list_changed"];
        ann.call("grow_red", "{}").await.text();
        // The order of the two is not fixed.
        let mut missing = lists.to_vec();
        while !missing.is_empty() {
            let message = of_ann.message().await.unwrap();
            missing.retain(|method| message.method.as_deref() != Some(method));
        }
        assert!(ann.tools().await.contains(&"new_red".to_owned()));
        for method in lists {
            assert!(of_bob.nothing_more(method).await, "{era:?} {method}");
        }
        // Control: changed lists of a visible server are announced.
        ann.call("grow_green", "{}").await.text();
        let mut missing = lists.to_vec();
        while !missing.is_empty() {
            let message = of_bob.message().await.unwrap();
            missing.retain(|method| message.method.as_deref() != Some(method));
        }
    }
}

#[tokio::test]
async fn refused_prompts_resources_and_descriptions_are_in_the_audit_log() {
    let (serving, [_, bob]) = start();
    add_rule(
        serving.cli(),
        "effect = \"forbid\"\nprincipals = [\"bob\"]\nkinds = [\"resource\"]\ntools = [\"r://*\"]",
    );
    let serving = serving.restart();
    let client = RawClient::with_token(&serving.url(), Era::Legacy, Some(&bob)).await;
    client.call("describe_tool", r#"{"name":"touch_red"}"#).await;
    client.ask("1", "resources/read", r#""uri":"r://one""#).await.error();
    client.ask("1", SUBSCRIBE, r#""uri":"r://one""#).await.error();
    client.ask("1", "prompts/get", r#""name":"red__greet""#).await.error();
    let long = format!("r://{}", "x".repeat(100_000));
    client.ask("1", "resources/read", &format!(r#""uri":"{long}""#)).await.error();
    // Unknown items are not refusals.
    client.ask("1", "prompts/get", r#""name":"nothing""#).await.error();
    let cli = serving.stop();
    let shown = cli.run(&["audit", "show", "--by", "bob", "--json"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    for (operation, item) in [("read", "r://one"), ("subscribe", "r://one"), ("get prompt", "red__greet")] {
        assert!(
            shown.stdout.contains(operation) && shown.stdout.contains(item),
            "{operation} {}",
            shown.stdout
        );
    }
    assert!(!shown.stdout.contains("nothing"), "{}", shown.stdout);
    assert!(shown.stdout.len() < 50_000, "{}", shown.stdout.len());
    // A gateway that was stopped leaves no record without a signature.
    let verified = cli.run(&["audit", "verify"]);
    let records = cli.run(&["audit", "show", "-n", "1", "--json"]).json()[0]["sequence"].clone();
    let expected = format!("confirmed up to record {records}");
    assert!(verified.code == Some(0) && verified.stdout.contains(&expected), "{expected} {verified:?}");
}
