//! The client of a model endpoint: retries, deadlines, and workarounds for endpoints that reject parts of a request. A
//! single attempt is an exchange.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use reqwest::Client;
use reqwest::redirect::Policy;
use tokio::time::Instant;
use toolhub_core::BoxFuture;
use toolhub_core::model::{ChatReply, ChatRequest, LanguageModel, ModelError, ReplyListener};
use url::Url;

use crate::assembly::Assembly;
use crate::compat::{CompatRules, SchemaRequest};
use crate::endpoint::{Endpoint, WireFormat};
use crate::exchange::EndpointExchange;
use crate::failure::{AttemptFailure, root_cause};
use crate::names::WireNames;
use crate::retry::backoff;
use crate::{anthropic, openai};

/// Connect timeout.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_REDIRECTS: usize = 3;
/// Minimum idle timeout: some models send nothing while they write a tool call.
const MIN_IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// The client of a model endpoint. Creates nothing and connects to nothing before the first request.
#[derive(Debug)]
pub struct ModelClient {
    endpoint: Endpoint,
    name: String,
    http: OnceLock<Result<Client, String>>,
    /// Bit set of the `CompatRule`s that this endpoint needs.
    compat_rules: AtomicU8,
    idle_timeout: Option<Duration>,
}

impl ModelClient {
    /// Creates the client of an endpoint.
    pub fn new(endpoint: Endpoint) -> Self {
        let name = endpoint.name();
        Self { endpoint, name, http: OnceLock::new(), compat_rules: AtomicU8::new(0), idle_timeout: None }
    }

    /// Sets the idle timeout between two pieces, independent of the total deadline.
    #[must_use]
    pub fn with_idle_timeout(mut self, idle_timeout: Duration) -> Self {
        self.idle_timeout = Some(idle_timeout);
        self
    }

    /// The endpoint.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The idle timeout between two pieces of a response with the total timeout `timeout`.
    fn idle_timeout(&self, timeout: Duration) -> Duration {
        self.idle_timeout.unwrap_or_else(|| (timeout / 2).max(MIN_IDLE_TIMEOUT))
    }

    /// The HTTP client, created at the first request, since loading certificates takes time.
    pub(crate) fn http(&self) -> Result<&Client, AttemptFailure> {
        let made = self.http.get_or_init(|| http_client(&self.endpoint).map_err(|error| root_cause(&error)));
        made.as_ref().map_err(|cause| {
            let error = ModelError::Unreachable { model: self.name.clone(), cause: cause.clone() };
            AttemptFailure { error, retry_advice: crate::retry::RetryAdvice::Never }
        })
    }

    async fn send_with_retries(
        &self,
        request: &ChatRequest,
        listener: ReplyListener<'_>,
        timeout: Duration,
    ) -> Result<ChatReply, ModelError> {
        let deadline = Instant::now() + timeout;
        let names = WireNames::of(&request.tools);
        let answer_tool = match self.endpoint.api {
            WireFormat::OpenAi => None,
            WireFormat::Anthropic => anthropic::answer_tool(request),
        };
        let client = self.http().map_err(|failure| failure.error)?;
        let exchange =
            EndpointExchange { client, endpoint: &self.endpoint, idle_timeout: self.idle_timeout(timeout) };
        let mut made = CompatRules(self.compat_rules.load(Ordering::Relaxed));
        let mut tries = 0;
        loop {
            let body = match self.endpoint.api {
                WireFormat::OpenAi => openai::request_body(request, &self.endpoint, made),
                WireFormat::Anthropic => anthropic::request_body(request, &self.endpoint),
            };
            let mut assembly = Assembly::new(listener, &names, answer_tool.as_deref());
            let Err(AttemptFailure { error, retry_advice }) = exchange.run(&body, &mut assembly).await else {
                // Keeps only the rules of a successful request.
                self.compat_rules.fetch_or(made.0, Ordering::Relaxed);
                return Ok(assembly.finish());
            };
            // Output that was already forwarded cannot be retracted, so the request is not retried.
            if assembly.has_output() {
                return Err(error);
            }
            if let Some(next) = self.next_compat_rule(made, &error, request) {
                made = next;
                continue;
            }
            tries += 1;
            match backoff(retry_advice, tries, deadline.saturating_duration_since(Instant::now())) {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return Err(error),
            }
        }
    }

    fn next_compat_rule(
        &self,
        made: CompatRules,
        error: &ModelError,
        request: &ChatRequest,
    ) -> Option<CompatRules> {
        if self.endpoint.api == WireFormat::Anthropic {
            return None;
        }
        let schema_request =
            if request.answer_schema.is_some() { SchemaRequest::Yes } else { SchemaRequest::No };
        made.next(error, schema_request).map(|rule| made.with(rule))
    }
}

impl LanguageModel for ModelClient {
    fn name(&self) -> &str {
        &self.name
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        listener: ReplyListener<'a>,
    ) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        let timeout = request.timeout.unwrap_or(self.endpoint.timeout);
        Box::pin(async move {
            let answer =
                tokio::time::timeout(timeout, self.send_with_retries(request, listener, timeout)).await;
            answer.unwrap_or_else(|_| Err(ModelError::TimedOut { model: self.name.clone(), after: timeout }))
        })
    }
}

fn http_client(endpoint: &Endpoint) -> reqwest::Result<Client> {
    // Fails only if another provider is installed already, which works as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // A redirect to another origin would send the prompt to a server that the user did not choose.
    let same_origin = Policy::custom(|attempt| {
        let from = attempt.previous().last().map(Url::origin);
        if from == Some(attempt.url().origin()) && attempt.previous().len() <= MAX_REDIRECTS {
            attempt.follow()
        } else {
            attempt.stop()
        }
    });
    let builder = Client::builder()
        .user_agent(concat!("toolhub/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(same_origin);
    if endpoint.is_local() { builder.no_proxy().build() } else { builder.build() }
}
