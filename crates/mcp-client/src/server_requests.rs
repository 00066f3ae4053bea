//! Requests and notifications that a server sends. Requests go to the originating client or to the handler of the hub;
//! notifications go to the originating client or to the handler.

use std::sync::Arc;

use serde::Deserialize;
use tokio::sync::watch;
use toolhub_core::lang::LocalizedText;
use toolhub_core::{BoxFuture, Event, EventKind, EventSink, RawJson, RawObject, ServerId};
use toolhub_mcp_wire::McpError;

use crate::handler::{ClientHandler, HandlerAnswer};
use crate::request_origin::{InFlightRequests, RequestOrigin};
use crate::transport::ServerMessageHandler;

/// Handles the requests and notifications of one server.
pub(crate) struct ServerRequests {
    pub(crate) server: ServerId,
    pub(crate) events: Arc<dyn EventSink>,
    pub(crate) handler: Arc<dyn ClientHandler>,
    /// Number of `list_changed` notifications received.
    pub(crate) changes: watch::Sender<u64>,
    /// The requests in flight, by origin.
    pub(crate) in_flight: Arc<InFlightRequests>,
    pub(crate) roots: Roots,
}

/// The answer to `roots/list`. A server keeps roots across callers, so that the roots of a client are given only to a server
/// that serves this client alone.
#[derive(Debug)]
pub(crate) enum Roots {
    /// These URIs, from the configuration.
    Configured(Vec<String>),
    /// The roots of the client whose request is in flight.
    Client,
    /// No roots: several clients share the server.
    None,
}

/// One entry of `inputRequests` in an `input_required` result.
#[derive(Deserialize)]
struct InputRequest {
    method: String,
    #[serde(default)]
    params: Option<RawJson>,
}

impl ServerRequests {
    pub(crate) fn capabilities(&self) -> RawJson {
        self.handler.capabilities()
    }

    /// Answers every input request of an `input_required` result.
    pub(crate) async fn answer_input_requests(
        &self,
        requests: &RawObject,
        origin: Option<&RequestOrigin>,
    ) -> Result<RawObject, McpError> {
        let mut responses = RawObject::default();
        for (key, request) in requests.iter() {
            let request: InputRequest = request
                .decode()
                .map_err(|error| McpError::unreadable(format!("invalid request for input: {error}")))?;
            let method = request.method.clone();
            let answer = match origin {
                Some(origin) => origin.ask(request.method, request.params).await,
                None => self.handler.request(&self.server, request.method, request.params).await,
            };
            let answer = answer.map_err(|(_, why)| {
                McpError::unreadable(format!(
                    "it requests `{method}`, which this client cannot answer: {why}"
                ))
            })?;
            responses.set(key.to_owned(), answer);
        }
        Ok(responses)
    }

    /// Emits an event about the use of a running hub's connection.
    pub(crate) fn emit_relay_note(&self, text: LocalizedText) {
        self.events.emit(Event::now(None, EventKind::RunningHub { server: self.server.clone(), text }));
    }

    fn note(&self, text: LocalizedText) {
        self.events.emit(Event::now(None, EventKind::ServerNote { server: self.server.clone(), text }));
    }
}

/// The result of `roots/list`.
fn roots_result(roots: &[String]) -> RawJson {
    let roots: Vec<RawObject> =
        roots.iter().map(|uri| RawObject::default().with("uri", uri.as_str())).collect();
    RawObject::default().with("roots", RawJson::of(&roots)).into_raw()
}

impl ServerMessageHandler for ServerRequests {
    fn request(
        &self,
        method: String,
        params: Option<RawJson>,
        via: Option<u64>,
    ) -> BoxFuture<'_, HandlerAnswer> {
        Box::pin(async move {
            if method == "ping" {
                return Ok(RawJson::empty_object());
            }
            let answer = match (self.in_flight.origin_of(via), &self.roots) {
                (_, Roots::Configured(roots)) if method == "roots/list" => Ok(roots_result(roots)),
                (_, Roots::None) if method == "roots/list" && self.in_flight.has_clients() => {
                    Ok(roots_result(&[]))
                }
                (Some(origin), _) => origin.ask(method.clone(), params).await,
                // Without an origin, no client is involved. The gateway's handler refuses; a program that embeds the hub may
                // answer.
                (None, _) => self.handler.request(&self.server, method.clone(), params).await,
            };
            self.note(match &answer {
                Ok(_) => LocalizedText::new(
                    format!("requested `{method}`, answered"),
                    format!("请求 `{method}`，已回答"),
                ),
                Err((_, why)) => LocalizedText::new(
                    format!("requested `{method}`, refused: {why}"),
                    format!("请求 `{method}`，已拒绝：{why}"),
                ),
            });
            answer
        })
    }

    fn notification(&self, method: &str, params: Option<&RawJson>, via: Option<u64>) {
        match method {
            // Goes to the originating client. Without one it goes to the handler only; the event log below records it in any
            // case.
            "notifications/message" => match self.in_flight.origin_of(via) {
                Some(origin) => origin.link.notify(method, params),
                None => self.handler.notification(&self.server, method, params),
            },
            _ => self.handler.notification(&self.server, method, params),
        }
        if method.ends_with("/list_changed") {
            self.changes.send_modify(|count| *count += 1);
        }
        let summary = params.map(|params| format!(": {params}")).unwrap_or_default();
        let summary: String = summary.chars().take(500).collect();
        self.note(LocalizedText::new(
            format!("sent `{method}`{summary}"),
            format!("通知 `{method}`{summary}"),
        ));
    }

    fn report_anomaly(&self, detail: String) {
        self.note(LocalizedText::new(format!("sent {detail}"), format!("发来无法使用的内容：{detail}")));
    }

    fn has_clients(&self) -> bool {
        self.in_flight.has_clients()
    }
}
