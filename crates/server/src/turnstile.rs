//! How much one caller may ask at once and how often: one that asks too much is told to wait, and others are not slowed.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use toolhub_mcp::gateway::Principal;

/// Callers that are remembered; those that ask nothing are forgotten first.
const REMEMBERED: usize = 10_000;

/// How much one caller may ask.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quota {
    /// Requests at the same time.
    pub(crate) at_once: usize,
    /// Requests in a second; `None` for any number.
    pub(crate) per_second: Option<u32>,
}

#[derive(Debug)]
struct Caller {
    /// Requests under way.
    places: Arc<AtomicUsize>,
    /// Requests that may still be made, and as of when.
    left: f64,
    since: Instant,
}

/// One request's place, which is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Caller {
    fn new(quota: Quota) -> Self {
        let left = quota.per_second.map_or(0.0, f64::from);
        Self { places: Arc::default(), left, since: Instant::now() }
    }

    fn enter(&mut self, quota: Quota) -> Result<Place, TooMuch> {
        if let Some(rate) = quota.per_second.map(f64::from) {
            let now = Instant::now();
            let earned = now.duration_since(self.since).as_secs_f64() * rate;
            (self.left, self.since) = ((self.left + earned).min(rate), now);
            if self.left < 1.0 {
                return Err(TooMuch(Duration::from_secs_f64((1.0 - self.left) / rate)));
            }
            self.left -= 1.0;
        }
        // Places are taken under a lock, so that no two take the last one.
        if self.places.load(Ordering::Acquire) >= quota.at_once {
            return Err(TooMuch(Duration::from_secs(1)));
        }
        self.places.fetch_add(1, Ordering::AcqRel);
        Ok(Place(Arc::clone(&self.places)))
    }
}

/// Lets callers in as far as they may.
#[derive(Debug)]
pub(crate) struct Turnstile {
    quota: Quota,
    callers: Mutex<HashMap<Principal, Caller>>,
}

/// A request that asks too much; how long to wait before the next.
pub(crate) struct TooMuch(pub(crate) Duration);

impl Turnstile {
    pub(crate) fn new(quota: Quota) -> Self {
        Self { quota, callers: Mutex::default() }
    }

    fn callers(&self) -> MutexGuard<'_, HashMap<Principal, Caller>> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for one request, or how long to wait for one.
    pub(crate) fn enter(&self, who: &Principal) -> Result<Place, TooMuch> {
        let mut callers = self.callers();
        if let Some(caller) = callers.get_mut(who) {
            return caller.enter(self.quota);
        }
        if callers.len() >= REMEMBERED {
            callers.retain(|_, caller| caller.places.load(Ordering::Acquire) > 0);
        }
        callers.entry(who.clone()).or_insert_with(|| Caller::new(self.quota)).enter(self.quota)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_caller_does_not_take_the_place_of_another() {
        let turnstile = Turnstile::new(Quota { at_once: 2, per_second: None });
        let (ann, bob) = (Principal::new("ann"), Principal::new("bob"));
        let first = turnstile.enter(&ann).ok().unwrap();
        let _second = turnstile.enter(&ann).ok().unwrap();
        assert!(turnstile.enter(&ann).is_err());
        assert!(turnstile.enter(&bob).is_ok());
        drop(first);
        assert!(turnstile.enter(&ann).is_ok());
    }

    #[test]
    fn who_asks_too_often_waits() {
        let turnstile = Turnstile::new(Quota { at_once: 100, per_second: Some(5) });
        let ann = Principal::new("ann");
        let let_in = (0..50).filter(|_| turnstile.enter(&ann).is_ok()).count();
        assert!((5..20).contains(&let_in), "{let_in}");
        let Err(TooMuch(wait)) = turnstile.enter(&ann) else { panic!("not held back") };
        assert!(wait <= Duration::from_millis(200), "{wait:?}");
    }
}
