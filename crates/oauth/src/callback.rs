//! Receives the browser redirect on a loopback port (RFC 8252 §7.3). Accepts one response, and only if it belongs to the
//! current login.

use std::net::Ipv4Addr;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use toolhub_core::Secret;
use url::{Url, form_urlencoded};

use crate::error::OAuthError;
use crate::fetch::sanitize_text;
use crate::page;

pub(crate) const PATH: &str = "/callback";
/// Timeout of one connection. Browsers open some without sending a request.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_CONNECTIONS: usize = 32;
const MAX_HEAD_BYTES: usize = 16 << 10;

/// The loopback listener for the browser redirect.
#[derive(Debug)]
pub(crate) struct Callback {
    listener: TcpListener,
    pub(crate) port: u16,
}

/// The values that identify a valid response.
#[derive(Debug)]
pub(crate) struct ExpectedCallback {
    pub(crate) state: Secret,
    /// The required issuer (RFC 9207).
    pub(crate) issuer: String,
    /// Whether the issuer has announced the `iss` parameter.
    pub(crate) sends_issuer: bool,
}

impl Callback {
    /// Listens on the configured port; otherwise on the port used before, if it is free, or on any port.
    pub(crate) async fn open(
        configured: Option<u16>,
        previous_port: Option<u16>,
    ) -> Result<Self, OAuthError> {
        let bind = |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        let listener = match (configured, previous_port) {
            (Some(port), _) => bind(port).await,
            (None, Some(port)) => match bind(port).await {
                Ok(listener) => Ok(listener),
                Err(_) => bind(0).await,
            },
            (None, None) => bind(0).await,
        };
        let failed = |error: std::io::Error| OAuthError::NoPort {
            port: configured.unwrap_or_default(),
            cause: error.to_string(),
        };
        let listener = listener.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        Ok(Self { listener, port })
    }

    /// The redirect URI.
    pub(crate) fn redirect_uri(&self) -> String {
        format!("http://127.0.0.1:{}{PATH}", self.port)
    }

    /// Waits for the authorization code. The caller applies the timeout.
    pub(crate) async fn wait_for_code(&self, expected: &ExpectedCallback) -> Result<Secret, OAuthError> {
        let mut connections = FuturesUnordered::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if connections.len() < MAX_CONNECTIONS => {
                    if let Ok((stream, _)) = accepted {
                        connections.push(tokio::time::timeout(CONNECTION_TIMEOUT, serve_connection(stream, expected)));
                    }
                }
                Some(served) = connections.next() => {
                    if let Ok(Some(answer)) = served {
                        return answer;
                    }
                }
            }
        }
    }
}

/// Serves one connection. Returns the response of the login, if it was one.
async fn serve_connection(
    mut stream: TcpStream,
    expected: &ExpectedCallback,
) -> Option<Result<Secret, OAuthError>> {
    let head = read_head(&mut stream).await?;
    let validation = expected.validate(&head);
    let page = match &validation {
        Validation::Answer(Ok(_)) => page::done(),
        Validation::Answer(Err(_)) => page::failed(),
        Validation::Unrelated => page::not_found(),
    };
    // The result is independent of whether the browser receives the page.
    let _ = stream.write_all(page.as_bytes()).await;
    let _ = stream.shutdown().await;
    match validation {
        Validation::Answer(answer) => Some(answer),
        Validation::Unrelated => None,
    }
}

async fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut part = [0_u8; 2048];
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        let count = stream.read(&mut part).await.ok().filter(|count| *count > 0)?;
        head.extend_from_slice(&part[..count]);
        if head.len() > MAX_HEAD_BYTES {
            return None;
        }
    }
    String::from_utf8(head).ok()
}

#[derive(Debug)]
pub(crate) enum Validation {
    Answer(Result<Secret, OAuthError>),
    /// Another request: a favicon, an old tab, a guess. Does not end the wait.
    Unrelated,
}

impl ExpectedCallback {
    fn validate(&self, head: &str) -> Validation {
        let target = head.strip_prefix("GET ").and_then(|rest| rest.split(' ').next()).unwrap_or_default();
        let Ok(url) = Url::parse("http://127.0.0.1").and_then(|base| base.join(target)) else {
            return Validation::Unrelated;
        };
        match url.path() == PATH {
            true => self.validate_query(url.query().unwrap_or_default()),
            false => Validation::Unrelated,
        }
    }

    /// Validates the query of the redirect.
    pub(crate) fn validate_query(&self, query: &str) -> Validation {
        let value = |name: &str| {
            let mut pairs = form_urlencoded::parse(query.as_bytes());
            pairs.find_map(|(key, value)| (key == name).then(|| value.into_owned()))
        };
        let is_own_state = value("state").is_some_and(|state| constant_time_eq(&state, self.state.expose()));
        if !is_own_state {
            return Validation::Unrelated;
        }
        // Validated before any other parameter is used, including `error` (2026-07-28, authorization response validation).
        match value("iss") {
            Some(found) if found != self.issuer => return self.wrong_issuer(&found),
            None if self.sends_issuer => return self.wrong_issuer(""),
            _ => {}
        }
        Validation::Answer(match (value("code"), value("error")) {
            (Some(code), None) if !code.is_empty() => Ok(Secret::new(code)),
            (_, error) => Err(OAuthError::Denied {
                code: sanitize_text(&error.unwrap_or_else(|| "no code".to_owned())),
                description: sanitize_text(&value("error_description").unwrap_or_default()),
            }),
        })
    }

    fn wrong_issuer(&self, found: &str) -> Validation {
        let (expected, found) = (self.issuer.clone(), sanitize_text(found));
        Validation::Answer(Err(OAuthError::WrongIssuer { expected, found }))
    }
}

/// Compares in constant time.
fn constant_time_eq(one: &str, other: &str) -> bool {
    one.len() == other.len() && one.bytes().zip(other.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validates_redirect_parameters() {
        let check = |sends_issuer: bool, target: &str, expect: &str| {
            let expected = ExpectedCallback {
                state: Secret::new("s1"),
                issuer: "https://a.example/t".to_owned(),
                sends_issuer,
            };
            let validation = match expected.validate(&format!("GET {target} HTTP/1.1\r\n\r\n")) {
                Validation::Unrelated => "stray".to_owned(),
                Validation::Answer(Ok(code)) => code.expose().to_owned(),
                Validation::Answer(Err(OAuthError::Denied { code, description })) => {
                    format!("denied {code} {description}")
                }
                Validation::Answer(Err(OAuthError::WrongIssuer { found, .. })) => format!("issuer {found}"),
                Validation::Answer(Err(other)) => other.to_string(),
            };
            assert_eq!(validation, expect, "{target}");
        };
        check(false, "/callback?code=c%2F1&state=s1", "c/1");
        check(false, "/callback?code=c&state=s1&iss=https%3A%2F%2Fa.example%2Ft", "c");
        check(true, "/callback?code=c&state=s1&iss=https%3A%2F%2Fa.example%2Ft", "c");
        check(true, "/callback?code=c&state=s1", "issuer ");
        check(
            false,
            "/callback?code=c&state=s1&iss=https%3A%2F%2Fa.example%2Ft%2F",
            "issuer https://a.example/t/",
        );
        check(
            false,
            "/callback?error=access_denied&error_description=no%0Away&state=s1",
            "denied access_denied no way",
        );
        check(true, "/callback?error=access_denied&state=s1&iss=https%3A%2F%2Fb", "issuer https://b");
        check(false, "/callback?state=s1", "denied no code ");
        check(false, "/callback?code=c&state=s2", "stray");
        check(false, "/callback?code=c", "stray");
        check(false, "/favicon.ico", "stray");
        check(false, "/other?code=c&state=s1", "stray");
        check(false, "", "stray");
    }

    #[tokio::test]
    async fn unrelated_requests_do_not_end_the_wait() {
        let callback = Callback::open(None, None).await.unwrap();
        let expected = ExpectedCallback {
            state: Secret::new("s1"),
            issuer: "https://a.example".to_owned(),
            sends_issuer: false,
        };
        let port = callback.port;
        let serve_connection = |target: &'static str| async move {
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
            stream.write_all(format!("GET {target} HTTP/1.1\r\n\r\n").as_bytes()).await.unwrap();
            let mut page = String::new();
            stream.read_to_string(&mut page).await.unwrap();
            page
        };
        let browser = async {
            let _silent = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
            assert!(serve_connection("/favicon.ico").await.starts_with("HTTP/1.1 404"));
            assert!(serve_connection("/callback?code=x&state=guess").await.starts_with("HTTP/1.1 404"));
            let page = serve_connection("/callback?code=right&state=s1").await;
            assert!(page.starts_with("HTTP/1.1 200") && page.contains("登录"), "{page}");
        };
        let (code, ()) = tokio::join!(callback.wait_for_code(&expected), browser);
        assert_eq!(code.unwrap().expose(), "right");
    }
}
