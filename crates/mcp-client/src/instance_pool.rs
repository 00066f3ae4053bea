//! The instances of one server per caller, in memory. `instances` decides which of them serves a call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolhub_core::Principal;

use crate::config::Instances;

/// The instances (`I`) of one server, by principal.
#[derive(Debug)]
pub(crate) struct InstancePool<I> {
    max: usize,
    by_principal: Mutex<HashMap<Box<str>, PooledInstance<I>>>,
}

/// The instance of a principal.
#[derive(Debug)]
pub(crate) struct PooledInstance<I> {
    pub(crate) server: Arc<I>,
    /// The key that it was created for.
    pub(crate) key: Option<Arc<Principal>>,
}

impl<I> InstancePool<I> {
    /// The pool for this setting; `None` if all callers share one instance.
    pub(crate) fn of(setting: Instances) -> Option<Self> {
        match setting {
            Instances::Shared => None,
            Instances::Caller { max } => Some(Self { max: max.max(1), by_principal: Mutex::default() }),
        }
    }

    /// Maximum number of instances.
    pub(crate) fn max(&self) -> usize {
        self.max
    }

    pub(crate) fn by_principal(&self) -> MutexGuard<'_, HashMap<Box<str>, PooledInstance<I>>> {
        self.by_principal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All instances.
    pub(crate) fn all(&self) -> Vec<Arc<I>> {
        self.by_principal().values().map(|instance| Arc::clone(&instance.server)).collect()
    }

    /// Removes and returns all instances; the caller disconnects them.
    pub(crate) fn take_all(&self) -> Vec<Arc<I>> {
        self.by_principal().drain().map(|(_, instance)| instance.server).collect()
    }
}
