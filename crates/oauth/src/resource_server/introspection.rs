//! Token introspection (RFC 7662). The token is sent only to the configured endpoint, or to that of the issuer's metadata.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use reqwest::header::CONTENT_TYPE;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::Semaphore;
use toolhub_core::Secret;
use url::Url;
use url::form_urlencoded::{Serializer, byte_serialize};

use super::claims::Claims;
use super::clock::Clock;
use super::json_object::parse_object;
use super::provider::{MAX_ENDPOINT_AGE, Provider, ProviderEndpoint};
use super::settings::IntrospectionClient;
use super::token_cache::TokenDigest;
use crate::error::OAuthError;
use crate::http_client::host_and_port;

/// Minimum time between two attempts to find the endpoint.
const MIN_DISCOVERY_INTERVAL: Duration = Duration::from_secs(5);
/// Maximum concurrent requests. Tokens are distributed over them by digest, so that one token is introspected once at a time.
const MAX_CONCURRENT: usize = 32;

/// The introspection endpoint of an issuer.
pub(super) struct Introspector {
    provider: Arc<Provider>,
    client: IntrospectionClient,
    clock: Arc<dyn Clock>,
    slots: Vec<Semaphore>,
    endpoint: Mutex<Endpoint>,
    /// Lets one task look for the endpoint.
    discovery: Semaphore,
}

#[derive(Default)]
struct Endpoint {
    found: Option<(Url, Instant)>,
    failed: Option<(OAuthError, Instant)>,
}

impl Introspector {
    pub(super) fn new(provider: Arc<Provider>, client: IntrospectionClient, clock: Arc<dyn Clock>) -> Self {
        Self {
            provider,
            client,
            clock,
            slots: std::iter::repeat_with(|| Semaphore::new(1)).take(MAX_CONCURRENT).collect(),
            endpoint: Mutex::default(),
            discovery: Semaphore::new(1),
        }
    }

    /// The slot of a token, of which a request must hold the permit.
    pub(super) fn slot(&self, digest: &TokenDigest) -> &Semaphore {
        &self.slots[usize::from(digest[0]) % self.slots.len()]
    }

    /// The claims of the token; `None` if it is not active.
    pub(super) async fn introspect(&self, token: &str) -> Result<Option<Claims>, OAuthError> {
        let url = self.endpoint().await?;
        let token = Secret::new(token);
        let form = Serializer::new(String::new())
            .append_pair("token", token.expose())
            .append_pair("token_type_hint", "access_token")
            .finish();
        let IntrospectionClient { client_id, client_secret, .. } = &self.client;
        // Both are form-encoded before they are joined (RFC 6749 §2.3.1).
        let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
        let request = self
            .provider
            .fetch
            .post(&url)?
            .basic_auth(encoded(client_id), Some(encoded(client_secret.expose())))
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(form);
        let answer: Box<RawValue> =
            self.provider.fetch.answer(request, &url, &[client_secret, &token]).await?;
        let invalid = || OAuthError::Unreadable {
            location: host_and_port(&url),
            detail: "it is no introspection response".to_owned(),
        };
        let members = parse_object(answer.get().as_bytes()).ok_or_else(invalid)?;
        match members.get("active") {
            Some(Value::Bool(true)) => Ok(Some(Claims::new(members))),
            Some(Value::Bool(false)) => Ok(None),
            _ => Err(invalid()),
        }
    }

    async fn endpoint(&self) -> Result<Url, OAuthError> {
        if let Some(configured) = &self.client.endpoint {
            return self.provider.fetch.allowed(configured);
        }
        if let Some(result) = self.known_endpoint() {
            return result;
        }
        // The semaphore is never closed.
        let _permit = self.discovery.acquire().await;
        if let Some(result) = self.known_endpoint() {
            return result;
        }
        let result = self.provider.discover(ProviderEndpoint::Introspection).await;
        let now = self.clock.monotonic();
        let mut endpoint = self.endpoint.lock().unwrap_or_else(PoisonError::into_inner);
        match &result {
            Ok(url) => *endpoint = Endpoint { found: Some((url.clone(), now)), failed: None },
            Err(error) => endpoint.failed = Some((error.clone(), now)),
        }
        result
    }

    /// The endpoint or the error of a recent discovery; `None` if it is time for another one.
    fn known_endpoint(&self) -> Option<Result<Url, OAuthError>> {
        let now = self.clock.monotonic();
        let is_younger = |since: &Instant, age: Duration| now.saturating_duration_since(*since) < age;
        let endpoint = self.endpoint.lock().unwrap_or_else(PoisonError::into_inner);
        match (&endpoint.found, &endpoint.failed) {
            (Some((url, since)), _) if is_younger(since, MAX_ENDPOINT_AGE) => Some(Ok(url.clone())),
            (_, Some((error, since))) if is_younger(since, MIN_DISCOVERY_INTERVAL) => {
                Some(Err(error.clone()))
            }
            _ => None,
        }
    }
}
