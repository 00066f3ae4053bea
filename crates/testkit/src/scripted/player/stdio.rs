//! The scripted server over stdio.

use std::{future::pending, sync::Arc, time::Duration};

use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use super::{
    message::Message,
    peer::Peer,
    perform::{ActionRunner, RunState},
    player_state::PlayerState,
    request_check::{self, Era, Verdict},
    response_writer::{Lines, ResponseWriter},
    scenario::Shutdown,
};

/// How long pending responses may still be written after EOF.
const GRACE: Duration = Duration::from_millis(200);

/// Serves until EOF, if that is to end the process.
pub(super) async fn serve(player_state: Arc<PlayerState>) -> u8 {
    let (lines, writer) = Lines::new(tokio::io::stdout());
    let mut writers = JoinSet::new();
    writers.spawn(writer);
    for line in &player_state.scenario.banner {
        lines.line(line).await;
    }
    let peer = Peer::new();
    let mut input = BufReader::new(tokio::io::stdin());
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = tokio::select! {
            biased;
            () = player_state.stop_reading.cancelled() => pending().await,
            read = input.read_until(b'\n', &mut line) => read.unwrap_or(0),
        };
        if read == 0 {
            break;
        }
        receive(&player_state, &peer, &lines, String::from_utf8_lossy(&line).trim());
    }
    player_state.journal.event("eof", &json!({}));
    if player_state.scenario.shutdown != Shutdown::Clean {
        pending::<()>().await;
    }
    player_state.tasks.close();
    _ = tokio::time::timeout(GRACE, player_state.tasks.wait()).await;
    0
}

/// State changes happen here, in the order of the lines; slow work runs in a task.
fn receive(player_state: &Arc<PlayerState>, peer: &Arc<Peer>, lines: &Lines, text: &str) {
    if text.is_empty() {
        return;
    }
    player_state.journal.message(text, None);
    let Ok(message) = serde_json::from_str::<Message>(text) else { return };
    if message.is_answer() {
        return player_state.pending_requests.resolve(message.id().unwrap_or_default(), text);
    }
    let params = message.params();
    match (message.method(), &params.request_id) {
        ("notifications/initialized", _) => peer.confirm(),
        ("notifications/cancelled", Some(id)) => player_state.in_flight.cancel(&peer.session, id.get()),
        _ => {}
    }
    let era = Era::of(&player_state.scenario, &message, &params);
    let refusal = match era {
        Era::Legacy => request_check::legacy(peer, &message),
        Era::Modern => request_check::modern(&player_state.scenario, &message, &params),
    };
    let verdict = Verdict::new(&player_state.scenario, &message, &params, refusal);
    let cancelled = match message.id() {
        Some(id) => player_state.in_flight.begin(&peer.session, id),
        None => CancellationToken::new(),
    };
    let performance = ActionRunner {
        player_state: Arc::clone(player_state),
        peer: Arc::clone(peer),
        era,
        message,
        params,
        response_writer: ResponseWriter::Lines(lines.clone()),
        run_state: RunState::default(),
    };
    player_state.tasks.spawn(performance.run(verdict, cancelled));
}
