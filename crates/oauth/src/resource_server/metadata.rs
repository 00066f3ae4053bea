//! The hub as a protected resource: audiences of profiles, and the metadata document (RFC 9728).

use serde::Serialize;
use toolhub_core::RawJson;
use toolhub_core::lang::LocalizedText;
use url::Url;

use super::settings::ResourceServer;
use super::www_authenticate::BearerChallenge;
use crate::address::NetworkKind;
use crate::resource::{WELL_KNOWN, at_path};
use crate::scopes::OFFLINE;

/// The protected resource with its checked public URL.
#[derive(Debug, Clone)]
pub struct ProtectedResource {
    resource: Url,
    issuers: Vec<String>,
}

/// The members of the metadata that do not follow from the settings.
#[derive(Debug, Clone, Copy, Default)]
pub struct MetadataDetails<'a> {
    /// The scopes that rules and roles refer to.
    pub scopes: &'a [String],
    /// A name for people.
    pub name: &'a str,
}

#[derive(Serialize)]
struct MetadataDocument<'a> {
    resource: String,
    authorization_servers: &'a [String],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scopes_supported: Vec<&'a str>,
    bearer_methods_supported: [&'a str; 1],
    #[serde(skip_serializing_if = "str::is_empty")]
    resource_name: &'a str,
}

impl ProtectedResource {
    /// Checks the public URL. It must be https, or http on this machine.
    pub fn new(settings: &ResourceServer) -> Result<Self, LocalizedText> {
        let text = &settings.resource;
        let is_safe = |url: &Url| match url.scheme() {
            "https" => true,
            "http" => NetworkKind::of_url(url) == Some(NetworkKind::Loopback),
            _ => false,
        };
        let is_plain = |url: &Url| {
            let without_userinfo = url.username().is_empty() && url.password().is_none();
            without_userinfo && url.query().is_none() && url.fragment().is_none()
        };
        let url = Url::parse(text).ok().filter(|url| is_safe(url) && is_plain(url));
        let Some(mut resource) = url else {
            return Err(LocalizedText::new(
                "`resource` should be the public https URL of the hub, without user, query and fragment",
                "`resource` 应为 hub 的公开 https 地址，不含用户名、查询参数和片段",
            ));
        };
        let path = resource.path().trim_end_matches('/').to_owned();
        resource.set_path(&path);
        let issuers = settings.issuers.iter().map(|issuer| issuer.url.clone()).collect();
        Ok(Self { resource, issuers })
    }

    /// The resource identifier of a profile, which tokens must have as audience; `None` for the default profile.
    pub fn audience(&self, profile: Option<&str>) -> String {
        self.endpoint(profile).to_string()
    }

    fn endpoint(&self, profile: Option<&str>) -> Url {
        let mut url = self.resource.clone();
        // Fails only for URLs without a host, which `new` rejects.
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().push("mcp").extend(profile);
        }
        url
    }

    /// The URL of the metadata document: the well-known path precedes that of the resource (RFC 9728 §3.1).
    pub fn metadata_url(&self, profile: Option<&str>) -> String {
        let endpoint = self.endpoint(profile);
        at_path(&endpoint, &format!("{WELL_KNOWN}{}", endpoint.path())).to_string()
    }

    /// The metadata document of a profile.
    pub fn metadata(&self, profile: Option<&str>, details: MetadataDetails<'_>) -> RawJson {
        // Clients decide themselves about refresh tokens; a resource does not need them.
        let scopes = details.scopes.iter().map(String::as_str).filter(|scope| *scope != OFFLINE);
        RawJson::of(&MetadataDocument {
            resource: self.audience(profile),
            authorization_servers: &self.issuers,
            scopes_supported: scopes.collect(),
            bearer_methods_supported: ["header"],
            resource_name: details.name,
        })
    }

    /// The value of `WWW-Authenticate` for a refused request to a profile.
    pub fn challenge(&self, profile: Option<&str>, challenge: &BearerChallenge<'_>) -> String {
        challenge.header_value(&self.metadata_url(profile))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::settings::TrustedIssuer;
    use super::*;

    fn resource(url: &str) -> Result<ProtectedResource, LocalizedText> {
        let issuers =
            vec![TrustedIssuer::new("https://idp.example/"), TrustedIssuer::new("https://b.example")];
        ProtectedResource::new(&ResourceServer { resource: url.to_owned(), issuers })
    }

    #[test]
    fn audience_is_the_endpoint_of_the_profile() {
        let check = |url: &str, profile: Option<&str>, audience: &str, metadata: &str| {
            let resource = resource(url).unwrap();
            assert_eq!(resource.audience(profile), audience);
            assert_eq!(resource.metadata_url(profile), metadata);
        };
        for url in ["https://hub.example", "https://hub.example/", "https://HUB.example:443"] {
            let well_known = "https://hub.example/.well-known/oauth-protected-resource";
            check(url, None, "https://hub.example/mcp", &format!("{well_known}/mcp"));
            check(url, Some("office"), "https://hub.example/mcp/office", &format!("{well_known}/mcp/office"));
        }
        check(
            "https://example.com/hub/",
            Some("a"),
            "https://example.com/hub/mcp/a",
            "https://example.com/.well-known/oauth-protected-resource/hub/mcp/a",
        );
        // A name cannot leave its place in the path.
        let hub = resource("https://hub.example").unwrap();
        assert_eq!(hub.audience(Some("a/b?c#d")), "https://hub.example/mcp/a%2Fb%3Fc%23d");
        assert!(resource("http://127.0.0.1:8080").is_ok());
    }

    #[test]
    fn rejects_unsafe_public_urls() {
        for url in [
            "",
            "hub.example",
            "http://hub.example",
            "http://10.0.0.1",
            "ftp://hub.example",
            "https://a:b@hub.example",
            "https://hub.example?a=b",
            "https://hub.example#a",
            "data:a",
        ] {
            assert!(resource(url).is_err(), "{url}");
        }
    }

    #[test]
    fn metadata_lists_issuers_and_scopes() {
        let hub = resource("https://hub.example").unwrap();
        let scopes = ["tools".to_owned(), "offline_access".to_owned()];
        let document = hub.metadata(Some("office"), MetadataDetails { scopes: &scopes, name: "Hub \"A\"" });
        assert_eq!(
            document.value(),
            json!({
                "resource": "https://hub.example/mcp/office",
                "authorization_servers": ["https://idp.example/", "https://b.example"],
                "scopes_supported": ["tools"],
                "bearer_methods_supported": ["header"],
                "resource_name": "Hub \"A\"",
            })
        );
        let document = hub.metadata(None, MetadataDetails::default()).value();
        assert!(document.get("scopes_supported").is_none() && document.get("resource_name").is_none());
    }
}
