//! A load generator for the stdin and stdout of a program, with several calls in flight.

use std::collections::HashMap;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Command;

use crate::{load::report, wire};

#[derive(Deserialize)]
struct Response {
    id: u64,
}

/// Keeps `callers` calls in flight for `seconds`; prints the PID of the program first, and the figures at the end.
#[expect(clippy::print_stdout, reason = "the benchmark that starts it reads the figures")]
pub(crate) async fn run(program: &str, arguments: &[&str], callers: u64, seconds: f64) -> Result<()> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("cannot start {program}"))?;
    let mut input = child.stdin.take().context("no stdin")?;
    let mut output = BufReader::new(child.stdout.take().context("no stdout")?);
    let mut line = String::new();
    // The first call connects the gateway to its server.
    input.write_all(format!("{}\n", wire::call(0, wire::TOOL)).as_bytes()).await?;
    output.read_line(&mut line).await?;
    ensure!(line.contains("hello hello hello"), "wrong answer: {line}");
    println!("{}", child.id().context("it has ended")?);
    let mut line_read = String::new();
    tokio::io::AsyncBufReadExt::read_line(&mut BufReader::new(tokio::io::stdin()), &mut line_read).await?;
    let run_started = Instant::now();
    let until = run_started + Duration::from_secs_f64(seconds);
    let (mut under_way, mut times, mut next) = (HashMap::new(), Vec::new(), 1);
    loop {
        let now = Instant::now();
        let mut batch = String::new();
        while now < until && (under_way.len() as u64) < callers {
            batch.push_str(&wire::call(next, wire::TOOL));
            batch.push('\n');
            under_way.insert(next, now);
            next += 1;
        }
        input.write_all(batch.as_bytes()).await?;
        if under_way.is_empty() {
            break;
        }
        line.clear();
        ensure!(output.read_line(&mut line).await? > 0, "the program has ended");
        ensure!(line.contains("hello hello hello"), "wrong answer: {line}");
        let Response { id } = serde_json::from_str(&line)?;
        match under_way.remove(&id) {
            Some(started) => times.push(started.elapsed()),
            None => bail!("an answer to nothing: {line}"),
        }
    }
    println!("{}", report(&mut times, run_started.elapsed())?);
    Ok(())
}
