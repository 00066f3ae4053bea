//! Plans without a model, measured through the real program: the tools of a fresh machine and those of a spreadsheet server.

#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::io::BufRead as _;

use serde_json::{Value, json};
use toolhub_testkit::CommandLine;

fn cli() -> CommandLine {
    CommandLine::new(env!("CARGO_BIN_EXE_toolhub"))
}

fn write(cli: &CommandLine, name: &str, lines: &[Value]) {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(cli.folder().join(name), text).unwrap();
}

/// The tools that come with the program, and some that spreadsheet servers have.
fn tools(cli: &CommandLine) -> Vec<Value> {
    let native = cli.run(&["tools", "list", "--json"]).json();
    let tool = |name: &str, description: &str, required: &[&str]| {
        let properties: serde_json::Map<String, Value> =
            required.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
        json!({"name": name, "description": description, "inputSchema": {"type": "object", "properties": properties, "required": required}})
    };
    let mut all = native.as_array().unwrap().clone();
    all.push(tool(
        "read_data_from_excel",
        "Read data from Excel worksheet with cell metadata including validation rules.",
        &["filepath", "sheet_name"],
    ));
    all.push(tool(
        "apply_formula",
        "Apply Excel formula to cell. Excel formula will write to cell with verification.",
        &["filepath", "sheet_name", "cell", "formula"],
    ));
    all.push(tool("create_workbook", "Create new Excel workbook.", &["filepath"]));
    all
}

fn measure(requests: &[Value]) -> Value {
    let cli = cli();
    write(&cli, "tools.jsonl", &tools(&cli));
    write(&cli, "requests.jsonl", requests);
    cli.run(&["eval", "plan", "--tools", "tools.jsonl", "--requests", "requests.jsonl", "--json"]).json()
}

fn call(tool: &str, arguments: &Value) -> Value {
    let listed: serde_json::Map<String, Value> =
        arguments.as_object().unwrap().iter().map(|(name, value)| (name.clone(), json!([value]))).collect();
    json!({"tool": [tool], "arguments": listed})
}

#[test]
fn a_fresh_machine_plans_what_people_ask_first() {
    let ask =
        |request: &str, expected: &[Value]| json!({"id": request, "request": request, "expected": expected});
    let report = measure(&[
        ask("23*47 等于多少？", &[call("calculate", &json!({"expression": "23 * 47"}))]),
        ask("what is 15% of 80", &[call("calculate", &json!({"expression": "15% of 80"}))]),
        ask(
            "what time is it in Tokyo and in Berlin?",
            &[call("get_time", &json!({"zone": "Tokyo"})), call("get_time", &json!({"zone": "Berlin"}))],
        ),
        ask(
            "帮我读取 myfile.xlsx 的 Sheet1 工作表",
            &[call("read_data_from_excel", &json!({"filepath": "myfile.xlsx", "sheet_name": "Sheet1"}))],
        ),
        ask(
            "在 test.xlsx 的 Sheet1 的 A1 单元格写入公式 =SUM(B1:B10)",
            &[call(
                "apply_formula",
                &json!({"filepath": "test.xlsx", "sheet_name": "Sheet1", "cell": "A1", "formula": "=SUM(B1:B10)"}),
            )],
        ),
        ask("Read notes/todo.md", &[call("read_file", &json!({"path": "notes/todo.md"}))]),
        ask("Book a table for four tonight", &[]),
        ask("Open the file", &[]),
    ]);
    assert_eq!(report["failures"], json!([]), "{report}");
    assert_eq!(
        (&report["requests"], &report["arguments_right"], &report["refused_rightly"]),
        (&json!(8), &json!(1.0), &json!(1.0))
    );
}

#[test]
fn what_is_missing_is_named_in_both_languages() {
    let cli = cli();
    write(&cli, "tools.jsonl", &tools(&cli));
    // Nobody can plan this, so it fails, and the failure tells what the planner said.
    let wanted = json!({"id": "1", "request": "Apply a formula to cell B5 on sheet Main of model.xlsx", "expected": [call("apply_formula", &json!({"formula": "=A1"}))]});
    write(&cli, "requests.jsonl", &[wanted]);
    let args = ["eval", "plan", "--tools", "tools.jsonl", "--requests", "requests.jsonl", "--json", "--lang"];
    let said =
        |lang: &str| cli.run(&[&args[..], &[lang]].concat()).json()["failures"][0]["problems"][0].to_string();
    assert!(said("en").contains("`apply_formula` needs `formula`"), "{}", said("en"));
    assert!(said("zh").contains("`apply_formula` 还缺少 `formula`"), "{}", said("zh"));
}

#[test]
fn files_that_are_not_what_they_should_be_are_refused() {
    let cli = cli();
    write(&cli, "tools.jsonl", &[json!({"name": "t"})]);
    write(&cli, "broken.jsonl", &[json!({"request": 7})]);
    let broken = cli.run(&["eval", "plan", "--tools", "tools.jsonl", "--requests", "broken.jsonl"]);
    assert_eq!(broken.code, Some(2));
    assert!(broken.stderr.contains("line 1 of `broken.jsonl`"), "{broken:?}");
    write(&cli, "requests.jsonl", &[json!({"request": "hello", "expected": []})]);
    let shown = cli.run(&["eval", "plan", "--tools", "tools.jsonl", "--requests", "requests.jsonl"]);
    assert!(shown.stdout.contains("refused_rightly") && shown.stdout.contains("100.0"), "{shown:?}");
}

/// A set of requests, and what plans for it must reach.
struct Bounds {
    tools: &'static str,
    requests: &'static str,
    /// Calls that change something, would be run, and were not asked for.
    wrong_changes: u64,
    /// Least shares in percent: right tools, right tools and arguments, rightly refused. One to two points below what the
    /// rules reach.
    floors: [f64; 3],
}

const BOUNDS: [Bounds; 10] = [
    bounds("tools", "tuning", 0, [95.0, 95.0, 99.0]),
    bounds("tools", "more", 0, [82.0, 78.5, 93.0]),
    bounds("tools", "fresh", 0, [95.5, 95.0, 86.0]),
    // What was never looked at while the rules were made may fail once in two hundred.
    bounds("tools", "held", 1, [62.0, 55.0, 90.0]),
    bounds("servers_tools", "servers_a", 0, [93.0, 92.5, 97.0]),
    bounds("servers_tools", "servers_b", 0, [95.0, 94.5, 99.0]),
    bounds("servers_tools", "servers_c", 0, [93.5, 92.5, 94.0]),
    bounds("servers_tools", "servers_e", 0, [95.5, 94.5, 95.0]),
    bounds("servers_tools", "servers_f", 0, [90.5, 89.0, 98.0]),
    bounds("servers_tools", "servers_d", 1, [77.5, 75.0, 91.0]),
];

const fn bounds(tools: &'static str, requests: &'static str, wrong_changes: u64, floors: [f64; 3]) -> Bounds {
    Bounds { tools, requests, wrong_changes, floors }
}

/// Fails if a share of a report is below its floor.
fn check_floors(set: &str, report: &Value, floors: [f64; 3]) {
    let names = ["tool_right", "arguments_right", "refused_rightly"];
    // A set without requests that have to be refused has no such share.
    let shares = names.map(|name| report[name].as_f64().map_or(100.0, |share| share * 100.0));
    let is_above = shares.iter().zip(floors).all(|(share, floor)| *share >= floor);
    assert!(is_above, "{set}: {names:?} are {shares:.1?}, below {floors:?}");
}

/// Over all sets of requests, plans keep their quality, and the rules change nothing on their own that was not asked for.
#[test]
fn plans_keep_their_quality_and_nothing_is_changed_by_a_guess() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../agent/requests");
    let cli = cli();
    for Bounds { tools, requests, wrong_changes, floors } in BOUNDS {
        let path = |name: &str| folder.join(name).with_extension("jsonl").display().to_string();
        let (tools, asked) = (path(tools), path(requests));
        let report = cli.run(&["eval", "plan", "--tools", &tools, "--requests", &asked, "--json"]).json();
        let wrong = report["wrong_changes"].as_u64().unwrap();
        let changes = |failure: &&Value| failure["wrong_change"] == true;
        // Requests of the sets that are not used for tuning are not printed.
        let unseen = ["held", "servers_d"].contains(&requests);
        let failures = report["failures"].as_array().unwrap().iter();
        let shown: Vec<&Value> = failures.filter(changes).filter(|_| !unseen).collect();
        assert!(wrong <= wrong_changes, "{requests}: {wrong} wrong changes: {shown:#?}");
        check_floors(requests, &report, floors);
    }
}

/// The lines of a packed file.
fn packed(file: &std::path::Path) -> Vec<Value> {
    let packed = std::fs::File::open(file).unwrap();
    let lines = std::io::BufReader::new(flate2::read::GzDecoder::new(packed)).lines();
    lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect()
}

/// A sample of the published tasks of the Berkeley Function Calling Leaderboard over all of its functions.
#[test]
#[ignore = "needs data: set `TOOLHUB_DATA` and run `cargo xtask test`"]
fn plans_for_published_tasks_keep_their_quality() {
    const SAMPLE: usize = 100;
    let data = std::env::var_os("TOOLHUB_DATA").map(std::path::PathBuf::from).expect("`TOOLHUB_DATA` is set");
    let mut expected: std::collections::HashMap<String, Value> = std::collections::HashMap::new();
    for mut line in packed(&data.join("parsing/model_outputs.jsonl.gz")) {
        if line["expected"].is_array() {
            let task = line["task"].as_str().unwrap().to_owned();
            expected.entry(task).or_insert_with(|| line["expected"].take());
        }
    }
    let tasks = packed(&data.join("parsing/tasks.jsonl.gz"));
    let requests: Vec<Value> = tasks
        .iter()
        .filter_map(|task| {
            let calls = expected.get(task["task"].as_str()?)?.as_array()?;
            let calls: Vec<Value> = calls
                .iter()
                .filter_map(Value::as_object)
                .flatten()
                .map(|(tool, arguments)| json!({"tool": [tool], "arguments": arguments}))
                .collect();
            let request = &task["messages"].as_array()?.last()?["content"];
            (calls.len() == 1).then(|| json!({"id": task["task"], "request": request, "expected": calls}))
        })
        .collect();
    let sample: Vec<Value> =
        (0..SAMPLE).map(|number| requests[number * requests.len() / SAMPLE].clone()).collect();
    let cli = cli();
    write(&cli, "requests.jsonl", &sample);
    let tools = data.join("retrieval/bfcl/tools.jsonl").display().to_string();
    let report =
        cli.run(&["eval", "plan", "--tools", &tools, "--requests", "requests.jsonl", "--json"]).json();
    assert_eq!(report["requests"], SAMPLE);
    check_floors("bfcl, one call", &report, [31.0, 23.0, 100.0]);
}

/// Requests that once changed something else than what they ask for.
#[test]
fn formats_and_parts_that_no_tool_serves_change_nothing() {
    let tools = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../agent/requests/tools.jsonl");
    let cli = cli();
    let requests: Vec<Value> = [
        "make column A bold in sheet 销售 of F.xlsx",
        "highlight row 3 in sheet Plan of F.xlsx",
        "把 F.xlsx 中 计划 表的第 2 行标红",
        "F.xlsx 的 销售 表列宽设为 20",
        "don't delete row 3 in sheet Plan of F.xlsx",
        "delete row 3 in sheet Plan of F.xlsx and order a pizza",
        "if the total is wrong, delete row 3 in sheet Plan of F.xlsx",
        "did you delete row 3 in sheet Plan of F.xlsx?",
        "F.xlsx 的 计划 表第 3 行是不是被删了？",
        "F.xlsx 的 计划 表不用删了",
        "copy A1:B2 of F.xlsx to sheet Plan at D1",
    ]
    .iter()
    .map(|request| json!({"id": request, "request": request, "expected": []}))
    .collect();
    write(&cli, "requests.jsonl", &requests);
    let tools = tools.display().to_string();
    let report =
        cli.run(&["eval", "plan", "--tools", &tools, "--requests", "requests.jsonl", "--json"]).json();
    assert_eq!(report["wrong_changes"], 0, "{report:#}");
}

/// Requests of which a name, a text or a folder was once read in part, and something was changed with it.
#[test]
fn names_texts_and_folders_are_taken_whole() {
    let tools =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../agent/requests/servers_tools.jsonl");
    let cli = cli();
    let ask =
        |request: &str, expected: &[Value]| json!({"id": request, "request": request, "expected": expected});
    let sheet = |tool: &str, arguments: Value| call(tool, &arguments);
    let requests = [
        ask(
            "把 预算.xlsx 的 成本 表改名为 费用",
            &[sheet(
                "rename_worksheet",
                json!({"filepath": "预算.xlsx", "old_name": "成本", "new_name": "费用"}),
            )],
        ),
        ask(
            "把 预算.xlsx 的 成本 表复制为 成本备份",
            &[sheet(
                "copy_worksheet",
                json!({"filepath": "预算.xlsx", "source_sheet": "成本", "target_sheet": "成本备份"}),
            )],
        ),
        ask(
            "把 /srv/repo 的 README.md 暂存一下",
            &[call("git_add", &json!({"repo_path": "/srv/repo", "files": ["README.md"]}))],
        ),
        ask(
            "Commit /srv/r with message: drop old and add new",
            &[call("git_commit", &json!({"repo_path": "/srv/r", "message": "drop old and add new"}))],
        ),
        ask(
            "回复邮件 em-7“好的”，然后把 em-7 删了",
            &[
                call("reply_to_email", &json!({"email_id": "em-7", "body": "好的"})),
                call("delete_email", &json!({"email_id": "em-7"})),
            ],
        ),
        ask(
            "新建目录 /data/reports，并在里面写一个 summary.txt，内容“空”",
            &[
                call("create_directory", &json!({"path": "/data/reports"})),
                call("write_file", &json!({"path": "/data/reports/summary.txt", "content": "空"})),
            ],
        ),
        ask(
            "make the folder archive/2024 and shove reports/jan.pdf in there",
            &[
                call("create_directory", &json!({"path": "archive/2024"})),
                call(
                    "move_file",
                    &json!({"source": "reports/jan.pdf", "destination": "archive/2024/jan.pdf"}),
                ),
            ],
        ),
        // What was not read beyond doubt is not run.
        ask("Delete the sheet On Hold from p.xlsx", &[]),
        ask("Rename sheet Plan to Plan - old in p.xlsx", &[]),
        ask("删除 报表.xlsx 的 旧表，再新建一个 新表", &[]),
        ask("Row 4 is fine. Delete row 3, but only if Tom agrees, in sheet S of p.xlsx", &[]),
        ask("If the build is green, switch /opt/portal to release-3.0", &[]),
    ];
    write(&cli, "requests.jsonl", &requests);
    let tools = tools.display().to_string();
    let report =
        cli.run(&["eval", "plan", "--tools", &tools, "--requests", "requests.jsonl", "--json"]).json();
    assert_eq!(report["wrong_changes"], 0, "{report:#}");
    assert_eq!(report["arguments_right"], json!(1.0), "{report:#}");
}
