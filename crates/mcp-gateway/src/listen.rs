//! Notifications that belong to no request: changes of lists and of subscribed resources.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Deserialize;
use tokio::sync::broadcast::error::RecvError;
use toolhub_core::{RawJson, RawObject};

use crate::Gateway;
use crate::backend::{News, RpcError};
use crate::budget::{Permit, Principal, Resource};
use crate::message::{Params, notification};
use crate::session::Session;

/// Maximum length of a URI that can be subscribed to, in bytes.
const MAX_URI_BYTES: usize = 4 << 10;

/// The notifications that a modern client has requested.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Wanted {
    tools_list_changed: bool,
    prompts_list_changed: bool,
    resources_list_changed: bool,
    resource_subscriptions: BTreeSet<String>,
}

impl Wanted {
    pub(super) fn of(params: &Params) -> Self {
        let wanted = params.members.get("notifications").and_then(|wanted| wanted.decode().ok());
        wanted.unwrap_or_default()
    }

    /// Takes the stream and its subscriptions out of a principal's budget, all or none.
    pub(super) fn permits(&self, principal: &Principal) -> Result<ListenPermits, RpcError> {
        let resources = || self.resource_subscriptions.iter();
        resources().try_for_each(|uri| check_uri(uri))?;
        let stream = principal.take(Resource::Streams, 1)?;
        let permits = resources().map(|uri| Ok((uri.clone(), principal.take(Resource::Subscriptions, 1)?)));
        Ok(ListenPermits { stream, subscriptions: permits.collect::<Result<_, RpcError>>()? })
    }

    /// The first message on the stream: the notifications that will be sent.
    pub(super) fn acknowledgement(&self, id: &RawJson) -> String {
        let mut agreed = RawObject::default();
        let lists = [
            ("toolsListChanged", self.tools_list_changed),
            ("promptsListChanged", self.prompts_list_changed),
            ("resourcesListChanged", self.resources_list_changed),
        ];
        for (name, _) in lists.iter().filter(|(_, wanted)| *wanted) {
            agreed.set(*name, true);
        }
        if !self.resource_subscriptions.is_empty() {
            agreed.set("resourceSubscriptions", RawJson::of(&self.resource_subscriptions));
        }
        let params = tagged(None, id).with("notifications", agreed).into_raw();
        notification("notifications/subscriptions/acknowledged", Some(&params))
    }

    /// Returns the notification of a change for the stream with that id, if it was requested.
    pub(super) fn told(&self, news: &News, id: &RawJson) -> Option<String> {
        let wanted = match news {
            News::Tools => self.tools_list_changed,
            News::Prompts => self.prompts_list_changed,
            News::Resources => self.resources_list_changed,
            News::Updated { uri, .. } => self.resource_subscriptions.contains(&**uri),
        };
        wanted.then(|| {
            let (method, params) = notice(news);
            notification(method, Some(&tagged(params, id).into_raw()))
        })
    }
}

/// The permits of a notification stream.
pub(super) struct ListenPermits {
    pub(super) stream: Permit,
    /// One per resource.
    pub(super) subscriptions: Vec<(String, Permit)>,
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
pub(super) fn farewell(id: &RawJson) -> RawJson {
    let meta = RawObject::default().with("io.modelcontextprotocol/subscriptionId", id.clone());
    RawObject::default().with("resultType", "complete").with("_meta", meta).into_raw()
}

fn notice(news: &News) -> (&'static str, Option<&RawJson>) {
    match news {
        News::Tools => ("notifications/tools/list_changed", None),
        News::Prompts => ("notifications/prompts/list_changed", None),
        News::Resources => ("notifications/resources/list_changed", None),
        News::Updated { params, .. } => ("notifications/resources/updated", Some(params)),
    }
}

/// The notifications that all lists may have changed.
pub(super) fn all_lists_changed() -> impl Iterator<Item = String> {
    [News::Tools, News::Prompts, News::Resources].into_iter().map(|news| {
        let (method, params) = notice(&news);
        notification(method, params)
    })
}

/// Returns the notification of a change for a legacy client, if it applies to the client.
fn told_to(session: &Session, news: &News) -> Option<String> {
    let wanted = match news {
        News::Tools | News::Prompts | News::Resources => true,
        News::Updated { uri, .. } => session.watches(uri),
    };
    let (method, params) = notice(news);
    wanted.then(|| notification(method, params))
}

impl Gateway {
    /// Sends notifications to a legacy client until its session ends.
    pub(super) async fn tell(self: Arc<Self>, session: Arc<Session>, tell: impl Fn(String)) {
        let mut news = self.backend.news();
        loop {
            let piece = tokio::select! {
                () = session.closing.cancelled() => return,
                () = self.closing.cancelled() => return,
                piece = news.recv() => piece,
            };
            match piece {
                Ok(piece) => {
                    if let Some(text) = told_to(&session, &piece) {
                        tell(text);
                    }
                }
                // Notifications were lost. A redundant refresh of the lists does no harm.
                Err(RecvError::Lagged(_)) => {
                    all_lists_changed().for_each(&tell);
                }
                Err(RecvError::Closed) => return,
            }
        }
    }
}
