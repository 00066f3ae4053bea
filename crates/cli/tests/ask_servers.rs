//! Natural-language requests with several servers that offer tools of the same names: the named server is called and no other.

#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use serde_json::json;
use toolhub_testkit::CommandLine;
use toolhub_testkit::model::{ModelServer, ScriptedReply};
use toolhub_testkit::scripted::{Journal, Script};

const SERVERS: [&str; 2] = ["sales-db", "hr-db"];

fn tool(name: &str, description: &str, argument: Option<&str>) -> serde_json::Value {
    let properties = argument.map_or(json!({}), |name| json!({name: {"type": "string"}}));
    let required: Vec<&str> = argument.into_iter().collect();
    json!({
        "name": name, "description": description,
        "inputSchema": {"type": "object", "properties": properties, "required": required},
    })
}

/// Two servers of the same program; like mcp-server-sqlite, they give no hints.
fn databases(settings: &str) -> CommandLine {
    let mut cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    std::fs::write(cli.folder().join("toolhub.toml"), settings).unwrap();
    for id in SERVERS {
        let wipe = json!({
            "name": "drop_table", "description": "Drop a table", "annotations": {"destructiveHint": true},
            "inputSchema": {"type": "object", "properties": {"table": {"type": "string"}}, "required": ["table"]},
        });
        let script = Script::both()
            .tool(tool("list_tables", "List all tables in the SQLite database", None))
            .tool(tool("write_query", "Execute an INSERT, UPDATE, or DELETE query", Some("query")))
            .tool(wipe)
            .journal(cli.folder().join(id));
        cli.server(id, &script);
    }
    assert_eq!(cli.run(&["tools", "--refresh"]).code, Some(0));
    cli
}

/// The number of calls that each server received.
fn calls(cli: &CommandLine) -> [usize; 2] {
    SERVERS.map(|id| Journal::read(cli.folder().join(id)).count_method("tools/call"))
}

#[test]
fn ask_calls_server_named_in_request() {
    let cli = databases("[llm]\nenabled = false\n");
    let mut expected = [0, 0];
    for (request, server) in [
        ("list the tables of hr-db", 1),
        ("list the tables in the sales-db database", 0),
        ("列出 hr-db 里所有的 tables", 1),
        ("use the hr-db__write_query tool with query=\"DELETE FROM t\"", 1),
        ("sales-db__list_tables", 0),
    ] {
        let ran = cli.run(&["ask", request, "--yes"]);
        expected[server] += usize::from(ran.code == Some(0));
        assert_eq!(calls(&cli), expected, "{request}: {ran:?}");
    }
    assert!(expected[1] >= 3 && expected[0] >= 1, "{expected:?}");
}

#[test]
fn ask_calls_no_other_server_if_named_server_has_no_match() {
    let cli = databases("[llm]\nenabled = false\n");
    for request in ["hr-db 里现在几点", "what is 2 + 2 in hr-db?"] {
        let ran = cli.run(&["ask", request, "--json"]);
        assert_eq!((ran.code, calls(&cli)), (Some(1), [0, 0]), "{request}: {ran:?}");
        assert_eq!(ran.json()["steps"], json!([]), "{request}: {ran:?}");
    }
}

#[test]
fn ask_calls_none_of_several_servers_without_name() {
    let cli = databases("[llm]\nenabled = false\n");
    for (request, tool) in [
        ("list the tables", "list_tables"),
        ("use the write_query tool with query=\"DELETE FROM t\"", "write_query"),
        ("list the tables of hr-db and sales-db", "list_tables"),
    ] {
        let ran = cli.run(&["ask", request, "--yes"]);
        assert_eq!((ran.code, calls(&cli)), (Some(1), [0, 0]), "{request}: {ran:?}");
        for id in SERVERS {
            let output = format!("{}{}", ran.stdout, ran.stderr);
            assert!(output.contains(id) && output.contains(tool), "{request}: {ran:?}");
        }
    }
}

#[test]
fn ask_calls_first_of_equivalent_servers() {
    let cli = databases("[llm]\nenabled = false\n[routing]\nequivalent = [[\"sales-db\", \"hr-db\"]]\n");
    let ran = cli.run(&["ask", "list the tables", "--yes"]);
    assert_eq!((ran.code, calls(&cli)), (Some(0), [1, 0]), "{ran:?}");
}

#[test]
fn model_must_name_server_and_prefixed_name_needs_consent() {
    let call = |tool: &str, arguments: serde_json::Value| {
        ScriptedReply::text("").call(tool, &arguments.to_string()).act()
    };
    let server = ModelServer::start([
        call("write_query", json!({"query": "DELETE FROM t"})),
        call("hr-db__drop_table", json!({"table": "t"})),
        call("hr-db__write_query", json!({"query": "DELETE FROM t"})),
        ScriptedReply::text("done").act(),
    ]);
    let url = &server.url;
    let cli = databases(&format!("[llm]\nurl = \"{url}/v1\"\nmodel = \"scripted\"\n"));
    let ran = cli.run(&["ask", "empty the table t", "--json"]);
    let output = ran.json();
    let steps = output["steps"].as_array().unwrap();
    let success: Vec<bool> = steps.iter().map(|step| step["success"].as_bool().unwrap()).collect();
    assert_eq!(success, [false, false, true], "{output}");
    assert!(output.to_string().contains("several servers offer `write_query`"), "{output}");
    assert!(output.to_string().contains("--yes"), "the destructive tool was not agreed to: {output}");
    assert_eq!(calls(&cli), [0, 1], "{output}");
    // The tool of each server has a separate name in the request to the model.
    let request = server.bodies()[0].to_string();
    for name in ["hr-db__write_query", "sales-db__write_query"] {
        assert!(request.contains(name), "{request}");
    }
}

/// Confirmation applies to the tool that would actually run, even if the call is wrapped, prefixed or sent to `native`.
#[test]
fn wrapped_calls_of_destructive_tools_need_consent() {
    let wiping = json!({"table": "t"});
    let wrapped = json!({"name": "only__drop_it", "source": "native", "arguments": wiping});
    let inner = json!({"name": "drop_it", "arguments": wiping});
    let calls = [
        ("only__drop_it", wiping.clone()),
        ("call_tool", wrapped),
        ("native__call_tool", inner.clone()),
        ("call_tool", json!({"name": "native__call_tool", "source": "appflowy", "arguments": inner})),
        // A tool that the server lists only later has not been checked.
        ("only__drop_later", wiping.clone()),
        ("call_tool", json!({"name": "drop_later", "source": "only", "arguments": wiping})),
    ];
    let acts = calls
        .iter()
        .map(|(tool, arguments)| ScriptedReply::text("").call(tool, &arguments.to_string()).act());
    let server = ModelServer::start(acts.chain([ScriptedReply::text("done").act()]));
    let mut cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    let settings = format!("[llm]\nurl = \"{}/v1\"\nmodel = \"scripted\"\n", server.url);
    std::fs::write(cli.folder().join("toolhub.toml"), settings).unwrap();
    let journal = cli.folder().join("only");
    let script = |names: &[&str]| {
        names.iter().fold(Script::both().set("ttlMs", 0), |script, name| {
            script.tool(json!({
                "name": name, "description": "Drop a table", "annotations": {"destructiveHint": true},
                "inputSchema": {"type": "object", "properties": {"table": {"type": "string"}}},
            }))
        })
    };
    cli.server("only", &script(&["drop_it"]).journal(&journal));
    assert_eq!(cli.run(&["tools", "--refresh"]).code, Some(0));
    let output = cli.run(&["ask", "do it", "--json"]).json();
    assert_eq!(Journal::read(&journal).count_method("tools/call"), 0, "{output}");
    for step in output["steps"].as_array().unwrap() {
        assert_eq!(step["success"], json!(false), "{output}");
    }
    // The same without a model.
    std::fs::write(cli.folder().join("toolhub.toml"), "[llm]\nenabled = false\n").unwrap();
    let request = format!("call_tool name=only__drop_it source=native arguments={}", json!({"table": "t"}));
    let ran = cli.run(&["ask", &request]);
    assert_eq!(Journal::read(&journal).count_method("tools/call"), 0, "{ran:?}");
}

#[test]
fn change_for_unavailable_server_reaches_no_other() {
    let mut cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    std::fs::write(cli.folder().join("toolhub.toml"), "[llm]\nenabled = false\n").unwrap();
    let note = tool("add_note", "Adds a note", Some("text"));
    let journal = cli.folder().join("archive");
    cli.server("archive", &Script::both().tool(&note).journal(&journal));
    cli.entry("notes", json!({"command": "/no/such/program"}));
    for disabled in [false, true] {
        if disabled {
            assert_eq!(cli.run(&["servers", "disable", "notes"]).code, Some(0));
        }
        for request in ["add the note \"x\" to notes", "在 notes 里添加笔记“x”"] {
            let ran = cli.run(&["ask", request, "--yes"]);
            let calls = Journal::read(&journal).count_method("tools/call");
            assert_eq!((ran.code, calls), (Some(1), 0), "{request}: {ran:?}");
        }
    }
}

#[test]
fn value_equal_to_server_id_selects_no_server() {
    let cli = databases("[llm]\nenabled = false\n");
    for request in [
        "drop the table hr-db",
        "drop the tables \"staff\" and hr-db",
        "drop the table \"a\", then drop the table \"b\" in hr-db",
    ] {
        let ran = cli.run(&["ask", request, "--yes"]);
        assert_eq!(calls(&cli), [0, 0], "{request}: {ran:?}");
    }
}

#[test]
fn model_cannot_use_other_server_than_requested() {
    let call = ScriptedReply::text("").call("sales-db__drop_table", "{\"table\": \"t\"}").act();
    let server = ModelServer::start([call, ScriptedReply::text("done").act()]);
    let cli = databases(&format!("[llm]\nurl = \"{}/v1\"\nmodel = \"scripted\"\n", server.url));
    let ran = cli.run(&["ask", "drop the table t in hr-db", "--json", "--yes"]);
    assert_eq!(calls(&cli), [0, 0], "{ran:?}");
}

#[test]
fn agent_with_empty_tool_list_has_no_tools() {
    let cli = databases("[llm]\nenabled = false\n[agents.none]\ntools = []\n");
    let ran = cli.run(&["ask", "hr-db__list_tables", "--agent", "none"]);
    assert_eq!((ran.code, calls(&cli)), (Some(1), [0, 0]), "{ran:?}");
}

/// A request that names its server is answered by that server, also for read-only tools.
#[test]
fn named_server_answers_reads() {
    let mut cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    std::fs::write(cli.folder().join("toolhub.toml"), "[llm]\nenabled = false\n").unwrap();
    for (id, goods) in [("beta-db", "bolts: 7"), ("alpha", "bolts: 340")] {
        let list = json!({
            "name": "list_items", "description": "Lists all items of the warehouse with their number of pieces.",
            "inputSchema": {"type": "object", "properties": {}}, "annotations": {"readOnlyHint": true},
        });
        cli.server(id, &Script::both().tool(list).on("tools/call:list_items", json!([{"text": goods}])));
    }
    assert_eq!(cli.run(&["tools", "--refresh"]).code, Some(0));
    for request in ["alpha 里有哪些货？", "在 alpha 里有哪些货？", "list the items of alpha"] {
        let ran = cli.run(&["ask", request]);
        assert!(!ran.stdout.contains("bolts: 7"), "{request}: {ran:?}");
        assert!(ran.stdout.contains("bolts: 340") || ran.code == Some(1), "{request}: {ran:?}");
    }
    let both = cli.run(&["ask", "list the items of alpha. list the items of beta-db."]);
    let wrong = both.code == Some(0) && !(both.stdout.contains("340") && both.stdout.contains("bolts: 7"));
    assert!(!wrong, "{both:?}");
}
