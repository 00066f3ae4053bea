//! The cost of calls in scripts: `calculate` called through the library and from a script, side by side. Part of
//! `cargo xtask bench script`.

#![expect(clippy::print_stdout, reason = "it prints its measurements")]

use std::error::Error;
use std::time::{Duration, Instant};

use serde_json::json;
use toolhub::{Hub, ScriptHost, ToolCall};

const CALLS: u32 = 1_000;
const ROUNDS: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    if toolhub_sandbox::run_guard_if_requested() || toolhub_script_host::run_if_requested() {
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let result = runtime.block_on(measure());
    toolhub_sandbox::stop_guard();
    result
}

async fn measure() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let config = folder.path().join("toolhub.toml");
    std::fs::write(&config, format!("[script]\ncalls = {CALLS}\n"))?;
    let hub =
        Hub::builder().config(config).home(folder.path()).script_host(ScriptHost::of_current_program()?);
    let hub = hub.build().await?;
    let (mut library, mut script) = (Duration::MAX, Duration::MAX);
    // Alternating, so that a slow moment of the machine concerns both.
    for _ in 0..ROUNDS {
        let began = Instant::now();
        for number in 0..CALLS {
            let call = ToolCall::new("calculate", json!({"expression": format!("{number} + 1")}));
            hub.call(call).await.result.map_err(|error| format!("{error:?}"))?;
        }
        library = library.min(began.elapsed());
        let code = format!(
            "for (let i = 0; i < {CALLS}; i++) await tools.calculate({{ expression: `${{i}} + 1` }})"
        );
        let began = Instant::now();
        let outcome = hub.call(ToolCall::new("run_script", json!({ "code": code }))).await;
        outcome.result.map_err(|error| format!("{error:?}"))?;
        script = script.min(began.elapsed());
    }
    let each = |time: Duration| time.as_secs_f64() * 1e6 / f64::from(CALLS);
    println!("{CALLS} calls of `calculate`, best of {ROUNDS} rounds");
    println!("{:<44}{:>9.1} µs each", "through the library", each(library));
    println!("{:<44}{:>9.1} µs each", "from a script, with its start", each(script));
    println!("{:<44}{:>9.2}", "ratio", script.as_secs_f64() / library.as_secs_f64());
    hub.shutdown().await;
    Ok(())
}
