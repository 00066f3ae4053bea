//! What a login leaves behind, and how long it is good for.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::discover::Found;
use super::registration::Client;
use super::scopes::Scopes;
use super::secret::{Secret, write_plain};

/// A token is renewed this long before it runs out, or after three quarters of a short life.
const SKEW: Duration = Duration::from_secs(60);

/// One server's login, as it is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    /// What the tokens are for (RFC 8707).
    pub(crate) resource: String,
    /// Who gave them.
    pub(crate) issuer: String,
    /// Where they are renewed.
    pub(crate) token_endpoint: String,
    /// Where they are given back.
    #[serde(default)]
    pub(crate) revocation_endpoint: Option<String>,
    /// As whom they were asked for.
    pub(crate) client: Client,
    #[serde(default)]
    pub(crate) tokens: Tokens,
    /// All that was asked for.
    #[serde(default)]
    pub(crate) requested: Scopes,
    /// What a call needed and did not have: asked for at the next login.
    #[serde(default)]
    pub(crate) missing: Scopes,
}

/// What an authorization server gave.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Tokens {
    #[serde(default, serialize_with = "write_plain")]
    pub(crate) access: Option<Secret>,
    #[serde(default, serialize_with = "write_plain")]
    pub(crate) refresh: Option<Secret>,
    /// When to renew the access token, in seconds since 1970; `None` where nobody said how long it lives.
    #[serde(default)]
    renew_at: Option<u64>,
    /// When it is of no use any more.
    #[serde(default)]
    expires_at: Option<u64>,
}

impl Record {
    /// A login that was just made at `url`.
    pub(crate) fn new(found: Found, client: Client, (tokens, requested): (Tokens, Scopes)) -> Self {
        Self {
            resource: found.resource,
            issuer: found.issuer.name,
            token_endpoint: found.issuer.token.to_string(),
            revocation_endpoint: found.issuer.revoke.map(|url| url.to_string()),
            client,
            tokens,
            requested,
            missing: Scopes::default(),
        }
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

impl Tokens {
    /// Tokens that were just given.
    pub(crate) fn fresh(access: Secret, refresh: Option<Secret>, lifetime: Option<Duration>) -> Self {
        let renew_at = lifetime.map(|life| now().saturating_add((life - SKEW.min(life / 4)).as_secs()));
        let expires_at = lifetime.map(|life| now().saturating_add(life.as_secs()));
        Self { access: Some(access), refresh, renew_at, expires_at }
    }

    /// Whether the access token should be renewed before it is used.
    pub(crate) fn is_due(&self) -> bool {
        self.renew_at.is_some_and(|at| now() >= at)
    }

    /// Whether it has run out, as far as our clock can tell.
    pub(crate) fn is_over(&self) -> bool {
        self.expires_at.is_some_and(|at| now() >= at)
    }

    /// The tokens after a renewal; a server that gives no new refresh token lets the old one stand (RFC 6749 §6).
    pub(crate) fn renewed_by(&self, new: Self) -> Self {
        Self { refresh: new.refresh.or_else(|| self.refresh.clone()), ..new }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_renewed_before_they_run_out() {
        let check = |seconds: Option<u64>, due: bool, over: bool| {
            let life = seconds.map(Duration::from_secs);
            let tokens = Tokens::fresh(Secret::new("a"), None, life);
            assert_eq!((tokens.is_due(), tokens.is_over()), (due, over), "{seconds:?}");
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
    fn a_refresh_token_is_replaced_or_stays() {
        let old = Tokens::fresh(Secret::new("a"), Some(Secret::new("r1")), None);
        let rotated = old.renewed_by(Tokens::fresh(Secret::new("b"), Some(Secret::new("r2")), None));
        assert_eq!(rotated.refresh, Some(Secret::new("r2")));
        let kept = old.renewed_by(Tokens::fresh(Secret::new("b"), None, None));
        assert_eq!((kept.refresh, kept.access), (Some(Secret::new("r1")), Some(Secret::new("b"))));
    }
}
