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
    gate::{Era, Verdict},
    http_body::{Watch, respond},
    http_gate::{self, Caller},
    http_out::{Framing, HttpOut, Pending},
    message::{Fault, Message, Params},
    outlet::Outlet,
    peer::Peer,
    perform::{Memory, Performance},
    plan::Actions,
    stage::Stage,
};

/// Listens on this port, prints the URL to stdout, and serves without end.
pub(super) async fn serve(stage: Arc<Stage>, port: u16) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    let line = format!("listening on http://{}/mcp\n", listener.local_addr()?);
    let mut stdout = tokio::io::stdout();
    stdout.write_all(line.as_bytes()).await?;
    stdout.flush().await?;
    let routes = Router::new().route("/mcp", post(receive).fallback(other)).fallback(other);
    axum::serve(listener, routes.layer(DefaultBodyLimit::disable()).with_state(stage)).await
}

/// Handles a POST to the endpoint.
async fn receive(State(stage): State<Arc<Stage>>, headers: HeaderMap, body: Bytes) -> Response {
    let text = String::from_utf8_lossy(&body);
    stage.journal.message(&text, Some(&readable(&headers)));
    let Ok(message) = serde_json::from_str::<Message>(&text) else {
        return refuse(&Fault::new(400, -32700, "Parse error"), None);
    };
    let params = message.params();
    let caller = Caller { headers: &headers, message: &message, params: &params };
    let era = caller.era(&stage);
    let (peer, refusal) = caller.admit(&stage, era);
    if let Some(fault) = refusal.as_ref().filter(|_| message.id.is_none() || message.is_answer()) {
        return refuse(fault, None);
    }
    if message.is_answer() {
        stage.asked.resolve(message.id().unwrap_or_default(), &text);
        return StatusCode::ACCEPTED.into_response();
    }
    match (era, message.method(), &params.request_id) {
        (Era::Legacy, "notifications/initialized", _) => peer.confirm(),
        (Era::Legacy, "notifications/cancelled", Some(id)) => stage.under_way.cancel(&peer.session, id.get()),
        _ => {}
    }
    let verdict = Verdict::new(&stage.scenario, &message, &params, refusal);
    let (outlet, pending) = response(&stage, era, &message, &verdict);
    play(&stage, Turn { peer, era, message, params, verdict }, outlet, pending).await
}

/// Handles anything but a POST to the endpoint: resuming a stream, ending a session, or scripted paths.
async fn other(State(stage): State<Arc<Stage>>, verb: Method, uri: Uri, headers: HeaderMap) -> Response {
    let path = uri.path();
    let details = json!({"verb": verb.as_str(), "path": path, "headers": readable(&headers)});
    stage.journal.event("http", &details);
    let at_endpoint = path == "/mcp";
    let key = if at_endpoint { verb.to_string() } else { format!("{verb} {path}") };
    if let Some(actions) = stage.scenario.on.take(&key) {
        return improvise(&stage, &key, actions).await;
    }
    match verb.as_str() {
        "GET" if at_endpoint => resume(&stage, &headers).await,
        "DELETE" if at_endpoint && stage.scenario.session => {
            let known =
                http_gate::text(&headers, "mcp-session-id").is_some_and(|id| stage.sessions.close(id));
            if known { StatusCode::OK.into_response() } else { StatusCode::NOT_FOUND.into_response() }
        }
        _ if at_endpoint => StatusCode::METHOD_NOT_ALLOWED.into_response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Performs actions for a request that is not a message.
async fn improvise(stage: &Arc<Stage>, key: &str, actions: Actions) -> Response {
    let framing = if actions.iter().any(Action::streams) { Framing::Events } else { Framing::Json };
    let (outlet, pending) = HttpOut::direct(framing);
    let message = Message::named(key);
    let (params, verdict) = (Params::default(), Verdict { actions, refusal: None });
    let turn = Turn { peer: Peer::stateless(), era: Era::Legacy, message, params, verdict };
    play(stage, turn, outlet, pending).await
}

/// 2025-11-25, basic/transports: a GET with `Last-Event-ID` resumes an interrupted stream. There is no other GET
/// stream.
async fn resume(stage: &Arc<Stage>, headers: &HeaderMap) -> Response {
    let place = http_gate::text(headers, "last-event-id").and_then(|id| stage.streams.find(id));
    let Some((log, place)) = place else { return StatusCode::METHOD_NOT_ALLOWED.into_response() };
    if let Err(fault) = http_gate::session(stage, headers) {
        return refuse(&fault, None);
    }
    let (mut outlet, pending) = HttpOut::direct(Framing::Events);
    outlet.bytes(Vec::new()).await;
    let (sender, parts) = tokio::sync::mpsc::channel(16);
    stage.tasks.spawn(log.pump(place, sender));
    let message = Message::named("GET");
    respond(Pending { parts, ..pending }, Watch::new(stage, &message, None)).await
}

struct Turn {
    peer: Arc<Peer>,
    era: Era,
    message: Message,
    params: Params,
    verdict: Verdict,
}

/// Runs the actions in a separate task, so that in the legacy era they survive their connection.
async fn play(stage: &Arc<Stage>, turn: Turn, outlet: HttpOut, pending: Pending) -> Response {
    let Turn { peer, era, message, params, verdict } = turn;
    let cancelled = match message.id() {
        Some(id) if era == Era::Legacy => stage.under_way.begin(&peer.session, id),
        _ => CancellationToken::new(),
    };
    // 2026-07-28: closing the response cancels the request. 2025-11-25: it must not.
    let watch = Watch::new(stage, &message, (era == Era::Modern).then(|| cancelled.clone()));
    let (stage, memory) = (Arc::clone(stage), Memory::default());
    let tasks = stage.tasks.clone();
    let performance = Performance { stage, peer, era, message, params, outlet: Outlet::Http(outlet), memory };
    tasks.spawn(performance.run(verdict, cancelled));
    respond(pending, watch).await
}

fn response(stage: &Arc<Stage>, era: Era, message: &Message, verdict: &Verdict) -> (HttpOut, Pending) {
    let listens = era == Era::Modern && message.method() == "subscriptions/listen";
    let streams = stage.scenario.sse || listens || verdict.actions.iter().any(Action::streams);
    if message.id.is_none() {
        return HttpOut::direct(Framing::None);
    }
    if stage.scenario.resumable && era == Era::Legacy {
        let log = stage.streams.open();
        let (outlet, pending, sender) = HttpOut::logged(Arc::clone(&log));
        stage.tasks.spawn(log.pump(0, sender));
        return (outlet, pending);
    }
    HttpOut::direct(if streams { Framing::Events } else { Framing::Json })
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
