//! `toolhub run` and `toolhub parse`: model output on stdin, results on stdout.

#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};
use toolhub_testkit::CommandLine;
use toolhub_testkit::scripted::Script;

fn cli() -> CommandLine {
    CommandLine::new(env!("CARGO_BIN_EXE_toolhub"))
}

/// Runs the program with this standard input. Returns exit code, stdout and stderr.
fn run_with_stdin(cli: &CommandLine, args: &[&str], text: &str) -> (Option<i32>, String, String) {
    let mut command = cli.command(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// The contents of the `<tool_result>` elements.
fn results(printed: &str) -> Vec<Value> {
    let blocks = printed.split("<tool_result>").skip(1);
    blocks.map(|block| serde_json::from_str(block.split("</tool_result>").next().unwrap()).unwrap()).collect()
}

#[test]
fn runs_and_answers_calls_in_order() {
    let text = "Two sums.\n<tool_call>{\"id\": \"call_001\", \"tool_name\": \"calculate\", \"arguments\": {\"expression\": \
                \"2+3\"}}</tool_call>\nand\n<tool_call>{'name': 'calculate', 'arguments': {'expression': '6*7',}}";
    let (code, printed, errors) = run_with_stdin(&cli(), &["run"], text);
    assert_eq!((code, errors.as_str()), (Some(0), ""), "{printed}");
    let found = results(&printed);
    assert_eq!(found[0]["id"], "call_001");
    assert_eq!((&found[0]["success"], &found[0]["result"]), (&json!(true), &json!("5")));
    assert_eq!(found[1]["result"], "42");
    assert!(found[0].get("repaired").is_none(), "{printed}");
    assert!(!found[1]["repaired"].as_array().unwrap().is_empty(), "{printed}");
}

#[test]
fn with_json_run_prints_outcomes() {
    let text = "[TOOL_CALLS]calculate[ARGS]{\"expression\": \"2+3\"}";
    let (code, printed, _) = run_with_stdin(&cli(), &["run", "--json"], text);
    let outcomes: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(code, Some(0));
    assert_eq!(outcomes.as_array().map(Vec::len), Some(1), "{outcomes}");
    assert_eq!((&outcomes[0]["success"], &outcomes[0]["result"]), (&json!(true), &json!("5")));
    let called = (&outcomes[0]["tool"], &outcomes[0]["arguments"]);
    assert_eq!(called, (&json!("calculate"), &json!({"expression": "2+3"})));
    let (code, printed, _) = run_with_stdin(&cli(), &["run", "--json"], "Nothing to do.");
    assert_eq!((code, printed.trim()), (Some(0), "[]"));
}

#[test]
fn reports_unreadable_calls_to_the_model() {
    let check = |text: &str, says: &str| {
        let (code, printed, _) = run_with_stdin(&cli(), &["run"], text);
        assert_eq!(code, Some(1), "{printed}");
        let found = results(&printed);
        let error = found.last().unwrap()["error"].as_str().unwrap();
        assert!(error.contains(says), "{error}");
    };
    check("<tool_call>{what is this</tool_call>", "write it as <tool_call>");
    check("<tool_call>{\"name\": \"calculate\", \"arguments\": {\"expression\": \"2+", "broke off");
    check("<tool_call>{\"name\": \"calcualte\", \"arguments\": {}}</tool_call>", "calculate");
    check("<tool_call>{\"name\": \"calculate\", \"arguments\": {}}</tool_call>", "`expression` is missing");
}

#[test]
fn ignores_calls_in_thoughts_and_quotes() {
    let call = "<tool_call>{\"name\": \"calculate\", \"arguments\": {\"expression\": \"1\"}}</tool_call>";
    for text in [format!("<think>{call}</think>"), format!("<tool_result>{call}</tool_result>")] {
        let (code, printed, _) = run_with_stdin(&cli(), &["run"], &text);
        assert_eq!((code, printed.as_str()), (Some(0), ""), "{text}");
    }
}

/// A server that returns its arguments.
fn sheets() -> Script {
    Script::legacy().tool(json!({"name": "read_sheet", "inputSchema": {
    "type": "object", "required": ["filepath"], "properties": {
        "filepath": {"type": "string"},
        "sheet_name": {"type": "string"},
        "rows": {"type": "integer"},
        "columns": {"type": "array", "items": {"type": "string"}},
    }}}))
}

#[test]
fn coerces_slightly_wrong_arguments_and_reports_it() {
    let mut cli = cli();
    cli.server("sheets", &sheets());
    let text = "<tool_call>{\"tool_name\": \"read_sheet\", \"arguments\": {\"file_path\": \"a.xlsx\", \"sheetName\": \"May\", \
                \"rows\": \"5\", \"columns\": \"A\"}}</tool_call>";
    let (code, printed, errors) = run_with_stdin(&cli, &["run", "--json"], text);
    assert_eq!(code, Some(0), "{printed}{errors}");
    let outcomes: Value = serde_json::from_str(&printed).unwrap();
    let repairs = outcomes[0]["_meta"]["repaired"].as_array().unwrap();
    assert_eq!(repairs.len(), 4, "{repairs:?}");
    // The history contains the arguments that were sent.
    let history = cli.run(&["history", "--json"]).json();
    let sent = history[0]["arguments"].clone();
    assert_eq!(
        sent,
        json!({"filepath": "a.xlsx", "sheet_name": "May", "rows": 5, "columns": ["A"]}),
        "{history}"
    );
}

#[test]
fn coerces_command_line_arguments() {
    let mut cli = cli();
    cli.server("sheets", &sheets());
    for args in [
        ["call", "read_sheet", "file_path=a.xlsx"].as_slice(),
        &["call", "read_sheet", "--args", r#"{"filePath": "a.xlsx"}"#],
    ] {
        let ran = cli.run(args);
        assert_eq!((ran.code, ran.stdout.trim()), (Some(0), r#"{"filepath":"a.xlsx"}"#), "{ran:?}");
        assert!(ran.stderr.contains("read `file") && ran.stderr.contains("` as `filepath`"), "{ran:?}");
    }
}

#[test]
fn parse_shows_calls_and_runs_nothing() {
    let (code, printed, _) = run_with_stdin(&cli(), &["parse"], "[get_weather(city='Kyoto')]");
    assert_eq!(code, Some(0));
    assert_eq!(printed, "{\"name\":\"get_weather\",\"arguments\":{\"city\":\"Kyoto\"}}\n");
    let (_, printed, _) =
        run_with_stdin(&cli(), &["parse", "--json"], "<tool_call>{'name': 'f', 'arguments': {}}</tool_call>");
    let output: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(output["calls"], json!([{"name": "f", "arguments": {}}]));
    assert_eq!(output["repaired"].as_array().map(Vec::len), Some(1), "{output}");
}

#[test]
fn parse_reads_many_texts_with_the_tools_of_each() {
    let schema = json!({"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}});
    let weather = json!({"name": "get.weather", "parameters": schema});
    let call = "<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Kyoto\", \"days\": \"3\"}}</tool_call>";
    let lines = [
        json!({"id": 1, "text": call, "tools": [{"type": "function", "function": weather}]}),
        json!({"id": "two", "text": call, "tools": [weather]}),
        json!({"id": 3, "text": call, "tools": ["get.weather"]}),
        json!({"id": 4, "text": call.replace("{\"city\"", "{\n  \"city\"")}),
        json!({"id": 5, "text": "Nothing."}),
        json!({"id": 6, "text": "<tool_call>{what</tool_call>"}),
    ];
    let input: String = lines.iter().map(|line| format!("{line}\n")).chain(["oops\n".to_owned()]).collect();
    let (code, printed, _) = run_with_stdin(&cli(), &["parse", "--jsonl"], &input);
    assert_eq!(code, Some(1), "a line that is no JSON");
    let answers: Vec<Value> = printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), 7, "{printed}");
    let expected_calls = json!([{"name": "get.weather", "arguments": {"city": "Kyoto", "days": 3}}]);
    assert_eq!((&answers[0]["id"], &answers[0]["calls"]), (&json!(1), &expected_calls));
    assert_eq!((&answers[1]["id"], &answers[1]["calls"]), (&json!("two"), &expected_calls));
    assert_eq!(
        answers[2]["calls"],
        json!([{"name": "get.weather", "arguments": {"city": "Kyoto", "days": "3"}}])
    );
    assert_eq!(answers[3]["calls"][0]["name"], "get_weather");
    assert_eq!((&answers[4]["calls"], &answers[4]["error"]), (&json!([]), &Value::Null));
    assert!(answers[5]["error"].as_str().unwrap().contains("could not be read"), "{}", answers[5]);
    assert!(answers[6]["error"].as_str().unwrap().contains("line 7"), "{}", answers[6]);
}
