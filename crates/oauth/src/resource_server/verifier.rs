//! Verifies access tokens: JWTs by the keys of their issuer, opaque tokens by introspection, repeated ones from a cache.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use tokio_util::task::TaskTracker;
use toolhub_core::lang::LocalizedText;
use toolhub_core::ports::boxed;
use toolhub_core::{BoxFuture, Principal};
use url::Url;

use super::claims::{CLOCK_SKEW, Claims};
use super::clock::{Clock, SystemClock};
use super::identity::{Identity, Person, identify, identify_introspected, person_principal};
use super::introspection::Introspector;
use super::jws::{Jws, MAX_TOKEN_BYTES};
use super::key_set::{KeyRevision, KeySet};
use super::person_login::{BegunLogin, LoginResponse, PersonLogins};
use super::provider::{Provider, issuer_unavailable};
use super::settings::ResourceServer;
use super::token_cache::{TokenCache, TokenDigest, digest};
use super::token_error::{TokenError, TokenErrorKind};

/// Maximum time that the answer of an introspection endpoint is cached.
pub(super) const INTROSPECTION_LIFETIME: Duration = Duration::from_secs(60);
/// Time that the refusal of an introspection endpoint is cached.
pub(super) const REFUSAL_LIFETIME: Duration = Duration::from_secs(10);
/// Maximum time that a verified JWT is cached, unless it expires before.
const JWT_LIFETIME: Duration = Duration::from_secs(60 * 60);
const MAX_CACHED_TOKENS: usize = 8192;
const MAX_CACHED_REFUSALS: usize = 4096;

/// Verifies access tokens. One instance serves all profiles.
pub struct TokenVerifier {
    /// Unique in the process.
    id: u64,
    issuers: Vec<Issuer>,
    clock: Arc<dyn Clock>,
    verified: TokenCache<Arc<CachedToken>>,
    /// Tokens that were refused after introspection.
    refused: TokenCache<TokenErrorKind>,
}

struct Issuer {
    index: usize,
    provider: Arc<Provider>,
    /// Verifies JWTs.
    keys: KeySet,
    /// Verifies opaque tokens.
    introspector: Option<Box<Introspector>>,
    /// Logs people in.
    logins: Option<Box<PersonLogins>>,
}

/// The content of a valid access token.
#[derive(Clone)]
pub struct VerifiedToken {
    /// The principal that the token was issued for.
    pub principal: Arc<Principal>,
    /// From when the token is refused: `exp` with the allowed clock skew.
    pub expires: SystemTime,
    /// From when an open stream must verify the token again: `expires`, or for introspected tokens, which may be revoked, after
    /// a minute at most.
    pub recheck: SystemTime,
    proof: Proof,
}

/// How a token was verified.
#[derive(Clone, Copy)]
struct Proof {
    /// The verifier. Another one may have other settings.
    verifier: u64,
    /// The index of the issuer.
    issuer: usize,
    /// The keys that verified the signature; `None` after introspection.
    revision: Option<KeyRevision>,
}

impl fmt::Debug for VerifiedToken {
    /// Without the claims.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifiedToken").finish_non_exhaustive()
    }
}

/// A verified token without the check of its audience, which depends on the profile.
struct CachedToken {
    token: VerifiedToken,
    audiences: Vec<String>,
}

/// The result of a verification, and how long it may be cached.
struct Verified {
    token: Arc<CachedToken>,
    lifetime: Duration,
}

/// A token under verification.
#[derive(Clone, Copy)]
struct Presented<'a> {
    token: &'a str,
    digest: TokenDigest,
    audience: &'a str,
}

impl fmt::Debug for TokenVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let issuers: Vec<&str> = self.issuers.iter().map(|issuer| &*issuer.provider.name).collect();
        f.debug_struct("TokenVerifier").field("issuers", &issuers).finish_non_exhaustive()
    }
}

impl TokenVerifier {
    /// Checks the settings. Nothing is fetched before the first token; fetches of keys run in `tasks`.
    pub fn new(settings: &ResourceServer, tasks: &TaskTracker) -> Result<Self, LocalizedText> {
        Self::with_clock(settings, tasks, Arc::new(SystemClock))
    }

    pub(super) fn with_clock(
        settings: &ResourceServer,
        tasks: &TaskTracker,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, LocalizedText> {
        let mut names = HashSet::new();
        if let Some(issuer) = settings.issuers.iter().find(|issuer| !names.insert(&issuer.url)) {
            let url = &issuer.url;
            return Err(LocalizedText::new(
                format!("issuer `{url}` is configured twice"),
                format!("签发方 `{url}` 重复配置"),
            ));
        }
        // An opaque token does not name its issuer, and must not be sent to another one.
        if settings.issuers.iter().filter(|issuer| issuer.introspection.is_some()).count() > 1 {
            return Err(LocalizedText::new(
                "only one issuer may have `introspection`: an opaque token does not name its issuer",
                "只能有一个签发方配置 `introspection`：不透明令牌不标明签发方",
            ));
        }
        let with_logins = settings.issuers.iter().filter(|issuer| issuer.login.is_some()).count();
        let issuers = settings.issuers.iter().enumerate().map(|(index, settings)| {
            let provider = Arc::new(Provider::new(settings)?);
            let introspector = settings.introspection.as_ref().map(|client| {
                let (provider, clock) = (Arc::clone(&provider), Arc::clone(&clock));
                Box::new(Introspector::new(provider, client.clone(), clock))
            });
            let logins = settings.login.as_ref().map(|client| {
                let (provider, clock) = (Arc::clone(&provider), Arc::clone(&clock));
                Box::new(PersonLogins::new(provider, client.clone(), with_logins > 1, clock))
            });
            let keys = KeySet::new(Arc::clone(&provider), Arc::clone(&clock), tasks.clone());
            Ok(Issuer { index, provider, keys, introspector, logins })
        });
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        Ok(Self {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            issuers: issuers.collect::<Result<_, LocalizedText>>()?,
            clock,
            verified: TokenCache::new(MAX_CACHED_TOKENS),
            refused: TokenCache::new(MAX_CACHED_REFUSALS),
        })
    }

    /// Verifies a token for the audience of a profile, see
    /// [`ProtectedResource::audience`](super::ProtectedResource::audience).
    pub fn verify<'a>(
        &'a self,
        token: &'a str,
        audience: &'a str,
    ) -> BoxFuture<'a, Result<VerifiedToken, TokenError>> {
        boxed(move || async move {
            if token.len() > MAX_TOKEN_BYTES {
                return Err(TokenErrorKind::TooLong.into());
            }
            let presented = Presented { token, digest: digest(token), audience };
            match self.find_cached(&presented) {
                Some(result) => result,
                None => self.verify_new(presented).await,
            }
        })
    }

    /// The result of an earlier verification, without waiting. `None` does not mean that the token is invalid.
    pub fn verify_cached(&self, token: &str, audience: &str) -> Option<VerifiedToken> {
        if token.len() > MAX_TOKEN_BYTES {
            return None;
        }
        self.find_cached(&Presented { token, digest: digest(token), audience })?.ok()
    }

    fn find_cached(&self, presented: &Presented<'_>) -> Option<Result<VerifiedToken, TokenError>> {
        let cached = self.verified.get(&presented.digest, self.clock.monotonic())?;
        if !self.is_current(&cached.token) {
            return None;
        }
        let issuer = self.issuers.get(cached.token.proof.issuer)?;
        Some(issuer.admit(&cached, presented.audience))
    }

    /// Whether a token that this verifier has accepted need not be verified again: its time is not over, and its issuer has not
    /// removed a key. For warm connections and open streams; costs no hash. The audience must be the one it was accepted for.
    pub fn is_current(&self, token: &VerifiedToken) -> bool {
        let Proof { verifier, issuer, revision } = token.proof;
        if verifier != self.id || self.clock.wall_time() >= token.recheck {
            return false;
        }
        match (self.issuers.get(issuer), revision) {
            (Some(issuer), Some(revision)) => issuer.keys.is_current(revision),
            (Some(issuer), None) => issuer.introspector.is_some(),
            (None, _) => false,
        }
    }

    /// The issuers at which people can log in.
    pub fn login_issuers(&self) -> impl Iterator<Item = &str> {
        self.issuers.iter().filter(|issuer| issuer.logins.is_some()).map(|issuer| &*issuer.provider.name)
    }

    /// Begins the login of a person. Returns its secrets and the address to open; `None` if people cannot log in at this issuer.
    pub fn begin_login<'a>(
        &'a self,
        issuer: &'a str,
        redirect: &'a str,
    ) -> BoxFuture<'a, Option<Result<(BegunLogin, Url), TokenError>>> {
        boxed(move || async move {
            let (issuer, logins) = self.logins_at(issuer)?;
            let begun =
                BegunLogin::generate().map_err(|error| issuer_unavailable(&error).of(&issuer.provider.name));
            Some(match begun {
                Ok(begun) => logins.address(&begun, redirect).await.map(|address| (begun, address)),
                Err(error) => Err(error),
            })
        })
    }

    /// Finishes the login of a person; `None` if people cannot log in at this issuer.
    pub fn finish_login<'a>(
        &'a self,
        issuer: &'a str,
        begun: &'a BegunLogin,
        response: LoginResponse<'a>,
    ) -> BoxFuture<'a, Option<Result<Person, TokenError>>> {
        boxed(move || async move {
            let (issuer, logins) = self.logins_at(issuer)?;
            Some(logins.finish(&issuer.keys, begun, response).await)
        })
    }

    /// The principal of a person with its present roles; `None` if people cannot log in at that issuer any more.
    pub fn person_principal(&self, person: &Person) -> Option<Principal> {
        let (issuer, _) = self.logins_at(&person.issuer)?;
        Some(person_principal(&issuer.provider.settings, person))
    }

    fn logins_at(&self, name: &str) -> Option<(&Issuer, &PersonLogins)> {
        let issuer = self.issuers.iter().find(|issuer| *issuer.provider.name == *name)?;
        Some((issuer, issuer.logins.as_deref()?))
    }

    async fn verify_new(&self, presented: Presented<'_>) -> Result<VerifiedToken, TokenError> {
        if !is_bearer_token(presented.token) {
            return Err(TokenErrorKind::Malformed.into());
        }
        let is_jwt = presented.token.bytes().filter(|byte| *byte == b'.').count() == 2;
        let jws = is_jwt.then(|| Jws::parse(presented.token)).transpose()?;
        let issuer = self.select(jws.as_ref())?;
        let verified = match (&jws, &issuer.introspector) {
            (Some(jws), _) => {
                let verified = self.verify_signature(issuer, jws, presented.token).await;
                verified.map(|verified| self.keep(presented.digest, verified))
            }
            (None, Some(introspector)) => self.introspect(issuer, introspector, presented).await,
            (None, None) => Err(TokenErrorKind::Opaque),
        };
        let cached = verified.map_err(|kind| kind.of(&issuer.provider.name))?;
        issuer.admit(&cached, presented.audience)
    }

    /// The configured issuer of a token. `iss` is not verified yet, and only selects; an opaque token has one possible issuer.
    fn select(&self, jws: Option<&Jws<'_>>) -> Result<&Issuer, TokenErrorKind> {
        let found = self.issuers.iter().find(|issuer| match jws {
            Some(jws) => jws.claims.text("iss") == Some(&*issuer.provider.name),
            None => issuer.introspector.is_some(),
        });
        found.ok_or(if jws.is_some() { TokenErrorKind::UnknownIssuer } else { TokenErrorKind::Opaque })
    }

    async fn verify_signature(
        &self,
        issuer: &Issuer,
        jws: &Jws<'_>,
        text: &str,
    ) -> Result<Verified, TokenErrorKind> {
        issuer.check_type(jws)?;
        let candidates = issuer.keys.find(jws).await?;
        let is_signed =
            candidates.keys.iter().any(|key| key.verify(jws.algorithm, jws.signed, &jws.signature));
        if !is_signed {
            return Err(TokenErrorKind::Signature);
        }
        let now = self.clock.wall_time();
        let Identity { principal, audiences, expires } =
            identify(&issuer.provider.settings, &jws.claims, now)?;
        let expires = expires.ok_or(TokenErrorKind::Expired)? + CLOCK_SKEW;
        let principal = Arc::new(principal.with_token(text).with_expiry(Some(expires)));
        let proof = Proof { verifier: self.id, issuer: issuer.index, revision: Some(candidates.revision) };
        let token = VerifiedToken { principal, expires, recheck: expires, proof };
        let lifetime = remaining(expires, now).min(JWT_LIFETIME);
        Ok(Verified { token: Arc::new(CachedToken { token, audiences }), lifetime })
    }

    async fn introspect(
        &self,
        issuer: &Issuer,
        introspector: &Introspector,
        presented: Presented<'_>,
    ) -> Result<Arc<CachedToken>, TokenErrorKind> {
        let Presented { token, digest, .. } = presented;
        let known_refusal = || self.refused.get(&digest, self.clock.monotonic());
        if let Some(kind) = known_refusal() {
            return Err(kind);
        }
        let answer = issuer.provider.within_timeout(async {
            // The semaphore is never closed.
            let _permit = introspector.slot(&digest).acquire().await;
            // Another request may have introspected the token in the meantime.
            if let Some(kind) = known_refusal() {
                return Ok(Err(kind));
            }
            if let Some(cached) = self.verified.get(&digest, self.clock.monotonic()) {
                return Ok(Ok(cached));
            }
            let claims = introspector.introspect(token).await?;
            let verified = self.accept_introspection(issuer, claims.as_ref(), token);
            // Kept while the permit is held, so that the next request with this token finds it.
            Ok(match verified {
                Ok(verified) => Ok(self.keep(digest, verified)),
                Err(kind) => {
                    self.refused.insert(digest, kind.clone(), self.clock.monotonic() + REFUSAL_LIFETIME);
                    Err(kind)
                }
            })
        });
        answer.await.map_err(|error| issuer_unavailable(&error))?
    }

    /// Checks the answer of an introspection endpoint, which is `None` for a token that is not active.
    fn accept_introspection(
        &self,
        issuer: &Issuer,
        claims: Option<&Claims>,
        text: &str,
    ) -> Result<Verified, TokenErrorKind> {
        let claims = claims.ok_or(TokenErrorKind::Inactive)?;
        if claims.contains("iss") && claims.text("iss") != Some(&*issuer.provider.name) {
            return Err(TokenErrorKind::UnknownIssuer);
        }
        let now = self.clock.wall_time();
        let Identity { principal, audiences, expires } =
            identify_introspected(&issuer.provider.settings, claims, now)?;
        let expiry = expires.map(|expires| expires + CLOCK_SKEW);
        let principal = Arc::new(principal.with_token(text).with_expiry(expiry));
        let lifetime = expires
            .map_or(INTROSPECTION_LIFETIME, |expires| remaining(expires, now))
            .min(INTROSPECTION_LIFETIME);
        let recheck = now + lifetime;
        let expires = expiry.unwrap_or(recheck);
        let proof = Proof { verifier: self.id, issuer: issuer.index, revision: None };
        let token = VerifiedToken { principal, expires, recheck, proof };
        Ok(Verified { token: Arc::new(CachedToken { token, audiences }), lifetime })
    }

    /// Adds a token to the cache.
    fn keep(&self, digest: TokenDigest, verified: Verified) -> Arc<CachedToken> {
        let Verified { token, lifetime } = verified;
        if !lifetime.is_zero() {
            self.verified.insert(digest, Arc::clone(&token), self.clock.monotonic() + lifetime);
        }
        token
    }
}

impl Issuer {
    fn check_type(&self, jws: &Jws<'_>) -> Result<(), TokenErrorKind> {
        if jws.has_type(&self.provider.settings.typ) { Ok(()) } else { Err(TokenErrorKind::Type) }
    }

    fn accepts(&self, audiences: &[String], audience: &str) -> bool {
        let extra = &self.provider.settings.audiences;
        audiences.iter().any(|found| !found.is_empty() && (found == audience || extra.contains(found)))
    }

    /// The token, if it is for this audience.
    fn admit(&self, cached: &CachedToken, audience: &str) -> Result<VerifiedToken, TokenError> {
        if self.accepts(&cached.audiences, audience) {
            Ok(cached.token.clone())
        } else {
            Err(TokenErrorKind::Audience.of(&self.provider.name))
        }
    }
}

fn remaining(end: SystemTime, now: SystemTime) -> Duration {
    end.duration_since(now).unwrap_or_default()
}

/// Whether the text has the syntax of a bearer token (RFC 6750 §2.1).
fn is_bearer_token(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    !body.is_empty() && body.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte))
}
