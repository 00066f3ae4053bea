//! What code mode saves: 32 tasks over servers with fixed data and known answers, each solved with all tools listed, in search
//! mode and in code mode, by an ideal model that makes no mistakes and no unneeded call.
//!
//! Definitions, search results, results of calls and answers are those of the real gateway; their tokens are estimated as the
//! agent estimates its prompts. Input is what a model reads in all rounds together, without a cache. The table of the guide on
//! code mode comes from `cargo test -p toolhub-cli --test gateway code_mode_tasks -- --nocapture`.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;
use serde_json::{Value, json};
use toolhub_agent::prompt::estimate_tokens;

use crate::raw_client::{Era, RawClient};
use crate::serving::{Serving, hub};

/// Servers of the tasks; the last one has tools that no task needs.
const SERVERS: [&str; 6] = ["shop", "hr", "logs", "weather", "issues", "office"];
/// Tasks with more calls than this are the ones that code mode is for.
const FEW_CALLS: usize = 5;

#[derive(Deserialize)]
struct Task {
    id: String,
    request: String,
    /// How many calls an ideal model makes in each round.
    stages: Vec<usize>,
    script: String,
}

/// A call as the server has seen it.
#[derive(Deserialize)]
struct Call {
    tool: String,
    arguments: Value,
    result: String,
}

/// What a model reads and writes for one task.
#[derive(Clone, Copy, Default)]
struct Usage {
    input: usize,
    output: usize,
    rounds: usize,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input += other.input;
        self.output += other.output;
        self.rounds += other.rounds;
    }
}

/// A conversation that grows with every round.
struct Conversation {
    read: usize,
    usage: Usage,
}

impl Conversation {
    fn new(definitions: usize, request: &str) -> Self {
        Self { read: definitions + estimate_tokens(request), usage: Usage::default() }
    }

    /// The model reads everything so far and writes `written`; what comes back is read in the next round.
    fn round(&mut self, written: &str, result: &str) {
        self.usage.rounds += 1;
        self.usage.input += self.read;
        self.usage.output += estimate_tokens(written);
        self.read += estimate_tokens(written) + estimate_tokens(result);
    }

    fn answer(mut self, answer: &str) -> Usage {
        self.round(answer, "");
        self.usage
    }
}

fn files() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gateway/code_mode_tasks")
}

/// A client of one profile, with the tokens of the definitions that it lists and the descriptions of all tools.
struct Mode {
    client: RawClient,
    definitions: usize,
}

impl Mode {
    async fn open(serving: &Serving, profile: &str) -> Self {
        let client = RawClient::connect(&format!("{}/mcp/{profile}", serving.root), Era::Legacy).await;
        let listed = client.ask("1", "tools/list", "").await;
        let listed: Value = serde_json::from_str(listed.result()).unwrap();
        // Of a definition, models get name, description and schema.
        let shown = |tool: &Value| {
            estimate_tokens(&json!([tool["name"], tool["description"], tool["inputSchema"]]).to_string())
        };
        let definitions = listed["tools"].as_array().unwrap().iter().map(shown).sum();
        Self { client, definitions }
    }

    async fn call(&self, tool: &str, arguments: &Value) -> String {
        self.client.call(tool, &arguments.to_string()).await.text()
    }

    /// The texts of several calls in one round: what is written and what comes back.
    async fn calls(&self, calls: &[(&str, Value)]) -> (String, String) {
        let (mut written, mut results) = (String::new(), String::new());
        for (tool, arguments) in calls {
            written.push_str(&json!({"name": tool, "arguments": arguments}).to_string());
            results.push_str(&self.call(tool, arguments).await);
        }
        (written, results)
    }
}

fn logged(log: &Path) -> Vec<Call> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    std::fs::write(log, "").unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The tools that a task needs, each with the words that a model would search for.
fn searches(calls: &[Call], descriptions: &Value) -> Vec<(String, Value)> {
    let needed: BTreeSet<&str> = calls.iter().map(|call| call.tool.as_str()).collect();
    let query = |tool: &str| json!({"query": descriptions[tool], "limit": 3});
    needed.into_iter().map(|tool| (tool.to_owned(), query(tool))).collect()
}

#[tokio::test]
async fn code_mode_halves_the_input_of_tasks_with_many_calls() {
    let tasks: Vec<Task> =
        serde_json::from_str(&std::fs::read_to_string(files().join("tasks.json")).unwrap()).unwrap();
    let many = tasks.iter().filter(|task| task.stages.iter().sum::<usize>() > FEW_CALLS).count();
    assert!(tasks.len() >= 30 && many * 2 >= tasks.len(), "{} tasks, {many} with many calls", tasks.len());
    let program = files().join("servers.py");
    let answers = Command::new("python3").arg(&program).arg("answers").output().unwrap();
    let answers: Value = serde_json::from_slice(&answers.stdout).unwrap();

    let mut cli = hub(
        "[profiles.all]\nexpose = \"all\"\n[profiles.search]\nexpose = \"search\"\n[profiles.code]\nexpose = \"code\"\n",
    );
    let log = cli.folder().join("calls");
    for server in SERVERS {
        cli.entry(
            server,
            json!({"command": "python3", "args": [program, "serve", server], "env": {"TASK_LOG": log, "PYTHONUTF8": "1"}}),
        );
    }
    let serving = Serving::start(cli);
    let all = Mode::open(&serving, "all").await;
    let (search, code) = (Mode::open(&serving, "search").await, Mode::open(&serving, "code").await);
    let listed: Value = serde_json::from_str(all.client.ask("1", "tools/list", "").await.result()).unwrap();
    let descriptions: Value = listed["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| (tool["name"].as_str().unwrap().to_owned(), tool["description"].clone()))
        .collect::<serde_json::Map<_, _>>()
        .into();

    let mut sums = [[Usage::default(); 3]; 2];
    for task in &tasks {
        let arguments = json!({ "code": task.script });
        let answer = code.call("run_script", &arguments).await;
        let expect = answers[&task.id].as_str().map_or_else(|| answers[&task.id].to_string(), str::to_owned);
        let is_right = serde_json::from_str::<Value>(&answer).is_ok_and(|value| value == answers[&task.id])
            || answer == expect;
        assert!(is_right, "{}: {answer}, expected {expect}", task.id);
        let calls = logged(&log);
        assert_eq!(calls.len(), task.stages.iter().sum::<usize>(), "{}", task.id);
        let searches = searches(&calls, &descriptions);
        let found: Vec<(&str, Value)> =
            searches.iter().map(|(_, query)| ("search_tools", query.clone())).collect();

        let mut in_code = Conversation::new(code.definitions, &task.request);
        let (written, results) = code.calls(&found).await;
        assert!(searches.iter().all(|(tool, _)| results.contains(tool)), "{}: {results}", task.id);
        in_code.round(&written, &results);
        in_code.round(&json!({"name": "run_script", "arguments": arguments}).to_string(), &answer);

        let mut in_search = Conversation::new(search.definitions, &task.request);
        let (written, results) = search.calls(&found).await;
        in_search.round(&written, &results);
        let described: Vec<(&str, Value)> =
            searches.iter().map(|(tool, _)| ("describe_tool", json!({ "name": tool }))).collect();
        let (written, results) = search.calls(&described).await;
        in_search.round(&written, &results);

        let mut in_all = Conversation::new(all.definitions, &task.request);
        let mut rest = calls.iter();
        for stage in &task.stages {
            let stage: Vec<&Call> = rest.by_ref().take(*stage).collect();
            let results: String = stage.iter().map(|call| call.result.as_str()).collect();
            let direct: String = stage
                .iter()
                .map(|call| json!({"name": call.tool, "arguments": call.arguments}).to_string())
                .collect();
            in_all.round(&direct, &results);
            let wrapped: Vec<Value> = stage
                .iter()
                .map(|call| json!({"name": "call_tool", "arguments": {"name": call.tool, "arguments": call.arguments}}))
                .collect();
            let written: String = wrapped.iter().map(Value::to_string).collect();
            in_search.round(&written, &results);
        }
        // The other modes get the same results by their own calls.
        let (first, direct) = (&calls[0], all.call(&calls[0].tool, &calls[0].arguments).await);
        assert_eq!(direct, first.result, "{}", task.id);
        let inner = json!({"name": first.tool, "arguments": first.arguments});
        assert_eq!(search.call("call_tool", &inner).await, first.result, "{}", task.id);
        logged(&log);
        let group = usize::from(calls.len() > FEW_CALLS);
        for (sum, conversation) in sums[group].iter_mut().zip([in_all, in_search, in_code]) {
            *sum += conversation.answer(&answer);
        }
    }
    println!("{} tasks, {} tools", tasks.len(), listed["tools"].as_array().unwrap().len());
    println!("{:<28}{:>14}{:>14}{:>8}", "", "input tokens", "output tokens", "rounds");
    for (group, usages) in ["up to 5 calls", "more than 5 calls"].iter().zip(&sums) {
        for (mode, usage) in ["all tools listed", "search", "code"].iter().zip(usages) {
            let Usage { input, output, rounds } = usage;
            println!("{group:<18} {mode:<17}{input:>6}{output:>14}{rounds:>8}");
        }
    }
    let [_, search, code] = sums[1];
    assert!(code.input * 2 <= search.input, "code {} of search {}", code.input, search.input);
}
