//! Protected resource metadata: the resource identifier and its authorization servers (RFC 9728; 2026-07-28, authorization
//! server discovery).

use serde::Deserialize;
use url::Url;

use crate::challenge::Challenge;
use crate::error::OAuthError;
use crate::fetch::LoginFetcher;

/// The well-known path of protected resource metadata.
pub(crate) const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// A protected resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProtectedResource {
    /// The resource indicator for token requests (RFC 8707).
    pub(crate) name: String,
    /// Its authorization servers, preferred first.
    pub(crate) issuers: Vec<String>,
    /// The scopes for its basic functions, if listed.
    pub(crate) scopes: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct ResourceMetadata {
    #[serde(default)]
    resource: Option<String>,
    #[serde(default)]
    authorization_servers: Vec<String>,
    #[serde(default)]
    scopes_supported: Option<Vec<String>>,
}

impl ProtectedResource {
    /// Fetches the metadata of the server at `server`: from the URL in the challenge, otherwise from the well-known URLs.
    pub(crate) async fn find(
        fetch: &LoginFetcher,
        server: &Url,
        challenge: Option<&Challenge>,
    ) -> Result<Option<Self>, OAuthError> {
        let named = challenge.and_then(|challenge| challenge.resource_metadata.as_deref());
        let places = match named {
            Some(named) => vec![fetch.allowed(named)?],
            None => well_known(server),
        };
        for location in places {
            if let Some(document) = fetch.document::<ResourceMetadata>(&location).await? {
                return Self::checked(server, document).map(Some);
            }
        }
        Ok(None)
    }

    /// The metadata is valid only for its own server, or for a parent path on the same origin (RFC 9728 §3.3).
    fn checked(server: &Url, document: ResourceMetadata) -> Result<Self, OAuthError> {
        let name = document.resource.unwrap_or_else(|| resource_identifier(server));
        if !covers(&name, server) {
            let found = super::fetch::sanitize_text(&name);
            return Err(OAuthError::WrongResource { expected: resource_identifier(server), found });
        }
        Ok(Self { name, issuers: document.authorization_servers, scopes: document.scopes_supported })
    }
}

/// The default resource identifier: without query, fragment and a lone trailing slash.
pub(crate) fn resource_identifier(server: &Url) -> String {
    let mut url = server.clone();
    url.set_query(None);
    url.set_fragment(None);
    let text = url.to_string();
    if url.path() == "/" { text.trim_end_matches('/').to_owned() } else { text }
}

fn covers(resource: &str, server: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else { return false };
    let (outer, inner) = (resource.path().trim_end_matches('/'), server.path());
    let inside = inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    resource.origin() == server.origin() && resource.fragment().is_none() && inside
}

/// Below the endpoint's path first, then at the root.
fn well_known(server: &Url) -> Vec<Url> {
    let path = server.path().trim_end_matches('/');
    let under = (!path.is_empty()).then(|| format!("{WELL_KNOWN}{path}"));
    let paths = under.into_iter().chain([WELL_KNOWN.to_owned()]);
    paths.map(|path| at_path(server, &path)).collect()
}

/// The same origin with another path.
pub(crate) fn at_path(url: &Url, path: &str) -> Url {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    url.set_path(path);
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn tries_well_known_urls_in_order() {
        let check = |server: &str, expect: &[&str]| {
            let places: Vec<String> = well_known(&url(server)).iter().map(ToString::to_string).collect();
            assert_eq!(places, expect);
        };
        check(
            "https://a.example/public/mcp?x=1",
            &[
                "https://a.example/.well-known/oauth-protected-resource/public/mcp",
                "https://a.example/.well-known/oauth-protected-resource",
            ],
        );
        check("https://a.example:8443/", &["https://a.example:8443/.well-known/oauth-protected-resource"]);
    }

    #[test]
    fn resource_metadata_is_valid_for_its_own_server_only() {
        let check = |resource: &str, server: &str, expect: bool| {
            assert_eq!(covers(resource, &url(server)), expect, "{resource} {server}");
        };
        check("https://a.example/mcp", "https://a.example/mcp", true);
        check("https://A.example:443/mcp/", "https://a.example/mcp", true);
        check("https://a.example", "https://a.example/mcp", true);
        check("https://a.example/mcp", "https://a.example/mcp/x", true);
        check("https://a.example/mcp", "https://a.example/mcp2", false);
        check("https://a.example/other", "https://a.example/mcp", false);
        check("https://b.example/mcp", "https://a.example/mcp", false);
        check("http://a.example/mcp", "https://a.example/mcp", false);
        check("https://a.example/#x", "https://a.example/", false);
        check("a.example", "https://a.example/", false);
        assert_eq!(resource_identifier(&url("https://A.example/?k=v#f")), "https://a.example");
        assert_eq!(resource_identifier(&url("https://a.example/mcp/?k=v")), "https://a.example/mcp/");
    }
}
