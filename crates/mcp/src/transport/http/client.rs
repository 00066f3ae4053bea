//! The HTTP client that all servers share: it keeps the pools, and its certificates take a while to load.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, ClientBuilder};
use toolhub_core::lang::Text;
use url::{Origin, Url};

use crate::error::McpError;

/// How long reaching the machine itself may take.
pub(crate) const CONNECT_DEADLINE: Duration = Duration::from_secs(10);
/// What we call ourselves.
pub(super) const USER_AGENT: &str = concat!("toolhub/", env!("CARGO_PKG_VERSION"));
const MAX_REDIRECTS: usize = 3;

/// The client, made when the first HTTP server is met.
pub(crate) fn client() -> Result<Client, McpError> {
    static CLIENT: OnceLock<Result<Client, String>> = OnceLock::new();
    let client = CLIENT.get_or_init(|| build(|builder| builder));
    client.clone().map_err(McpError::hopeless)
}

/// The client for requests to that address: one that keeps no connections, if the origin is in `mixes_up_answers`.
pub(super) fn client_for(url: &Url) -> Result<Client, McpError> {
    static WITHOUT_POOL: OnceLock<Result<Client, String>> = OnceLock::new();
    if !MIXED_UP.any.load(Ordering::Acquire) || !MIXED_UP.origins().contains(&url.origin()) {
        return client();
    }
    let client = WITHOUT_POOL.get_or_init(|| build(|builder| builder.pool_max_idle_per_host(0)));
    client.clone().map_err(McpError::hopeless)
}

/// Notes that an answer for another request came from that origin: a pooled connection may hold more of them, and no
/// connection to the origin is reused from now on. The pool is shared between servers, so this is kept per origin.
pub(super) fn mixes_up_answers(url: &Url) {
    let mut origins = MIXED_UP.origins();
    if origins.len() < MAX_MIXED_UP || origins.contains(&url.origin()) {
        origins.insert(url.origin());
    }
    drop(origins);
    MIXED_UP.any.store(true, Ordering::Release);
}

/// Origins that are noted at most. Only configured servers get into the list.
const MAX_MIXED_UP: usize = 4096;

static MIXED_UP: LazyLock<MixedUp> = LazyLock::new(MixedUp::default);

#[derive(Default)]
struct MixedUp {
    /// Spares everybody the lock as long as there are none.
    any: AtomicBool,
    origins: Mutex<HashSet<Origin>>,
}

impl MixedUp {
    fn origins(&self) -> MutexGuard<'_, HashSet<Origin>> {
        self.origins.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A client with what all of ours have, and what `with` adds.
pub(crate) fn build(with: impl Fn(ClientBuilder) -> ClientBuilder) -> Result<Client, String> {
    // Fails only where somebody installed another provider before, which will do as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // A redirect may lead to an address that only this machine can reach: none but the same origin is followed.
    let same_origin =
        Policy::custom(|attempt| if is_same_origin(&attempt) { attempt.follow() } else { attempt.stop() });
    let builder = Client::builder()
        .user_agent(USER_AGENT)
        .connect_timeout(CONNECT_DEADLINE)
        .redirect(same_origin)
        // Whether a request may be sent again is decided where it is known what it does.
        .retry(reqwest::retry::never());
    with(builder).build().map_err(|error| root_cause(&error))
}

/// Whether a redirect stays within its origin, and is not one too many.
pub(crate) fn is_same_origin(attempt: &Attempt<'_>) -> bool {
    let from = attempt.previous().last().map(Url::origin);
    from == Some(attempt.url().origin()) && attempt.previous().len() <= MAX_REDIRECTS
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
    if url.scheme() == "https" && cause.contains("InvalidContentType") {
        // What rustls says of an answer that is no TLS record.
        return McpError::hopeless(Text::new(
            format!("{place}:{port} answers without TLS: write `http://` instead of `https://` in its url"),
            format!("{place}:{port} 不使用 TLS：请把 url 中的 `https://` 改为 `http://`"),
        ));
    }
    if error.is_connect() || error.is_builder() {
        McpError::connect(cause)
    } else {
        McpError::Lost { cause: cause.into(), stderr: Vec::new(), exit: None }
    }
}

/// An answer that broke off.
pub(crate) fn lost(error: &reqwest::Error) -> McpError {
    McpError::Lost { cause: root_cause(error).into(), stderr: Vec::new(), exit: None }
}

/// The innermost reason: `connection refused` rather than the layers around it. Never the url, which may hold secrets.
pub(crate) fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
