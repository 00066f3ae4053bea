//! Which authorization server the credentials of a server are for: the one they were first used with. Any other one gets
//! them only after the owner named it.

use serde::{Deserialize, Serialize};
use url::Url;

use super::error::OAuthError;
use super::fetch::plain;
use super::issuer::Issuer;
use super::lock::hash_of;
use super::record::Record;
use super::renew::Ground;
use super::store::TokenStore;

/// An authorization server, as it was when credentials were first used with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Binding {
    /// Its name, letter for letter.
    pub(crate) issuer: String,
    /// The origin that secrets and refresh tokens are sent to. Many have it at another host than the issuer's.
    pub(crate) token_origin: String,
}

impl Binding {
    fn to(issuer: &Issuer) -> Self {
        Self { issuer: issuer.name.clone(), token_origin: issuer.token.origin().ascii_serialization() }
    }

    fn of_record(record: &Record) -> Option<Self> {
        let token_origin = Url::parse(&record.token_endpoint).ok()?.origin().ascii_serialization();
        Some(Self { issuer: record.issuer.clone(), token_origin })
    }
}

/// The authorization servers that a login may use.
#[derive(Debug, Default)]
pub(crate) struct Allowed {
    server: String,
    /// The one that the owner names.
    pub(crate) configured: Option<String>,
    bound: Option<Binding>,
}

impl Allowed {
    /// What holds for a login of that server, after what is kept of the ones before. One whose issuer the owner has just
    /// named is bound anew.
    pub(crate) async fn of(
        ground: &Ground,
        store: &TokenStore,
        before: Option<&Record>,
    ) -> Result<Self, OAuthError> {
        let (server, configured) = (ground.server.to_string(), ground.spec.issuer.clone());
        let bound = match ground.rebinds {
            true => None,
            false => store.binding(&key_of(ground)).await?.or_else(|| before.and_then(Binding::of_record)),
        };
        Ok(Self { server, configured, bound })
    }

    /// The only one to be used, where there is one.
    pub(crate) fn only(&self) -> Option<&str> {
        self.configured.as_deref().or_else(|| self.bound.as_ref().map(|bound| bound.issuer.as_str()))
    }

    /// Why none of those that the server names may be used.
    pub(crate) fn refuse(&self, own: &str, named: &str) -> OAuthError {
        match self.configured {
            Some(_) => OAuthError::WrongIssuer { expected: own.to_owned(), found: plain(named) },
            None => self.changed(own, named, named),
        }
    }

    /// Checks the authorization server that was found, by its own description.
    pub(crate) fn check(&self, issuer: &Issuer) -> Result<(), OAuthError> {
        let Some(bound) = &self.bound else { return Ok(()) };
        let found = Binding::to(issuer);
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
            bound: plain(bound),
            found: plain(found),
            issuer: plain(issuer),
        }
    }
}

/// Binds the credentials of a server to an authorization server, from now on.
pub(crate) async fn bind(ground: &Ground, store: &TokenStore, issuer: &Issuer) -> Result<(), OAuthError> {
    let (key, binding) = (key_of(ground), Binding::to(issuer));
    if store.binding(&key).await?.as_ref() == Some(&binding) {
        return Ok(());
    }
    store.bind(&key, Some(&binding)).await
}

/// Forgets to what a server's credentials are bound, where there are none left. Those that the config gives stay bound.
pub(crate) async fn release(ground: &Ground, store: &TokenStore) -> Result<(), OAuthError> {
    match ground.spec.client_id {
        Some(_) => Ok(()),
        None => store.bind(&key_of(ground), None).await,
    }
}

/// Whether a kept login is of the authorization server that the owner names, where one is named: the secret of the config
/// goes nowhere else.
pub(crate) fn is_of(ground: &Ground, record: &Record) -> bool {
    ground.spec.issuer.as_ref().is_none_or(|issuer| *issuer == record.issuer)
}

/// By the server's name and the client, and not by the server's url: what stands at another url may be another server, and
/// the secret is the same.
fn key_of(ground: &Ground) -> String {
    let client = ground.spec.client_id.as_deref().map_or_else(|| "registered".to_owned(), hash_of);
    format!("{} {client}", ground.server)
}
