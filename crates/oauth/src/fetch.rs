//! The HTTP requests of a login: https only, with small responses and short timeouts.

use std::time::Duration;

use futures_util::StreamExt as _;
use reqwest::header::ACCEPT;
use reqwest::{Client, RequestBuilder, Response};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use toolhub_core::{OAuthSpec, Secret};
use url::{Origin, Url};

use crate::address::NetworkKind;
use crate::error::OAuthError;
use crate::http_client::{host_and_port, root_cause};
use crate::resolver::{check_name, client_for_network};

/// Timeout of one request, including its response.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum size of a response in bytes, after decompression.
const MAX_RESPONSE_BYTES: usize = 1 << 20;
const MAX_DESCRIPTION_CHARS: usize = 200;

/// Makes the requests of one server's login. URLs that the server and its authorization server name are restricted to the
/// server's own network class: a public server must not make us contact this machine or its local network (SSRF).
pub(crate) struct LoginFetcher {
    /// The network of the MCP server, according to its URL. A host name counts as public, since the server could change its DNS
    /// records.
    server: NetworkKind,
    /// The origins of the server and of the issuer, which the owner has configured. They may be in any network.
    named: Vec<Origin>,
}

impl LoginFetcher {
    /// For the login of the MCP server at `server`, with the configured issuer.
    pub(crate) fn new(server: &Url, spec: &OAuthSpec) -> Result<Self, OAuthError> {
        let network = match NetworkKind::of_url(server) {
            Some(network @ (NetworkKind::Loopback | NetworkKind::Private)) => network,
            _ if spec.private_network => NetworkKind::Private,
            _ => NetworkKind::Public,
        };
        let issuer = spec.issuer.as_deref().and_then(|issuer| Url::parse(issuer).ok());
        let named = [Some(server.origin()), issuer.map(|issuer| issuer.origin())];
        let named = named.into_iter().flatten().collect();
        let fetch = Self { server: network, named };
        fetch.check(server)?;
        Ok(fetch)
    }

    /// For the requests to a trusted issuer, whose URL and endpoint the owner has configured.
    pub(crate) fn of_issuer(
        issuer: &Url,
        endpoint: Option<&Url>,
        private_network: bool,
    ) -> Result<Self, OAuthError> {
        let spec =
            OAuthSpec { issuer: endpoint.map(ToString::to_string), private_network, ..OAuthSpec::default() };
        let fetch = Self::new(issuer, &spec)?;
        endpoint.map_or(Ok(()), |endpoint| fetch.check(endpoint))?;
        Ok(fetch)
    }

    fn is_named(&self, url: &Url) -> bool {
        self.named.contains(&url.origin())
    }

    /// The client for requests to that URL.
    fn client(&self, url: &Url) -> Result<Client, OAuthError> {
        client_for_network(if self.is_named(url) { NetworkKind::Loopback } else { self.server })
    }

    /// Checks a URL for the browser, which resolves names itself.
    pub(crate) async fn check_for_browser(&self, url: &Url) -> Result<(), OAuthError> {
        self.check(url)?;
        if self.is_named(url) { Ok(()) } else { check_name(self.server, url).await }
    }

    /// Parses and checks a URL (2026-07-28, security considerations: communication security).
    pub(crate) fn allowed(&self, text: &str) -> Result<Url, OAuthError> {
        let url = Url::parse(text).map_err(|_| OAuthError::Insecure { url: without_query(text) })?;
        self.check(&url)?;
        Ok(url)
    }

    fn check(&self, url: &Url) -> Result<(), OAuthError> {
        let without_userinfo = url.username().is_empty() && url.password().is_none();
        // A host name is resolved and checked when the connection is opened.
        let network = NetworkKind::of_url(url);
        let within = self.is_named(url) || network.is_none_or(|network| self.server.may_point_to(network));
        let safe = match url.scheme() {
            "https" => within,
            "http" => self.server == NetworkKind::Loopback && network == Some(NetworkKind::Loopback),
            _ => false,
        };
        if safe && without_userinfo {
            Ok(())
        } else {
            Err(OAuthError::Insecure { url: without_query(url.as_str()) })
        }
    }

    /// A POST request without headers and body.
    pub(crate) fn post(&self, url: &Url) -> Result<RequestBuilder, OAuthError> {
        self.check(url)?;
        Ok(self.client(url)?.post(url.clone()))
    }

    /// Fetches a JSON document; `None` if it does not exist.
    pub(crate) async fn document<T: DeserializeOwned>(&self, url: &Url) -> Result<Option<T>, OAuthError> {
        self.check(url)?;
        let request = self.client(url)?.get(url.clone()).header(ACCEPT, "application/json");
        let response = send(request, url).await?;
        match response.status() {
            status if status.is_success() => read(response, url).await.map(Some),
            // Servers answer unknown paths in several ways, including a redirect.
            status if status.is_client_error() || status.is_redirection() => Ok(None),
            status => Err(OAuthError::Refused {
                location: host_and_port(url),
                status: status.as_u16(),
                code: String::new(),
                description: String::new(),
            }),
        }
    }

    /// Sends a request and parses its JSON response. The secrets in `secrets` are removed from errors.
    pub(crate) async fn answer<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
        url: &Url,
        secrets: &[&Secret],
    ) -> Result<T, OAuthError> {
        self.check(url)?;
        let response = send(request.header(ACCEPT, "application/json"), url).await?;
        let status = response.status();
        if status.is_success() {
            return read(response, url).await;
        }
        let error_body: ErrorBody = read(response, url).await.unwrap_or_default();
        let hide = |text: String| secrets.iter().fold(text, |text, secret| secret.hidden_in(&text));
        Err(OAuthError::Refused {
            location: host_and_port(url),
            status: status.as_u16(),
            code: sanitize_text(&hide(error_body.error)),
            description: sanitize_text(&hide(error_body.error_description)),
        })
    }
}

/// An OAuth error response (RFC 6749 §5.2).
#[derive(Deserialize, Default)]
#[serde(default)]
struct ErrorBody {
    error: String,
    error_description: String,
}

/// Sanitizes untrusted text for display: one line, limited length, no control characters.
pub(crate) fn sanitize_text(text: &str) -> String {
    text.split(|c: char| c.is_control() || c.is_whitespace())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .take(MAX_DESCRIPTION_CHARS)
        .collect()
}

/// A URL without query and fragment, which may be secret.
fn without_query(text: &str) -> String {
    sanitize_text(text.split(['?', '#']).next().unwrap_or_default())
}

/// Sends a request with a timeout that includes the response body.
pub(crate) async fn send(request: RequestBuilder, url: &Url) -> Result<Response, OAuthError> {
    request.timeout(REQUEST_TIMEOUT).send().await.map_err(|error| unreachable(&error, url))
}

fn unreachable(error: &reqwest::Error, url: &Url) -> OAuthError {
    let cause = if error.is_timeout() {
        format!("no answer within {} s", REQUEST_TIMEOUT.as_secs())
    } else {
        root_cause(error)
    };
    OAuthError::Unreachable { location: host_and_port(url), cause }
}

async fn read<T: DeserializeOwned>(response: Response, url: &Url) -> Result<T, OAuthError> {
    let wrong = |detail: String| OAuthError::Unreadable { location: host_and_port(url), detail };
    let mut body = zeroize::Zeroizing::new(Vec::new());
    let mut bytes = response.bytes_stream();
    while let Some(chunk) = bytes.next().await {
        body.extend_from_slice(&chunk.map_err(|error| unreachable(&error, url))?);
        if body.len() > MAX_RESPONSE_BYTES {
            return Err(wrong(format!("it has more than {} MiB", MAX_RESPONSE_BYTES >> 20)));
        }
    }
    // The error of serde_json may quote the input, which may be a token: only the position is reported.
    serde_json::from_slice(&body).map_err(|error| {
        let what = if error.is_data() { "JSON of another shape" } else { "no JSON" };
        wrong(format!("{what} (line {}, column {})", error.line(), error.column()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_unsafe_urls() {
        let check = |server: &str, allowed: &[&str], refused: &[&str]| {
            let fetch = LoginFetcher::new(&Url::parse(server).unwrap(), &OAuthSpec::default()).unwrap();
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
                "https://10.0.0.1/",
                "https://100.64.0.1/",
                "https://169.254.169.254/latest",
                "https://127.1/",
                "https://2130706433/",
                "https://0.0.0.0/",
                "https://[::]/",
                "https://[::ffff:127.0.0.1]/",
                "https://[::ffff:7f00:1]/",
                "https://[64:ff9b::a00:1]/",
                "https://localhost./",
                "https://a.localhost/",
            ],
        );
        check(
            "https://10.0.0.7/mcp",
            &["https://10.0.0.8/", "https://auth.example.com/"],
            &["https://127.0.0.1/", "https://169.254.169.254/", "https://localhost/", "http://10.0.0.8/"],
        );
        check(
            "http://127.0.0.1:9/mcp",
            &["http://127.0.0.1:80/", "http://localhost/", "https://a.example"],
            &["http://10.0.0.1/", "http://a.example"],
        );
        let spec = OAuthSpec::default();
        assert!(LoginFetcher::new(&Url::parse("http://mcp.example.com/mcp").unwrap(), &spec).is_err());
        // Configured origins may be in any network.
        let issuer = Some("https://10.0.0.1:8443/realm".to_owned());
        let spec = OAuthSpec { issuer, ..OAuthSpec::default() };
        let fetch = LoginFetcher::new(&Url::parse("https://mcp.example.com/mcp").unwrap(), &spec).unwrap();
        assert!(fetch.allowed("https://10.0.0.1:8443/token").is_ok());
        assert!(fetch.allowed("https://10.0.0.2/token").is_err());
    }

    #[test]
    fn sanitizes_untrusted_text() {
        assert_eq!(sanitize_text("a\n\tb \u{1b}[31mred"), "a b [31mred");
        assert_eq!(sanitize_text(&"x".repeat(500)).len(), MAX_DESCRIPTION_CHARS);
        assert_eq!(without_query("https://a.example/b?token=c#d"), "https://a.example/b");
    }
}
