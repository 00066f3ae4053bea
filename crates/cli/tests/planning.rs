//! Plans without a model, measured through the real program: the tools of a fresh machine and those of a spreadsheet server.

#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::io::BufRead as _;
use std::path::Path;

use serde_json::{Value, json};
use toolhub_testkit::CommandLine;

fn cli() -> CommandLine {
    CommandLine::new(env!("CARGO_BIN_EXE_toolhub"))
}

/// Plans requests over a set of tools, and fails if one of them would change something.
fn assert_changes_nothing(tools: &str, requests: &[&str]) {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../agent/requests/{tools}.jsonl"));
    let lines: Vec<Value> =
        requests.iter().map(|request| json!({"id": request, "request": request, "expected": []})).collect();
    let cli = cli();
    write(&cli, "requests.jsonl", &lines);
    let tools = tools.display().to_string();
    let report =
        cli.run(&["eval", "plan", "--tools", &tools, "--requests", "requests.jsonl", "--json"]).json();
    assert_eq!(report["wrong_changes"], 0, "{report:#}");
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
fn plans_common_requests_without_configuration() {
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
fn reports_missing_values_in_both_languages() {
    let cli = cli();
    write(&cli, "tools.jsonl", &tools(&cli));
    // This cannot be planned, so it fails with the reason of the planner.
    let request = json!({"id": "1", "request": "Apply a formula to cell B5 on sheet Main of model.xlsx", "expected": [call("apply_formula", &json!({"formula": "=A1"}))]});
    write(&cli, "requests.jsonl", &[request]);
    let args = ["eval", "plan", "--tools", "tools.jsonl", "--requests", "requests.jsonl", "--json", "--lang"];
    let message =
        |lang: &str| cli.run(&[&args[..], &[lang]].concat()).json()["failures"][0]["problems"][0].to_string();
    assert!(message("en").contains("`apply_formula` needs `formula`"), "{}", message("en"));
    assert!(message("zh").contains("`apply_formula` 还缺少 `formula`"), "{}", message("zh"));
}

#[test]
fn rejects_malformed_eval_files() {
    let cli = cli();
    write(&cli, "tools.jsonl", &[json!({"name": "t"})]);
    write(&cli, "broken.jsonl", &[json!({"request": 7})]);
    let broken = cli.run(&["eval", "plan", "--tools", "tools.jsonl", "--requests", "broken.jsonl"]);
    assert_eq!(broken.code, Some(2));
    assert!(broken.stderr.contains("line 1 of `broken.jsonl`"), "{broken:?}");
    write(&cli, "requests.jsonl", &[json!({"request": "hello", "expected": []})]);
    let reported = cli.run(&["eval", "plan", "--tools", "tools.jsonl", "--requests", "requests.jsonl"]);
    assert!(reported.stdout.contains("refused_rightly") && reported.stdout.contains("100.0"), "{reported:?}");
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

const BOUNDS: [Bounds; 20] = [
    bounds("tools", "tuning", 0, [95.5, 95.5, 99.0]),
    bounds("tools", "more", 0, [85.0, 82.5, 93.0]),
    bounds("tools", "fresh", 0, [95.5, 95.5, 86.0]),
    // What was never looked at while the rules were made may fail once in two hundred.
    bounds("tools", "held", 1, [63.0, 57.5, 90.0]),
    bounds("servers_tools", "servers_a", 0, [93.5, 93.0, 97.5]),
    bounds("servers_tools", "servers_b", 0, [97.0, 96.0, 99.0]),
    bounds("servers_tools", "servers_c", 0, [94.5, 93.5, 94.5]),
    bounds("servers_tools", "servers_e", 0, [96.0, 95.0, 95.5]),
    bounds("servers_tools", "servers_f", 0, [91.0, 89.5, 99.0]),
    bounds("servers_tools", "servers_g", 0, [94.5, 94.5, 96.0]),
    bounds("servers_tools", "servers_h", 0, [95.0, 94.5, 89.0]),
    bounds("servers_tools", "servers_i", 0, [92.0, 91.5, 99.0]),
    bounds("servers_tools", "servers_k", 0, [91.0, 91.0, 99.0]),
    bounds("servers_tools", "servers_l", 0, [93.5, 93.5, 95.5]),
    bounds("servers_tools", "servers_m", 0, [97.0, 95.0, 96.5]),
    bounds("servers_tools", "servers_n", 0, [88.0, 86.5, 87.5]),
    bounds("servers_tools", "servers_d", 1, [82.0, 80.0, 91.0]),
    bounds("servers_tools", "servers_j", 1, [89.0, 88.0, 95.0]),
    bounds("servers_tools", "servers_p", 1, [79.0, 77.0, 92.5]),
    bounds("servers_tools", "servers_q", 1, [87.5, 84.5, 95.5]),
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
fn plan_quality_stays_above_floor_without_guessed_changes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../agent/requests");
    let cli = cli();
    for Bounds { tools, requests, wrong_changes, floors } in BOUNDS {
        let path = |name: &str| folder.join(name).with_extension("jsonl").display().to_string();
        let (tools, requests_path) = (path(tools), path(requests));
        let report =
            cli.run(&["eval", "plan", "--tools", &tools, "--requests", &requests_path, "--json"]).json();
        let wrong = report["wrong_changes"].as_u64().unwrap();
        let changes = |failure: &&Value| failure["wrong_change"] == true;
        // Requests of the sets that are not used for tuning are not printed.
        let unseen = ["held", "servers_d", "servers_j", "servers_p", "servers_q"].contains(&requests);
        let failures = report["failures"].as_array().unwrap().iter();
        let reported: Vec<&Value> = failures.filter(changes).filter(|_| !unseen).collect();
        assert!(wrong <= wrong_changes, "{requests}: {wrong} wrong changes: {reported:#?}");
        check_floors(requests, &report, floors);
    }
}

/// The lines of a packed file.
fn packed(file: &Path) -> Vec<Value> {
    let packed = std::fs::File::open(file).unwrap();
    let lines = std::io::BufReader::new(flate2::read::GzDecoder::new(packed)).lines();
    lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect()
}

/// A sample of the published tasks of the Berkeley Function Calling Leaderboard over all of its functions.
#[test]
#[ignore = "needs data: set `TOOLHUB_DATA` and run `cargo xtask test`"]
fn plan_quality_of_published_tasks_stays_above_floor() {
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
fn unsupported_formats_and_parts_change_nothing() {
    let requests = [
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
    ];
    assert_changes_nothing("tools", &requests);
}

/// Every value of a long series gets its call.
#[test]
fn plans_every_step_of_long_request() {
    let cities = "Tokyo, Paris, London, Berlin, Madrid, Rome, Vienna, Oslo, Cairo, Delhi, Seoul, Sydney, Lima and Nairobi";
    let ran = cli().run(&["ask", &format!("What time is it in {cities}?"), "--no-llm"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for city in ["Tokyo", "Sydney", "Lima", "Nairobi"] {
        assert!(ran.stdout.contains(city), "{city}: {ran:?}");
    }
}

/// Statements, questions and half orders about what tools could change.
#[test]
fn statements_questions_and_incomplete_requests_change_nothing() {
    let requests = [
        "Please make sure nobody deletes the event ev-12.",
        "I was told that email 5512 should be deleted by Tom.",
        "Is it okay to delete the sheet Old from budget.xlsx?",
        "There's a file a.txt in /data: I deleted it yesterday.",
        "We could rename docs/a.md to docs/b.md at some point.",
        "The folder a/b could be renamed to a/c, but please wait.",
        "Row 3 in a.xlsx is what I need, so keep it.",
        "Tom wants to cancel ev-55, but I said no.",
        "There's a typo in a.md: don't change it yet.",
        "Someone deleted email 5512, since it was spam.",
        "My boss thinks we should delete the entity Atlas from the graph.",
        "Could event ev-55 be cancelled by somebody else?",
        "Could ev-55 be cancelled?",
        "Can the sheet Old in b.xlsx be deleted, or is it used?",
        "Delete email 5512, unless it is from Tom.",
        "Delete row 3 of the sheet A in a.xlsx after Tom has checked it.",
        "Move a/b.txt to the folder we used last week.",
        "Delete the entities in the graph: all of type supplier.",
        "Create two entities in the graph, both of type person.",
        "Remove the relation between Tom and Acme from the graph, or between Tom and Apex.",
        "张敏 也许会离职，先把实体 张敏 留着",
        "邮件 3345 可能是垃圾邮件，要不要删掉？",
        "我同事已经把 ev-55 取消了",
        "ev-55 很重要，请不要取消",
        "邮件 3345 还要用，请保留",
        "客户说想取消 ev-55，你觉得呢？",
        "如果没人来就取消 ev-55",
        "文件 a.md 写错了，等我改完再移到 b.md",
        "这个表不对，请先别删除",
        "邮件 3345 涉及隐私，请谨慎处理",
        "a.xlsx 里第 3 行是小计，请删除其余的行",
        "邮件 3345 是张敏发的，请删除她发的其他邮件",
        "新建文件夹 资料/期末，然后把里面的东西移到 试卷A.docx",
        "Please put /srv/web on the branch main again.",
        "Set /srv/web to the branch main.",
        "Link the branch main in /srv/web.",
        "Note the branch main in /srv/web.",
        "Save the branch main of /srv/web.",
        "The title of event ev-12 should be shorter.",
        "The location of event ev-12 should be changed.",
        "把 12 号会议取消",
        "删除 12 号邮件",
        "邮件 3345 和 3346 是广告，删掉",
        "邮件 3345 是广告，3346 不是，删掉",
        "实体 张敏 和 李雷 是同事，请删除",
        "There's a backup in /data/old: delete the entity Atlas from the graph.",
        "Would you mind deleting email 5512 or 5513?",
        "Would you mind not deleting email 5512?",
        "Could the sheet Old in b.xlsx be deleted and the sheet New kept, please?",
        "A new branch x-1 in /srv/a is what Tom needs.",
        "Delete the sheet Old in b.xlsx, it has only drafts.",
        "Delete the sheet Old in b.xlsx, it has two copies and I want both gone.",
        "Please delete the entity Atlas from the graph, they have asked for Apollo too.",
        "I'll delete email 5512, so mark email 5513 as read.",
        "I'll be deleting email 5512 soon, so move it to Trash.",
        "Tom is ill, so ev-55 could be cancelled.",
        "The relation Tom manages Atlas is fine.",
        "Create the relation Tom manages Atlas or Apollo in the graph.",
        "Add Tom to the knowledge graph as a person or a customer.",
        "Add a person called Tom and a company called Acme to the knowledge graph.",
        "Create two entities in the graph, Tom and Acme, of type person and company.",
        "Two new entities for the graph: Tom of type person and Acme",
        "Two new entities for the graph: Tom of type person and Acme of type company with the observation 'x'",
        "把 ev-55 取消，我要取消的是 ev-56 才对",
        "删除邮件 3345，我要的是 3346 了",
        "新建文件夹 资料/期末，新建文件夹 资料/期中，然后把 试卷A.docx 移到这个文件夹里",
        "先读邮件 4471，读完再决定要不要删除",
        "看完邮件 4471 之后删掉",
        "把 a.txt 移动到 b 之后的目录",
        "邮件 3345 涉及合同，请删除附件",
        "文件 /data/a.txt 太大，请压缩",
        "/srv/web 太乱了，请整理",
        "把 /srv/a 和 main 合并，改完提交",
        "张敏 升职了，给她的助理加一条观察“已转正”",
        "“甲”和“乙”都在图谱里，给它加一条观察“重要”",
        "Move reports/2025 to archive",
        "Put projects/a1 on the branch users/ann",
        "Create a branch in projects/alpha from projects/beta",
        "Switch projects/alpha to users/ann",
        "Commit projects/alpha with the message \"x\"",
        "Change the location of event 7f21",
    ];
    assert_changes_nothing("servers_tools", &requests);
}

/// Requests of which a name, a text or a folder was once read in part, and something was changed with it.
#[test]
fn extracts_complete_names_texts_and_paths() {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../agent/requests/servers_tools.jsonl");
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

/// Tools whose parameters have no descriptions.
fn plain_tools() -> Vec<Value> {
    let tool = |name: &str, description: &str, parameters: &[(&str, &str)]| {
        let properties: serde_json::Map<String, Value> =
            parameters.iter().map(|(name, kind)| ((*name).to_owned(), json!({"type": kind}))).collect();
        let required: Vec<&str> = parameters.iter().map(|(name, _)| *name).collect();
        json!({"name": name, "description": description, "inputSchema": {"type": "object", "properties": properties, "required": required}})
    };
    vec![
        tool("delete_row", "Delete a row of a file.", &[("path", "string"), ("row", "integer")]),
        tool("send_mail", "Send a mail.", &[("to", "string"), ("body", "string")]),
        tool("rename", "Rename a file.", &[("path", "string"), ("new_name", "string")]),
        tool("set_price", "Set the price of an item.", &[("item", "string"), ("price", "number")]),
        tool("cancel_order", "Cancel an order.", &[("id", "string")]),
        tool("remove_user", "Remove a user.", &[("name", "string")]),
    ]
}

fn plan_with_plain_tools(requests: &[Value]) -> Value {
    let cli = cli();
    write(&cli, "tools.jsonl", &plain_tools());
    write(&cli, "requests.jsonl", requests);
    cli.run(&["eval", "plan", "--tools", "tools.jsonl", "--requests", "requests.jsonl", "--json"]).json()
}

/// Questions, statements, parts of a series, counts, units, differences and other objects: nothing of this is an order that a tool
/// with such parameters can carry out.
#[test]
fn text_that_resembles_a_request_changes_nothing() {
    let requests: Vec<Value> = [
        "delete rows 3 and 4 of a.xlsx",
        "delete rows 3-5 of a.xlsx",
        "delete row 3 and row 4 of a.xlsx",
        "delete rows 3 to 5 of a.xlsx",
        "delete rows 3, 4 and 5 of a.xlsx",
        "删除 a.xlsx 第3行和第4行",
        "删除 a.xlsx 第3到5行",
        "删除 a.xlsx 的第3、4行",
        "删除 a.xlsx 的 3-5 行",
        "delete 3 rows of a.xlsx",
        "delete two rows of a.xlsx",
        "删除 a.xlsx 的两行",
        "delete row -3 of a.xlsx",
        "is the price of \"bolts\" set to 5?",
        "can I delete row 3 of a.xlsx?",
        "can we cancel order \"A17\"",
        "could I cancel order \"A17\"",
        "remove user \"bob\"?",
        "能删除 a.xlsx 第3行吗",
        "可以删除 a.xlsx 第3行吗",
        "删除 a.xlsx 第3行吗？",
        "delete the file of user \"bob\"",
        "remove the name of user \"bob\"",
        "cancel the file of order \"A17\"",
        "删除 a.xlsx 第3行的内容",
        "删除用户“bob”的文件",
        "set the price of \"bolts\" to 5k",
        "set the price of \"bolts\" to 5m",
        "set the price of \"bolts\" to 5kg",
        "set the price of \"bolts\" to 5 kg",
        "set the price of \"bolts\" to 1,5",
        "set the price of \"bolts\" to 1.234,50",
        "set the price of \"bolts\" to 5%",
        "set the price of \"bolts\" to -5",
        "change the price of \"bolts\" by 5",
        "change the price of \"bolts\" by 10%",
        "把“bolts”的价格上调5",
        "I will remove user \"bob\"",
        "we will remove user \"bob\"",
        "let me remove user \"bob\"",
        "我删除了用户“bob”",
        "write a mail to a@b.io saying \"hi\"",
        "写一封邮件给 a@b.io，内容“hi”",
        "rename a.txt, b.txt",
        "rename from b.txt a.txt",
        "set the price of \"bolts\" to 5 percent",
    ]
    .iter()
    .map(|request| json!({"id": request, "request": request, "expected": []}))
    .collect();
    let report = plan_with_plain_tools(&requests);
    let failures = report["failures"].as_array().unwrap().iter();
    let reported: Vec<&Value> = failures.filter(|failure| failure["wrong_change"] == true).collect();
    assert_eq!(report["wrong_changes"], 0, "{reported:#?}");
}

/// The plain orders beside those are still carried out, with both ends of a rename in their places.
#[test]
fn plain_requests_use_tools_without_descriptions() {
    let ask = |request: &str, tool: &str, arguments: Value| json!({"id": request, "request": request, "expected": [call(tool, &arguments)]});
    let row = json!({"path": "a.xlsx", "row": 3});
    let renamed = json!({"path": "a.txt", "new_name": "b.txt"});
    let report = plan_with_plain_tools(&[
        ask("delete row 3 of a.xlsx", "delete_row", row.clone()),
        ask("can you delete row 3 of a.xlsx?", "delete_row", row.clone()),
        ask("删除 a.xlsx 第3行", "delete_row", row.clone()),
        ask("能帮我删除 a.xlsx 第3行吗？", "delete_row", row),
        ask("rename a.txt to b.txt", "rename", renamed.clone()),
        ask("rename a.txt into b.txt", "rename", renamed.clone()),
        ask("rename a.txt as b.txt", "rename", renamed.clone()),
        ask("a.txt should be renamed to b.txt", "rename", renamed.clone()),
        ask("把 a.txt 改名为 b.txt", "rename", renamed),
        ask("set the price of \"bolts\" to 5.25", "set_price", json!({"item": "bolts", "price": 5.25})),
        ask("set the price of \"bolts\" to 1,250", "set_price", json!({"item": "bolts", "price": 1250})),
        ask("remove user \"bob\"", "remove_user", json!({"name": "bob"})),
        ask("send a mail to a@b.io saying \"hi\"", "send_mail", json!({"to": "a@b.io", "body": "hi"})),
    ]);
    assert_eq!(report["failures"], json!([]), "{report:#}");
}
