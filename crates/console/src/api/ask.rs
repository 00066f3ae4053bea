//! `ask`: requests in natural language. The agent acts as the local user, so that only the local user may use it.

use axum::body::Body;
use http::{Response, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolhub::{ArgumentSource, AskOptions, Hub, Plan, PlanStep};
use toolhub_core::lang::LocalizedText;
use toolhub_core::{Localize as _, RawJson, ToolName};

use super::{Empty, live_check};
use crate::asking::{self, AgentPrompt};
use crate::events::wait_for_revocation;
use crate::problem::Problem;
use crate::request::ConsoleContext;
use crate::route::json_response;

const MAX_ASK_BYTES: usize = 32 << 10;
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

/// A plan for a request. Nothing of it has run.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct PlanBody {
    steps: Vec<PlannedStep>,
    /// Why it cannot run as it is, and what to add to the request.
    problems: Vec<String>,
    /// Reasons why it may be wrong.
    doubts: Vec<String>,
    /// Parts of the request that no step covers.
    unserved: Vec<String>,
}

/// A step of a plan.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct PlannedStep {
    id: String,
    description: String,
    /// The tool; a model performs a step without one.
    tool: Option<String>,
    /// The server that must run it, if the request names one.
    server: Option<String>,
    arguments: Vec<PlannedArgument>,
    /// Whether it may change something. It is confirmed before it runs if its tool is marked destructive, or has no hints and a
    /// name such as `delete_row`.
    may_change: bool,
}

/// An argument of a step.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct PlannedArgument {
    name: String,
    /// Its value; in texts `{{ID}}` stands for the result of a step.
    #[schemars(with = "Option<serde_json::Value>")]
    value: Option<RawJson>,
    /// The step whose result it is.
    result_of: Option<String>,
}

pub(crate) async fn plan(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    let prompt = agent_prompt(context)?;
    let options =
        AskOptions { conversation: Some(prompt.conversation), lang: prompt.lang, ..AskOptions::default() };
    let unplanned = |text: LocalizedText| PlanBody {
        steps: Vec::new(),
        problems: vec![text.localize(context.lang)],
        doubts: Vec::new(),
        unserved: Vec::new(),
    };
    let body = match context.hub().plan(&prompt.text, &options).await {
        Ok(Ok(plan)) => plan_body(&plan, context),
        Ok(Err(why)) => unplanned(why),
        Err(error) => unplanned(error.to_string().into()),
    };
    Ok(json_response(StatusCode::OK, &body))
}

fn plan_body(plan: &Plan, context: &ConsoleContext<'_>) -> PlanBody {
    let texts = |all: &[LocalizedText]| all.iter().map(|text| text.localize(context.lang)).collect();
    let argument = |(name, slot): &(String, ArgumentSource)| {
        let (value, result_of) = match slot {
            ArgumentSource::Value(value) | ArgumentSource::Template(value) => (Some(value.clone()), None),
            ArgumentSource::ResultOf(step) => (None, Some(step.to_string())),
        };
        PlannedArgument { name: name.clone(), value, result_of }
    };
    let catalog = context.hub().catalog();
    let may_change = |step: &PlanStep| {
        let is_read_only = |tool: &ToolName| {
            catalog.named(tool.as_str()).all(|entry| entry.tool.hints().read_only == Some(true))
        };
        plan.changing.contains(&step.id) || step.tool.as_ref().is_some_and(|tool| !is_read_only(tool))
    };
    let steps = plan.steps.iter().map(|step| PlannedStep {
        id: step.id.to_string(),
        description: step.description.clone(),
        tool: step.tool.as_ref().map(ToString::to_string),
        server: step.source.clone(),
        arguments: step.arguments.iter().map(argument).collect(),
        may_change: may_change(step),
    });
    PlanBody {
        steps: steps.collect(),
        problems: texts(&plan.problems),
        doubts: texts(&plan.doubts),
        unserved: plan.unserved.clone(),
    }
}

pub(crate) fn ask(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    let prompt = agent_prompt(context)?;
    let is_live = live_check(context);
    let credential_end = async move { wait_for_revocation(&is_live).await };
    Ok(asking::ask(context.gateways, context.confirmations, prompt, credential_end))
}

/// The request in the body.
fn agent_prompt(context: &ConsoleContext<'_>) -> Result<AgentPrompt, Problem> {
    let AskRequest { request, conversation } = context.json()?;
    if request.trim().is_empty() || request.len() > MAX_ASK_BYTES {
        return Err(Problem::bad_request(
            format!("a request has 1 to {MAX_ASK_BYTES} bytes: say what you want"),
            format!("请求应为 1 到 {MAX_ASK_BYTES} 字节：请说明想做什么"),
        ));
    }
    let is_id = |id: &str| {
        !id.is_empty()
            && id.len() <= MAX_CONVERSATION_BYTES
            && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    let conversation = conversation.filter(|id| is_id(id)).unwrap_or_else(Hub::new_conversation);
    Ok(AgentPrompt { text: request, conversation, lang: context.lang })
}

pub(crate) fn confirm(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    let ConfirmRequest { allow } = context.json()?;
    if context.confirmations.answer(context.id(), context.principal().id(), allow) == Ok(true) {
        return Ok(json_response(StatusCode::OK, &Empty {}));
    }
    Err(Problem::not_found("no request waits for this confirmation", "没有请求在等待此确认"))
}
