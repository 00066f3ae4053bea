//! Requests answered end to end with a real language model, in each of the three ways it may work: calls of its own,
//! calls as text, and a plan. `cargo xtask e2e-model` starts the model and names it in `TOOLHUB_E2E_MODEL_URL`; without it
//! there is nothing to test, and the test says so.

use std::time::Instant;

use toolhub::{AskOptions, Hub, NobodyThere, Way};

const VARIABLE: &str = "TOOLHUB_E2E_MODEL_URL";

/// A request, the tool that serves it, and what its result or the answer must hold.
const REQUESTS: [(&str, &str, &str); 8] = [
    ("23*47 等于多少？", "calculate", "1081"),
    ("What is 15% of 80?", "calculate", "12"),
    ("What time is it in Tokyo?", "get_time", "Asia/Tokyo"),
    ("现在柏林几点了？", "get_time", "Europe/Berlin"),
    ("Convert 5 km to miles.", "calculate", "3.1"),
    ("请列出当前目录下的文件", "list_files", "notes.txt"),
    ("Read the file notes.txt and tell me what it says.", "read_file", "violin"),
    ("2 的 20 次方是多少？", "calculate", "1048576"),
];

struct Came {
    tool: bool,
    answer: bool,
}

#[tokio::test]
async fn requests_are_answered_in_three_ways() {
    let Ok(url) = std::env::var(VARIABLE) else {
        println!("`{VARIABLE}` is not set: run `cargo xtask e2e-model` to test with a real model");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("notes.txt"), "Buy strings for the violin.\n").unwrap();
    let mut table = Vec::new();
    for (name, tool_calls, way) in [
        ("native calls", "native", Way::Talk),
        ("calls as text", "text", Way::Talk),
        ("planned", "native", Way::Plan),
    ] {
        let config = folder.path().join(format!("{tool_calls}.toml"));
        let text = format!(
            "[llm]\nurl = \"{url}\"\ntool_calls = \"{tool_calls}\"\ntemperature = 0.0\nmax_tokens = 300\ntimeout = \"10m\"\n\
             [native]\nfolders = [\".\"]\n\
             [agents.default]\ntools = [\"calculate\", \"get_time\", \"list_files\", \"read_file\"]\ntime = \"15m\"\nrounds = 4\n"
        );
        std::fs::write(&config, text).unwrap();
        let hub = Hub::builder().config(&config).home(folder.path().join(name)).build().await.unwrap();
        let (begun, mut came) = (Instant::now(), Vec::new());
        for (request, tool, holds) in REQUESTS {
            let options = AskOptions { way: Some(way), ..AskOptions::default() };
            let answer = hub.ask(request, (&options, &NobodyThere), &|_| {}).await.unwrap();
            let called = |step: &toolhub::StepResult| {
                step.tool.as_ref().is_some_and(|name| name.as_str() == tool) && step.success()
            };
            // Where the model failed, rules have answered: that says nothing of it.
            let right = answer.steps.iter().find(|step| answer.model.is_some() && called(step));
            let holds = right.is_some_and(|step| step.text.contains(holds)) || answer.text.contains(holds);
            println!(
                "{name}: {request} -> {:?} {:?}",
                answer.steps.iter().map(|step| &step.description).collect::<Vec<_>>(),
                answer.text
            );
            came.push(Came { tool: right.is_some(), answer: holds });
        }
        hub.shutdown().await;
        let count = |wanted: fn(&Came) -> bool| came.iter().filter(|one| wanted(one)).count();
        table.push((name, count(|one| one.tool), count(|one| one.answer), begun.elapsed()));
    }
    println!("{:<14} {:>10} {:>12} {:>9}", "way", "right tool", "right result", "seconds");
    for (name, tools, answers, took) in &table {
        println!(
            "{name:<14} {tools:>7}/{} {answers:>9}/{} {:>9.0}",
            REQUESTS.len(),
            REQUESTS.len(),
            took.as_secs_f32()
        );
    }
    // A small model errs; that it can be used at all in each way is what is held here.
    for (name, tools, ..) in &table {
        assert!(*tools * 2 >= REQUESTS.len(), "{name}: {tools} of {} with the right tool", REQUESTS.len());
    }
}
