//! Login with the authorization code flow in a browser (OAuth 2.1 §4.1, RFC 8252), and logout.

use std::time::Duration;

use toolhub_core::{Grant, Secret};
use url::Url;

use crate::binding::{IssuerPolicy, bind, matches_issuer, release};
use crate::callback::{Callback, Expected};
use crate::discover::{Discovery, discover, fetch_challenge};
use crate::error::OAuthError;
use crate::pkce;
use crate::record::{Record, Tokens};
use crate::registration::{Client, ClientRequirements, client_for};
use crate::renew::{LoginContext, RenewalReason, login_with_client_credentials};
use crate::scopes::{OFFLINE, ScopeSelection, Scopes};
use crate::store::TokenStore;
use crate::token::{Field, TokenEndpoint};
use crate::token_manager::TokenManager;

/// How long the user may take in the browser.
const BROWSER_TIMEOUT: Duration = Duration::from_secs(5 * 60);
/// Timeout of the token revocation.
const REVOCATION_TIMEOUT: Duration = Duration::from_secs(5);

/// Called with the URL that is to be opened in a browser.
pub type Show<'a> = &'a (dyn Fn(&str) + Send + Sync);

impl TokenManager {
    /// Logs in and stores the result. `show` is called with the URL for the browser; the client credentials grant needs none.
    /// Dropping the future cancels the login.
    pub async fn login(&self, show: Show<'_>) -> Result<(), OAuthError> {
        self.login_at(None, show).await
    }

    /// Logs in at the authorization server that the owner names, and binds the credentials to it.
    pub async fn login_at(&self, issuer: Option<&str>, show: Show<'_>) -> Result<(), OAuthError> {
        let context = self.inner.context_at(issuer)?;
        let before = self.inner.store.load(&context.key).await?;
        let record = match context.spec.grant {
            Grant::AuthorizationCode => {
                login_in_browser(&context, &self.inner.store, (before.as_ref(), show)).await?
            }
            Grant::ClientCredentials => {
                login_with_client_credentials(&context, &self.inner.store, (before, &RenewalReason::NoToken))
                    .await?
            }
        };
        let _lock = self.inner.store.lock_renewal(&context.key).await?;
        self.inner.store.save(&context.key, &record).await?;
        self.inner.set_login(Some(record));
        Ok(())
    }

    /// Removes and revokes the tokens. Returns whether there were any.
    pub async fn logout(&self) -> Result<bool, OAuthError> {
        let context = self.inner.context()?;
        let store = &self.inner.store;
        let _lock = store.lock_renewal(&context.key).await?;
        let record = store.load(&context.key).await?;
        let known = store.remove(&context.key).await?;
        if known {
            release(&context, store).await?;
        }
        self.inner.set_login(None);
        // The local logout is independent of the revocation's success.
        if let Some(record) = record {
            let _ = tokio::time::timeout(REVOCATION_TIMEOUT, revoke_token(&context, &record)).await;
        }
        Ok(known)
    }
}

async fn revoke_token(context: &LoginContext, record: &Record) -> Result<(), OAuthError> {
    let Some(endpoint) = record.revocation_endpoint.as_ref().filter(|_| matches_issuer(context, record))
    else {
        return Ok(());
    };
    let Some(token) = record.tokens.refresh.as_ref().or(record.tokens.access.as_ref()) else { return Ok(()) };
    let endpoint = context.fetch.allowed(endpoint)?;
    let client = record.client.with_secret_of(&context.spec);
    TokenEndpoint { fetch: &context.fetch, endpoint: &endpoint, client: &client }.revoke_token(token).await
}

async fn login_in_browser(
    context: &LoginContext,
    store: &TokenStore,
    (before, show): (Option<&Record>, Show<'_>),
) -> Result<Record, OAuthError> {
    let LoginContext { url, headers, spec, fetch, .. } = context;
    let challenge = fetch_challenge(fetch, url, headers.clone()).await?;
    let allowed = IssuerPolicy::of(context, store, before).await?;
    let found = discover(fetch, url, (&allowed, challenge.as_ref())).await?;
    let authorize = found.issuer.authorize_with_pkce()?.clone();
    fetch.check_for_browser(&authorize).await?;
    let scopes = ScopeSelection {
        configured: &spec.scopes,
        challenged: challenge.map(|challenge| challenge.scopes).unwrap_or_default(),
        supported: found.scopes.as_deref(),
        before: before.map(|record| record.requested.clone().with(record.missing.iter())).unwrap_or_default(),
        offline: found.issuer.offline,
    }
    .scopes();
    let callback = Callback::open(spec.redirect_port, before.and_then(|record| record.client.port())).await?;
    let redirect_uri = callback.redirect_uri();
    let requirements = ClientRequirements {
        spec,
        before,
        redirect_uri: &redirect_uri,
        port: callback.port,
        scopes: &scopes,
    };
    let client = client_for(fetch, &found.issuer, &requirements).await?;
    let redirect_uri = &redirect_uri;
    let attempt = Attempt { found: &found, client: &client, redirect_uri, scopes: &scopes, store };
    let tokens = attempt.run(context, (authorize, callback), show).await?;
    Ok(Record::new(found, client.without_secret_of(spec), (tokens, scopes)))
}

struct Attempt<'a> {
    found: &'a Discovery,
    client: &'a Client,
    redirect_uri: &'a str,
    scopes: &'a Scopes,
    store: &'a TokenStore,
}

impl Attempt<'_> {
    async fn run(
        &self,
        context: &LoginContext,
        (authorize, callback): (Url, Callback),
        show: Show<'_>,
    ) -> Result<Tokens, OAuthError> {
        let (state, verifier) = (pkce::random()?, pkce::random()?);
        show(self.authorization_url(authorize, &state, &verifier).as_str());
        let issuer = &self.found.issuer;
        let expected = Expected { state, issuer: issuer.name.clone(), sends_issuer: issuer.sends_issuer };
        let code = match tokio::time::timeout(BROWSER_TIMEOUT, callback.wait_for_code(&expected)).await {
            Ok(code) => code?,
            Err(_) => return Err(OAuthError::TimedOut(BROWSER_TIMEOUT)),
        };
        // Bind before the code and the secret are sent.
        bind(context, self.store, issuer).await?;
        let token_endpoint =
            TokenEndpoint { fetch: &context.fetch, endpoint: &issuer.token, client: self.client };
        token_endpoint
            .request_tokens(&[
                Field::Plain("grant_type", "authorization_code"),
                Field::Hidden("code", &code),
                Field::Hidden("code_verifier", &verifier),
                Field::Plain("redirect_uri", self.redirect_uri),
                Field::Plain("resource", &self.found.resource),
            ])
            .await
    }

    /// The URL for the browser.
    fn authorization_url(&self, mut authorize: Url, state: &Secret, verifier: &Secret) -> Url {
        let mut query = authorize.query_pairs_mut();
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.client.id)
            .append_pair("redirect_uri", self.redirect_uri)
            .append_pair("state", state.expose())
            .append_pair("code_challenge", &pkce::challenge_of(verifier))
            .append_pair("code_challenge_method", "S256")
            .append_pair("resource", &self.found.resource);
        if !self.scopes.is_empty() {
            query.append_pair("scope", &self.scopes.to_string());
        }
        // OpenID providers issue a refresh token only after a consent prompt (OpenID Connect Core §11).
        if self.scopes.iter().any(|scope| scope == OFFLINE) {
            query.append_pair("prompt", "consent");
        }
        drop(query);
        authorize
    }
}
