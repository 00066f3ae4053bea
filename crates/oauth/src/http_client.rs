//! The common settings of HTTP clients, for requests to servers and for those of their logins.

use std::time::Duration;

use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, ClientBuilder};
use url::Url;

/// Timeout for connecting to the host.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The value of the `User-Agent` header.
pub const USER_AGENT: &str = concat!("toolhub/", env!("CARGO_PKG_VERSION"));
/// The maximum number of redirects of a request that only reads.
pub(crate) const MAX_REDIRECTS: usize = 3;

/// Builds a client with the common settings and those that `with` adds.
pub fn build_client(with: impl Fn(ClientBuilder) -> ClientBuilder) -> Result<Client, String> {
    // Fails if another crypto provider is installed already, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder()
        .user_agent(USER_AGENT)
        .connect_timeout(CONNECT_TIMEOUT)
        // Redirects are followed by `send`, which decides whether the request may be repeated.
        .redirect(Policy::none())
        // Retries are decided by the caller, depending on the effect of the request.
        .retry(reqwest::retry::never());
    with(builder).build().map_err(|error| root_cause(&error))
}

/// Whether a redirect stays within its origin and the limit is not exceeded.
pub(crate) fn is_same_origin(attempt: &Attempt<'_>) -> bool {
    let from = attempt.previous().last().map(Url::origin);
    from == Some(attempt.url().origin()) && attempt.previous().len() <= MAX_REDIRECTS
}

/// The innermost cause: `connection refused` rather than the layers around it. Never contains the URL, which may hold secrets.
pub fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// Host and port: the part of a URL that may be shown.
pub(crate) fn host_and_port(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}
