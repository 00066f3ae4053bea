//! Calls that became tasks of their server (2026-07-28, the extension `tasks`): which server's each is, and who made it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolhub_core::RawJson;
use toolhub_mcp::Server;

/// Tasks of one maker that are remembered; for an older one every server is asked.
const MAX_TASKS: usize = 1_000;

/// Under which name whoever made a task was let in.
type Maker = Option<Arc<str>>;

/// What is known of a task.
pub(super) enum Whose {
    /// It is at that server.
    At(Arc<Server>),
    /// Somebody else made it.
    Anothers,
    /// Nothing.
    Unknown,
}

#[derive(Debug, Default)]
struct Known {
    owners: HashMap<String, (Arc<Server>, Maker)>,
    /// The tasks of each maker, oldest first: a maker that has many forgets its own, and not those of another.
    order: HashMap<Maker, VecDeque<String>>,
}

/// The tasks that are known.
#[derive(Debug, Default)]
pub(super) struct Tasks(Mutex<Known>);

impl Tasks {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers whose task a result tells of, if it does.
    pub(super) fn note(
        &self,
        result: &RawJson,
        maker: Option<&str>,
        server: impl FnOnce() -> Option<Arc<Server>>,
    ) {
        // Most results tell of none, and one look at the text spares them being read.
        if !result.get().contains("\"taskId\"") {
            return;
        }
        let members = result.object().unwrap_or_default();
        let kind = members.get("resultType").and_then(|kind| kind.decode::<String>().ok());
        let task = members.get("taskId").and_then(|task| task.decode::<String>().ok());
        let (Some("task"), Some(task)) = (kind.as_deref(), task) else { return };
        let Some(server) = server() else { return };
        let maker: Maker = maker.map(Arc::from);
        let mut known = self.known();
        if known.owners.insert(task.clone(), (server, Maker::clone(&maker))).is_some() {
            return;
        }
        let order = known.order.entry(maker).or_default();
        order.push_back(task);
        let oldest = if order.len() > MAX_TASKS { order.pop_front() } else { None };
        if let Some(oldest) = oldest {
            known.owners.remove(&oldest);
        }
    }

    /// Whose task it is, to who was let in under that name.
    pub(super) fn of(&self, task: &str, asker: Option<&str>) -> Whose {
        match self.known().owners.get(task) {
            Some((server, maker)) if maker.as_deref() == asker => Whose::At(Arc::clone(server)),
            Some(_) => Whose::Anothers,
            None => Whose::Unknown,
        }
    }
}
