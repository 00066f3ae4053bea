//! Access control of the gateway: keys and tokens, the rules in force, and daily budgets. A changed configuration replaces
//! all of them at once.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use tokio_util::task::TaskTracker;
use toolhub_access::{PermissionCache, Permissions, RuleSet};
use toolhub_core::lang::LocalizedText;
use toolhub_core::principal::{PrincipalKind, PrincipalOrigin};
use toolhub_core::{BoxFuture, Principal, Role, Roles};
use toolhub_oauth::resource_server::{
    BearerChallenge, BegunLogin, LoginResponse, MetadataDetails, Person, ProtectedResource, ResourceServer,
    TokenError, TokenVerifier, VerifiedToken,
};
use toolhub_server::{AuthenticatedToken, Authenticator, KeyTable, StaticKey, TokenRefusal};
use url::Url;

use crate::audit_trail::{PendingEvents, login_event};
use crate::daily_budgets::{DailyBudgetExceeded, DailyBudgets};
use crate::hub::Hub;
use crate::key_changes::{DeletedKeys, KeyChange, KeySettings, key_changes};
use crate::settings::{AuthSettings, RevokedKey};

/// How long a connection or stream relies on a verified token without asking the verifier again.
const MAX_REUSE: Duration = Duration::from_secs(60);
/// Maximum number of principals whose login is remembered.
const MAX_LOGINS: usize = 4_096;

/// The settings in force.
struct Snapshot {
    keys: KeyTable,
    permissions: PermissionCache,
    /// The maximum number of calls per day, by the id of the principal.
    per_day: HashMap<Arc<str>, u64>,
    /// The names of revoked keys.
    revoked: Vec<RevokedKey>,
    issuers: Option<Arc<Issuers>>,
}

/// The identity providers.
struct Issuers {
    settings: ResourceServer,
    resource: ProtectedResource,
    verifier: TokenVerifier,
}

impl Issuers {
    /// Creates the verifier of these settings, or returns the previous one if they are the same.
    fn new(
        auth: &AuthSettings,
        before: Option<&Arc<Self>>,
        tasks: &TaskTracker,
    ) -> Result<Option<Arc<Self>>, LocalizedText> {
        let Some(settings) = auth.resource_server(&|name| std::env::var(name).ok())? else { return Ok(None) };
        if let Some(before) = before.filter(|before| before.settings == settings) {
            return Ok(Some(Arc::clone(before)));
        }
        let resource = ProtectedResource::new(&settings)?;
        let verifier = TokenVerifier::new(&settings, tasks)?;
        Ok(Some(Arc::new(Self { settings, resource, verifier })))
    }
}

impl Snapshot {
    fn new(auth: &AuthSettings, before: Option<&Self>, tasks: &TaskTracker) -> Result<Self, LocalizedText> {
        let rules = RuleSet::compile(auth.rules.clone()).map_err(|error| error.text)?;
        let issuers = Issuers::new(auth, before.and_then(|before| before.issuers.as_ref()), tasks)?;
        let mut keys = auth.keys();
        for key in &mut keys {
            // An unchanged key keeps its principal, so that its streams stay open.
            let is_same = |previous_key: &&StaticKey| {
                previous_key.sha256 == key.sha256
                    && previous_key.expires == key.expires
                    && previous_key.principal == key.principal
            };
            if let Some(previous_key) = before.and_then(|before| before.keys.iter().find(is_same)) {
                key.principal = Arc::clone(&previous_key.principal);
            }
        }
        let per_day =
            auth.tokens.iter().zip(&keys).filter_map(|(token, key)| {
                token.per_day.map(|limit| (Arc::clone(key.principal.id()), limit))
            });
        Ok(Self {
            per_day: per_day.collect(),
            revoked: auth.revoked.clone(),
            keys: KeyTable::from(keys),
            permissions: PermissionCache::new(rules),
            issuers,
        })
    }

    fn rules(&self) -> &RuleSet {
        self.permissions.rules()
    }

    fn key_settings(&self) -> KeySettings<'_> {
        KeySettings { keys: &self.keys, per_day: &self.per_day, revoked: &self.revoked }
    }
}

/// What a changed configuration changed.
#[derive(Debug, Default)]
pub(crate) struct AccessChanges {
    /// Whether the rules differ.
    pub(crate) rules: bool,
    /// The changed keys.
    pub(crate) keys: Vec<KeyChange>,
}

/// A key in force.
#[derive(Debug, Clone)]
pub struct KnownKey {
    /// Its principal.
    pub principal: Arc<Principal>,
    /// When it expires.
    pub expires: Option<SystemTime>,
    /// The maximum number of calls per day.
    pub per_day: Option<u64>,
}

/// The access control of a gateway.
pub struct AccessControl {
    snapshot: ArcSwap<Snapshot>,
    /// Incremented with each snapshot.
    version: AtomicU64,
    /// Whether tokens are required. Once set it stays set: removing the last key does not open the gateway.
    required: AtomicBool,
    daily_budgets: DailyBudgets,
    /// Fetches of keys of identity providers.
    tasks: TaskTracker,
    /// Logins and refusals for the audit log.
    pub(crate) pending_events: Arc<PendingEvents>,
    /// The principals that have logged in since the last change of the configuration.
    logged_in: Mutex<HashSet<Arc<str>>>,
    deleted_keys: DeletedKeys,
}

impl fmt::Debug for AccessControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessControl").field("version", &self.version).finish_non_exhaustive()
    }
}

impl AccessControl {
    /// Creates the access control of these settings.
    pub fn new(auth: &AuthSettings) -> Result<Self, LocalizedText> {
        let tasks = TaskTracker::new();
        Ok(Self {
            snapshot: ArcSwap::from_pointee(Snapshot::new(auth, None, &tasks)?),
            tasks,
            version: AtomicU64::new(1),
            required: AtomicBool::new(auth.is_required()),
            daily_budgets: DailyBudgets::default(),
            pending_events: Arc::default(),
            logged_in: Mutex::default(),
            deleted_keys: DeletedKeys::default(),
        })
    }

    /// Replaces keys, rules, budgets and identity providers. Invalid settings change nothing.
    pub(crate) fn apply(&self, auth: &AuthSettings) -> Result<AccessChanges, LocalizedText> {
        let before = self.snapshot.load_full();
        let after = Snapshot::new(auth, Some(&before), &self.tasks)?;
        let mut keys = key_changes(before.key_settings(), after.key_settings());
        let states_keys = auth.is_required() || !auth.revoked.is_empty() || !auth.rules.is_empty();
        self.deleted_keys.update(before.key_settings(), after.key_settings(), states_keys, &mut keys);
        let changes = AccessChanges { rules: after.rules().digest() != before.rules().digest(), keys };
        self.required.fetch_or(auth.is_required(), Ordering::AcqRel);
        self.snapshot.store(Arc::new(after));
        self.version.fetch_add(1, Ordering::AcqRel);
        self.logged_in().clear();
        Ok(changes)
    }

    /// The principal of a key.
    pub fn find_key(&self, key: &str) -> Option<Arc<Principal>> {
        let Some(verified) = self.snapshot.load().keys.find(key) else {
            let unknown: Arc<str> = Arc::from("unknown");
            let reason = Some("unknown or expired key");
            self.pending_events.push_refused_login(login_event(&unknown, "key", reason));
            return None;
        };
        self.note_login(&verified, "key");
        Some(verified.principal)
    }

    /// Whether the key of a principal is in force and has not expired.
    pub fn is_current(&self, principal: &Arc<Principal>) -> bool {
        self.snapshot.load().keys.contains(principal)
    }

    /// The principal with these credentials, with the rights that it has here: another replica has verified the credentials, perhaps
    /// with another state of the configuration. A token must be valid for one of these profiles, `None` for the default one. `None` if
    /// the credentials are not in force here.
    pub(crate) async fn decide_again(
        &self,
        claimed: &Principal,
        profiles: &[Option<&str>],
    ) -> Option<Arc<Principal>> {
        match &claimed.origin {
            PrincipalOrigin::Local => (!self.is_required()).then(|| Arc::new(Principal::local())),
            PrincipalOrigin::Key { .. } => {
                let is_same = |principal: &Principal| {
                    principal.id() == claimed.id()
                        && claimed.key_sha256.is_some()
                        && principal.key_sha256 == claimed.key_sha256
                };
                let mut principals = self.keys().into_iter().map(|key| key.principal);
                let principal = principals.find(|principal| is_same(principal))?;
                self.is_current(&principal).then_some(principal)
            }
            PrincipalOrigin::Oidc { .. } => {
                let token = claimed.token.as_ref()?.expose();
                for profile in profiles {
                    let verified = match self.find(token, *profile) {
                        Some(found) => Some(found),
                        None => self.verify(token, *profile).await.ok(),
                    };
                    let is_same = |verified: &AuthenticatedToken| verified.principal.id() == claimed.id();
                    if let Some(verified) = verified.filter(is_same) {
                        return Some(verified.principal);
                    }
                }
                None
            }
        }
    }

    /// The keys in force, in the order of the configuration.
    pub fn keys(&self) -> Vec<KnownKey> {
        let snapshot = self.snapshot.load();
        let describe_key = |key: &StaticKey| KnownKey {
            principal: Arc::clone(&key.principal),
            expires: key.expires,
            per_day: snapshot.per_day.get(key.principal.id()).copied(),
        };
        snapshot.keys.iter().map(describe_key).collect()
    }

    /// The names of revoked keys, in the order of the configuration.
    pub fn revoked_keys(&self) -> Vec<RevokedKey> {
        self.snapshot.load().revoked.clone()
    }

    /// The names of keys whose entries were deleted at least this time ago while this process ran, until
    /// [`Self::forget_deleted_key`].
    pub fn deleted_keys(&self, age: Duration) -> Vec<String> {
        self.deleted_keys.names(age)
    }

    /// Forgets a key whose entry was deleted at least this time ago: what was stored for it is deleted.
    pub fn forget_deleted_key(&self, name: &str, age: Duration) {
        self.deleted_keys.forget(name, age);
    }

    /// The identity providers at which people can log in to the console.
    pub fn login_issuers(&self) -> Vec<String> {
        let snapshot = self.snapshot.load();
        let issuers = snapshot.issuers.iter();
        issuers.flat_map(|issuers| issuers.verifier.login_issuers().map(str::to_owned)).collect()
    }

    /// Begins the login of a person; `None` if people cannot log in at this identity provider.
    pub async fn begin_login(
        &self,
        issuer: &str,
        redirect: &str,
    ) -> Option<Result<(BegunLogin, Url), TokenError>> {
        let issuers = self.snapshot.load().issuers.clone()?;
        issuers.verifier.begin_login(issuer, redirect).await
    }

    /// Finishes the login of a person; `None` if people cannot log in at this identity provider.
    pub async fn finish_login(
        &self,
        issuer: &str,
        begun: &BegunLogin,
        response: LoginResponse<'_>,
    ) -> Option<Result<Person, TokenError>> {
        let issuers = self.snapshot.load().issuers.clone()?;
        let finished = issuers.verifier.finish_login(issuer, begun, response).await;
        if let Some(Err(error)) = &finished {
            let unknown: Arc<str> = Arc::from("unknown");
            self.pending_events.push_refused_login(login_event(&unknown, "oidc", Some(error.description())));
        }
        finished
    }

    /// The public URL of the hub, if there are identity providers.
    pub fn public_url(&self) -> Option<String> {
        self.snapshot.load().issuers.as_ref().map(|issuers| issuers.settings.resource.clone())
    }

    /// The principal of a person with its present roles; `None` if people cannot log in at its identity provider any more.
    pub fn person_principal(&self, person: &Person) -> Option<Principal> {
        self.snapshot.load().issuers.as_ref()?.verifier.person_principal(person)
    }

    /// Whether a principal can open pages of the console with a browser: it is a person who can log in there at an identity
    /// provider, and has a role then. Keys are for programs.
    pub(crate) fn opens_console(&self, principal: &Principal) -> bool {
        let PrincipalOrigin::Oidc { issuer, subject } = &principal.origin else { return false };
        let person = Person {
            issuer: issuer.clone(),
            subject: subject.clone(),
            display: principal.display.clone(),
            groups: principal.groups.clone(),
        };
        let has_role = |principal: Principal| !principal.roles.is_empty();
        principal.kind == PrincipalKind::Person && self.person_principal(&person).is_some_and(has_role)
    }

    /// The rules in force.
    pub fn rules(&self) -> RuleSet {
        self.snapshot.load().rules().clone()
    }

    /// Whether any rule is in force.
    pub(crate) fn has_rules(&self) -> bool {
        !self.snapshot.load().rules().is_empty()
    }

    /// Whether stored data may belong to several principals: with any key or issuer, now or earlier in this run, since there
    /// is the local user as well, and there may have been other keys.
    pub(crate) fn has_several_principals(&self) -> bool {
        self.is_required()
    }

    /// The permissions of a principal; `None` if nothing is restricted.
    pub(crate) fn permissions(&self, principal: &Arc<Principal>) -> Option<Permissions> {
        let snapshot = self.snapshot.load();
        let is_caller = principal.roles.contains(Role::Caller) && principal.profiles.is_none();
        if snapshot.rules().is_empty() && is_caller {
            return None;
        }
        Some(snapshot.permissions.permissions(principal))
    }

    /// Counts a call against the daily budget of its principal, if it has one.
    pub(crate) async fn spend(&self, hub: &Hub, principal: &Principal) -> Result<(), DailyBudgetExceeded> {
        let Some(limit) = self.snapshot.load().per_day.get(principal.id()).copied() else { return Ok(()) };
        self.daily_budgets.spend(hub, principal, limit).await
    }

    fn logged_in(&self) -> MutexGuard<'_, HashSet<Arc<str>>> {
        self.logged_in.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the first login of a principal since the last change of the configuration.
    fn note_login(&self, verified: &AuthenticatedToken, method: &str) {
        let id = verified.principal.id();
        let mut logged_in = self.logged_in();
        if !logged_in.contains(id) {
            if logged_in.len() >= MAX_LOGINS {
                logged_in.clear();
            }
            logged_in.insert(Arc::clone(id));
            self.pending_events.push(login_event(id, method, None));
        }
    }
}

impl Authenticator for AccessControl {
    fn is_required(&self) -> bool {
        self.required.load(Ordering::Acquire)
    }

    fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    fn has_providers(&self) -> bool {
        self.snapshot.load().issuers.is_some()
    }

    fn find(&self, token: &str, profile: Option<&str>) -> Option<AuthenticatedToken> {
        let snapshot = self.snapshot.load();
        if let Some(verified_key) = snapshot.keys.find(token) {
            self.note_login(&verified_key, "key");
            return Some(verified_key);
        }
        let issuers = snapshot.issuers.as_ref()?;
        let audience = issuers.resource.audience(profile);
        issuers.verifier.verify_cached(token, &audience).map(verified)
    }

    fn verify<'a>(
        &'a self,
        token: &'a str,
        profile: Option<&'a str>,
    ) -> BoxFuture<'a, Result<AuthenticatedToken, TokenRefusal>> {
        Box::pin(async move {
            let unknown: Arc<str> = Arc::from("unknown");
            let (issuers, is_expired) = {
                let snapshot = self.snapshot.load();
                (snapshot.issuers.clone(), snapshot.keys.has_expired(token))
            };
            let Some(issuers) = issuers.filter(|_| !is_expired) else {
                let reason = Some("unknown or expired key");
                self.pending_events.push_refused_login(login_event(&unknown, "key", reason));
                return Err(if is_expired { TokenRefusal::Expired } else { TokenRefusal::Invalid });
            };
            let audience = issuers.resource.audience(profile);
            match issuers.verifier.verify(token, &audience).await {
                Ok(token) => {
                    let verified = verified(token);
                    self.note_login(&verified, "token");
                    Ok(verified)
                }
                Err(error) if error.is_unavailable() => Err(match error.retry_after() {
                    Some(after) => TokenRefusal::NewKey {
                        retry_after: u16::try_from(after.as_millis().div_ceil(1_000)).unwrap_or(u16::MAX),
                    },
                    None => TokenRefusal::Unavailable,
                }),
                Err(error) => {
                    self.pending_events.push_refused_login(login_event(
                        &unknown,
                        "token",
                        Some(error.description()),
                    ));
                    Err(if error.is_expired() { TokenRefusal::Expired } else { TokenRefusal::Invalid })
                }
            }
        })
    }

    fn may_read_metrics(&self, principal: &Principal) -> bool {
        let viewers: Roles = [Role::Viewer, Role::Operator, Role::Auditor, Role::Owner].into_iter().collect();
        principal.roles.intersects(viewers)
            || (principal.profiles.is_none() && self.snapshot.load().rules().is_empty())
    }

    fn is_valid(&self, principal: &Arc<Principal>) -> bool {
        match &principal.origin {
            PrincipalOrigin::Local => true,
            PrincipalOrigin::Key { .. } => self.snapshot.load().keys.contains(principal),
            PrincipalOrigin::Oidc { issuer, .. } => {
                let is_trusted = self.snapshot.load().issuers.as_ref().is_some_and(|issuers| {
                    issuers.settings.issuers.iter().any(|trusted| trusted.url == *issuer)
                });
                is_trusted && !principal.is_expired()
            }
        }
    }

    fn challenge(&self, profile: Option<&str>, refusal: TokenRefusal) -> String {
        let snapshot = self.snapshot.load();
        let Some(issuers) = &snapshot.issuers else { return KeyTable::default().challenge(profile, refusal) };
        let challenge = match refusal {
            TokenRefusal::Missing | TokenRefusal::Unavailable | TokenRefusal::NewKey { .. } => {
                BearerChallenge::MissingToken { scopes: &[] }
            }
            TokenRefusal::Malformed => {
                BearerChallenge::InvalidRequest { description: "send one Authorization header" }
            }
            TokenRefusal::Expired => {
                BearerChallenge::InvalidToken { scopes: &[], description: "the token has expired" }
            }
            TokenRefusal::Invalid => {
                let description = "the token is unknown, expired, revoked or for another audience";
                BearerChallenge::InvalidToken { scopes: &[], description }
            }
        };
        issuers.resource.challenge(profile, &challenge)
    }

    fn scope_challenge(&self, profile: Option<&str>, scopes: &[String]) -> String {
        match &self.snapshot.load().issuers {
            Some(issuers) => {
                issuers.resource.challenge(profile, &BearerChallenge::InsufficientScope { scopes })
            }
            None => KeyTable::default().scope_challenge(profile, scopes),
        }
    }

    fn resource_metadata(&self, profile: Option<&str>) -> Option<String> {
        let snapshot = self.snapshot.load();
        let issuers = snapshot.issuers.as_ref()?;
        let mut scopes: Vec<String> = Vec::new();
        let of_rules = snapshot.rules().specs().iter().filter_map(|rule| rule.scope.as_deref());
        for scope in of_rules.flat_map(str::split_whitespace) {
            if !scopes.iter().any(|listed_scope| listed_scope == scope) {
                scopes.push(scope.to_owned());
            }
        }
        let details = MetadataDetails { scopes: &scopes, name: "toolhub" };
        Some(issuers.resource.metadata(profile, details).get().to_owned())
    }
}

/// A token of an identity provider. Its result is reused until it must be verified again; a key that the provider removed is
/// noticed then.
fn verified(token: VerifiedToken) -> AuthenticatedToken {
    let recheck = token.recheck.min(SystemTime::now() + MAX_REUSE);
    AuthenticatedToken::until(token.principal, Some(recheck))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::TokenSettings;

    fn token(name: &str) -> TokenSettings {
        let sha256 = toolhub_server::hash_of(name);
        TokenSettings {
            name: name.to_owned(),
            sha256,
            roles: None,
            profiles: None,
            expires: None,
            per_day: None,
        }
    }

    fn auth(tokens: &[&str]) -> AuthSettings {
        AuthSettings { tokens: tokens.iter().map(|name| token(name)).collect(), ..AuthSettings::default() }
    }

    #[test]
    fn revoking_the_last_key_does_not_open_the_gateway() {
        let access = AccessControl::new(&auth(&["ann"])).unwrap();
        assert!(access.is_required() && access.find("ann", None).is_some());
        access.apply(&auth(&[])).unwrap();
        assert!(access.is_required());
        assert!(access.find("ann", None).is_none());
        assert!(!AccessControl::new(&auth(&[])).unwrap().is_required());
    }

    #[tokio::test]
    async fn rights_of_forwarded_requests_are_decided_again() {
        let access = AccessControl::new(&auth(&["ann", "bob"])).unwrap();
        let known = access.find("ann", None).unwrap().principal;
        let claim = |change: &dyn Fn(&mut Principal)| {
            let mut claimed = Principal::clone(&known).with_roles(Role::Owner);
            change(&mut claimed);
            claimed
        };
        let decided = access.decide_again(&claim(&|_| {}), &[None]).await.unwrap();
        assert!(Arc::ptr_eq(&decided, &known), "the rights are those that the key has here");
        let other: Arc<str> = toolhub_server::hash_of("bob").into();
        for claimed in [
            claim(&|claimed| claimed.key_sha256 = None),
            claim(&|claimed| claimed.key_sha256 = Some(Arc::clone(&other))),
            Principal::of_key("eve"),
            Principal::local(),
            Principal::new(
                PrincipalOrigin::Oidc { issuer: "https://idp.example".to_owned(), subject: "ann".to_owned() },
                PrincipalKind::Person,
            )
            .with_token("ann"),
        ] {
            assert!(access.decide_again(&claimed, &[None, Some("default")]).await.is_none(), "{claimed:?}");
        }
        access.apply(&auth(&["bob"])).unwrap();
        assert!(access.decide_again(&known, &[None]).await.is_none());
        // The local user is one only where no key is required.
        let open = AccessControl::new(&auth(&[])).unwrap();
        assert!(open.decide_again(&Principal::local(), &[None]).await.is_some());
    }

    #[test]
    fn unchanged_keys_keep_their_principal_and_changed_ones_do_not() {
        let access = AccessControl::new(&auth(&["ann", "bob", "cy"])).unwrap();
        let principal = |access: &AccessControl, name: &str| access.find(name, None).unwrap().principal;
        let before = ["ann", "bob", "cy"].map(|name| principal(&access, name));
        let version = access.version();
        let mut changed = auth(&["ann", "bob"]);
        changed.tokens[1].roles = Some(vec!["viewer".to_owned()]);
        access.apply(&changed).unwrap();
        assert_ne!(access.version(), version);
        assert_eq!(before.each_ref().map(|one| access.is_valid(one)), [true, false, false]);
        // A rotated key has another hash.
        let mut rotated = auth(&["ann", "bob"]);
        rotated.tokens[0].sha256 = toolhub_server::hash_of("other");
        access.apply(&rotated).unwrap();
        assert!(!access.is_valid(&before[0]) && access.find("ann", None).is_none());
    }

    /// The names of the keys whose responses are deleted after this change.
    fn revoked_by(access: &AccessControl, auth: &AuthSettings) -> Vec<String> {
        let changes = access.apply(auth).unwrap().keys.into_iter();
        changes.filter(|change| change.is_revoked).map(|change| change.name).collect()
    }

    #[test]
    fn stored_data_is_deleted_for_revoked_and_deleted_keys_only() {
        let all = auth(&["ann", "bob"]);
        let access = AccessControl::new(&all).unwrap();
        let nothing = [""; 0];
        let mut rotated = all.clone();
        rotated.tokens[0].sha256 = toolhub_server::hash_of("other");
        let mut replaced = rotated.clone();
        replaced.tokens[0].sha256 = toolhub_server::hash_of("third");
        replaced.tokens[0].roles = Some(vec!["viewer".to_owned()]);
        let mut expired = all.clone();
        expired.tokens[0].expires = Some("2020-01-01".to_owned());
        // Rotated, replaced under the same name, expired, missing for a moment, and a missing file.
        for other in [&rotated, &replaced, &expired, &auth(&["bob"]), &AuthSettings::default()] {
            assert_eq!(revoked_by(&access, other), nothing);
            assert_eq!(revoked_by(&access, &all), nothing);
            assert_eq!(access.deleted_keys(Duration::ZERO), nothing);
        }
        // Without any `[auth]` no key is deleted, however long.
        assert_eq!(revoked_by(&access, &AuthSettings::default()), nothing);
        assert_eq!(access.deleted_keys(Duration::ZERO), nothing);
        assert_eq!(revoked_by(&access, &all), nothing);
        // A deleted entry, after a time.
        assert_eq!(revoked_by(&access, &auth(&["bob"])), nothing);
        assert_eq!(access.deleted_keys(Duration::from_secs(3_600)), nothing);
        access.forget_deleted_key("ann", Duration::from_secs(3_600));
        access.forget_deleted_key("bob", Duration::ZERO);
        for _ in 0..2 {
            assert_eq!(access.deleted_keys(Duration::ZERO), ["ann"], "until its data is deleted");
        }
        access.forget_deleted_key("ann", Duration::ZERO);
        assert_eq!(access.deleted_keys(Duration::ZERO), nothing);
        // A deleted entry whose name another key gets.
        assert_eq!(revoked_by(&access, &all), nothing);
        assert_eq!(revoked_by(&access, &auth(&["bob"])), nothing);
        assert_eq!(revoked_by(&access, &rotated), ["ann"]);
        // A revoked key, and the next one of the same person.
        let mut revoked = auth(&["bob"]);
        revoked.revoked.push(RevokedKey { name: "ann".to_owned(), at: "2026-11-18".to_owned() });
        assert_eq!(revoked_by(&access, &revoked), ["ann"]);
        assert_eq!(access.deleted_keys(Duration::ZERO), nothing);
        assert_eq!(revoked_by(&access, &all), nothing);
    }

    #[tokio::test]
    async fn an_expired_key_is_refused_as_expired() {
        let mut settings = auth(&["ann", "bob"]);
        settings.tokens[0].expires = Some("2020-01-01".to_owned());
        let access = AccessControl::new(&settings).unwrap();
        assert_eq!(access.verify("ann", None).await.unwrap_err(), TokenRefusal::Expired);
        assert_eq!(access.verify("eve", None).await.unwrap_err(), TokenRefusal::Invalid);
        assert!(access.challenge(None, TokenRefusal::Expired).contains("expired"));
    }

    #[test]
    fn another_secret_with_other_permissions_ends_the_person() {
        let access = AccessControl::new(&auth(&["ann", "bob", "cy", "dan"])).unwrap();
        let mut changed = auth(&["ann", "bob", "cy"]);
        // Rotated; other permissions alone; both.
        changed.tokens[0].sha256 = toolhub_server::hash_of("other ann");
        changed.tokens[1].roles = Some(vec!["viewer".to_owned()]);
        changed.tokens[2].sha256 = toolhub_server::hash_of("other cy");
        changed.tokens[2].roles = Some(vec!["viewer".to_owned()]);
        changed.revoked.push(RevokedKey { name: "dan".to_owned(), at: "2026-11-18".to_owned() });
        let changes = access.apply(&changed).unwrap().keys;
        let ended: Vec<(&str, bool)> =
            changes.iter().map(|change| (change.name.as_str(), change.ends_person)).collect();
        assert_eq!(ended, [("ann", false), ("bob", false), ("cy", true), ("dan", true)]);
        assert!(access.find("dan", None).is_none() && access.revoked_keys()[0].name == "dan");
    }
}
