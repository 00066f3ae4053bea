//! The OpenAI-compatible endpoint of the hub, part of `toolhub serve`: each agent of the configuration is a model, with the
//! tools that the principal of a request may use. `/v1/responses`, `/v1/chat/completions` and `/v1/models`.

mod chat;
mod connection;
mod conversation;
mod endpoint;
mod error;
mod models;
mod parameters;
mod recovery;
mod responses;
mod sse;
mod supervisor;
mod tools;
mod turn;
mod turn_event;
mod turn_log;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::body::Body;
use http::{HeaderValue, Method, Response, StatusCode, header};
use toolhub::Gateways;
use toolhub_core::BoxFuture;
use toolhub_core::call_log::RecordId;
use toolhub_core::responses::ResponseLimits;
use toolhub_server::{ApiApp, ApiRequest};

use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::responses::background::Jobs;

/// How often expired responses are deleted.
const PURGE_INTERVAL: std::time::Duration = std::time::Duration::from_secs(600);

/// The endpoint.
pub struct OpenAiApi {
    gateways: Arc<Gateways>,
    jobs: Arc<Jobs>,
}

impl std::fmt::Debug for OpenAiApi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenAiApi").finish_non_exhaustive()
    }
}

impl OpenAiApi {
    /// The endpoint of these gateways.
    pub fn new(gateways: Arc<Gateways>) -> Self {
        Self { gateways, jobs: Arc::default() }
    }

    /// Continues responses that an earlier process left unfinished, runs background responses, and deletes expired ones, while
    /// it is polled.
    pub async fn work(&self) {
        recovery::recover(&self.gateways, &self.jobs).await;
        tokio::join!(Arc::clone(&self.jobs).work(), self.purge());
    }

    async fn purge(&self) {
        let Some(store) = self.gateways.hub().store() else { return };
        let limits = ResponseLimits { max_bytes: self.gateways.hub().settings().openai.max_bytes() };
        loop {
            // What could not be deleted now is deleted later.
            let _ = store.purge_responses(limits).await;
            tokio::time::sleep(PURGE_INTERVAL).await;
        }
    }

    async fn handle(&self, request: ApiRequest) -> Result<Response<Body>, ApiError> {
        let method = request.method.clone();
        let path = request.path.clone();
        let segments: Vec<&str> = path.split('/').collect();
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
        let endpoint = Endpoint::new(&self.gateways, &self.jobs, request)?;
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

    fn error_body(&self, status: StatusCode, message: &str) -> String {
        error::body(status, message)
    }
}

/// A part of an id that cannot be guessed.
fn new_key() -> String {
    toolhub_mcp_gateway::secret().unwrap_or_else(|| RecordId::generate().to_string())
}

/// Seconds since 1970.
fn unix_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
