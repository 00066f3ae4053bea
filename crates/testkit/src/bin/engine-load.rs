//! Calls a trivial native tool in a loop, for the benchmark `engine`: with and without the call log, alternating in
//! rounds, with one and with many callers. Prints calls per second and the ratio.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use tokio::task::JoinSet;
use toolhub::{Hub, ToolCall, tool};

/// The allocator of the toolhub binary.
#[cfg(unix)]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const ROUNDS: usize = 7;
const ROUND: Duration = Duration::from_millis(700);

/// Answers, and changes nothing.
#[tool(read_only)]
async fn look() -> String {
    "seen".to_owned()
}

/// Answers; no hint states that it changes nothing.
#[tool]
async fn touch() -> String {
    "touched".to_owned()
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::print_stdout, reason = "the benchmark that starts it reads the output")]
async fn main() -> Result<()> {
    let folder = PathBuf::from(std::env::args_os().nth(1).context("usage: engine-load FOLDER")?);
    std::fs::create_dir_all(&folder)?;
    let config = folder.join("toolhub.toml");
    std::fs::write(&config, "")?;
    let builder = |home: &str| Hub::builder().config(&config).home(folder.join(home)).tool(look).tool(touch);
    let off = Arc::new(builder("off").without_store().build().await?);
    let on = Arc::new(builder("on").build().await?);
    println!(
        "{:<34} {:>12} {:>12} {:>7}",
        "calls per second, median of rounds", "store off", "store on", "ratio"
    );
    for (name, tool) in [("read-only", "look"), ("may change something", "touch")] {
        for callers in [1, 32] {
            let (mut without, mut with) = (Vec::new(), Vec::new());
            for _ in 0..ROUNDS {
                without.push(rate(&off, tool, callers).await?);
                with.push(rate(&on, tool, callers).await?);
            }
            let (without, with) = (median(without), median(with));
            let label = format!("{name}, {callers} caller{}", if callers == 1 { "" } else { "s" });
            println!("{label:<34} {without:>12.0} {with:>12.0} {:>7.2}", with / without);
        }
    }
    on.shutdown().await;
    off.shutdown().await;
    Ok(())
}

/// Calls per second in one round.
async fn rate(hub: &Arc<Hub>, tool: &'static str, callers: usize) -> Result<f64> {
    let (done, failed) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..callers {
        let (hub, done, failed) = (Arc::clone(hub), Arc::clone(&done), Arc::clone(&failed));
        tasks.spawn(async move {
            while started.elapsed() < ROUND {
                let outcome = hub.call(ToolCall::new(tool, json!({}))).await;
                done.fetch_add(1, Ordering::Relaxed);
                failed.fetch_add(u64::from(!outcome.success()), Ordering::Relaxed);
                // A trivial tool never waits, so yields to other tasks.
                tokio::task::yield_now().await;
            }
        });
    }
    while let Some(joined) = tasks.join_next().await {
        joined?;
    }
    let failed = failed.load(Ordering::Relaxed);
    ensure!(failed == 0, "{failed} calls failed");
    Ok(done.load(Ordering::Relaxed) as f64 / started.elapsed().as_secs_f64())
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}
