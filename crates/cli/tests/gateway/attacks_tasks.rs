//! Attacks of one principal on the data of another: tasks, sessions, streams, subscriptions and stored results; and methods
//! that the gateway does not support.

use std::fs;

use serde_json::{Value, json};
use toolhub_testkit::scripted::{Journal, Script};

use crate::access::two_principals_with;
use crate::raw_client::{ERAS, Era, RawClient, Stream, http};
use crate::serving::{Serving, hub};

/// A server of 2025-11-25 whose tool creates a task, and which lists all tasks to every client.
fn tasks(id: &str) -> Script {
    let task = |id: &str| json!({"taskId": id, "status": "working", "createdAt": "2025-11-25T00:00:00Z", "ttl": 60000});
    Script::legacy()
        .plain_tool("begin")
        .plain_tool(&format!("begin_{id}"))
        .on("tools/call:begin", json!([{"reply": {"task": task(id)}}]))
        .on(&format!("tools/call:begin_{id}"), json!([{"reply": {"task": task(id)}}]))
        .on("tasks/get", json!([{"reply": task(id)}]))
        .on("tasks/list", json!([{"reply": {"tasks": [task(id), task("other")]}}]))
        .on("tasks/result", json!([{"text": format!("the secret of {id}")}]))
        .on("tasks/cancel", json!([{"reply": task(id)}]))
}

async fn clients(serving: &Serving, tokens: &[String; 2], era: Era) -> [RawClient; 2] {
    let [ann, bob] = tokens;
    [
        RawClient::with_token(&serving.url(), era, Some(ann)).await,
        RawClient::with_token(&serving.url(), era, Some(bob)).await,
    ]
}

async fn listed(client: &RawClient) -> Vec<String> {
    let listing: Value = serde_json::from_str(client.ask("1", "tasks/list", "").await.result()).unwrap();
    listing["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| task["taskId"].as_str().unwrap().to_owned())
        .collect()
}

fn journal_of(folder: &std::path::Path, name: &str) -> Journal {
    Journal::read(folder.join(name))
}

#[tokio::test]
async fn tasks_are_visible_only_to_their_principal() {
    let folder = tempfile::tempdir().unwrap();
    let script = tasks("t-1").journal(folder.path().join("journal"));
    let (serving, tokens) = two_principals_with(&script, "");
    let [ann, bob] = clients(&serving, &tokens, Era::Legacy).await;
    assert!(ann.call("begin", "{}").await.result().contains("t-1"));
    let reached = |method: &str| journal_of(folder.path(), "journal").count_method(method);
    for method in ["tasks/result", "tasks/get", "tasks/cancel"] {
        for (task, spelled) in
            [("t-1", r#""taskId":"t-1""#), ("t-1", r#""task\u0049d":"t-1""#), ("none", r#""taskId":"none""#)]
        {
            let refused = bob.ask("1", method, spelled).await;
            assert_eq!(refused.error(), -32602, "{method}");
            // The error for a task of another principal equals that for an unknown task.
            assert_eq!(refused.last().error.as_ref().unwrap()["message"], format!("Unknown task: {task}"));
        }
        assert_eq!(bob.ask("1", method, r#""taskId":"mine","taskId":"t-1""#).await.error(), -32600);
        assert_eq!(reached(method), 0, "{method}");
    }
    assert_eq!(listed(&bob).await, [""; 0]);
    assert_eq!((reached("tasks/list"), reached("tasks/get")), (0, 0));
    // Control: its creator has access.
    assert_eq!(listed(&ann).await, ["t-1"]);
    assert_eq!(ann.ask("1", "tasks/result", r#""taskId":"t-1""#).await.text(), "the secret of t-1");
    assert!(ann.ask("1", "tasks/get", r#""taskId":"t-1""#).await.result().contains("working"));
    assert!(ann.ask("1", "tasks/cancel", r#""taskId":"t-1""#).await.result().contains("t-1"));
    // Task lists of servers contain the tasks of all principals, so the gateway never requests one.
    assert_eq!(reached("tasks/list"), 0);
}

#[tokio::test]
async fn rejects_second_task_id_beside_checked_one() {
    let folder = tempfile::tempdir().unwrap();
    let script = tasks("t-1").journal(folder.path().join("journal"));
    let (serving, tokens) = two_principals_with(&script, "");
    let [ann, bob] = clients(&serving, &tokens, Era::Legacy).await;
    ann.call("begin", "{}").await;
    let params = r#""taskId":"t-1","TaskId":"victim","TASKID":"victim","taskId\u0000":"victim","more":1"#;
    ann.ask("1", "tasks/get", params).await.result();
    let mut related = bob.clone();
    related.also(r#""io.modelcontextprotocol/related-task":{"taskId":"t-1"},"io.vendor/kept":1"#);
    related.call("begin_t-1", "{}").await.result();
    let journal = journal_of(folder.path(), "journal");
    let sent = |method: &str| {
        let messages = journal.messages();
        messages.into_iter().rfind(|message| message["method"] == method).cloned().unwrap()["params"].clone()
    };
    let got = sent("tasks/get");
    assert_eq!((&got["taskId"], &got["more"]), (&json!("t-1"), &json!(1)));
    assert!(!got.to_string().contains("victim"), "{got}");
    let called = sent("tools/call");
    assert!(!called.to_string().contains("related-task"), "{called}");
    assert_eq!(called["_meta"]["io.vendor/kept"], 1, "{called}");
}

/// Task ids are scoped to a server: two servers may use the same id, and one server may reuse an id.
#[tokio::test]
async fn equal_task_ids_do_not_mix_principals() {
    let folder = tempfile::tempdir().unwrap();
    let setup = |settings: &str| {
        let mut cli = hub("");
        for server in ["a", "b"] {
            let own = tasks("t-1")
                .plain_tool(&format!("begin_at_{server}"))
                .on(&format!("tools/call:begin_at_{server}"), json!([{"reply": {"task": {"taskId": "t-1"}}}]))
                .on("tasks/result", json!([{"text": format!("at {server}")}]));
            cli.server(server, &own.journal(folder.path().join(server)));
        }
        let mut settings = settings.to_owned();
        let tokens = ["ann", "bob"].map(|name| {
            let made = cli.run(&["serve", "--new-token", name, "--json"]).json();
            settings.push_str(&format!("[[auth.tokens]]\nname = \"{name}\"\nsha256 = {}\n", made["sha256"]));
            made["token"].as_str().unwrap().to_owned()
        });
        fs::write(cli.folder().join("toolhub.toml"), &settings).unwrap();
        (Serving::start(cli), tokens)
    };
    let (serving, tokens) = setup("");
    let [ann, bob] = clients(&serving, &tokens, Era::Legacy).await;
    ann.call("begin_at_a", "{}").await.result();
    bob.call("begin_at_b", "{}").await.result();
    for (client, expect) in [(&ann, "at a"), (&bob, "at b")] {
        assert_eq!(client.ask("1", "tasks/result", r#""taskId":"t-1""#).await.text(), expect);
    }
    // The server reuses the id for another principal: the owner of its result is ambiguous, so neither gets it.
    bob.call("begin_at_a", "{}").await.result();
    assert_eq!(ann.ask("1", "tasks/result", r#""taskId":"t-1""#).await.error(), -32602);
    assert_eq!(bob.ask("1", "tasks/result", r#""taskId":"t-1""#).await.text(), "at b");
    let requests = journal_of(folder.path(), "a").count_method("tasks/result");
    assert_eq!(requests, 1, "only before it was contested");
}

#[tokio::test]
async fn unknown_methods_are_answered_by_the_gateway() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::both()
        .plain_tool("echo")
        .on("vendor/secrets", json!([{"reply": {"all": "of them"}}]))
        .on("tasks/list", json!([{"reply": {"tasks": []}}]))
        .on("tasks/result", json!([{"reply": {}}]))
        .journal(folder.path().join("journal"));
    let serving = Serving::before(&script, "");
    let before = journal_of(folder.path(), "journal").methods().len();
    for era in ERAS {
        let client = RawClient::connect(&serving.url(), era).await;
        client.tools().await;
        let gone = match era {
            Era::Legacy => ["subscriptions/listen", "server/discover", "tasks/update"],
            Era::Modern => ["tasks/list", "tasks/result", "resources/subscribe"],
        };
        for method in ["vendor/secrets", "tools/Call", "tools", "roots/list", ""].into_iter().chain(gone) {
            let answer = client.ask("1", method, r#""taskId":"t""#).await;
            assert_eq!(answer.error(), -32601, "{method} {era:?}");
            assert_eq!(answer.status, if era == Era::Modern { 404 } else { 200 }, "{method} {era:?}");
        }
        assert_eq!(client.call("echo", "{}").await.text(), "{}");
    }
    let journal = journal_of(folder.path(), "journal");
    let known = [
        "initialize",
        "server/discover",
        "notifications/initialized",
        "ping",
        "tools/list",
        "tools/call",
        "subscriptions/listen",
    ];
    let unexpected: Vec<&str> =
        journal.methods().into_iter().filter(|method| !known.contains(method)).collect();
    assert_eq!(unexpected, [""; 0], "{before}");
}

#[tokio::test]
async fn sessions_and_streams_belong_to_their_principal() {
    let script = Script::legacy()
        .plain_tool("slow")
        .on("tools/call:slow", json!([{"progress": {"message": "private"}}, {"text": "done"}]));
    let (serving, tokens) = two_principals_with(&script, "");
    let [ann, bob] = clients(&serving, &tokens, Era::Legacy).await;
    let mut stream = Stream::open(ann.request("5", "tools/call", r#""name":"slow","arguments":{}"#)).await;
    assert_eq!(stream.message().await.unwrap().method.as_deref(), Some("notifications/progress"));
    let position = stream.position().to_owned();
    let resume = |client: &RawClient, token: &str| {
        http()
            .get(serving.url())
            .bearer_auth(token)
            .header("accept", "text/event-stream")
            .header("mcp-session-id", client.session().to_owned())
            .header("mcp-protocol-version", "2025-11-25")
            .header("last-event-id", &position)
    };
    // The session of ann with the token of bob, and the stream of ann in the session of bob.
    assert_eq!(resume(&ann, &tokens[1]).send().await.unwrap().status(), 404);
    assert_eq!(resume(&bob, &tokens[1]).send().await.unwrap().status(), 405);
    let mut posing = bob.clone();
    posing.set("mcp-session-id", ann.session());
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}"#;
    assert_eq!(posing.post(cancel.to_owned()).send().await.unwrap().status(), 404);
    assert_eq!(bob.post(cancel.to_owned()).send().await.unwrap().status(), 202);
    assert_eq!(stream.message().await.unwrap().id, Some(json!(5)));
    assert_eq!(resume(&ann, &tokens[0]).send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn one_principal_does_not_end_the_subscription_of_another() {
    let folder = tempfile::tempdir().unwrap();
    let resource = json!({"uri": "file:///a", "name": "a"});
    let script = Script::legacy()
        .set("capabilities", json!({"tools": {}, "resources": {"subscribe": true}}))
        .plain_tool("echo")
        .on("resources/list", json!([{"reply": {"resources": [resource]}}]))
        .on("resources/templates/list", json!([{"reply": {"resourceTemplates": []}}]))
        .on("resources/subscribe", json!([{"reply": {}}]))
        .on("resources/unsubscribe", json!([{"reply": {}}]))
        .journal(folder.path().join("journal"));
    let (serving, tokens) = two_principals_with(&script, "");
    let [ann, bob] = clients(&serving, &tokens, Era::Legacy).await;
    let uri = r#""uri":"file:///a""#;
    let counted = || {
        let journal = journal_of(folder.path(), "journal");
        ["resources/subscribe", "resources/unsubscribe"].map(|method| journal.count_method(method))
    };
    for client in [&ann, &bob] {
        assert_eq!(client.ask("1", "resources/subscribe", uri).await.result(), "{}");
    }
    assert_eq!(counted(), [1, 0]);
    for _ in 0..2 {
        assert_eq!(bob.ask("1", "resources/unsubscribe", uri).await.result(), "{}");
    }
    assert_eq!(counted(), [1, 0], "Ann is still subscribed");
    ann.ask("1", "resources/unsubscribe", uri).await.result();
    assert_eq!(counted(), [1, 1]);
}

/// Stored results are not marked with a principal.
#[tokio::test]
async fn hides_stored_results_with_several_principals() {
    let settings =
        "[profiles.default]\nexpose = \"all\"\npinned = [\"read_result\", \"get_conversation_history\"]\n";
    let (serving, tokens) = two_principals_with(&Script::both().plain_tool("echo"), settings);
    let [ann, _] = clients(&serving, &tokens, Era::Modern).await;
    for tool in ["read_result", "get_conversation_history"] {
        assert!(!ann.tools().await.contains(&tool.to_owned()), "{tool}");
        assert_eq!(ann.call(tool, r#"{"handle":"x"}"#).await.error(), -32602, "{tool}");
    }
    // Control: with one principal the owner may expose them.
    let serving = Serving::before(&Script::both().plain_tool("echo"), settings);
    let client = RawClient::connect(&serving.url(), Era::Modern).await;
    assert!(client.tools().await.contains(&"read_result".to_owned()));
}
