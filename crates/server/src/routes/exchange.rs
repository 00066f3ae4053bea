//! One request that is being answered, and what handlers need of it.

use std::sync::Arc;
use std::time::Instant;

use axum::body::{Body, HttpBody as _};
use bytes::Bytes;
use http::request::Parts;
use http::uri::Authority;
use http::{Response, StatusCode};
use toolhub_mcp_gateway::{Gateway, PrincipalHandle, RequestContext, StepUp};

use crate::access::AccessRequest;
use crate::body::{self, BodyError};
use crate::connection::ActiveRequest;
use crate::envelope::is_batch;
use crate::request_record::RequestRecord;
use crate::responses::{empty_response, rate_limited, retry_later, text_response};
use crate::revocation::StreamCredential;
use crate::shared::HttpServerState;

/// A request and the state it is answered with.
pub(super) struct RouteExchange<'a> {
    pub(super) shared: &'a HttpServerState,
    pub(super) parts: &'a Parts,
    /// The profile that the path names.
    pub(super) profile: Option<&'a str>,
    /// `None` only for a public route, if the request would not be admitted elsewhere.
    pub(super) principal: Option<PrincipalHandle>,
    /// When the token of the request must be verified again.
    pub(super) recheck: Option<Instant>,
    /// The body, until it was read or has failed. What a handler leaves here is discarded.
    pub(super) body: &'a mut Option<Body>,
    pub(super) active_request: &'a ActiveRequest,
    pub(super) record: Option<&'a mut RequestRecord>,
}

/// The response that ends a request early.
pub(super) type EarlyResponse = Box<Response<Body>>;

/// A message to the gateway of a profile.
pub(super) struct GatewayMessage {
    pub(super) gateway: Arc<Gateway>,
    pub(super) principal: PrincipalHandle,
    pub(super) body: Bytes,
    /// The context in which the gateway handles it.
    pub(super) context: RequestContext,
}

impl RouteExchange<'_> {
    /// The credential of a stream that this request opens.
    pub(super) fn stream_credential(&self, principal: &PrincipalHandle) -> StreamCredential {
        let target = self.parts.uri.authority().map(Authority::as_str);
        let request = AccessRequest { headers: &self.parts.headers, target, profile: self.profile };
        self.shared.access.stream_credential(&request, principal, self.recheck)
    }

    /// Returns the gateway of the request's profile.
    fn gateway(&self) -> Result<Arc<Gateway>, EarlyResponse> {
        let principal = self.principal.as_ref();
        principal.and_then(|principal| self.shared.gateway(self.profile, principal)).ok_or_else(|| {
            let mut names = self.shared.service.profiles();
            names.retain(|name| principal.is_some_and(|one| one.identity().may_use_profile(name)));
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            let hint = format!("there is no such profile here; there are {}", names.join(", "));
            Box::new(text_response(StatusCode::NOT_FOUND, &hint))
        })
    }

    /// Reads the whole body as a message to the gateway, and records its envelope. Each message of a batch counts towards the rate limit.
    pub(super) async fn message(&mut self) -> Result<GatewayMessage, EarlyResponse> {
        let Some(principal) = self.principal.clone() else {
            return Err(Box::new(empty_response(StatusCode::UNAUTHORIZED)));
        };
        let gateway = self.gateway()?;
        let body = self.read_body(&principal).await?;
        if is_batch(&body) {
            principal
                .spend_batch(count_messages(&body))
                .map_err(|too_fast| Box::new(rate_limited(too_fast)))?;
        }
        let (shared, headers) = (self.shared, &self.parts.headers);
        let trace = self.record.as_deref_mut().and_then(|record| shared.trace(record, &body, headers));
        let context = RequestContext { principal: principal.clone(), trace, step_up: StepUp::of(&principal) };
        Ok(GatewayMessage { gateway, principal, body, context })
    }

    pub(super) async fn read_body(&mut self, principal: &PrincipalHandle) -> Result<Bytes, EarlyResponse> {
        let max_bytes = self.shared.body_bytes;
        let too_large = || {
            let hint = format!("a message has at most {} KiB", max_bytes >> 10);
            Box::new(text_response(StatusCode::PAYLOAD_TOO_LARGE, &hint))
        };
        let Some(body) = self.body.as_mut() else { return Ok(Bytes::new()) };
        if body.size_hint().lower() > max_bytes as u64 {
            return Err(too_large());
        }
        let received = body::receive(body, max_bytes, principal, self.active_request).await;
        let response = match received {
            Ok(message) => {
                *self.body = None;
                return Ok(message);
            }
            Err(BodyError::TooLong) => return Err(too_large()),
            Err(BodyError::OverBudget(exceeded)) => {
                return Err(Box::new(retry_later(StatusCode::SERVICE_UNAVAILABLE, &exceeded.to_string())));
            }
            Err(BodyError::Broken) => text_response(StatusCode::BAD_REQUEST, "the message broke off"),
            // The connection is closed after this response.
            Err(BodyError::TimedOut) => {
                text_response(StatusCode::REQUEST_TIMEOUT, "the message did not arrive in time")
            }
        };
        *self.body = None;
        Err(Box::new(response))
    }
}

/// Returns the number of messages in a batch. An invalid batch counts as one message, which is refused later.
fn count_messages(batch: &[u8]) -> usize {
    serde_json::from_slice::<Vec<serde::de::IgnoredAny>>(batch).map_or(1, |all| all.len())
}
