//! Records which principal created each task. A principal can access only its own tasks.
//!
//! A hub with a store of its own keeps the table in memory ([`TaskTable`]): tasks of child processes end with it. Hubs that share
//! a store keep it there ([`SharedTasks`]), so that every hub finds the tasks that clients of another one have created.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolhub_core::RawJson;
use toolhub_core::ports::{HubStore, StoreError};
use toolhub_mcp_client::Server;

use super::principal_task::{PrincipalTask, TaskLocation};
use super::shared_tasks::SharedTasks;
use super::task_table::TaskTable;
use crate::server_set::ServerSet;

/// The recorded tasks of all profiles.
pub(super) enum TaskOwners {
    Memory(Mutex<TaskTable>),
    Shared(SharedTasks),
}

impl std::fmt::Debug for TaskOwners {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TaskOwners").finish_non_exhaustive()
    }
}

impl TaskOwners {
    /// The tasks of a hub with this store.
    pub(super) fn of(store: Option<&Arc<dyn HubStore>>, servers: Arc<ServerSet>) -> Self {
        match store {
            Some(store) if store.is_shared() => Self::Shared(SharedTasks::new(Arc::clone(store), servers)),
            _ => Self::Memory(Mutex::default()),
        }
    }

    /// Records the principal that created the task, if the result creates one, before the client learns of it.
    pub(super) async fn note(
        &self,
        result: &RawJson,
        principal: Option<&str>,
        server: impl FnOnce() -> Option<Arc<Server>>,
    ) -> Result<(), StoreError> {
        // Most results create no task: a substring search avoids parsing them.
        if !result.get().contains("\"taskId\"") {
            return Ok(());
        }
        let (Some(task), Some(server)) = (created(result), server()) else { return Ok(()) };
        match self {
            Self::Memory(table) => lock(table).insert(server, &task, &principal.map(Arc::from)),
            Self::Shared(shared) => shared.insert(&server, &task, principal).await?,
        }
        Ok(())
    }

    /// The tasks of this principal with that id, latest first.
    pub(super) async fn find(
        &self,
        task: &str,
        principal: Option<&str>,
    ) -> Result<Vec<PrincipalTask>, StoreError> {
        match self {
            Self::Memory(table) => {
                let servers = lock(table).servers(task, principal);
                Ok(servers.into_iter().map(|server| principal_task(server, Arc::from(task))).collect())
            }
            Self::Shared(shared) => shared.find(Some(task), principal).await,
        }
    }

    /// All tasks of this principal, latest first.
    pub(super) async fn all(&self, principal: Option<&str>) -> Result<Vec<PrincipalTask>, StoreError> {
        match self {
            Self::Memory(table) => Ok(lock(table)
                .all(principal)
                .into_iter()
                .map(|(server, task)| principal_task(server, task))
                .collect()),
            Self::Shared(shared) => shared.find(None, principal).await,
        }
    }
}

fn principal_task(server: Arc<Server>, task: Arc<str>) -> PrincipalTask {
    PrincipalTask { task, location: TaskLocation::Here(server) }
}

fn lock(table: &Mutex<TaskTable>) -> MutexGuard<'_, TaskTable> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The id of the task that a call created: by the extension's `resultType` (2026-07-28), or by `task` (2025-11-25). Returns
/// `None` if keys are ambiguous, since the client could read a different id from the recorded one.
fn created(result: &RawJson) -> Option<String> {
    if result.key_problem().is_some() {
        return None;
    }
    let members = result.object()?;
    let text = |value: Option<&RawJson>| value.and_then(RawJson::text).map(std::borrow::Cow::into_owned);
    if text(members.get("resultType")).as_deref() == Some("task") {
        return text(members.get("taskId"));
    }
    text(members.get("task")?.object()?.get("taskId"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognizes_results_that_create_tasks() {
        let check = |text: &str, expect: Option<&str>| {
            assert_eq!(created(&RawJson::parse(text).unwrap()).as_deref(), expect, "{text}");
        };
        check(r#"{"resultType":"task","taskId":"t"}"#, Some("t"));
        check(r#"{"task":{"taskId":"t","status":"working"}}"#, Some("t"));
        check(r#"{"resultType":"complete","taskId":"t"}"#, None);
        check(r#"{"content":[{"text":"\"taskId\""}]}"#, None);
        // A client that reads the first of two duplicate keys would get an id that belongs to another principal.
        check(r#"{"resultType":"task","taskId":"t","taskId":"u"}"#, None);
        check(r#"{"resultType":"task","taskId":"t","\u0074askId":"u"}"#, None);
        check(r#"{"task":{"taskId":"t"},"task":{"taskId":"u"}}"#, None);
    }
}
