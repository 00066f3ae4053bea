//! The state of a cluster, and what a process that joins one needs: the same in all builds.

use toolhub_core::cluster::{ClusterMember, MemberKind, Placement};
use toolhub_core::lang::{Lang, Localize, LocalizedText};
use toolhub_core::millis::duration_millis;
use toolhub_core::{RawJson, RawObject};

/// Characters of the digest of a caller that are shown.
const SHOWN_DIGEST: usize = 8;

/// Why a process cannot join a cluster.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}", .0.localize(Lang::En))]
pub struct ClusterError(pub LocalizedText);

impl Localize for ClusterError {
    fn localize(&self, lang: Lang) -> String {
        self.0.localize(lang)
    }
}

/// The changes of the worker's settings by the command line.
#[derive(Debug, Clone, Default)]
pub struct WorkerOverrides {
    /// The labels instead of those of `[worker]`.
    pub labels: Option<Vec<String>>,
    /// The capacity instead of that of `[worker]`.
    pub capacity: Option<usize>,
    /// The number of scripts instead of that of `[worker]`.
    pub scripts: Option<usize>,
    /// The number of scripts of skills instead of that of `[worker]`.
    pub skills: Option<usize>,
}

/// The state of the cluster: `{"replicas": […], "workers": […], "placements": […], "degraded": […]}`.
#[derive(Debug, Clone)]
pub struct ClusterStatus {
    /// The members.
    pub members: Vec<ClusterMember>,
    /// The placements whose lease has not ended.
    pub placements: Vec<Placement>,
    /// What does not work.
    pub degraded: Vec<LocalizedText>,
}

impl ClusterStatus {
    /// The members of a kind.
    pub fn members_of(&self, kind: MemberKind) -> impl Iterator<Item = &ClusterMember> {
        self.members.iter().filter(move |member| member.kind == kind)
    }

    /// An instance as it is shown: the start of a digest.
    pub fn shown_instance(instance: &str) -> &str {
        instance.get(..SHOWN_DIGEST).unwrap_or(instance)
    }

    /// As JSON.
    pub fn to_json(&self, lang: Lang) -> RawObject {
        let replica = |member: &ClusterMember| {
            RawObject::default()
                .with("id", member.id.as_str())
                .with("address", member.address.as_str())
                .with("version", member.version.as_str())
                .with("calls", u64::from(member.load))
                .with("silent_ms", duration_millis(member.silent_for))
        };
        let worker = |member: &ClusterMember| {
            RawObject::default()
                .with("id", member.id.as_str())
                .with("address", member.address.as_str())
                .with("version", member.version.as_str())
                .with("labels", RawJson::of(&member.labels))
                .with("capacity", u64::from(member.capacity))
                .with("servers", u64::from(member.load))
                .with("draining", member.draining)
                .with("silent_ms", duration_millis(member.silent_for))
        };
        let placement = |placement: &Placement| {
            RawObject::default()
                .with("server", placement.key.server.as_str())
                .with("instance", Self::shown_instance(&placement.key.instance))
                .with("worker", placement.worker.as_str())
                .with("epoch", RawJson::of(&placement.epoch))
                .with("lease_ms", duration_millis(placement.remaining_lease))
        };
        let list = |objects: Vec<RawObject>| RawJson::of(&objects);
        let degraded: Vec<String> = self.degraded.iter().map(|text| text.localize(lang)).collect();
        RawObject::default()
            .with("replicas", list(self.members_of(MemberKind::Replica).map(replica).collect()))
            .with("workers", list(self.members_of(MemberKind::Worker).map(worker).collect()))
            .with("placements", list(self.placements.iter().map(placement).collect()))
            .with("degraded", RawJson::of(&degraded))
    }
}
