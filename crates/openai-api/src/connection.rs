//! The connection of a client to its turn: a stream of events, or one answer. A client that goes away cancels the turn.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::Value;
use toolhub_core::RawJson;
use toolhub_core::ports::HubStore;
use toolhub_core::responses::StoredResponse;
use toolhub_mcp_gateway::{BudgetPermit, PrincipalHandle};

use crate::error::{ApiError, json_response};
use crate::purge::Purge;
use crate::sse;
use crate::turn::Turn;
use crate::turn_event::{EndStatus, TurnEnd};
use crate::turn_log::TurnLog;
use crate::unfinished_changes::ChangeMark;

/// How often a comment is sent while nothing happens.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);

/// A turn whose client waits for it.
pub(crate) struct Connection {
    pub(crate) turn: Turn,
    /// Where the response is stored, if it is.
    pub(crate) keep: Option<Keep>,
    pub(crate) principal: PrincipalHandle,
    /// Counts the turn against the limit of its principal.
    pub(crate) permit: BudgetPermit,
    /// The mark of the request, which stays if the client goes away.
    pub(crate) mark: Arc<ChangeMark>,
}

/// Stores a response when it is complete.
pub(crate) struct Keep {
    pub(crate) store: Arc<dyn HubStore>,
    pub(crate) purge: Arc<Purge>,
    /// The response without its final state.
    pub(crate) stored: StoredResponse,
}

impl Keep {
    /// Stores the response. A response that cannot be stored says so.
    async fn keep(self, log: &TurnLog, body: &mut Value) {
        let Some(status) = log.with_response(|response| response.status()) else { return };
        let stored = StoredResponse { status, body: RawJson::from(body.clone()), ..self.stored };
        self.purge.record(&stored);
        if self.store.add_response(stored).await.is_err() {
            body["store"] = Value::Bool(false);
        }
    }
}

fn revoked() -> TurnEnd {
    let status = EndStatus::Failed("the key of this request was revoked".to_owned());
    TurnEnd { client_calls: Vec::new(), status, usage: Default::default() }
}

impl Connection {
    /// Runs the turn, and returns its final object.
    pub(crate) async fn answer(self) -> Result<Response<Body>, ApiError> {
        let Self { turn, keep, principal, permit, mark } = self;
        let log = turn.log();
        let end = tokio::select! {
            biased;
            () = principal.revoked() => revoked(),
            end = Box::pin(turn.run()) => end,
        };
        drop(permit);
        let finished = log.finish(&end, crate::unix_time());
        let mut body = finished.map_err(|error| match mark.is_set() {
            true => ApiError::after_change(&error.message),
            false => error,
        })?;
        let has_output = log.with_response(|response| !response.output().is_empty());
        if let (EndStatus::Failed(why), Some(false)) = (&end.status, has_output) {
            return Err(ApiError::new(StatusCode::BAD_GATEWAY, "model_error", why.as_str()));
        }
        if let Some(keep) = keep {
            keep.keep(&log, &mut body).await;
        }
        mark.clear().await;
        Ok(json_response(StatusCode::OK, &body))
    }

    /// Runs the turn while its stream is read.
    pub(crate) fn stream(self) -> Response<Body> {
        let Self { turn, keep, principal, permit, mark } = self;
        let log = turn.log();
        let running: Pin<Box<dyn Future<Output = TurnEnd> + Send>> = Box::pin(turn.run());
        let state = StreamState { log, turn: Some(running), keep, principal, mark, _permit: permit };
        let frames = stream::unfold(state, |mut state| async move {
            let frames = state.next().await?;
            Some((Ok::<_, Infallible>(Bytes::from(frames)), state))
        });
        let mut response = Response::new(Body::from_stream(frames));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        // Some reverse proxies buffer responses otherwise.
        headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        response
    }
}

struct StreamState {
    log: Arc<TurnLog>,
    turn: Option<Pin<Box<dyn Future<Output = TurnEnd> + Send>>>,
    keep: Option<Keep>,
    principal: PrincipalHandle,
    mark: Arc<ChangeMark>,
    _permit: BudgetPermit,
}

impl StreamState {
    /// The next part of the stream; `None` at its end.
    async fn next(&mut self) -> Option<String> {
        loop {
            if let Some(frames) = self.log.frames() {
                return Some(frames);
            }
            let turn = self.turn.as_mut()?;
            let end = tokio::select! {
                biased;
                () = self.principal.revoked() => revoked(),
                end = turn => end,
                () = self.log.changed() => continue,
                () = tokio::time::sleep(HEARTBEAT_INTERVAL) => return Some(sse::HEARTBEAT.to_owned()),
            };
            self.turn = None;
            if !matches!(end.status, EndStatus::Failed(_)) {
                self.mark.clear().await;
            }
            // The client may continue the response as soon as it has read the last event.
            if let Ok(mut body) = self.log.finish(&end, crate::unix_time())
                && let Some(keep) = self.keep.take()
            {
                keep.keep(&self.log, &mut body).await;
            }
        }
    }
}
