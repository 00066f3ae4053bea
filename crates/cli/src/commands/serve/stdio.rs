//! `toolhub serve --stdio`: one client over stdin and stdout.

use std::io::{BufRead as _, Read as _, Write as _};
use std::sync::Arc;

use anyhow::Context as _;
use tokio::sync::mpsc;
use toolhub::Gateways;
use toolhub_mcp_gateway::{Duplex, PrincipalHandle};
use toolhub_server::StreamRecorder;

use crate::app::StopSignal;
use crate::commands::serve::CLOSE_TIMEOUT;
use crate::commands::serve::event_sinks::EventSinks;
use crate::exit::Exit;

/// The maximum size of a message on stdin.
const MAX_LINE_BYTES: u64 = 4 << 20;
/// Capacity of the message channels.
const QUEUE_CAPACITY: usize = 256;

/// Serves one client on stdin and stdout. Two dedicated threads do the blocking reads and writes, which avoids `spawn_blocking`
/// for each line.
pub(crate) async fn serve_stdio(
    gateways: &Arc<Gateways>,
    sinks: &EventSinks,
    stopped: &mut StopSignal,
) -> anyhow::Result<Exit> {
    let gateway = gateways.profile(None).context("the profile is gone")?;
    let principal = PrincipalHandle::local();
    let recorder = StreamRecorder::new(sinks.request_sink(), principal.clone(), sinks.sampler());
    let (duplex, mut messages) = Duplex::open(&gateway, principal);
    let (lines, mut stdin_lines) = mpsc::channel(QUEUE_CAPACITY);
    std::thread::Builder::new().name("stdin".to_owned()).spawn(move || read_lines(&lines))?;
    let (stdout_tx, mut stdout_rx) = mpsc::channel::<String>(QUEUE_CAPACITY);
    let writer = std::thread::Builder::new().name("stdout".to_owned()).spawn(move || {
        let mut out = std::io::stdout().lock();
        while let Some(text) = stdout_rx.blocking_recv() {
            let mut written = writeln!(out, "{text}");
            while let Ok(text) = stdout_rx.try_recv() {
                written = written.and_then(|()| writeln!(out, "{text}"));
            }
            if written.and_then(|()| out.flush()).is_err() {
                return;
            }
        }
    })?;
    let read_loop = async {
        while let Some(line) = stdin_lines.recv().await {
            recorder.open_record(&line).scope(duplex.receive(&line)).await;
        }
    };
    let run_until_closed = async {
        tokio::select! {
            () = read_loop => {}
            () = stopped.recv() => {}
        }
        // Pending requests are still answered, if necessary with the error that they were cancelled.
        let drained = tokio::time::timeout(CLOSE_TIMEOUT, duplex.drain());
        let ((), drained) = tokio::join!(gateways.close(CLOSE_TIMEOUT), drained);
        if drained.is_err() {
            gateways.abort_all();
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, duplex.drain()).await;
        }
    };
    let write_loop = async {
        while let Some(text) = messages.recv().await {
            recorder.close_record(&text);
            if stdout_tx.send(text.into_text()).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = run_until_closed => {}
        () = write_loop => {}
    }
    while let Ok(text) = messages.try_recv() {
        recorder.close_record(&text);
        let _ = stdout_tx.send(text.into_text()).await;
    }
    drop((stdout_tx, duplex));
    let _ = tokio::task::spawn_blocking(move || writer.join()).await;
    Ok(Exit::Done)
}

fn read_lines(lines: &mpsc::Sender<String>) {
    let mut input = std::io::stdin().lock();
    loop {
        let mut line = Vec::new();
        match (&mut input).take(MAX_LINE_BYTES).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        // A message that exceeds the limit is truncated, and refused as invalid JSON.
        if line.last() != Some(&b'\n') && line.len() as u64 >= MAX_LINE_BYTES && !skip_line(&mut input) {
            return;
        }
        let text = String::from_utf8_lossy(&line).trim().to_owned();
        if !text.is_empty() && lines.blocking_send(text).is_err() {
            return;
        }
    }
}

/// Skips the rest of a line. Returns whether there is more input.
fn skip_line(input: &mut std::io::StdinLock<'_>) -> bool {
    loop {
        let (used, found) = match input.fill_buf() {
            Ok([]) | Err(_) => return false,
            Ok(bytes) => match bytes.iter().position(|byte| *byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (bytes.len(), false),
            },
        };
        input.consume(used);
        if found {
            return true;
        }
    }
}
