//! The keys of an issuer: cached, and fetched again by age and for unknown key ids at a bounded rate. Fetches run as tasks of their
//! own, so that a client that disconnects does not cancel them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_util::task::TaskTracker;
use url::Url;

use super::clock::Clock;
use super::jwk::Jwk;
use super::jws::{Algorithm, Jws};
use super::provider::{PROVIDER_TIMEOUT, Provider, ProviderEndpoint, issuer_unavailable};
use super::token_error::TokenErrorKind;
use crate::error::OAuthError;

/// Minimum time between two fetches, whatever the reason.
pub(super) const MIN_FETCH_INTERVAL: Duration = Duration::from_secs(30);
/// Minimum time between two fetches while no keys are known.
pub(super) const MIN_RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// Age from which keys are fetched again in the background. Bounds how long a key is used that the issuer has removed.
pub(super) const REFRESH_AGE: Duration = Duration::from_secs(10 * 60);
/// Age up to which keys are used while the issuer is unavailable.
pub(super) const MAX_KEY_AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// How far the clock of an issuer may be behind when it is decided whether a token may be signed with a new key.
const ISSUED_SKEW: Duration = Duration::from_secs(10);
/// Maximum keys that one signature is verified with: more than one only if the token has no `kid`, or the set repeats it.
const MAX_CANDIDATE_KEYS: usize = 4;

/// The keys of one issuer.
#[derive(Clone)]
pub(super) struct KeySet {
    inner: Arc<KeySetInner>,
}

struct KeySetInner {
    provider: Arc<Provider>,
    clock: Arc<dyn Clock>,
    tasks: TaskTracker,
    state: Mutex<KeySetState>,
    /// Changes whenever a fetch ends.
    fetches: watch::Sender<u64>,
}

#[derive(Default)]
struct KeySetState {
    keys: Arc<Vec<Jwk>>,
    /// Changes whenever a key is removed, so that tokens verified before are verified again.
    revision: KeyRevision,
    /// The URL of the JWK set.
    location: Option<Url>,
    /// When `keys` were fetched.
    fetched: Option<Instant>,
    /// When the last fetch was started.
    attempted: Option<Instant>,
    in_flight: bool,
    failure: Option<OAuthError>,
}

/// Identifies a set of keys from which no key has been removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct KeyRevision(u64);

/// The keys that may have signed a token.
pub(super) struct Candidates {
    pub(super) keys: Vec<Jwk>,
    pub(super) revision: KeyRevision,
}

enum Lookup {
    Found(Candidates),
    /// A fetch is under way.
    Pending,
    Missing(TokenErrorKind),
}

impl KeySet {
    pub(super) fn new(provider: Arc<Provider>, clock: Arc<dyn Clock>, tasks: TaskTracker) -> Self {
        let (fetches, _) = watch::channel(0);
        Self { inner: Arc::new(KeySetInner { provider, clock, tasks, state: Mutex::default(), fetches }) }
    }

    /// Finds the keys that may have signed the token. Waits for a fetch only if none is known.
    pub(super) async fn find(&self, jws: &Jws<'_>) -> Result<Candidates, TokenErrorKind> {
        // Subscribes first: a fetch that ends in between is then noticed.
        let mut fetches = self.inner.fetches.subscribe();
        match self.look_up(jws) {
            Lookup::Found(candidates) => return Ok(candidates),
            Lookup::Missing(kind) => return Err(kind),
            Lookup::Pending => {}
        }
        // The fetch has the same time limit. A timeout here means that its task was dropped with its runtime.
        let _ = tokio::time::timeout(PROVIDER_TIMEOUT, fetches.changed()).await;
        let state = self.inner.state();
        let found = state.candidates(jws.key_id.as_deref(), jws.algorithm, self.inner.clock.monotonic());
        found.ok_or_else(|| state.missing(&self.inner.provider.name))
    }

    /// Whether a token that was verified with these keys is still verified: no key was removed since, and the keys are not too old.
    /// Starts a fetch in the background if it is due.
    pub(super) fn is_current(&self, revision: KeyRevision) -> bool {
        let now = self.inner.clock.monotonic();
        let mut state = self.inner.state();
        let is_current = state.revision == revision && state.is_usable(now);
        let fetch = state.is_aged(now) && state.begin_fetch(now);
        drop(state);
        if fetch {
            self.start_fetch();
        }
        is_current
    }

    fn look_up(&self, jws: &Jws<'_>) -> Lookup {
        let now = self.inner.clock.monotonic();
        let mut state = self.inner.state();
        let found = state.candidates(jws.key_id.as_deref(), jws.algorithm, now);
        let fetch = (found.is_none() || state.is_aged(now)) && state.begin_fetch(now);
        let lookup = match found {
            Some(candidates) => Lookup::Found(candidates),
            None if state.in_flight => Lookup::Pending,
            None => Lookup::Missing(match state.missing(&self.inner.provider.name) {
                TokenErrorKind::UnknownKey if state.is_new_id(jws) => {
                    state.unknown_key(self.inner.age_of(jws), now)
                }
                kind => kind,
            }),
        };
        drop(state);
        if fetch {
            self.start_fetch();
        }
        lookup
    }

    /// Fetches the keys in a task. Outside of a runtime the fetch is abandoned.
    fn start_fetch(&self) {
        let fetch = FetchGuard { inner: Arc::clone(&self.inner) };
        let Ok(runtime) = Handle::try_current() else { return };
        self.inner.tasks.spawn_on(
            async move {
                let location = fetch.inner.known_location();
                let provider = &fetch.inner.provider;
                let result = provider.within_timeout(load(provider, location)).await;
                fetch.inner.finish(result);
            },
            &runtime,
        );
    }
}

/// Ends a fetch when it is dropped, also if its task was dropped or panicked.
struct FetchGuard {
    inner: Arc<KeySetInner>,
}

impl Drop for FetchGuard {
    fn drop(&mut self) {
        self.inner.state().in_flight = false;
        self.inner.fetches.send_modify(|count| *count = count.wrapping_add(1));
    }
}

/// Fetches the set at its known location. If that fails, or without one, the issuer's metadata is read again.
async fn load(provider: &Provider, location: Option<Url>) -> Result<(Url, Vec<Jwk>), OAuthError> {
    if let Some(location) = location
        && let Ok(keys) = provider.fetch_keys(&location).await
    {
        return Ok((location, keys));
    }
    let location = provider.discover(ProviderEndpoint::Keys).await?;
    let keys = provider.fetch_keys(&location).await?;
    Ok((location, keys))
}

impl KeySetInner {
    fn state(&self) -> MutexGuard<'_, KeySetState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long ago a token was issued, as it states itself. `None` if it does not, or states the future.
    fn age_of(&self, jws: &Jws<'_>) -> Option<Duration> {
        let issued = jws.claims.time("iat").ok().flatten()?;
        let now = self.clock.wall_time();
        (issued <= now + ISSUED_SKEW).then(|| now.duration_since(issued).unwrap_or_default())
    }

    /// The location of the set. It is looked up again if the last fetch failed or the keys are aged.
    fn known_location(&self) -> Option<Url> {
        let now = self.clock.monotonic();
        let state = self.state();
        state.location.clone().filter(|_| state.failure.is_none() && !state.is_aged(now))
    }

    fn finish(&self, result: Result<(Url, Vec<Jwk>), OAuthError>) {
        let now = self.clock.monotonic();
        let mut state = self.state();
        match result {
            Ok((location, keys)) => {
                // The fetched set is authoritative: a key that is not in it any more was removed by the issuer.
                if state.keys.iter().any(|key| !keys.contains(key)) {
                    state.revision.0 += 1;
                }
                state.keys = Arc::new(keys);
                state.location = Some(location);
                state.fetched = Some(now);
                state.failure = None;
            }
            Err(error) => state.failure = Some(error),
        }
    }
}

impl KeySetState {
    fn is_usable(&self, now: Instant) -> bool {
        self.fetched.is_some_and(|fetched| now.saturating_duration_since(fetched) < MAX_KEY_AGE)
    }

    fn is_aged(&self, now: Instant) -> bool {
        self.fetched.is_none_or(|fetched| now.saturating_duration_since(fetched) >= REFRESH_AGE)
    }

    /// Whether a fetch should be started now. If so, it counts as started.
    fn begin_fetch(&mut self, now: Instant) -> bool {
        let interval = if self.is_usable(now) { MIN_FETCH_INTERVAL } else { MIN_RETRY_INTERVAL };
        let is_due =
            self.attempted.is_none_or(|attempted| now.saturating_duration_since(attempted) >= interval);
        let begins = is_due && !self.in_flight;
        if begins {
            self.attempted = Some(now);
            self.in_flight = true;
        }
        begins
    }

    fn candidates(&self, key_id: Option<&str>, algorithm: Algorithm, now: Instant) -> Option<Candidates> {
        let usable = self.is_usable(now).then_some(&self.keys)?;
        let matching = usable.iter().filter(|key| key.matches(key_id, algorithm));
        let keys: Vec<Jwk> = matching.take(MAX_CANDIDATE_KEYS).cloned().collect();
        (!keys.is_empty()).then_some(Candidates { keys, revision: self.revision })
    }

    /// Whether the token names a key that is not in the set.
    fn is_new_id(&self, jws: &Jws<'_>) -> bool {
        jws.key_id.as_deref().is_some_and(|id| !self.keys.iter().any(|key| key.has_id(id)))
    }

    /// The refusal of a token whose key is not in the current set, while no fetch may be started. A token that is younger than
    /// the set may be signed with a new key. This depends on nothing but the token, so that other tokens cannot influence it,
    /// and it ends with the next fetch.
    fn unknown_key(&self, age: Option<Duration>, now: Instant) -> TokenErrorKind {
        let since = self.attempted.map(|attempted| now.saturating_duration_since(attempted));
        match (age, since) {
            (Some(age), Some(since)) if age <= since + ISSUED_SKEW => {
                TokenErrorKind::NewKey { retry_after: MIN_FETCH_INTERVAL.saturating_sub(since) }
            }
            _ => TokenErrorKind::UnknownKey,
        }
    }

    /// Why no key was found: with current keys the token's key does not exist, otherwise the issuer is unavailable.
    fn missing(&self, issuer: &str) -> TokenErrorKind {
        match &self.failure {
            Some(failure) => issuer_unavailable(failure),
            None if self.fetched.is_some() => TokenErrorKind::UnknownKey,
            None => issuer_unavailable(&OAuthError::Unreachable {
                location: issuer.to_owned(),
                cause: "its keys were not fetched".to_owned(),
            }),
        }
    }
}
