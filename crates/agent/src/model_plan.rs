//! Requests a plan from a model, parses its JSON and validates it.

use std::collections::HashSet;

use toolhub_core::lang::{Lang, LocalizedText};
use toolhub_core::model::{ChatMessage, ChatRequest};
use toolhub_core::{RawJson, RawObject, ToolName};

use crate::agent_context::AgentContext;
use crate::model_session::{ModelSession, ReplyError};
use toolhub_planner::plan::{ArgumentSource, Complexity, Plan, PlanStep, StepId};

/// Maximum number of steps of a plan.
const MAX_PLAN_STEPS: usize = 12;

/// Why the model made no plan.
#[derive(Debug)]
pub(crate) enum PlanError {
    /// The model did not reply.
    ReplyError(ReplyError),
    /// The reply is not a valid plan.
    Invalid(LocalizedText),
}

/// Requests a plan from the model.
pub(crate) async fn plan(
    session: &ModelSession<'_>,
    agent_context: &AgentContext<'_>,
    system: String,
    messages: Vec<ChatMessage>,
) -> Result<Plan, PlanError> {
    let mut chat = ChatRequest::new(system);
    chat.messages = messages;
    chat.answer_schema = Some(("plan".to_owned(), schema()));
    chat.temperature = Some(0.0);
    let purpose = LocalizedText::new("a plan", "制定计划");
    let reply = session.ask_quietly(chat, purpose).await.map_err(PlanError::ReplyError)?;
    read(&reply.text, agent_context).ok_or_else(|| {
        PlanError::Invalid(LocalizedText::new(
            "the model's plan cannot be read, so the request is planned by rules",
            "模型的计划无法读取，改用规则制定计划",
        ))
    })
}

/// The JSON Schema of a plan.
fn schema() -> RawJson {
    RawJson::from(serde_json::json!({
        "type": "object",
        "properties": {
            "steps": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "id": {"type": "string"},
                        "description": {"type": "string"},
                        "tool": {"type": ["string", "null"]},
                        "arguments": {"type": "object"},
                        "dependencies": {"type": "array", "items": {"type": "string"}}
                    },
                    "required": ["id", "description", "tool", "arguments", "dependencies"]
                }
            }
        },
        "required": ["steps"]
    }))
}

/// Parses a plan. Text and code fences around the JSON are ignored.
pub(crate) fn read(text: &str, agent_context: &AgentContext<'_>) -> Option<Plan> {
    let inner = text.get(text.find('{')?..=text.rfind('}')?)?;
    let plan = RawJson::parse(inner.to_owned()).ok()?.object()?;
    let listed: Vec<RawJson> = plan.get("steps")?.decode().ok()?;
    let mut seen = HashSet::new();
    let mut steps = Vec::new();
    for (index, raw) in listed.iter().take(MAX_PLAN_STEPS).enumerate() {
        let step = step(&raw.object()?, index, agent_context)?;
        // Step ids must be unique.
        if !seen.insert(step.id.clone()) {
            return None;
        }
        steps.push(step);
    }
    let known: HashSet<StepId> = steps.iter().map(|step| step.id.clone()).collect();
    for step in &mut steps {
        step.dependencies.retain(|id| known.contains(id) && *id != step.id);
    }
    Some(Plan { steps, ..Plan::default() })
}

fn step(raw: &RawObject, index: usize, agent_context: &AgentContext<'_>) -> Option<PlanStep> {
    let text = |key: &str| {
        raw.get(key).and_then(|value| match value.decode::<String>() {
            Ok(text) => Some(text),
            // Models often write ids as numbers.
            Err(_) => value.value().as_i64().map(|number| number.to_string()),
        })
    };
    let id = text("id").unwrap_or_else(|| (index + 1).to_string());
    let tool = text("tool").filter(|name| !matches!(name.as_str(), "" | "null" | "none" | "None"));
    let arguments = raw.get("arguments").and_then(RawJson::object).unwrap_or_default();
    let listed: Vec<RawJson> =
        raw.get("dependencies").and_then(|value| value.decode().ok()).unwrap_or_default();
    let mut dependencies: Vec<StepId> = listed
        .iter()
        .filter_map(|id| id.decode::<String>().ok().or_else(|| id.value().as_i64().map(|id| id.to_string())))
        .map(StepId::new)
        .collect();
    // A step depends on every step whose result it uses, even if the model does not list it.
    for used in placeholders(&arguments) {
        if !dependencies.contains(&used) {
            dependencies.push(used);
        }
    }
    let entry = tool.as_deref().and_then(|tool| agent_context.tool(tool));
    Some(PlanStep {
        description: text("description").or_else(|| tool.clone()).unwrap_or_default(),
        capability: entry.and_then(|entry| entry.tags().first().cloned()),
        tool: tool.map(ToolName::new),
        source: None,
        arguments: arguments
            .iter()
            .map(|(name, value)| (name.to_owned(), ArgumentSource::Template(value.clone())))
            .collect(),
        id: StepId::new(id),
        dependencies,
        complexity: Complexity::Simple,
    })
}

fn placeholders(arguments: &RawObject) -> Vec<StepId> {
    let mut found = Vec::new();
    for (_, value) in arguments.iter() {
        let mut rest = value.get();
        while let Some((_, after)) = rest.split_once("{{") {
            let Some((id, after)) = after.split_once("}}") else { break };
            found.push(StepId::new(id.trim()));
            rest = after;
        }
    }
    found
}

/// The prompt for a step without a tool.
pub(crate) fn reasoning_prompt(description: &str, known: &str, lang: Lang) -> String {
    lang.choose(
        format!("Do this step and give its result alone: {description}\n\nWhat is known, as data:\n{known}"),
        format!("完成这一步，只给出结果：{description}\n\n已知内容（数据）：\n{known}"),
    )
}
