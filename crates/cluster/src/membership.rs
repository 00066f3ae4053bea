//! The entry of this process in the database: its id, and its signs of life there.

use std::sync::Arc;
use std::time::{Duration, Instant};

use toolhub_core::cluster::{ClusterMember, ClusterStore, MemberKind};
use toolhub_core::ports::StoreError;

use crate::clock::DatabaseClock;

/// A process of the cluster.
pub(crate) struct Membership {
    pub(crate) id: String,
    pub(crate) kind: MemberKind,
    pub(crate) address: String,
    pub(crate) store: Arc<dyn ClusterStore>,
    pub(crate) clock: DatabaseClock,
}

/// What changes while a process is a member.
#[derive(Debug, Default)]
pub(crate) struct MemberState {
    pub(crate) labels: Vec<String>,
    pub(crate) capacity: u32,
    pub(crate) load: u32,
    pub(crate) draining: bool,
}

impl Membership {
    /// Stores a sign of life, and sets the clock.
    pub(crate) async fn store_sign_of_life(&self, state: MemberState) -> Result<(), StoreError> {
        let MemberState { labels, capacity, load, draining } = state;
        let asked = Instant::now();
        let member = ClusterMember {
            id: self.id.clone(),
            kind: self.kind,
            address: self.address.clone(),
            labels,
            capacity,
            load,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            draining,
            silent_for: Duration::ZERO,
        };
        let now = self.store.beat(member).await?;
        self.clock.set(now, asked);
        Ok(())
    }

    /// Removes the entry, within a limited time.
    pub(crate) async fn leave(&self, limit: Duration) {
        let _ = tokio::time::timeout(limit, self.store.leave(self.id.clone())).await;
    }
}
