//! Real MCP servers that share a tool, through the real program: raced, merged, and sequential.

#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use toolhub_testkit::CommandLine;
use toolhub_testkit::scripted::{Journal, Script};

/// Stdio servers that share one tool, each with different behaviour.
struct Servers {
    cli: CommandLine,
    folder: TempDir,
}

impl Servers {
    fn new(tool: &Value, each: &[(&str, Value)]) -> Self {
        let mut cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
        let folder = tempfile::tempdir().unwrap();
        for (id, actions) in each {
            let name = tool["name"].as_str().unwrap();
            let script = Script::legacy()
                .tool(tool.clone())
                .on(&format!("tools/call:{name}"), actions)
                .journal(journal(folder.path(), id));
            cli.server(id, &script);
        }
        let ids: Vec<&str> = each.iter().map(|(id, _)| *id).collect();
        std::fs::write(
            cli.folder().join("toolhub.toml"),
            format!("[routing]\nequivalent = [{}]\n", json!(ids)),
        )
        .unwrap();
        Self { cli, folder }
    }

    fn json(&self, args: &[&str]) -> Value {
        self.cli.run(&[args, &["--json"]].concat()).json()
    }

    fn journal(&self, id: &str) -> Journal {
        Journal::read(journal(self.folder.path(), id))
    }

    fn calls(&self, id: &str) -> usize {
        self.journal(id).count_method("tools/call")
    }
}

fn journal(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.journal"))
}

fn tool(name: &str, hints: &Value) -> Value {
    json!({"name": name, "inputSchema": {"type": "object"}, "annotations": hints})
}

fn read_only(name: &str) -> Value {
    tool(name, &json!({"readOnlyHint": true}))
}

fn late(millis: u64, text: &str) -> Value {
    json!([{"delay_ms": millis}, {"text": text}])
}

/// Servers that merely have a tool of the same name do not receive each other's calls.
#[test]
fn servers_that_are_not_equivalent_are_called_by_name() {
    let servers =
        Servers::new(&read_only("search_it"), &[("one", late(0, "from one")), ("two", late(0, "from two"))]);
    std::fs::write(servers.cli.folder().join("toolhub.toml"), "").unwrap();
    let output = servers.json(&["call", "search_it"]);
    assert_eq!(
        (&output["result"], &output["_meta"]["source"]),
        (&json!("from one"), &json!("one")),
        "{output}"
    );
    for call in [&["call", "search_it", "--source", "two"][..], &["call", "two__search_it"]] {
        assert_eq!(servers.json(call)["result"], "from two", "{call:?}");
    }
    assert_eq!((servers.calls("one"), servers.calls("two")), (1, 2));
    let why = servers.cli.run(&["explain", "search_it"]).stdout;
    assert!(why.contains("two has a tool of that name, too"), "{why}");
}

#[test]
fn cancels_slower_candidate_of_a_race() {
    let servers = Servers::new(
        &read_only("calculate_it"),
        &[("slow", late(60_000, "slow")), ("fast", late(50, "fast"))],
    );
    let output = servers.json(&["call", "calculate_it"]);
    assert_eq!((&output["result"], &output["_meta"]["source"]), (&json!("fast"), &json!("fast")), "{output}");
    assert_eq!(output["_meta"]["cancelled"], json!(["slow"]));
    assert!(output["_meta"]["duration_ms"].as_u64().unwrap() < 30_000);
    let mut seen = servers.journal("slow");
    seen.wait_for(|journal| journal.count_method("notifications/cancelled") == 1, Duration::from_secs(5));
    let id = |method: &str, member: &dyn Fn(&Value) -> Value| {
        let messages = seen.messages();
        let found = messages.into_iter().find(|message| message["method"] == method).unwrap();
        member(found)
    };
    assert_eq!(
        id("notifications/cancelled", &|message| message["params"]["requestId"].clone()),
        id("tools/call", &|message| message["id"].clone())
    );
    let stderr = servers.cli.run(&["call", "calculate_it", "--trace"]).stderr;
    assert!(stderr.contains("(race)") && stderr.contains("slow cancelled after"), "{stderr}");
}

#[test]
fn merges_results_and_names_sources() {
    let servers = Servers::new(
        &read_only("search_it"),
        &[("one", late(0, "答案一。")), ("two", late(200, "answer two"))],
    );
    let output = servers.json(&["call", "search_it"]);
    assert_eq!(
        output["result"]
            .as_str()
            .map(|text| text.contains("[one] 答案一。") && text.contains("[two] answer two")),
        Some(true),
        "{output}"
    );
    assert_eq!(output["_meta"]["sources"], json!(["one", "two"]));
    assert_eq!(
        (&output["_meta"]["synthesized"], &output["_meta"]["source_count"]),
        (&json!(true), &json!(2))
    );
    let plain = servers.cli.run(&["call", "search_it"]);
    assert!(plain.stdout.starts_with("[one] 答案一。"), "{plain:?}");
    assert!(plain.stderr.contains("merged from 2 sources: one, two"), "{plain:?}");
}

#[test]
fn tries_next_batch_if_all_fail() {
    let fails = json!([{"tool_error": "out of order"}]);
    let servers = Servers::new(
        &read_only("look_it_up"),
        &[("a", fails.clone()), ("b", fails.clone()), ("c", fails), ("d", late(0, "from d"))],
    );
    let output = servers.json(&["call", "look_it_up"]);
    assert_eq!((&output["result"], &output["_meta"]["source"]), (&json!("from d"), &json!("d")), "{output}");
    assert_eq!(output["_meta"]["failed"].as_array().map(Vec::len), Some(3));
    assert_eq!(["a", "b", "c", "d"].map(|id| servers.calls(id)), [1, 1, 1, 1]);
}

#[test]
fn fast_failure_does_not_hide_slow_success() {
    for name in ["calculate_it", "search_it"] {
        let fails = json!([{"tool_error": "no"}]);
        let servers = Servers::new(&read_only(name), &[("quick", fails), ("slow", late(800, "right"))]);
        let output = servers.json(&["call", name]);
        assert_eq!((&output["success"], &output["result"]), (&json!(true), &json!("right")), "{output}");
        assert_eq!(output["_meta"]["failed"][0]["source"], "quick");
    }
}

#[test]
fn tool_without_hints_runs_once_on_one_server() {
    // The first server fails after execution; the second would succeed, but must not be called.
    for hints in [json!({}), json!({"destructiveHint": true})] {
        let each = [("a", json!([{"tool_error": "half done"}])), ("b", late(0, "done"))];
        let servers = Servers::new(&tool("calculate_it", &hints), &each);
        let output = servers.json(&["call", "calculate_it"]);
        assert_eq!(output["success"], false, "{output}");
        assert_eq!((servers.calls("a"), servers.calls("b")), (1, 0));
    }
    // Nor are such calls raced.
    let servers =
        Servers::new(&tool("calculate_it", &json!({})), &[("a", late(300, "slow")), ("b", late(0, "fast"))]);
    assert_eq!(servers.json(&["call", "calculate_it"])["result"], "slow");
    assert_eq!((servers.calls("a"), servers.calls("b")), (1, 0));
    // A server that never answers: the effect is unknown, so no other server is called.
    let servers = Servers::new(
        &tool("calculate_it", &json!({})),
        &[("a", json!([{"ignore": true}])), ("b", late(0, "fast"))],
    );
    let output = servers.json(&["call", "calculate_it", "--timeout", "2s"]);
    assert_eq!(output["_meta"]["effect"], "unknown", "{output}");
    assert_eq!((servers.calls("a"), servers.calls("b")), (1, 0));
}

#[test]
fn routes_by_capability() {
    let mut cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    let schema = |property: &str| json!({"type": "object", "properties": {property: {"type": "string"}}, "required": [property]});
    let tool = |name: &str, property: &str| json!({"name": name, "inputSchema": schema(property), "annotations": {"readOnlyHint": true}});
    let script = |name: &str, property: &str, text: &str| {
        Script::legacy().tool(tool(name, property)).on(&format!("tools/call:{name}"), json!([{"text": text}]))
    };
    cli.server("papers", &script("search_papers", "query", "a paper"));
    cli.server("news", &script("find_news", "query", "some news"));
    cli.server("odd", &script("search_odd", "words", "odd"));
    let ran = cli.run(&["call", "--capability", "search", "query=rust", "--json", "--source", "papers"]);
    let one: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(one["result"], "a paper", "{one}");
    let ran = cli.run(&["call", "--capability", "search", "query=rust", "--json"]);
    let output: Value = serde_json::from_str(&ran.stdout).unwrap();
    let text = output["result"].as_str().unwrap_or_default();
    assert!(text.contains("[papers] a paper") && text.contains("[news] some news"), "{output}");
    let listed = cli.run(&["tools", "--tag", "search"]).stdout;
    assert!(listed.contains("search_papers") && !listed.contains("calculate"), "{listed}");
    let why = cli.run(&["explain", "--capability", "search", "--args", "{\"query\":\"x\"}"]).stdout;
    assert!(why.contains("tools for `search` accept the arguments"), "{why}");
    let none = cli.run(&["call", "--capability", "juggle", "balls=3"]);
    assert_eq!(none.code, Some(1), "{none:?}");
    assert!(none.stderr.contains("no tool is known to be good for `juggle`"), "{none:?}");
}
