//! DNS resolver for the requests of a login, restricted to the addresses that are allowed. It checks when a connection is
//! opened, so that a DNS record that changes after an earlier check has no effect (DNS rebinding).

use std::net::SocketAddr;
use std::sync::OnceLock;

use reqwest::Client;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use url::Url;

use crate::address::NetworkKind;
use crate::error::OAuthError;
use crate::http_client::{build_client, is_same_origin};

/// Environment variables that configure a proxy. Its address is the owner's choice and not restricted.
const PROXIES: [&str; 6] =
    ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];

/// Resolves only to addresses that a server of this network may point to.
struct RestrictedResolver {
    server: NetworkKind,
    proxies: Vec<String>,
}

impl RestrictedResolver {
    fn new(server: NetworkKind) -> Self {
        let host = |name: &str| {
            let text = std::env::var(name).ok()?;
            let url = Url::parse(&text).or_else(|_| Url::parse(&format!("http://{text}"))).ok()?;
            Some(url.host_str()?.to_owned())
        };
        Self { server, proxies: PROXIES.iter().filter_map(|name| host(name)).collect() }
    }
}

impl Resolve for RestrictedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (server, name) = (self.server, name.as_str().to_owned());
        let is_proxy = self.proxies.contains(&name);
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let allowed = allowed_addresses(server, found, is_proxy)
                .ok_or_else(|| {
                format!(
                    "`{name}` is in a private network or on this machine, and the server is not: if that is meant, \
                     set `private_network = true` in its OAuth settings"
                )
            })?;
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

/// The allowed addresses; `None` if there are addresses, but none is allowed.
fn allowed_addresses(
    server: NetworkKind,
    found: impl Iterator<Item = SocketAddr>,
    is_proxy: bool,
) -> Option<Vec<SocketAddr>> {
    let found: Vec<_> = found.collect();
    let may = |address: &SocketAddr| is_proxy || server.may_point_to(NetworkKind::of(address.ip()));
    let allowed: Vec<_> = found.iter().copied().filter(may).collect();
    (found.is_empty() || !allowed.is_empty()).then_some(allowed)
}

/// The client for URLs that a server of this network names; for configured URLs, one without restriction.
pub(super) fn client_for_network(server: NetworkKind) -> Result<Client, OAuthError> {
    static UNRESTRICTED: OnceLock<Result<Client, String>> = OnceLock::new();
    static PRIVATE: OnceLock<Result<Client, String>> = OnceLock::new();
    static PUBLIC: OnceLock<Result<Client, String>> = OnceLock::new();
    let restricted = || {
        build_client(|builder| {
            builder
                .redirect(document_redirects())
                .dns_resolver(std::sync::Arc::new(RestrictedResolver::new(server)))
        })
    };
    let client = match server {
        NetworkKind::Loopback => {
            UNRESTRICTED.get_or_init(|| build_client(|builder| builder.redirect(document_redirects())))
        }
        NetworkKind::Private => PRIVATE.get_or_init(restricted),
        NetworkKind::Public | NetworkKind::Special => PUBLIC.get_or_init(restricted),
    };
    client.clone().map_err(OAuthError::Config)
}

/// Follows redirects of documents within their origin. A form, which may contain a secret, is never sent a second time.
fn document_redirects() -> Policy {
    Policy::custom(|attempt| {
        let form = matches!(attempt.status().as_u16(), 307 | 308);
        if !form && is_same_origin(&attempt) { attempt.follow() } else { attempt.stop() }
    })
}

/// Checks the current addresses of a host name. Used for URLs that a browser opens, which resolves the name itself.
pub(super) async fn check_name(server: NetworkKind, url: &Url) -> Result<(), OAuthError> {
    let Some(host) = url.host_str().filter(|_| NetworkKind::of_url(url).is_none()) else { return Ok(()) };
    // A name that cannot be resolved is harmless.
    let Ok(found) = tokio::net::lookup_host((host, 0)).await else { return Ok(()) };
    match allowed_addresses(server, found, false) {
        Some(_) => Ok(()),
        None => Err(OAuthError::Insecure { url: crate::http_client::host_and_port(url) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn admits_only_addresses_of_allowed_networks() {
        let check = |server: NetworkKind, found: &[&str], expect: Option<&[&str]>| {
            let address = |text: &&str| SocketAddr::new(text.parse().unwrap(), 0);
            let allowed_addresses = allowed_addresses(server, found.iter().map(address), false);
            let expect = expect.map(|expect| expect.iter().map(address).collect::<Vec<_>>());
            assert_eq!(allowed_addresses, expect, "{server:?} {found:?}");
        };
        check(NetworkKind::Public, &["1.1.1.1"], Some(&["1.1.1.1"]));
        check(NetworkKind::Public, &["127.0.0.1", "::1"], None);
        check(NetworkKind::Public, &["10.0.0.1", "1.1.1.1"], Some(&["1.1.1.1"]));
        check(NetworkKind::Public, &["::ffff:169.254.169.254"], None);
        check(NetworkKind::Private, &["10.0.0.1"], Some(&["10.0.0.1"]));
        check(NetworkKind::Private, &["127.0.0.1"], None);
        check(NetworkKind::Private, &["169.254.169.254"], None);
        check(NetworkKind::Loopback, &["127.0.0.1"], Some(&["127.0.0.1"]));
        check(NetworkKind::Public, &[], Some(&[]));
    }

    /// The name resolves to this machine when the connection is opened, whatever was checked before.
    #[tokio::test]
    async fn does_not_connect_to_names_of_this_machine() {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        // Called directly, since `Fetch` rejects a URL with `localhost` before it is resolved.
        let refused =
            RestrictedResolver::new(NetworkKind::Public).resolve("localhost".parse().unwrap()).await;
        let error = refused.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("this machine"), "{error}");
        let found =
            RestrictedResolver::new(NetworkKind::Loopback).resolve("localhost".parse().unwrap()).await;
        assert!(found.is_ok_and(|mut found| found.any(|address| address.ip().is_loopback())));
        let restricted = client_for_network(NetworkKind::Public).unwrap();
        let sent = restricted.get(format!("http://localhost:{port}/")).send().await;
        assert!(sent.is_err_and(|error| error.is_connect()));
        let accepted = tokio::time::timeout(std::time::Duration::from_millis(50), listener.accept()).await;
        assert!(accepted.is_err(), "a connection was made");
    }
}
