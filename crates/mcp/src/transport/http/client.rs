//! The HTTP client that all servers share: it keeps the pools, and its certificates take a while to load.

use std::sync::OnceLock;
use std::time::Duration;

use reqwest::Client;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use toolhub_core::lang::Text;
use url::Url;

use crate::error::McpError;

/// How long reaching the machine itself may take.
pub(crate) const CONNECT_DEADLINE: Duration = Duration::from_secs(10);
/// What we call ourselves.
pub(super) const USER_AGENT: &str = concat!("toolhub/", env!("CARGO_PKG_VERSION"));
const MAX_REDIRECTS: usize = 3;

/// The client, made when the first HTTP server is met.
pub(crate) fn client() -> Result<Client, McpError> {
    static CLIENT: OnceLock<Result<Client, String>> = OnceLock::new();
    let client = CLIENT.get_or_init(|| {
        // Fails only where somebody installed another provider before, which will do as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // A redirect may lead to an address that only this machine can reach: none but the same origin is followed.
        let same_origin = Policy::custom(|attempt| {
            let from = attempt.previous().last().map(Url::origin);
            if from == Some(attempt.url().origin()) && attempt.previous().len() <= MAX_REDIRECTS {
                attempt.follow()
            } else {
                attempt.stop()
            }
        });
        Client::builder()
            .user_agent(USER_AGENT)
            .connect_timeout(CONNECT_DEADLINE)
            .redirect(same_origin)
            .build()
            .map_err(|error| root_cause(&error))
    });
    client.clone().map_err(McpError::hopeless)
}

/// The headers of a server's config.
pub(crate) fn header_map(headers: &[(String, String)]) -> Result<HeaderMap, McpError> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let wrong =
            |what: &str| McpError::hopeless(format!("header `{name}` in its config has a wrong {what}"));
        let key: HeaderName = name.parse().map_err(|_| wrong("name"))?;
        let mut value: HeaderValue = value.parse().map_err(|_| wrong("value"))?;
        value.set_sensitive(true);
        map.insert(key, value);
    }
    Ok(map)
}

/// A server's url.
pub(crate) fn parse_url(url: &str) -> Result<Url, McpError> {
    let wrong = |why: String| {
        McpError::hopeless(Text::new(format!("its url is wrong: {why}"), format!("它的 url 不对：{why}")))
    };
    let url = Url::parse(url).map_err(|error| wrong(error.to_string()))?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        other => Err(wrong(format!("`{other}` is neither http nor https"))),
    }
}

/// Why a request could not be sent, and whether it can have reached the server.
pub(crate) fn send_error(error: &reqwest::Error, url: &Url) -> McpError {
    let place = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or_default();
    let cause = format!("{} ({place}:{port})", root_cause(error));
    if error.is_connect() || error.is_builder() {
        McpError::connect(cause)
    } else {
        McpError::Lost { cause: cause.into(), stderr: Vec::new() }
    }
}

/// An answer that broke off.
pub(crate) fn lost(error: &reqwest::Error) -> McpError {
    McpError::Lost { cause: root_cause(error).into(), stderr: Vec::new() }
}

/// The innermost reason: `connection refused` rather than the layers around it. Never the url, which may hold secrets.
pub(crate) fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
