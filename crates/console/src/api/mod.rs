//! The resources of the JSON API. Pages of the console show the same data.

pub(crate) mod access;
pub(crate) mod ask;
pub(crate) mod audit;
pub(crate) mod calls;
pub(crate) mod clients;
pub(crate) mod cluster;
pub(crate) mod config;
mod disabled_tool;
pub(crate) mod held_calls;
pub(crate) mod offered_names;
pub(crate) mod overview;
mod own_edit;
pub(crate) mod routes;
pub(crate) mod run;
pub(crate) mod search;
pub(crate) mod server_edit;
pub(crate) mod server_entry;
pub(crate) mod servers;
pub(crate) mod skills;
pub(crate) mod tools;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use axum::body::Body;
use http::Response;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolhub::Gateways;
use toolhub_access::DECIDERS;
use toolhub_core::{BoxFuture, Role, Roles, Secret};

use crate::browser::Cookies;
use crate::browser_sessions::BrowserSessions;
use crate::events::{IsLive, StreamAccess};
use crate::folder_sessions::SessionOwner;
use crate::problem::Problem;
use crate::request::{ConsoleContext, Credential};
use crate::route::Parameter;

/// The roles that see the states of servers.
pub(crate) const VIEWERS: &[Role] = &[Role::Viewer, Role::Operator, Role::Auditor, Role::Owner];
/// The roles that see and use tools.
pub(crate) const TOOL_USERS: &[Role] =
    &[Role::Viewer, Role::Caller, Role::Approver, Role::Operator, Role::Auditor, Role::Owner];
const CALLERS: &[Role] = &[Role::Caller, Role::Owner];
const OPERATORS: &[Role] = &[Role::Operator, Role::Owner];
const APPROVERS: &[Role] = DECIDERS;
pub(crate) const AUDITORS: &[Role] = &[Role::Auditor];
/// The roles that see skills.
pub(crate) const SKILL_READERS: &[Role] = &[Role::Operator, Role::Auditor, Role::Owner];
pub(crate) const OWNERS: &[Role] = &[Role::Owner];
/// The roles that see the machines of a cluster.
pub(crate) const CLUSTER_READERS: &[Role] = &[Role::Operator, Role::Auditor, Role::Owner];
/// The roles that see keys and rules.
pub(crate) const ACCESS_READERS: &[Role] = &[Role::Auditor, Role::Owner];

const PROFILE: Parameter = Parameter {
    name: "profile",
    description: "The profile whose tools are meant; the default profile if it is missing.",
    r#type: "string",
};
const LIMIT: Parameter =
    Parameter { name: "limit", description: "Maximum number of items.", r#type: "integer" };
const DETAILS: Parameter = Parameter {
    name: "details",
    description: "`true` for everything that `toolhub --hub` shows.",
    r#type: "boolean",
};
const SINCE: Parameter = Parameter {
    name: "since",
    description: "Only those of this time or later (RFC 3339).",
    r#type: "string",
};
const CURSOR: Parameter =
    Parameter { name: "cursor", description: "`next` of the page before.", r#type: "string" };

/// One page of a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Page<T> {
    pub(crate) items: Vec<T>,
    /// The cursor of the next page, if there is one.
    pub(crate) next: Option<String>,
}

/// An object without members.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Empty {}

/// How long a stream goes on while the store of its session cannot be read.
const MAX_UNCONFIRMED: Duration = Duration::from_secs(60);

/// The request header with the last event that the client has received.
const LAST_EVENT_ID: &str = "last-event-id";

async fn open_events(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    let last = context.headers.get(LAST_EVENT_ID).and_then(|value| value.to_str().ok());
    let last = last.or_else(|| context.query.get("since"));
    let (visible, is_live) = (visible_topics(context), live_check(context));
    context.events.open(context.hub(), last, StreamAccess { handle: &context.handle, visible, is_live }).await
}

/// Which topics of events a principal may see.
pub(crate) fn visible_topics(context: &ConsoleContext<'_>) -> [bool; 3] {
    let has = |roles: &[Role]| roles.iter().any(|role| context.has_role(*role));
    [has(VIEWERS), has(AUDITORS), has(APPROVERS)]
}

/// Checks whether the credential of a request is still valid, for streams that outlive the request.
pub(crate) fn live_check(context: &ConsoleContext<'_>) -> IsLive {
    match &context.caller.credential {
        Credential::Session { .. } => {
            let check = Arc::new(SessionCheck {
                sessions: Arc::clone(context.sessions),
                gateways: Arc::clone(context.gateways),
                token: Cookies::of(context.headers).session(context.is_https).map(Secret::new),
                roles: context.principal().roles,
                confirmed: Mutex::new(Instant::now()),
            });
            Box::new(move || -> BoxFuture<'static, bool> {
                let check = Arc::clone(&check);
                Box::pin(async move { check.is_live().await })
            })
        }
        // The end of a key is announced by its handle; its expiry is not.
        Credential::Key => {
            let (gateways, principal) = (Arc::clone(context.gateways), Arc::clone(context.principal()));
            Box::new(move || -> BoxFuture<'static, bool> {
                Box::pin(std::future::ready(gateways.access().is_current(&principal)))
            })
        }
    }
}

/// A session that a stream depends on.
struct SessionCheck {
    sessions: Arc<BrowserSessions>,
    gateways: Arc<Gateways>,
    token: Option<Secret>,
    roles: Roles,
    /// When the session was read last.
    confirmed: Mutex<Instant>,
}

impl SessionCheck {
    async fn is_live(&self) -> bool {
        let Some(token) = &self.token else { return false };
        let read = self.sessions.live_owner(token.expose()).await;
        let mut confirmed = self.confirmed.lock().unwrap_or_else(PoisonError::into_inner);
        match read {
            Err(_) => return confirmed.elapsed() < MAX_UNCONFIRMED,
            Ok(None) => return false,
            Ok(Some(SessionOwner::Local)) => {}
            // A person whose roles have changed connects again with the new ones.
            Ok(Some(SessionOwner::Person(person))) => {
                let now = self.gateways.access().person_principal(&person);
                if now.is_none_or(|now| now.roles != self.roles) {
                    return false;
                }
            }
        }
        *confirmed = Instant::now();
        true
    }
}

/// A time in RFC 3339, in UTC.
pub(crate) fn timestamp(at: SystemTime) -> String {
    Timestamp::try_from(at).map(|at| format!("{at:.3}")).unwrap_or_default()
}

/// A duration in milliseconds.
pub(crate) fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1_000_000.0).round() / 1_000.0
}
