//! Sends a request to a server that may require a token: the interface between transports and logins.

use std::sync::Arc;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue, LOCATION, WWW_AUTHENTICATE};
use reqwest::{Client, Method, Request, RequestBuilder, Response, StatusCode};
use toolhub_core::{BoxFuture, Secret};
use toolhub_mcp_wire::McpError;
use url::Url;

use crate::challenge::Challenge;
use crate::http_client::MAX_REDIRECTS;

/// Provides the tokens for one server.
pub trait Authorizer: Send + Sync {
    /// The token to send, renewed if it is about to expire; `None` if there is none.
    fn token(&self) -> BoxFuture<'_, Result<Option<Secret>, McpError>>;

    /// Whether it is certain that there is no token, and none can be obtained before a refusal.
    fn has_no_token(&self) -> bool;

    /// Handles a refusal. Returns a token for another attempt, `None` if the refusal has another reason, or the error if no
    /// token can be obtained.
    fn on_refusal(&self, refusal: RequestRefusal) -> BoxFuture<'_, Result<Option<Secret>, McpError>>;
}

/// A server's refusal of one request.
#[derive(Debug)]
pub struct RequestRefusal {
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
    /// Whether the request may be sent again after this response of `url`.
    pub fn allows(self, response: ResponseTo<'_>) -> bool {
        self == Self::Safe || is_unprocessed(response)
    }
}

/// The head of a response, and the URL that the request was sent to.
#[derive(Debug, Clone, Copy)]
pub struct ResponseTo<'a> {
    /// The URL of the request.
    pub url: &'a Url,
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: &'a HeaderMap,
}

impl ResponseTo<'_> {
    /// The other URL that a redirect names; `None` if it names the same URL, or none.
    fn other_url(self) -> Option<Url> {
        let target = self.url.join(self.headers.get(LOCATION)?.to_str().ok()?).ok()?;
        let target = comparable(target);
        (target != comparable(self.url.clone())).then_some(target)
    }

    /// The URL to which a request with this method is sent instead. It stays within its origin, since a redirect may name an
    /// address that only this machine can reach.
    fn redirect(self, method: &Method) -> Option<Url> {
        let is_redirect = match self.status.as_u16() {
            // RFC 9110, sections 15.4.8 and 15.4.9: the request has not been processed, and is repeated unchanged.
            307 | 308 => true,
            // The request may have been processed: what follows is a GET request, which cannot answer a message.
            301..=303 => method == Method::GET,
            _ => false,
        };
        let target = self.other_url().filter(|_| is_redirect);
        target.filter(|target| target.origin() == self.url.origin())
    }
}

/// A URL without what does not change the requested resource: its fragment and an empty query.
fn comparable(mut url: Url) -> Url {
    url.set_fragment(None);
    if url.query() == Some("") {
        url.set_query(None);
    }
    url
}

/// Whether an error status is defined to mean that the request was not processed. All others, including 503 and 429, may come
/// from a proxy after the request took effect.
pub fn is_unprocessed(response: ResponseTo<'_>) -> bool {
    let headers = response.headers;
    match response.status.as_u16() {
        // RFC 9110, sections 15.4.8 and 15.4.9: the request has to be sent to another URL. A redirect to the same URL is
        // none, and may have been sent after the request took effect.
        307 | 308 => response.other_url().is_some(),
        // RFC 9110, section 15.5.2: "has not been applied". A 401 must carry a challenge.
        401 => headers.contains_key(WWW_AUTHENTICATE),
        // A plain 403 may come from a filter that inspects responses; with this challenge it comes from the authorization
        // itself (RFC 6750, section 3.1; 2025-11-25, basic/authorization: scope challenge handling).
        403 => Challenge::bearer(headers).is_some_and(|challenge| challenge.lacks_scopes()),
        _ => false,
    }
}

/// Sends a request with a client of [`build_client`](crate::http_client::build_client). Follows redirects to other URLs of the same origin; a
/// message follows one, and only a 307 or 308. If the token is refused, the request is sent once more with another token, if
/// `repeat` allows it. The caller applies the timeout; `wrong` converts send errors.
pub async fn send(
    request: RequestBuilder,
    authorizer: Option<&Arc<dyn Authorizer>>,
    repeat: Repeat,
    wrong: impl Fn(&reqwest::Error) -> McpError,
) -> Result<Response, McpError> {
    let mut exchange = Exchange::new(request, authorizer, repeat, wrong)?;
    let token = exchange.token().await?;
    let response = exchange.send(token.as_ref()).await?;
    exchange.follow(response, token).await
}

/// Continues an exchange whose first response came from the lean client: follows its redirect or logs in, as [`send`] does.
/// Returns `None` if that response is final. The first request had no token.
pub async fn send_again(
    request: RequestBuilder,
    authorizer: Option<&Arc<dyn Authorizer>>,
    repeat: Repeat,
    first: ResponseTo<'_>,
    wrong: impl Fn(&reqwest::Error) -> McpError,
) -> Result<Option<Response>, McpError> {
    let mut exchange = Exchange::new(request, authorizer, repeat, wrong)?;
    let Some(next) = exchange.next_attempt(first, None).await? else { return Ok(None) };
    let response = exchange.send(next.token.as_ref()).await?;
    exchange.follow(response, next.token).await.map(Some)
}

/// One request with its redirects and its login. No attempt is like an earlier one: each has another URL or another token.
struct Exchange<'a, W> {
    client: Client,
    /// The request without a token.
    request: Request,
    authorizer: Option<&'a Arc<dyn Authorizer>>,
    repeat: Repeat,
    /// The number of followed redirects.
    redirects: usize,
    /// The number of refusals of a token.
    refusals: u8,
    wrong: W,
}

/// The permission for another attempt, and its token.
struct NextAttempt {
    token: Option<Secret>,
}

impl<'a, W: Fn(&reqwest::Error) -> McpError> Exchange<'a, W> {
    fn new(
        request: RequestBuilder,
        authorizer: Option<&'a Arc<dyn Authorizer>>,
        repeat: Repeat,
        wrong: W,
    ) -> Result<Self, McpError> {
        let (client, request) = request.build_split();
        let request = request.map_err(|error| wrong(&error))?;
        Ok(Self { client, request, authorizer, repeat, redirects: 0, refusals: 0, wrong })
    }

    async fn token(&self) -> Result<Option<Secret>, McpError> {
        match self.authorizer {
            Some(authorizer) => authorizer.token().await,
            None => Ok(None),
        }
    }

    async fn send(&self, token: Option<&Secret>) -> Result<Response, McpError> {
        let request = self.request.try_clone().ok_or_else(|| {
            McpError::permanent("a request with a streamed body cannot be sent with a token or a redirect")
        })?;
        let sent = self.client.execute(with_token(request, token)).await;
        sent.map_err(|error| (self.wrong)(&error))
    }

    async fn follow(&mut self, first: Response, token: Option<Secret>) -> Result<Response, McpError> {
        let (mut response, mut used) = (first, token);
        loop {
            let url = self.request.url().clone();
            let head = ResponseTo { url: &url, status: response.status(), headers: response.headers() };
            let Some(next) = self.next_attempt(head, used).await? else { return Ok(response) };
            response = self.send(next.token.as_ref()).await?;
            used = next.token;
        }
    }

    /// Decides whether the request is sent again after a response, to which URL and with which token.
    async fn next_attempt(
        &mut self,
        response: ResponseTo<'_>,
        used: Option<Secret>,
    ) -> Result<Option<NextAttempt>, McpError> {
        let method = self.request.method();
        let max_redirects = if method == Method::GET { MAX_REDIRECTS } else { 1 };
        let target = response.redirect(method).filter(|_| self.redirects < max_redirects);
        if let Some(target) = target {
            self.redirects += 1;
            *self.request.url_mut() = target;
            return Ok(Some(NextAttempt { token: used }));
        }
        let status = response.status.as_u16();
        let Some(authorizer) = self.authorizer.filter(|_| matches!(status, 401 | 403)) else {
            return Ok(None);
        };
        self.refusals += 1;
        let is_first = self.refusals == 1;
        let again = self.repeat.allows(response);
        let challenge = Challenge::bearer(response.headers);
        let refused = used.clone();
        let refusal = RequestRefusal { status, challenge, used, count: self.refusals };
        let token = match authorizer.on_refusal(refusal).await {
            Ok(token) => token,
            Err(error) if again => return Err(error),
            // The next request uses the new token, or fails with a login error. This one returns the status only.
            Err(_) => None,
        };
        // The same token would be refused again.
        let token = token.filter(|token| again && is_first && refused.as_ref() != Some(token));
        Ok(token.map(|token| NextAttempt { token: Some(token) }))
    }
}

fn with_token(mut request: Request, token: Option<&Secret>) -> Request {
    let value = token.and_then(|token| HeaderValue::from_str(&format!("Bearer {}", token.expose())).ok());
    if let Some(mut value) = value {
        value.set_sensitive(true);
        request.headers_mut().append(AUTHORIZATION, value);
    }
    request
}
