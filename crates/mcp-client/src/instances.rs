//! Instances of a server per caller, if configured: a process or session for each principal, stopped when idle, and limited in
//! number.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolhub_core::CallerHandle;
use toolhub_core::lang::LocalizedText;
use toolhub_mcp_wire::McpError;

use crate::config::Instances;
use crate::supervisor::Server;

/// The instances of one server, by principal.
#[derive(Debug)]
pub(crate) struct InstancePool {
    max: usize,
    by_principal: Mutex<HashMap<Box<str>, Arc<Server>>>,
}

impl InstancePool {
    /// The pool for this setting; `None` if all callers share one instance.
    pub(crate) fn of(setting: Instances) -> Option<Self> {
        match setting {
            Instances::Shared => None,
            Instances::Caller { max } => Some(Self { max: max.max(1), by_principal: Mutex::default() }),
        }
    }

    fn by_principal(&self) -> MutexGuard<'_, HashMap<Box<str>, Arc<Server>>> {
        self.by_principal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Server {
    /// The instance for this caller: its own, or this one, which also serves calls without a principal.
    pub(crate) fn instance<'a>(
        self: &'a Arc<Self>,
        caller: Option<&CallerHandle>,
    ) -> Result<Cow<'a, Arc<Self>>, McpError> {
        let Some(pool) = self.pool() else { return Ok(Cow::Borrowed(self)) };
        let Some(principal) = caller.and_then(|caller| caller.principal()) else {
            return Ok(Cow::Borrowed(self));
        };
        let mut instances = pool.by_principal();
        if let Some(own) = instances.get(principal) {
            return Ok(Cow::Owned(Arc::clone(own)));
        }
        if instances.len() >= pool.max {
            // Removes stopped instances. One that was just returned to a caller is still referenced by it.
            instances.retain(|_, instance| Arc::strong_count(instance) > 1 || instance.is_in_use());
        }
        if instances.len() >= pool.max {
            return Err(self.too_many_instances(pool.max));
        }
        let own = Arc::new(self.new_instance());
        instances.insert(principal.into(), Arc::clone(&own));
        Ok(Cow::Owned(own))
    }

    fn too_many_instances(&self, max: usize) -> McpError {
        McpError::permanent(LocalizedText::new(
            format!(
                "it already runs {max} instances, one for each caller: raise `max_instances` for it under `[[servers]]`, \
                 or wait until one has been idle for its `idle_timeout`"
            ),
            format!(
                "它已运行 {max} 个实例（每个调用方一个）：请在 `[[servers]]` 中调大它的 `max_instances`，\
                 或等待某个实例闲置超过 `idle_timeout`"
            ),
        ))
    }

    /// All per-caller instances.
    pub(crate) fn instances(&self) -> Vec<Arc<Self>> {
        self.pool().map(|pool| pool.by_principal().values().cloned().collect()).unwrap_or_default()
    }

    /// Removes and returns all per-caller instances; the caller disconnects them.
    pub(crate) fn take_instances(&self) -> Vec<Arc<Self>> {
        self.pool()
            .map(|pool| pool.by_principal().drain().map(|(_, instance)| instance).collect())
            .unwrap_or_default()
    }
}
