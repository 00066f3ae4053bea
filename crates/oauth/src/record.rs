//! The stored result of a login, and its validity.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use toolhub_core::Secret;
use url::Url;

use crate::client::RegisteredClient;
use crate::issuer::Issuer;
use crate::plain_text::write_plain;
use crate::scopes::Scopes;

/// A token is renewed this long before it expires, or after three quarters of a short lifetime.
const RENEWAL_MARGIN: Duration = Duration::from_secs(60);

/// The login of one server, as it is stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LoginRecord {
    /// The SHA-256 of the key of the principal that it belongs to, if that has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key_sha256: Option<String>,
    /// The resource indicator (RFC 8707).
    pub(crate) resource: String,
    /// The issuer.
    pub(crate) issuer: String,
    /// The token endpoint, for renewals.
    pub(crate) token_endpoint: String,
    /// The revocation endpoint.
    #[serde(default)]
    pub(crate) revocation_endpoint: Option<String>,
    /// The client that requested the tokens.
    pub(crate) client: RegisteredClient,
    #[serde(default)]
    pub(crate) tokens: Tokens,
    /// All requested scopes.
    #[serde(default)]
    pub(crate) requested: Scopes,
    /// Scopes that a call lacked: requested at the next login.
    #[serde(default)]
    pub(crate) missing: Scopes,
}

/// The tokens of an authorization server.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Tokens {
    #[serde(default, serialize_with = "write_plain")]
    pub(crate) access: Option<Secret>,
    #[serde(default, serialize_with = "write_plain")]
    pub(crate) refresh: Option<Secret>,
    /// When to renew the access token, in Unix seconds; `None` if its lifetime is unknown.
    #[serde(default)]
    renew_at: Option<u64>,
    /// When it expires, in Unix seconds.
    #[serde(default)]
    expires_at: Option<u64>,
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

impl Tokens {
    /// Newly issued tokens.
    pub(crate) fn fresh(access: Secret, refresh: Option<Secret>, lifetime: Option<Duration>) -> Self {
        let renew_at =
            lifetime.map(|life| now().saturating_add((life - RENEWAL_MARGIN.min(life / 4)).as_secs()));
        let expires_at = lifetime.map(|life| now().saturating_add(life.as_secs()));
        Self { access: Some(access), refresh, renew_at, expires_at }
    }

    /// Whether the access token should be renewed before it is used.
    pub(crate) fn is_due(&self) -> bool {
        self.renew_at.is_some_and(|at| now() >= at)
    }

    /// Whether it has expired according to the local clock.
    pub(crate) fn is_expired(&self) -> bool {
        self.expires_at.is_some_and(|at| now() >= at)
    }

    /// The tokens after a renewal. If the response contains no new refresh token, the old one stays valid (RFC 6749 §6).
    pub(crate) fn renewed_by(&self, new: Self) -> Self {
        Self { refresh: new.refresh.or_else(|| self.refresh.clone()), ..new }
    }
}

/// An authorization server at the time when credentials were first used with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IssuerBinding {
    /// The exact issuer identifier.
    pub(crate) issuer: String,
    /// The origin that secrets and refresh tokens are sent to. It often differs from the issuer's.
    pub(crate) token_origin: String,
}

impl IssuerBinding {
    pub(crate) fn to(issuer: &Issuer) -> Self {
        Self { issuer: issuer.name.clone(), token_origin: issuer.token.origin().ascii_serialization() }
    }

    pub(crate) fn of_record(record: &LoginRecord) -> Option<Self> {
        let token_origin = Url::parse(&record.token_endpoint).ok()?.origin().ascii_serialization();
        Some(Self { issuer: record.issuer.clone(), token_origin })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_due_for_renewal_before_expiry() {
        let check = |seconds: Option<u64>, due: bool, over: bool| {
            let life = seconds.map(Duration::from_secs);
            let tokens = Tokens::fresh(Secret::new("a"), None, life);
            assert_eq!((tokens.is_due(), tokens.is_expired()), (due, over), "{seconds:?}");
        };
        check(None, false, false);
        check(Some(3600), false, false);
        check(Some(8), false, false);
        check(Some(0), true, true);
        let long = Tokens::fresh(Secret::new("a"), None, Some(Duration::from_secs(3600)));
        assert_eq!(long.expires_at.unwrap() - long.renew_at.unwrap(), 60);
        let short = Tokens::fresh(Secret::new("a"), None, Some(Duration::from_secs(40)));
        assert_eq!(short.expires_at.unwrap() - short.renew_at.unwrap(), 10);
    }

    #[test]
    fn keeps_refresh_token_unless_rotated() {
        let old = Tokens::fresh(Secret::new("a"), Some(Secret::new("r1")), None);
        let rotated = old.renewed_by(Tokens::fresh(Secret::new("b"), Some(Secret::new("r2")), None));
        assert_eq!(rotated.refresh, Some(Secret::new("r2")));
        let renewed = old.renewed_by(Tokens::fresh(Secret::new("b"), None, None));
        assert_eq!((renewed.refresh, renewed.access), (Some(Secret::new("r1")), Some(Secret::new("b"))));
    }
}
