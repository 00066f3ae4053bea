//! A login in a browser that has begun (OAuth 2.1 §4.1): the URL that the user opens, and what the response must match.

use std::sync::Arc;

use toolhub_core::Secret;
use url::Url;

use crate::binding::{IssuerPolicy, bind_credentials};
use crate::callback::{ExpectedCallback, Validation};
use crate::client::RegisteredClient;
use crate::discover::{Discovery, discover_issuer, fetch_challenge};
use crate::error::OAuthError;
use crate::login_context::LoginContext;
use crate::pkce;
use crate::record::{LoginRecord, Tokens};
use crate::registration::{ClientRequirements, Redirect, client_for};
use crate::scopes::{OFFLINE, ScopeSelection, Scopes};
use crate::store::TokenStore;
use crate::token::{FormField, TokenEndpoint};
use crate::token_manager::TokenManagerInner;

/// A login that waits for the response of the browser.
pub struct PendingLogin {
    inner: Arc<TokenManagerInner>,
    context: LoginContext,
    found: Discovery,
    client: RegisteredClient,
    scopes: Scopes,
    redirect_uri: String,
    verifier: Secret,
    expected: ExpectedCallback,
    url: Url,
}

impl std::fmt::Debug for PendingLogin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PendingLogin").field("server", &self.context.server).finish_non_exhaustive()
    }
}

impl PendingLogin {
    /// Finds the authorization server, and registers a client there if necessary.
    pub(crate) async fn begin(
        inner: &Arc<TokenManagerInner>,
        context: LoginContext,
        before: Option<&LoginRecord>,
        redirect: Redirect<'_>,
    ) -> Result<Self, OAuthError> {
        let LoginContext { url, headers, spec, fetch, .. } = &context;
        let store: &TokenStore = &inner.store;
        let challenge = fetch_challenge(fetch, url, headers.clone()).await?;
        let allowed = IssuerPolicy::of(&context, store, before).await?;
        let found = discover_issuer(fetch, url, &allowed, challenge.as_ref()).await?;
        let authorize = found.issuer.authorize_with_pkce()?.clone();
        fetch.check_for_browser(&authorize).await?;
        let scopes = ScopeSelection {
            configured: &spec.scopes,
            challenged: challenge.map(|challenge| challenge.scopes).unwrap_or_default(),
            supported: found.scopes.as_deref(),
            before: before
                .map(|record| record.requested.clone().with(record.missing.iter()))
                .unwrap_or_default(),
            offline: found.issuer.offline,
        }
        .scopes();
        let requirements = ClientRequirements { spec, before, redirect, scopes: &scopes };
        let client = client_for(fetch, &found.issuer, &requirements).await?;
        let (state, verifier) = (pkce::random()?, pkce::random()?);
        let issuer = &found.issuer;
        let expected =
            ExpectedCallback { state, issuer: issuer.name.clone(), sends_issuer: issuer.sends_issuer };
        let mut login = Self {
            inner: Arc::clone(inner),
            redirect_uri: redirect.uri.to_owned(),
            url: authorize,
            context,
            found,
            client,
            scopes,
            verifier,
            expected,
        };
        login.complete_url();
        Ok(login)
    }

    /// The URL for the browser.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// The value of `state` in the response.
    pub fn state(&self) -> &Secret {
        &self.expected.state
    }

    pub(crate) fn expected(&self) -> &ExpectedCallback {
        &self.expected
    }

    /// Ends the login with the query of the redirect, and stores the tokens. The caller has found the login by its state.
    pub async fn finish(self, query: &str) -> Result<(), OAuthError> {
        match self.expected.validate_query(query) {
            Validation::Answer(code) => self.redeem(&code?).await,
            Validation::Unrelated => {
                Err(OAuthError::Denied { code: "wrong state".to_owned(), description: String::new() })
            }
        }
    }

    /// Exchanges the code for tokens, and stores them.
    pub(crate) async fn redeem(self, code: &Secret) -> Result<(), OAuthError> {
        let tokens = self.request_tokens(code).await?;
        let Self { inner, context, found, client, scopes, .. } = self;
        let record = found.record(client.without_secret_of(&context.spec), tokens, scopes);
        inner.save_login(&context, record).await
    }

    async fn request_tokens(&self, code: &Secret) -> Result<Tokens, OAuthError> {
        let Self { context, found, .. } = self;
        // Bind before the code and the secret are sent.
        bind_credentials(context, &self.inner.store, &found.issuer).await?;
        let endpoint =
            TokenEndpoint { fetch: &context.fetch, endpoint: &found.issuer.token, client: &self.client };
        endpoint
            .request_tokens(&[
                FormField::Plain("grant_type", "authorization_code"),
                FormField::Hidden("code", code),
                FormField::Hidden("code_verifier", &self.verifier),
                FormField::Plain("redirect_uri", &self.redirect_uri),
                FormField::Plain("resource", &found.resource),
            ])
            .await
    }

    /// Adds the parameters of the request to the authorization endpoint.
    fn complete_url(&mut self) {
        let mut query = self.url.query_pairs_mut();
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.client.id)
            .append_pair("redirect_uri", &self.redirect_uri)
            .append_pair("state", self.expected.state.expose())
            .append_pair("code_challenge", &pkce::challenge_of(&self.verifier))
            .append_pair("code_challenge_method", "S256")
            .append_pair("resource", &self.found.resource);
        if !self.scopes.is_empty() {
            query.append_pair("scope", &self.scopes.to_string());
        }
        // OpenID providers issue a refresh token only after a consent prompt (OpenID Connect Core §11).
        if self.scopes.iter().any(|scope| scope == OFFLINE) {
            query.append_pair("prompt", "consent");
        }
    }
}
