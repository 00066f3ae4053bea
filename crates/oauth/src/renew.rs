//! Renews an access token without the user: from the store, with the refresh token, or with the client credentials grant.

use std::sync::Arc;

use reqwest::header::HeaderMap;
use toolhub_core::lang::{Lang, Localize as _, LocalizedText};
use toolhub_core::{Grant, OAuthSpec, Secret, ServerId};
use toolhub_mcp_wire::McpError;
use url::Url;

use crate::binding::{Allowed, bind, is_of};
use crate::discover::{discover, knock};
use crate::error::OAuthError;
use crate::fetch::Fetch;
use crate::guard::{Endpoint, Inner};
use crate::lock::hash_of;
use crate::record::Record;
use crate::registration::Client;
use crate::resource::Resource;
use crate::scopes::{Choice, Scopes};
use crate::store::TokenStore;
use crate::token::{Desk, Field};

/// Why a token is needed.
#[derive(Debug)]
pub(super) enum Why {
    /// There is none, or it is about to expire.
    NoToken,
    /// The server refused this token, or the request without one.
    Refused(Option<Secret>),
    /// It lacks scopes.
    MoreScopes(Scopes),
}

/// The configuration with expanded variables, and the HTTP client of the login.
pub(super) struct Ground {
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) spec: OAuthSpec,
    pub(super) fetch: Fetch,
    /// The key of the stored login. It includes the URL, since tokens are sent to no other one.
    pub(super) key: String,
    pub(super) server: ServerId,
    /// Whether the owner has just named the authorization server, so that credentials are bound again.
    pub(super) rebinds: bool,
}

impl Inner {
    pub(super) fn ground(&self) -> Result<Ground, OAuthError> {
        let Endpoint { url, headers, spec } = self.endpoint.resolve()?;
        let key = format!("{} {}", self.server, hash_of(url.as_str()));
        let (fetch, server) = (Fetch::new(&url, &spec)?, self.server.clone());
        Ok(Ground { fetch, url, headers, spec, key, server, rebinds: false })
    }

    /// The same for a login at an authorization server that the owner names.
    pub(super) fn ground_at(&self, issuer: Option<&str>) -> Result<Ground, OAuthError> {
        let mut ground = self.ground()?;
        let Some(issuer) = issuer else { return Ok(ground) };
        if let Some(own) = ground.spec.issuer.as_ref().filter(|own| *own != issuer) {
            let (expected, found) = (own.clone(), super::fetch::plain(issuer));
            return Err(OAuthError::WrongIssuer { expected, found });
        }
        ground.spec.issuer = Some(issuer.to_owned());
        ground.fetch = Fetch::new(&ground.url, &ground.spec)?;
        ground.rebinds = true;
        Ok(ground)
    }

    /// The stored login. A store that cannot be read counts as empty: the server may need no login.
    async fn kept(&self, ground: &Ground) -> Option<Record> {
        let kept = self.store.load(&ground.key).await;
        kept.inspect_err(|error| self.note(error.text())).ok().flatten()
    }

    /// Whether a server that refuses without a challenge supports a login.
    pub(super) async fn offers_login(&self) -> bool {
        if self.login().is_some() || self.spec != OAuthSpec::default() {
            return true;
        }
        let Ok(ground) = self.ground() else { return false };
        matches!(Resource::find(&ground.fetch, &ground.url, None).await, Ok(Some(_)))
    }

    pub(super) async fn renew(self: &Arc<Self>, why: Why) -> Result<Option<Secret>, McpError> {
        let refused = !matches!(why, Why::NoToken);
        let ground = match self.ground() {
            Ok(ground) => ground,
            // A server with an insecure URL gets no token, and may need none.
            Err(_) if !refused => {
                self.set_login(None);
                return Ok(None);
            }
            Err(error) => return Err(McpError::hopeless(error.text())),
        };
        match self.renewed(&ground, &why).await {
            Ok(Some(record)) => {
                let token = record.tokens.access.clone();
                self.set_login(Some(record));
                if token.is_none() && refused { Err(self.login_needed()) } else { Ok(token) }
            }
            Ok(None) => {
                self.set_login(None);
                if refused { Err(self.login_needed()) } else { Ok(None) }
            }
            Err(error) => {
                let (en, zh) = (error.localize(Lang::En), error.localize(Lang::Zh));
                let text = LocalizedText::new(
                    format!("the login could not be renewed: {en}"),
                    format!("无法更新登录：{zh}"),
                );
                self.note(text.clone());
                // A token that has not expired yet can still be used.
                let record = self.login().filter(|record| !refused && !record.tokens.is_over());
                match record.and_then(|record| record.tokens.access.clone()) {
                    Some(token) => Ok(Some(token)),
                    // Only the owner can resolve this.
                    None if error.needs_owner() => Err(McpError::hopeless(text)),
                    None => Err(McpError::connect(text)),
                }
            }
        }
    }

    /// The login with a token that satisfies `why`; `None` if there is no login.
    async fn renewed(&self, ground: &Ground, why: &Why) -> Result<Option<Record>, OAuthError> {
        let by_itself = ground.spec.grant == Grant::ClientCredentials;
        let before = self.kept(ground).await;
        match &before {
            Some(record) if serves(record, why) => return Ok(before),
            Some(record) if record.tokens.refresh.is_none() && !by_itself => {
                // It cannot be renewed. The local clock may be wrong, so the server decides.
                let usable = matches!(why, Why::NoToken);
                return Ok(before.filter(|_| usable));
            }
            None if !by_itself => return Ok(None),
            _ => {}
        }
        let _lock = self.store.renewing(&ground.key).await?;
        // Another process may have renewed it meanwhile, which invalidates the old refresh token.
        let before = self.kept(ground).await;
        if before.as_ref().is_some_and(|record| serves(record, why)) {
            return Ok(before);
        }
        let record = match before {
            Some(record) if record.tokens.refresh.is_some() && !matches!(why, Why::MoreScopes(_)) => {
                self.refreshed(ground, record).await?
            }
            before if by_itself => Some(by_client(ground, &self.store, (before, why)).await?),
            _ => None,
        };
        if let Some(record) = &record {
            if let Err(error) = self.store.save(&ground.key, record).await {
                self.note(error.text());
            }
            if record.tokens.access.is_some() {
                self.note(LocalizedText::new("the login was renewed", "登录已更新"));
            }
        }
        Ok(record)
    }

    /// Uses the refresh token. If the grant is invalid, the tokens are removed, but client and requested scopes are kept for
    /// the next login.
    async fn refreshed(&self, ground: &Ground, mut record: Record) -> Result<Option<Record>, OAuthError> {
        let Some(refresh) = record.tokens.refresh.clone().filter(|_| is_of(ground, &record)) else {
            return Ok(None);
        };
        let endpoint = ground.fetch.allowed(&record.token_endpoint)?;
        let client = record.client.with_secret_of(&ground.spec);
        let desk = Desk { fetch: &ground.fetch, endpoint: &endpoint, client: &client };
        let answer = desk
            .ask(&[
                Field::Plain("grant_type", "refresh_token"),
                Field::Hidden("refresh_token", &refresh),
                Field::Plain("resource", &record.resource),
            ])
            .await;
        record.tokens = match answer {
            Ok(tokens) => record.tokens.renewed_by(tokens),
            Err(error) if error.is_final() => {
                let zh = error.localize(Lang::Zh);
                self.note(LocalizedText::new(
                    format!("the login has ended: {error}"),
                    format!("登录已失效：{zh}"),
                ));
                super::record::Tokens::default()
            }
            Err(error) => return Err(error),
        };
        Ok(Some(record))
    }

    /// Stores the scopes that a call lacked.
    pub(super) async fn remember_missing(&self, needed: Scopes) {
        let remembered = async {
            let ground = self.ground()?;
            let _lock = self.store.renewing(&ground.key).await?;
            let Some(mut record) = self.store.load(&ground.key).await? else { return Ok(()) };
            record.missing = record.missing.with(needed.iter());
            self.store.save(&ground.key, &record).await?;
            self.set_login(Some(record));
            Ok::<_, OAuthError>(())
        };
        if let Err(error) = remembered.await {
            self.note(error.text());
        }
    }
}

/// Whether a stored login already satisfies `why`.
fn serves(record: &Record, why: &Why) -> bool {
    let Some(access) = &record.tokens.access else { return false };
    let refused = matches!(why, Why::Refused(Some(used)) if used == access);
    let reaches = match why {
        Why::MoreScopes(needed) => record.requested.cover(needed),
        Why::NoToken | Why::Refused(_) => true,
    };
    !refused && reaches && !record.tokens.is_due()
}

/// Requests a token with the client credentials grant (RFC 6749 §4.4).
pub(super) async fn by_client(
    ground: &Ground,
    store: &TokenStore,
    (before, why): (Option<Record>, &Why),
) -> Result<Record, OAuthError> {
    let Ground { url, headers, spec, fetch, .. } = ground;
    let challenge = knock(fetch, url, headers.clone()).await?;
    let allowed = Allowed::of(ground, store, before.as_ref()).await?;
    let found = discover(fetch, url, (&allowed, challenge.as_ref())).await?;
    let needed = match why {
        Why::MoreScopes(needed) => needed.clone(),
        Why::NoToken | Why::Refused(_) => challenge.map(|challenge| challenge.scopes).unwrap_or_default(),
    };
    let scopes = Choice {
        configured: &spec.scopes,
        challenged: needed,
        supported: found.scopes.as_deref(),
        before: before.map(|record| record.requested).unwrap_or_default(),
        offline: false,
    }
    .scopes();
    let client = Client::configured(spec, &found.issuer)
        .ok_or_else(|| OAuthError::NoRegistration { issuer: found.issuer.name.clone() })?;
    // Bind before the secret is sent. If the store is not writable, the binding is not stored, and the next run decides again.
    let _ = bind(ground, store, &found.issuer).await;
    let desk = Desk { fetch, endpoint: &found.issuer.token, client: &client };
    let joined = scopes.to_string();
    let mut fields =
        vec![Field::Plain("grant_type", "client_credentials"), Field::Plain("resource", &found.resource)];
    if !scopes.is_empty() {
        fields.push(Field::Plain("scope", &joined));
    }
    let tokens = desk.ask(&fields).await?;
    Ok(Record::new(found, client.without_secret_of(spec), (tokens, scopes)))
}
