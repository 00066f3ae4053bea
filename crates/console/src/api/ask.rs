//! `ask`: requests in natural language. The agent acts as the local user, so that only the local user may use it.

use axum::body::Body;
use http::{Response, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;
use toolhub::Hub;

use super::Empty;
use crate::asking::{self, Question};
use crate::problem::Problem;
use crate::request::Context;
use crate::route::json;

const MAX_REQUEST_BYTES: usize = 32 << 10;
const MAX_CONVERSATION_BYTES: usize = 64;

/// A request in natural language.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct AskRequest {
    request: String,
    /// The conversation that it continues.
    #[serde(default)]
    conversation: Option<String>,
}

/// The answer to a confirmation.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct ConfirmRequest {
    allow: bool,
}

pub(crate) fn ask(context: &Context<'_>) -> Result<Response<Body>, Problem> {
    let AskRequest { request, conversation } = context.json()?;
    if request.trim().is_empty() || request.len() > MAX_REQUEST_BYTES {
        return Err(Problem::bad_request(
            format!("a request has 1 to {MAX_REQUEST_BYTES} bytes: say what you want"),
            format!("请求应为 1 到 {MAX_REQUEST_BYTES} 字节：请说明想做什么"),
        ));
    }
    let is_id = |id: &str| {
        !id.is_empty()
            && id.len() <= MAX_CONVERSATION_BYTES
            && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    let conversation = conversation.filter(|id| is_id(id)).unwrap_or_else(Hub::new_conversation);
    let question = Question { text: request, conversation, lang: context.lang };
    Ok(asking::ask(context.gateways, context.confirmations, question))
}

pub(crate) fn confirm(context: &Context<'_>) -> Result<Response<Body>, Problem> {
    let ConfirmRequest { allow } = context.json()?;
    if context.confirmations.answer(context.id(), context.principal().id(), allow) == Ok(true) {
        return Ok(json(StatusCode::OK, &Empty {}));
    }
    Err(Problem::not_found("no request waits for this confirmation", "没有请求在等待此确认"))
}
