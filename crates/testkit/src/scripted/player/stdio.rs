//! The scripted server over stdio.

use std::{future::pending, sync::Arc, time::Duration};

use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use super::{
    gate::{self, Era, Verdict},
    message::Message,
    outlet::{Lines, Outlet},
    peer::Peer,
    perform::{Memory, Performance},
    scenario::Shutdown,
    stage::Stage,
};

/// How long pending responses may still be written after EOF.
const GRACE: Duration = Duration::from_millis(200);

/// Serves until EOF, if that is to end the process.
pub(super) async fn serve(stage: Arc<Stage>) -> u8 {
    let (lines, writer) = Lines::new(tokio::io::stdout());
    let mut writers = JoinSet::new();
    writers.spawn(writer);
    for line in &stage.scenario.banner {
        lines.line(line).await;
    }
    let peer = Peer::new();
    let mut input = BufReader::new(tokio::io::stdin());
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = tokio::select! {
            biased;
            () = stage.stop_reading.cancelled() => pending().await,
            read = input.read_until(b'\n', &mut line) => read.unwrap_or(0),
        };
        if read == 0 {
            break;
        }
        receive(&stage, &peer, &lines, String::from_utf8_lossy(&line).trim());
    }
    stage.journal.event("eof", &json!({}));
    if stage.scenario.shutdown != Shutdown::Clean {
        pending::<()>().await;
    }
    stage.tasks.close();
    _ = tokio::time::timeout(GRACE, stage.tasks.wait()).await;
    0
}

/// State changes happen here, in the order of the lines; slow work runs in a task.
fn receive(stage: &Arc<Stage>, peer: &Arc<Peer>, lines: &Lines, text: &str) {
    if text.is_empty() {
        return;
    }
    stage.journal.message(text, None);
    let Ok(message) = serde_json::from_str::<Message>(text) else { return };
    if message.is_answer() {
        return stage.asked.resolve(message.id().unwrap_or_default(), text);
    }
    let params = message.params();
    match (message.method(), &params.request_id) {
        ("notifications/initialized", _) => peer.confirm(),
        ("notifications/cancelled", Some(id)) => stage.under_way.cancel(&peer.session, id.get()),
        _ => {}
    }
    let era = Era::of(&stage.scenario, &message, &params);
    let refusal = match era {
        Era::Legacy => gate::legacy(peer, &message),
        Era::Modern => gate::modern(&stage.scenario, &message, &params),
    };
    let verdict = Verdict::new(&stage.scenario, &message, &params, refusal);
    let cancelled = match message.id() {
        Some(id) => stage.under_way.begin(&peer.session, id),
        None => CancellationToken::new(),
    };
    let performance = Performance {
        stage: Arc::clone(stage),
        peer: Arc::clone(peer),
        era,
        message,
        params,
        outlet: Outlet::Lines(lines.clone()),
        memory: Memory::default(),
    };
    stage.tasks.spawn(performance.run(verdict, cancelled));
}
