//! What `servers list` and its kin show of servers: what is known from before, and only what is true.

use serde_json::json;
use toolhub_testkit::CommandLine;
use toolhub_testkit::scripted::Script;

fn cli() -> CommandLine {
    CommandLine::new(env!("CARGO_BIN_EXE_toolhub"))
}

/// A reason that one run kept is shown by the next in its own language, whatever language the first one spoke.
#[test]
fn reasons_are_kept_in_both_languages() {
    let english = "program `toolhub-test-none` was not found: install it, or give its full path";
    let chinese = "找不到程序 `toolhub-test-none`：请安装它，或给出完整路径";
    for spoken in ["en", "zh"] {
        let mut cli = cli();
        cli.entry("gone", json!({"command": "toolhub-test-none"}));
        let odd = Script::legacy().plain_tool("good").tool(json!({"name": "bad", "inputSchema": []}));
        cli.server("odd", &odd);
        assert_eq!(cli.run(&["--lang", spoken, "servers", "test"]).code, Some(3));
        let shown = cli.run(&["--lang", "zh", "servers", "list"]);
        assert!(shown.stdout.contains(chinese) && !shown.stdout.contains("not found"), "{shown:?}");
        let shown = cli.run(&["--lang", "zh", "servers", "list", "--json"]).json();
        assert_eq!(shown[0]["error"], chinese);
        let shown = cli.run(&["--lang", "en", "servers", "list"]);
        assert!(shown.stdout.contains(english) && !shown.stdout.contains("找不到"), "{shown:?}");
        let shown = cli.run(&["--lang", "zh", "tools"]);
        assert!(shown.stderr.contains("`odd` 跳过 `bad`：`inputSchema` 不是对象"), "{shown:?}");
        let shown = cli.run(&["--lang", "en", "tools"]);
        assert!(shown.stderr.contains("`odd` skipped `bad`: `inputSchema` is a list"), "{shown:?}");
    }
}
