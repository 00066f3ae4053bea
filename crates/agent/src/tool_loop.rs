//! The tool-calling loop with a model: runs the calls of each reply and returns the results to the model, until it answers
//! without a call.

use std::time::Instant;

use futures_util::future::join_all;
use toolhub_core::lang::{Localize as _, LocalizedText};
use toolhub_core::model::{
    ChatMessage, ChatReply, ChatRequest, ModelCall, OfferedTool, StopReason, ToolChoice, ToolPresentation,
};
use toolhub_core::{CallId, EventKind, RUN_SCRIPT, RawObject, ToolCall, ToolName};
use toolhub_planner::plan::{Complexity, PlanStep, StepId};

use crate::agent_context::AgentContext;
use crate::answer::{render_result, same_call};
use crate::call_tool::{self, CallTarget};
use crate::execute::finish_step;
use crate::language::detect_language;
use crate::model_session::{ModelSession, ReplyError};
use crate::script_call::fenced_script;
use crate::step_result::StepResult;

/// Maximum number of calls run per reply; further calls are dropped.
const MAX_CALLS_PER_REPLY: usize = 16;
/// How often in a row a model may make identical calls, as their results will not change.
const MAX_IDENTICAL_CALLS: u32 = 3;

/// The result of the loop.
pub(crate) struct LoopResult {
    /// The final text of the model; empty if there is none.
    pub(crate) text: String,
    /// The calls that were made.
    pub(crate) steps: Vec<StepResult>,
    /// Why the loop ended early, if it did.
    pub(crate) failure: Option<ReplyError>,
    /// The calls of the client's functions that the last reply made.
    pub(crate) client_calls: Vec<ModelCall>,
    /// Why the last reply ended.
    pub(crate) stop: StopReason,
}

impl LoopResult {
    fn failed(text: String, steps: Vec<StepResult>, why: ReplyError) -> Self {
        Self { text, steps, failure: Some(why), client_calls: Vec::new(), stop: StopReason::End }
    }
}

/// A conversation that the loop continues.
pub(crate) struct Conversation<'a> {
    pub(crate) chat: ChatRequest,
    /// The request that is answered.
    pub(crate) request: &'a str,
    /// Functions that the client runs. The loop ends when the model calls one, after the other calls of that reply.
    pub(crate) client_tools: &'a [OfferedTool],
}

/// Runs the loop until the model answers without a call.
pub(crate) async fn run_tool_loop(
    session: &ModelSession<'_>,
    agent_context: &AgentContext<'_>,
    Conversation { mut chat, request, client_tools }: Conversation<'_>,
) -> LoopResult {
    let mut steps: Vec<StepResult> = Vec::new();
    let mut repeats = Repeats::default();
    let purpose = || LocalizedText::new("the next step", "下一步");
    loop {
        if session.rounds_left() <= 1 {
            // The last reply must be text.
            chat.choice = ToolChoice::Forbidden;
            // Some models ignore `tool_choice`: state it in a message as well.
            if !steps.is_empty() {
                chat.messages.push(ChatMessage::User(final_answer_instruction(request).to_owned()));
            }
        }
        let reply = match session.ask(chat.clone(), purpose()).await {
            Ok(reply) if client_tools.iter().any(|tool| tool.name.as_str() == RUN_SCRIPT) => reply,
            Ok(reply) => with_script(reply, &chat),
            Err(why) => return LoopResult::failed(String::new(), steps, why),
        };
        let stuck = repeats.count > MAX_IDENTICAL_CALLS;
        if reply.calls.is_empty() && reply.unreadable.is_empty() {
            return LoopResult {
                text: reply.text,
                steps,
                failure: stuck.then(repeated_calls_error),
                client_calls: Vec::new(),
                stop: reply.stop,
            };
        }
        if stuck {
            return LoopResult::failed(reply.text, steps, repeated_calls_error());
        }
        if chat.choice == ToolChoice::Forbidden {
            let why = ReplyError::Budget(LocalizedText::new(
                "the limit of model requests for this request is reached before the model finished",
                "该请求询问模型的次数已用完，模型还没有结束",
            ));
            return LoopResult::failed(reply.text, steps, why);
        }
        repeats.record(&reply.calls);
        if repeats.count > MAX_IDENTICAL_CALLS {
            // The results of the repeated calls are in the conversation: require an answer in text.
            chat.choice = ToolChoice::Forbidden;
            continue;
        }
        // The model was required to call a tool once.
        if chat.choice == ToolChoice::Required {
            chat.choice = ToolChoice::Free;
        }
        let is_of_client = |call: &ModelCall| client_tools.iter().any(|tool| tool.name == call.tool);
        let mut reply = reply;
        let (client_calls, tool_calls) = std::mem::take(&mut reply.calls).into_iter().partition(is_of_client);
        reply.calls = tool_calls;
        let text = reply.text.clone();
        answer_calls(agent_context, &mut chat, &mut steps, reply, request).await;
        let is_deferred = agent_context.supervisor.is_some_and(|supervisor| supervisor.has_deferred());
        if is_deferred || !client_calls.is_empty() {
            return LoopResult { text, steps, failure: None, client_calls, stop: StopReason::Calls };
        }
    }
}

/// The reply with the script in its text as a call, if the model writes calls as text and can run scripts.
fn with_script(mut reply: ChatReply, chat: &ChatRequest) -> ChatReply {
    let offers_scripts = chat.tools.iter().any(|tool| tool.name.as_str() == RUN_SCRIPT);
    let writes_text = chat.tool_presentation == ToolPresentation::InSystemPrompt;
    if reply.calls.is_empty() && offers_scripts && writes_text && chat.choice != ToolChoice::Forbidden {
        // A model that repeats what a tool or the user wrote does not write a script.
        let is_own = |code: &String| !chat.messages.iter().any(|message| repeats(message, code));
        reply.calls.extend(fenced_script(&reply.text).filter(is_own).map(|code| ModelCall {
            id: CallId::generate(),
            tool: ToolName::new(RUN_SCRIPT),
            arguments: RawObject::default().with("code", code).into_raw(),
            source: None,
            repaired: Vec::new(),
        }));
    }
    reply
}

/// Whether a message that the model did not write contains the code.
fn repeats(message: &ChatMessage, code: &str) -> bool {
    match message {
        ChatMessage::User(text) | ChatMessage::Tool { text, .. } => text.contains(code.trim()),
        ChatMessage::Assistant { .. } => false,
    }
}

/// Counts identical calls in a row.
#[derive(Default)]
struct Repeats {
    last: Vec<(ToolName, String)>,
    count: u32,
}

impl Repeats {
    fn record(&mut self, calls: &[ModelCall]) {
        let calls: Vec<(ToolName, String)> =
            calls.iter().map(|call| (call.tool.clone(), call.arguments.get().to_owned())).collect();
        self.count = if calls == self.last && !calls.is_empty() { self.count + 1 } else { 1 };
        self.last = calls;
    }
}

fn repeated_calls_error() -> ReplyError {
    ReplyError::Budget(LocalizedText::new(
        format!(
            "the model made the same call more than {MAX_IDENTICAL_CALLS} times in a row, so it was stopped"
        ),
        format!("模型连续 {MAX_IDENTICAL_CALLS} 次以上发出同样的调用，已停止"),
    ))
}

/// Runs the calls of a reply, and appends the reply and the results to the conversation.
async fn answer_calls(
    agent_context: &AgentContext<'_>,
    chat: &mut ChatRequest,
    steps: &mut Vec<StepResult>,
    reply: ChatReply,
    request: &str,
) {
    let calls: Vec<ModelCall> = reply.calls.into_iter().take(MAX_CALLS_PER_REPLY).collect();
    let ids: Vec<(CallId, ToolName)> =
        calls.iter().map(|call| (call.id.clone(), call.tool.clone())).collect();
    chat.messages.push(ChatMessage::Assistant { text: reply.text, calls: calls.clone() });
    let first = steps.len() + 1;
    let planned_calls: Vec<PlannedCall> =
        calls.into_iter().enumerate().map(|(index, call)| planned_call(first + index, call)).collect();
    // Calls run concurrently only if all are read-only; else their order may matter.
    let are_read_only = planned_calls.iter().all(|planned_call| {
        let entry = agent_context.tool(planned_call.call.tool.as_str());
        entry.is_some_and(|entry| entry.tool.hints().read_only == Some(true))
    });
    let results = if are_read_only {
        join_all(
            planned_calls
                .into_iter()
                .map(|planned_call| run_planned_call(agent_context, planned_call, request)),
        )
        .await
    } else {
        let mut results = Vec::new();
        for planned_call in planned_calls {
            results.push(run_planned_call(agent_context, planned_call, request).await);
        }
        results
    };
    for ((call, tool), result) in ids.into_iter().zip(&results) {
        let (mut text, failed) = (render_result(result, agent_context.lang), !result.success());
        if steps.iter().any(|before| same_call(before, result)) {
            text.push_str(repeated_call_note(request));
        }
        chat.messages.push(ChatMessage::Tool { call, tool, text, failed });
    }
    steps.extend(results);
    if !reply.unreadable.is_empty() {
        let wrong: Vec<String> =
            reply.unreadable.iter().map(|text| text.localize(agent_context.lang)).collect();
        chat.messages.push(ChatMessage::User(wrong.join("\n")));
    }
}

/// The message that ends the loop.
fn final_answer_instruction(request: &str) -> &'static str {
    detect_language(request).choose(
        "Nothing more can be called. Answer my request now, in words, from the results above.",
        "不能再调用工具了。请依据上面的结果，现在用文字回答我的请求。",
    )
}

/// Appended to the result of a repeated call, because small models tend to loop.
fn repeated_call_note(request: &str) -> &'static str {
    detect_language(request).choose(
        "\n(you made this call before: if this is what you need, answer in words now)",
        "\n（你已做过同样的调用：如果已够用，请直接用文字回答）",
    )
}

/// A call of the model as a step of the plan.
pub(crate) struct PlannedCall {
    step: PlanStep,
    call: ToolCall,
}

pub(crate) fn planned_call(number: usize, call: ModelCall) -> PlannedCall {
    let CallTarget { tool, arguments, source } = call_tool::target(&call.tool, &call.arguments);
    let description = match arguments.get() {
        "{}" => tool.to_string(),
        arguments => {
            let displayed =
                toolhub_core::text::truncate(arguments, 100).unwrap_or_else(|| arguments.to_owned());
            format!("{tool} {displayed}")
        }
    };
    let step = PlanStep {
        id: StepId::new(number.to_string()),
        description,
        tool: Some(tool.clone()),
        source: None,
        capability: None,
        arguments: Vec::new(),
        dependencies: Vec::new(),
        complexity: Complexity::Simple,
    };
    let source = source.or(call.source);
    let mut call = ToolCall::new(tool.as_str(), arguments).with_coercion();
    call.source = source;
    PlannedCall { step, call }
}

pub(crate) async fn run_planned_call(
    agent_context: &AgentContext<'_>,
    PlannedCall { step, call }: PlannedCall,
    request: &str,
) -> StepResult {
    let started = Instant::now();
    agent_context.emit(EventKind::StepStarted {
        step: step.id.to_string(),
        description: step.description.clone(),
        tool: step.tool.clone(),
    });
    let (outcome, waited) = agent_context.call(call.clone(), request).await;
    let result = finish_step(&step, agent_context, call, outcome, started + waited).await;
    agent_context.emit(EventKind::StepFinished {
        step: step.id.to_string(),
        took: result.took,
        error: result.error.clone(),
    });
    result
}
