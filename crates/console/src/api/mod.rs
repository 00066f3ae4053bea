//! The resources of the JSON API. Pages of the console show the same data.

pub(crate) mod access;
pub(crate) mod ask;
pub(crate) mod audit;
pub(crate) mod calls;
pub(crate) mod config;
pub(crate) mod overview;
pub(crate) mod search;
pub(crate) mod server_edit;
pub(crate) mod servers;
pub(crate) mod skills;
pub(crate) mod tools;
pub(crate) mod waiting;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::body::Body;
use http::{Response, StatusCode};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolhub_core::Role;

use crate::browser::Cookies;
use crate::events::{IsLive, StreamAccess};
use crate::openapi;
use crate::problem::Problem;
use crate::request::{Context, Credential};
use crate::route::{Parameter, Permission, ResponseKind, Route, Verb, json, schema_of};
use crate::session::SessionOwner;

/// The roles that see the states of servers.
pub(crate) const VIEWERS: &[Role] = &[Role::Viewer, Role::Operator, Role::Auditor, Role::Owner];
/// The roles that see and use tools.
pub(crate) const TOOL_USERS: &[Role] =
    &[Role::Viewer, Role::Caller, Role::Approver, Role::Operator, Role::Auditor, Role::Owner];
const CALLERS: &[Role] = &[Role::Caller, Role::Owner];
const OPERATORS: &[Role] = &[Role::Operator, Role::Owner];
const APPROVERS: &[Role] = &[Role::Approver, Role::Owner];
pub(crate) const AUDITORS: &[Role] = &[Role::Auditor];
/// The roles that see skills.
pub(crate) const SKILL_READERS: &[Role] = &[Role::Operator, Role::Auditor, Role::Owner];
pub(crate) const OWNERS: &[Role] = &[Role::Owner];
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

/// Every route of the API.
pub(crate) const ROUTES: &[Route] = &[
    Route {
        method: Verb::Get,
        path: "openapi.json",
        permission: Permission::Authenticated,
        summary: "This API as an OpenAPI 3.1 document",
        parameters: &[],
        request: None,
        response: ResponseKind::Json(schema_of::<serde_json::Value>),
        handler: |_| Box::pin(std::future::ready(Ok(json(StatusCode::OK, &openapi::document(ROUTES))))),
    },
    Route {
        method: Verb::Get,
        path: "me",
        permission: Permission::Authenticated,
        summary: "The principal of the request and its roles",
        parameters: &[],
        request: None,
        response: ResponseKind::Json(schema_of::<overview::Me>),
        handler: |context| Box::pin(std::future::ready(overview::me(context))),
    },
    Route {
        method: Verb::Post,
        path: "session:end",
        permission: Permission::Authenticated,
        summary: "Ends the session of a browser",
        parameters: &[],
        request: None,
        response: ResponseKind::Json(schema_of::<Empty>),
        handler: |context| Box::pin(std::future::ready(overview::end_session(context))),
    },
    Route {
        method: Verb::Get,
        path: "health",
        permission: Permission::AnyOf(VIEWERS),
        summary: "What does not work",
        parameters: &[],
        request: None,
        response: ResponseKind::Json(schema_of::<overview::HealthBody>),
        handler: |context| Box::pin(std::future::ready(overview::health(context))),
    },
    Route {
        method: Verb::Get,
        path: "stats",
        permission: Permission::AnyOf(VIEWERS),
        summary: "Calls, failures and latencies of the last days",
        parameters: &[DETAILS],
        request: None,
        response: ResponseKind::Json(schema_of::<overview::Stats>),
        handler: |context| Box::pin(overview::stats(context)),
    },
    Route {
        method: Verb::Get,
        path: "events",
        permission: Permission::AnyOf(TOOL_USERS),
        summary: "Which parts have changed, as server-sent events",
        parameters: &[Parameter {
            name: "since",
            description: "The id of an earlier event, if `Last-Event-ID` is missing.",
            r#type: "string",
        }],
        request: None,
        response: ResponseKind::Events,
        handler: |context| Box::pin(open_events(context)),
    },
    Route {
        method: Verb::Get,
        path: "servers",
        permission: Permission::AnyOf(VIEWERS),
        summary: "The servers and their states",
        parameters: &[],
        request: None,
        response: ResponseKind::Json(schema_of::<Page<servers::Server>>),
        handler: |context| Box::pin(std::future::ready(servers::list(context))),
    },
    Route {
        method: Verb::Get,
        path: "servers/{id}",
        permission: Permission::AnyOf(VIEWERS),
        summary: "A server",
        parameters: &[],
        request: None,
        response: ResponseKind::Json(schema_of::<servers::ServerDetail>),
        handler: |context| Box::pin(std::future::ready(servers::get(context))),
    },
    Route {
        method: Verb::Post,
        path: "servers",
        permission: Permission::AnyOf(OPERATORS),
        summary: "Adds a server to `mcp.json`, or shows the change",
        parameters: &[],
        request: Some(schema_of::<server_edit::NewServer>),
        response: ResponseKind::Json(schema_of::<server_edit::ServerChange>),
        handler: |context| Box::pin(server_edit::add(context)),
    },
    Route {
        method: Verb::Patch,
        path: "servers/{id}",
        permission: Permission::AnyOf(OPERATORS),
        summary: "Enables or disables a server",
        parameters: &[],
        request: Some(schema_of::<server_edit::ServerPatch>),
        response: ResponseKind::Json(schema_of::<servers::ServerDetail>),
        handler: |context| Box::pin(server_edit::patch(context)),
    },
    Route {
        method: Verb::Delete,
        path: "servers/{id}",
        permission: Permission::AnyOf(OPERATORS),
        summary: "Removes a server from its file, with its login and its stored data",
        parameters: &[],
        request: None,
        response: ResponseKind::Json(schema_of::<Empty>),
        handler: |context| Box::pin(server_edit::remove(context)),
    },
    Route {
        method: Verb::Get,
        path: "servers/{id}/log",
        permission: Permission::AnyOf(OPERATORS),
        summary: "The last lines of the standard error of a server",
        parameters: &[],
        request: None,
        response: ResponseKind::Json(schema_of::<servers::ServerLog>),
        handler: |context| Box::pin(std::future::ready(servers::log(context))),
    },
    Route {
        method: Verb::Post,
        path: "servers/{id}:test",
        permission: Permission::AnyOf(OPERATORS),
        summary: "Connects to a server and lists its tools again",
        parameters: &[],
        request: None,
        response: ResponseKind::Json(schema_of::<servers::ServerDetail>),
        handler: |context| Box::pin(servers::test(context)),
    },
    Route {
        method: Verb::Post,
        path: "servers/{id}:restart",
        permission: Permission::AnyOf(OPERATORS),
        summary: "Ends a server, closes its circuit breaker and starts it again",
        parameters: &[],
        request: None,
        response: ResponseKind::Json(schema_of::<servers::ServerDetail>),
        handler: |context| Box::pin(servers::restart(context)),
    },
    Route {
        method: Verb::Get,
        path: "tools",
        permission: Permission::AnyOf(TOOL_USERS),
        summary: "The tools that the principal may see, by name",
        parameters: tools::PARAMETERS,
        request: None,
        response: ResponseKind::Json(schema_of::<Page<tools::ListedTool>>),
        handler: |context| Box::pin(tools::list(context)),
    },
    Route {
        method: Verb::Get,
        path: "tools/{name}",
        permission: Permission::AnyOf(TOOL_USERS),
        summary: "A tool with its definition",
        parameters: &[PROFILE],
        request: None,
        response: ResponseKind::Json(schema_of::<tools::ToolDetail>),
        handler: |context| Box::pin(tools::get(context)),
    },
    Route {
        method: Verb::Post,
        path: "tools/{name}:check",
        permission: Permission::AnyOf(TOOL_USERS),
        summary: "Checks arguments against the schema of a tool, without a call",
        parameters: &[],
        request: Some(schema_of::<tools::CallRequest>),
        response: ResponseKind::Json(schema_of::<tools::Check>),
        handler: |context| Box::pin(tools::check(context)),
    },
    Route {
        method: Verb::Post,
        path: "tools/{name}:call",
        permission: Permission::AnyOf(CALLERS),
        summary: "Calls a tool. With the header `Idempotency-Key` a repeated request runs once",
        parameters: &[],
        request: Some(schema_of::<tools::CallRequest>),
        response: ResponseKind::Json(schema_of::<tools::CallResult>),
        handler: |context| Box::pin(tools::call(context)),
    },
    Route {
        method: Verb::Post,
        path: "tools/{name}:approve",
        permission: Permission::AnyOf(APPROVERS),
        summary: "Approves the present definition of a tool of a server",
        parameters: &[PROFILE],
        request: Some(schema_of::<tools::ApproveRequest>),
        response: ResponseKind::Json(schema_of::<tools::ToolDetail>),
        handler: |context| Box::pin(tools::approve(context)),
    },
    Route {
        method: Verb::Post,
        path: "search",
        permission: Permission::AnyOf(TOOL_USERS),
        summary: "The best tools for a request in natural language, with their scores",
        parameters: &[],
        request: Some(schema_of::<search::SearchRequest>),
        response: ResponseKind::Json(schema_of::<search::SearchBody>),
        handler: |context| Box::pin(search::search(context)),
    },
    Route {
        method: Verb::Post,
        path: "explain",
        permission: Permission::AnyOf(TOOL_USERS),
        summary: "The route of a call and its reasons, without running it",
        parameters: &[],
        request: Some(schema_of::<tools::ExplainRequest>),
        response: ResponseKind::Json(schema_of::<tools::Explanation>),
        handler: |context| Box::pin(tools::explain(context)),
    },
    Route {
        method: Verb::Post,
        path: "ask",
        permission: Permission::LocalUser,
        summary: "Runs a request in natural language as the local user, as server-sent events",
        parameters: &[],
        request: Some(schema_of::<ask::AskRequest>),
        response: ResponseKind::Events,
        handler: |context| Box::pin(std::future::ready(ask::ask(context))),
    },
    Route {
        method: Verb::Post,
        path: "ask/{id}:confirm",
        permission: Permission::LocalUser,
        summary: "Answers a confirmation that a request waits for",
        parameters: &[],
        request: Some(schema_of::<ask::ConfirmRequest>),
        response: ResponseKind::Json(schema_of::<Empty>),
        handler: |context| Box::pin(std::future::ready(ask::confirm(context))),
    },
    Route {
        method: Verb::Get,
        path: "calls",
        permission: Permission::AnyOf(TOOL_USERS),
        summary: "Calls, newest first: all of them for auditors, otherwise those of the principal",
        parameters: calls::PARAMETERS,
        request: None,
        response: ResponseKind::Json(schema_of::<Page<calls::ListedCall>>),
        handler: |context| Box::pin(calls::list(context)),
    },
    Route {
        method: Verb::Get,
        path: "calls/{id}",
        permission: Permission::AnyOf(TOOL_USERS),
        summary: "A call with its arguments, attempts and result",
        parameters: &[],
        request: None,
        response: ResponseKind::Json(schema_of::<calls::CallDetail>),
        handler: |context| Box::pin(calls::get(context)),
    },
    Route {
        method: Verb::Get,
        path: "waiting",
        permission: Permission::AnyOf(TOOL_USERS),
        summary: "Held calls: all of them for approvers, otherwise those of the principal",
        parameters: &[Parameter {
            name: "all",
            description: "`true` for decided and expired ones, too.",
            r#type: "boolean",
        }],
        request: None,
        response: ResponseKind::Json(schema_of::<Page<waiting::Held>>),
        handler: |context| Box::pin(std::future::ready(waiting::list(context))),
    },
    Route {
        method: Verb::Post,
        path: "waiting/{id}:approve",
        permission: Permission::AnyOf(APPROVERS),
        summary: "Lets a held call run, once",
        parameters: &[],
        request: None,
        response: ResponseKind::Json(schema_of::<waiting::Held>),
        handler: |context| Box::pin(waiting::decide(context, true)),
    },
    Route {
        method: Verb::Post,
        path: "waiting/{id}:deny",
        permission: Permission::AnyOf(APPROVERS),
        summary: "Refuses a held call",
        parameters: &[],
        request: None,
        response: ResponseKind::Json(schema_of::<waiting::Held>),
        handler: |context| Box::pin(waiting::decide(context, false)),
    },
    Route {
        method: Verb::Get,
        path: "skills",
        permission: Permission::AnyOf(SKILL_READERS),
        summary: "The skills and their states",
        parameters: &[],
        request: None,
        response: ResponseKind::Json(schema_of::<Page<skills::Skill>>),
        handler: |context| Box::pin(std::future::ready(skills::list_skills(context))),
    },
    Route {
        method: Verb::Get,
        path: "profiles",
        permission: Permission::AnyOf(TOOL_USERS),
        summary: "The profiles that the principal may use, and the cost of their lists",
        parameters: &[],
        request: None,
        response: ResponseKind::Json(schema_of::<Page<skills::Profile>>),
        handler: |context| Box::pin(std::future::ready(skills::list_profiles(context))),
    },
    Route {
        method: Verb::Get,
        path: "keys",
        permission: Permission::AnyOf(ACCESS_READERS),
        summary: "The keys, without their secrets",
        parameters: &[],
        request: None,
        response: ResponseKind::Json(schema_of::<Page<access::Key>>),
        handler: |context| Box::pin(std::future::ready(access::list_keys(context))),
    },
    Route {
        method: Verb::Post,
        path: "keys",
        permission: Permission::AnyOf(OWNERS),
        summary: "Makes a key. With the first one, every client of the gateway needs a key",
        parameters: &[],
        request: Some(schema_of::<access::KeyRequest>),
        response: ResponseKind::Json(schema_of::<access::NewSecret>),
        handler: |context| Box::pin(access::create_key(context)),
    },
    Route {
        method: Verb::Post,
        path: "keys/{name}:rotate",
        permission: Permission::AnyOf(OWNERS),
        summary: "Replaces the secret of a key",
        parameters: &[],
        request: None,
        response: ResponseKind::Json(schema_of::<access::NewSecret>),
        handler: |context| Box::pin(access::rotate_key(context)),
    },
    Route {
        method: Verb::Delete,
        path: "keys/{name}",
        permission: Permission::AnyOf(OWNERS),
        summary: "Revokes a key",
        parameters: &[],
        request: None,
        response: ResponseKind::Json(schema_of::<Empty>),
        handler: |context| Box::pin(access::revoke_key(context)),
    },
    Route {
        method: Verb::Get,
        path: "rules",
        permission: Permission::AnyOf(ACCESS_READERS),
        summary: "The rules in force",
        parameters: &[],
        request: None,
        response: ResponseKind::Json(schema_of::<Page<access::Rule>>),
        handler: |context| Box::pin(std::future::ready(access::list_rules(context))),
    },
    Route {
        method: Verb::Post,
        path: "access:simulate",
        permission: Permission::AnyOf(ACCESS_READERS),
        summary: "What a principal may do, or which recorded calls other rules would refuse. Changes nothing",
        parameters: &[],
        request: Some(schema_of::<access::SimulateRequest>),
        response: ResponseKind::Json(schema_of::<access::Simulation>),
        handler: |context| Box::pin(access::simulate(context)),
    },
    Route {
        method: Verb::Get,
        path: "audit",
        permission: Permission::AnyOf(AUDITORS),
        summary: "Records of the audit log, newest first",
        parameters: audit::PARAMETERS,
        request: None,
        response: ResponseKind::Json(schema_of::<Page<audit::Record>>),
        handler: |context| Box::pin(audit::list(context)),
    },
    Route {
        method: Verb::Post,
        path: "audit:verify",
        permission: Permission::AnyOf(AUDITORS),
        summary: "Verifies the chain and the signatures of the audit log",
        parameters: &[],
        request: None,
        response: ResponseKind::Json(schema_of::<audit::Verification>),
        handler: |context| Box::pin(audit::verify(context)),
    },
    Route {
        method: Verb::Get,
        path: "audit/export",
        permission: Permission::AnyOf(AUDITORS),
        summary: "The whole audit log as JSON lines",
        parameters: &[Parameter {
            name: "format",
            description: "`jsonl` (default) or `ocsf`.",
            r#type: "string",
        }],
        request: None,
        response: ResponseKind::Text("application/x-ndjson"),
        handler: |context| Box::pin(audit::export(context)),
    },
    Route {
        method: Verb::Get,
        path: "config",
        permission: Permission::AnyOf(OWNERS),
        summary: "The text of `toolhub.toml` without its secrets, and its version in `ETag`",
        parameters: &[],
        request: None,
        response: ResponseKind::Json(schema_of::<config::Config>),
        handler: |context| Box::pin(std::future::ready(config::get(context))),
    },
    Route {
        method: Verb::Post,
        path: "config:preview",
        permission: Permission::AnyOf(OWNERS),
        summary: "What a new text of `toolhub.toml` would change, without writing it",
        parameters: &[],
        request: Some(schema_of::<config::NewConfig>),
        response: ResponseKind::Json(schema_of::<config::ConfigPreview>),
        handler: |context| Box::pin(std::future::ready(config::preview(context))),
    },
    Route {
        method: Verb::Put,
        path: "config",
        permission: Permission::AnyOf(OWNERS),
        summary: "Replaces the text of `toolhub.toml` if it still has the version in `If-Match`",
        parameters: &[],
        request: Some(schema_of::<config::NewConfig>),
        response: ResponseKind::Json(schema_of::<config::Config>),
        handler: |context| Box::pin(config::put(context)),
    },
];

/// The request header with the last event that the client has received.
const LAST_EVENT_ID: &str = "last-event-id";

async fn open_events(context: &Context<'_>) -> Result<Response<Body>, Problem> {
    let last = context.headers.get(LAST_EVENT_ID).and_then(|value| value.to_str().ok());
    let last = last.or_else(|| context.query.get("since"));
    let (sessions, headers, is_https) =
        (Arc::clone(context.sessions), context.headers.clone(), context.is_https);
    let has = |roles: &[Role]| roles.iter().any(|role| context.has_role(*role));
    let visible = [has(VIEWERS), has(AUDITORS), has(APPROVERS)];
    let is_live = match &context.visitor.credential {
        Credential::Session { .. } => {
            let (gateways, roles) = (Arc::clone(context.gateways), context.principal().roles);
            Box::new(move || {
                // A person whose roles have changed connects again with the new ones.
                let owner =
                    Cookies::of(&headers).session(is_https).and_then(|token| sessions.live_owner(token));
                owner.is_some_and(|owner| match owner {
                    SessionOwner::Local => true,
                    SessionOwner::Person(person) => {
                        gateways.access().person_principal(&person).is_some_and(|now| now.roles == roles)
                    }
                })
            }) as IsLive
        }
        // The end of a key is announced by its handle; its expiry is not.
        Credential::Key => {
            let (gateways, principal) = (Arc::clone(context.gateways), Arc::clone(context.principal()));
            Box::new(move || gateways.access().is_current(&principal)) as IsLive
        }
    };
    context.events.open(context.hub(), last, StreamAccess { handle: &context.handle, visible, is_live }).await
}

/// A time in RFC 3339, in UTC.
pub(crate) fn timestamp(at: SystemTime) -> String {
    Timestamp::try_from(at).map(|at| format!("{at:.3}")).unwrap_or_default()
}

/// A duration in milliseconds.
pub(crate) fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1_000_000.0).round() / 1_000.0
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::openapi::{document, operation_id};

    #[test]
    fn every_route_is_described_once() {
        let document = document(ROUTES);
        let ids: BTreeSet<String> = ROUTES.iter().map(operation_id).collect();
        assert_eq!(ids.len(), ROUTES.len());
        let described = document["paths"].as_object().unwrap().values();
        let operations: usize = described.map(|path| path.as_object().unwrap().len()).sum();
        assert_eq!(operations, ROUTES.len());
        // Every reference leads to a schema.
        let text = document.to_string();
        for reference in text.split("\"#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap();
            assert!(document["components"]["schemas"][name].is_object(), "{name}");
        }
    }
}
