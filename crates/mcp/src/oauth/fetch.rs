//! The HTTP requests of the login itself: https only, small answers, short waits. What they mean is left to others.

use std::time::Duration;

use futures_util::StreamExt as _;
use reqwest::header::ACCEPT;
use reqwest::{Client, RequestBuilder, Response};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use url::{Host, Url};

use super::error::OAuthError;
use super::secret::Secret;
use crate::transport::http::client::{client, root_cause};

/// How long one request may take, answer included.
const DEADLINE: Duration = Duration::from_secs(30);
/// The most an answer may have after decompression.
const LARGEST: usize = 1 << 20;
const SAID_CHARS: usize = 200;

/// Whether a url leads to this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Host and port: what may be shown of a url.
pub(crate) fn place_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// Makes the requests of one server's login.
pub(crate) struct Fetch {
    client: Client,
    /// Whether the MCP server is on this machine. Only then may a login lead to this machine: a stranger must not
    /// have us talk to what listens here.
    at_home: bool,
}

impl Fetch {
    /// For the login of the MCP server at `server`.
    pub(crate) fn new(server: &Url) -> Result<Self, OAuthError> {
        let client = client().map_err(|error| OAuthError::Config(error.to_string()))?;
        let fetch = Self { client, at_home: is_loopback(server) };
        fetch.check(server)?;
        Ok(fetch)
    }

    /// A url that a login may use (2026-07-28, security considerations: communication security).
    pub(crate) fn allowed(&self, text: &str) -> Result<Url, OAuthError> {
        let url = Url::parse(text).map_err(|_| OAuthError::Insecure { url: shown(text) })?;
        self.check(&url)?;
        Ok(url)
    }

    fn check(&self, url: &Url) -> Result<(), OAuthError> {
        let named = url.username().is_empty() && url.password().is_none();
        let safe = match url.scheme() {
            "https" => self.at_home || !is_loopback(url),
            "http" => self.at_home && is_loopback(url),
            _ => false,
        };
        if safe && named { Ok(()) } else { Err(OAuthError::Insecure { url: shown(url.as_str()) }) }
    }

    /// A request that others will dress.
    pub(crate) fn post(&self, url: Url) -> RequestBuilder {
        self.client.post(url)
    }

    /// A document; `None` where there is none.
    pub(crate) async fn document<T: DeserializeOwned>(&self, url: &Url) -> Result<Option<T>, OAuthError> {
        self.check(url)?;
        let request = self.client.get(url.clone()).header(ACCEPT, "application/json");
        let response = send(request, url).await?;
        match response.status() {
            status if status.is_success() => read(response, url).await.map(Some),
            // Servers say in several ways that they do not know a path; a redirect elsewhere is one of them.
            status if status.is_client_error() || status.is_redirection() => Ok(None),
            status => Err(OAuthError::Refused {
                place: place_of(url),
                status: status.as_u16(),
                code: String::new(),
                said: String::new(),
            }),
        }
    }

    /// Sends a request that must be answered with JSON. What it carried is kept out of any error.
    pub(crate) async fn answer<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
        url: &Url,
        carried: &[&Secret],
    ) -> Result<T, OAuthError> {
        self.check(url)?;
        let response = send(request.header(ACCEPT, "application/json"), url).await?;
        let status = response.status();
        if status.is_success() {
            return read(response, url).await;
        }
        let fault: Fault = read(response, url).await.unwrap_or_default();
        let hide = |text: String| carried.iter().fold(text, |text, secret| secret.hidden_in(&text));
        Err(OAuthError::Refused {
            place: place_of(url),
            status: status.as_u16(),
            code: plain(&hide(fault.error)),
            said: plain(&hide(fault.error_description)),
        })
    }
}

/// What an authorization server says when it refuses (RFC 6749 §5.2).
#[derive(Deserialize, Default)]
#[serde(default)]
struct Fault {
    error: String,
    error_description: String,
}

/// A stranger's words as they may be shown: one line, not long, nothing that moves a cursor.
pub(crate) fn plain(text: &str) -> String {
    text.split(|c: char| c.is_control() || c.is_whitespace())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .take(SAID_CHARS)
        .collect()
}

/// A url without what may be secret in it.
fn shown(text: &str) -> String {
    plain(text.split(['?', '#']).next().unwrap_or_default())
}

/// Sends a request, with a deadline for it and for its answer's body.
pub(crate) async fn send(request: RequestBuilder, url: &Url) -> Result<Response, OAuthError> {
    request.timeout(DEADLINE).send().await.map_err(|error| unreachable(&error, url))
}

fn unreachable(error: &reqwest::Error, url: &Url) -> OAuthError {
    let cause = if error.is_timeout() {
        format!("no answer within {} s", DEADLINE.as_secs())
    } else {
        root_cause(error)
    };
    OAuthError::Unreachable { place: place_of(url), cause }
}

async fn read<T: DeserializeOwned>(response: Response, url: &Url) -> Result<T, OAuthError> {
    let wrong = |detail: String| OAuthError::Unreadable { place: place_of(url), detail };
    let mut body = zeroize::Zeroizing::new(Vec::new());
    let mut bytes = response.bytes_stream();
    while let Some(chunk) = bytes.next().await {
        body.extend_from_slice(&chunk.map_err(|error| unreachable(&error, url))?);
        if body.len() > LARGEST {
            return Err(wrong(format!("it has more than {} MiB", LARGEST >> 20)));
        }
    }
    // The usual complaint quotes what it found, which may be a token: only the place is told.
    serde_json::from_slice(&body).map_err(|error| {
        let what = if error.is_data() { "JSON of another shape" } else { "no JSON" };
        wrong(format!("{what} (line {}, column {})", error.line(), error.column()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_safe_addresses_are_used() {
        let check = |server: &str, allowed: &[&str], refused: &[&str]| {
            let fetch = Fetch::new(&Url::parse(server).unwrap()).unwrap();
            allowed.iter().for_each(|url| assert!(fetch.allowed(url).is_ok(), "{server} {url}"));
            refused.iter().for_each(|url| assert!(fetch.allowed(url).is_err(), "{server} {url}"));
        };
        check(
            "https://mcp.example.com/mcp",
            &["https://auth.example.com/a?b=c"],
            &[
                "http://auth.example.com",
                "http://127.0.0.1:80/",
                "https://localhost/",
                "https://[::1]/",
                "https://user:pass@auth.example.com",
                "file:///etc/passwd",
                "javascript:alert(1)",
                "auth.example.com",
            ],
        );
        check(
            "http://127.0.0.1:9/mcp",
            &["http://127.0.0.1:80/", "http://localhost/", "https://a.example"],
            &["http://10.0.0.1/", "http://a.example"],
        );
        assert!(Fetch::new(&Url::parse("http://mcp.example.com/mcp").unwrap()).is_err());
    }

    #[test]
    fn strangers_words_are_made_harmless() {
        assert_eq!(plain("a\n\tb \u{1b}[31mred"), "a b [31mred");
        assert_eq!(plain(&"x".repeat(500)).len(), SAID_CHARS);
        assert_eq!(shown("https://a.example/b?token=c#d"), "https://a.example/b");
    }
}
