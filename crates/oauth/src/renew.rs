//! Renews an access token without the user: from the store, with the refresh token, or with the client credentials grant.

use std::sync::Arc;

use toolhub_core::lang::{Lang, Localize as _, LocalizedText};
use toolhub_core::{GrantType, OAuthSpec, Secret};
use toolhub_mcp_wire::McpError;

use crate::binding::{IssuerPolicy, bind_credentials, matches_issuer};
use crate::client::RegisteredClient;
use crate::discover::{discover_issuer, fetch_challenge};
use crate::error::OAuthError;
use crate::fetch::{LoginFetcher, sanitize_text};
use crate::lock::hash_of;
use crate::login_context::LoginContext;
use crate::record::LoginRecord;
use crate::resource::ProtectedResource;
use crate::scopes::{ScopeSelection, Scopes};
use crate::store::{LoginName, TokenStore};
use crate::token::{FormField, TokenEndpoint};
use crate::token_manager::{CredentialOwner, LoginEndpoint, RenewalReason, TokenManagerInner};

/// The type of an access token in an exchange (RFC 8693 §3).
const ACCESS_TOKEN_TYPE: &str = "urn:ietf:params:oauth:token-type:access_token";

impl TokenManagerInner {
    pub(super) fn context(&self) -> Result<LoginContext, OAuthError> {
        let LoginEndpoint { url, headers, mut spec } = self.endpoint.resolve()?;
        if matches!(self.owner, CredentialOwner::Principal { .. }) {
            // The client's own credentials would be those of the hub.
            spec.grant = GrantType::AuthorizationCode;
        }
        let (server, url_hash) = (self.server.as_str(), hash_of(url.as_str()));
        let name = LoginName { server, url_hash: &url_hash, principal: self.owner.principal() }.to_string();
        let (fetch, server) = (LoginFetcher::new(&url, &spec)?, self.server.clone());
        Ok(LoginContext { fetch, url, headers, spec, name, server, rebind: false })
    }

    /// The same for a login at an authorization server that the owner names.
    pub(super) fn context_at(&self, issuer: Option<&str>) -> Result<LoginContext, OAuthError> {
        let mut context = self.context()?;
        let Some(issuer) = issuer else { return Ok(context) };
        if let Some(own) = context.spec.issuer.as_ref().filter(|own| *own != issuer) {
            let (expected, found) = (own.clone(), sanitize_text(issuer));
            return Err(OAuthError::WrongIssuer { expected, found });
        }
        context.spec.issuer = Some(issuer.to_owned());
        context.fetch = LoginFetcher::new(&context.url, &context.spec)?;
        context.rebind = true;
        Ok(context)
    }

    /// The stored login of this owner. One of another key with the same name does not count.
    pub(super) async fn load(&self, context: &LoginContext) -> Result<Option<LoginRecord>, OAuthError> {
        let stored = self.store.load(&context.name).await?;
        Ok(stored.filter(|record| record.key_sha256.as_deref() == self.owner.key_sha256()))
    }

    /// The stored login. A store that cannot be read counts as empty: the server may need no login.
    async fn load_stored(&self, context: &LoginContext) -> Option<LoginRecord> {
        let stored = self.load(context).await;
        stored.inspect_err(|error| self.note(error.text())).ok().flatten()
    }

    /// Whether a server that refuses without a challenge supports a login.
    pub(super) async fn offers_login(&self) -> bool {
        if self.login().is_some() || self.spec != OAuthSpec::default() {
            return true;
        }
        let Ok(context) = self.context() else { return false };
        matches!(ProtectedResource::find(&context.fetch, &context.url, None).await, Ok(Some(_)))
    }

    pub(super) async fn renew(self: &Arc<Self>, why: RenewalReason) -> Result<Option<Secret>, McpError> {
        let refused = !matches!(why, RenewalReason::NoToken);
        let context = match self.context() {
            Ok(context) => context,
            // A server with an insecure URL gets no token, and may need none.
            Err(_) if !refused => {
                self.set_login(None);
                return Ok(None);
            }
            Err(error) => return Err(McpError::permanent(error.text())),
        };
        match self.try_renew(&context, &why).await {
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
                let record = self.login().filter(|record| !refused && !record.tokens.is_expired());
                match record.and_then(|record| record.tokens.access.clone()) {
                    Some(token) => Ok(Some(token)),
                    // Only the owner can resolve this.
                    None if error.needs_owner() => Err(McpError::permanent(text)),
                    None => Err(McpError::connect(text)),
                }
            }
        }
    }

    /// The login with a token that satisfies `why`; `None` if there is no login.
    async fn try_renew(
        &self,
        context: &LoginContext,
        why: &RenewalReason,
    ) -> Result<Option<LoginRecord>, OAuthError> {
        if let CredentialOwner::Exchange { issuer, token, .. } = &self.owner {
            return self.exchange(context, CallerToken { issuer, token }, why).await.map(Some);
        }
        let needs_user = self.needs_user();
        let before = self.load_stored(context).await;
        match &before {
            Some(record) if satisfies(record, why) => return Ok(before),
            Some(record) if record.tokens.refresh.is_none() && needs_user => {
                // It cannot be renewed. The local clock may be wrong, so the server decides.
                let usable = matches!(why, RenewalReason::NoToken);
                return Ok(before.filter(|_| usable));
            }
            None if needs_user => return Ok(None),
            _ => {}
        }
        let _lock = self.store.lock_renewal(&context.name).await?;
        // Another process may have renewed it meanwhile, which invalidates the old refresh token.
        let before = self.load_stored(context).await;
        if before.as_ref().is_some_and(|record| satisfies(record, why)) {
            return Ok(before);
        }
        let is_new = before.is_none();
        let record = match before {
            Some(record)
                if record.tokens.refresh.is_some() && !matches!(why, RenewalReason::MoreScopes(_)) =>
            {
                self.use_refresh_token(context, record).await?
            }
            before if !needs_user => Some(
                UserlessGrant::ClientCredentials
                    .request(context, &self.store, Renewal { before, why })
                    .await?,
            ),
            _ => None,
        };
        if let Some(record) = &record {
            // A login that was removed meanwhile stays removed.
            let saved = match is_new {
                true => self.store.save(&context.name, record).await.map(|()| true),
                false => self.store.update(&context.name, record).await,
            };
            match saved {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(error) => self.note(error.text()),
            }
            if record.tokens.access.is_some() {
                self.note(LocalizedText::new("the login was renewed", "登录已更新"));
            }
        }
        Ok(record)
    }

    /// Exchanges the token of the caller for one of the server.
    async fn exchange(
        &self,
        context: &LoginContext,
        CallerToken { issuer, token }: CallerToken<'_>,
        why: &RenewalReason,
    ) -> Result<LoginRecord, OAuthError> {
        let before = self.login().map(|record| LoginRecord::clone(&record));
        if let Some(before) = before.clone().filter(|record| satisfies(record, why)) {
            return Ok(before);
        }
        // Only the authorization server that issued the token gets it back. The server must not choose it.
        if context.spec.issuer.as_deref() != Some(issuer) {
            let issuer = sanitize_text(issuer);
            let text = format!(
                "`credentials = \"exchange\"` needs `issuer = \"{issuer}\"` in its `oauth`: the caller's token is from there"
            );
            return Err(OAuthError::Config(text));
        }
        let record =
            UserlessGrant::Exchange(token).request(context, &self.store, Renewal { before, why }).await?;
        match record.tokens.access.as_ref() == Some(token) {
            true => {
                Err(OAuthError::Config("its authorization server returned the caller's own token".to_owned()))
            }
            false => Ok(record),
        }
    }

    /// Uses the refresh token. If the grant is invalid, the tokens are removed, but client and requested scopes are kept for
    /// the next login.
    async fn use_refresh_token(
        &self,
        context: &LoginContext,
        mut record: LoginRecord,
    ) -> Result<Option<LoginRecord>, OAuthError> {
        let Some(refresh) = record.tokens.refresh.clone().filter(|_| matches_issuer(context, &record)) else {
            return Ok(None);
        };
        let endpoint = context.fetch.allowed(&record.token_endpoint)?;
        let client = record.client.with_secret_of(&context.spec);
        let token_endpoint = TokenEndpoint { fetch: &context.fetch, endpoint: &endpoint, client: &client };
        let answer = token_endpoint
            .request_tokens(&[
                FormField::Plain("grant_type", "refresh_token"),
                FormField::Hidden("refresh_token", &refresh),
                FormField::Plain("resource", &record.resource),
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
    pub(super) async fn store_missing_scopes(&self, needed: Scopes) {
        let remembered = async {
            let context = self.context()?;
            let _lock = self.store.lock_renewal(&context.name).await?;
            let Some(mut record) = self.load(&context).await? else { return Ok(()) };
            record.missing = record.missing.with(needed.iter());
            if self.store.update(&context.name, &record).await? {
                self.set_login(Some(record));
            }
            Ok::<_, OAuthError>(())
        };
        if let Err(error) = remembered.await {
            self.note(error.text());
        }
    }
}

/// Whether a stored login already satisfies `why`.
fn satisfies(record: &LoginRecord, why: &RenewalReason) -> bool {
    let Some(access) = &record.tokens.access else { return false };
    let refused = matches!(why, RenewalReason::Refused(Some(used)) if used == access);
    let has_scopes = match why {
        RenewalReason::MoreScopes(needed) => record.requested.contains_all(needed),
        RenewalReason::NoToken | RenewalReason::Refused(_) => true,
    };
    !refused && has_scopes && !record.tokens.is_due()
}

/// The access token of a caller, and the authorization server that issued it.
struct CallerToken<'a> {
    issuer: &'a str,
    token: &'a Secret,
}

/// The login to renew, and why.
pub(super) struct Renewal<'a> {
    pub(super) before: Option<LoginRecord>,
    pub(super) why: &'a RenewalReason,
}

/// A grant that needs no user.
#[derive(Debug, Clone, Copy)]
pub(super) enum UserlessGrant<'a> {
    /// The client itself (RFC 6749 §4.4).
    ClientCredentials,
    /// The caller's access token (RFC 8693 §2.1).
    Exchange(&'a Secret),
}

impl UserlessGrant<'_> {
    /// Requests a token.
    pub(super) async fn request(
        self,
        context: &LoginContext,
        store: &TokenStore,
        Renewal { before, why }: Renewal<'_>,
    ) -> Result<LoginRecord, OAuthError> {
        let LoginContext { url, headers, spec, fetch, .. } = context;
        let challenge = fetch_challenge(fetch, url, headers.clone()).await?;
        let allowed = IssuerPolicy::of(context, store, before.as_ref()).await?;
        let found = discover_issuer(fetch, url, &allowed, challenge.as_ref()).await?;
        let needed = match why {
            RenewalReason::MoreScopes(needed) => needed.clone(),
            RenewalReason::NoToken | RenewalReason::Refused(_) => {
                challenge.map(|challenge| challenge.scopes).unwrap_or_default()
            }
        };
        let scopes = match self {
            Self::ClientCredentials => ScopeSelection {
                configured: &spec.scopes,
                challenged: needed,
                supported: found.scopes.as_deref(),
                before: before.map(|record| record.requested).unwrap_or_default(),
                offline: false,
            }
            .scopes(),
            // No user consents, so that only the owner chooses.
            Self::Exchange(_) => Scopes::default().with(spec.scopes.iter().map(String::as_str)),
        };
        let client = RegisteredClient::configured(spec, &found.issuer)
            .ok_or_else(|| OAuthError::NoRegistration { issuer: found.issuer.name.clone() })?;
        // Bind before the secret is sent. If the store is not writable, the binding is not stored, and the next run decides
        // again.
        let _ = bind_credentials(context, store, &found.issuer).await;
        let endpoint = TokenEndpoint { fetch, endpoint: &found.issuer.token, client: &client };
        let joined = scopes.to_string();
        let mut fields = vec![FormField::Plain("resource", &found.resource)];
        match self {
            Self::ClientCredentials => fields.push(FormField::Plain("grant_type", "client_credentials")),
            Self::Exchange(token) => fields.extend([
                FormField::Plain("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
                FormField::Hidden("subject_token", token),
                FormField::Plain("subject_token_type", ACCESS_TOKEN_TYPE),
                FormField::Plain("requested_token_type", ACCESS_TOKEN_TYPE),
            ]),
        }
        if !scopes.is_empty() {
            fields.push(FormField::Plain("scope", &joined));
        }
        let tokens = endpoint.request_tokens(&fields).await?;
        Ok(found.record(client.without_secret_of(spec), tokens, scopes))
    }
}
