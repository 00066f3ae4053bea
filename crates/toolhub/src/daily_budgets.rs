//! Daily budgets of principals: counts calls per day of UTC, in this process, or in the store that several hubs share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use toolhub_core::Principal;
use toolhub_core::call_log::CallQuery;
use toolhub_core::millis::DAY;
use toolhub_core::ports::{HubStore, StoreError};
use toolhub_core::shared_state::CounterIncrement;

use crate::hub::Hub;

/// How many calls a principal made on a day.
#[derive(Debug, Clone, Copy)]
struct DailyCount {
    day: u64,
    calls: u64,
}

/// A call of a principal with a budget.
struct DailySpending<'a> {
    principal: &'a Principal,
    day: u64,
    limit: u64,
}

/// A principal has used its calls of the day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DailyBudgetExceeded {
    pub(crate) limit: u64,
}

/// The calls of the day, by the id of the principal.
#[derive(Debug, Default)]
pub(crate) struct DailyBudgets(Mutex<HashMap<Arc<str>, DailyCount>>);

impl DailyBudgets {
    /// Counts a call against the budget of its principal. The calls of the day before a restart count, too.
    pub(crate) async fn spend(
        &self,
        hub: &Hub,
        principal: &Principal,
        limit: u64,
    ) -> Result<(), DailyBudgetExceeded> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let day = now.as_secs() / DAY.as_secs();
        if let Some(store) = hub.store().filter(|store| store.is_shared()) {
            return self.spend_shared(hub, &**store, DailySpending { principal, day, limit }).await;
        }
        let is_known = self.counts().get(principal.id()).is_some_and(|count| count.day == day);
        if !is_known {
            let calls = hub.calls_today(principal.id(), limit).await.unwrap_or(0);
            let mut counts = self.counts();
            let count = counts.entry(Arc::clone(principal.id())).or_insert(DailyCount { day, calls });
            if count.day != day {
                *count = DailyCount { day, calls };
            }
        }
        let mut counts = self.counts();
        let count = counts.entry(Arc::clone(principal.id())).or_insert(DailyCount { day, calls: 0 });
        if count.calls >= limit {
            return Err(DailyBudgetExceeded { limit });
        }
        count.calls += 1;
        Ok(())
    }

    /// Counts a call against the budget that all hubs of a store share. The calls that are in the history already count when
    /// the counter begins. A call that cannot be counted is refused.
    async fn spend_shared(
        &self,
        hub: &Hub,
        store: &dyn HubStore,
        DailySpending { principal, day, limit }: DailySpending<'_>,
    ) -> Result<(), DailyBudgetExceeded> {
        let is_known = self.counts().get(principal.id()).is_some_and(|count| count.day == day);
        let initial =
            if is_known { 0 } else { hub.calls_today(principal.id(), limit).await.unwrap_or(limit) };
        let midnight = Duration::from_secs((day + 1) * DAY.as_secs());
        let counting = CounterIncrement {
            name: format!("calls-of-day {day} {}", principal.id()),
            initial,
            amount: 1,
            limit,
            // Later than midnight, in case that the clock of another hub is slow.
            expires_at: UNIX_EPOCH + midnight + DAY,
        };
        match store.add_to_counter(counting).await {
            Ok(true) => {
                let new_count = DailyCount { day, calls: 0 };
                self.counts().insert(Arc::clone(principal.id()), new_count);
                Ok(())
            }
            Ok(false) | Err(_) => Err(DailyBudgetExceeded { limit }),
        }
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<Arc<str>, DailyCount>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hub {
    /// The number of calls of a principal since midnight UTC that are in the history, up to a limit.
    pub async fn calls_today(&self, principal: &str, limit: u64) -> Result<u64, StoreError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let midnight = now.as_secs() / DAY.as_secs() * DAY.as_secs();
        let query = CallQuery {
            principal: Some(principal.to_owned()),
            since: Some(UNIX_EPOCH + Duration::from_secs(midnight)),
            limit: Some(usize::try_from(limit).unwrap_or(usize::MAX)),
            ..CallQuery::default()
        };
        Ok(self.calls(query).await?.len() as u64)
    }
}
