//! The scripted server over Streamable HTTP.

use std::{io, net::Ipv4Addr, sync::Arc};

use axum::{
    Router,
    body::Body,
    extract::{DefaultBodyLimit, State},
    http::{HeaderMap, Method, StatusCode, Uri, header},
    response::{IntoResponse, Response},
    routing::post,
};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, net::TcpListener};
use tokio_util::sync::CancellationToken;

use super::{
    action::Action,
    http_body::{Watch, respond},
    http_check::{self, Caller},
    http_writer::{Framing, HttpResponseWriter, Pending},
    message::{Fault, Message, Params},
    peer::Peer,
    perform::{ActionRunner, RunState},
    plan::Actions,
    player_state::PlayerState,
    request_check::{Era, Verdict},
    response_writer::ResponseWriter,
};

/// Listens on this port, prints the URL to stdout, and serves without end.
pub(super) async fn serve(player_state: Arc<PlayerState>, port: u16) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    let line = format!("listening on http://{}/mcp\n", listener.local_addr()?);
    let mut stdout = tokio::io::stdout();
    stdout.write_all(line.as_bytes()).await?;
    stdout.flush().await?;
    let routes = Router::new().route("/mcp", post(receive).fallback(other)).fallback(other);
    axum::serve(listener, routes.layer(DefaultBodyLimit::disable()).with_state(player_state)).await
}

/// Handles a POST to the endpoint.
async fn receive(State(player_state): State<Arc<PlayerState>>, headers: HeaderMap, body: Bytes) -> Response {
    let text = String::from_utf8_lossy(&body);
    player_state.journal.message(&text, Some(&readable(&headers)));
    let Ok(message) = serde_json::from_str::<Message>(&text) else {
        return refuse(&Fault::new(400, -32700, "Parse error"), None);
    };
    let params = message.params();
    let caller = Caller { headers: &headers, message: &message, params: &params };
    let era = caller.era(&player_state);
    let (peer, refusal) = caller.admit(&player_state, era);
    if let Some(fault) = refusal.as_ref().filter(|_| message.id.is_none() || message.is_answer()) {
        return refuse(fault, None);
    }
    if message.is_answer() {
        player_state.pending_requests.resolve(message.id().unwrap_or_default(), &text);
        return StatusCode::ACCEPTED.into_response();
    }
    match (era, message.method(), &params.request_id) {
        (Era::Legacy, "notifications/initialized", _) => peer.confirm(),
        (Era::Legacy, "notifications/cancelled", Some(id)) => {
            player_state.in_flight.cancel(&peer.session, id.get());
        }
        _ => {}
    }
    let verdict = Verdict::new(&player_state.scenario, &message, &params, refusal);
    let (response_writer, pending) = response(&player_state, era, &message, &verdict);
    play(&player_state, Turn { peer, era, message, params, verdict }, response_writer, pending).await
}

/// Handles anything but a POST to the endpoint: resuming a stream, ending a session, or scripted paths.
async fn other(
    State(player_state): State<Arc<PlayerState>>,
    verb: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let path = uri.path();
    let details = json!({"verb": verb.as_str(), "path": path, "headers": readable(&headers)});
    player_state.journal.event("http", &details);
    let at_endpoint = path == "/mcp";
    let key = if at_endpoint { verb.to_string() } else { format!("{verb} {path}") };
    if let Some(actions) = player_state.scenario.on.take(&key) {
        return run_unmatched(&player_state, &key, actions).await;
    }
    match verb.as_str() {
        "GET" if at_endpoint => resume(&player_state, &headers).await,
        "DELETE" if at_endpoint && player_state.scenario.session => {
            let known = http_check::text(&headers, "mcp-session-id")
                .is_some_and(|id| player_state.sessions.close(id));
            if known { StatusCode::OK.into_response() } else { StatusCode::NOT_FOUND.into_response() }
        }
        _ if at_endpoint => StatusCode::METHOD_NOT_ALLOWED.into_response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Performs actions for a request that is not a message.
async fn run_unmatched(player_state: &Arc<PlayerState>, key: &str, actions: Actions) -> Response {
    let framing = if actions.iter().any(Action::streams) { Framing::Events } else { Framing::Json };
    let (response_writer, pending) = HttpResponseWriter::direct(framing);
    let message = Message::named(key);
    let (params, verdict) = (Params::default(), Verdict { actions, refusal: None });
    let turn = Turn { peer: Peer::stateless(), era: Era::Legacy, message, params, verdict };
    play(player_state, turn, response_writer, pending).await
}

/// 2025-11-25, basic/transports: a GET with `Last-Event-ID` resumes an interrupted stream. There is no other GET
/// stream.
async fn resume(player_state: &Arc<PlayerState>, headers: &HeaderMap) -> Response {
    let position = http_check::text(headers, "last-event-id").and_then(|id| player_state.streams.find(id));
    let Some((log, position)) = position else { return StatusCode::METHOD_NOT_ALLOWED.into_response() };
    if let Err(fault) = http_check::session(player_state, headers) {
        return refuse(&fault, None);
    }
    let (mut response_writer, pending) = HttpResponseWriter::direct(Framing::Events);
    response_writer.bytes(Vec::new()).await;
    let (sender, parts) = tokio::sync::mpsc::channel(16);
    player_state.tasks.spawn(log.pump(position, sender));
    let message = Message::named("GET");
    respond(Pending { parts, ..pending }, Watch::new(player_state, &message, None)).await
}

struct Turn {
    peer: Arc<Peer>,
    era: Era,
    message: Message,
    params: Params,
    verdict: Verdict,
}

/// Runs the actions in a separate task, so that in the legacy era they survive their connection.
async fn play(
    player_state: &Arc<PlayerState>,
    turn: Turn,
    response_writer: HttpResponseWriter,
    pending: Pending,
) -> Response {
    let Turn { peer, era, message, params, verdict } = turn;
    let cancelled = match message.id() {
        Some(id) if era == Era::Legacy => player_state.in_flight.begin(&peer.session, id),
        _ => CancellationToken::new(),
    };
    // 2026-07-28: closing the response cancels the request. 2025-11-25: it must not.
    let watch = Watch::new(player_state, &message, (era == Era::Modern).then(|| cancelled.clone()));
    let (player_state, run_state) = (Arc::clone(player_state), RunState::default());
    let tasks = player_state.tasks.clone();
    let performance = ActionRunner {
        player_state,
        peer,
        era,
        message,
        params,
        response_writer: ResponseWriter::Http(response_writer),
        run_state,
    };
    tasks.spawn(performance.run(verdict, cancelled));
    respond(pending, watch).await
}

fn response(
    player_state: &Arc<PlayerState>,
    era: Era,
    message: &Message,
    verdict: &Verdict,
) -> (HttpResponseWriter, Pending) {
    let listens = era == Era::Modern && message.method() == "subscriptions/listen";
    let streams = player_state.scenario.sse || listens || verdict.actions.iter().any(Action::streams);
    if message.id.is_none() {
        return HttpResponseWriter::direct(Framing::None);
    }
    if player_state.scenario.resumable && era == Era::Legacy {
        let log = player_state.streams.open();
        let (response_writer, pending, sender) = HttpResponseWriter::logged(Arc::clone(&log));
        player_state.tasks.spawn(log.pump(0, sender));
        return (response_writer, pending);
    }
    HttpResponseWriter::direct(if streams { Framing::Events } else { Framing::Json })
}

fn refuse(fault: &Fault, id: Option<&str>) -> Response {
    let status = StatusCode::from_u16(fault.status).unwrap_or(StatusCode::BAD_REQUEST);
    (status, [(header::CONTENT_TYPE, "application/json")], Body::from(fault.response(id))).into_response()
}

fn readable(headers: &HeaderMap) -> Value {
    let entries = headers.iter();
    entries
        .map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes())))
        .collect()
}
