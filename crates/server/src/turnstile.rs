//! How much one caller may ask at once and how often: one that asks too much is told to wait, and others are not slowed.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
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

/// One who asks. Whoever holds it need not be looked up again.
#[derive(Debug)]
pub(crate) struct Caller {
    quota: Quota,
    /// Requests under way.
    places: AtomicUsize,
    /// Requests that may still be made, and as of when.
    left: Mutex<(f64, Instant)>,
}

/// One request's place, which is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place(Arc<Caller>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.places.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Caller {
    fn new(quota: Quota) -> Self {
        let left = quota.per_second.map_or(0.0, f64::from);
        Self { quota, places: AtomicUsize::new(0), left: Mutex::new((left, Instant::now())) }
    }

    /// A place for one request, or how long to wait for one.
    pub(crate) fn enter(self: &Arc<Self>) -> Result<Place, TooMuch> {
        // Of two that take the last one, one gives it back.
        let before = self.places.fetch_add(1, Ordering::AcqRel);
        let place = Place(Arc::clone(self));
        if let Some(rate) = self.quota.per_second.map(f64::from) {
            self.spend(rate)?;
        }
        if before >= self.quota.at_once {
            return Err(TooMuch(Duration::from_secs(1)));
        }
        Ok(place)
    }

    /// Makes one of the requests that may be made in a second.
    fn spend(&self, rate: f64) -> Result<(), TooMuch> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let (before, since) = *left;
        let now = Instant::now();
        let earned = now.duration_since(since).as_secs_f64() * rate;
        let has = (before + earned).min(rate);
        *left = (if has < 1.0 { has } else { has - 1.0 }, now);
        if has < 1.0 { Err(TooMuch(Duration::from_secs_f64((1.0 - has) / rate))) } else { Ok(()) }
    }
}

/// Lets callers in as far as they may.
#[derive(Debug)]
pub(crate) struct Turnstile {
    quota: Quota,
    callers: Mutex<HashMap<Principal, Arc<Caller>>>,
}

/// A request that asks too much; how long to wait before the next.
#[derive(Debug)]
pub(crate) struct TooMuch(pub(crate) Duration);

impl Turnstile {
    pub(crate) fn new(quota: Quota) -> Self {
        Self { quota, callers: Mutex::default() }
    }

    /// Who asks under that name.
    pub(crate) fn caller(&self, who: &Principal) -> Arc<Caller> {
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(caller) = callers.get(who) {
            return Arc::clone(caller);
        }
        if callers.len() >= REMEMBERED {
            // Those who still ask, or have a connection, stay.
            callers.retain(|_, caller| Arc::strong_count(caller) > 1);
        }
        Arc::clone(callers.entry(who.clone()).or_insert_with(|| Arc::new(Caller::new(self.quota))))
    }

    /// A place for one request, or how long to wait for one.
    pub(crate) fn enter(&self, who: &Principal) -> Result<Place, TooMuch> {
        self.caller(who).enter()
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
