//! Limits the requests in flight over one stream, shared fairly among principals.
//!
//! A principal may take another permit while it holds fewer than [`SHARE`] times the number of free ones (dynamic thresholds,
//! as switches share buffers). A single principal gets three quarters, two get three sevenths each, and there is always a
//! permit left for another one. The hub itself, which has no principal, may take all free ones. Waiting requests are served
//! round robin by principal, and in FIFO order within a principal.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// A principal may hold up to this multiple of the free permits.
const SHARE: usize = 3;
/// Number of idle principals that are kept, so that their next request finds its entry.
const MAX_IDLE: usize = 64;

/// The permits of one principal.
#[derive(Default)]
struct Holder {
    /// `None` for requests of the hub itself.
    principal: Option<Box<str>>,
    held: usize,
    waiting: VecDeque<oneshot::Sender<()>>,
}

impl Holder {
    fn is_idle(&self) -> bool {
        self.held == 0 && self.waiting.is_empty()
    }
}

struct State {
    free: usize,
    /// An entry keeps its index while it is in use.
    holders: Vec<Holder>,
    /// Number of waiting requests.
    waiting: usize,
    /// The index of the holder that is served next.
    next: usize,
}

impl State {
    /// The index of a principal's entry.
    fn place(&mut self, principal: Option<&str>) -> usize {
        let known = self.holders.iter().position(|holder| holder.principal.as_deref() == principal);
        if let Some(place) = known {
            return place;
        }
        let holder = Holder { principal: principal.map(Box::from), ..Holder::default() };
        let unused = (self.holders.len() >= MAX_IDLE).then(|| self.holders.iter().position(Holder::is_idle));
        match unused.flatten() {
            Some(place) => {
                self.holders[place] = holder;
                place
            }
            None => {
                self.holders.push(holder);
                self.holders.len() - 1
            }
        }
    }

    fn may_take(&self, place: usize) -> bool {
        let Holder { principal, held, .. } = &self.holders[place];
        self.free > 0 && (principal.is_none() || *held < SHARE.saturating_mul(self.free))
    }

    /// Gives free permits to waiting requests, round robin by principal.
    fn serve(&mut self) {
        let mut refused = 0;
        while self.waiting > 0 && refused < self.holders.len() {
            let place = self.next % self.holders.len();
            self.next = place + 1;
            if !self.may_take(place) {
                refused += 1;
                continue;
            }
            match self.holders[place].waiting.pop_front() {
                None => refused += 1,
                Some(waiter) => {
                    self.waiting -= 1;
                    // A dropped request takes no permit.
                    if waiter.send(()).is_ok() {
                        self.holders[place].held += 1;
                        self.free -= 1;
                    }
                    refused = 0;
                }
            }
        }
    }
}

/// The permits of one connection.
pub(super) struct Turns(Mutex<State>);

impl Turns {
    pub(super) fn new(count: usize) -> Self {
        Self(Mutex::new(State { free: count, holders: Vec::new(), waiting: 0, next: 0 }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a permit for a principal.
    pub(super) async fn take(&self, principal: Option<&str>) -> Turn<'_> {
        let (place, waiting) = {
            let mut state = self.state();
            let place = state.place(principal);
            if state.holders[place].waiting.is_empty() && state.may_take(place) {
                state.holders[place].held += 1;
                state.free -= 1;
                return Turn { turns: self, place };
            }
            let (waiter, waiting) = oneshot::channel();
            state.holders[place].waiting.push_back(waiter);
            state.waiting += 1;
            (place, waiting)
        };
        let mut waiting = Waiting { turns: self, place, given: waiting, over: false };
        // The sender stays in the queue until it is used, so this always ends with a permit.
        let _ = (&mut waiting.given).await;
        waiting.over = true;
        Turn { turns: self, place }
    }

    fn give_back(&self, place: usize) {
        let mut state = self.state();
        state.free += 1;
        state.holders[place].held -= 1;
        if state.waiting > 0 {
            state.serve();
        }
    }
}

/// A permit, released on drop.
pub(super) struct Turn<'a> {
    turns: &'a Turns,
    place: usize,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.turns.give_back(self.place);
    }
}

/// A waiting request, which may be dropped.
struct Waiting<'a> {
    turns: &'a Turns,
    place: usize,
    given: oneshot::Receiver<()>,
    over: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        self.given.close();
        // The permit was granted concurrently.
        if self.given.try_recv().is_ok() {
            return self.turns.give_back(self.place);
        }
        // Removes its own entry and those of other dropped requests.
        let mut state = self.turns.state();
        let before = state.holders[self.place].waiting.len();
        state.holders[self.place].waiting.retain(|waiter| !waiter.is_closed());
        let gone = before - state.holders[self.place].waiting.len();
        state.waiting -= gone;
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn one_principal_leaves_a_quarter_to_others() {
        let turns = Turns::new(1024);
        let take = |name: &'static str| turns.take(Some(name)).now_or_never();
        let held: Vec<_> = std::iter::from_fn(|| take("ann")).collect();
        assert_eq!(held.len(), 768);
        let others: Vec<_> = std::iter::from_fn(|| take("bob")).collect();
        assert!(others.len() >= 190, "{}", others.len());
        assert!(take("carol").is_some() && turns.take(None).now_or_never().is_some());
        drop((held, others));
        let again: Vec<_> = std::iter::from_fn(|| take("bob")).collect();
        assert_eq!(again.len(), 768, "all were given back");
    }

    #[tokio::test]
    async fn those_who_wait_are_served_in_turn_by_principal() {
        let turns = Turns::new(8);
        let mut held: Vec<_> = std::iter::from_fn(|| turns.take(Some("ann")).now_or_never()).collect();
        held.extend(std::iter::from_fn(|| turns.take(Some("bob")).now_or_never()));
        held.extend(std::iter::from_fn(|| turns.take(None).now_or_never()));
        let names = ["ann", "ann", "ann", "bob"];
        let mut waiting: Vec<_> = names.iter().map(|name| Box::pin(turns.take(Some(name)))).collect();
        assert!(waiting.iter_mut().all(|one| one.now_or_never().is_none()));
        // A dropped request is skipped, and takes no permit.
        drop(waiting.remove(0));
        drop(held);
        let mut served = Vec::new();
        for one in waiting {
            served.push(one.await);
        }
        drop(served);
        let all: Vec<_> = std::iter::from_fn(|| turns.take(Some("ann")).now_or_never()).collect();
        assert_eq!(all.len(), 6);
        let state = turns.state();
        assert_eq!((state.free, state.waiting), (2, 0));
    }

    #[test]
    fn hub_itself_may_take_all_turns() {
        let turns = Turns::new(8);
        let held: Vec<_> = std::iter::from_fn(|| turns.take(None).now_or_never()).collect();
        assert_eq!(held.len(), 8);
        assert!(turns.take(Some("ann")).now_or_never().is_none());
    }

    #[tokio::test]
    async fn newcomer_is_not_starved_by_a_queue_of_another() {
        let turns = Turns::new(4);
        let held: Vec<_> = std::iter::from_fn(|| turns.take(Some("ann")).now_or_never()).collect();
        assert_eq!(held.len(), 3);
        let mut queue: Vec<_> = (0..100).map(|_| Box::pin(turns.take(Some("ann")))).collect();
        assert!(queue.iter_mut().all(|one| one.now_or_never().is_none()));
        assert!(turns.take(Some("bob")).now_or_never().is_some());
    }

    #[test]
    fn places_of_idle_principals_are_used_again() {
        let turns = Turns::new(8);
        for number in 0..1_000 {
            let name = number.to_string();
            assert!(turns.take(Some(&name)).now_or_never().is_some());
        }
        assert!(turns.state().holders.len() <= MAX_IDLE);
    }
}
