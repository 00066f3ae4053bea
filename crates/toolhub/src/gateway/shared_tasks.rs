//! The tasks that clients have created at any of the hubs that share a store: one entry per task.
//!
//! A task belongs to the principal that created it. If a server issues the same id to two principals, neither has access, unless
//! the server was restarted in between, which only the hub that has both connections can tell. A child process of one hub numbers
//! its tasks independently of those of other hubs, so that its tasks are bound to that hub.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use toolhub_client_config::TransportSpec;
use toolhub_core::RawJson;
use toolhub_core::hex;
use toolhub_core::ports::{HubStore, StoreError};
use toolhub_core::shared_state::{EntryFilter, EntryReplacement, NewEntry, ReplicaId, StateEntry, StateKind};
use toolhub_mcp_client::Server;
use toolhub_mcp_client::config::Instances;

use super::principal_task::{MAX_TASKS, PrincipalTask, TaskLocation};
use crate::server_set::ServerSet;

const KIND: StateKind = StateKind::Task;
/// How long a task is known.
const RETENTION: Duration = Duration::from_secs(30 * 86_400);
/// Number of hexadecimal digits of the digest of a task's id, with which the id of its entry begins.
const TASK_DIGITS: usize = 32;
/// How often an entry is read again that other hubs change at the same time.
const MAX_ATTEMPTS: usize = 16;
/// One of this many new tasks deletes the oldest ones of its principal beyond the limit.
const TRIM_INTERVAL: u32 = 32;

/// The content of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct StoredTask {
    server: String,
    task: String,
    /// The hub whose child process has the task; `None` if every hub reaches the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hub: Option<i64>,
    /// The hub whose connection created the task, and the number of its reconnects to the server.
    epoch: (i64, u32),
    /// Whether the server issued the same id to another principal.
    #[serde(default)]
    is_ambiguous: bool,
}

impl StoredTask {
    fn of(entry: &StateEntry) -> Option<Self> {
        serde_json::from_str(entry.value.get()).ok()
    }

    fn to_json(&self) -> Result<RawJson, StoreError> {
        let text = serde_json::to_string(self).map_err(|error| StoreError(error.to_string().into()))?;
        RawJson::parse(text).map_err(|error| StoreError(error.to_string().into()))
    }

    /// Whether the server was restarted between the creations of two tasks with the same id.
    fn is_before_restart(&self, later: &Self) -> bool {
        self.epoch.0 == later.epoch.0 && self.epoch.1 != later.epoch.1
    }
}

/// The tasks in a shared store.
pub(super) struct SharedTasks {
    store: Arc<dyn HubStore>,
    servers: Arc<ServerSet>,
}

impl SharedTasks {
    pub(super) fn new(store: Arc<dyn HubStore>, servers: Arc<ServerSet>) -> Self {
        Self { store, servers }
    }

    /// Records a task of a principal.
    pub(super) async fn insert(
        &self,
        server: &Server,
        task: &str,
        principal: Option<&str>,
    ) -> Result<(), StoreError> {
        let scope = principal.unwrap_or_default();
        let replica = self.store.replica();
        let stored = StoredTask {
            server: server.id().to_string(),
            task: task.to_owned(),
            hub: is_child_process(server).then_some(replica.0),
            epoch: (replica.0, server.restarts()),
            is_ambiguous: false,
        };
        let slot = slot_of(&stored, instance_of(server, principal));
        for _ in 0..MAX_ATTEMPTS {
            let entry = NewEntry {
                kind: KIND,
                id: format!("{}{}", task_digest(task), digest(&[&slot, scope])),
                scope: scope.to_owned(),
                slot: Some(slot.clone()),
                value: stored.to_json()?,
                expires_at: SystemTime::now() + RETENTION,
            };
            if self.store.create_entry(entry).await?.is_some() {
                if fastrand::u32(..TRIM_INTERVAL) == 0 {
                    self.store.trim_entries(KIND, scope, MAX_TASKS).await?;
                }
                return Ok(());
            }
            let Some(occupant) = self.store.entry_in_slot(KIND, &slot).await? else { continue };
            if self.settle(&occupant, &stored, scope).await? {
                return Ok(());
            }
        }
        let why = "too many others create this task at the same time";
        Err(StoreError(toolhub_core::lang::LocalizedText::new(why, "过多请求同时创建此任务")))
    }

    /// Compares a task with an earlier one of the same id. Returns false if the caller must try again.
    async fn settle(&self, occupant: &StateEntry, new: &StoredTask, scope: &str) -> Result<bool, StoreError> {
        let Some(before) = StoredTask::of(occupant) else {
            self.store.remove_entry(KIND, &occupant.id, &occupant.revision).await?;
            return Ok(false);
        };
        if occupant.scope != scope && before.is_before_restart(new) {
            // The restarted server has forgotten the earlier task.
            self.store.remove_entry(KIND, &occupant.id, &occupant.revision).await?;
            return Ok(false);
        }
        let is_ambiguous = before.is_ambiguous || occupant.scope != scope;
        let replacement = EntryReplacement {
            kind: KIND,
            id: occupant.id.clone(),
            expected: occupant.revision.clone(),
            slot: occupant.slot.clone(),
            value: StoredTask { is_ambiguous, ..new.clone() }.to_json()?,
            expires_at: SystemTime::now() + RETENTION,
        };
        Ok(self.store.replace_entry(replacement).await?.is_some())
    }

    /// The tasks of a principal, or those with one id, latest first.
    pub(super) async fn find(
        &self,
        task: Option<&str>,
        principal: Option<&str>,
    ) -> Result<Vec<PrincipalTask>, StoreError> {
        let prefix = task.map(task_digest).unwrap_or_default();
        let scope = Some(principal.unwrap_or_default());
        let filter = EntryFilter { scope, prefix: &prefix, ..EntryFilter::all(KIND) };
        let mut tasks = Vec::new();
        for entry in self.store.entries(filter).await?.iter().rev() {
            let Some(stored) = StoredTask::of(entry) else { continue };
            if stored.is_ambiguous || task.is_some_and(|task| stored.task != task) {
                continue;
            }
            if let Some(location) = self.location(&stored).await? {
                tasks.push(PrincipalTask { task: Arc::from(stored.task), location });
            }
        }
        Ok(tasks)
    }

    /// Where a task can be reached; `None` if its server was removed from the configuration.
    async fn location(&self, stored: &StoredTask) -> Result<Option<TaskLocation>, StoreError> {
        let server = self.servers.find(&stored.server);
        match stored.hub.map(ReplicaId) {
            Some(hub) if hub != self.store.replica() => {
                Ok(server.is_some().then_some(if self.store.is_alive(hub).await? {
                    TaskLocation::OtherHub
                } else {
                    TaskLocation::EndedHub
                }))
            }
            _ => Ok(server.map(TaskLocation::Here)),
        }
    }
}

/// Whether each hub has a process of its own of this server. The process of a worker serves all hubs.
fn is_child_process(server: &Server) -> bool {
    matches!(server.spec().transport, TransportSpec::Stdio(_)) && !server.is_remote()
}

/// The principal of the instance, if each principal has an instance of its own.
fn instance_of<'a>(server: &Server, principal: Option<&'a str>) -> Option<&'a str> {
    match server.spec().instances {
        Instances::Caller { .. } => principal,
        _ => None,
    }
}

/// What must be different for two tasks to be different ones, for all principals together.
fn slot_of(task: &StoredTask, instance: Option<&str>) -> String {
    let hub = task.hub.map(|hub| ReplicaId(hub).to_string()).unwrap_or_default();
    let instance = instance.map(|principal| format!("of {principal}")).unwrap_or_default();
    digest(&[&task.server, &hub, &instance, &task.task])
}

fn task_digest(task: &str) -> String {
    let mut text = digest(&[task]);
    text.truncate(TASK_DIGITS);
    text
}

/// The SHA-256 of these parts, in hexadecimal digits.
fn digest(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_le_bytes());
        hash.update(part.as_bytes());
    }
    hex::encode(&hash.finalize())
}
