//! Runs a plan. Steps without pending dependencies run concurrently, each by tool name, with a fallback by capability.

use std::collections::HashMap;
use std::time::Instant;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use toolhub_core::lang::{Lang, Localize as _, LocalizedText};
use toolhub_core::{Effect, EventKind, Outcome, RawJson, RawObject, ToolCall, ToolError, ToolName};

use crate::agent_context::AgentContext;
use crate::fill_in::{Results, fill_in};
use crate::step_result::StepResult;
use toolhub_planner::plan::{ArgumentSource, Plan, PlanStep, StepId};

/// Maximum number of concurrent steps.
const MAX_CONCURRENT_STEPS: usize = 8;

/// Performs steps that have no tool, by asking a model.
pub(crate) trait Reasoner: Send + Sync {
    /// Returns the result of the step, given the results of other steps.
    fn reason<'a>(
        &'a self,
        step: &'a PlanStep,
        known: &'a [&'a StepResult],
    ) -> toolhub_core::BoxFuture<'a, Result<String, LocalizedText>>;
}

/// Runs every step of a plan. The results are in the order of the plan.
pub(crate) async fn execute(
    plan: &Plan,
    request: &str,
    agent_context: &AgentContext<'_>,
    reasoner: Option<&dyn Reasoner>,
) -> Vec<StepResult> {
    let mut done: HashMap<StepId, StepResult> = HashMap::new();
    let mut waiting: Vec<&PlanStep> = plan.steps.iter().collect();
    let mut running = FuturesUnordered::new();
    loop {
        let mut index = 0;
        while index < waiting.len() && running.len() < MAX_CONCURRENT_STEPS {
            let step = waiting[index];
            if !step.dependencies.iter().all(|id| done.contains_key(id) || !has_step(plan, id)) {
                index += 1;
                continue;
            }
            waiting.remove(index);
            let dependency_results: Vec<StepResult> =
                step.dependencies.iter().filter_map(|id| done.get(id)).cloned().collect();
            running.push(run(step, request, agent_context, dependency_results, reasoner));
        }
        match running.next().await {
            Some(result) => drop(done.insert(result.id.clone(), result)),
            // Steps of a dependency cycle are never run.
            None => break,
        }
    }
    drop(running);
    let stuck = waiting.into_iter().map(|step| {
        let why = LocalizedText::new("its dependencies form a cycle", "步骤之间存在循环依赖，无法执行");
        failed(step, why, Instant::now())
    });
    done.extend(stuck.map(|result| (result.id.clone(), result)).collect::<Vec<_>>());
    plan.steps.iter().filter_map(|step| done.remove(&step.id)).collect()
}

fn has_step(plan: &Plan, id: &StepId) -> bool {
    plan.steps.iter().any(|step| step.id == *id)
}

async fn run(
    step: &PlanStep,
    request: &str,
    agent_context: &AgentContext<'_>,
    dependency_results: Vec<StepResult>,
    reasoner: Option<&dyn Reasoner>,
) -> StepResult {
    let started = Instant::now();
    agent_context.emit(EventKind::StepStarted {
        step: step.id.to_string(),
        description: step.description.clone(),
        tool: step.tool.clone(),
    });
    let result = match dependency_results.iter().find(|result| !result.success()) {
        Some(failure) => {
            let id = failure.id.display_text();
            failed(
                step,
                LocalizedText::new(
                    format!("step {id}, which it needs, failed"),
                    format!("所依赖的步骤 {id} 失败"),
                ),
                started,
            )
        }
        None => match (&step.tool, reasoner) {
            (Some(_), _) => with_tool(step, request, agent_context, &dependency_results, started).await,
            (None, Some(reasoner)) => {
                let known: Vec<&StepResult> = dependency_results.iter().collect();
                match reasoner.reason(step, &known).await {
                    Ok(text) => StepResult { full_output: text.clone(), text, ..empty(step, started) },
                    Err(why) => failed(step, why, started),
                }
            }
            (None, None) => failed(
                step,
                LocalizedText::new(
                    "no tool does this, and there is no model that could reason about it",
                    "没有工具能做这一步，也没有可用的模型",
                ),
                started,
            ),
        },
    };
    agent_context.emit(EventKind::StepFinished {
        step: step.id.to_string(),
        took: result.took,
        error: result.error.clone(),
    });
    result
}

async fn with_tool(
    step: &PlanStep,
    request: &str,
    agent_context: &AgentContext<'_>,
    dependency_results: &[StepResult],
    started: Instant,
) -> StepResult {
    let Some(name) = &step.tool else { return empty(step, started) };
    let results: Results<'_> = dependency_results.iter().map(|result| (result.id.as_str(), result)).collect();
    let schema = agent_context.tool(name.as_str()).map(|entry| entry.tool.definition.input_schema().clone());
    let arguments = match filled(&step.arguments, &results, schema.as_ref()) {
        Ok(arguments) => arguments,
        Err(why) => return failed(step, why, started),
    };
    let mut call = ToolCall::new(name.as_str(), arguments.clone()).with_coercion();
    call.source.clone_from(&step.source);
    let (mut outcome, mut waited) = agent_context.call(call.clone(), request).await;
    if let (Err(error), Some(capability)) = (&outcome.result, &step.capability)
        && may_fall_back(error)
        && may_be_replaced(step, agent_context)
    {
        let (fallback_outcome, fallback_wait) = agent_context
            .call(ToolCall::by_capability(capability.as_str(), arguments.clone()).with_coercion(), request)
            .await;
        waited += fallback_wait;
        if fallback_outcome.success() {
            outcome = fallback_outcome;
        }
    }
    finish_step(step, agent_context, call, outcome, started + waited).await
}

/// Whether another tool may be tried: this one was unusable, and the call certainly had no effect.
fn may_fall_back(error: &ToolError) -> bool {
    let unusable = matches!(
        error,
        ToolError::UnknownTool(_)
            | ToolError::ConnectionFailed { .. }
            | ToolError::LoginNeeded { .. }
            | ToolError::UnusableSchema { .. }
            | ToolError::Quarantined { .. }
    );
    unusable && error.effect() == Effect::None
}

/// Whether a tool of another source may replace the step's tool: the step names no server, and the tool is read-only. A
/// change must not be redirected.
fn may_be_replaced(step: &PlanStep, agent_context: &AgentContext<'_>) -> bool {
    let reads = |name: &ToolName| {
        let mut named = agent_context.catalog.named(name.as_str()).peekable();
        named.peek().is_some() && named.all(|entry| entry.tool.hints().read_only == Some(true))
    };
    step.source.is_none() && step.tool.as_ref().is_some_and(reads)
}

/// The result of a step from the outcome of its call.
pub(crate) async fn finish_step(
    step: &PlanStep,
    agent_context: &AgentContext<'_>,
    call: ToolCall,
    outcome: Outcome,
    started: Instant,
) -> StepResult {
    let tool = outcome.attempts.last().map_or_else(|| call.tool.clone(), |attempt| attempt.tool.clone());
    let arguments = Some(call.arguments.clone());
    let verification = agent_context.caller.verify(&call, &outcome).await;
    let (text, error) = match &agent_context.brief(&outcome).result {
        Ok(output) => (display_text(output), None),
        Err(error) => {
            (String::new(), Some(LocalizedText::new(error.localize(Lang::En), error.localize(Lang::Zh))))
        }
    };
    let full_output = outcome.result.as_ref().map(display_text).unwrap_or_default();
    let error = error.or_else(|| reported_error(&full_output));
    let base = empty(step, started);
    StepResult {
        tool: Some(tool),
        arguments,
        outcome: Some(outcome),
        text,
        full_output,
        error,
        verification,
        ..base
    }
}

/// Detects errors that a server reports as text, without `isError`.
fn reported_error(text: &str) -> Option<LocalizedText> {
    let trimmed = text.trim_start();
    let failed = ["Error:", "ERROR:", "错误：", "错误:"].iter().any(|word| trimmed.starts_with(word));
    failed.then(|| LocalizedText::from(trimmed.trim_end().to_owned()))
}

/// The output as text: its text blocks, else its structured content.
fn display_text(output: &toolhub_core::ToolOutput) -> String {
    let (texts, _) = output.texts();
    match texts.is_empty() {
        false => texts.join("\n"),
        true => output.structured().map(|data| data.get().to_owned()).unwrap_or_default(),
    }
}

fn filled(
    slots: &[(String, ArgumentSource)],
    results: &Results<'_>,
    schema: Option<&RawJson>,
) -> Result<RawJson, LocalizedText> {
    let mut arguments = RawObject::default();
    for (name, slot) in slots {
        arguments.set(name.clone(), fill_in(name, slot, results, schema)?);
    }
    Ok(arguments.into_raw())
}

pub(crate) fn empty(step: &PlanStep, started: Instant) -> StepResult {
    StepResult {
        id: step.id.clone(),
        description: step.description.clone(),
        tool: step.tool.clone(),
        arguments: None,
        outcome: None,
        text: String::new(),
        full_output: String::new(),
        error: None,
        verification: None,
        took: started.elapsed(),
    }
}

fn failed(step: &PlanStep, why: LocalizedText, started: Instant) -> StepResult {
    StepResult { error: Some(why), ..empty(step, started) }
}
