//! Logs people in by OpenID Connect: authorization code with PKCE, `state` and `nonce`. The ID token is verified with the keys of
//! the issuer, like access tokens, and is not kept.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use reqwest::header::CONTENT_TYPE;
use serde::Deserialize;
use tokio::sync::Semaphore;
use toolhub_core::Secret;
use url::Url;
use url::form_urlencoded::{Serializer, byte_serialize};

use super::claims::Claims;
use super::clock::Clock;
use super::identity::{Person, identify_person};
use super::jws::{Jws, MAX_TOKEN_BYTES};
use super::key_set::KeySet;
use super::provider::{LoginEndpoints, MAX_ENDPOINT_AGE, Provider, issuer_unavailable};
use super::settings::LoginClient;
use super::token_error::{TokenError, TokenErrorKind};
use crate::error::OAuthError;
use crate::fetch::sanitize_text;
use crate::pkce;

/// Minimum time between two attempts to read the metadata.
const MIN_DISCOVERY_INTERVAL: Duration = Duration::from_secs(10);
/// Maximum concurrent requests to an issuer for logins. They need no credential, so that they must not become a flood.
const MAX_CONCURRENT: usize = 8;
const SCOPE: &str = "openid profile email";

/// A login that has begun: its secrets, which only the browser of the login has.
#[derive(Debug, Clone)]
pub struct BegunLogin {
    /// The value that the issuer returns with the code.
    pub state: Secret,
    /// The value that the ID token must have.
    pub nonce: Secret,
    /// The PKCE verifier.
    pub verifier: Secret,
}

impl BegunLogin {
    pub(super) fn generate() -> Result<Self, OAuthError> {
        Ok(Self { state: pkce::random()?, nonce: pkce::random()?, verifier: pkce::random()? })
    }
}

/// The query of the redirect back from the issuer.
#[derive(Debug, Clone, Copy, Default)]
pub struct LoginResponse<'a> {
    /// The authorization code.
    pub code: Option<&'a str>,
    /// The value of `state`.
    pub state: Option<&'a str>,
    /// The issuer identifier (RFC 9207).
    pub issuer: Option<&'a str>,
    /// The error, if the login failed.
    pub error: Option<&'a str>,
    /// The address of the redirect, without the query.
    pub redirect: &'a str,
}

/// The token response (RFC 6749 §5.1), of which only the ID token is used.
#[derive(Deserialize)]
struct TokenResponse {
    id_token: Secret,
}

/// The logins of people at one issuer.
pub(super) struct PersonLogins {
    provider: Arc<Provider>,
    client: LoginClient,
    clock: Arc<dyn Clock>,
    /// Whether people can log in at other issuers, too. Then every response must name its issuer: otherwise a hostile one could
    /// have codes of another one sent to itself (RFC 9700 §4.4).
    has_others: bool,
    discovery: Semaphore,
    redemption: Semaphore,
    endpoints: Mutex<Endpoints>,
}

/// The code of a response, and the address to which the response was sent.
struct AuthorizationCode<'a> {
    code: &'a str,
    redirect: &'a str,
}

/// The endpoints from the metadata of an issuer, and the last failure to read it.
#[derive(Default)]
struct Endpoints {
    found: Option<(LoginEndpoints, Instant)>,
    failed: Option<(OAuthError, Instant)>,
}

impl PersonLogins {
    pub(super) fn new(
        provider: Arc<Provider>,
        client: LoginClient,
        has_others: bool,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            provider,
            client,
            clock,
            has_others,
            discovery: Semaphore::new(1),
            redemption: Semaphore::new(MAX_CONCURRENT),
            endpoints: Mutex::default(),
        }
    }

    /// The address at which a person logs in.
    pub(super) async fn address(&self, begun: &BegunLogin, redirect: &str) -> Result<Url, TokenError> {
        let endpoints = self.endpoints().await.map_err(|error| self.refusal(&error))?;
        let mut address = endpoints.authorization;
        address
            .query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.client.client_id)
            .append_pair("redirect_uri", redirect)
            .append_pair("scope", SCOPE)
            .append_pair("state", begun.state.expose())
            .append_pair("nonce", begun.nonce.expose())
            .append_pair("code_challenge", &pkce::challenge_of(&begun.verifier))
            .append_pair("code_challenge_method", "S256");
        Ok(address)
    }

    /// Redeems the code of a response and verifies the ID token.
    pub(super) async fn finish(
        &self,
        keys: &KeySet,
        begun: &BegunLogin,
        response: LoginResponse<'_>,
    ) -> Result<Person, TokenError> {
        let refuse = |kind: TokenErrorKind| kind.of(&self.provider.name);
        if response.state.is_none_or(|state| state != begun.state.expose()) {
            return Err(refuse(TokenErrorKind::LoginState));
        }
        let endpoints = self.endpoints().await.map_err(|error| self.refusal(&error))?;
        let is_other = response.issuer.is_some_and(|issuer| issuer != &*self.provider.name);
        let must_name = endpoints.names_issuer || self.has_others;
        if is_other || (must_name && response.issuer.is_none()) {
            return Err(refuse(TokenErrorKind::UnknownIssuer));
        }
        if let Some(error) = response.error {
            return Err(refuse(TokenErrorKind::LoginRefused { code: sanitize_text(error) }));
        }
        let code = response.code.ok_or_else(|| refuse(TokenErrorKind::LoginState))?;
        let redeemed = self.provider.within_timeout(self.redeem(
            &endpoints.token,
            begun,
            AuthorizationCode { code, redirect: response.redirect },
        ));
        let token = redeemed.await.map_err(|error| self.refusal(&error))?;
        let claims = self.verify(keys, token.expose()).await.map_err(refuse)?;
        let claims = self.check(claims, begun.nonce.expose()).map_err(refuse)?;
        identify_person(&self.provider.settings, &claims).map_err(refuse)
    }

    async fn redeem(
        &self,
        endpoint: &Url,
        begun: &BegunLogin,
        AuthorizationCode { code, redirect }: AuthorizationCode<'_>,
    ) -> Result<Secret, OAuthError> {
        // The semaphore is never closed.
        let _permit = self.redemption.acquire().await;
        let code = Secret::new(code);
        let id = self.client.client_id.as_str();
        let pairs = [
            ("grant_type", "authorization_code"),
            ("code", code.expose()),
            ("redirect_uri", redirect),
            ("code_verifier", begun.verifier.expose()),
        ];
        let secret = self.client.client_secret.as_ref();
        let public = secret.is_none().then_some(("client_id", id));
        let form = Serializer::new(String::new()).extend_pairs(pairs.into_iter().chain(public)).finish();
        let mut request = self.provider.fetch.post(endpoint)?;
        if let Some(secret) = secret {
            let encode = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
            request = request.basic_auth(encode(id), Some(encode(secret.expose())));
        }
        let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(form);
        let secrets = [Some(&code), Some(&begun.verifier), secret];
        let secrets: Vec<&Secret> = secrets.into_iter().flatten().collect();
        let response: TokenResponse = self.provider.fetch.answer(request, endpoint, &secrets).await?;
        Ok(response.id_token)
    }

    /// Verifies the signature of an ID token.
    async fn verify(&self, keys: &KeySet, token: &str) -> Result<Claims, TokenErrorKind> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(TokenErrorKind::TooLong);
        }
        let jws = Jws::parse(token)?;
        // An access token is not an ID token. The header of ID tokens is `JWT` or missing.
        if jws.typ.as_deref().is_some_and(|typ| !typ.eq_ignore_ascii_case("jwt")) {
            return Err(TokenErrorKind::Type);
        }
        let candidates = keys.find(&jws).await?;
        let is_signed =
            candidates.keys.iter().any(|key| key.verify(jws.algorithm, jws.signed, &jws.signature));
        if is_signed { Ok(jws.claims) } else { Err(TokenErrorKind::Signature) }
    }

    /// Checks the claims of an ID token (OpenID Connect Core 1.0, section 3.1.3.7).
    fn check(&self, claims: Claims, nonce: &str) -> Result<Claims, TokenErrorKind> {
        let client = self.client.client_id.as_str();
        if claims.text("iss") != Some(&*self.provider.name) {
            return Err(TokenErrorKind::UnknownIssuer);
        }
        let audiences = claims.list("aud").ok_or(TokenErrorKind::Audience)?;
        let is_for_client = audiences.iter().any(|audience| audience == client);
        let has_other_party = match claims.contains("azp") {
            true => claims.text("azp") != Some(client),
            false => audiences.len() > 1,
        };
        if !is_for_client || has_other_party {
            return Err(TokenErrorKind::Audience);
        }
        if claims.text("nonce") != Some(nonce) {
            return Err(TokenErrorKind::LoginState);
        }
        claims.check_times(self.clock.wall_time())?.ok_or(TokenErrorKind::Expired)?;
        Ok(claims)
    }

    /// The endpoints of the issuer, from its metadata. A failure is remembered for a short time.
    async fn endpoints(&self) -> Result<LoginEndpoints, OAuthError> {
        let known = || {
            let (now, endpoints) = (self.clock.monotonic(), self.lock());
            let age = |at: Instant| now.saturating_duration_since(at);
            match (&endpoints.found, &endpoints.failed) {
                (Some((found, at)), _) if age(*at) < MAX_ENDPOINT_AGE => Some(Ok(found.clone())),
                (_, Some((error, at))) if age(*at) < MIN_DISCOVERY_INTERVAL => Some(Err(error.clone())),
                _ => None,
            }
        };
        if let Some(known) = known() {
            return known;
        }
        let discovery = async {
            // The semaphore is never closed. One request asks the issuer, the others wait for what it finds.
            let _permit = self.discovery.acquire().await;
            if let Some(known) = known() {
                return known;
            }
            let found = self.provider.discover_login().await;
            let now = self.clock.monotonic();
            match &found {
                Ok(endpoints) => self.lock().found = Some((endpoints.clone(), now)),
                Err(error) => self.lock().failed = Some((error.clone(), now)),
            }
            found
        };
        self.provider.within_timeout(discovery).await
    }

    fn lock(&self) -> MutexGuard<'_, Endpoints> {
        self.endpoints.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refusal(&self, error: &OAuthError) -> TokenError {
        issuer_unavailable(error).of(&self.provider.name)
    }
}
