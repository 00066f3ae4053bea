//! How many of many tools are found suspicious, and why: tools as JSON lines on standard input, with `parameters` or
//! `inputSchema` as their schema. `cargo run -p toolhub-engine --example suspicious < tools.jsonl`
#![expect(clippy::print_stdout, reason = "the program prints its result")]

use std::collections::BTreeMap;
use std::io::BufRead as _;
use std::time::{Duration, Instant};

use toolhub_core::{Localize as _, RawJson, RawObject, ToolDefinition, lang::Lang};
use toolhub_engine::definition_scan::scan_definition;

fn main() {
    let (mut tools, mut suspicious, mut took) = (0_usize, 0_usize, Duration::ZERO);
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let Some(tool) = RawJson::parse(line).ok().and_then(|raw| raw.object()) else { continue };
        let mut definition = RawObject::default();
        for (key, value) in tool.iter() {
            match key {
                "name" | "description" | "title" | "inputSchema" | "outputSchema" | "annotations" => {
                    definition.set(key.to_owned(), value.clone());
                }
                "parameters" if value.is_object() => definition.set("inputSchema", value.clone()),
                _ => {}
            }
        }
        let Ok(definition) = ToolDefinition::parse(definition.into_raw()) else { continue };
        let start = Instant::now();
        let findings = scan_definition(&definition);
        took += start.elapsed();
        tools += 1;
        suspicious += usize::from(!findings.is_empty());
        let mut found: Vec<&str> = findings.iter().map(|finding| finding.kind.name()).collect();
        found.dedup();
        found.into_iter().for_each(|kind| *kinds.entry(kind).or_default() += 1);
        for finding in &findings {
            println!("{}\t{}\t{}", definition.name(), finding.kind.name(), finding.localize(Lang::En));
        }
    }
    let percent = 100.0 * suspicious as f64 / tools.max(1) as f64;
    println!("{suspicious} of {tools} tools ({percent:.2} %), {took:?} in all; {kinds:?}");
}
