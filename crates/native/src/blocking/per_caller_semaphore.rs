//! A semaphore with a fixed limit per caller and a total limit. Waiting callers are served round-robin, regardless of how
//! much work each has.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// The caller that work is accounted to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum CallerKey {
    /// A principal of the gateway, with all its clients.
    Principal(Arc<str>),
    /// An unauthenticated client.
    Client(u64),
    /// This process itself.
    Local,
}

/// A semaphore with a fixed limit per caller. Clones share its slots.
#[derive(Debug, Clone)]
pub(super) struct PerCallerSemaphore {
    state: Arc<Mutex<SemaphoreState>>,
    per_caller: usize,
}

#[derive(Debug)]
struct SemaphoreState {
    free: usize,
    /// Slots held per caller; callers without slots are absent.
    held: HashMap<CallerKey, usize>,
    /// Waiting callers in round-robin order, each with its queue, which is never empty.
    waiting: VecDeque<(CallerKey, VecDeque<oneshot::Sender<Slot>>)>,
}

/// A slot, released on drop.
#[derive(Debug)]
pub(super) struct Slot {
    slots: PerCallerSemaphore,
    caller: CallerKey,
}

impl PerCallerSemaphore {
    /// Creates a semaphore with a limit per caller and a total limit.
    pub(super) fn new(per_caller: usize, total: usize) -> Self {
        let state = SemaphoreState { free: total, held: HashMap::new(), waiting: VecDeque::new() };
        Self { state: Arc::new(Mutex::new(state)), per_caller }
    }

    /// Waits for a slot.
    pub(super) async fn acquire(&self, caller: CallerKey) -> Slot {
        loop {
            let turn = {
                let mut state = self.state();
                let (turn, slot) = oneshot::channel();
                match state.waiting.iter_mut().find(|(waits, _)| *waits == caller) {
                    Some((_, list)) => list.push_back(turn),
                    None => state.waiting.push_back((caller.clone(), VecDeque::from([turn]))),
                }
                slot
            };
            self.hand_out();
            if let Ok(slot) = turn.await {
                return slot;
            }
        }
    }

    /// Hands out free slots in turn.
    fn hand_out(&self) {
        while let Some((turn, slot)) = self.next() {
            // If the receiver is gone, dropping the result releases the slot.
            drop(turn.send(slot));
        }
    }

    fn next(&self) -> Option<(oneshot::Sender<Slot>, Slot)> {
        let mut state = self.state();
        if state.free == 0 {
            return None;
        }
        // Skips waiters whose future has been dropped.
        let (caller, turn) = loop {
            let SemaphoreState { held, waiting, .. } = &mut *state;
            let may = |caller: &CallerKey| held.get(caller).copied().unwrap_or_default() < self.per_caller;
            let index = waiting.iter().position(|(caller, _)| may(caller))?;
            let (caller, mut list) = waiting.remove(index)?;
            let turn = std::iter::from_fn(|| list.pop_front()).find(|turn| !turn.is_closed());
            if !list.is_empty() {
                waiting.push_back((caller.clone(), list));
            }
            if let Some(turn) = turn {
                break (caller, turn);
            }
        };
        state.free -= 1;
        *state.held.entry(caller.clone()).or_default() += 1;
        drop(state);
        Some((turn, Slot { slots: self.clone(), caller }))
    }

    fn state(&self) -> MutexGuard<'_, SemaphoreState> {
        // The state is consistent after every statement, so a poisoned lock is usable.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        {
            let mut state = self.slots.state();
            state.free += 1;
            if let Some(held) = state.held.get_mut(&self.caller) {
                *held -= 1;
                if *held == 0 {
                    state.held.remove(&self.caller);
                }
            }
        }
        self.slots.hand_out();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    /// Polls a future once.
    async fn now<T>(future: impl Future<Output = T>) -> Option<T> {
        timeout(Duration::ZERO, future).await.ok()
    }

    fn key(name: &str) -> CallerKey {
        CallerKey::Principal(name.into())
    }

    #[tokio::test]
    async fn waiting_callers_take_turns() {
        let slots = PerCallerSemaphore::new(1, 1);
        let first = slots.acquire(key("ann")).await;
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = tokio::task::JoinSet::new();
        for name in ["ann"; 100].into_iter().chain(["bob", "eve"]) {
            let (slots, order) = (slots.clone(), Arc::clone(&order));
            tasks.spawn(async move {
                let _slot = slots.acquire(key(name)).await;
                order.lock().unwrap().push(name);
            });
            tokio::task::yield_now().await;
        }
        drop(first);
        tasks.join_all().await;
        let order = order.lock().unwrap();
        assert_eq!((order.len(), &order[..4]), (102, &["ann", "bob", "eve", "ann"][..]));
    }

    #[tokio::test]
    async fn one_caller_cannot_hold_every_slot() {
        let slots = PerCallerSemaphore::new(2, 4);
        let (one, _two) = (slots.acquire(key("ann")).await, slots.acquire(key("ann")).await);
        let mut third = Box::pin(slots.acquire(key("ann")));
        assert!(now(&mut third).await.is_none());
        let bob = now(slots.acquire(key("bob"))).await;
        assert!(bob.is_some());
        drop(one);
        assert!(now(third).await.is_some());
    }

    #[tokio::test]
    async fn skips_abandoned_waiters() {
        let slots = PerCallerSemaphore::new(1, 1);
        let first = slots.acquire(key("ann")).await;
        for _ in 0..50 {
            assert!(now(slots.acquire(key("ann"))).await.is_none());
        }
        let mut bob = Box::pin(slots.acquire(key("bob")));
        assert!(now(&mut bob).await.is_none());
        drop(first);
        drop(now(bob).await.unwrap());
        let state = slots.state();
        assert_eq!((state.free, state.held.len(), state.waiting.len()), (1, 0, 0));
    }
}
