//! The tasks that clients of one process have created, in memory.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use toolhub_core::ServerId;
use toolhub_mcp_client::Server;
use toolhub_mcp_client::config::Instances;

use super::principal_task::MAX_TASKS;

/// The name of a principal; `None` if there is only one.
type Principal = Option<Arc<str>>;
/// A task: its server, the principal of the server instance if each principal has its own instance, and the task id.
type TaskKey = (ServerId, Option<Principal>, Arc<str>);

#[derive(Debug)]
struct TaskOwner {
    server: Arc<Server>,
    /// The restart count of the server when it issued the id.
    restarts: u32,
    /// `None` if the server issued the same id to two principals: then neither has access.
    principal: Option<Principal>,
}

/// The tasks that clients of this process have created.
#[derive(Debug, Default)]
pub(super) struct TaskTable {
    owners: HashMap<TaskKey, TaskOwner>,
    /// The tasks of each principal, oldest first.
    of: HashMap<Principal, VecDeque<TaskKey>>,
}

impl TaskTable {
    /// The servers where this principal created a task with that id, latest first.
    pub(super) fn servers(&self, task: &str, principal: Option<&str>) -> Vec<Arc<Server>> {
        let task_keys = self.of(principal).rev().filter(|(_, _, id)| **id == *task);
        task_keys.filter_map(|key| self.owned(key, principal)).collect()
    }

    /// All tasks of this principal, latest first.
    pub(super) fn all(&self, principal: Option<&str>) -> Vec<(Arc<Server>, Arc<str>)> {
        let task_keys = self.of(principal).rev();
        task_keys.filter_map(|key| Some((self.owned(key, principal)?, Arc::clone(&key.2)))).collect()
    }

    fn of(&self, principal: Option<&str>) -> impl DoubleEndedIterator<Item = &TaskKey> {
        self.of.get(&principal.map(Arc::from)).into_iter().flatten()
    }

    fn owned(&self, key: &TaskKey, principal: Option<&str>) -> Option<Arc<Server>> {
        let owner = self.owners.get(key)?;
        let same = owner.principal.as_ref().is_some_and(|owner| owner.as_deref() == principal);
        same.then(|| Arc::clone(&owner.server))
    }

    pub(super) fn insert(&mut self, server: Arc<Server>, task: &str, principal: &Principal) {
        // Each instance numbers its tasks independently, so two instances can issue the same id.
        let apart = matches!(server.spec().instances, Instances::Caller { .. });
        let instance = apart.then(|| principal.clone());
        let (restarts, key) = (server.restarts(), (server.id().clone(), instance, Arc::from(task)));
        if let Some(owner) = self.owners.get_mut(&key) {
            if owner.principal.as_ref() == Some(principal) {
                owner.restarts = restarts;
                return;
            }
            // A restarted server may reuse ids. Without a restart the server issued the same id to two principals, and the owner
            // of its results is ambiguous.
            if owner.restarts == restarts {
                owner.principal = None;
                return;
            }
        }
        self.owners.insert(key.clone(), TaskOwner { server, restarts, principal: Some(principal.clone()) });
        let principal_tasks = self.of.entry(principal.clone()).or_default();
        principal_tasks.push_back(key);
        if principal_tasks.len() > MAX_TASKS
            && let Some(oldest) = principal_tasks.pop_front()
            && self.owners.get(&oldest).is_some_and(|owner| owner.principal.as_ref() == Some(principal))
        {
            self.owners.remove(&oldest);
        }
    }
}
