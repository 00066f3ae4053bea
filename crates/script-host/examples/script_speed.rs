//! Measures scripts: `cargo run --release -p toolhub-script-host --example script_speed`. Prints the time of a trivial
//! script with a new and with a waiting host, and the time of nested calls beside that of the same calls without a script.
#![expect(clippy::print_stdout, reason = "the program prints its result")]

use std::error::Error;
use std::time::{Duration, Instant};

use toolhub_core::lang::Lang;
use toolhub_core::{BoxFuture, RawJson};
use toolhub_sandbox::Isolation;
use toolhub_script::protocol::ToolPath;
use toolhub_script::{
    HostConfig, RunnerConfig, Script, ScriptCall, ScriptLimits, ScriptReport, ScriptRunner, ScriptTool,
    ScriptToolError, ScriptTools,
};

const RUNS: usize = 200;
const CALLS: u32 = 1_000;

/// A tool that returns its arguments.
struct Echo;

impl ScriptTools for Echo {
    fn tools(&self) -> BoxFuture<'_, Vec<ScriptTool>> {
        let path = ToolPath { name: "echo".to_owned(), member: Some(("test".to_owned(), "echo".to_owned())) };
        Box::pin(std::future::ready(vec![ScriptTool { path, read_only: true }]))
    }

    fn signature(&self, _: &str) -> Option<String> {
        None
    }

    fn call(&self, call: ScriptCall) -> BoxFuture<'_, Result<RawJson, ScriptToolError>> {
        Box::pin(std::future::ready(Ok(call.arguments)))
    }
}

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
    println!("{:<44}{:>9}{:>9}{:>9}", "", "p50 ms", "p90 ms", "p99 ms");
    for isolation in [Isolation::Builtin, Isolation::Bubblewrap] {
        if !toolhub_sandbox::support().missing(isolation).is_empty() {
            continue;
        }
        let host = HostConfig { isolation, ..HostConfig::of_current_program()? };
        let limits = ScriptLimits { calls: CALLS, ..ScriptLimits::default() };
        let cold = RunnerConfig { limits, warm_hosts: 0, ..RunnerConfig::new(host) };
        let warm = ScriptRunner::new(RunnerConfig { warm_hosts: 1, ..cold.clone() });
        let cold = ScriptRunner::new(cold);
        let script = Script::new("1 + 1");
        print_row(&format!("new host ({isolation:?})"), &mut times(&cold, &script, false).await?);
        print_row(&format!("waiting host ({isolation:?})"), &mut times(&warm, &script, true).await?);
        warm.shutdown().await;
    }
    calls().await
}

/// The times of a script. With `warm`, the host is started before the clock.
async fn times(runner: &ScriptRunner, script: &Script, warm: bool) -> Result<Vec<Duration>, Box<dyn Error>> {
    let mut times = Vec::with_capacity(RUNS);
    // The first runs only warm the caches.
    for run in 0..RUNS + 10 {
        if warm {
            runner.warm_up().await?;
        }
        let began = Instant::now();
        let report = runner.run(script, &Echo, None).await;
        if run >= 10 {
            times.push(began.elapsed());
        }
        expect(&report, "2")?;
    }
    Ok(times)
}

fn print_row(name: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let at = |percent: usize| times.get(times.len() * percent / 100).copied().unwrap_or_default();
    let cells = [50, 90, 99].map(|percent| format!("{:>9.2}", at(percent).as_secs_f64() * 1e3));
    println!("{name:<44}{}", cells.concat());
}

async fn calls() -> Result<(), Box<dyn Error>> {
    let limits = ScriptLimits { calls: CALLS, ..ScriptLimits::default() };
    let config = RunnerConfig { limits, ..RunnerConfig::new(HostConfig::of_current_program()?) };
    let runner = ScriptRunner::new(config);
    let arguments = RawJson::parse("{\"row\":1,\"text\":\"some text of a usual length\"}")?;
    let began = Instant::now();
    for id in 1..=CALLS {
        Echo.call(ScriptCall { id, tool: "echo".to_owned(), arguments: arguments.clone() }).await?;
    }
    print_calls("direct calls", began.elapsed());
    for (name, code) in [
        ("calls of a script, one after another", "for (let i = 0; i < N; i++) await tools.test.echo(A); N"),
        (
            "calls of a script, 8 at a time",
            "for (let i = 0; i < N; i += 8) await Promise.all(Array.from({ length: 8 }, () => tools.test.echo(A))); N",
        ),
    ] {
        let mut best = Duration::MAX;
        for _ in 0..5 {
            runner.warm_up().await?;
            let code = format!("const N = {CALLS}, A = {};\n{code}", arguments.get());
            let began = Instant::now();
            let report = runner.run(&Script::new(code), &Echo, None).await;
            best = best.min(began.elapsed());
            expect(&report, &CALLS.to_string())?;
        }
        print_calls(name, best);
    }
    runner.shutdown().await;
    Ok(())
}

fn print_calls(name: &str, took: Duration) {
    let each = took.as_secs_f64() * 1e6 / f64::from(CALLS);
    println!("{name:<44}{:>9.2} ms for {CALLS}, {each:.1} µs each", took.as_secs_f64() * 1e3);
}

fn expect(report: &ScriptReport, value: &str) -> Result<(), Box<dyn Error>> {
    match report.value().map(RawJson::get) {
        Some(found) if found == value => Ok(()),
        _ => Err(report.notes(Lang::En).into()),
    }
}
