//! The login of one server, of the hub or of one principal: holds the current token, shares one renewal among all waiting requests, and handles refusals. The
//! renewal is in `renew`, the login in `login`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::Shared;
use reqwest::header::HeaderMap;
use tokio_util::task::TaskTracker;
use toolhub_core::lang::LocalizedText;
use toolhub_core::{BoxFuture, Event, EventKind, EventSink, GrantType, OAuthSpec, Secret, ServerId};
use toolhub_mcp_wire::McpError;
use url::Url;

use crate::error::OAuthError;
use crate::record::LoginRecord;
use crate::scopes::Scopes;
use crate::send::{Authorizer, RequestRefusal};
use crate::store::{StoreVersion, TokenStore};

/// The login of one server.
pub struct TokenManager {
    pub(super) inner: Arc<TokenManagerInner>,
}

pub(super) struct TokenManagerInner {
    pub(super) server: ServerId,
    /// Whose credentials it holds.
    pub(super) owner: CredentialOwner,
    pub(super) endpoint: Arc<dyn ResolveEndpoint>,
    pub(super) spec: OAuthSpec,
    pub(super) store: Arc<TokenStore>,
    events: Arc<dyn EventSink>,
    tasks: TaskTracker,
    state: Mutex<TokenManagerState>,
}

type Renewal = Shared<BoxFuture<'static, Result<Option<Secret>, McpError>>>;

#[derive(Default)]
struct TokenManagerState {
    cached_login: CachedLogin,
    /// The version of the store that the login was loaded from or saved to.
    store_version: Option<StoreVersion>,
    /// Cleared by the renewal when it ends, for whatever reason.
    renewal: Option<Renewal>,
}

/// The cached state of the stored login.
#[derive(Default, Clone)]
enum CachedLogin {
    /// Not loaded yet.
    #[default]
    NotLoaded,
    /// There is no login.
    None,
    Login(Arc<LoginRecord>),
}

impl std::fmt::Debug for TokenManager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenManager").field("server", &self.inner.server).finish_non_exhaustive()
    }
}

/// Whose credentials a token manager holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum CredentialOwner {
    /// The hub, whose owner logs in.
    #[default]
    Hub,
    /// A principal that logs in itself.
    Principal {
        /// The id of the principal.
        id: Arc<str>,
        /// The SHA-256 of its key, if it has one. A login of another key of that name is not used.
        key_sha256: Option<Arc<str>>,
    },
    /// A principal whose access token is exchanged for one of the server (RFC 8693). Nothing is stored.
    Exchange {
        /// The id of the principal.
        id: Arc<str>,
        /// The issuer of its token.
        issuer: String,
        /// The token that it presented to the hub, which is sent to the authorization server only.
        token: Secret,
    },
}

impl CredentialOwner {
    /// The principal that the stored login belongs to, if it is not the hub's own.
    pub(super) fn principal(&self) -> Option<&str> {
        match self {
            Self::Hub => None,
            Self::Principal { id, .. } | Self::Exchange { id, .. } => Some(id),
        }
    }

    /// The hash of the principal's key, if it has one.
    pub(super) fn key_sha256(&self) -> Option<&str> {
        match self {
            Self::Principal { key_sha256, .. } => key_sha256.as_deref(),
            Self::Hub | Self::Exchange { .. } => None,
        }
    }
}

/// The server of a login, as the owner configured it, with expanded variables.
#[derive(Debug)]
pub struct LoginEndpoint {
    /// The URL.
    pub url: Url,
    /// Headers sent with every request.
    pub headers: HeaderMap,
    /// The OAuth settings.
    pub spec: OAuthSpec,
}

/// Provides the endpoint of one server. Called before each login and renewal, since consent and variables may change.
pub trait ResolveEndpoint: Send + Sync {
    /// The endpoint. Fails if the owner has not consented to contact it, or if its configuration is invalid.
    fn resolve(&self) -> Result<LoginEndpoint, OAuthError>;
}

/// The dependencies of a [`TokenManager`].
pub struct TokenManagerContext {
    /// The stored logins.
    pub store: Arc<TokenStore>,
    /// Receives notes about the login.
    pub events: Arc<dyn EventSink>,
    /// The tracker of renewals, which outlive the request that needs them.
    pub tasks: TaskTracker,
}

impl std::fmt::Debug for TokenManagerContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenManagerContext").finish_non_exhaustive()
    }
}

impl TokenManager {
    /// The token manager of a server with these OAuth settings, whose variables are not expanded.
    pub fn new(
        server: ServerId,
        spec: OAuthSpec,
        endpoint: Arc<dyn ResolveEndpoint>,
        context: TokenManagerContext,
    ) -> Self {
        let TokenManagerContext { store, events, tasks } = context;
        let (owner, state) = (CredentialOwner::Hub, Mutex::default());
        Self {
            inner: Arc::new(TokenManagerInner { server, owner, endpoint, spec, store, events, tasks, state }),
        }
    }

    /// The token manager of the same server with the credentials of another owner. They share nothing but the configuration.
    #[must_use]
    pub fn of_owner(&self, owner: CredentialOwner) -> Self {
        let inner = &self.inner;
        Self {
            inner: Arc::new(TokenManagerInner {
                server: inner.server.clone(),
                owner,
                endpoint: Arc::clone(&inner.endpoint),
                spec: inner.spec.clone(),
                store: Arc::clone(&inner.store),
                events: Arc::clone(&inner.events),
                tasks: inner.tasks.clone(),
                state: Mutex::default(),
            }),
        }
    }

    /// Whether a call was refused because the login lacks scopes.
    pub fn lacks_scopes(&self) -> bool {
        self.inner.login().is_some_and(|record| !record.missing.is_empty())
    }
}

impl TokenManagerInner {
    fn state(&self) -> MutexGuard<'_, TokenManagerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The cached login.
    pub(super) fn login(&self) -> Option<Arc<LoginRecord>> {
        match &self.state().cached_login {
            CachedLogin::Login(record) => Some(Arc::clone(record)),
            CachedLogin::NotLoaded | CachedLogin::None => None,
        }
    }

    pub(super) fn set_login(&self, record: Option<LoginRecord>) {
        let version = self.store.version();
        let mut state = self.state();
        state.cached_login = record.map_or(CachedLogin::None, |record| CachedLogin::Login(Arc::new(record)));
        state.store_version = version;
    }

    /// Forgets the cached login if another process has changed the stored ones, for example by a logout.
    fn follow_store(&self) {
        if matches!(self.owner, CredentialOwner::Exchange { .. }) {
            return;
        }
        let version = self.store.version();
        let mut state = self.state();
        if state.store_version != version {
            state.cached_login = CachedLogin::NotLoaded;
        }
    }

    /// Whether a new token needs a user in a browser.
    pub(super) fn needs_user(&self) -> bool {
        match self.owner {
            CredentialOwner::Hub => self.spec.grant == GrantType::AuthorizationCode,
            CredentialOwner::Principal { .. } => true,
            CredentialOwner::Exchange { .. } => false,
        }
    }

    pub(super) fn note(&self, text: LocalizedText) {
        let server = self.server.clone();
        self.events.emit(Event::now(None, EventKind::ServerNote { server, text }));
    }

    pub(super) fn login_needed(&self) -> McpError {
        McpError::LoginNeeded { server: self.server.clone() }
    }

    /// Returns the renewal in progress, or starts one. It is a separate task: a caller that is cancelled does not abort it for
    /// the others, and a new refresh token is never lost.
    async fn renewal(self: &Arc<Self>, why: RenewalReason) -> Result<Option<Secret>, McpError> {
        let renewal = {
            let mut state = self.state();
            let begin = || {
                let inner = Arc::clone(self);
                let task = self.tasks.spawn(async move {
                    let _guard = RenewalGuard(&inner);
                    inner.renew(why).await
                });
                let gone = || {
                    Err(McpError::connect(LocalizedText::new(
                        "renewing the login was given up",
                        "登录更新被放弃",
                    )))
                };
                task.map(move |joined| joined.unwrap_or_else(|_| gone())).boxed().shared()
            };
            state.renewal.get_or_insert_with(begin).clone()
        };
        renewal.await
    }

    /// The cached token, if it is not due for renewal.
    fn ready(&self) -> Option<Secret> {
        let record = self.login()?;
        record.tokens.access.clone().filter(|_| !record.tokens.is_due())
    }

    async fn token(self: &Arc<Self>) -> Result<Option<Secret>, McpError> {
        self.follow_store();
        if let Some(token) = self.ready() {
            return Ok(Some(token));
        }
        let needs_user = self.needs_user();
        let cached_login = self.state().cached_login.clone();
        match cached_login {
            CachedLogin::None if needs_user => Ok(None),
            CachedLogin::NotLoaded | CachedLogin::None => self.renewal(RenewalReason::NoToken).await,
            CachedLogin::Login(record) => match &record.tokens.access {
                None if needs_user => Ok(None),
                _ => self.renewal(RenewalReason::NoToken).await,
            },
        }
    }

    async fn on_refusal(self: &Arc<Self>, refusal: RequestRefusal) -> Result<Option<Secret>, McpError> {
        let RequestRefusal { status, challenge, used, count } = refusal;
        match (status, count) {
            (401, 1) => {
                // Another request was refused earlier and has renewed the token already.
                if let Some(token) = self.ready().filter(|token| Some(token) != used.as_ref()) {
                    return Ok(Some(token));
                }
                if used.is_none() && challenge.is_none() && !self.offers_login().await {
                    return Ok(None);
                }
                self.renewal(RenewalReason::Refused(used)).await
            }
            (401, _) => Err(self.login_needed()),
            (403, 1) => match challenge.filter(|challenge| challenge.lacks_scopes()) {
                Some(challenge) => self.step_up(challenge.scopes).await,
                None => Ok(None),
            },
            _ => Ok(None),
        }
    }

    /// Gets a token with more scopes if this needs no user; otherwise stores the missing scopes for the next login. Scopes that
    /// were requested before and are still insufficient are not requested again (2026-07-28, basic/authorization: step-up
    /// authorization flow).
    async fn step_up(self: &Arc<Self>, needed: Scopes) -> Result<Option<Secret>, McpError> {
        let requested = self.login().map(|record| record.requested.clone()).unwrap_or_default();
        // The server must not widen what a caller's token is exchanged for.
        if requested.contains_all(&needed) || matches!(self.owner, CredentialOwner::Exchange { .. }) {
            return Ok(None);
        }
        self.note(LocalizedText::new(
            format!("needs the scopes `{needed}`"),
            format!("需要权限范围 `{needed}`"),
        ));
        if !self.needs_user() {
            return self.renewal(RenewalReason::MoreScopes(needed)).await;
        }
        self.store_missing_scopes(needed).await;
        Err(self.login_needed())
    }
}

/// Clears the renewal on drop.
struct RenewalGuard<'a>(&'a TokenManagerInner);

impl Drop for RenewalGuard<'_> {
    fn drop(&mut self) {
        self.0.state().renewal = None;
    }
}

impl Authorizer for TokenManager {
    fn token(&self) -> BoxFuture<'_, Result<Option<Secret>, McpError>> {
        Box::pin(self.inner.token())
    }

    fn has_no_token(&self) -> bool {
        self.inner.needs_user() && matches!(self.inner.state().cached_login, CachedLogin::None)
    }

    fn on_refusal(&self, refusal: RequestRefusal) -> BoxFuture<'_, Result<Option<Secret>, McpError>> {
        Box::pin(self.inner.on_refusal(refusal))
    }
}

/// Why a token is needed.
#[derive(Debug)]
pub(super) enum RenewalReason {
    /// There is none, or it is about to expire.
    NoToken,
    /// The server refused this token, or the request without one.
    Refused(Option<Secret>),
    /// It lacks scopes.
    MoreScopes(Scopes),
}
