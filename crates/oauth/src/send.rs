//! Sends a request to a server that may require a token: the interface between transports and logins.

use std::sync::Arc;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use reqwest::{RequestBuilder, Response, StatusCode};
use toolhub_core::{BoxFuture, Secret};
use toolhub_mcp_wire::McpError;

use crate::challenge::Challenge;

/// Provides the tokens for one server.
pub trait Authorizer: Send + Sync {
    /// The token to send, renewed if it is about to expire; `None` if there is none.
    fn token(&self) -> BoxFuture<'_, Result<Option<Secret>, McpError>>;

    /// Whether it is certain that there is no token, and none can be obtained before a refusal.
    fn has_no_token(&self) -> bool;

    /// Handles a refusal. Returns a token for another attempt, `None` if the refusal has another reason, or the error if no
    /// token can be obtained.
    fn on_refusal(&self, refusal: Refusal) -> BoxFuture<'_, Result<Option<Secret>, McpError>>;
}

/// A server's refusal of one request.
#[derive(Debug)]
pub struct Refusal {
    /// 401 or 403.
    pub(crate) status: u16,
    /// The challenge.
    pub(crate) challenge: Option<Challenge>,
    /// The refused token.
    pub(crate) used: Option<Secret>,
    /// The number of refusals of this request so far, from 1.
    pub(crate) count: u8,
}

/// Under which conditions a request may be sent a second time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Repeat {
    /// Only after a refusal that is defined to happen before processing: otherwise the request might take effect twice.
    #[default]
    IfUnprocessed,
    /// Read-only or idempotent.
    Safe,
}

impl Repeat {
    /// Whether the request may be sent again after this response.
    pub fn allows(self, status: StatusCode, headers: &HeaderMap) -> bool {
        self == Self::Safe || is_unprocessed(status, headers)
    }
}

/// Whether an error status is defined to mean that the request was not processed. All others, including 503 and 429, may come
/// from a proxy after the request took effect.
pub fn is_unprocessed(status: StatusCode, headers: &HeaderMap) -> bool {
    match status.as_u16() {
        // RFC 9110, sections 15.4.8 and 15.4.9: the request has to be sent to another URL.
        307 | 308 => true,
        // RFC 9110, section 15.5.2: "has not been applied". A 401 must carry a challenge.
        401 => headers.contains_key(WWW_AUTHENTICATE),
        // A plain 403 may come from a filter that inspects responses; with this challenge it comes from the authorization
        // itself (RFC 6750, section 3.1; 2025-11-25, basic/authorization: scope challenge handling).
        403 => Challenge::bearer(headers).is_some_and(|challenge| challenge.lacks_scopes()),
        _ => false,
    }
}

/// Sends a request; after a refusal of its token, once more with another, if `repeat` allows it. The caller applies the
/// timeout; `wrong` converts send errors.
pub async fn send(
    request: RequestBuilder,
    authorizer: Option<&Arc<dyn Authorizer>>,
    repeat: Repeat,
    wrong: impl Fn(&reqwest::Error) -> McpError,
) -> Result<Response, McpError> {
    let Some(authorizer) = authorizer else { return request.send().await.map_err(|error| wrong(&error)) };
    let mut spare = request.try_clone();
    let mut used = authorizer.token().await?;
    let mut response = with_token(request, used.as_ref()).send().await.map_err(|error| wrong(&error))?;
    for count in 1.. {
        let status = response.status().as_u16();
        if !matches!(status, 401 | 403) {
            break;
        }
        let again = repeat.allows(response.status(), response.headers());
        let challenge = Challenge::bearer(response.headers());
        let refusal = Refusal { status, challenge, used: used.take(), count };
        let token = match authorizer.on_refusal(refusal).await {
            Ok(token) => token.filter(|_| again),
            Err(error) if again => return Err(error),
            // The next request uses the new token, or fails with a login error. This one returns the status only.
            Err(_) => None,
        };
        let (Some(token), Some(request)) = (token, spare.take()) else { break };
        response = with_token(request, Some(&token)).send().await.map_err(|error| wrong(&error))?;
        used = Some(token);
    }
    Ok(response)
}

fn with_token(request: RequestBuilder, token: Option<&Secret>) -> RequestBuilder {
    let value = token.and_then(|token| HeaderValue::from_str(&format!("Bearer {}", token.expose())).ok());
    match value {
        Some(mut value) => {
            value.set_sensitive(true);
            request.header(AUTHORIZATION, value)
        }
        None => request,
    }
}
