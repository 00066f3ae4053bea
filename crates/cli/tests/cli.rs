//! The command line of the real program: results, errors, exit codes, both languages.

use std::fs;

use serde_json::json;
use toolhub_testkit::scripted::{Journal, Script};
use toolhub_testkit::{CommandLine, CommandOutput};

fn cli() -> CommandLine {
    CommandLine::new(env!("CARGO_BIN_EXE_toolhub"))
}

/// The output of a run, with its folder replaced.
fn printed(cli: &CommandLine, ran: &CommandOutput) -> String {
    let text = format!("exit {}\n{}\n--- stderr\n{}", ran.code.unwrap_or(-1), ran.stdout, ran.stderr);
    text.replace(&*cli.folder().to_string_lossy(), "FOLDER")
}

/// A server with one plain tool and one that is slow.
fn sheet() -> Script {
    Script::legacy()
        .tool(json!({"name": "read_sheet", "description": "Reads a sheet.", "inputSchema": {
        "type": "object", "additionalProperties": false, "required": ["filepath"],
        "properties": {
            "filepath": {"type": "string", "description": "Where the file is"},
            "rows": {"type": "integer", "default": 10},
            "mode": {"enum": ["fast", "full"]},
        }}}))
        .tool(json!({"name": "slow", "inputSchema": {"type": "object"}}))
        .on("tools/call:slow", json!([{"delay_ms": 60000}]))
}

#[test]
fn call_prints_only_its_result() {
    let cli = cli();
    let ran = cli.run(&["call", "calculate", "expression=0.1+0.2"]);
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), "0.3\n", ""));
}

#[test]
fn bare_command_prints_welcome() {
    let cli = cli();
    // The start page is for a machine without a config.
    fs::remove_file(cli.folder().join("toolhub.toml")).unwrap();
    let _ = fs::remove_file(cli.folder().join("mcp.json"));
    insta::assert_snapshot!("start_en", cli.run(&[]).stdout);
    insta::assert_snapshot!("start_zh", cli.run(&["--lang", "zh"]).stdout);
}

#[test]
fn help_is_localized() {
    let cli = cli();
    insta::assert_snapshot!("help_en", cli.run(&["--help"]).stdout);
    insta::assert_snapshot!("help_zh", cli.run(&["--help", "--lang=zh"]).stdout);
    insta::assert_snapshot!("help_call_zh", cli.run(&["call", "--help", "--lang=zh"]).stdout);
    let by_locale = cli.command(&["--help"]).env("LC_ALL", "zh_CN.UTF-8").output().unwrap();
    assert!(String::from_utf8(by_locale.stdout).unwrap().contains("用法："));
}

#[test]
fn usage_error_exits_with_code_two() {
    let cli = cli();
    let check = |args: &[&str], says: &str| {
        let ran = cli.run(args);
        assert_eq!(ran.code, Some(2), "{args:?} {ran:?}");
        assert!(ran.stderr.contains(says), "{args:?} {ran:?}");
        assert_eq!(ran.stdout, "", "{args:?}");
    };
    check(&["cal"], "call");
    check(&["cal", "--lang", "zh"], "未知命令 `cal`\n\n  提示：是否想用 `call`");
    check(&["aks"], "a similar subcommand exists: 'ask'");
    check(&["aks", "--lang", "zh"], "是否想用 `ask`");
    check(&["servers", "lits"], "'list'");
    check(&["call"], "TOOL");
    check(&["call", "calculate", "oops"], "write it as key=value");
    check(&["call", "calculate", "--args", "{"], "not valid JSON");
    check(&["call", "calculate", "--timeout", "soon"], "write it like `30s`");
    check(&["--config", "none.toml", "tools"], "there is no config file `none.toml`");
    check(&["servers", "remove", "none"], "there is no server `none`");
    check(&["servers", "add", "native", "--", "x"], "cannot be a server's name");
    check(&["servers", "add", "x"], "say how to reach it");
    check(&["servers", "add", "x", "--url", "foo"], "write it with `http://`");
    check(&["servers", "add", "x", "--header", "A=1", "--", "true"], "are for servers with a `--url`");
    check(&["help", "nothing"], "there is no command `nothing`");
    check(&["tools", "--source", "none"], "there is no source `none`: there are `native`");
}

/// As in English: the error, a tip, the usage line and a pointer to the help.
#[test]
fn localizes_usage_errors() {
    let cli = cli();
    for (args, says) in [
        (
            &["call", "x", "--tiemout", "3"][..],
            &["未知参数 `--tiemout`", "提示：是否想用 `--timeout`？", "用法：toolhub call"][..],
        ),
        (&["call"], &["缺少必需的参数：\n  <工具>", "用法：toolhub call", "<工具> [键=值]..."]),
        (&["call", "x", "--timeout", "soon"], &["`soon` 不是时间：请写成 `30s`"]),
        (&["call", "x", "--timeout"], &["`--timeout <TIME>` 缺少值"]),
        (&["call", "--nope"], &["请写成 `-- --nope`", "用法：toolhub call [选项] [工具] [键=值]..."]),
        (&["history", "--limit", "many"], &["`--limit <COUNT>` 的值 `many` 无效：应为整数"]),
        (&["--color", "blue"], &["[可用值：auto、always、never]"]),
        (&["serve", "--bind", "x"], &["不是可监听的地址"]),
        (&["--lang", "fr"], &[]),
        (&["trust", "--list", "--revoke"], &["`--list` 不能与 `--revoke [<PATH>]` 同时使用"]),
        (&["eval"], &["用法：toolhub eval [选项] <命令>"]),
        (&["eval", "plan"], &["缺少必需的参数：\n  --tools <FILE>\n  --requests <FILE>"]),
    ] {
        let output = cli.command(args).env("LC_ALL", "zh_CN.UTF-8").output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?} {stderr}");
        for phrase in says {
            assert!(stderr.contains(phrase), "{args:?} {stderr}");
        }
        for english in ["error", "Usage", "tip:", "OPTIONS", "For more", "invalid", "required"] {
            assert!(!stderr.contains(english), "{args:?} has `{english}`: {stderr}");
        }
    }
    let help = cli.run(&["servers", "--help", "--lang=zh"]).stdout;
    assert!(help.contains("用法：toolhub servers [选项] [命令]") && help.contains("[别名：rm]"), "{help}");
}

#[test]
fn tools_are_listed_shown_and_explained() {
    let mut cli = cli();
    cli.server("sheets", &sheet());
    insta::assert_snapshot!("tools_show", printed(&cli, &cli.run(&["tools", "show", "read_sheet"])));
    insta::assert_snapshot!(
        "tools_show_zh",
        printed(&cli, &cli.run(&["tools", "show", "read_sheet", "--lang", "zh"]))
    );
    insta::assert_snapshot!("tools_one_source", printed(&cli, &cli.run(&["tools", "--source", "sheets"])));
    insta::assert_snapshot!("servers_list", printed(&cli, &cli.run(&["servers", "list"])));
    let mut listed = cli.run(&["servers", "list", "--json"]).json();
    assert!(listed[0]["listed_at_ms"].as_u64() > Some(1_700_000_000_000), "{listed}");
    listed[0]["listed_at_ms"] = json!("a time");
    insta::assert_snapshot!("servers_list_json", listed);
    insta::assert_snapshot!(
        "explain",
        printed(&cli, &cli.run(&["explain", "read_sheet", "--source", "appflowy"]))
    );
    let explained = cli.run(&["explain", "read_sheet", "--source", "appflowy", "--json"]).json();
    assert_eq!(explained["candidates"][0]["source"], "sheets");
    assert!(explained["reasons"][0].as_str().unwrap().contains("often a model's guess"), "{explained}");
}

#[test]
fn reports_call_failure_once() {
    let mut cli = cli();
    let script = sheet()
        .plain_tool("broken")
        .on("tools/call:broken", json!([{"tool_error": "no such sheet `甲`"}]))
        .plain_tool("refused")
        .on("tools/call:refused", json!([{"error": {"code": -32001, "message": "not today"}}]))
        .plain_tool("garbled")
        .on("tools/call:garbled", json!([{"raw": "{\"jsonrpc\":\"2.0\",\"id\":"}]))
        .plain_tool("dies")
        .on("tools/call:dies", json!([{"stderr": "out of paper"}, {"exit": 7}]));
    cli.server("sheets", &script);
    let check = |args: &[&str], code: i32, kind: &str, says: &str| {
        let ran = cli.run(args);
        assert_eq!(ran.code, Some(code), "{args:?} {ran:?}");
        assert!(ran.stderr.starts_with("error: ") && ran.stderr.contains(says), "{args:?} {ran:?}");
        assert_eq!(ran.stderr.matches("error: ").count(), 1, "{ran:?}");
        assert_eq!(ran.stdout, "");
        let ran = cli.run(&[args, &["--json"]].concat());
        let outcome = ran.json();
        assert_eq!((ran.code, outcome["success"].as_bool()), (Some(code), Some(false)), "{outcome}");
        assert_eq!(outcome["_meta"]["error_kind"], kind, "{outcome}");
    };
    check(&["call", "read_sheet", "rows=x"], 1, "invalid_arguments", "`filepath` is missing");
    check(
        &["call", "read_sheet", "--args", r#"{"colour":"a"}"#],
        1,
        "invalid_arguments",
        "there is no argument `colour`",
    );
    check(
        &["call", "read_sheet", "filepath=a", "rows=x"],
        1,
        "invalid_arguments",
        "`rows` should be integer, got \"x\"",
    );
    check(
        &["call", "read_sheet", "filepath=a", "modes=full"],
        1,
        "invalid_arguments",
        "there is no argument `modes` (did you mean `mode`?)",
    );
    check(
        &["call", "read_sheets"],
        1,
        "unknown_tool",
        "there is no tool `read_sheets`; did you mean `read_sheet`?",
    );
    check(&["call", "broken"], 1, "tool_failed", "no such sheet `甲`");
    check(&["call", "refused"], 1, "mcp_error", "server `sheets` answered with MCP error -32001: not today");
    check(&["call", "garbled"], 1, "unreadable_answer", "the answer of server `sheets` could not be read");
    check(
        &["call", "dies"],
        3,
        "connection_failed",
        "stopped during the call (exit 7); whether it took effect is unknown",
    );
    check(&["call", "dies"], 3, "connection_failed", "  out of paper");
    check(
        &["call", "slow", "--timeout", "300ms"],
        124,
        "timed_out",
        "no answer within 300 ms; whether it took effect is unknown",
    );
    check(&["call", "read_file", "path=无.txt"], 1, "tool_failed", "无.txt");
}

#[test]
fn localizes_errors() {
    let mut cli = cli();
    cli.server("sheets", &sheet());
    let check = |args: &[&str], says: &str| {
        let ran = cli.run(&[args, &["--lang", "zh"]].concat());
        assert!(ran.stderr.starts_with("错误：") && ran.stderr.contains(says), "{args:?} {ran:?}");
    };
    check(&["call", "read_sheet"], "`read_sheet` 的参数不对：缺少 `filepath`");
    check(&["call", "read_sheets"], "没有工具 `read_sheets`；是否想用 `read_sheet`？");
    check(&["call", "slow", "--timeout", "300ms"], "300 ms 内没有回答；是否生效未知");
    fs::write(cli.folder().join("mcp.json"), "{\n  \"mcpServers\": 5\n}").unwrap();
    check(&["tools"], "mcp.json` 第 2 行第 17 列：`mcpServers` 应为对象");
}

#[test]
fn reports_position_in_invalid_config_and_keeps_file() {
    let cli = cli();
    let check = |file: &str, text: &str, says: &str| {
        let path = cli.folder().join(file);
        fs::write(&path, text).unwrap();
        for args in
            [&["tools"][..], &["call", "calculate", "expression=1"], &["servers", "add", "new", "--", "x"]]
        {
            let ran = cli.run(args);
            assert_eq!(ran.code, Some(2), "{args:?} {ran:?}");
            assert!(ran.stderr.contains(says), "{args:?} {ran:?}");
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        fs::write(&path, "").unwrap();
    };
    check("toolhub.toml", "[limits]\ncall = \n", "toolhub.toml`, line 2, column 8:");
    check("toolhub.toml", "[limits]\ncall = \"x\"\n", "toolhub.toml`, line 2, column 8: `x` is not a time");
    check(
        "mcp.json",
        "{\n  \"mcpServers\": {\n    \"a\" {}\n  }\n}",
        "mcp.json`, line 3, column 9: not valid JSON",
    );
    check(
        "mcp.json",
        "{\"mcpServers\": {\"a\": {\"command\": 1}}}",
        "`command` of server `a` should be a string",
    );
    check(".mcp.json", "{", ".mcp.json`, line 1, column 1: not valid JSON");
}

#[test]
fn reports_dead_server_and_serves_others() {
    let mut cli = cli();
    cli.entry("dead", json!({"command": "no-such-program-anywhere"}));
    cli.entry("gone", json!({"url": "http://127.0.0.1:9/mcp"}));
    cli.server("alive", &sheet());
    let ran = cli.run(&["tools"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("read_sheet"), "{ran:?}");
    assert!(
        ran.stderr
            .contains("the tools of `dead` are not known: program `no-such-program-anywhere` was not found")
    );
    assert!(
        ran.stderr.contains("the tools of `gone` are not known: nothing listens at 127.0.0.1:9"),
        "{ran:?}"
    );
    let ran = cli.run(&["call", "read_sheet", "filepath=a"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "{\"filepath\":\"a\"}\n"), "{ran:?}");
    for (server, cause) in
        [("dead", "was not found"), ("gone", "start the server, or correct its URL (Connection refused")]
    {
        let ran = cli.run(&["call", "anything", "--source", server]);
        assert_eq!(ran.code, Some(3), "{ran:?}");
        let says = format!("server `{server}` could not be reached");
        assert!(ran.stderr.contains(&says) && ran.stderr.contains(cause), "{ran:?}");
    }
    let ran = cli.run(&["call", "anything"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("there is no tool `anything`"), "{ran:?}");
    let ran = cli.run(&["servers", "test"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let ran = cli.run(&["doctor"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stdout.contains("✓ alive") && ran.stdout.contains("✗ dead"), "{ran:?}");
}

#[test]
fn servers_are_added_tested_and_removed() {
    let cli = cli();
    let script = sheet().write(cli.folder());
    let program = toolhub_testkit::scripted::binary();
    let (program, script) = (program.to_str().unwrap(), script.to_str().unwrap());
    let ran = cli.run(&["servers", "add", "sheets", "--", program, "stdio", script]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("✓ sheets  2 tools (scripted"), "{ran:?}");
    assert_eq!(cli.run(&["call", "read_sheet", "filepath=甲.xlsx"]).stdout, "{\"filepath\":\"甲.xlsx\"}\n");
    let again = cli.run(&["servers", "add", "sheets", "--url", "http://127.0.0.1:9/mcp"]);
    assert_eq!(again.code, Some(2), "{again:?}");
    assert!(again.stderr.contains("exists already"), "{again:?}");
    let unreachable =
        cli.run(&["servers", "add", "far", "--url", "http://127.0.0.1:9/mcp", "--header", "X-Key=${KEY}"]);
    assert_eq!(unreachable.code, Some(3), "{unreachable:?}");
    assert!(unreachable.stdout.contains("its config uses ${KEY}, which is not set"), "{unreachable:?}");
    assert!(unreachable.stderr.contains("it stays in the config"), "{unreachable:?}");
    assert_eq!(cli.run(&["servers", "remove", "sheets"]).code, Some(0));
    let text = fs::read_to_string(cli.folder().join("mcp.json")).unwrap();
    assert!(!text.contains("sheets") && text.contains("${KEY}"), "{text}");
    assert_eq!(cli.run(&["call", "read_sheet", "filepath=a", "--source", "sheets"]).code, Some(2));
}

#[test]
fn shows_unusual_definition_unchanged() {
    let definition = r#"{"x-vendor":{"b":[1.50,1E2],"a":{"n":1234567890123456789012345678901234567890}},"inputSchema":{"type":"object","x-order":1,"properties":{"z":{},"a":{}}},"name":"odd","source":"vendor's own","description":"奇"}"#;
    let mut cli = cli();
    cli.server("vendor", &Script::legacy().tool_text(definition));
    let printed = cli.run(&["tools", "show", "odd", "--json"]).stdout;
    assert!(printed.starts_with(&definition[..definition.len() - 1]), "{printed}");
    assert!(printed.contains("\"toolhub/source\":\"vendor\""), "{printed}");
    // The same from the cache, and in the list.
    assert_eq!(cli.run(&["tools", "show", "odd", "--json"]).stdout, printed);
    assert!(cli.run(&["tools", "--json"]).stdout.contains(&definition[1..definition.len() - 1]));
}

#[test]
fn forwards_large_numbers_and_unusual_results() {
    let mut cli = cli();
    let raw = r#"{"content":[{"type":"text","text":"a"},{"type":"hologram","depth":1234567890123456789012345678901234567890}],"structuredContent":{"z":1.50,"a":1},"vendor":true}"#;
    let journal = cli.folder().join("journal");
    let script = Script::legacy()
        .tool_text(r#"{"name":"odd","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}}}}"#)
        .on(
            "tools/call:odd",
            serde_json::value::RawValue::from_string(format!(r#"[{{"reply":{raw}}}]"#)).unwrap(),
        )
        .journal(&journal);
    cli.server("vendor", &script);
    let ran = cli.run(&["call", "odd", "n=1234567890123456789012345678901234567890", "--json"]);
    assert!(
        ran.stdout.contains(r#"{"type":"hologram","depth":1234567890123456789012345678901234567890}"#),
        "{ran:?}"
    );
    assert!(ran.stdout.contains(r#""structuredContent":{"z":1.50,"a":1}"#), "{ran:?}");
    let sent = fs::read_to_string(&journal).unwrap();
    assert!(sent.contains(r#""arguments":{"n":1234567890123456789012345678901234567890}"#), "{sent}");
}

#[test]
fn cached_list_needs_no_server_start() {
    let mut cli = cli();
    let journal = cli.folder().join("journal");
    for id in 0..20 {
        let script = Script::legacy().plain_tool(&format!("tool_{id}")).journal(&journal);
        cli.server(&format!("server_{id}"), &script);
    }
    assert_eq!(cli.run(&["servers", "test"]).code, Some(0));
    let started = Journal::read(&journal).events("start").len();
    assert_eq!(started, 20, "a first meeting starts each once");
    let ran = cli.run(&["tools"]);
    assert!((0..20).all(|id| ran.stdout.contains(&format!("tool_{id}"))), "{ran:?}");
    cli.run(&["explain", "tool_7"]);
    assert_eq!(
        Journal::read(&journal).events("start").len(),
        started,
        "listing from the cache starts nothing"
    );
    assert_eq!(cli.run(&["call", "tool_7"]).code, Some(0));
    assert_eq!(Journal::read(&journal).events("start").len(), started + 1, "a call starts the one it needs");
}

#[test]
fn reads_arguments_from_file_and_stdin() {
    let mut cli = cli();
    cli.server("sheets", &sheet());
    fs::write(cli.folder().join("args.json"), "{\"filepath\": \"文件.xlsx\"}").unwrap();
    let ran = cli.run(&["call", "read_sheet", "--args", "@args.json", "rows=3"]);
    assert_eq!(ran.stdout, "{\"filepath\":\"文件.xlsx\",\"rows\":3}\n", "{ran:?}");
    let mut command = cli.command(&["call", "read_sheet", "--args", "-"]);
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"{\"filepath\": \"p\"}").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.stdout, b"{\"filepath\":\"p\"}\n");
}

#[test]
fn prints_completions() {
    let cli = cli();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let ran = cli.run(&["completions", shell]);
        assert!(ran.code == Some(0) && ran.stdout.contains("toolhub"), "{shell}");
    }
}

#[test]
fn ignores_broken_pipe() {
    let mut cli = cli();
    let many = (0..2000).fold(Script::legacy(), |script, id| script.plain_tool(&format!("tool_{id}")));
    cli.server("many", &many);
    cli.run(&["servers", "test"]);
    let mut child = cli.command(&["tools"]).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn call_works_without_writable_data_directory() {
    let cli = cli();
    fs::write(cli.folder().join("home"), "a file where the folder should be").unwrap();
    let ran = cli.run(&["call", "calculate", "expression=1+1"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "2\n"), "{ran:?}");
    assert!(ran.stderr.contains("warning: nothing can be kept in"), "{ran:?}");
}

#[test]
fn prints_errors_as_json() {
    let cli = cli();
    for args in
        [&["servers", "remove", "none", "--json"][..], &["call", "calculate", "--args", "{", "--json"]]
    {
        let ran = cli.run(args);
        assert_eq!((ran.code, &ran.json()["success"]), (Some(2), &json!(false)), "{ran:?}");
        assert_eq!(ran.json()["_meta"]["error_kind"], "usage");
    }
}

#[test]
fn exits_with_failure_if_output_cannot_be_written() {
    let cli = cli();
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = cli.command(&["call", "calculate", "expression=1"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn prints_tool_output_byte_for_byte() {
    let cli = cli();
    fs::write(cli.folder().join("colours.txt"), "a\u{1b}[31mred\u{1b}[0m\n").unwrap();
    assert_eq!(cli.run(&["call", "read_file", "path=colours.txt"]).stdout, "a\u{1b}[31mred\u{1b}[0m\n");
}

#[test]
fn reports_unknown_settings() {
    let cli = cli();
    fs::write(cli.folder().join("toolhub.toml"), "[limits]\ncal = \"30s\"\n").unwrap();
    let ran = cli.run(&["call", "calculate", "expression=1"]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.stderr.contains("line 2, column 1: unknown setting `cal`; did you mean `call`?"), "{ran:?}");
}

#[test]
fn concurrent_config_edits_are_all_kept() {
    let cli = cli();
    let ids: Vec<String> = (0..8).map(|id| format!("server_{id}")).collect();
    let children: Vec<_> = ids
        .iter()
        .map(|id| cli.command(&["servers", "add", id, "--no-test", "--", "true"]).spawn().unwrap())
        .collect();
    for child in children {
        assert!(child.wait_with_output().unwrap().status.success());
    }
    let saved = fs::read_to_string(cli.folder().join("mcp.json")).unwrap();
    assert!(ids.iter().all(|id| saved.contains(id.as_str())), "{saved}");
}

/// A server that never answers may delay the first call by a second, but not every call.
#[test]
fn waits_once_for_hanging_server() {
    let mut cli = cli();
    cli.entry("hangs", json!({"command": "sleep", "args": ["300"]}));
    let took: Vec<_> = (0..3)
        .map(|_| {
            let started = std::time::Instant::now();
            let ran = cli.run(&["call", "calculate", "expression=1"]);
            assert_eq!(ran.code, Some(0), "{ran:?}");
            started.elapsed()
        })
        .collect();
    assert!(took[0].as_millis() > 1000 && took[0].as_secs() < 4, "{took:?}");
    assert!(took[1..].iter().any(|took| took.as_millis() < 1000), "{took:?}");
}
