//! The port through which the server verifies bearer tokens, and the table of static keys.

use std::fmt;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use toolhub_core::{BoxFuture, Principal, Role, hex};

/// A verified bearer token.
#[derive(Debug, Clone)]
pub struct AuthenticatedToken {
    /// The principal that the token identifies.
    pub principal: Arc<Principal>,
    /// When the token must be verified again, at the latest when it expires; `None` for never.
    pub recheck: Option<Instant>,
}

impl AuthenticatedToken {
    /// Creates the result for a token that must be verified again at `recheck`.
    pub fn until(principal: Arc<Principal>, recheck: Option<SystemTime>) -> Self {
        let left = recheck.map(|at| at.duration_since(SystemTime::now()).unwrap_or_default());
        Self { principal, recheck: left.and_then(|left| Instant::now().checked_add(left)) }
    }
}

/// Why a token is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenRefusal {
    /// The request has no token.
    Missing,
    /// The `Authorization` header is repeated or has no token.
    Malformed,
    /// The token has expired.
    Expired,
    /// The token is unknown, revoked, or for another audience.
    Invalid,
    /// The identity provider cannot be reached.
    Unavailable,
    /// The identity provider may have a new key, which is fetched later.
    NewKey {
        /// When the token should be sent again, in seconds.
        retry_after: u16,
    },
}

/// Verifies bearer tokens.
pub trait Authenticator: Send + Sync + fmt::Debug {
    /// Whether requests need a token.
    fn is_required(&self) -> bool;

    /// A number that changes whenever a token may have become invalid. Results of [`Self::find`] and [`Self::verify`] may
    /// be reused while it stays the same.
    fn version(&self) -> u64;

    /// Whether [`Self::verify`] may accept a token that [`Self::find`] does not know.
    fn has_providers(&self) -> bool {
        false
    }

    /// Looks up a key, or a token that was verified before. `profile` is the profile that the request names.
    fn find(&self, token: &str, profile: Option<&str>) -> Option<AuthenticatedToken>;

    /// Verifies a token that [`Self::find`] does not know; may contact an identity provider.
    fn verify<'a>(
        &'a self,
        token: &'a str,
        profile: Option<&'a str>,
    ) -> BoxFuture<'a, Result<AuthenticatedToken, TokenRefusal>>;

    /// Whether a principal may read metrics. Their labels are those that it may see.
    fn may_read_metrics(&self, principal: &Principal) -> bool {
        let _ = principal;
        true
    }

    /// Whether the credentials of a principal are still valid. Its streams end if they are not.
    fn is_valid(&self, principal: &Arc<Principal>) -> bool;

    /// The value of `WWW-Authenticate` for a refused request.
    fn challenge(&self, profile: Option<&str>, refusal: TokenRefusal) -> String;

    /// The value of `WWW-Authenticate` for a request that needs further scopes.
    fn scope_challenge(&self, profile: Option<&str>, scopes: &[String]) -> String;

    /// The protected-resource metadata (RFC 9728) of a profile, as JSON; `None` without identity providers.
    fn resource_metadata(&self, profile: Option<&str>) -> Option<String>;
}

/// A static key, stored as its hash.
#[derive(Debug, Clone)]
pub struct StaticKey {
    /// The SHA-256 of the key, as 64 hexadecimal digits.
    pub sha256: String,
    /// The principal that the key identifies.
    pub principal: Arc<Principal>,
    /// When the key expires.
    pub expires: Option<SystemTime>,
}

impl StaticKey {
    /// A key of a caller, without expiry.
    pub fn of_caller(name: &str, sha256: impl Into<String>) -> Self {
        let principal = Principal::of_key(name).with_roles(Role::Caller);
        Self { sha256: sha256.into(), principal: Arc::new(principal), expires: None }
    }

    fn is_expired(&self) -> bool {
        self.expires.is_some_and(|at| SystemTime::now() >= at)
    }
}

/// A table of static keys. Without keys no token is required.
#[derive(Debug, Clone, Default)]
pub struct KeyTable(Vec<StaticKey>);

impl From<Vec<StaticKey>> for KeyTable {
    fn from(keys: Vec<StaticKey>) -> Self {
        Self(keys)
    }
}

impl KeyTable {
    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The keys.
    pub fn iter(&self) -> impl Iterator<Item = &StaticKey> {
        self.0.iter()
    }

    /// Looks up a key by its text. Expired keys are not found.
    pub fn find(&self, token: &str) -> Option<AuthenticatedToken> {
        let hash = hash_of(token);
        // Compares every key, so that the duration does not reveal which one matched.
        let mut found = None;
        for key in &self.0 {
            if constant_time_eq(key.sha256.to_ascii_lowercase().as_bytes(), hash.as_bytes()) {
                found = Some(key);
            }
        }
        let key = found.filter(|key| !key.is_expired())?;
        Some(AuthenticatedToken::until(Arc::clone(&key.principal), key.expires))
    }

    /// Whether this is the text of a key that has expired.
    pub fn has_expired(&self, token: &str) -> bool {
        let hash = hash_of(token);
        let is_it =
            |key: &StaticKey| constant_time_eq(key.sha256.to_ascii_lowercase().as_bytes(), hash.as_bytes());
        // Compares every key, like `find`.
        self.0.iter().filter(|key| is_it(key)).any(StaticKey::is_expired)
    }

    /// Whether the principal belongs to a key of this table that has not expired.
    pub fn contains(&self, principal: &Arc<Principal>) -> bool {
        self.0.iter().any(|key| Arc::ptr_eq(&key.principal, principal) && !key.is_expired())
    }
}

impl Authenticator for KeyTable {
    fn is_required(&self) -> bool {
        !self.is_empty()
    }

    fn version(&self) -> u64 {
        0
    }

    fn find(&self, token: &str, _: Option<&str>) -> Option<AuthenticatedToken> {
        Self::find(self, token)
    }

    fn verify<'a>(
        &'a self,
        token: &'a str,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<AuthenticatedToken, TokenRefusal>> {
        let refusal = if self.has_expired(token) { TokenRefusal::Expired } else { TokenRefusal::Invalid };
        Box::pin(std::future::ready(Err(refusal)))
    }

    fn is_valid(&self, principal: &Arc<Principal>) -> bool {
        self.contains(principal)
    }

    fn challenge(&self, _: Option<&str>, refusal: TokenRefusal) -> String {
        // RFC 6750, section 3.1: a challenge for a request without a token carries no error code.
        match refusal {
            TokenRefusal::Missing | TokenRefusal::Unavailable | TokenRefusal::NewKey { .. } => {
                "Bearer realm=\"toolhub\""
            }
            TokenRefusal::Malformed => "Bearer realm=\"toolhub\", error=\"invalid_request\"",
            TokenRefusal::Expired => {
                "Bearer realm=\"toolhub\", error=\"invalid_token\", error_description=\"the token has expired\""
            }
            TokenRefusal::Invalid => "Bearer realm=\"toolhub\", error=\"invalid_token\"",
        }
        .to_owned()
    }

    fn scope_challenge(&self, _: Option<&str>, _: &[String]) -> String {
        "Bearer realm=\"toolhub\", error=\"insufficient_scope\"".to_owned()
    }

    fn resource_metadata(&self, _: Option<&str>) -> Option<String> {
        None
    }
}

/// Returns the SHA-256 of a token as lower-case hexadecimal digits.
pub fn hash_of(token: &str) -> String {
    hex::sha256(token.as_bytes())
}

/// Compares in a time that depends on the lengths only.
pub(crate) fn constant_time_eq(one: &[u8], other: &[u8]) -> bool {
    let differing = one.iter().zip(other).fold(0, |all, (one, other)| all | (one ^ other));
    one.len() == other.len() && differing == 0
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn expired_keys_are_not_found() {
        let now = SystemTime::now();
        let key = |name: &str, expires| StaticKey { expires, ..StaticKey::of_caller(name, hash_of(name)) };
        let table = KeyTable::from(vec![
            key("old", Some(now - Duration::from_secs(1))),
            key("new", Some(now + Duration::from_secs(60))),
            key("ever", None),
        ]);
        let found = |token: &str| table.find(token).map(|verified| verified.principal.display.clone());
        assert_eq!(found("old"), None);
        assert_eq!(found("new").as_deref(), Some("new"));
        assert_eq!(found("ever").as_deref(), Some("ever"));
        assert!(table.find("new").unwrap().recheck.is_some());
        assert_eq!(found("EVER"), None);
    }
}
