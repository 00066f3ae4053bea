//! Login with the authorization code flow in a browser (OAuth 2.1 §4.1, RFC 8252), and logout.

use std::time::Duration;

use toolhub_core::{Grant, Secret};
use url::Url;

use crate::binding::{Allowed, bind, is_of, release};
use crate::callback::{Callback, Expected};
use crate::discover::{Found, discover, knock};
use crate::error::OAuthError;
use crate::guard::Guard;
use crate::pkce;
use crate::record::{Record, Tokens};
use crate::registration::{Client, Purpose, client_for};
use crate::renew::{Ground, Why, by_client};
use crate::scopes::{Choice, OFFLINE, Scopes};
use crate::store::TokenStore;
use crate::token::{Desk, Field};

/// How long the user may take in the browser.
const PERSON: Duration = Duration::from_secs(5 * 60);
/// Timeout of the token revocation.
const FAREWELL: Duration = Duration::from_secs(5);

/// Called with the URL that is to be opened in a browser.
pub type Show<'a> = &'a (dyn Fn(&str) + Send + Sync);

impl Guard {
    /// Logs in and stores the result. `show` is called with the URL for the browser; the client credentials grant needs none.
    /// Dropping the future cancels the login.
    pub async fn login(&self, show: Show<'_>) -> Result<(), OAuthError> {
        self.login_at(None, show).await
    }

    /// Logs in at the authorization server that the owner names, and binds the credentials to it.
    pub async fn login_at(&self, issuer: Option<&str>, show: Show<'_>) -> Result<(), OAuthError> {
        let ground = self.inner.ground_at(issuer)?;
        let before = self.inner.store.load(&ground.key).await?;
        let record = match ground.spec.grant {
            Grant::AuthorizationCode => {
                by_person(&ground, &self.inner.store, (before.as_ref(), show)).await?
            }
            Grant::ClientCredentials => {
                by_client(&ground, &self.inner.store, (before, &Why::NoToken)).await?
            }
        };
        let _lock = self.inner.store.renewing(&ground.key).await?;
        self.inner.store.save(&ground.key, &record).await?;
        self.inner.set_login(Some(record));
        Ok(())
    }

    /// Removes and revokes the tokens. Returns whether there were any.
    pub async fn logout(&self) -> Result<bool, OAuthError> {
        let ground = self.inner.ground()?;
        let store = &self.inner.store;
        let _lock = store.renewing(&ground.key).await?;
        let record = store.load(&ground.key).await?;
        let known = store.forget(&ground.key).await?;
        if known {
            release(&ground, store).await?;
        }
        self.inner.set_login(None);
        // The local logout is independent of the revocation's success.
        if let Some(record) = record {
            let _ = tokio::time::timeout(FAREWELL, give_back(&ground, &record)).await;
        }
        Ok(known)
    }
}

async fn give_back(ground: &Ground, record: &Record) -> Result<(), OAuthError> {
    let Some(endpoint) = record.revocation_endpoint.as_ref().filter(|_| is_of(ground, record)) else {
        return Ok(());
    };
    let Some(token) = record.tokens.refresh.as_ref().or(record.tokens.access.as_ref()) else { return Ok(()) };
    let endpoint = ground.fetch.allowed(endpoint)?;
    let client = record.client.with_secret_of(&ground.spec);
    Desk { fetch: &ground.fetch, endpoint: &endpoint, client: &client }.give_back(token).await
}

async fn by_person(
    ground: &Ground,
    store: &TokenStore,
    (before, show): (Option<&Record>, Show<'_>),
) -> Result<Record, OAuthError> {
    let Ground { url, headers, spec, fetch, .. } = ground;
    let challenge = knock(fetch, url, headers.clone()).await?;
    let allowed = Allowed::of(ground, store, before).await?;
    let found = discover(fetch, url, (&allowed, challenge.as_ref())).await?;
    let authorize = found.issuer.authorize_safely()?.clone();
    fetch.check_for_browser(&authorize).await?;
    let scopes = Choice {
        configured: &spec.scopes,
        challenged: challenge.map(|challenge| challenge.scopes).unwrap_or_default(),
        supported: found.scopes.as_deref(),
        before: before.map(|record| record.requested.clone().with(record.missing.iter())).unwrap_or_default(),
        offline: found.issuer.offline,
    }
    .scopes();
    let callback = Callback::open(spec.redirect_port, before.and_then(|record| record.client.port())).await?;
    let redirect_uri = callback.redirect_uri();
    let purpose = Purpose { spec, before, redirect_uri: &redirect_uri, port: callback.port, scopes: &scopes };
    let client = client_for(fetch, &found.issuer, &purpose).await?;
    let redirect_uri = &redirect_uri;
    let attempt = Attempt { found: &found, client: &client, redirect_uri, scopes: &scopes, store };
    let tokens = attempt.run(ground, (authorize, callback), show).await?;
    Ok(Record::new(found, client.without_secret_of(spec), (tokens, scopes)))
}

struct Attempt<'a> {
    found: &'a Found,
    client: &'a Client,
    redirect_uri: &'a str,
    scopes: &'a Scopes,
    store: &'a TokenStore,
}

impl Attempt<'_> {
    async fn run(
        &self,
        ground: &Ground,
        (authorize, callback): (Url, Callback),
        show: Show<'_>,
    ) -> Result<Tokens, OAuthError> {
        let (state, verifier) = (pkce::random()?, pkce::random()?);
        show(self.address(authorize, &state, &verifier).as_str());
        let issuer = &self.found.issuer;
        let expected = Expected { state, issuer: issuer.name.clone(), names_itself: issuer.names_itself };
        let code = match tokio::time::timeout(PERSON, callback.code(&expected)).await {
            Ok(code) => code?,
            Err(_) => return Err(OAuthError::TimedOut(PERSON)),
        };
        // Bind before the code and the secret are sent.
        bind(ground, self.store, issuer).await?;
        let desk = Desk { fetch: &ground.fetch, endpoint: &issuer.token, client: self.client };
        desk.ask(&[
            Field::Plain("grant_type", "authorization_code"),
            Field::Hidden("code", &code),
            Field::Hidden("code_verifier", &verifier),
            Field::Plain("redirect_uri", self.redirect_uri),
            Field::Plain("resource", &self.found.resource),
        ])
        .await
    }

    /// The URL for the browser.
    fn address(&self, mut authorize: Url, state: &Secret, verifier: &Secret) -> Url {
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
