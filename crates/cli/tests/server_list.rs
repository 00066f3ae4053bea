//! The output of `servers list` and related commands: cached information, and only correct information.

use serde_json::json;
use toolhub_testkit::CommandLine;
use toolhub_testkit::scripted::Script;

fn cli() -> CommandLine {
    CommandLine::new(env!("CARGO_BIN_EXE_toolhub"))
}

/// A stored reason is shown in the language of the current run, independent of the language of the run that stored it.
#[test]
fn stores_failure_reasons_in_both_languages() {
    let english = "program `toolhub-test-none` was not found: install it, or give its full path";
    let chinese = "找不到程序 `toolhub-test-none`：请安装它，或给出完整路径";
    for spoken in ["en", "zh"] {
        let mut cli = cli();
        cli.entry("gone", json!({"command": "toolhub-test-none"}));
        let script = Script::legacy().plain_tool("good").tool(json!({"name": "bad", "inputSchema": []}));
        cli.server("odd", &script);
        assert_eq!(cli.run(&["--lang", spoken, "servers", "test"]).code, Some(3));
        let output = cli.run(&["--lang", "zh", "servers", "list"]);
        assert!(output.stdout.contains(chinese) && !output.stdout.contains("not found"), "{output:?}");
        let output = cli.run(&["--lang", "zh", "servers", "list", "--json"]).json();
        assert_eq!(output[0]["error"], chinese);
        let output = cli.run(&["--lang", "en", "servers", "list"]);
        assert!(output.stdout.contains(english) && !output.stdout.contains("找不到"), "{output:?}");
        let output = cli.run(&["--lang", "zh", "tools"]);
        assert!(output.stderr.contains("`odd` 跳过 `bad`：`inputSchema` 不是对象"), "{output:?}");
        let output = cli.run(&["--lang", "en", "tools"]);
        assert!(output.stderr.contains("`odd` skipped `bad`: `inputSchema` is a list"), "{output:?}");
        let output = cli.run(&["--lang", "zh", "call", "nothing"]);
        assert!(output.stderr.contains(&format!("服务器 `gone` 的工具未知：{chinese}")), "{output:?}");
        let output = cli.run(&["--lang", "zh", "servers", "test", "--trace"]);
        assert!(output.stderr.contains(&format!("无法连接 `gone`：{chinese}")), "{output:?}");
        assert!(output.stderr.contains("跳过：`bad`：`inputSchema` 不是对象"), "{output:?}");
    }
}

/// A definition that is nested too deeply is left out and named; the other tools of the server can be called.
#[test]
fn overly_nested_definition_affects_no_other_tool() {
    for script in [Script::legacy(), Script::modern()] {
        for levels in [70, 3000] {
            let schema = [r#"{"properties":{"a":"#.repeat(levels), "{}".into(), "}}".repeat(levels)].concat();
            let deep = format!(r#"{{"name":"deep","inputSchema":{schema}}}"#);
            let mut cli = cli();
            cli.server("odd", &script.clone().plain_tool("good").tool_text(&deep));
            let output = cli.run(&["tools"]);
            let named = format!("`odd` skipped `deep`: the definition is nested {} deep", 2 * levels + 2);
            assert!(output.code == Some(0) && output.stderr.contains(&named), "{output:?}");
            let called = cli.run(&["call", "good"]);
            assert_eq!(called.code, Some(0), "{called:?}");
            let called = cli.run(&["call", "deep"]);
            assert_ne!(called.code, Some(0), "{called:?}");
        }
    }
}

/// The last stderr lines of a program are shown on request, also by a run that did not start it.
#[test]
fn shows_stderr_tail_on_request() {
    let mut cli = cli();
    let chatty = Script::modern().plain_tool("t").set("stderr", json!(["warming up", "热身完毕"]));
    cli.server("chatty", &chatty);
    cli.server("dies", &Script::legacy().on("*", json!([{"stderr": "out of paper"}, {"exit": 7}])));
    let tested = cli.run(&["servers", "test", "chatty"]);
    assert!(tested.code == Some(0) && !tested.stdout.contains("warming up"), "{tested:?}");
    let tested = cli.run(&["servers", "test", "chatty", "-v"]);
    assert!(tested.stdout.ends_with("\n    warming up\n    热身完毕\n"), "{tested:?}");
    let tested = cli.run(&["servers", "test", "--json"]).json();
    let of = |id: &str| tested.as_array().unwrap().iter().find(|one| one["id"] == id).unwrap().clone();
    assert_eq!(
        (&of("chatty")["stderr"], &of("chatty")["version"]),
        (&json!(["warming up", "热身完毕"]), &json!("2026-07-28"))
    );
    assert_eq!(of("dies")["stderr"].as_array().unwrap().last(), Some(&json!("out of paper")), "{tested}");
    assert_eq!(of("dies")["version"], json!(null));

    let listed = cli.run(&["servers", "list", "--json"]).json();
    let keys = ["id", "transport", "state", "era", "tools", "error"];
    assert!(keys.iter().all(|key| listed[1].get(key).is_some()), "{listed}");
    assert_eq!((&listed[0]["state"], &listed[1]["state"]), (&json!("ready"), &json!("failed")));
    assert_eq!(listed[0]["stderr"], json!(["warming up", "热身完毕"]));
    assert_eq!(listed[1]["listed_at_ms"], json!(null));
    assert_eq!(
        listed[0].get("restarts"),
        Some(&json!(null)),
        "this run started nothing, and knows of no other"
    );
    let listed = cli.run(&["servers", "list"]);
    assert!(!listed.stdout.contains("warming up"), "{listed:?}");
    let listed = cli.run(&["servers", "list", "-v"]);
    assert!(listed.stdout.contains("scripted 0.1.0, listed "), "{listed:?}");
    assert!(listed.stdout.contains("    stderr:\n      warming up\n      热身完毕\n"), "{listed:?}");
    assert!(listed.stdout.contains("      out of paper\n"), "{listed:?}");
    let listed = cli.run(&["servers", "list", "-v", "--lang", "zh"]);
    assert!(listed.stdout.contains("前列出\n    标准错误：\n      warming up"), "{listed:?}");
}
