//! Membership and placement in a cluster: which processes belong to it, and which worker runs which server. The port through which
//! a database stores both.
//!
//! A placement is a lease. It ends by the clock of the database, and each one has an epoch that no other placement ever has, so
//! that messages of a former holder are recognised.

use std::time::Duration;

use crate::boxed::BoxFuture;
use crate::store_error::StoreError;

/// What a process of a cluster does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberKind {
    /// Serves clients (`toolhub serve`).
    Replica,
    /// Runs servers (`toolhub work`).
    Worker,
}

impl MemberKind {
    /// The name in the database.
    pub fn name(self) -> &'static str {
        match self {
            Self::Replica => "replica",
            Self::Worker => "worker",
        }
    }
}

/// A process of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterMember {
    /// Its id, unique in the cluster and new at each start.
    pub id: String,
    /// What it does.
    pub kind: MemberKind,
    /// Where it runs: the name of the machine, or the address at which clients reach it.
    pub address: String,
    /// What a worker offers to servers that ask for it.
    pub labels: Vec<String>,
    /// How many servers a worker runs at most.
    pub capacity: u32,
    /// How many servers a worker runs, or how many requests a replica has in flight.
    pub load: u32,
    /// The version of toolhub.
    pub version: String,
    /// Whether it is about to end and takes no new work.
    pub draining: bool,
    /// The time since its last sign of life, by the clock of the database. Ignored when it is stored.
    pub silent_for: Duration,
}

/// An instance of a server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct InstanceKey {
    /// The id of the server.
    pub server: String,
    /// The number of a shared instance, or a digest of the caller whose instance it is.
    pub instance: String,
}

/// A worker holds an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// The instance.
    pub key: InstanceKey,
    /// The worker.
    pub worker: String,
    /// The number of this placement. No other placement has it.
    pub epoch: i64,
    /// How long the lease still lasts, by the clock of the database.
    pub remaining_lease: Duration,
}

/// A placement that a worker was given. Its lease may have ended since.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HeldPlacement {
    /// The instance.
    pub key: InstanceKey,
    /// The number of the placement.
    pub epoch: i64,
}

/// Stores members and placements.
pub trait ClusterStore: Send + Sync {
    /// Stores a sign of life of a member. Returns the time of the database in milliseconds since 1970.
    fn beat(&self, member: ClusterMember) -> BoxFuture<'_, Result<i64, StoreError>>;

    /// Removes a member.
    fn leave(&self, id: String) -> BoxFuture<'_, Result<(), StoreError>>;

    /// The members with a sign of life within this time. Those without one for much longer are removed.
    fn members(&self, within: Duration) -> BoxFuture<'_, Result<Vec<ClusterMember>, StoreError>>;

    /// The placements whose lease has not ended.
    fn placements(&self) -> BoxFuture<'_, Result<Vec<Placement>, StoreError>>;

    /// The placement of an instance, unless its lease has ended.
    fn placement(&self, key: InstanceKey) -> BoxFuture<'_, Result<Option<Placement>, StoreError>>;

    /// Places an instance on a worker if no other worker holds it. Returns the epoch.
    fn claim(
        &self,
        key: InstanceKey,
        worker: String,
        lease: Duration,
    ) -> BoxFuture<'_, Result<Option<i64>, StoreError>>;

    /// Extends leases that have not ended, and returns these. The others are lost.
    fn renew(
        &self,
        worker: String,
        held: Vec<HeldPlacement>,
        lease: Duration,
    ) -> BoxFuture<'_, Result<Vec<HeldPlacement>, StoreError>>;

    /// Gives up a placement.
    fn release(&self, worker: String, held: HeldPlacement) -> BoxFuture<'_, Result<(), StoreError>>;
}
