//! Keys of `toolhub.toml` and options of the command line, each tested by its effect.

#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use futures_util::future::join_all;
use serde_json::{Value, json};
use toolhub::ToolCall;
use toolhub_core::call_log::{
    CallEnd, CallHistory as _, CallLog as _, CallQuery, CallStart, CallStatus, RecordId,
};
use toolhub_core::{CallId, RawJson, Source, ToolName};
use toolhub_store::SqliteStore;
use toolhub_testkit::model::{ModelServer, Pacing, ScriptedReply};
use toolhub_testkit::scripted::{Journal, Script};
use toolhub_testkit::{CommandLine, TestHub};

const DAY: Duration = Duration::from_secs(86_400);

fn with_settings(text: &str) -> CommandLine {
    let cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    std::fs::write(cli.folder().join("toolhub.toml"), text).unwrap();
    cli
}

/// A read-only call of this age, with an output of 1 MB.
fn old_call(age: Duration) -> (CallStart, CallEnd) {
    let record = RecordId::generate();
    let start = CallStart {
        record: record.clone(),
        call: CallId::generate(),
        tool: ToolName::new("t"),
        arguments: RawJson::empty_object(),
        conversation: None,
        request: None,
        strategy: "first".to_owned(),
        candidates: vec![Source::Native],
        may_change: false,
        at: SystemTime::now() - age,
        authorization: toolhub_core::Authorization::default(),
        parent: None,
    };
    let end = CallEnd {
        record,
        status: CallStatus::Succeeded,
        took: Duration::from_millis(1),
        error: None,
        sources: vec![Source::Native],
        attempts: Vec::new(),
        output: Some(RawJson::of(&"x".repeat(1_000_000))),
    };
    (start, end)
}

/// For each call, whether it is stored, and whether its output is.
async fn stored(home: &Path, records: &[RecordId]) -> Vec<(bool, bool)> {
    let store = SqliteStore::open(home).unwrap();
    let calls = store.calls(CallQuery::default()).await.unwrap();
    let mut found = Vec::new();
    for record in records {
        let has_output = store.output(record).await.unwrap().is_some();
        found.push((calls.iter().any(|call| call.start.record == *record), has_output));
    }
    found
}

/// `keep_calls`, `keep_results`, `result_bytes` and `max_size`: which of two calls, three days and one hour old, with outputs
/// of 1 MB, remain after the first write of the hub.
#[tokio::test]
async fn retention_keys_decide_which_calls_and_results_are_kept() {
    let (all, no_output, gone) = ((true, true), (true, false), (false, false));
    for (settings, expect) in [
        ("", [all, all]),
        ("keep_calls = \"2d\"", [gone, all]),
        ("keep_results = \"2d\"", [no_output, all]),
        ("result_bytes = 1500000", [no_output, all]),
        ("max_size = \"1500kB\"", [no_output, all]),
        ("keep_calls = \"30m\"", [gone, gone]),
    ] {
        let hub = TestHub::builder().settings(&format!("[store]\n{settings}\n")).build().await;
        let home = hub.folder().join("home");
        let calls = [old_call(3 * DAY), old_call(DAY / 24)];
        let records = calls.each_ref().map(|(start, _)| start.record.clone());
        let store = SqliteStore::open(&home).unwrap();
        for (start, end) in calls {
            store.record_finished(start, end);
        }
        drop(store);
        // Pruning runs once an hour; if this store did it, the hub has to do it again.
        let database = rusqlite::Connection::open(home.join("toolhub.db")).unwrap();
        database.execute("DELETE FROM housekeeping WHERE name = 'kept_house_at'", []).unwrap();
        drop(database);
        assert_eq!(stored(&home, &records).await, [all, all], "{settings}: before");
        assert!(hub.call(ToolCall::new("get_time", json!({}))).await.success());
        let since = Instant::now();
        while stored(&home, &records).await != expect {
            assert!(
                since.elapsed() < Duration::from_secs(10),
                "{settings}: {:?}",
                stored(&home, &records).await
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // Further pruning changes nothing.
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(stored(&home, &records).await, expect, "{settings}: after");
        hub.close().await;
    }
}

/// `detail = "sample"` bounds the records of a burst in the history, `"all"` does not; the statistics count every call.
#[tokio::test]
async fn detail_decides_how_much_of_a_burst_is_stored() {
    const CALLS: usize = 2_000;
    for (detail, is_bounded) in [("sample", true), ("all", false)] {
        let mut hub = TestHub::builder().settings(&format!("[store]\ndetail = \"{detail}\"\n")).build().await;
        let started = Instant::now();
        let burst = (0..CALLS).map(|_| hub.call(ToolCall::new("calculate", json!({"expression": "1+1"}))));
        assert!(join_all(burst).await.iter().all(toolhub::Outcome::success));
        let took = started.elapsed();
        hub.restart().await;
        let store = SqliteStore::open(&hub.folder().join("home")).unwrap();
        let stored = store.calls(CallQuery::default()).await.unwrap().len();
        let counted: u64 = store.statistics().await.unwrap().iter().map(|one| one.tally().total()).sum();
        assert_eq!(counted, CALLS as u64, "{detail}");
        if is_bounded {
            // At most 100 calls per write; writes are 50 ms apart.
            let most = 100 * (2 + usize::try_from(took.as_millis() / 50).unwrap());
            assert!(stored >= 100 && stored <= most, "{stored} of {CALLS} in {took:?}");
        } else {
            assert_eq!(stored, CALLS);
        }
        drop(store);
        hub.close().await;
    }
}

#[test]
fn durability_is_program_or_power() {
    for durability in ["program", "power"] {
        let mut cli = with_settings(&format!("[store]\ndurability = \"{durability}\"\n"));
        cli.server("s", &Script::both().plain_tool("change"));
        assert_eq!(cli.run(&["call", "change"]).code, Some(0), "{durability}");
        let history = cli.run(&["history", "--json"]).json();
        assert_eq!((&history[0]["tool"], &history[0]["status"]), (&json!("change"), &json!("succeeded")));
    }
    let ran = with_settings("[store]\ndurability = \"disk\"\n").run(&["history"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("`disk`") && ran.stderr.contains("`power`"), "{ran:?}");
}

#[test]
fn disabled_native_tools_are_neither_listed_nor_called() {
    let cli = with_settings("[native]\ndisabled = [\"get_time\"]\n");
    let listed = cli.run(&["tools", "--json"]).stdout;
    assert!(listed.contains("\"calculate\"") && !listed.contains("\"get_time\""), "{listed}");
    let unknown = cli.run(&["call", "get_time"]);
    assert!(unknown.code == Some(1) && unknown.stderr.contains("get_time"), "{unknown:?}");
    assert_eq!(cli.run(&["call", "calculate", "expression=1"]).code, Some(0));
}

#[test]
fn serve_listens_at_the_configured_address() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let cli = with_settings(&format!("[serve]\nbind = \"127.0.0.1:{port}\"\n"));
    let mut child = cli.command(&["serve", "--json"]).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let connected = std::net::TcpStream::connect(("127.0.0.1", port));
    child.kill().unwrap();
    child.wait().unwrap();
    let startup: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(startup["mcp"], json!(format!("http://127.0.0.1:{port}/mcp")));
    assert!(connected.is_ok(), "{connected:?}");
}

#[test]
fn prompt_tokens_bound_tool_descriptions() {
    let shown = |settings: &str| {
        let mut cli = with_settings(settings);
        let script = (0..40).fold(Script::both(), |script, number| {
            let description = format!("Looks up item number {number}. {}", "Explains it at length. ".repeat(20));
            let schema = json!({"type": "object"});
            script.tool(
                json!({"name": format!("look_up_{number}"), "description": description, "inputSchema": schema}),
            )
        });
        cli.server("s", &script);
        assert_eq!(cli.run(&["tools"]).code, Some(0));
        let prompt = cli.run(&["prompt", "--query", "look up item number 7", "--json"]).json();
        prompt["system"].as_str().unwrap().len() + prompt["tools"].to_string().len()
    };
    let (large, usual, small) = (
        shown("[agents.default]\nprompt_tokens = 12000\n"),
        shown(""),
        shown("[agents.default]\nprompt_tokens = 500\n"),
    );
    assert!(small < usual && usual < large, "{small}, {usual}, {large} bytes");
}

#[test]
fn cached_and_refresh_decide_whether_servers_are_started() {
    let mut cli = with_settings("");
    let journal = cli.folder().join("journal");
    cli.server("s", &Script::both().plain_tool("echo").journal(&journal));
    let starts = || if journal.exists() { Journal::read(&journal).events("start").len() } else { 0 };
    let lists = |args: &[&str]| {
        let ran = cli.run(args);
        assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
        ran.stdout.contains("echo")
    };
    assert!(!lists(&["tools", "--cached"]), "no list is known yet");
    assert_eq!(starts(), 0);
    assert!(!cli.run(&["tools", "search", "echo", "--cached"]).stdout.contains("echo"));
    assert_eq!(starts(), 0);
    assert!(lists(&["tools"]));
    assert_eq!(starts(), 1);
    assert!(
        lists(&["tools"]) && lists(&["tools", "--cached"]) && lists(&["tools", "search", "echo", "--cached"])
    );
    assert_eq!(starts(), 1, "the list is cached");
    assert!(lists(&["tools", "--refresh"]));
    assert_eq!(starts(), 2);
    assert_eq!(cli.run(&["tools", "--refresh", "--cached"]).code, Some(2), "they contradict each other");
}

fn with_model(server: &ModelServer) -> CommandLine {
    with_settings(&format!("[llm]\nurl = \"{}/v1\"\nmodel = \"scripted\"\n", server.url))
}

#[test]
fn ask_uses_the_named_model_or_none() {
    let server = ModelServer::listing(&["scripted", "other"], [ScriptedReply::text("It is 42.").act()]);
    let cli = with_model(&server);
    let ran = cli.run(&["ask", "what is 6*7?", "--no-llm"]);
    assert!(ran.code == Some(0) && ran.stdout.contains("42"), "{ran:?}");
    assert_eq!(server.bodies(), Vec::<Value>::new(), "the model is not asked");
    for (args, model) in [(&["--model", "other"][..], "other"), (&[], "scripted")] {
        let ran = cli.run(&[&["ask", "what is 6*7?"], args].concat());
        assert!(ran.code == Some(0) && ran.stdout.contains("It is 42."), "{ran:?}");
        assert_eq!(server.bodies().last().unwrap()["model"], model);
    }
    assert_eq!(cli.run(&["ask", "x", "--no-llm", "--model", "other"]).code, Some(2));
}

#[test]
fn conversation_carries_earlier_turns_to_the_model() {
    let server = ModelServer::start([ScriptedReply::text("Noted.").act()]);
    let cli = with_model(&server);
    for (conversation, request, is_continued) in [
        ("c1", "My cat is called Tofu.", false),
        ("c1", "What is its name?", true),
        ("c2", "And now?", false),
    ] {
        let ran = cli.run(&["ask", request, "--conversation", conversation]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let messages = server.bodies().last().unwrap()["messages"].to_string();
        assert!(messages.contains(request), "{messages}");
        if request != "My cat is called Tofu." {
            assert_eq!(messages.contains("Tofu"), is_continued, "{conversation}: {messages}");
        }
    }
    let listed = cli.run(&["chat", "--list", "--json"]).stdout;
    assert!(listed.contains("\"c1\"") && listed.contains("\"c2\""), "{listed}");
}

/// The model sends the answer over seconds; the first output on a pipe is only a part of it.
#[test]
fn stream_prints_answer_incrementally() {
    let text = "one two three four five six seven eight";
    let reply = ScriptedReply::text(text).paced(Pacing::Delayed(Duration::from_millis(60)));
    let server = ModelServer::start([reply.act()]);
    let cli = with_model(&server);
    for (args, is_streamed) in [(&["--stream"][..], true), (&[], false)] {
        let mut child = cli.command(&[&["ask", "count to eight"], args].concat()).spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let mut first = vec![0; 4096];
        let length = stdout.read(&mut first).unwrap();
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).unwrap();
        assert!(child.wait().unwrap().success());
        let first = String::from_utf8(first[..length].to_vec()).unwrap();
        assert_eq!(format!("{first}{rest}").trim_end(), text, "{args:?}");
        assert_eq!(!first.contains("eight"), is_streamed, "{args:?}: {first:?}");
    }
}

/// `--env` and `--cwd` reach the program that the entry starts.
#[test]
fn added_server_starts_with_its_variables_in_its_folder() {
    let cli = with_settings("");
    let folder = tempfile::tempdir().unwrap();
    let script = Script::both()
        .plain_tool("show")
        .on("tools/call:show", json!([{"env": ["GREETING", "OTHER", "PWD"]}]))
        .write(folder.path());
    let program = toolhub_testkit::scripted::binary();
    // `cd .` makes the shell set `PWD` to its current folder.
    let run = format!("cd . && exec '{}' stdio '{}'", program.display(), script.display());
    let cwd = folder.path().to_str().unwrap();
    let ran = cli.run(&[
        "servers",
        "add",
        "s",
        "--env",
        "GREETING=你好 = hello",
        "--env",
        "OTHER=",
        "--cwd",
        cwd,
        "--",
        "sh",
        "-c",
        &run,
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let written: Value =
        serde_json::from_str(&std::fs::read_to_string(cli.folder().join("mcp.json")).unwrap()).unwrap();
    let entry = &written["mcpServers"]["s"];
    assert_eq!(entry["env"], json!({"GREETING": "你好 = hello", "OTHER": ""}));
    assert_eq!(entry["cwd"], json!(cwd));
    let shown = cli.run(&["call", "show"]);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(shown, json!({"GREETING": "你好 = hello", "OTHER": "", "PWD": cwd}));
    let wrong = cli.run(&["servers", "add", "t", "--env", "GREETING", "--", "sh"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}

/// Hints in the spelling of MCP are accepted, and override those of the server.
#[tokio::test]
async fn hints_in_camel_case_override_those_of_the_server() {
    let hints = "readOnlyHint = true, destructiveHint = false, idempotentHint = true, openWorldHint = false";
    let settings = format!("[[servers]]\nid = \"s\"\nhints = {{ change = {{ {hints} }} }}\n");
    let annotations = json!({"readOnlyHint": false, "destructiveHint": true, "openWorldHint": true});
    let tool = json!({"name": "change", "annotations": annotations, "inputSchema": {"type": "object"}});
    let hub = TestHub::builder().settings(&settings).server("s", &Script::both().tool(tool)).build().await;
    hub.list_server("s").await.unwrap().unwrap();
    let found = hub.catalog().named("change").next().unwrap().tool.hints();
    assert_eq!((found.read_only, found.destructive), (Some(true), Some(false)));
    assert_eq!((found.idempotent, found.open_world), (Some(true), Some(false)));
    hub.close().await;
}
