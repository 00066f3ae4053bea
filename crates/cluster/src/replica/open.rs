//! Finds the worker that holds an instance, or lets one take it, and connects to the instance.

use std::sync::Arc;
use std::time::{Duration, Instant};

use toolhub_core::cluster::{ClusterMember, InstanceKey, MemberKind, Placement};
use toolhub_core::lang::{Lang, Localize as _, LocalizedText};
use toolhub_core::ports::StoreError;
use toolhub_core::shell;
use toolhub_mcp_client::config::ServerSpec;
use toolhub_mcp_client::remote::{RemoteConnection, RemoteInbox};
use toolhub_mcp_wire::McpError;

use super::link::InstanceLink;
use super::{ReplicaState, bus_error};
use crate::bus::BusError;
use crate::clock::millis;
use crate::cluster_protocol::{
    self, CallHead, CallReply, ControlReply, PROTOCOL, PlacementAction, Subjects, WorkerMessage,
    WorkerRefusal, body_json,
};
use crate::exchange::{ACCEPT_TIMEOUT, RequestExchange};

/// Pause before a placement is looked up again.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// How long a worker may take to take an instance. It asks the database.
const PLACE_TIMEOUT: Duration = Duration::from_secs(3);
/// Workers without a sign of life in the database for longer are not asked.
const MEMBER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a caller waits for a worker that can take an instance, while there is none.
const NO_WORKER_TIMEOUT: Duration = Duration::from_secs(3);

/// Connects to an instance. The caller applies the connect timeout.
pub(super) async fn open(
    shared: &Arc<ReplicaState>,
    spec: &ServerSpec,
    owner: Option<&str>,
    inbox: RemoteInbox,
) -> Result<RemoteConnection, McpError> {
    let instance = match owner {
        Some(owner) => owner.to_owned(),
        // Each connection of a replica uses one of several copies.
        None => fastrand::usize(..spec.copies.max(1)).to_string(),
    };
    let key = InstanceKey { server: spec.id.to_string(), instance };
    let mut none_since = None;
    loop {
        let placed =
            shared.member.store.placement(key.clone()).await.map_err(|error| store_error(spec, &error))?;
        let placement = match placed {
            Some(placement) => {
                none_since = None;
                placement
            }
            None => match place(shared, spec, &key).await {
                Ok(placement) => placement,
                // A worker may be about to start, or to end another server.
                Err(PlacementError::NoWorker(why)) => {
                    if none_since.get_or_insert_with(Instant::now).elapsed() >= NO_WORKER_TIMEOUT {
                        return Err(why);
                    }
                    tokio::time::sleep(RETRY_INTERVAL).await;
                    continue;
                }
                Err(PlacementError::Failed(error)) => return Err(error),
            },
        };
        match connect(shared, spec, &placement, inbox.clone()).await {
            Ok(connection) => return Ok(connection),
            Err(ConnectError::Failed(error)) => return Err(error),
            // The worker has ended, or gives the placement up: waits until the lease has ended.
            Err(ConnectError::NotThere) => tokio::time::sleep(RETRY_INTERVAL).await,
        }
    }
}

fn store_error(spec: &ServerSpec, error: &StoreError) -> McpError {
    McpError::connect(LocalizedText::new(
        format!("the worker of `{}` cannot be looked up in the database: {error}", spec.id),
        format!("无法在数据库中查找 `{}` 所在的工作进程：{error}", spec.id),
    ))
}

enum PlacementError {
    /// No worker can take it at present.
    NoWorker(McpError),
    Failed(McpError),
}

/// Lets a worker take the instance: the one with the most room first.
async fn place(
    shared: &Arc<ReplicaState>,
    spec: &ServerSpec,
    key: &InstanceKey,
) -> Result<Placement, PlacementError> {
    let members = shared.member.store.members(MEMBER_TIMEOUT).await;
    let members = members.map_err(|error| PlacementError::Failed(store_error(spec, &error)))?;
    let mut workers = candidates(spec, members).map_err(|why| {
        let (id, both) = (&spec.id, |lang| why.localize(lang));
        PlacementError::NoWorker(McpError::connect(LocalizedText::new(
            format!("no worker can run `{id}`: {}", both(Lang::En)),
            format!("没有工作进程可以运行 `{id}`：{}", both(Lang::Zh)),
        )))
    })?;
    shared.recent_placements.sort(&mut workers);
    let mut refusal = None;
    for worker in workers {
        shared.recent_placements.add(&worker.id);
        let begin_by = shared.member.clock.now().unwrap_or_default().saturating_add(millis(PLACE_TIMEOUT));
        let request = WorkerMessage::Place { key: key.into(), entry: spec.cluster_digest(), begin_by };
        match cluster_protocol::control(
            &shared.bus,
            &worker.id,
            cluster_protocol::write(&request, b""),
            PLACE_TIMEOUT,
        )
        .await
        {
            Ok(ControlReply::Placed { epoch }) => {
                let (key, worker) = (key.clone(), worker.id);
                return Ok(Placement { key, worker, epoch, remaining_lease: Duration::ZERO });
            }
            Ok(ControlReply::Refused { why }) => refusal = Some(why),
            Ok(ControlReply::Done | ControlReply::Waiting(_)) => {}
            Err(error @ BusError::Disconnected) => {
                return Err(PlacementError::Failed(bus_error(&spec.id, &error)));
            }
            Err(error) => {
                refusal = Some(LocalizedText::new(error.localize(Lang::En), error.localize(Lang::Zh)));
            }
        }
    }
    let why = refusal.unwrap_or_else(|| LocalizedText::new("none answers", "没有响应"));
    Err(PlacementError::NoWorker(McpError::connect(LocalizedText::new(
        format!("no worker takes `{}`: {}", spec.id, why.localize(Lang::En)),
        format!("没有工作进程接受 `{}`：{}", spec.id, why.localize(Lang::Zh)),
    ))))
}

/// The workers that may take a server, or why there is none.
fn candidates(spec: &ServerSpec, members: Vec<ClusterMember>) -> Result<Vec<ClusterMember>, LocalizedText> {
    let mut workers: Vec<ClusterMember> =
        members.into_iter().filter(|member| member.kind == MemberKind::Worker && !member.draining).collect();
    if workers.is_empty() {
        return Err(LocalizedText::new(
            "none is running: start `toolhub work` on a machine of the cluster",
            "没有正在运行的工作进程：请在集群的某台机器上运行 `toolhub work`",
        ));
    }
    workers.retain(|worker| spec.labels.iter().all(|label| worker.labels.contains(label)));
    if workers.is_empty() {
        let labels = spec.labels.join(",");
        return Err(LocalizedText::new(
            format!(
                "it requires the labels `{labels}`: start `toolhub work --labels {}`",
                shell::shell_quote(&labels)
            ),
            format!("它要求标签 `{labels}`：请运行 `toolhub work --labels {}`", shell::shell_quote(&labels)),
        ));
    }
    workers.retain(|worker| worker.load < worker.capacity);
    if workers.is_empty() {
        return Err(LocalizedText::new(
            "all that may run it are full: raise `[worker] capacity`, or start another one",
            "可以运行它的工作进程均已满：请调大 `[worker] capacity`，或再启动一个工作进程",
        ));
    }
    Ok(workers)
}

enum ConnectError {
    /// The worker does not hold the placement, or does not live.
    NotThere,
    Failed(McpError),
}

/// Connects to the instance of a placement.
async fn connect(
    shared: &Arc<ReplicaState>,
    spec: &ServerSpec,
    placement: &Placement,
    inbox: RemoteInbox,
) -> Result<RemoteConnection, ConnectError> {
    let failed = |error: &BusError| ConnectError::Failed(bus_error(&spec.id, error));
    let Some(now) = shared.member.clock.now() else { return Err(ConnectError::NotThere) };
    let head = CallHead {
        protocol: PROTOCOL,
        id: shared.new_request_id(),
        from: shared.member.id.clone(),
        epoch: placement.epoch,
        renewed: false,
        begin_by: now.saturating_add(millis(ACCEPT_TIMEOUT)),
        action: PlacementAction::Open,
        forwarding: None,
    };
    let subject = Subjects(&shared.bus).call(&placement.key, placement.epoch);
    let replies = match shared.bus.request(&subject, cluster_protocol::write(&head, b"")).await {
        Ok(replies) => replies,
        Err(BusError::NoResponders) => return Err(ConnectError::NotThere),
        Err(error) => return Err(failed(&error)),
    };
    let mut exchange = RequestExchange::new(replies, &shared.liveness, &placement.worker);
    loop {
        let (reply, body) = match exchange.next::<CallReply>().await {
            Ok(reply) => reply,
            Err(error @ (BusError::Disconnected | BusError::Client(_))) => return Err(failed(&error)),
            // A connection has no effect: it is opened again, here or at another worker.
            Err(_) => return Err(ConnectError::NotThere),
        };
        match reply {
            CallReply::Accepted | CallReply::Running => exchange.accept(),
            CallReply::Opened { connection } => {
                let Some(description) = body_json(&body) else { return Err(ConnectError::NotThere) };
                let link = InstanceLink::new(Arc::clone(shared), placement, connection, inbox);
                shared.register(placement.key.clone(), &link);
                return Ok(RemoteConnection { description, link });
            }
            CallReply::Failed => {
                let Some(failure) = body_json(&body) else { return Err(ConnectError::NotThere) };
                return Err(ConnectError::Failed(toolhub_mcp_client::remote::reported_error(
                    &failure, &spec.id,
                )));
            }
            CallReply::Refused { why: WorkerRefusal::CannotTake { why } } => {
                return Err(ConnectError::Failed(McpError::permanent(why)));
            }
            CallReply::Refused { .. } => return Err(ConnectError::NotThere),
            CallReply::Notification { .. } | CallReply::Question { .. } | CallReply::Result => {}
        }
    }
}
