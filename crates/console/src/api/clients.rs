//! `clients`: the MCP clients that have connected since the hub was started.

use axum::body::Body;
use http::{Response, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use toolhub_core::{Role, Roles};

use super::{Page, timestamp};
use crate::problem::Problem;
use crate::request::ConsoleContext;
use crate::route::json_response;

/// A client as it states its name, with its authenticated principal.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ConnectedClient {
    /// The name that the client states.
    pub(crate) name: String,
    /// A name for people.
    pub(crate) title: Option<String>,
    pub(crate) version: String,
    /// The id of its principal.
    pub(crate) principal: String,
    pub(crate) profile: String,
    /// The revision of the protocol.
    pub(crate) protocol: String,
    /// When it connected last.
    pub(crate) seen_at: String,
}

pub(crate) fn list(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    Ok(json_response(StatusCode::OK, &Page { items: read(context), next: None }))
}

/// The clients that the principal may see, the latest one first: its own, or all.
pub(crate) fn read(context: &ConsoleContext<'_>) -> Vec<ConnectedClient> {
    let sees_all =
        context.has_role([Role::Operator, Role::Auditor, Role::Owner].into_iter().collect::<Roles>());
    let own = context.principal().id();
    let clients = context.gateways.known_clients().into_iter();
    clients
        .filter(|(_, client)| sees_all || *client.principal == **own)
        .map(|(profile, client)| ConnectedClient {
            name: client.name,
            title: client.title,
            version: client.version,
            principal: client.principal,
            profile: profile.to_owned(),
            protocol: client.revision,
            seen_at: timestamp(client.seen_at),
        })
        .collect()
}
