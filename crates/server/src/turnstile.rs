//! How much one caller may ask at once and how often: one that asks too much is told to wait, and others are not slowed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
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
    places: Arc<Semaphore>,
    /// Requests that may still be made, and as of when.
    left: f64,
    since: Instant,
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

    /// A place for one request, which is free again when what is given back is dropped.
    pub(crate) fn enter(&self, who: &Principal) -> Result<OwnedSemaphorePermit, TooMuch> {
        let mut callers = self.callers();
        if !callers.contains_key(who) {
            if callers.len() >= REMEMBERED {
                let at_once = self.quota.at_once;
                callers.retain(|_, caller| caller.places.available_permits() < at_once);
            }
            let left = self.quota.per_second.map_or(0.0, f64::from);
            let places = Arc::new(Semaphore::new(self.quota.at_once));
            callers.insert(who.clone(), Caller { places, left, since: Instant::now() });
        }
        let Some(caller) = callers.get_mut(who) else { return Err(TooMuch(Duration::from_secs(1))) };
        if let Some(rate) = self.quota.per_second.map(f64::from) {
            let now = Instant::now();
            let earned = now.duration_since(caller.since).as_secs_f64() * rate;
            (caller.left, caller.since) = ((caller.left + earned).min(rate), now);
            if caller.left < 1.0 {
                return Err(TooMuch(Duration::from_secs_f64((1.0 - caller.left) / rate)));
            }
            caller.left -= 1.0;
        }
        let places = Arc::clone(&caller.places);
        drop(callers);
        places.try_acquire_owned().map_err(|_| TooMuch(Duration::from_secs(1)))
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
