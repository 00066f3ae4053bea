//! The planning benchmark: joins tasks with their expected calls, and runs `toolhub eval plan` on them.
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf, absolute},
    process::Command,
};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::{
    run::{self, Profile, build},
    table::Table,
    workspace::Workspace,
};

/// Paths of the files in the data folder.
const CATALOGUE: &str = "retrieval/bfcl/tools.jsonl";
const TASKS: &str = "parsing/tasks.jsonl.gz";
const ANSWERS: &str = "parsing/model_outputs.jsonl.gz";

/// The kinds of requests.
const SETS: [&str; 3] = ["one call", "several calls", "no call"];

struct Task {
    kind: &'static str,
    request: Value,
    tools: Vec<Value>,
}

/// Numbers of requests and of correct results.
#[derive(Default)]
struct Tally {
    requests: f64,
    tool_right: f64,
    arguments_right: f64,
    refused_rightly: f64,
}

pub(super) fn run(workspace: &Workspace, args: &[String]) -> Result<()> {
    let [option, data, rest @ ..] = args else {
        println!(
            "No data: name a folder with `--data DIR`. In it, `{CATALOGUE}` (the functions of the Berkeley Function"
        );
        println!(
            "Calling Leaderboard, the Python package bfcl-eval), `{TASKS}` (`task, messages, tools`) and"
        );
        println!("`{ANSWERS}` (`task, expected`). `--dist` measures the optimised program.");
        return Ok(());
    };
    if option != "--data" || rest.iter().any(|arg| arg != "--dist") {
        bail!("write `cargo xtask bench plan --data DIR [--dist]`");
    }
    let data = absolute(data)?;
    let tasks = read_tasks(&data)?;
    let profile = if rest.is_empty() { Profile::Debug } else { Profile::Dist };
    let program = build(workspace, "toolhub-cli", "toolhub", profile)?;
    let folder = workspace.target.join("bench-plan");
    fs::create_dir_all(&folder)?;
    let bench = Bench { program, folder };
    let mut table = Table::default();
    table.row(
        ["tools", "requests", "", "tool right", "arguments right", "refused rightly"].map(str::to_owned),
    );
    for kind in SETS {
        let own: Vec<&Task> = tasks.iter().filter(|task| task.kind == kind).collect();
        let mut total = Tally::default();
        bench.measure(&data.join(CATALOGUE), &own, &mut total)?;
        total.show("the whole catalogue", kind, &mut table);
        // Tasks with the same tools are planned in one run.
        let mut groups: BTreeMap<String, Vec<&Task>> = BTreeMap::new();
        for task in own {
            groups.entry(lines(&task.tools)).or_default().push(task);
        }
        let mut given = Tally::default();
        let file = bench.folder.join("given.jsonl");
        for (tools, tasks) in groups {
            fs::write(&file, tools)?;
            bench.measure(&file, &tasks, &mut given)?;
        }
        given.show("those of the task", kind, &mut table);
    }
    print!("{table}");
    Ok(())
}

struct Bench {
    program: PathBuf,
    folder: PathBuf,
}

impl Bench {
    fn measure(&self, tools: &Path, tasks: &[&Task], tally: &mut Tally) -> Result<()> {
        let requests: Vec<Value> = tasks.iter().map(|task| task.request.clone()).collect();
        let file = self.folder.join("requests.jsonl");
        fs::write(&file, lines(&requests))?;
        let mut command = Command::new(&self.program);
        command.args(["eval", "plan", "--json", "--tools"]).arg(tools).arg("--requests").arg(file);
        command.arg("--home").arg(self.folder.join("home"));
        let report: Value = serde_json::from_str(&run::read(&mut command)?)?;
        let share = |name: &str| report[name].as_f64().unwrap_or_default();
        let count = tasks.len() as f64;
        tally.requests += count;
        tally.tool_right += share("tool_right") * count;
        tally.arguments_right += share("arguments_right") * count;
        tally.refused_rightly += share("refused_rightly") * count;
        Ok(())
    }
}

impl Tally {
    fn show(&self, tools: &str, kind: &str, table: &mut Table) {
        let percent = |part: f64| format!("{:.1}", part * 100.0 / self.requests.max(1.0));
        let (tool, arguments, refused) = match kind {
            "no call" => (String::new(), String::new(), percent(self.refused_rightly)),
            _ => (percent(self.tool_right), percent(self.arguments_right), String::new()),
        };
        table.row([tools.to_owned(), self.requests.to_string(), kind.to_owned(), tool, arguments, refused]);
    }
}

fn lines(values: &[Value]) -> String {
    values.iter().map(|value| format!("{value}\n")).collect()
}

/// The tasks with their expected calls, in the format of `eval plan`.
fn read_tasks(data: &Path) -> Result<Vec<Task>> {
    let mut expected: BTreeMap<String, Value> = BTreeMap::new();
    for line in read_gzip_lines(&data.join(ANSWERS))? {
        if let Some(task) = line["task"].as_str()
            && line["expected"].is_array()
        {
            expected.entry(task.to_owned()).or_insert_with(|| line["expected"].clone());
        }
    }
    let mut tasks = Vec::new();
    for line in read_gzip_lines(&data.join(TASKS))? {
        let id = line["task"].as_str().context("a task without a name")?;
        let Some(Value::Array(calls)) = expected.get(id) else { continue };
        let request =
            line["messages"].as_array().and_then(|messages| messages.last()).map(|last| &last["content"]);
        let calls: Vec<Value> = calls
            .iter()
            .filter_map(Value::as_object)
            .flatten()
            .map(|(tool, arguments)| json!({"tool": [tool], "arguments": arguments}))
            .collect();
        let kind = match calls.len() {
            0 => "no call",
            1 => "one call",
            _ => "several calls",
        };
        let request = json!({"id": id, "request": request, "expected": calls});
        tasks.push(Task { kind, request, tools: line["tools"].as_array().cloned().unwrap_or_default() });
    }
    Ok(tasks)
}

/// The lines of a gzip file as JSON.
fn read_gzip_lines(file: &Path) -> Result<Vec<Value>> {
    let text = run::read(Command::new("gzip").arg("-dc").arg(file))?;
    text.lines().map(|line| serde_json::from_str(line).with_context(|| file.display().to_string())).collect()
}
