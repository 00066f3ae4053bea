//! `tools/{name}:run` and `questions/{id}:answer`: a call whose progress and questions reach the person who makes it.

use std::sync::Arc;

use axum::body::Body;
use http::{Response, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::mpsc;
use toolhub::ToolUse;
use toolhub_core::RawJson;
use toolhub_mcp_gateway::BudgetedResource;

use super::tools::direct_call;
use super::{Empty, live_check};
use crate::event_response;
use crate::events::{too_many_streams, wait_for_revocation};
use crate::interactive_call::{self, CHANNEL_CAPACITY, PageClient};
use crate::problem::Problem;
use crate::request::ConsoleContext;
use crate::route::json_response;

/// The error code of a question that a person refused to answer.
const REFUSED: i64 = -1;

/// The answer to a question of a server.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct AnswerRequest {
    /// The result of the request, as MCP defines it for its method; an error if it is missing.
    #[serde(default)]
    #[schemars(with = "Option<serde_json::Value>")]
    result: Option<RawJson>,
}

pub(crate) async fn run(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    let call = direct_call(context, ToolUse::Call).await?;
    let permit = context.handle.take(BudgetedResource::Streams, 1).map_err(|_| too_many_streams())?;
    let (events, receiver) = mpsc::channel(CHANNEL_CAPACITY);
    let principal = Arc::clone(context.principal().id());
    let client = PageClient { pending: Arc::clone(context.questions), events, principal };
    let is_live = live_check(context);
    let work = interactive_call::run(Arc::clone(context.gateways), call, client, permit);
    let work = async move {
        // A call ends with the credential that made it.
        tokio::select! {
            () = work => {}
            () = wait_for_revocation(&is_live) => {}
        }
    };
    Ok(event_response::respond(receiver, work))
}

pub(crate) fn answer(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    let AnswerRequest { result } = context.json()?;
    let answer = result.ok_or_else(|| (REFUSED, "the user refused to answer".to_owned()));
    match context.questions.answer(context.id(), context.principal().id(), answer) {
        Ok(true) => return Ok(json_response(StatusCode::OK, &Empty {})),
        Ok(false) => {}
        Err(why) => return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid-answer", why)),
    }
    Err(Problem::not_found("no call waits for this answer", "没有调用在等待此回答"))
}
