//! Login with the authorization code flow in a browser (OAuth 2.1 §4.1, RFC 8252), and logout.

use std::sync::Arc;
use std::time::Duration;

use toolhub_core::GrantType;

use crate::binding::{matches_issuer, release_binding};
use crate::callback::Callback;
use crate::error::OAuthError;
use crate::login_context::LoginContext;
use crate::pending_login::PendingLogin;
use crate::record::LoginRecord;
use crate::registration::Redirect;
use crate::renew::{Renewal, UserlessGrant};
use crate::token::TokenEndpoint;
use crate::token_manager::{CredentialOwner, RenewalReason, TokenManager, TokenManagerInner};

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
        let inner = &self.inner;
        if matches!(inner.owner, CredentialOwner::Exchange { .. }) {
            return Err(OAuthError::Config("its tokens are exchanged, and need no login".to_owned()));
        }
        let context = inner.context_at(issuer)?;
        let before = inner.load(&context).await?;
        match context.spec.grant {
            GrantType::AuthorizationCode => login_in_browser(inner, context, before.as_ref(), show).await,
            GrantType::ClientCredentials => {
                let grant = UserlessGrant::ClientCredentials;
                let record = grant
                    .request(&context, &inner.store, Renewal { before, why: &RenewalReason::NoToken })
                    .await?;
                inner.save_login(&context, record).await
            }
        }
    }

    /// Begins a login in a browser that is redirected to `redirect_uri`, a page of the hub.
    pub async fn begin_login(&self, redirect_uri: &str) -> Result<PendingLogin, OAuthError> {
        let context = self.inner.context()?;
        let before = self.inner.load(&context).await?;
        let redirect = Redirect { uri: redirect_uri, port: None };
        PendingLogin::begin(&self.inner, context, before.as_ref(), redirect).await
    }

    /// Whether there is a stored login.
    pub async fn is_logged_in(&self) -> Result<bool, OAuthError> {
        let context = self.inner.context()?;
        let record = self.inner.load(&context).await?;
        Ok(record.is_some_and(|record| record.tokens.access.is_some() && record.missing.is_empty()))
    }

    /// Removes and revokes the tokens. Returns whether there were any.
    pub async fn logout(&self) -> Result<bool, OAuthError> {
        let context = self.inner.context()?;
        let store = &self.inner.store;
        let _lock = store.lock_renewal(&context.name).await?;
        let record = store.load(&context.name).await?;
        let known = store.remove(&context.name).await?;
        // The logins of principals stay bound.
        let others = store.principals().await?;
        let is_bound = others.iter().any(|(server, _)| server == self.inner.server.as_str());
        if known && self.inner.owner == CredentialOwner::Hub && !is_bound {
            release_binding(&context, store).await?;
        }
        self.inner.set_login(None);
        // The local logout is independent of the revocation's success.
        if let Some(record) = record {
            let _ = tokio::time::timeout(REVOCATION_TIMEOUT, revoke_token(&context, &record)).await;
        }
        Ok(known)
    }
}

async fn revoke_token(context: &LoginContext, record: &LoginRecord) -> Result<(), OAuthError> {
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
    inner: &Arc<TokenManagerInner>,
    context: LoginContext,
    before: Option<&LoginRecord>,
    show: Show<'_>,
) -> Result<(), OAuthError> {
    let previous_port = before.and_then(|record| record.client.port());
    let callback = Callback::open(context.spec.redirect_port, previous_port).await?;
    let redirect = Redirect { uri: &callback.redirect_uri(), port: Some(callback.port) };
    let login = PendingLogin::begin(inner, context, before, redirect).await?;
    show(login.url().as_str());
    match tokio::time::timeout(BROWSER_TIMEOUT, callback.wait_for_code(login.expected())).await {
        Ok(code) => login.redeem(&code?).await,
        Err(_) => Err(OAuthError::TimedOut(BROWSER_TIMEOUT)),
    }
}

impl TokenManagerInner {
    /// Stores a new login.
    pub(crate) async fn save_login(
        &self,
        context: &LoginContext,
        mut record: LoginRecord,
    ) -> Result<(), OAuthError> {
        record.key_sha256 = self.owner.key_sha256().map(str::to_owned);
        let _lock = self.store.lock_renewal(&context.name).await?;
        self.store.save(&context.name, &record).await?;
        self.set_login(Some(record));
        Ok(())
    }
}
