//! The HTTP client shared by all servers: it owns the connection pool, and loading its certificates is slow.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};

use reqwest::Client;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use toolhub_core::lang::LocalizedText;
use toolhub_oauth::http_client::{build_client, root_cause};
use url::{Origin, Url};

use toolhub_mcp_wire::McpError;

use super::connect::{is_refused, refused_text};

/// Returns the client; built on first use.
pub(crate) fn http_client() -> Result<Client, McpError> {
    static CLIENT: OnceLock<Result<Client, String>> = OnceLock::new();
    let client = CLIENT.get_or_init(|| build_client(|builder| builder));
    client.clone().map_err(McpError::permanent)
}

/// The client for requests to `url`: one without connection reuse if the origin was reported to `record_mismatch`.
pub(super) fn client_for(url: &Url) -> Result<Client, McpError> {
    static WITHOUT_POOL: OnceLock<Result<Client, String>> = OnceLock::new();
    if !MISMATCHED_ORIGINS.any.load(Ordering::Acquire)
        || !MISMATCHED_ORIGINS.origins().contains(&url.origin())
    {
        return http_client();
    }
    let client = WITHOUT_POOL.get_or_init(|| build_client(|builder| builder.pool_max_idle_per_host(0)));
    client.clone().map_err(McpError::permanent)
}

/// Records that the origin sent a response to another request: pooled connections may hold more of them, so connections to it
/// are no longer reused. Kept per origin, since servers share the pool.
pub(super) fn record_mismatch(url: &Url) {
    let mut origins = MISMATCHED_ORIGINS.origins();
    if origins.len() < MAX_MISMATCHED_ORIGINS || origins.contains(&url.origin()) {
        origins.insert(url.origin());
    }
    drop(origins);
    MISMATCHED_ORIGINS.any.store(true, Ordering::Release);
}

/// Maximum number of recorded origins. Only configured servers are recorded.
const MAX_MISMATCHED_ORIGINS: usize = 4096;

static MISMATCHED_ORIGINS: LazyLock<MismatchedOrigins> = LazyLock::new(MismatchedOrigins::default);

#[derive(Default)]
struct MismatchedOrigins {
    /// Avoids the lock while the set is empty.
    any: AtomicBool,
    origins: Mutex<HashSet<Origin>>,
}

impl MismatchedOrigins {
    fn origins(&self) -> MutexGuard<'_, HashSet<Origin>> {
        self.origins.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Converts the configured headers.
pub(crate) fn header_map(headers: &[(String, String)]) -> Result<HeaderMap, McpError> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let wrong =
            |what: &str| McpError::permanent(format!("header `{name}` in its config has a wrong {what}"));
        let key: HeaderName = name.parse().map_err(|_| wrong("name"))?;
        let mut value: HeaderValue = value.parse().map_err(|_| wrong("value"))?;
        value.set_sensitive(true);
        map.insert(key, value);
    }
    Ok(map)
}

/// Parses the URL of a server.
pub(crate) fn parse_url(url: &str) -> Result<Url, McpError> {
    let wrong = |why: String| {
        McpError::permanent(LocalizedText::new(
            format!("its url is wrong: {why}"),
            format!("它的 url 不对：{why}"),
        ))
    };
    let url = Url::parse(url).map_err(|error| wrong(error.to_string()))?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        other => Err(wrong(format!("`{other}` is neither http nor https"))),
    }
}

/// Converts a send error; the kind states whether the request can have reached the server.
pub(crate) fn send_error(error: &reqwest::Error, url: &Url) -> McpError {
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or_default();
    let cause = format!("{} ({host}:{port})", root_cause(error));
    if url.scheme() == "https" && cause.contains("InvalidContentType") {
        // The error of rustls for a response that is not a TLS record.
        return McpError::permanent(LocalizedText::new(
            format!("{host}:{port} answers without TLS: write `http://` instead of `https://` in its url"),
            format!("{host}:{port} 不使用 TLS：请把 url 中的 `https://` 改为 `http://`"),
        ));
    }
    if error.is_connect() && is_refused(error) {
        return McpError::connect(refused_text(&format!("{host}:{port}"), &root_cause(error)));
    }
    if error.is_connect() || error.is_builder() {
        McpError::connect(cause)
    } else {
        McpError::Lost { cause: cause.into(), stderr: Vec::new(), exit: None }
    }
}

/// The error for an interrupted response.
pub(crate) fn interrupted_response(error: &reqwest::Error) -> McpError {
    McpError::Lost { cause: root_cause(error).into(), stderr: Vec::new(), exit: None }
}
