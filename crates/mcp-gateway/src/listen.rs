//! Notifications that belong to no request: changes of lists and of subscribed resources.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::StreamExt as _;
use serde::Deserialize;
use toolhub_core::{RawJson, RawObject};

use crate::Gateway;
use crate::backend::ChangeNotification;
use crate::budget::{BudgetPermit, BudgetedResource, PrincipalHandle};
use crate::message::{RequestParams, serialize_notification};
use crate::rpc_error::RpcError;
use crate::session::Session;
use crate::subscriptions::Subscriptions;

/// Maximum length of a URI that can be subscribed to, in bytes.
const MAX_URI_BYTES: usize = 4 << 10;

/// The notifications that a modern client has requested.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct NotificationFilter {
    tools_list_changed: bool,
    prompts_list_changed: bool,
    resources_list_changed: bool,
    resource_subscriptions: BTreeSet<String>,
}

impl NotificationFilter {
    pub(super) fn of(params: &RequestParams) -> Self {
        let requested = params.members.get("notifications").and_then(|requested| requested.decode().ok());
        requested.unwrap_or_default()
    }

    /// Takes the stream and its subscriptions out of a principal's budget, all or none.
    pub(super) fn permits(&self, principal: &PrincipalHandle) -> Result<ListenPermits, RpcError> {
        let resources = || self.resource_subscriptions.iter();
        resources().try_for_each(|uri| check_uri(uri))?;
        let stream = principal.take(BudgetedResource::Streams, 1)?;
        let permits =
            resources().map(|uri| Ok((uri.clone(), principal.take(BudgetedResource::Subscriptions, 1)?)));
        Ok(ListenPermits { stream, subscriptions: permits.collect::<Result<_, RpcError>>()? })
    }

    /// The first message on the stream: the notifications that will be sent.
    pub(super) fn acknowledgement(&self, id: &RawJson) -> String {
        let mut acknowledged = RawObject::default();
        let lists = [
            ("toolsListChanged", self.tools_list_changed),
            ("promptsListChanged", self.prompts_list_changed),
            ("resourcesListChanged", self.resources_list_changed),
        ];
        for (name, _) in lists.iter().filter(|(_, requested)| *requested) {
            acknowledged.set(*name, true);
        }
        if !self.resource_subscriptions.is_empty() {
            acknowledged.set("resourceSubscriptions", RawJson::of(&self.resource_subscriptions));
        }
        let params = tagged(None, id).with("notifications", acknowledged).into_raw();
        serialize_notification("notifications/subscriptions/acknowledged", Some(&params))
    }

    /// Returns the notification of a change for the stream with that id, if it was requested. Resources are only requested
    /// if the stream has a subscription to them.
    pub(super) fn notification(
        &self,
        changes: &ChangeNotification,
        id: &RawJson,
        subscriptions: &Subscriptions,
    ) -> Option<String> {
        let requested = match changes {
            ChangeNotification::Tools => self.tools_list_changed,
            ChangeNotification::Prompts => self.prompts_list_changed,
            ChangeNotification::Resources => self.resources_list_changed,
            ChangeNotification::Updated { server, uri, .. } => subscriptions.contain(server, uri),
        };
        requested.then(|| {
            let (method, params) = notification_parts(changes);
            serialize_notification(method, Some(&tagged(params, id).into_raw()))
        })
    }
}

/// The permits of a notification stream.
pub(super) struct ListenPermits {
    pub(super) stream: BudgetPermit,
    /// One per resource.
    pub(super) subscriptions: Vec<(String, BudgetPermit)>,
}

/// Refuses a URI that is too long to be kept for each subscriber.
pub(super) fn check_uri(uri: &str) -> Result<(), RpcError> {
    if uri.len() <= MAX_URI_BYTES {
        return Ok(());
    }
    Err(RpcError::invalid_params(format!("a URI that is subscribed to has at most {MAX_URI_BYTES} bytes")))
}

/// Adds the id of the subscription to the params of a notification.
fn tagged(params: Option<&RawJson>, id: &RawJson) -> RawObject {
    let params = params.and_then(RawJson::object).unwrap_or_default();
    let meta = params.get("_meta").and_then(RawJson::object).unwrap_or_default();
    params.with("_meta", meta.with("io.modelcontextprotocol/subscriptionId", id.clone()))
}

/// The result that ends a subscription on our side.
pub(super) fn closing_result(id: &RawJson) -> RawJson {
    let meta = RawObject::default().with("io.modelcontextprotocol/subscriptionId", id.clone());
    RawObject::default().with("resultType", "complete").with("_meta", meta).into_raw()
}

fn notification_parts(changes: &ChangeNotification) -> (&'static str, Option<&RawJson>) {
    match changes {
        ChangeNotification::Tools => ("notifications/tools/list_changed", None),
        ChangeNotification::Prompts => ("notifications/prompts/list_changed", None),
        ChangeNotification::Resources => ("notifications/resources/list_changed", None),
        ChangeNotification::Updated { params, .. } => ("notifications/resources/updated", Some(params)),
    }
}

/// The notifications that all lists may have changed.
pub(super) fn all_lists_changed() -> impl Iterator<Item = String> {
    [ChangeNotification::Tools, ChangeNotification::Prompts, ChangeNotification::Resources].into_iter().map(
        |changes| {
            let (method, params) = notification_parts(&changes);
            serialize_notification(method, params)
        },
    )
}

/// Returns the notification of a change for a legacy client, if it applies to the client.
fn session_notification(session: &Session, changes: &ChangeNotification) -> Option<String> {
    let requested = match changes {
        ChangeNotification::Tools | ChangeNotification::Prompts | ChangeNotification::Resources => true,
        ChangeNotification::Updated { server, uri, .. } => session.is_subscribed_at(server, uri),
    };
    let (method, params) = notification_parts(changes);
    requested.then(|| serialize_notification(method, params))
}

impl Gateway {
    /// Sends notifications to a legacy client until its session ends.
    pub(super) async fn send_notifications(
        self: Arc<Self>,
        session: Arc<Session>,
        send_notifications: impl Fn(String),
    ) {
        let principal = Arc::clone(session.principal.identity());
        let mut changes = Arc::clone(&self.backend).changes(principal);
        loop {
            let change = tokio::select! {
                () = session.closing.cancelled() => return,
                () = self.closing.cancelled() => return,
                change = changes.next() => change,
            };
            let Some(change) = change else { return };
            if let Some(text) = session_notification(&session, &change) {
                send_notifications(text);
            }
        }
    }
}
