//! Budgets of principals: how much of the shared resources one principal may hold. The budgets are owned by the table
//! here; a `PrincipalHandle` refers to its own, so that requests need no lookup.

use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use toolhub_core::Principal;
use toolhub_core::principal::PrincipalOrigin;

use crate::replays::{Replay, Replays};
use crate::rpc_error::RpcError;

/// Maximum number of addresses with a separate budget if no token is required. Further addresses share one budget.
const MAX_ADDRESSES: usize = 256;
/// Number of principals above which those without requests and streams are forgotten.
const MAX_BUDGETED_PRINCIPALS: usize = 4_096;
/// All principals together may hold this many times the share of one.
const TOTAL_SHARES: usize = 4;
/// The JSON-RPC error code for an exhausted budget.
const OVER_BUDGET: i64 = -32000;

/// The limits of one principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetLimits {
    /// Maximum number of concurrent requests.
    pub max_concurrent: usize,
    /// Maximum number of messages per second; `None` for no limit.
    pub per_second: Option<u32>,
    /// Maximum number of sessions per profile.
    pub sessions: usize,
    /// Maximum number of event streams that belong to no request.
    pub streams: usize,
    /// Maximum number of requests that wait for input of their client.
    pub pending_input: usize,
    /// Maximum number of subscribed resources.
    pub subscriptions: usize,
    /// Maximum size of the long messages being received or handled, in bytes.
    pub upload_bytes: usize,
    /// Maximum size of the long responses that have not been read, in bytes.
    pub unread_bytes: usize,
    /// Maximum size of the events kept for resumable streams, in bytes.
    pub replay_bytes: usize,
}

impl BudgetLimits {
    /// No limits: for the single client of stdio, and for tests.
    pub const NONE: Self = Self {
        max_concurrent: usize::MAX,
        per_second: None,
        sessions: usize::MAX,
        streams: usize::MAX,
        pending_input: usize::MAX,
        subscriptions: usize::MAX,
        upload_bytes: usize::MAX,
        unread_bytes: usize::MAX,
        replay_bytes: usize::MAX,
    };

    fn of(&self, resource: BudgetedResource) -> usize {
        match resource {
            BudgetedResource::Requests | BudgetedResource::InFlightRequest => self.max_concurrent,
            BudgetedResource::Streams => self.streams,
            BudgetedResource::Subscriptions => self.subscriptions,
            BudgetedResource::Upload => self.upload_bytes,
            BudgetedResource::Unread => self.unread_bytes,
            BudgetedResource::Replay => self.replay_bytes,
        }
    }
}

impl Default for BudgetLimits {
    fn default() -> Self {
        Self {
            max_concurrent: 1_024,
            per_second: None,
            sessions: 1_000,
            streams: 256,
            pending_input: 128,
            subscriptions: 10_000,
            upload_bytes: 32 << 20,
            unread_bytes: 128 << 20,
            replay_bytes: 64 << 20,
        }
    }
}

/// A resource that a principal holds a share of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetedResource {
    /// HTTP requests in progress.
    Requests,
    /// MCP requests in progress, including those with a streamed response and those that wait for input.
    InFlightRequest,
    /// Event streams that belong to no request.
    Streams,
    /// Subscribed resources.
    Subscriptions,
    /// Bytes of long messages.
    Upload,
    /// Bytes of long responses that have not been read.
    Unread,
    /// Bytes of events kept for resumption.
    Replay,
}

const RESOURCES: usize = 7;

impl BudgetedResource {
    /// Returns the setting that limits it.
    fn setting(self) -> &'static str {
        match self {
            Self::Requests | Self::InFlightRequest => "max_concurrent` in `[serve]",
            Self::Streams => "streams` in `[serve.limits]",
            Self::Subscriptions => "subscriptions` in `[serve.limits]",
            Self::Upload => "upload_bytes` in `[serve.limits]",
            Self::Unread => "unread_bytes` in `[serve.limits]",
            Self::Replay => "replay_bytes` in `[serve.limits]",
        }
    }

    /// Returns whether the resource is counted in bytes; such resources are also limited for all principals together.
    fn is_bytes(self) -> bool {
        matches!(self, Self::Upload | Self::Unread | Self::Replay)
    }
}

/// A principal exceeded its share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaExceeded {
    /// The exhausted resource.
    pub resource: BudgetedResource,
    limit: usize,
}

impl fmt::Display for QuotaExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.resource {
            BudgetedResource::Requests | BudgetedResource::InFlightRequest => {
                "too many requests at the same time"
            }
            BudgetedResource::Streams => "too many open streams",
            BudgetedResource::Subscriptions => "too many subscribed resources",
            BudgetedResource::Upload => "too many long messages at the same time",
            BudgetedResource::Unread => "too many long answers that were not read",
            BudgetedResource::Replay => "too many events that were not read",
        };
        write!(f, "{what}: one caller may hold {} (`{}`)", self.limit, self.resource.setting())
    }
}

impl std::error::Error for QuotaExceeded {}

impl From<QuotaExceeded> for RpcError {
    fn from(exceeded: QuotaExceeded) -> Self {
        Self::new(OVER_BUDGET, exceeded.to_string())
    }
}

/// The rate limit of a principal is exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimitExceeded {
    /// The key in `[serve]` that sets the limit.
    pub setting: &'static str,
    /// How long to wait; `None` if that many messages can never be sent at once.
    pub wait: Option<Duration>,
}

/// The amount in use of each resource.
type Used = [AtomicUsize; RESOURCES];

/// The limits of a principal, and how much of each resource it uses.
struct Budget {
    limits: BudgetLimits,
    used: Used,
    total: Arc<Used>,
    /// The token bucket of the rate limit: the messages left, and the time of the last update.
    token_bucket: Mutex<(f64, Instant)>,
    /// Streams whose events can be discarded once they have ended, oldest first.
    replays: Replays,
}

impl Budget {
    fn new(limits: BudgetLimits, total: Arc<Used>) -> Self {
        let token_bucket = Mutex::new((limits.per_second.map_or(0.0, f64::from), Instant::now()));
        Self { limits, used: Used::default(), total, token_bucket, replays: Replays::default() }
    }
}

struct PrincipalState {
    identity: Arc<Principal>,
    budget: Arc<Budget>,
    revoked: CancellationToken,
}

/// A principal together with its budget. Handles are equal if they belong to the same principal.
#[derive(Clone)]
pub struct PrincipalHandle(Arc<PrincipalState>);

impl fmt::Debug for PrincipalHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PrincipalHandle").field(&self.as_str()).finish()
    }
}

impl PartialEq for PrincipalHandle {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for PrincipalHandle {}

impl Hash for PrincipalHandle {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl PrincipalHandle {
    /// Creates a handle without limits that is part of no table.
    pub fn new(identity: Principal) -> Self {
        Self::without_limits(Arc::new(identity))
    }

    /// Creates a handle without limits, for a request that was counted elsewhere.
    pub fn without_limits(identity: Arc<Principal>) -> Self {
        Self::with(identity, Arc::new(Budget::new(BudgetLimits::NONE, Arc::default())))
    }

    /// The local user, without limits.
    pub fn local() -> Self {
        Self::new(Principal::local())
    }

    fn with(identity: Arc<Principal>, budget: Arc<Budget>) -> Self {
        Self(Arc::new(PrincipalState { identity, budget, revoked: CancellationToken::new() }))
    }

    /// Returns the id of the principal.
    pub fn as_str(&self) -> &str {
        self.0.identity.id()
    }

    /// Returns the principal.
    pub fn identity(&self) -> &Arc<Principal> {
        &self.0.identity
    }

    /// Ends the streams that were opened with this handle.
    fn revoke(&self) {
        self.0.revoked.cancel();
    }

    /// Completes when the credentials of the principal are revoked.
    pub fn revoked(&self) -> WaitForCancellationFutureOwned {
        self.0.revoked.clone().cancelled_owned()
    }

    /// Returns its limits.
    pub fn limits(&self) -> &BudgetLimits {
        &self.0.budget.limits
    }

    /// Returns how much of a resource it holds.
    pub fn used(&self, resource: BudgetedResource) -> usize {
        self.0.budget.used[resource as usize].load(Ordering::Relaxed)
    }

    /// Returns whether both use the same budget; handles of one principal may have different ones.
    pub(crate) fn shares_budget(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0.budget, &other.0.budget)
    }

    /// Takes an amount of a resource until the permit is dropped.
    pub fn take(&self, resource: BudgetedResource, amount: usize) -> Result<BudgetPermit, QuotaExceeded> {
        let mut permit = BudgetPermit { holder: self.clone(), resource, amount: 0 };
        permit.grow(amount)?;
        Ok(permit)
    }

    /// Takes a permit for one HTTP request. The message counts against `per_second` only if there is a permit.
    pub fn start_request(&self) -> Result<BudgetPermit, RateLimitExceeded> {
        let wait = Some(Duration::from_secs(1));
        let permit = self
            .take(BudgetedResource::Requests, 1)
            .map_err(|_| RateLimitExceeded { setting: "max_concurrent", wait })?;
        self.spend(1)?;
        Ok(permit)
    }

    /// Counts the messages of a batch against the rate limit, all or none. The first one was counted with its HTTP
    /// request.
    pub fn spend_batch(&self, messages: usize) -> Result<(), RateLimitExceeded> {
        let fits = self.0.budget.limits.per_second.is_none_or(|rate| messages <= rate as usize);
        if fits {
            self.spend(messages.saturating_sub(1))
        } else {
            Err(RateLimitExceeded { setting: "per_second", wait: None })
        }
    }

    fn spend(&self, messages: usize) -> Result<(), RateLimitExceeded> {
        let Some(rate) = self.0.budget.limits.per_second.map(f64::from) else { return Ok(()) };
        let needed = messages as f64;
        let mut token_bucket = self.0.budget.token_bucket.lock().unwrap_or_else(PoisonError::into_inner);
        let (before, since) = *token_bucket;
        let now = Instant::now();
        let has = (before + now.duration_since(since).as_secs_f64() * rate).min(rate);
        *token_bucket = (if has < needed { has } else { has - needed }, now);
        if has >= needed {
            return Ok(());
        }
        let wait = Some(Duration::from_secs_f64((needed - has) / rate));
        Err(RateLimitExceeded { setting: "per_second", wait })
    }

    /// Registers a stream whose events may be discarded once it has ended.
    pub(crate) fn may_discard(&self, replay: Weak<dyn Replay>) {
        self.0.budget.replays.register(replay);
    }

    /// Discards the events of the oldest ended streams until `needed` bytes are free.
    pub(crate) fn discard_replays(&self, needed: usize) {
        let limit = self.0.budget.limits.replay_bytes;
        for replay in self.0.budget.replays.ended() {
            if self.used(BudgetedResource::Replay).saturating_add(needed) <= limit {
                return;
            }
            replay.discard();
        }
    }
}

/// A part of a principal's budget, returned on drop.
#[derive(Debug)]
pub struct BudgetPermit {
    holder: PrincipalHandle,
    resource: BudgetedResource,
    amount: usize,
}

impl BudgetPermit {
    /// Returns the principal that holds it.
    pub(crate) fn holder(&self) -> &PrincipalHandle {
        &self.holder
    }

    /// Takes more of the same resource.
    pub fn grow(&mut self, more: usize) -> Result<(), QuotaExceeded> {
        let (budget, index) = (&self.holder.0.budget, self.resource as usize);
        let limit = budget.limits.of(self.resource);
        let refused = QuotaExceeded { resource: self.resource, limit };
        // Add first, then check: of two concurrent takers of the last part, at least one reverts.
        let before = budget.used[index].fetch_add(more, Ordering::AcqRel);
        if before.saturating_add(more) > limit {
            budget.used[index].fetch_sub(more, Ordering::AcqRel);
            return Err(refused);
        }
        if self.resource.is_bytes() && limit != usize::MAX {
            let before = budget.total[index].fetch_add(more, Ordering::AcqRel);
            if before.saturating_add(more) > limit.saturating_mul(TOTAL_SHARES) {
                budget.total[index].fetch_sub(more, Ordering::AcqRel);
                budget.used[index].fetch_sub(more, Ordering::AcqRel);
                return Err(refused);
            }
        }
        self.amount += more;
        Ok(())
    }
}

impl Drop for BudgetPermit {
    fn drop(&mut self) {
        let (budget, index) = (&self.holder.0.budget, self.resource as usize);
        budget.used[index].fetch_sub(self.amount, Ordering::AcqRel);
        if self.resource.is_bytes() && budget.limits.of(self.resource) != usize::MAX {
            budget.total[index].fetch_sub(self.amount, Ordering::AcqRel);
        }
    }
}

/// The id of a principal, and the address if each address has a separate budget.
type Key = (Arc<str>, Option<IpAddr>);

/// The authenticated principals: one entry per principal, and for the local user one per address up to `MAX_ADDRESSES`.
#[derive(Debug)]
pub struct PrincipalTable {
    limits: BudgetLimits,
    total: Arc<Used>,
    entries: Mutex<HashMap<Key, PrincipalHandle>>,
}

impl PrincipalTable {
    /// Creates an empty table; each principal gets these limits.
    pub fn new(limits: BudgetLimits) -> Self {
        Self { limits, total: Arc::default(), entries: Mutex::default() }
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries().len()
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the handle of a principal.
    pub fn of(&self, identity: &Arc<Principal>) -> PrincipalHandle {
        self.find(identity, None)
    }

    /// Returns the handle of a principal with the budget of an address.
    pub fn at(&self, identity: &Arc<Principal>, address: IpAddr) -> PrincipalHandle {
        self.find(identity, Some(address.to_canonical()))
    }

    /// Revokes the handles of principals that `is_valid` rejects: their streams end, and they are forgotten.
    pub fn revoke(&self, is_valid: impl Fn(&Arc<Principal>) -> bool) {
        self.entries().retain(|_, handle| {
            let valid = is_valid(handle.identity());
            if !valid {
                handle.revoke();
            }
            valid
        });
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<Key, PrincipalHandle>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, identity: &Arc<Principal>, address: Option<IpAddr>) -> PrincipalHandle {
        let mut entries = self.entries();
        let mut key: Key = (Arc::clone(identity.id()), address);
        if let Some(entry) = entries.get_mut(&key) {
            // An unchanged key keeps its object. Another key may have the name and the roles of a revoked one.
            let is_key = matches!(identity.origin, PrincipalOrigin::Key { .. });
            if !Arc::ptr_eq(entry.identity(), identity) && (is_key || entry.identity() != identity) {
                // Another key or token, or other roles or scopes than before: the budget stays.
                let next = PrincipalHandle::with(Arc::clone(identity), Arc::clone(&entry.0.budget));
                let previous = std::mem::replace(entry, next);
                // Tokens of an identity provider may differ, and each is verified again.
                if is_key {
                    previous.revoke();
                }
            }
            return entry.clone();
        }
        let max = if address.is_some() { MAX_ADDRESSES } else { MAX_BUDGETED_PRINCIPALS };
        if entries.len() >= max {
            entries.retain(|_, handle| Arc::strong_count(&handle.0) > 1);
            if entries.len() >= max && address.is_some() {
                key.1 = None;
            }
        }
        let new = || {
            let budget = Budget::new(self.limits, Arc::clone(&self.total));
            PrincipalHandle::with(Arc::clone(identity), Arc::new(budget))
        };
        entries.entry(key).or_insert_with(new).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Arc<Principal> {
        Arc::new(Principal::of_key(name))
    }

    fn local() -> Arc<Principal> {
        Arc::new(Principal::local())
    }

    fn limits() -> BudgetLimits {
        BudgetLimits { max_concurrent: 2, upload_bytes: 100, ..BudgetLimits::default() }
    }

    #[test]
    fn budgets_are_separate_per_principal() {
        let principals = PrincipalTable::new(limits());
        let (ann, bob) = (principals.of(&key("ann")), principals.of(&key("bob")));
        let first = ann.start_request().unwrap();
        let _second = ann.start_request().unwrap();
        assert_eq!(
            ann.start_request().unwrap_err(),
            RateLimitExceeded { setting: "max_concurrent", wait: Some(Duration::from_secs(1)) }
        );
        assert!(principals.of(&key("ann")).start_request().is_err(), "the budget belongs to the name");
        assert!(bob.start_request().is_ok());
        drop(first);
        assert!(ann.start_request().is_ok());
        let mut upload = ann.take(BudgetedResource::Upload, 60).unwrap();
        assert!(ann.take(BudgetedResource::Upload, 60).is_err() && upload.grow(60).is_err());
        assert_eq!(ann.used(BudgetedResource::Upload), 60);
        assert!(upload.grow(40).is_ok() && bob.take(BudgetedResource::Upload, 100).is_ok());
        drop(upload);
        assert_eq!((ann.used(BudgetedResource::Upload), bob.used(BudgetedResource::Upload)), (0, 0));
    }

    #[test]
    fn bounds_total_bytes_of_all_principals() {
        let principals = PrincipalTable::new(limits());
        let held: Vec<_> = (0..10)
            .filter_map(|name| {
                principals.of(&key(&name.to_string())).take(BudgetedResource::Upload, 100).ok()
            })
            .collect();
        assert_eq!(held.len(), TOTAL_SHARES);
    }

    #[test]
    fn rate_limit_counts_each_message_and_returns_the_wait() {
        let principals = PrincipalTable::new(BudgetLimits { per_second: Some(5), ..BudgetLimits::default() });
        let ann = principals.of(&key("ann"));
        let admitted = (0..50).filter(|_| ann.start_request().is_ok()).count();
        assert!((5..20).contains(&admitted), "{admitted}");
        let wait = ann.spend(5).unwrap_err().wait.unwrap();
        assert!(wait <= Duration::from_secs(1), "{wait:?}");
        assert_eq!(
            principals.of(&key("bob")).spend_batch(6),
            Err(RateLimitExceeded { setting: "per_second", wait: None })
        );
        assert_eq!(principals.of(&key("bob")).spend_batch(5), Ok(()));
    }

    #[test]
    fn bounds_number_of_addresses() {
        let principals = PrincipalTable::new(limits());
        let address = |number: usize| IpAddr::from([127, 0, (number >> 8) as u8, number as u8]);
        let held: Vec<_> =
            (0..MAX_ADDRESSES).map(|number| principals.at(&local(), address(number))).collect();
        let (one, other) = (principals.at(&local(), address(500)), principals.at(&local(), address(501)));
        assert!(one.shares_budget(&other) && !one.shares_budget(&held[0]));
        assert_eq!(one, held[0], "what belongs to the owner of the machine does so from any address");
        assert!(principals.len() <= MAX_ADDRESSES + 1);
        drop((held, one, other));
        let new = principals.at(&local(), address(502));
        assert!(!new.shares_budget(&principals.at(&local(), address(503))));
    }

    #[tokio::test]
    async fn revoked_principals_are_notified_and_forgotten() {
        let principals = PrincipalTable::new(limits());
        let (ann, bob) = (principals.of(&key("ann")), principals.of(&key("bob")));
        principals.revoke(|identity| identity.display != "ann");
        ann.revoked().await;
        assert!(!bob.0.revoked.is_cancelled());
        assert_eq!(principals.len(), 1);
        assert!(!principals.of(&key("ann")).0.revoked.is_cancelled(), "a new key of that name is usable");
    }

    #[test]
    fn changed_roles_keep_the_budget() {
        let principals = PrincipalTable::new(limits());
        let before = principals.of(&key("ann"));
        let mut identity = Principal::of_key("ann");
        identity.roles = toolhub_core::Roles::all();
        let after = principals.of(&Arc::new(identity));
        assert!(before.shares_budget(&after) && before == after);
        assert!(after.identity().roles.contains(toolhub_core::Role::Owner));
    }
}
