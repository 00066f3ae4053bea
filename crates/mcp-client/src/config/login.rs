//! The login of a configured server: its OAuth settings with expanded variables, and its endpoint once the owner has consented.

use std::sync::Arc;

use toolhub_client_config::{HttpSpec, TransportSpec, expand_variables};
use toolhub_core::{Consent, OAuthSpec, Secret};
use toolhub_mcp_wire::McpError;
use toolhub_oauth::{LoginEndpoint, OAuthError, ResolveEndpoint, TokenManager, TokenManagerContext};

use super::permitted::NeedsConsent as _;
use super::spec::ServerSpec;
use crate::transport::http::client::{header_map, parse_url};

/// Expands the variables. The error is the name of the first one that is not set.
pub(super) fn expand_login(spec: &OAuthSpec) -> Result<OAuthSpec, String> {
    let fill = |text: &str| expand_variables(text, &|name| std::env::var(name).ok());
    let secret = spec.client_secret.as_ref().map(|secret| fill(secret.expose())).transpose()?;
    Ok(OAuthSpec {
        client_id: spec.client_id.as_deref().map(fill).transpose()?,
        client_secret: secret.map(Secret::new),
        ..spec.clone()
    })
}

/// A configured endpoint, resolved when a login needs it.
struct ConfiguredEndpoint {
    http: HttpSpec,
    consent: Consent,
    oauth: OAuthSpec,
}

impl ResolveEndpoint for ConfiguredEndpoint {
    fn resolve(&self) -> Result<LoginEndpoint, OAuthError> {
        let wrong = |error: McpError| OAuthError::Config(error.to_string());
        let http = self.http.permitted(&self.consent).map_err(wrong)?;
        let spec = expand_login(&self.oauth).map_err(|name| {
            OAuthError::Config(format!("`oauth` in its config uses ${{{name}}}, which is not set"))
        })?;
        let url = parse_url(&http.url).map_err(wrong)?;
        let headers = header_map(&http.headers).map_err(wrong)?;
        Ok(LoginEndpoint { url, headers, spec })
    }
}

impl ServerSpec {
    /// The token manager of a server that supports a login: over HTTP, without a configured `Authorization` header.
    pub(crate) fn token_manager(&self, context: TokenManagerContext) -> Result<TokenManager, OAuthError> {
        let http = match &self.transport {
            TransportSpec::Http(http) | TransportSpec::Sse(http) => http.clone(),
            TransportSpec::Stdio(_) => return Err(OAuthError::NotHttp),
        };
        if http.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization")) {
            return Err(OAuthError::OwnHeader);
        }
        let endpoint = ConfiguredEndpoint { http, consent: self.consent.clone(), oauth: self.oauth.clone() };
        Ok(TokenManager::new(self.id.clone(), self.oauth.clone(), Arc::new(endpoint), context))
    }
}
