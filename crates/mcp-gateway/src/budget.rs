//! Budgets of principals: how much of the shared resources one principal may hold. The budgets are owned by the table
//! here; a `Principal` refers to its own, so that requests need no lookup.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use crate::backend::RpcError;
use crate::event_log::EventLog;

/// Maximum number of addresses with a separate budget if no token is required. Further addresses share one budget.
const MAX_ADDRESSES: usize = 256;
/// All principals together may hold this many times the share of one.
const TOTAL_SHARES: usize = 4;
/// Maximum number of streams with discardable events before the entries of dropped streams are removed.
const MAX_REPLAY_ENTRIES: usize = 1_024;
/// The JSON-RPC error code for an exhausted budget.
const OVER_BUDGET: i64 = -32000;

/// The limits of one principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
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

impl Limits {
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

    fn of(&self, resource: Resource) -> usize {
        match resource {
            Resource::Requests | Resource::InFlightRequest => self.max_concurrent,
            Resource::Streams => self.streams,
            Resource::Subscriptions => self.subscriptions,
            Resource::Upload => self.upload_bytes,
            Resource::Unread => self.unread_bytes,
            Resource::Replay => self.replay_bytes,
        }
    }
}

impl Default for Limits {
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
pub enum Resource {
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

impl Resource {
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
    pub resource: Resource,
    limit: usize,
}

impl fmt::Display for QuotaExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.resource {
            Resource::Requests | Resource::InFlightRequest => "too many requests at the same time",
            Resource::Streams => "too many open streams",
            Resource::Subscriptions => "too many subscribed resources",
            Resource::Upload => "too many long messages at the same time",
            Resource::Unread => "too many long answers that were not read",
            Resource::Replay => "too many events that were not read",
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

/// The name of a principal and its use of resources.
struct PrincipalState {
    name: Box<str>,
    limits: Limits,
    used: Used,
    total: Arc<Used>,
    /// The token bucket of the rate limit: the messages left, and the time of the last update.
    token_bucket: Mutex<(f64, Instant)>,
    /// Streams whose events can be discarded once they have ended, oldest first.
    replays: Mutex<VecDeque<Weak<EventLog>>>,
}

/// The identity of a caller: the owner of this machine, or the name of a token. Principals are equal if their names are.
#[derive(Clone)]
pub struct Principal(Arc<PrincipalState>);

impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Principal").field(&self.0.name).finish()
    }
}

impl PartialEq for Principal {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for Principal {}

impl Hash for Principal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.name.hash(state);
    }
}

impl Principal {
    /// Creates a principal without limits that is part of no table.
    pub fn new(name: impl Into<Box<str>>) -> Self {
        Self::with(name.into(), Limits::NONE, Arc::default())
    }

    fn with(name: Box<str>, limits: Limits, total: Arc<Used>) -> Self {
        let token_bucket = Mutex::new((limits.per_second.map_or(0.0, f64::from), Instant::now()));
        Self(Arc::new(PrincipalState {
            name,
            limits,
            used: Used::default(),
            total,
            token_bucket,
            replays: Mutex::default(),
        }))
    }

    /// Returns its name.
    pub fn as_str(&self) -> &str {
        &self.0.name
    }

    /// Returns its limits.
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// Returns how much of a resource it holds.
    pub fn used(&self, resource: Resource) -> usize {
        self.0.used[resource as usize].load(Ordering::Relaxed)
    }

    /// Returns whether both use the same budget; principals of the same name may have different ones.
    pub(crate) fn shares_budget(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Takes an amount of a resource until the permit is dropped.
    pub fn take(&self, resource: Resource, amount: usize) -> Result<Permit, QuotaExceeded> {
        let mut permit = Permit { holder: self.clone(), resource, amount: 0 };
        permit.grow(amount)?;
        Ok(permit)
    }

    /// Takes a permit for one HTTP request. The message counts against `per_second` only if there is a permit.
    pub fn start_request(&self) -> Result<Permit, RateLimitExceeded> {
        let wait = Some(Duration::from_secs(1));
        let permit = self
            .take(Resource::Requests, 1)
            .map_err(|_| RateLimitExceeded { setting: "max_concurrent", wait })?;
        self.spend(1)?;
        Ok(permit)
    }

    /// Counts the messages of a batch against the rate limit, all or none. The first one was counted with its HTTP
    /// request.
    pub fn spend_batch(&self, messages: usize) -> Result<(), RateLimitExceeded> {
        let fits = self.0.limits.per_second.is_none_or(|rate| messages <= rate as usize);
        if fits {
            self.spend(messages.saturating_sub(1))
        } else {
            Err(RateLimitExceeded { setting: "per_second", wait: None })
        }
    }

    fn spend(&self, messages: usize) -> Result<(), RateLimitExceeded> {
        let Some(rate) = self.0.limits.per_second.map(f64::from) else { return Ok(()) };
        let needed = messages as f64;
        let mut token_bucket = self.0.token_bucket.lock().unwrap_or_else(PoisonError::into_inner);
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

    fn replays(&self) -> MutexGuard<'_, VecDeque<Weak<EventLog>>> {
        self.0.replays.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a stream whose events may be discarded once it has ended.
    pub(crate) fn may_discard(&self, log: &Arc<EventLog>) {
        let mut replays = self.replays();
        if replays.len() >= MAX_REPLAY_ENTRIES {
            replays.retain(|log| log.strong_count() > 0);
        }
        replays.push_back(Arc::downgrade(log));
    }

    /// Discards the events of the oldest ended streams until `needed` bytes are free.
    pub(crate) fn discard_replays(&self, needed: usize) {
        let limit = self.0.limits.replay_bytes;
        let mut logs = Vec::new();
        self.replays().retain(|log| {
            let live = log.upgrade().filter(|log| !log.is_discarded());
            let is_kept = live.is_some();
            logs.extend(live.filter(|log| log.is_ended()));
            is_kept
        });
        for log in logs {
            if self.used(Resource::Replay).saturating_add(needed) <= limit {
                return;
            }
            log.discard();
        }
    }
}

/// A part of a principal's budget, returned on drop.
#[derive(Debug)]
pub struct Permit {
    holder: Principal,
    resource: Resource,
    amount: usize,
}

impl Permit {
    /// Takes more of the same resource.
    pub fn grow(&mut self, more: usize) -> Result<(), QuotaExceeded> {
        let (principal, index) = (&self.holder.0, self.resource as usize);
        let limit = principal.limits.of(self.resource);
        let refused = QuotaExceeded { resource: self.resource, limit };
        // Add first, then check: of two concurrent takers of the last part, at least one reverts.
        let before = principal.used[index].fetch_add(more, Ordering::AcqRel);
        if before.saturating_add(more) > limit {
            principal.used[index].fetch_sub(more, Ordering::AcqRel);
            return Err(refused);
        }
        if self.resource.is_bytes() && limit != usize::MAX {
            let before = principal.total[index].fetch_add(more, Ordering::AcqRel);
            if before.saturating_add(more) > limit.saturating_mul(TOTAL_SHARES) {
                principal.total[index].fetch_sub(more, Ordering::AcqRel);
                principal.used[index].fetch_sub(more, Ordering::AcqRel);
                return Err(refused);
            }
        }
        self.amount += more;
        Ok(())
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let (principal, index) = (&self.holder.0, self.resource as usize);
        principal.used[index].fetch_sub(self.amount, Ordering::AcqRel);
        if self.resource.is_bytes() && principal.limits.of(self.resource) != usize::MAX {
            principal.total[index].fetch_sub(self.amount, Ordering::AcqRel);
        }
    }
}

/// A name, and the address if each address has a separate budget.
type Key = (Box<str>, Option<IpAddr>);

/// The authenticated principals. There is one entry per token, or one per address up to `MAX_ADDRESSES`.
#[derive(Debug)]
pub struct Principals {
    limits: Limits,
    total: Arc<Used>,
    entries: Mutex<HashMap<Key, Principal>>,
}

impl Principals {
    /// Creates an empty table; each principal gets these limits.
    pub fn new(limits: Limits) -> Self {
        Self { limits, total: Arc::default(), entries: Mutex::default() }
    }

    /// Returns the number of principals.
    pub fn len(&self) -> usize {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Returns whether there are no principals.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the principal of a token.
    pub fn named(&self, name: &str) -> Principal {
        self.find(name, None)
    }

    /// Returns the principal of that name with the budget of an address.
    pub fn at(&self, name: &str, address: IpAddr) -> Principal {
        self.find(name, Some(address.to_canonical()))
    }

    fn find(&self, name: &str, address: Option<IpAddr>) -> Principal {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let mut key: Key = (name.into(), address);
        if let Some(found) = entries.get(&key) {
            return found.clone();
        }
        if address.is_some() && entries.len() >= MAX_ADDRESSES {
            entries.retain(|_, principal| Arc::strong_count(&principal.0) > 1);
            if entries.len() >= MAX_ADDRESSES {
                key.1 = None;
            }
        }
        let new = || Principal::with(name.into(), self.limits, Arc::clone(&self.total));
        entries.entry(key).or_insert_with(new).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        Limits { max_concurrent: 2, upload_bytes: 100, ..Limits::default() }
    }

    #[test]
    fn budgets_are_separate_per_principal() {
        let principals = Principals::new(limits());
        let (ann, bob) = (principals.named("ann"), principals.named("bob"));
        let first = ann.start_request().unwrap();
        let _second = ann.start_request().unwrap();
        assert_eq!(
            ann.start_request().unwrap_err(),
            RateLimitExceeded { setting: "max_concurrent", wait: Some(Duration::from_secs(1)) }
        );
        assert!(principals.named("ann").start_request().is_err(), "the budget belongs to the name");
        assert!(bob.start_request().is_ok());
        drop(first);
        assert!(ann.start_request().is_ok());
        let mut upload = ann.take(Resource::Upload, 60).unwrap();
        assert!(ann.take(Resource::Upload, 60).is_err() && upload.grow(60).is_err());
        assert_eq!(ann.used(Resource::Upload), 60);
        assert!(upload.grow(40).is_ok() && bob.take(Resource::Upload, 100).is_ok());
        drop(upload);
        assert_eq!((ann.used(Resource::Upload), bob.used(Resource::Upload)), (0, 0));
    }

    #[test]
    fn bounds_total_bytes_of_all_principals() {
        let principals = Principals::new(limits());
        let held: Vec<_> = (0..10)
            .filter_map(|name| principals.named(&name.to_string()).take(Resource::Upload, 100).ok())
            .collect();
        assert_eq!(held.len(), TOTAL_SHARES);
    }

    #[test]
    fn rate_limit_counts_each_message_and_returns_the_wait() {
        let principals = Principals::new(Limits { per_second: Some(5), ..Limits::default() });
        let ann = principals.named("ann");
        let admitted = (0..50).filter(|_| ann.start_request().is_ok()).count();
        assert!((5..20).contains(&admitted), "{admitted}");
        let wait = ann.spend(5).unwrap_err().wait.unwrap();
        assert!(wait <= Duration::from_secs(1), "{wait:?}");
        assert_eq!(
            principals.named("bob").spend_batch(6),
            Err(RateLimitExceeded { setting: "per_second", wait: None })
        );
        assert_eq!(principals.named("bob").spend_batch(5), Ok(()));
    }

    #[test]
    fn bounds_number_of_addresses() {
        let principals = Principals::new(limits());
        let address = |number: usize| IpAddr::from([127, 0, (number >> 8) as u8, number as u8]);
        let held: Vec<_> = (0..MAX_ADDRESSES).map(|number| principals.at("local", address(number))).collect();
        let (one, other) = (principals.at("local", address(500)), principals.at("local", address(501)));
        assert!(one.shares_budget(&other) && !one.shares_budget(&held[0]));
        assert_eq!(one, held[0], "what belongs to the owner of the machine does so from any address");
        assert!(principals.len() <= MAX_ADDRESSES + 1);
        drop((held, one, other));
        let new = principals.at("local", address(502));
        assert!(!new.shares_budget(&principals.at("local", address(503))));
    }
}
