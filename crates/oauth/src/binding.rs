//! Binds the credentials of a server to the authorization server they were first used with. Another one receives them only
//! after the owner has named it.

use crate::error::OAuthError;
use crate::fetch::sanitize_text;
use crate::issuer::Issuer;
use crate::lock::hash_of;
use crate::login_context::LoginContext;
use crate::record::{IssuerBinding, LoginRecord};
use crate::store::TokenStore;

/// The authorization servers that a login may use.
#[derive(Debug, Default)]
pub(crate) struct IssuerPolicy {
    server: String,
    /// The issuer in the configuration.
    pub(crate) configured: Option<String>,
    bound: Option<IssuerBinding>,
}

impl IssuerPolicy {
    /// Determines the allowed issuers for a login, from the configuration and earlier logins. If the owner has just named an
    /// issuer, the old binding is ignored.
    pub(crate) async fn of(
        context: &LoginContext,
        store: &TokenStore,
        before: Option<&LoginRecord>,
    ) -> Result<Self, OAuthError> {
        let (server, configured) = (context.server.to_string(), context.spec.issuer.clone());
        let bound = match context.rebind {
            true => None,
            false => {
                store.binding(&key_of(context)).await?.or_else(|| before.and_then(IssuerBinding::of_record))
            }
        };
        Ok(Self { server, configured, bound })
    }

    /// The only allowed issuer, if there is one.
    pub(crate) fn only(&self) -> Option<&str> {
        self.configured.as_deref().or_else(|| self.bound.as_ref().map(|bound| bound.issuer.as_str()))
    }

    /// The error if none of the issuers that the server lists is allowed.
    pub(crate) fn refuse(&self, own: &str, named: &str) -> OAuthError {
        match self.configured {
            Some(_) => OAuthError::WrongIssuer { expected: own.to_owned(), found: sanitize_text(named) },
            None => self.changed(own, named, named),
        }
    }

    /// Checks the metadata of the discovered authorization server against the binding.
    pub(crate) fn check(&self, issuer: &Issuer) -> Result<(), OAuthError> {
        let Some(bound) = &self.bound else { return Ok(()) };
        let found = IssuerBinding::to(issuer);
        if bound.issuer != found.issuer {
            return Err(self.changed(&bound.issuer, &found.issuer, &found.issuer));
        }
        if bound.token_origin != found.token_origin {
            return Err(self.changed(&bound.token_origin, &found.token_origin, &found.issuer));
        }
        Ok(())
    }

    fn changed(&self, bound: &str, found: &str, issuer: &str) -> OAuthError {
        OAuthError::IssuerChanged {
            server: self.server.clone(),
            bound: sanitize_text(bound),
            found: sanitize_text(found),
            issuer: sanitize_text(issuer),
        }
    }
}

/// Binds the credentials of a server to an authorization server.
pub(crate) async fn bind_credentials(
    context: &LoginContext,
    store: &TokenStore,
    issuer: &Issuer,
) -> Result<(), OAuthError> {
    let (key, binding) = (key_of(context), IssuerBinding::to(issuer));
    if store.binding(&key).await?.as_ref() == Some(&binding) {
        return Ok(());
    }
    store.bind(&key, Some(&binding)).await
}

/// Removes the binding of a server without credentials. Configured credentials stay bound.
pub(crate) async fn release_binding(context: &LoginContext, store: &TokenStore) -> Result<(), OAuthError> {
    match context.spec.client_id {
        Some(_) => Ok(()),
        None => store.bind(&key_of(context), None).await,
    }
}

/// Whether a stored login belongs to the configured issuer, if one is configured: the configured secret is sent to no other.
pub(crate) fn matches_issuer(context: &LoginContext, record: &LoginRecord) -> bool {
    context.spec.issuer.as_ref().is_none_or(|issuer| *issuer == record.issuer)
}

/// The key consists of the server's name and the client, not the URL: another server may be at the new URL, while the secret is
/// the same.
fn key_of(context: &LoginContext) -> String {
    let client = context.spec.client_id.as_deref().map_or_else(|| "registered".to_owned(), hash_of);
    format!("{} {client}", context.server)
}
