//! A store for tests.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use toolhub_core::BoxFuture;
use toolhub_core::cluster::{ClusterMember, ClusterStore, HeldPlacement, InstanceKey, Placement};
use toolhub_core::ports::StoreError;

use crate::clock::millis;

/// Counts what is released; the rest works and does nothing.
#[derive(Default)]
pub(crate) struct CountingStore {
    pub(crate) released: AtomicUsize,
}

impl ClusterStore for CountingStore {
    fn beat(&self, _: ClusterMember) -> BoxFuture<'_, Result<i64, StoreError>> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Box::pin(async move { Ok(millis(now)) })
    }

    fn leave(&self, _: String) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async { Ok(()) })
    }

    fn members(&self, _: Duration) -> BoxFuture<'_, Result<Vec<ClusterMember>, StoreError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn placements(&self) -> BoxFuture<'_, Result<Vec<Placement>, StoreError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn placement(&self, _: InstanceKey) -> BoxFuture<'_, Result<Option<Placement>, StoreError>> {
        Box::pin(async { Ok(None) })
    }

    fn claim(
        &self,
        _: InstanceKey,
        _: String,
        _: Duration,
    ) -> BoxFuture<'_, Result<Option<i64>, StoreError>> {
        Box::pin(async { Ok(Some(7)) })
    }

    fn renew(
        &self,
        _: String,
        held: Vec<HeldPlacement>,
        _: Duration,
    ) -> BoxFuture<'_, Result<Vec<HeldPlacement>, StoreError>> {
        Box::pin(async { Ok(held) })
    }

    fn release(&self, _: String, held: HeldPlacement) -> BoxFuture<'_, Result<(), StoreError>> {
        assert_eq!(held.epoch, 7);
        self.released.fetch_add(1, Ordering::Relaxed);
        Box::pin(async { Ok(()) })
    }
}
