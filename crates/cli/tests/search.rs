//! Tool search through the real program: in two languages, by misspelt names, and without a match.

#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use serde_json::{Value, json};
use toolhub_testkit::CommandLine;
use toolhub_testkit::scripted::Script;

fn cli() -> CommandLine {
    let mut cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    let tool = |name: &str, description: &str, parameter: &str| json!({"name": name, "description": description, "inputSchema": {"type": "object", "properties": {parameter: {"type": "string"}}}});
    let script = Script::legacy()
        .tool(tool("read_data_from_excel", "Read data from an Excel worksheet.", "sheet_name"))
        .tool(tool("send_email", "Sends an email to a recipient.", "recipient"))
        .tool(tool("query_train_tickets", "查询两个城市之间的火车票余票", "出发城市"))
        .tool(tool("get_stock_price", "Latest price of a stock by its ticker symbol.", "ticker"));
    cli.server("office", &script);
    cli
}

fn names(cli: &CommandLine, query: &str) -> Vec<String> {
    let found = cli.run(&["tools", "search", query, "--json"]).json();
    found.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn ranks_expected_tool_first_in_both_languages() {
    let cli = cli();
    let check = |query: &str, expect: &str| {
        let found = names(&cli, query);
        assert_eq!(found.first().map(String::as_str), Some(expect), "{query}: {found:?}");
    };
    check("read the rows of an excel sheet", "read_data_from_excel");
    check("读取 Excel 表格里的数据", "read_data_from_excel");
    check("发一封邮件给老板", "send_email");
    check("train tickets between two cities", "query_train_tickets");
    check("查一下股票价格", "get_stock_price");
    // By name, with typos and in another case style.
    check("read_data_from_excel", "read_data_from_excel");
    check("readDataFromExcell", "read_data_from_excel");
    check("sned_email", "send_email");
}

#[test]
fn returns_no_hits_without_match() {
    let cli = cli();
    for query in ["tune my guitar to drop d", "给我的猫洗澡"] {
        assert_eq!(names(&cli, query), Vec::<String>::new(), "{query}");
        let output = cli.run(&["tools", "search", query]);
        assert_eq!((output.code, output.stdout.as_str()), (Some(0), ""), "{output:?}");
        assert!(output.stderr.contains("no tool fits"), "{output:?}");
    }
    let all = cli.run(&["tools", "search", "latest gossip about dragons", "--all", "--json"]).json();
    assert!(!all.as_array().unwrap().is_empty());
}

#[test]
fn search_is_deterministic_and_reports_confidence() {
    let cli = cli();
    let ask = || cli.run(&["tools", "search", "read or send data to a city", "--all", "--json"]).json();
    let first = ask();
    assert!(first.as_array().unwrap().len() > 2, "{first}");
    for tool in first.as_array().unwrap() {
        let confidence = tool["confidence"].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&confidence) && tool["score"].is_number(), "{tool}");
    }
    assert_eq!(ask(), first);
    let none = cli.run(&["tools", "search", "email", "-n", "0"]);
    assert_eq!(none.code, Some(2), "{none:?}");
    assert!(none.stderr.contains("give at least 1"), "{none:?}");
}

#[test]
fn explains_scores_and_uses_history() {
    let cli = cli();
    let found = cli.run(&["tools", "search", "get_stock_price", "--explain", "--json"]).json();
    assert!(found[0]["parts"]["named"].as_f64().unwrap() > 1.0, "{found}");
    let sum: f64 = found[0]["parts"].as_object().unwrap().values().filter_map(Value::as_f64).sum();
    assert!((sum - found[0]["score"].as_f64().unwrap()).abs() < 0.01, "{found}");
    let history = |found: &Value| {
        let tools = found.as_array().unwrap();
        let time = tools.iter().find(|tool| tool["name"] == "get_time").unwrap();
        time["parts"]["history"].as_f64().unwrap()
    };
    let ask = || cli.run(&["tools", "search", "what is the hour in Kyoto", "--explain", "--json"]).json();
    assert_eq!(history(&ask()), 0.0);
    assert_eq!(cli.run(&["call", "get_time", "--for", "what is the hour in Kyoto now"]).code, Some(0));
    assert!(history(&ask()) > 0.0);
}

#[test]
fn model_searches_and_describes_tools() {
    let cli = cli();
    let found = cli.run(&["call", "search_tools", "query=给同事发邮件", "--json"]).json();
    // The server `office` was never listed: a search in the catalog does not start it.
    assert_eq!(found["success"], true, "{found}");
    assert_eq!(cli.run(&["tools"]).code, Some(0));
    let found = cli.run(&["call", "search_tools", "query=给同事发邮件", "--json"]).json();
    assert_eq!(found["structuredContent"]["tools"][0]["name"], "send_email", "{found}");
    let output = cli.run(&["call", "describe_tool", "name=send_email", "--json"]).json();
    assert!(
        output["structuredContent"]["tools"][0]["inputSchema"]["properties"]["recipient"].is_object(),
        "{output}"
    );
    let slip = cli.run(&["call", "describe_tool", "name=send_emial"]);
    assert!(slip.stderr.contains("did you mean `send_email`"), "{slip:?}");
}

#[test]
fn eval_search_measures_query_set() {
    let cli = cli();
    let write = |name: &str, lines: &[Value]| {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(cli.folder().join(name), text).unwrap();
    };
    write(
        "tools.jsonl",
        &[
            json!({"id": "1", "name": "weather", "description": "Weather of a city", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}),
            json!({"name": "alarm", "description": "Sets an alarm clock", "inputSchema": {"type": "object"}}),
        ],
    );
    write(
        "queries.jsonl",
        &[
            json!({"query": "weather in Kyoto", "relevant": ["1"]}),
            json!({"query": "设一个闹钟", "relevant": ["alarm"]}),
        ],
    );
    let args = ["eval", "search", "--tools", "tools.jsonl", "--queries", "queries.jsonl"];
    let report = cli.run(&[&args[..], &["--json"]].concat()).json();
    assert_eq!((&report["queries"], &report["recall@1"]), (&json!(2), &json!(1.0)), "{report}");
    assert!(report["latency_ms"]["p99"].as_f64().unwrap() > 0.0 && report["index_ms"].is_number());
    std::fs::write(cli.folder().join("other.json"), json!({"translation": 0.0}).to_string()).unwrap();
    let both = cli.run(&[&args[..], &["--compare", "other.json", "--json"]].concat()).json();
    assert_eq!(
        (&both["now"]["recall@1"], &both["other.json"]["queries"]),
        (&json!(1.0), &json!(2)),
        "{both}"
    );
    assert!(cli.run(&args).stdout.contains("nDCG@10"));
    write(
        "doubtful.jsonl",
        &[
            json!({"query": "weather in Kyoto", "relevant": ["1", "1", "nobody"]}),
            json!({"query": "wash my cat", "relevant": []}),
            json!({"query": "set an alarm clock", "relevant": []}),
        ],
    );
    let doubtful = ["eval", "search", "--tools", "tools.jsonl", "--queries", "doubtful.jsonl"];
    let output = cli.run(&[&doubtful[..], &["--json"]].concat());
    assert!(output.stderr.contains("1 ids under `relevant` are of no tool (such as `nobody`)"), "{output:?}");
    let report = output.json();
    assert_eq!((&report["queries"], &report["recall@1"]), (&json!(1), &json!(0.5)), "{report}");
    assert_eq!((&report["unanswerable"], &report["refused"]), (&json!(2), &json!(0.5)), "{report}");
    assert!(cli.run(&doubtful).stdout.contains("50.0 (2)"));
    write("twins.jsonl", &[json!({"name": "alarm"}), json!({"name": "alarm"})]);
    let twins = cli.run(&["eval", "search", "--tools", "twins.jsonl", "--queries", "queries.jsonl"]);
    assert!(twins.stderr.contains("1 tool has the id of another (such as `alarm`)"), "{twins:?}");
    write("empty.jsonl", &[]);
    let empty = cli.run(&["eval", "search", "--tools", "tools.jsonl", "--queries", "empty.jsonl"]);
    assert_eq!(empty.code, Some(2), "{empty:?}");
    assert!(empty.stderr.contains("`empty.jsonl` has no line"), "{empty:?}");
    write("broken.jsonl", &[json!({"query": 7})]);
    let broken = cli.run(&["eval", "search", "--tools", "tools.jsonl", "--queries", "broken.jsonl"]);
    assert_eq!(broken.code, Some(2));
    assert!(broken.stderr.contains("line 1 of `broken.jsonl`"), "{broken:?}");
}
