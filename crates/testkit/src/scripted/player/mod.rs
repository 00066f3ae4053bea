//! The program `scripted-mcp`: reads its script, serves it, and exits as scripted, at EOF or on a signal.

mod act;
mod action;
mod body_part;
mod default_responses;
mod headers;
mod http;
mod http_body;
mod http_check;
mod http_writer;
mod lock;
mod message;
mod peer;
mod perform;
mod plan;
mod player_state;
mod record;
mod request_check;
mod response_writer;
mod resume;
mod scenario;
mod shuffle;
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

use self::{player_state::PlayerState, scenario::Scenario};

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
    let code = runtime.block_on(run_async(invocation));
    // A thread may be blocked in a read of stdin.
    runtime.shutdown_background();
    code
}

async fn run_async(Invocation { transport, scenario }: Invocation) -> Result<u8, String> {
    let (exits, mut exit) = mpsc::channel(1);
    let player_state = PlayerState::new(scenario, exits)?;
    let terminated = termination(Arc::clone(&player_state))?;
    player_state.journal.event("start", &json!({}));
    let code = tokio::select! {
        code = serve(Arc::clone(&player_state), transport) => code?,
        Some(code) = exit.recv() => code,
        () = terminated => 0,
    };
    player_state.journal.event("exit", &json!({"code": code}));
    Ok(code)
}

async fn serve(player_state: Arc<PlayerState>, transport: Transport) -> Result<u8, String> {
    for line in &player_state.scenario.stderr {
        act::stderr(format!("{line}\n").into_bytes()).await;
    }
    tokio::time::sleep(Duration::from_millis(player_state.scenario.start_delay_ms)).await;
    match transport {
        Transport::Stdio => Ok(stdio::serve(player_state).await),
        Transport::Http { port, until_eof } => tokio::select! {
            served = http::serve(player_state, port) => served.map(|()| 0).map_err(|error| error.to_string()),
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
fn termination(player_state: Arc<PlayerState>) -> Result<impl Future<Output = ()>, String> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut signals = signal(SignalKind::terminate()).map_err(|error| format!("no signals: {error}"))?;
    Ok(async move {
        while signals.recv().await.is_some() {
            player_state.journal.event("term", &json!({}));
            if player_state.scenario.shutdown != scenario::Shutdown::IgnoreTerm {
                return;
            }
        }
    })
}

#[cfg(not(unix))]
fn termination(_stage: Arc<PlayerState>) -> Result<impl Future<Output = ()>, String> {
    Ok(std::future::pending())
}
