//! Reads the state of a cluster from its database and from the connection to NATS.

use std::collections::BTreeSet;
use std::time::Duration;

use toolhub_cluster::Replica;
use toolhub_cluster::bus::Bus;
use toolhub_core::cluster::{ClusterStore, MemberKind};
use toolhub_core::lang::LocalizedText;

use crate::cluster_status::{ClusterError, ClusterStatus};

/// Members without a sign of life for longer are not shown.
const SHOWN_MEMBERS: Duration = Duration::from_secs(60);
/// A member that is silent for longer counts as degraded.
const SILENT_AFTER: Duration = Duration::from_secs(10);

/// Reads the state of the cluster over the connections of a replica.
pub(crate) fn replica_status(
    replica: &Replica,
) -> impl Future<Output = Result<ClusterStatus, ClusterError>> + Send + 'static {
    let (store, bus) = (replica.store(), replica.bus().clone());
    async move { read_status(&*store, &bus).await }
}

pub(crate) async fn read_status(store: &dyn ClusterStore, bus: &Bus) -> Result<ClusterStatus, ClusterError> {
    let unreachable = |cause: toolhub_core::ports::StoreError| {
        ClusterError(LocalizedText::new(
            format!("the database cannot be read: {cause}"),
            format!("无法读取数据库：{cause}"),
        ))
    };
    let members = store.members(SHOWN_MEMBERS).await.map_err(unreachable)?;
    let placements = store.placements().await.map_err(unreachable)?;
    let mut degraded = Vec::new();
    if !bus.is_connected() {
        degraded.push(LocalizedText::new(
            "NATS cannot be reached from here: check `[cluster] nats` and that the server runs",
            "无法从此处连接 NATS：请检查 `[cluster] nats`，并确认 NATS 服务器正在运行",
        ));
    }
    let of_kind = |kind: MemberKind| members.iter().filter(move |member| member.kind == kind);
    if of_kind(MemberKind::Worker).next().is_none() {
        degraded.push(LocalizedText::new(
            "no worker is running: start `toolhub work`",
            "没有正在运行的工作进程：请运行 `toolhub work`",
        ));
    }
    for member in members.iter().filter(|member| member.silent_for > SILENT_AFTER) {
        let (id, seconds) = (&member.id, member.silent_for.as_secs());
        degraded.push(LocalizedText::new(
            format!("`{id}` has given no sign of life for {seconds} s"),
            format!("`{id}` 已有 {seconds} 秒没有响应"),
        ));
    }
    for placement in &placements {
        if !members.iter().any(|member| member.id == placement.worker) {
            let (server, worker) = (&placement.key.server, &placement.worker);
            degraded.push(LocalizedText::new(
                format!("`{server}` is held by `{worker}`, which is gone, until its lease ends"),
                format!("`{server}` 仍由已消失的 `{worker}` 持有，直到租约到期"),
            ));
        }
    }
    let versions: BTreeSet<&str> = members.iter().map(|member| member.version.as_str()).collect();
    if versions.len() > 1 {
        let versions = versions.into_iter().collect::<Vec<_>>().join(", ");
        degraded.push(LocalizedText::new(
            format!("the members run different versions: {versions}"),
            format!("成员运行的版本不同：{versions}"),
        ));
    }
    Ok(ClusterStatus { members, placements, degraded })
}
