//! The program `scripted-mcp`: reads its script, serves it, and exits as scripted, at EOF or on a signal.

mod act;
mod action;
mod answers;
mod gate;
mod headers;
mod http;
mod http_body;
mod http_gate;
mod http_out;
mod message;
mod outlet;
mod peer;
mod perform;
mod plan;
mod record;
mod resume;
mod scenario;
mod shuffle;
mod stage;
mod stdio;

use std::{
    ffi::OsString,
    io::{self, Write},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use serde_json::json;
use tokio::{io::AsyncReadExt, sync::mpsc};

use self::{scenario::Scenario, stage::Stage};

const USAGE: &str = "usage: scripted-mcp stdio SCRIPT | scripted-mcp http SCRIPT [--port PORT] [--until-eof]";

/// Runs the scripted server with its command-line arguments.
pub fn play(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    match parse(arguments).and_then(run) {
        Ok(code) => ExitCode::from(code),
        Err(problem) => {
            // Errors of writing to stderr cannot be reported.
            _ = writeln!(io::stderr(), "scripted-mcp: {problem}");
            ExitCode::from(2)
        }
    }
}

struct Invocation {
    transport: Transport,
    scenario: Scenario,
}

enum Transport {
    Stdio,
    Http {
        port: u16,
        /// Exit at EOF on stdin, so that the server does not outlive the test process.
        until_eof: bool,
    },
}

fn parse(mut arguments: impl Iterator<Item = OsString>) -> Result<Invocation, String> {
    let (Some(transport), Some(script)) = (arguments.next(), arguments.next()) else {
        return Err(USAGE.to_owned());
    };
    let mut transport = match transport.to_str() {
        Some("stdio") => Transport::Stdio,
        Some("http") => Transport::Http { port: 0, until_eof: false },
        _ => return Err(USAGE.to_owned()),
    };
    while let Some(option) = arguments.next() {
        match (&mut transport, option.to_str()) {
            (Transport::Http { until_eof, .. }, Some("--until-eof")) => *until_eof = true,
            (Transport::Http { port, .. }, Some("--port")) => {
                let value = arguments.next().and_then(|value| value.to_str()?.parse().ok());
                *port = value.ok_or("`--port` needs a number")?;
            }
            _ => return Err(USAGE.to_owned()),
        }
    }
    Ok(Invocation { transport, scenario: Scenario::load(&script)? })
}

fn run(invocation: Invocation) -> Result<u8, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    let code = runtime.block_on(live(invocation));
    // A thread may be blocked in a read of stdin.
    runtime.shutdown_background();
    code
}

async fn live(Invocation { transport, scenario }: Invocation) -> Result<u8, String> {
    let (exits, mut exit) = mpsc::channel(1);
    let stage = Stage::new(scenario, exits)?;
    let terminated = termination(Arc::clone(&stage))?;
    stage.journal.event("start", &json!({}));
    let code = tokio::select! {
        code = serve(Arc::clone(&stage), transport) => code?,
        Some(code) = exit.recv() => code,
        () = terminated => 0,
    };
    stage.journal.event("exit", &json!({"code": code}));
    Ok(code)
}

async fn serve(stage: Arc<Stage>, transport: Transport) -> Result<u8, String> {
    for line in &stage.scenario.stderr {
        act::stderr(format!("{line}\n").into_bytes()).await;
    }
    tokio::time::sleep(Duration::from_millis(stage.scenario.start_delay_ms)).await;
    match transport {
        Transport::Stdio => Ok(stdio::serve(stage).await),
        Transport::Http { port, until_eof } => tokio::select! {
            served = http::serve(stage, port) => served.map(|()| 0).map_err(|error| error.to_string()),
            () = end_of_input(), if until_eof => Ok(0),
        },
    }
}

async fn end_of_input() {
    let mut input = tokio::io::stdin();
    let mut ignored = [0; 1024];
    while input.read(&mut ignored).await.is_ok_and(|read| read > 0) {}
}

/// Completes on a SIGTERM that ends the process. The signal is caught from this call on.
#[cfg(unix)]
fn termination(stage: Arc<Stage>) -> Result<impl Future<Output = ()>, String> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut signals = signal(SignalKind::terminate()).map_err(|error| format!("no signals: {error}"))?;
    Ok(async move {
        while signals.recv().await.is_some() {
            stage.journal.event("term", &json!({}));
            if stage.scenario.shutdown != scenario::Shutdown::IgnoreTerm {
                return;
            }
        }
    })
}

#[cfg(not(unix))]
fn termination(_stage: Arc<Stage>) -> Result<impl Future<Output = ()>, String> {
    Ok(std::future::pending())
}
