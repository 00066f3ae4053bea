//! The cost of an index by number of tools: build time, request time, memory.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};
use toolhub_core::Tool;
use toolhub_search::metrics::SearchTally;
use toolhub_search::{RankingSettings, SearchRequest, ToolIndex};

use crate::columns::columns;
use crate::sets::Set;

const SIZES: [usize; 2] = [1_000, 5_000];
const REQUESTS: usize = 2_000;
const ROUNDS: usize = 3;

#[derive(Serialize, Deserialize)]
pub(crate) struct Cost {
    tools: usize,
    index_ms: f64,
    replace_source_ms: f64,
    memory_mb: Option<f64>,
    p50_ms: f64,
    p99_ms: f64,
    max_ms: f64,
}

/// Measures each size in a separate process: memory freed by one index would hide the allocations of the next one.
pub(crate) fn measure(data: &Path, sets: &[Set]) -> Result<Vec<Cost>> {
    let largest = sets.iter().map(|set| set.tools.len()).max().unwrap_or(0);
    let mut sizes: Vec<usize> = SIZES.into_iter().filter(|size| *size < largest).collect();
    sizes.push(largest);
    let program = std::env::current_exe()?;
    let measure = |size: usize| {
        let mut command = Command::new(&program);
        command.arg("--data").arg(data).arg("--cost").arg(size.to_string());
        let output = command.output()?;
        ensure!(
            output.status.success(),
            "measuring {size} tools failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(serde_json::from_slice(&output.stdout)?)
    };
    sizes.into_iter().map(measure).collect()
}

/// The cost of an index of the first `size` tools of the largest set, with requests of all sets.
pub(crate) fn measure_one(sets: &[Set], size: usize, settings: &RankingSettings) -> Option<Cost> {
    let largest = sets.iter().max_by_key(|set| set.tools.len())?;
    // Alternates between the sets, so that both languages and all lengths are included.
    let asking: Vec<&Set> = sets.iter().filter(|set| !set.queries.is_empty()).collect();
    let requests: Vec<&str> = (0..)
        .flat_map(|round| asking.iter().filter_map(move |set| set.queries.get(round * 7 % set.queries.len())))
        .map(|query| query.query.as_str())
        .take(if asking.is_empty() { 0 } else { REQUESTS })
        .collect();
    Some(cost(largest.tools().take(size).collect(), &requests, settings))
}

fn cost(tools: Vec<Tool>, requests: &[&str], settings: &RankingSettings) -> Cost {
    let source = tools.first().map(|tool| tool.source.clone());
    let before = resident();
    let start = Instant::now();
    let index = ToolIndex::new(tools, settings.clone());
    let built = start.elapsed();
    let memory_mb = before.zip(resident()).map(|(before, after)| (after - before).max(0.0));
    index.rank(&SearchRequest::new("warm up 预热"));
    let start = Instant::now();
    if let Some(source) = source {
        let _ = index.replace_source(&source, []);
    }
    let replaced = start.elapsed();
    let mut tally = SearchTally::default();
    let mut slowest = Duration::ZERO;
    for request in requests {
        // The minimum of several runs, to exclude other load on the machine.
        let times = (0..ROUNDS).map(|_| {
            let start = Instant::now();
            index.rank(&SearchRequest::new(request));
            start.elapsed()
        });
        let took = times.min().unwrap_or_default();
        slowest = slowest.max(took);
        tally.add(&[()], &[()], took);
    }
    let latency = tally.report(built).latency_ms;
    Cost {
        tools: index.len(),
        index_ms: built.as_secs_f64() * 1e3,
        replace_source_ms: replaced.as_secs_f64() * 1e3,
        memory_mb,
        p50_ms: latency.p50,
        p99_ms: latency.p99,
        max_ms: slowest.as_secs_f64() * 1e3,
    }
}

/// Resident memory of this process in MiB; `None` if there is no `/proc`.
fn resident() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<f64>().ok().map(|kilobytes| kilobytes / 1024.0)
}

pub(crate) fn table(costs: &[Cost]) -> String {
    let head = ["tools", "index ms", "replace one source ms", "memory MB", "p50 ms", "p99 ms", "max ms"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for cost in costs {
        let memory = cost.memory_mb.map_or("?".to_owned(), |memory| format!("{memory:.1}"));
        lines.push(vec![
            cost.tools.to_string(),
            format!("{:.0}", cost.index_ms),
            format!("{:.0}", cost.replace_source_ms),
            memory,
            format!("{:.2}", cost.p50_ms),
            format!("{:.2}", cost.p99_ms),
            format!("{:.2}", cost.max_ms),
        ]);
    }
    columns(&lines)
}
