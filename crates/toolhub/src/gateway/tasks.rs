//! Records which principal created each task. A principal can access only its own tasks.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolhub_core::{RawJson, ServerId};
use toolhub_mcp_client::Server;
use toolhub_mcp_client::config::Instances;

/// Limit of recorded tasks per principal. The oldest is evicted first; a principal cannot evict tasks of another.
const MAX_TASKS: usize = 4_096;

/// The name of a principal; `None` if there is only one.
type Principal = Option<Arc<str>>;
/// A task: its server, the principal of the server instance if each principal has its own instance, and the task id.
type Key = (ServerId, Option<Principal>, Arc<str>);

#[derive(Debug)]
struct Owner {
    server: Arc<Server>,
    /// The restart count of the server when it issued the id.
    restarts: u32,
    /// `None` if the server issued the same id to two principals: then neither has access.
    principal: Option<Principal>,
}

#[derive(Debug, Default)]
struct OwnerTable {
    owners: HashMap<Key, Owner>,
    /// The tasks of each principal, oldest first.
    of: HashMap<Principal, VecDeque<Key>>,
}

/// The recorded tasks of all profiles.
#[derive(Debug, Default)]
pub(super) struct TaskOwners(Mutex<OwnerTable>);

impl TaskOwners {
    fn table(&self) -> MutexGuard<'_, OwnerTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the principal that created the task, if the result creates one.
    pub(super) fn note(
        &self,
        result: &RawJson,
        principal: Option<&str>,
        server: impl FnOnce() -> Option<Arc<Server>>,
    ) {
        // Most results create no task: a substring search avoids parsing them.
        if !result.get().contains("\"taskId\"") {
            return;
        }
        if let (Some(task), Some(server)) = (created(result), server()) {
            self.table().insert(server, &task, &principal.map(Arc::from));
        }
    }

    /// The servers where this principal created a task with that id, latest first.
    pub(super) fn servers(&self, task: &str, principal: Option<&str>) -> Vec<Arc<Server>> {
        let table = self.table();
        let own = table.of(principal).rev().filter(|(_, _, id)| **id == *task);
        own.filter_map(|key| table.owned(key, principal)).collect()
    }

    /// All tasks of this principal, latest first.
    pub(super) fn all(&self, principal: Option<&str>) -> Vec<(Arc<Server>, Arc<str>)> {
        let table = self.table();
        let own = table.of(principal).rev();
        own.filter_map(|key| Some((table.owned(key, principal)?, Arc::clone(&key.2)))).collect()
    }
}

impl OwnerTable {
    fn of(&self, principal: Option<&str>) -> impl DoubleEndedIterator<Item = &Key> {
        self.of.get(&principal.map(Arc::from)).into_iter().flatten()
    }

    fn owned(&self, key: &Key, principal: Option<&str>) -> Option<Arc<Server>> {
        let owner = self.owners.get(key)?;
        let same = owner.principal.as_ref().is_some_and(|owner| owner.as_deref() == principal);
        same.then(|| Arc::clone(&owner.server))
    }

    fn insert(&mut self, server: Arc<Server>, task: &str, principal: &Principal) {
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
        self.owners.insert(key.clone(), Owner { server, restarts, principal: Some(principal.clone()) });
        let own = self.of.entry(principal.clone()).or_default();
        own.push_back(key);
        if own.len() > MAX_TASKS
            && let Some(oldest) = own.pop_front()
            && self.owners.get(&oldest).is_some_and(|owner| owner.principal.as_ref() == Some(principal))
        {
            self.owners.remove(&oldest);
        }
    }
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
