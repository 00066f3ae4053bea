//! Sending a request to a server that may want to know who is calling: the whole of what a transport sees of logins.

use std::sync::Arc;

use reqwest::header::{AUTHORIZATION, HeaderValue};
use reqwest::{RequestBuilder, Response};
use toolhub_core::BoxFuture;

use super::challenge::Challenge;
use super::secret::Secret;
use crate::error::McpError;

/// Has the tokens for one server.
pub(crate) trait Authorizer: Send + Sync {
    /// The token to send, renewed where it is about to run out; `None` where there is none.
    fn token(&self) -> BoxFuture<'_, Result<Option<Secret>, McpError>>;

    /// Whether it is known that there is no token, and none can be had without being refused first.
    fn is_stranger(&self) -> bool;

    /// What to do about a refusal: a token to try once more with, `None` where the refusal is about something else,
    /// or why nothing helps.
    fn refused(&self, refusal: Refusal) -> BoxFuture<'_, Result<Option<Secret>, McpError>>;
}

/// A server's refusal of one request.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// 401 or 403.
    pub(crate) status: u16,
    /// What it asks for.
    pub(crate) challenge: Option<Challenge>,
    /// The token it refused.
    pub(crate) used: Option<Secret>,
    /// Which refusal of the same request this is, from 1.
    pub(crate) count: u8,
}

/// Sends a request; where its token is refused, once more with another. A refused request was not looked at, so
/// sending it again is safe. The caller sets the deadline, and reads errors of `request` with `wrong`.
pub(crate) async fn send(
    request: RequestBuilder,
    authorizer: Option<&Arc<dyn Authorizer>>,
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
        let challenge = Challenge::bearer(response.headers());
        let refusal = Refusal { status, challenge, used: used.take(), count };
        let (Some(token), Some(request)) = (authorizer.refused(refusal).await?, spare.take()) else { break };
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
