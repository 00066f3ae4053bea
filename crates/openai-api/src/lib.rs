//! The OpenAI-compatible endpoint of the hub, part of `toolhub serve`: each agent of the configuration is a model, with the
//! tools that the principal of a request may use. `/v1/responses`, `/v1/chat/completions` and `/v1/models`.

mod approved_tools;
mod chat;
mod connection;
mod conversation;
mod endpoint;
mod error;
mod models;
mod parameters;
mod purge;
mod recovery;
mod responses;
mod rights;
mod sse;
mod supervisor;
mod tools;
mod turn;
mod turn_event;
mod turn_log;
mod unfinished_changes;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::body::Body;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use toolhub::Gateways;
use toolhub_core::BoxFuture;
use toolhub_core::call_log::RecordId;
use toolhub_server::{ApiApp, ApiRequest};
use url::form_urlencoded;

use crate::endpoint::{Endpoint, profile_name};
use crate::error::ApiError;
use crate::purge::Purge;
use crate::recovery::Recovery;
use crate::responses::background::Jobs;
use crate::unfinished_changes::UnfinishedChanges;

/// The endpoint.
pub struct OpenAiApi {
    services: Services,
}

/// What all requests share.
pub(crate) struct Services {
    pub(crate) gateways: Arc<Gateways>,
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) changes: Arc<UnfinishedChanges>,
    pub(crate) purge: Arc<Purge>,
    pub(crate) recovery: Recovery,
}

impl std::fmt::Debug for OpenAiApi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenAiApi").finish_non_exhaustive()
    }
}

impl OpenAiApi {
    /// The endpoint of these gateways.
    pub fn new(gateways: Arc<Gateways>) -> Self {
        let purge = Arc::new(Purge::new(gateways.hub().settings().openai.max_bytes()));
        let changes = Arc::new(UnfinishedChanges::new(gateways.hub().store().cloned()));
        Self {
            services: Services {
                gateways,
                jobs: Arc::default(),
                changes,
                purge,
                recovery: Recovery::default(),
            },
        }
    }

    /// Continues responses that another process left unfinished, runs background responses, and deletes expired ones, while
    /// it is polled.
    pub async fn work(&self) {
        let Services { gateways, jobs, purge, recovery, .. } = &self.services;
        tokio::join!(
            Arc::clone(jobs).work(Arc::clone(gateways)),
            jobs.watch(gateways),
            recovery.work(gateways, jobs),
            purge.work(gateways)
        );
    }

    async fn handle(&self, request: ApiRequest) -> Result<Response<Body>, ApiError> {
        let method = request.method.clone();
        let path = request.path.clone();
        // The client libraries encode the slash in the name of a model.
        let segments: Vec<String> = path.split('/').map(decode_segment).collect();
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        let allowed = match segments.as_slice() {
            ["models", ..] => "GET",
            ["responses"] | ["chat", "completions"] | ["responses", _, "cancel"] => "POST",
            ["responses", _, "input_items"] => "GET",
            ["responses", _] => "GET, DELETE",
            _ => {
                let message = format!(
                    "there is no `{method} /v1/{path}` here: use /v1/models, /v1/responses or /v1/chat/completions (不存在)"
                );
                return Err(ApiError::new(StatusCode::NOT_FOUND, "not_found", message));
            }
        };
        if !allowed.split(", ").any(|allowed| allowed == method.as_str()) {
            let message = format!("`/v1/{path}` is used with {allowed}");
            let error = ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message);
            let mut response = error.into_response();
            if let Ok(allowed) = HeaderValue::from_str(allowed) {
                response.headers_mut().insert(header::ALLOW, allowed);
            }
            return Ok(response);
        }
        let endpoint = Endpoint::new(&self.services, request)?;
        match (segments.as_slice(), &method) {
            (["models"], _) => Ok(endpoint.models()),
            (["models", name @ ..], _) => endpoint.model(&name.join("/")),
            (["responses"], _) => endpoint.create_response().await,
            (["chat", "completions"], _) => endpoint.create_completion().await,
            (["responses", id, "cancel"], _) => endpoint.cancel_response(id).await,
            (["responses", id, "input_items"], _) => endpoint.input_items(id).await,
            (["responses", id], &Method::DELETE) => endpoint.delete_response(id).await,
            (["responses", id], _) => endpoint.read_response(id).await,
            _ => Err(ApiError::internal("this route has no handler")),
        }
    }
}

impl ApiApp for OpenAiApi {
    fn respond(&self, request: ApiRequest) -> BoxFuture<'_, Response<Body>> {
        Box::pin(async move { self.handle(request).await.unwrap_or_else(ApiError::into_response) })
    }

    fn profile<'h>(&self, headers: &'h HeaderMap) -> Option<&'h str> {
        // A name that is no text is refused by the endpoint.
        profile_name(headers).ok().flatten()
    }

    fn is_misplaced(&self, path: &str) -> bool {
        ["/chat/completions", "/responses", "/models", "/completions", "/embeddings"]
            .iter()
            .any(|ending| path.trim_end_matches('/').ends_with(ending))
    }

    fn error_body(&self, status: StatusCode, message: &str) -> String {
        error::body(status, message)
    }
}

/// Decodes a segment of a path. Invalid UTF-8 is replaced, and then names nothing.
fn decode_segment(segment: &str) -> String {
    // A plus sign stands for itself in a path.
    let pair = format!("v={}", segment.replace('+', "%2B").replace('&', "%26"));
    let decoded = form_urlencoded::parse(pair.as_bytes()).next();
    decoded.map(|(_, value)| value.into_owned()).unwrap_or_default()
}

/// A part of an id that cannot be guessed.
fn new_key() -> String {
    toolhub_mcp_gateway::random_token().unwrap_or_else(|| RecordId::generate().to_string())
}

/// Seconds since 1970.
fn unix_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
