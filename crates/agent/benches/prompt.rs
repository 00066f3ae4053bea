//! How long the prompt for a thousand tools takes to build.

#![expect(clippy::unwrap_used, reason = "a benchmark")]

use std::collections::HashMap;
use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use toolhub_agent::prompt::{PromptOptions, PromptPurpose, build_prompt_with};
use toolhub_agent::{ServerChoice, ToolAllowlist};
use toolhub_core::model::ToolPresentation;
use toolhub_core::{Lang, RawJson, Source, Tool, ToolDefinition};
use toolhub_engine::{Catalog, RoutingPolicy};

fn tool(number: usize) -> Tool {
    let definition = serde_json::json!({
        "name": format!("tool_{number:04}"),
        "description": format!("Handles the case {number} of many, thoroughly, and tells what came of it."),
        "inputSchema": {"type": "object", "properties": {
            "case": {"type": "string", "description": "Which case"},
            "depth": {"type": "integer", "default": 3},
            "kind": {"enum": ["short", "long"]}
        }, "required": ["case"]}
    });
    Tool::new(Source::from_name("many"), ToolDefinition::parse(RawJson::from(definition)).unwrap())
}

fn prompts(criterion: &mut Criterion) {
    let catalog = Catalog::new((0..1_000).map(tool));
    let policy = RoutingPolicy::default();
    let servers = ServerChoice { catalog: &catalog, policy: &policy, unavailable: &[] };
    let names: Vec<String> = (0..50).map(|number| format!("tool_{:04}", number * 17)).collect();
    let relevant: Vec<&str> = names.iter().map(String::as_str).collect();
    let examples = HashMap::new();
    for (name, tool_presentation) in
        [("text", ToolPresentation::InSystemPrompt), ("native", ToolPresentation::Native)]
    {
        let options = PromptOptions {
            purpose: PromptPurpose::Talk,
            query: None,
            tool_presentation,
            instructions: None,
            budget: 3_000,
            lang: Lang::En,
            examples: &examples,
            client_tools: &[],
        };
        criterion.bench_function(&format!("prompt of 1,000 tools, {name}"), |bencher| {
            bencher.iter(|| {
                black_box(build_prompt_with(servers, &ToolAllowlist::default(), &relevant, options))
            });
        });
    }
}

criterion_group!(benches, prompts);
criterion_main!(benches);
