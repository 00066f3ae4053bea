//! `waiting`: held calls and decisions about them.

use std::time::{Duration, SystemTime};

use axum::body::Body;
use http::{Response, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use toolhub::held_calls::{DecideError, Decider, HeldCall, HeldState};
use toolhub_access::may_decide_held_calls;
use toolhub_core::RawJson;
use toolhub_core::audit::HeldCallDecision;
use toolhub_core::lang::LocalizedText;
use toolhub_server::Authenticator as _;

use super::{Page, timestamp};
use crate::problem::Problem;
use crate::request::ConsoleContext;
use crate::route::json_response;

/// A held call.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Held {
    /// Its reference.
    pub(crate) id: String,
    /// `waiting`, `approved`, `denied`, `expired`, `used` or `withdrawn`.
    pub(crate) state: String,
    /// The state for people.
    #[serde(skip)]
    pub(crate) label: LocalizedText,
    /// The id of the principal that made it.
    pub(crate) principal: String,
    pub(crate) profile: String,
    pub(crate) tool: String,
    pub(crate) sources: Vec<String>,
    #[schemars(with = "serde_json::Value")]
    pub(crate) arguments: RawJson,
    /// The rule that holds it.
    pub(crate) rule: String,
    /// The id of the call of the script that made it, if a script did.
    pub(crate) script: Option<String>,
    pub(crate) decided_by: Option<String>,
    pub(crate) at: String,
    pub(crate) expires: String,
    /// Whether the principal of the request may approve it.
    pub(crate) may_approve: bool,
}

pub(crate) async fn list(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    let all = context.query.flag("all")?;
    Ok(json_response(StatusCode::OK, &Page { items: visible(context, all).await?, next: None }))
}

/// The held calls that the principal may see.
pub(crate) async fn visible(context: &ConsoleContext<'_>, all: bool) -> Result<Vec<Held>, Problem> {
    let principal = context.principal();
    let sees_all = may_decide_held_calls(principal.roles);
    // Those of others are read only for principals that may see them.
    let reads_others = sees_all || context.reads_all_calls();
    let owner = (!reads_others).then(|| &**principal.id());
    let mut calls = context.hub().held_calls().list_of(owner).await?;
    calls.retain(|call| {
        let is_held = call.state == HeldState::Held;
        let is_own = call.principal == **principal.id();
        // Decided calls are history: their arguments are for their callers, those who decided, and auditors.
        let was_decided_here = call.state.decided_by() == Some(&**principal.id());
        let may_read = match is_held {
            true => sees_all && principal.may_use_profile(&call.profile),
            false => was_decided_here || context.reads_all_calls(),
        };
        (all || is_held) && (is_own || may_read)
    });
    Ok(calls.iter().rev().map(|call| held(context, call)).collect())
}

fn decider<'a>(context: &'a ConsoleContext<'_>) -> Decider<'a> {
    Decider { principal: context.principal(), is_alone: !context.gateways.access().is_required() }
}

fn held(context: &ConsoleContext<'_>, call: &HeldCall) -> Held {
    let at = |ms: u64| timestamp(SystemTime::UNIX_EPOCH + Duration::from_millis(ms));
    let may_decide = may_decide_held_calls(context.principal().roles);
    Held {
        id: call.id.clone(),
        state: call.state.name().to_owned(),
        label: call.state.label(),
        principal: call.principal.clone(),
        profile: call.profile.clone(),
        tool: call.tool.clone(),
        sources: call.sources.clone(),
        // Approvers decide about everything that is sent.
        arguments: match may_decide {
            true => call.arguments.clone(),
            false => context.visible_arguments(&call.tool, &call.arguments),
        },
        rule: call.rule.clone(),
        script: call.script.clone(),
        decided_by: call.state.decided_by().map(str::to_owned),
        at: at(call.at_ms),
        expires: at(call.expires_ms),
        may_approve: decider(context).may_approve(call),
    }
}

pub(crate) async fn decide(context: &ConsoleContext<'_>, approved: bool) -> Result<Response<Body>, Problem> {
    let (id, hub) = (context.id(), context.hub());
    let call = hub.held_calls().decide(id, approved, decider(context)).await.map_err(|error| {
        let (status, kind) = match &error {
            DecideError::Unknown => (StatusCode::NOT_FOUND, "not-found"),
            DecideError::NotHeld(_) => (StatusCode::CONFLICT, "not-waiting"),
            DecideError::NotApprover | DecideError::OwnCall => (StatusCode::FORBIDDEN, "forbidden"),
            DecideError::Io(_) => (StatusCode::INTERNAL_SERVER_ERROR, "io"),
        };
        Problem::new(status, kind, error.text(id))
    })?;
    let decision = if approved { HeldCallDecision::Approved } else { HeldCallDecision::Denied };
    // The decision is in force: a failure of the log does not undo it.
    let _ = hub.record_held_call(context.principal().id(), &call, decision).await;
    Ok(json_response(StatusCode::OK, &held(context, &call)))
}
