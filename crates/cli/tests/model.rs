//! The language model of the hub, through the real program: discovery, the report of `doctor`, and the synthesis of several
//! results.

#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::process::Command;

use serde_json::{Value, json};
use toolhub_testkit::CommandLine;
use toolhub_testkit::model::{Act, ModelServer, ScriptedReply};
use toolhub_testkit::scripted::Script;

const KEY: &str = "sk-hunter2";

struct Run {
    code: Option<i32>,
    printed: String,
}

fn run(mut command: Command) -> Run {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let printed = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert!(!printed.contains("hunter"), "{printed}");
    Run { code: output.status.code(), printed }
}

/// The program with this `[llm]` section.
fn configured(llm: &str) -> CommandLine {
    let cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    std::fs::write(cli.folder().join("toolhub.toml"), format!("[llm]\n{llm}\n")).unwrap();
    cli
}

fn model_line(ran: &Run) -> &str {
    ran.printed
        .lines()
        .find(|line| line.contains("model:") || line.contains("模型："))
        .unwrap_or(&ran.printed)
}

#[test]
fn doctor_passes_without_model() {
    let cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    let mut command = cli.command(&["doctor"]);
    // No process listens on port 1.
    command.env("OLLAMA_HOST", "127.0.0.1:1");
    let ran = run(command);
    assert_eq!(ran.code, Some(0), "{}", ran.printed);
    let line = model_line(&ran);
    assert!(line.starts_with("✓ model: none") && line.contains("ANTHROPIC_API_KEY"), "{line}");
    let cli = configured("enabled = false");
    let ran = run(cli.command(&["doctor", "--lang", "zh"]));
    assert!(model_line(&ran).contains("`[llm] enabled = false`"), "{}", ran.printed);
}

#[test]
fn doctor_names_configured_model_and_lists_models() {
    for api in ["openai", "anthropic"] {
        let server = ModelServer::listing(&["scripted", "other"], [ScriptedReply::text("yes").act()]);
        let llm = |model: &str| {
            format!(
                "url = \"{}\"\napi = \"{api}\"\nmodel = \"{model}\"\nkey = \"${{MODEL_KEY}}\"",
                server.url
            )
        };
        let with_key = |cli: &CommandLine, args: &[&str]| {
            let mut command = cli.command(args);
            command.env("MODEL_KEY", KEY);
            run(command)
        };
        let cli = configured(&llm("scripted"));
        let ran = with_key(&cli, &["doctor"]);
        let expect = format!("✓ model: scripted at {} (`[llm] url` in the config): it is there", server.url);
        assert_eq!((ran.code, model_line(&ran)), (Some(0), expect.as_str()), "{}", ran.printed);
        assert!(server.bodies().is_empty(), "looking costs nothing");

        let ran = with_key(&cli, &["doctor", "--ask-model"]);
        assert!(model_line(&ran).contains("it answered in"), "{}", ran.printed);
        assert_eq!(server.bodies().len(), 1);

        let ran = with_key(&configured(&llm("gone")), &["doctor"]);
        let line = model_line(&ran);
        assert!(line.starts_with("! model: gone") && line.contains("`scripted`, `other`"), "{line}");

        let ran = run(cli.command(&["doctor"]));
        assert_eq!(ran.code, Some(2), "{}", ran.printed);
        assert!(model_line(&ran).contains("${MODEL_KEY}, which is not set"), "{}", ran.printed);
    }
}

#[test]
fn unreachable_model_is_a_problem_only_if_configured() {
    let cli = configured(&format!("url = \"http://127.0.0.1:1/v1\"\nmodel = \"m\"\nkey = \"{KEY}\""));
    let ran = run(cli.command(&["doctor"]));
    assert_eq!(ran.code, Some(3), "{}", ran.printed);
    assert!(model_line(&ran).starts_with("✗ model: m at http://127.0.0.1:1"), "{}", ran.printed);

    let cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    let mut command = cli.command(&["doctor"]);
    command
        .env("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
        .env("OPENAI_MODEL", "m")
        .env("OPENAI_API_KEY", KEY);
    let ran = run(command);
    assert_eq!(ran.code, Some(0), "{}", ran.printed);
    assert!(model_line(&ran).starts_with("! model: m at http://127.0.0.1:1"), "{}", ran.printed);
}

#[test]
fn finds_model_on_localhost() {
    let server = ModelServer::listing(&["nomic-embed-text", "qwen3:8b"], []);
    let cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    let mut command = cli.command(&["doctor", "--json"]);
    command.env("OLLAMA_HOST", server.url.strip_prefix("http://").unwrap());
    let output = command.output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap();
    let model = checks.iter().find(|check| check["check"] == "model").unwrap();
    let expect = format!("model: qwen3:8b at {url} (Ollama runs at {url}): it is there", url = server.url);
    assert_eq!((&model["status"], &model["text"]), (&json!("ok"), &json!(expect)));
}

/// Two equivalent servers with different answers to the same question.
fn two_sources(cli: &mut CommandLine) {
    let file = cli.folder().join("toolhub.toml");
    let settings = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{settings}\n[routing]\nequivalent = [[\"one\", \"two\"]]\n")).unwrap();
    let tool = json!({"name": "extract_it", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}});
    for (id, text) in [("one", "Kyoto is sunny"), ("two", "Kyoto is warm")] {
        let answer = json!([{"text": text}]);
        cli.server(id, &Script::legacy().tool(tool.clone()).on("tools/call:extract_it", &answer));
    }
}

#[test]
fn configured_model_merges_several_results() {
    let server = ModelServer::start([ScriptedReply::text("<think>hm</think>Kyoto is sunny and warm.").act()]);
    let mut cli = configured(&format!("url = \"{}\"\nmodel = \"scripted\"", server.url));
    two_sources(&mut cli);
    let printed = cli.run(&["call", "extract_it", "--json"]).json();
    assert_eq!(printed["result"], "Kyoto is sunny and warm.", "{printed}");
    let messages = server.bodies()[0]["messages"].to_string();
    assert!(
        messages.contains("Kyoto is sunny") && messages.contains("Kyoto is warm") && messages.contains("two"),
        "{messages}"
    );
}

#[test]
fn lists_results_separately_without_model() {
    let server = ModelServer::start([Act::refuse(400, "no")]);
    let mut cli = configured(&format!("url = \"{}\"\nmodel = \"scripted\"", server.url));
    two_sources(&mut cli);
    let printed = cli.run(&["call", "extract_it", "--json"]).json();
    let text = printed["result"].to_string();
    assert!(text.contains("Kyoto is sunny") && text.contains("Kyoto is warm"), "{printed}");
    assert_eq!(server.bodies().len(), 1);

    // A key in the environment alone causes no request.
    let silent = ModelServer::start([ScriptedReply::text("never").act()]);
    let mut cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    two_sources(&mut cli);
    let mut command = cli.command(&["call", "extract_it"]);
    command.env("OPENAI_BASE_URL", &silent.url).env("OPENAI_MODEL", "scripted");
    assert!(run(command).printed.contains("Kyoto is warm"));
    assert!(silent.received().is_empty());
}
