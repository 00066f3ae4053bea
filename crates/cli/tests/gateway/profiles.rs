//! Profiles: visible and hidden tools, their names and descriptions, and list-changed notifications.

use serde_json::{Value, json};
use toolhub_testkit::CommandLine;
use toolhub_testkit::scripted::{Journal, Script};

use crate::raw_client::{ERAS, Era, RawClient};
use crate::serving::{Serving, hub};

const SETTINGS: &str = r#"
[native]
enabled = false

[profiles.default]
expose = "all"

[profiles.narrow]
servers = ["left"]
tools = ["read_*", "delete_*"]
allow = ["shared"]
deny = ["delete_*"]
expose = "all"

[profiles.tagged]
tags = ["time"]
expose = "all"

[profiles.other]
[profiles.other.overrides.read_file]
name = "peek"
title = "Peek"
description = "Looks into a file of the archive"
arguments = { folder = "archive", depth = 2 }
[profiles.other.overrides.left__clash]
name = "clash"
"#;

/// Two servers that share one tool, and each have a tool of the same name with different arguments.
fn two_servers() -> CommandLine {
    let tool = |name: &str, properties: Value, required: Value| {
        let schema = json!({"type": "object", "properties": properties, "required": required});
        json!({"name": name, "description": format!("{name} does what it says"), "inputSchema": schema})
    };
    let text = json!({"type": "string"});
    let shared = tool("shared", json!({"a": text}), json!([]));
    let read = tool(
        "read_file",
        json!({"folder": text, "path": text, "depth": {"type": "integer"}}),
        json!(["folder", "path"]),
    );
    let left = Script::legacy()
        .tool(read)
        .tool(tool("delete_file", json!({}), json!([])))
        .tool(tool("get_current_time", json!({}), json!([])))
        .tool(&shared)
        .tool(tool("clash", json!({"left": text}), json!([])))
        .on("tools/call:clash", json!([{"text": "left"}]));
    let right = Script::modern()
        .tool(&shared)
        .tool(tool("clash", json!({"right": text}), json!([])))
        .on("tools/call:clash", json!([{"text": "right"}]));
    let mut cli = hub(SETTINGS);
    let journal = cli.folder().join("journal");
    cli.server("left", &left.journal(&journal));
    cli.server("right", &right);
    cli
}

async fn at(serving: &Serving, profile: &str, era: Era) -> RawClient {
    RawClient::connect(&format!("{}/mcp/{profile}", serving.root), era).await
}

async fn tool_names(client: &RawClient) -> Vec<String> {
    let mut tools = client.tools().await;
    tools.sort_unstable();
    tools
}

#[tokio::test]
async fn profile_lists_and_serves_only_its_tools() {
    let serving = Serving::start(two_servers());
    for era in ERAS {
        let everything = [
            "delete_file",
            "get_current_time",
            "left__clash",
            "left__shared",
            "read_file",
            "right__clash",
            "right__shared",
        ];
        assert_eq!(tool_names(&at(&serving, "default", era).await).await, everything, "{era:?}");
        assert_eq!(tool_names(&RawClient::connect(&serving.url(), era).await).await, everything, "{era:?}");

        let narrow = at(&serving, "narrow", era).await;
        assert_eq!(tool_names(&narrow).await, ["read_file", "shared"], "{era:?}");
        assert_eq!(narrow.call("shared", "{}").await.text(), "{}");
        for hidden in ["delete_file", "clash", "left__clash", "get_current_time"] {
            assert_eq!(narrow.call(hidden, "{}").await.error(), -32602, "{hidden} {era:?}");
        }
        assert_eq!(tool_names(&at(&serving, "tagged", era).await).await, ["get_current_time"], "{era:?}");
    }
    let journal = Journal::read(serving.folder().join("journal"));
    let called = journal.messages().into_iter().filter(|message| message["method"] == "tools/call");
    let called: Vec<&str> = called.map(|message| message["params"]["name"].as_str().unwrap()).collect();
    assert!(called.iter().all(|name| *name == "shared"), "{called:?}");
}

#[tokio::test]
async fn distinguishes_different_tools_of_one_name() {
    let serving = Serving::start(two_servers());
    for era in ERAS {
        let client = at(&serving, "default", era).await;
        for side in ["left", "right"] {
            let arguments = format!(r#"{{"{side}":"x"}}"#);
            let answer = client.call(&format!("{side}__clash"), &arguments).await;
            assert_eq!(answer.text(), side, "{era:?}");
        }
        assert_eq!(client.call("clash", "{}").await.error(), -32602, "{era:?}");
    }
}

#[tokio::test]
async fn profile_overrides_names_texts_and_arguments() {
    let serving = Serving::start(two_servers());
    for era in ERAS {
        let client = at(&serving, "other", era).await;
        let listed: Value = serde_json::from_str(client.ask("1", "tools/list", "").await.result()).unwrap();
        let tools = listed["tools"].as_array().unwrap();
        let named = |name: &str| tools.iter().find(|tool| tool["name"] == name);
        assert!(named("read_file").is_none() && named("left__clash").is_none());
        let peek = named("peek").unwrap();
        assert_eq!(peek["title"], "Peek");
        assert_eq!(peek["description"], "Looks into a file of the archive");
        let schema =
            json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
        assert_eq!(peek["inputSchema"], schema);
        // A fixed argument cannot be overridden by the client.
        for arguments in [r#"{"path":"a"}"#, r#"{"path":"a","folder":"secret"}"#] {
            let received: Value = serde_json::from_str(&client.call("peek", arguments).await.text()).unwrap();
            assert_eq!(received, json!({"path": "a", "folder": "archive", "depth": 2}), "{era:?}");
        }
        assert_eq!(client.call("clash", r#"{"left":"x"}"#).await.text(), "left");
        assert_eq!(client.call("read_file", r#"{"path":"a"}"#).await.error(), -32602);
    }
}

/// With `expose = "search"` three tools give access to all others; denied tools stay hidden.
#[tokio::test]
async fn exposes_search_tools_for_large_catalogs() {
    let settings = "[profiles.default]\nexpose = \"search\"\npinned = [\"tool_7\"]\ndeny = [\"tool_13\"]\n";
    let script = (0..120).fold(Script::both(), |script, number| {
        let what =
            if number == 42 { "Translates a poem into Latin".to_owned() } else { format!("Number {number}") };
        script.tool(
            json!({"name": format!("tool_{number}"), "description": what, "inputSchema": {"type": "object"}}),
        )
    });
    let serving = Serving::before(&script, settings);
    for era in ERAS {
        let client = RawClient::connect(&serving.url(), era).await;
        assert_eq!(
            tool_names(&client).await,
            ["call_tool", "describe_tool", "search_tools", "tool_7"],
            "{era:?}"
        );
        let found = client.call("search_tools", r#"{"query":"translate a poem into Latin"}"#).await;
        let found: Value = serde_json::from_str(found.result()).unwrap();
        assert_eq!(found["structuredContent"]["tools"][0]["name"], "tool_42", "{found}");
        let reply = client.call("describe_tool", r#"{"name":"tool_42"}"#).await;
        assert!(reply.text().contains("Translates a poem into Latin"));
        let called = client.call("call_tool", r#"{"name":"tool_42","arguments":{"n":1.0}}"#).await;
        assert_eq!(called.text(), r#"{"n":1.0}"#, "{era:?}");
        // A tool can be called directly by its name.
        assert_eq!(client.call("tool_42", "{}").await.text(), "{}");
        let hidden: Value = serde_json::from_str(
            client.call("call_tool", r#"{"name":"tool_13","arguments":{}}"#).await.result(),
        )
        .unwrap();
        assert_eq!(hidden["isError"], true, "{hidden}");
        assert_eq!(client.call("tool_13", "{}").await.error(), -32602);
    }
}

/// The search tools are available even if a profile lists its servers or tools.
#[tokio::test]
async fn search_only_client_can_find_and_call_tools() {
    let script = (0..120).fold(Script::both(), |script, number| script.plain_tool(&format!("tool_{number}")));
    let settings = "[profiles.default]\nservers = [\"s\"]\n[profiles.some]\ntools = [\"tool_*\"]\n\
                    [profiles.denied]\ndeny = [\"search_*\", \"calculate\"]\n";
    let serving = Serving::before(&script, settings);
    for profile in ["default", "some"] {
        let client = at(&serving, profile, Era::Modern).await;
        assert_eq!(tool_names(&client).await, ["call_tool", "describe_tool", "search_tools"], "{profile}");
        let called = client.call("call_tool", r#"{"name":"tool_42","arguments":{"n":1}}"#).await;
        assert_eq!(called.text(), r#"{"n":1}"#, "{profile}");
        assert_eq!(client.call("calculate", r#"{"expression":"1+1"}"#).await.error(), -32602, "{profile}");
    }
    // If the profile denies the search tools, all tools are listed.
    let tool_names = at(&serving, "denied", Era::Modern).await.tools().await;
    assert!(
        tool_names.contains(&"tool_42".to_owned()) && !tool_names.contains(&"search_tools".to_owned()),
        "{tool_names:?}"
    );
}

/// Stored results and conversations of the owner are hidden unless a profile lists the tools that read them.
#[tokio::test]
async fn owner_tools_need_explicit_exposure() {
    let settings = "[profiles.default]\nexpose = \"all\"\n[profiles.own]\ntools = [\"read_result\", \"calculate\"]\nexpose = \"all\"\n";
    let serving = Serving::start(hub(settings));
    for era in ERAS {
        let client = at(&serving, "default", era).await;
        let tools = tool_names(&client).await;
        assert!(tools.contains(&"calculate".to_owned()), "{tools:?}");
        for hidden in ["read_result", "get_conversation_history"] {
            assert!(!tools.contains(&hidden.to_owned()), "{tools:?}");
            assert_eq!(client.call(hidden, r#"{"handle":"x"}"#).await.error(), -32602, "{hidden}");
            let detour = format!(r#"{{"name":"{hidden}","arguments":{{"handle":"x"}}}}"#);
            let answer = client.call("call_tool", &detour).await;
            assert!(answer.result().contains("\"isError\":true"), "{}", answer.result());
            assert!(!answer.result().contains("is no longer kept"), "{}", answer.result());
        }
        assert_eq!(
            tool_names(&at(&serving, "own", era).await).await,
            ["calculate", "read_result"],
            "{era:?}"
        );
    }
}

/// A search covers only the tools of the profile, even if others match better.
#[tokio::test]
async fn hidden_tools_do_not_shadow_exposed_ones() {
    let tool = |name: &str, what: &str| json!({"name": name, "description": what, "inputSchema": {"type": "object"}});
    let things = ["weather", "stocks", "trains", "music", "recipes", "maps", "taxes", "plants"];
    let others = (0..240).fold(Script::both(), |script, number| {
        let thing = things[number % things.len()];
        script.tool(tool(&format!("{thing}_{number}"), &format!("Looks up {thing} of kind {number}")))
    });
    let many = (0..30).fold(others, |script, number| {
        script.tool(tool(&format!("send_email_{number}"), "Send an email message to a person"))
    });
    let few = Script::both().tool(tool("post", "Send an email")).tool(tool("sum", "Adds numbers"));
    let mut cli = hub("[profiles.default]\nservers = [\"few\"]\nexpose = \"search\"\n");
    cli.server("many", &many);
    cli.server("few", &few);
    let serving = Serving::start(cli);
    let client = RawClient::connect(&serving.url(), Era::Modern).await;
    // `tools/list` waits until the servers are connected.
    client.tools().await;
    let found = client.call("search_tools", r#"{"query":"send an email message to a person"}"#).await;
    let found: Value = serde_json::from_str(found.result()).unwrap();
    assert_eq!(found["structuredContent"]["tools"][0]["name"], "post", "{found}");
}

/// Two tools that would get the same name stay separate.
#[tokio::test]
async fn each_exposed_name_is_unique() {
    let settings = "[native]\nenabled = false\n[profiles.default.overrides.one]\nname = \"two\"\n";
    let says = |script: Script, tool: &str| {
        script.plain_tool(tool).on(&format!("tools/call:{tool}"), json!([{"text": tool}]))
    };
    let serving = Serving::before(&says(says(Script::both(), "one"), "two"), settings);
    let client = RawClient::connect(&serving.url(), Era::Modern).await;
    assert_eq!(tool_names(&client).await, ["s__two", "two"]);
    assert_eq!(client.call("two", "{}").await.text(), "one");
    assert_eq!(client.call("s__two", "{}").await.text(), "two");
}

#[tokio::test]
async fn notifies_clients_of_changed_tools() {
    for era in ERAS {
        let one = json!({"name": "grow", "inputSchema": {"type": "object"}});
        let two = json!({"name": "grown", "inputSchema": {"type": "object"}});
        let reply = json!([{"notify": {"method": "notifications/tools/list_changed"}}, {"text": "done"}]);
        let script = Script::legacy()
            .tool(&one)
            .tool(&two)
            .on("tools/list", json!([[{"reply": {"tools": [one]}}], [{"reply": {"tools": [one, two]}}]]))
            .on("tools/call:grow", reply);
        let serving = Serving::before(&script, "[native]\nenabled = false\n");
        let client = RawClient::connect(&serving.url(), era).await;
        assert_eq!(client.tools().await, ["grow"]);
        let mut stream = client.listen().await;
        assert_eq!(client.call("grow", "{}").await.text(), "done");
        let change = stream.until("notifications/tools/list_changed").await;
        if era == Era::Modern {
            let meta = &change.params.unwrap()["_meta"];
            assert_eq!(meta["io.modelcontextprotocol/subscriptionId"], "listen");
        }
        assert_eq!(client.tools().await, ["grow", "grown"], "{era:?}");
        assert_eq!(client.call("grown", "{}").await.text(), "{}");
    }
}
