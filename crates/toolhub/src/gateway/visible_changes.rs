//! The changes that one client is notified of: those of what its principal may see when they are delivered.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::stream::{self, BoxStream};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use toolhub_access::Action;
use toolhub_core::{RawJson, ServerId};
use toolhub_mcp_gateway::{ChangeNotification, ToolList};
use toolhub_mcp_wire::Offer;

use super::offers::{ListChange, key_of};
use super::profile_access::ProfileAccess;

/// A change, before it is known which principals it concerns.
#[derive(Debug, Clone)]
pub(super) enum ProfileChange {
    /// The list of tools may have changed.
    Tools,
    /// The list of prompts may have changed: that of a server, or any.
    Prompts { server: Option<ServerId> },
    /// The list of resources may have changed: that of a server, or any.
    Resources { server: Option<ServerId> },
    /// A list of prompts, resources or resource templates was fetched, and differs.
    Fetched(ListChange),
    /// A resource has changed.
    Updated { server: ServerId, uri: Arc<str>, params: RawJson },
}

impl ProfileChange {
    /// All lists may have changed.
    pub(super) const ALL_LISTS: [Self; 3] =
        [Self::Tools, Self::Prompts { server: None }, Self::Resources { server: None }];

    /// The server that the change concerns.
    pub(super) fn server(&self) -> Option<&ServerId> {
        match self {
            Self::Tools => None,
            Self::Prompts { server } | Self::Resources { server } => server.as_ref(),
            Self::Fetched(change) => Some(&change.server),
            Self::Updated { server, .. } => Some(server),
        }
    }
}

/// What a principal may see now.
pub(super) struct Visibility<A, T> {
    /// Its permissions.
    pub(super) access: A,
    /// Its list of tools.
    pub(super) tools: T,
}

/// The changes of a profile, as one principal may notice them.
struct VisibleChanges<A, T> {
    visibility: Visibility<A, T>,
    /// The list of tools after the last change.
    tools: Arc<ToolList>,
    changes: broadcast::Receiver<ProfileChange>,
    /// Changes to handle before those of the channel.
    backlog: VecDeque<ProfileChange>,
}

/// Returns the changes of what a principal may see.
pub(super) fn visible_changes<A, T>(
    changes: broadcast::Receiver<ProfileChange>,
    visibility: Visibility<A, T>,
) -> BoxStream<'static, ChangeNotification>
where
    A: Fn() -> ProfileAccess + Send + 'static,
    T: Fn() -> Arc<ToolList> + Send + 'static,
{
    let tools = (visibility.tools)();
    let visible = VisibleChanges { visibility, tools, changes, backlog: VecDeque::new() };
    Box::pin(stream::unfold(visible, |mut visible| async move {
        let notification = visible.next().await?;
        Some((notification, visible))
    }))
}

impl<A: Fn() -> ProfileAccess, T: Fn() -> Arc<ToolList>> VisibleChanges<A, T> {
    async fn next(&mut self) -> Option<ChangeNotification> {
        loop {
            let change = match self.backlog.pop_front() {
                Some(change) => change,
                None => match self.changes.recv().await {
                    Ok(change) => change,
                    // Changes were lost. A redundant refresh of the lists does no harm.
                    Err(RecvError::Lagged(_)) => {
                        self.backlog.extend(ProfileChange::ALL_LISTS);
                        continue;
                    }
                    Err(RecvError::Closed) => return None,
                },
            };
            if let Some(notification) = self.notification(change) {
                return Some(notification);
            }
        }
    }

    /// The notification of a change, if it concerns what the principal may see now.
    fn notification(&mut self, change: ProfileChange) -> Option<ChangeNotification> {
        let access = (self.visibility.access)();
        let is_unrestricted = access.permissions().is_none();
        match change {
            ProfileChange::Tools => {
                let before = std::mem::replace(&mut self.tools, (self.visibility.tools)());
                let is_same = Arc::ptr_eq(&before, &self.tools) || *before == *self.tools;
                (!is_same).then_some(ChangeNotification::Tools)
            }
            // A restricted principal is notified once the list is fetched, if its part of the list differs.
            ProfileChange::Prompts { server } => {
                (server.is_none() || is_unrestricted).then_some(ChangeNotification::Prompts)
            }
            ProfileChange::Resources { server } => {
                (server.is_none() || is_unrestricted).then_some(ChangeNotification::Resources)
            }
            ProfileChange::Fetched(change) => {
                // An unrestricted principal was notified of an announced change at once.
                let is_visible = if is_unrestricted { change.is_promised } else { differs(&change, &access) };
                is_visible.then_some(match change.offer {
                    Offer::Prompts => ChangeNotification::Prompts,
                    Offer::Resources | Offer::ResourceTemplates => ChangeNotification::Resources,
                })
            }
            ProfileChange::Updated { server, uri, params } => access
                .reads_resource(&server, &uri, Action::Subscribe)
                .then(|| ChangeNotification::Updated { server, uri, params }),
        }
    }
}

/// Whether the visible parts of a list before and after differ.
fn differs(change: &ListChange, access: &ProfileAccess) -> bool {
    let is_visible = |item: &&RawJson| {
        let key = key_of(change.offer, item);
        key.is_some_and(|key| access.sees_key(change.offer, &change.server, &key))
    };
    let before = change.before.iter().filter(is_visible).map(RawJson::get);
    let after = change.after.iter().filter(is_visible).map(RawJson::get);
    !before.eq(after)
}
