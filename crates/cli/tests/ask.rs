//! Natural-language requests through the real program: by rules, with a model in each of its modes, and with a model that
//! fails.

#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::io::Write as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolhub_testkit::CommandLine;
use toolhub_testkit::model::{Act, ModelServer, ScriptedReply};
use toolhub_testkit::scripted::{Journal, Script};

fn plain() -> CommandLine {
    let cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    settings(&cli, "[llm]\nenabled = false\n");
    cli
}

fn settings(cli: &CommandLine, text: &str) {
    std::fs::write(cli.folder().join("toolhub.toml"), text).unwrap();
}

fn with_model(server: &ModelServer, more: &str) -> CommandLine {
    let cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    let url = &server.url;
    settings(&cli, &format!("[llm]\nurl = \"{url}/v1\"\nmodel = \"scripted\"\n{more}\n"));
    cli
}

fn scripted_reply(text: &str) -> Act {
    ScriptedReply::text(text).with_usage(10, 0, 5).act()
}

#[test]
fn rules_answer_without_a_model() {
    let cli = plain();
    let check = |request: &str, expect: &[&str]| {
        let ran = cli.run(&["ask", request]);
        assert_eq!(ran.code, Some(0), "{request}: {ran:?}");
        for expect in expect {
            assert!(ran.stdout.contains(expect), "{request}: {ran:?}");
        }
    };
    check("23*47 等于多少？", &["1081"]);
    check("what is 15% of 80?", &["12"]);
    check("what time is it in Tokyo and in Berlin?", &["Asia/Tokyo", "Europe/Berlin"]);
    // Two questions separated by a comma are both answered.
    check("现在东京几点，23*47 等于多少", &["Asia/Tokyo", "1081"]);
    check("东京现在几点，纽约现在几点？", &["Asia/Tokyo", "America/New_York"]);
    check("算一下 3*7，现在东京几点", &["21", "Asia/Tokyo"]);
    let response = cli.run(&["ask", "23*47 等于多少？", "--json"]).json();
    assert_eq!((&response["answer"], &response["verified"]), (&json!("1081"), &json!(true)));
    assert_eq!(
        (&response["steps"][0]["tool"], &response["steps"][0]["success"]),
        (&json!("calculate"), &json!(true))
    );
    // If no tool is suitable, the answer says so and no tool is called.
    let response = cli.run(&["ask", "compose a symphony in d minor", "--json"]);
    assert_eq!((response.code, &response.json()["steps"]), (Some(1), &json!([])), "{response:?}");
    let response = cli.run(&["ask", "  "]);
    assert_eq!(response.code, Some(2), "{response:?}");
    let response = cli.run(&["ask", "1+1", "--agent", "nobody"]);
    assert!(response.code == Some(2) && response.stderr.contains("[agents.nobody]"), "{response:?}");
}

#[test]
fn reports_missing_model_once() {
    let cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    let ask = || {
        // No process listens on port 1.
        let output = cli.command(&["ask", "1+1"]).env("OLLAMA_HOST", "127.0.0.1:1").output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, text) = ask();
    assert!(code == Some(0) && text.contains("planned by rules"), "{text}");
    assert_eq!(ask(), (Some(0), String::new()));
}

#[test]
fn model_calls_tools_and_answers() {
    for api in ["openai", "anthropic"] {
        let call = ScriptedReply::text("")
            .call("calculate", r#"{"expression": "23*47"}"#)
            .call("get_time", r#"{"zone": "Asia/Tokyo"}"#)
            .with_usage(100, 20, 9)
            .act();
        let server = ModelServer::start([call, scripted_reply("It is 1081.")]);
        let cli = with_model(&server, &format!("api = \"{api}\""));
        let ran = cli.run(&["ask", "What is 23*47, and what time is it in Tokyo?", "--json"]);
        let response = ran.json();
        assert_eq!(response["answer"], "It is 1081.", "{ran:?}");
        assert_eq!(response["steps"].as_array().unwrap().len(), 2, "{response}");
        assert_eq!(
            (&response["steps"][0]["tool"], &response["steps"][0]["result"]),
            (&json!("calculate"), &json!("1081"))
        );
        assert_eq!(
            response["usage"],
            json!({"input": 110, "cached": response["usage"]["cached"], "output": 14, "rounds": 2}),
            "{response}"
        );
        let bodies = server.bodies();
        assert_eq!(bodies.len(), 2);
        // Tool results are sent back in their own role, never as text of the user.
        let last = bodies[1]["messages"].to_string();
        assert!(last.contains("1081") && last.contains("Asia/Tokyo"), "{last}");
        let tools = bodies[0]["tools"].to_string();
        for core in ["search_web", "calculate", "get_time", "get_conversation_history"] {
            assert!(tools.contains(&format!("\"{core}\"")), "{core}: {tools}");
        }
        // Calls are recorded with the request that caused them.
        let past = cli.run(&["history", "--json"]).json();
        assert!(past.to_string().contains("What is 23*47"), "{past}");
    }
}

#[test]
fn runs_calls_written_as_text() {
    let call = "Let me see.\n<tool_call>{\"id\": \"call_001\", \"tool_name\": \"calculate\", \"arguments\": {\"expression\": \"6*7\",}}</tool_call>";
    for more in ["tool_calls = \"text\"", "tool_calls = \"native\""] {
        let server = ModelServer::start([scripted_reply(call), scripted_reply("四十二")]);
        let cli = with_model(&server, more);
        let ran = cli.run(&["ask", "6*7 等于多少"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "四十二\n"), "{ran:?}");
        let bodies = server.bodies();
        let response = bodies[0].to_string();
        assert_eq!(response.contains("**calculate**"), more.contains("text"), "{response}");
        assert_eq!(bodies[0]["tools"].is_array(), more.contains("native"), "{response}");
        assert!(bodies[1]["messages"].to_string().contains("42"), "{}", bodies[1]);
    }
}

#[test]
fn examples_show_the_complete_call_syntax() {
    let cli = plain();
    assert_eq!(cli.run(&["call", "calculate", "expression=6*7"]).code, Some(0));
    let prompt = |more: &[&str]| cli.run(&[&["prompt", "--query", "What is 8*9?"], more].concat()).stdout;
    let response = prompt(&["--format", "text"]);
    let call =
        r#"Example: <tool_call>{"tool_name":"calculate","arguments":{"expression":"6*7"}}</tool_call>"#;
    assert!(response.contains(call), "{response}");
    let response = prompt(&["--plan"]);
    assert!(response.contains(r#"Example: {"expression":"6*7"}"#), "{response}");
}

#[test]
fn creates_and_runs_plan_and_answers_from_it() {
    let plan = json!({"steps": [
        {"id": "1", "description": "work it out", "tool": "calculate", "arguments": {"expression": "6*7"}, "dependencies": []},
        {"id": 2, "description": "twice that", "tool": "calculate", "arguments": {"expression": "2*{{1}}"}, "dependencies": []},
        {"id": "3", "description": "put it in words", "tool": null, "arguments": {}, "dependencies": ["2"]}
    ]});
    let server = ModelServer::start([
        scripted_reply(&format!("Here it is:\n```json\n{plan}\n```")),
        scripted_reply("eighty-four"),
        scripted_reply("The answer is 84."),
    ]);
    let cli = with_model(&server, "");
    let ran = cli.run(&["ask", "six times seven, twice, in words", "--mode", "plan", "--json"]);
    let response = ran.json();
    assert_eq!(response["answer"], "The answer is 84.", "{ran:?}");
    let results: Vec<&Value> =
        response["steps"].as_array().unwrap().iter().map(|step| &step["result"]).collect();
    assert_eq!(results, [&json!("42"), &json!("84"), &json!("eighty-four")], "{response}");
    // A plan with a cycle, or with an unknown step, does not hang.
    let circle = json!({"steps": [
        {"id": "1", "description": "a", "tool": "calculate", "arguments": {"expression": "{{2}}"}, "dependencies": ["2"]},
        {"id": "2", "description": "b", "tool": "calculate", "arguments": {"expression": "{{1}}"}, "dependencies": ["1"]}
    ]});
    let server =
        ModelServer::start([scripted_reply(&circle.to_string()), scripted_reply("It could not be done.")]);
    let response = with_model(&server, "").run(&["ask", "go round", "--mode", "plan", "--json"]).json();
    assert_eq!(
        (&response["verified"], response["issues"].as_array().unwrap().len()),
        (&json!(false), 2),
        "{response}"
    );
}

#[test]
fn falls_back_to_rules_if_model_fails() {
    let request = "23*47 等于多少？";
    let refused = ModelServer::start([Act::refuse(401, "no such key")]);
    let nonsense = ModelServer::start([scripted_reply("I would rather talk about the weather.")]);
    let silent = ModelServer::start([Act::Hang]);
    let away = "[llm]\nurl = \"http://127.0.0.1:1/v1\"\nmodel = \"m\"\n".to_owned();
    let at = |server: &ModelServer| format!("[llm]\nurl = \"{}/v1\"\nmodel = \"m\"\n", server.url);
    let hurry = "[agents.default]\ntime = \"2s\"\n";
    for (name, text, way) in [
        ("away", away, "talk"),
        ("refused", at(&refused), "talk"),
        ("nonsense", at(&nonsense), "plan"),
        ("silent", at(&silent) + hurry, "talk"),
    ] {
        let cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
        settings(&cli, &text);
        let started = Instant::now();
        let ran = cli.run(&["ask", request, "--mode", way]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "1081\n"), "{name}: {ran:?}");
        assert!(ran.stderr.contains("by rules"), "{name}: {ran:?}");
        assert!(started.elapsed() < Duration::from_secs(30), "{name}");
    }
}

#[test]
fn stops_model_that_never_finishes() {
    let again = ScriptedReply::text("").call("calculate", r#"{"expression": "1+1"}"#).act();
    let server = ModelServer::start([again]);
    let cli = with_model(&server, "[agents.default]\nrounds = 3");
    let response = cli.run(&["ask", "add for ever", "--json"]).json();
    assert_eq!(server.bodies().len(), 3, "{response}");
    assert_eq!(response["steps"].as_array().unwrap().len(), 2, "{response}");
    // In the last round `tool_choice` is `none`, and the prompt says that no tool can be called.
    let bodies = server.bodies();
    assert_eq!(bodies[2]["tool_choice"], "none", "{}", bodies[2]);
    let last = bodies[2]["messages"].as_array().unwrap().last().unwrap();
    assert!(last["role"] == "user" && last.to_string().contains("Nothing more can be called"), "{last}");
    assert!(!bodies[1].to_string().contains("Nothing more can be called"), "{}", bodies[1]);
    // The note about a repeated call is sent with the second result; the answer contains the result once.
    assert!(!bodies[1].to_string().contains("made this call before"), "{}", bodies[1]);
    assert!(bodies[2].to_string().contains("made this call before"), "{}", bodies[2]);
    assert_eq!(response["answer"], "2", "{response}");
}

#[test]
fn ignores_results_invented_by_the_model() {
    // Small models invent a result in the format described in the prompt.
    let invented = scripted_reply("<tool_result> 851</tool_result>");
    let call = scripted_reply(
        "```json\n{\"tool_name\": \"calculate\", \"arguments\": {\"expression\": \"23*47\"}}\n```",
    );
    let server = ModelServer::start([invented, call, scripted_reply("It is 1081.")]);
    let cli = with_model(&server, "tool_calls = \"text\"");
    let ran = cli.run(&["ask", "What is 23*47?", "--json"]);
    assert_eq!(ran.json()["answer"], "It is 1081.", "{ran:?}");
    let messages = server.bodies()[1]["messages"].to_string();
    assert!(messages.contains("results come from tools alone") && !messages.contains("851"), "{messages}");
}

#[test]
fn counts_usage_of_failed_model_requests() {
    let server = ModelServer::start([scripted_reply("I would rather talk about the weather.")]);
    let response = with_model(&server, "").run(&["ask", "What is 23*47?", "--mode", "plan", "--json"]).json();
    assert_eq!((&response["answer"], &response["model"]), (&json!("1081"), &Value::Null), "{response}");
    assert_eq!(
        (&response["usage"]["input"], &response["usage"]["output"]),
        (&json!(10), &json!(5)),
        "{response}"
    );
}

#[test]
fn destructive_calls_need_confirmation() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let tool = json!({"name": "wipe_disk", "description": "Wipes a disk.", "annotations": {"destructiveHint": true},
        "inputSchema": {"type": "object", "properties": {"disk": {"type": "string"}}, "required": ["disk"]}});
    let called = || {
        let journal = Journal::read(&journal);
        journal.count_method("tools/call")
    };
    let call = || ScriptedReply::text("").call("wipe_disk", r#"{"disk": "sda"}"#).act();
    // An indirect call through `call_tool` is treated the same way.
    let round_about = || {
        ScriptedReply::text("")
            .call("call_tool", r#"{"name": "wipe_disk", "arguments": {"disk": "sda"}}"#)
            .act()
    };
    let server = ModelServer::start([call(), round_about(), scripted_reply("done what I could")]);
    let mut cli = with_model(&server, "");
    cli.server("disks", &Script::legacy().tool(tool).journal(&journal));
    let ran = cli.run(&["ask", "wipe the disk sda", "--json"]);
    assert_eq!(called(), 0, "{ran:?}");
    let response = ran.json();
    for step in 0..2 {
        let error = response["steps"][step]["error"].as_str().unwrap_or_default();
        assert!(error.contains("--yes"), "{response}");
    }
    let ran = cli.run(&["ask", "wipe the disk sda", "--json", "--yes"]);
    assert_eq!(called(), 0, "the last act repeats: {ran:?}");
    let server = ModelServer::start([call(), scripted_reply("wiped")]);
    let mut cli = with_model(&server, "");
    let tool = json!({"name": "wipe_disk", "annotations": {"destructiveHint": true}, "inputSchema": {"type": "object"}});
    cli.server("disks", &Script::legacy().tool(tool).journal(&journal));
    let ran = cli.run(&["ask", "wipe the disk sda", "--json", "--yes"]);
    assert_eq!((called(), ran.json()["answer"].as_str()), (1, Some("wiped")), "{ran:?}");
}

/// A tool without hints is taken for destructive if its name says so; hints of the server or the owner decide otherwise.
#[test]
fn destructive_names_without_hints_need_confirmation() {
    for (hints, settings, options, sent) in [
        (json!({}), "", &[][..], 0),
        (json!({"idempotentHint": true}), "", &[][..], 0),
        (json!({}), "", &["--yes"][..], 1),
        (json!({"destructiveHint": false}), "", &[][..], 1),
        (
            json!({}),
            "[[servers]]\nid = \"sheets\"\nhints = { delete_rows = { destructive = false } }\n",
            &[][..],
            1,
        ),
    ] {
        let calls = [
            ScriptedReply::text("").call("delete_rows", r#"{"sheet": "report"}"#).act(),
            scripted_reply("done"),
        ];
        let server = ModelServer::start(calls);
        let mut cli = with_model(&server, settings);
        let journal = cli.folder().join("journal");
        let tool = json!({"name": "delete_rows", "description": "Deletes the rows of a sheet.", "annotations": hints,
            "inputSchema": {"type": "object", "properties": {"sheet": {"type": "string"}}, "required": ["sheet"]}});
        cli.server("sheets", &Script::legacy().tool(tool).journal(&journal));
        let ran = cli.run(&[&["ask", "delete the rows of the sheet report", "--json"], options].concat());
        assert_eq!(Journal::read(&journal).count_method("tools/call"), sent, "{hints} {settings}: {ran:?}");
        let response = ran.json();
        let shown = response["steps"][0]["error"].as_str().unwrap_or_default();
        assert_eq!(shown.contains("--yes"), sent == 0, "{response}");
    }
}

/// A server that says, after it has run a call, that its path must be absolute: the call is not sent again, with any arguments,
/// unless the tool may be repeated.
#[test]
fn changing_call_is_not_sent_again_with_an_absolute_path() {
    let error =
        "rows were appended to report.xlsx, but the report was not sent: its target must be an absolute path";
    for (hints, options, sent) in [
        (json!({}), &[][..], 1),
        (json!({"readOnlyHint": false, "destructiveHint": true}), &["--yes"][..], 1),
        (json!({"idempotentHint": true, "destructiveHint": true}), &["--yes"][..], 1),
        // Control: a tool that may be repeated is called with the absolute path.
        (json!({"readOnlyHint": true}), &[][..], 2),
        (json!({"idempotentHint": true, "destructiveHint": false}), &[][..], 2),
    ] {
        let call = ScriptedReply::text("").call("append_rows", r#"{"path": "report.xlsx", "rows": 1}"#).act();
        let server = ModelServer::start([call, scripted_reply("done")]);
        let mut cli = with_model(&server, "");
        let journal = cli.folder().join("journal");
        let tool = json!({"name": "append_rows", "description": "Appends rows to a sheet.", "annotations": hints,
            "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}, "rows": {"type": "integer"}}}});
        let turns = json!([[{"tool_error": error}], [{"text": "appended"}]]);
        cli.server(
            "sheets",
            &Script::legacy().tool(tool).on("tools/call:append_rows", turns).journal(&journal),
        );
        let ran = cli.run(&[&["ask", "append a row to report.xlsx", "--json"], options].concat());
        assert_eq!(Journal::read(&journal).count_method("tools/call"), sent, "{hints}: {ran:?}");
        let response = ran.json();
        let step = &response["steps"][0];
        let absolute = cli.folder().canonicalize().unwrap().join("report.xlsx");
        match sent {
            1 => {
                let shown = step["error"].as_str().unwrap_or_default();
                assert!(shown.contains(absolute.to_str().unwrap()), "{hints}: {response}");
            }
            _ => assert_eq!(step["success"], json!(true), "{hints}: {response}"),
        }
    }
}

/// Confirmation applies to the tool that would actually run, independent of how the model wraps its name.
#[test]
fn wrapped_and_coerced_destructive_calls_need_confirmation() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let tool = json!({"name": "wipe_disk", "description": "Wipes a disk.", "annotations": {"destructiveHint": true},
        "inputSchema": {"type": "object", "properties": {"disk": {"type": "string"}}}});
    for arguments in [
        r#"{"name": "call_tool", "arguments": {"name": "wipe_disk", "arguments": {"disk": "sda"}}}"#,
        r#"{"name": ["wipe_disk"], "arguments": {"disk": "sda"}}"#,
        r#"{"name": "wipe_disk", "arguments": "{\"disk\": \"sda\"}"}"#,
        r#"{"tool_name": "wipe_disk", "arguments": {"disk": "sda"}}"#,
        r#"{"name": "call_tool", "arguments": {"name": ["wipe_disk"]}}"#,
    ] {
        let call = ScriptedReply::text("").call("call_tool", arguments).act();
        let server = ModelServer::start([call, scripted_reply("done what I could")]);
        let mut cli = with_model(&server, "");
        cli.server("disks", &Script::legacy().tool(&tool).journal(&journal));
        let ran = cli.run(&["ask", "wipe the disk sda", "--json"]);
        assert_eq!(Journal::read(&journal).count_method("tools/call"), 0, "{arguments} {ran:?}");
        assert!(ran.json()["steps"][0]["error"].is_string(), "{arguments} {ran:?}");
    }
}

#[test]
fn agent_uses_only_its_tools_and_instructions() {
    let call = ScriptedReply::text("").call("get_time", r#"{"zone": "UTC"}"#).act();
    let server = ModelServer::start([call, scripted_reply("I may not.")]);
    let agent = "[agents.abacus]\ntools = [\"calc*\"]\ninstructions = \"You are an abacus.\"";
    let cli = with_model(&server, agent);
    let response = cli.run(&["ask", "what time is it?", "--agent", "abacus", "--json"]).json();
    assert!(response["steps"][0]["error"].as_str().unwrap().contains("not among"), "{response}");
    let body = server.bodies()[0].to_string();
    assert!(body.contains("You are an abacus.") && !body.contains("\"get_time\""), "{body}");
}

#[test]
fn stores_and_resumes_conversation() {
    let server = ModelServer::start([
        scripted_reply("Hello Ada."),
        scripted_reply("Your name is Ada."),
        scripted_reply("Still Ada."),
    ]);
    let cli = with_model(&server, "");
    let mut child = cli.command(&["chat"]).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all("I am Ada.\n\nWhat is my name?\n".as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "Hello Ada.\nYour name is Ada.\n");
    let response = server.bodies()[1]["messages"].to_string();
    assert!(response.contains("I am Ada.") && response.contains("Hello Ada."), "{response}");
    let mut child = cli.command(&["chat", "--resume", "last"]).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all("And now?\n".as_bytes()).unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
    assert!(server.bodies()[2]["messages"].to_string().contains("Your name is Ada."));
    let listed = cli.run(&["chat", "--list", "--json"]).json();
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["turns"]), (1, &json!(6)), "{listed}");
    let response = cli.run(&["chat", "--resume", "nothing"]);
    assert!(response.code == Some(2) && response.stderr.contains("chat --list"), "{response:?}");
}

#[test]
fn prompt_is_deterministic_and_within_budget() {
    let mut cli = plain();
    let tool = |number: usize| {
        json!({"name": format!("tool_{number:04}"), "description": format!("Handles the case {number} of many, thoroughly and at length."),
        "inputSchema": {"type": "object", "properties": {"case": {"type": "string", "description": "Which case"}}, "required": ["case"]}})
    };
    let script = (0..1_000).fold(
        Script::legacy().tool(json!({"name": "book_train", "description": "Books a train ticket.", "inputSchema": {"type": "object"}})),
        |script, number| script.tool(tool(number)),
    );
    cli.server("many", &script);
    cli.run(&["tools"]);
    let ask = |args: &[&str]| cli.run(args);
    let args = ["prompt", "--query", "book a train ticket", "--budget", "1500"];
    let first = ask(&args);
    assert_eq!(first.stdout, ask(&args).stdout);
    for core in [
        "search_web",
        "calculate",
        "get_time",
        "get_conversation_history",
        "search_tools",
        "call_tool",
        "book_train",
    ] {
        assert!(first.stdout.contains(&format!("**{core}**")), "{core}: {}", first.stdout);
    }
    assert!(first.stdout.contains("more tools: call them by name"), "{}", first.stdout);
    let response =
        cli.run(&["prompt", "--query", "book a train ticket", "--budget", "1500", "--json"]).json();
    // The budget applies to the tools; the rest of the prompt has a nearly constant length.
    assert!(response["tokens"].as_u64().unwrap() < 1_500 + 400, "{}", response["tokens"]);
    assert!(
        response["total"].as_u64().unwrap() > 1_000 && response["shown"].as_u64().unwrap() < 100,
        "{response}"
    );
    let zh = cli.run(&["prompt", "--query", "订一张火车票"]);
    assert!(zh.stdout.contains("你有"), "{}", zh.stdout);
}

#[test]
fn stops_model_that_repeats_the_same_call() {
    let again = ScriptedReply::text("").call("calculate", r#"{"expression": "1+1"}"#).act();
    let server = ModelServer::start([again]);
    let cli = with_model(&server, "");
    let response = cli.run(&["ask", "add for ever", "--json"]).json();
    assert_eq!(response["steps"].as_array().unwrap().len(), 3, "{response}");
    assert!(response["notes"][0].as_str().unwrap().contains("same call"), "{response}");
    // After the rejected repetition, one round without tool calls is left.
    assert_eq!(server.bodies().len(), 5, "{response}");
    assert_eq!(server.bodies()[4]["tool_choice"], "none");
}

#[test]
fn rules_use_only_tools_of_the_agent() {
    let cli = plain();
    settings(&cli, "[llm]\nenabled = false\n[agents.clock]\ntools = [\"get_time\"]\n");
    let response = cli.run(&["ask", "23*47", "--agent", "clock", "--json"]);
    assert_eq!((response.code, &response.json()["steps"]), (Some(1), &json!([])), "{response:?}");
    let response = cli.run(&["ask", "what time is it in Tokyo?", "--agent", "clock", "--json"]).json();
    assert_eq!(response["steps"][0]["tool"], "get_time", "{response}");
}

#[test]
fn doctor_reports_unknown_tools_of_agents() {
    let cli = plain();
    settings(
        &cli,
        "[llm]\nenabled = false\n[agents.a]\ntools = [\"calc*\", \"fly\"]\n[agents.b]\ntools = [\"swim\"]\n",
    );
    let ran = cli.run(&["doctor"]);
    assert!(ran.stdout.contains("[agents.a] tools` names `fly`"), "{ran:?}");
    assert!(
        ran.stdout.contains("[agents.b] tools` names `swim`") && ran.stdout.contains("no tool at all"),
        "{ran:?}"
    );
    assert_eq!(ran.code, Some(2), "{ran:?}");
}

#[test]
fn joins_unquoted_words_into_one_request() {
    let cli = plain();
    let ran = cli.run(&["ask", "what", "is", "23*47"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "1081\n"), "{ran:?}");
    let mut child = cli.command(&["ask", "-"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"what is \xff\xfe").unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && text.contains("UTF-8 (byte 9)"), "{text}");
}

#[test]
fn answer_escapes_control_sequences() {
    let tool = json!({"name": "list_greetings", "description": "Lists all greetings.",
        "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}});
    let text = json!([{"text": "\u{1b}[31mred\u{1b}[0m\tand\nplain"}]);
    let script = Script::legacy().tool(tool).on("tools/call:list_greetings", text);
    let mut cli = plain();
    cli.server("s", &script);
    let ran = cli.run(&["ask", "list all greetings"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "red\tand\nplain\n"), "{ran:?}");
}

#[test]
fn localizes_errors_of_native_tools() {
    let cli = plain();
    let check = |request: &str, expect: &str| {
        let ran = cli.run(&["ask", request, "--lang", "zh"]);
        assert!(ran.code == Some(1) && ran.stderr.contains(expect), "{ran:?}");
    };
    check("23/0 等于多少", "除数为零");
    check("what time is it in Gotham?", "不知道 `Gotham` 的时区");
    check("读取 没有的.txt", "没有 `没有的.txt`");
}

#[test]
fn lists_conversations_with_dates() {
    let cli = plain();
    let long = format!("what is 1+1 {}", "please ".repeat(60));
    assert_eq!(cli.run(&["ask", &long]).code, Some(0));
    let ran = cli.run(&["chat", "--list"]);
    let line = ran.stdout.lines().next().unwrap();
    assert!(line.chars().count() <= 100 && line.contains("what is 1+1"), "{ran:?}");
    let listed = cli.run(&["chat", "--list", "--json"]).json();
    let last = listed[0]["last"].as_str().unwrap();
    assert!(line.contains("20") && last.ends_with('Z'), "{line} {last}");
}
