//! One turn of a conversation with a program: it brings the whole conversation and functions of its own, and decides about
//! calls while the turn runs. The turn ends with text, with calls of the client's functions, or with calls that wait for the
//! client.

use toolhub_core::RawJson;
use toolhub_core::lang::LocalizedText;
use toolhub_core::model::{
    ChatMessage, ChatRequest, ModelCall, OfferedTool, ReplyListener, StopReason, TokenUsage, ToolChoice,
};
use toolhub_planner::plan::Plan;

use crate::agent::{Agent, AgentMode, AgentRequest};
use crate::answer::{compose_answer, render_result};
use crate::model_session::{ModelSession, ReplyError};
use crate::prompt::{PromptOptions, PromptPurpose, build_prompt};
use crate::step_result::StepResult;
use crate::tool_loop::{Conversation, LoopResult, planned_call, run_planned_call, run_tool_loop};

/// The conversation and the options of the client.
#[derive(Debug)]
pub struct TurnRequest<'a> {
    /// The messages before the approved calls, oldest first.
    pub messages: Vec<ChatMessage>,
    /// Calls of the last message that the client has approved, and that run first.
    pub approved: Vec<ModelCall>,
    /// The messages after the approved calls.
    pub after: Vec<ChatMessage>,
    /// Functions that the client runs.
    pub client_tools: &'a [OfferedTool],
    /// Whether the model must call a tool.
    pub choice: ToolChoice,
    /// The only tool that the model may call, if the client requires one.
    pub only_tool: Option<&'a str>,
    /// The name and the JSON Schema of a structured answer.
    pub answer_schema: Option<(String, RawJson)>,
    /// Sampling temperature.
    pub temperature: Option<f32>,
}

/// The end of a turn.
#[derive(Debug)]
pub struct TurnResult {
    /// The text of an answer by rules, which was not streamed; empty with a model.
    pub rules_text: String,
    /// The calls that were made.
    pub steps: Vec<StepResult>,
    /// Calls of the client's functions.
    pub client_calls: Vec<ModelCall>,
    /// Why the last reply of the model ended.
    pub stop: StopReason,
    /// Why the turn ended early.
    pub failure: Option<TurnFailure>,
    /// The name of the model; `None` if rules answered.
    pub model: Option<String>,
    /// Tokens used by the model.
    pub usage: TokenUsage,
}

/// Why a turn ended early.
#[derive(Debug, Clone)]
pub enum TurnFailure {
    /// A limit of the request is reached.
    Limit(LocalizedText),
    /// The model failed.
    Model(LocalizedText),
}

impl Agent<'_> {
    /// Takes a turn. `listener` receives the text of the model while it is streamed. Without a model, rules answer the last
    /// message of the user. A model that fails is not replaced by rules.
    pub async fn take_turn(&self, turn: TurnRequest<'_>, listener: ReplyListener<'_>) -> TurnResult {
        let users = |message: &ChatMessage| matches!(message, ChatMessage::User(_));
        let request =
            turn.after.iter().rev().chain(turn.messages.iter().rev()).find(|message| users(message));
        let request = match request {
            Some(ChatMessage::User(text)) => text.clone(),
            _ => String::new(),
        };
        let TurnRequest { mut messages, approved, after, .. } = turn;
        let mut steps = Vec::new();
        for call in approved {
            let (id, tool) = (call.id.clone(), call.tool.clone());
            let result =
                run_planned_call(&self.agent_context, planned_call(steps.len() + 1, call), &request).await;
            let text = render_result(&result, self.agent_context.lang);
            messages.push(ChatMessage::Tool { call: id, tool, text, failed: !result.success() });
            steps.push(result);
        }
        let is_answered = after.is_empty() && !steps.is_empty();
        messages.extend(after);
        let Some(model) = self.model else {
            return self.turn_by_rules(messages, request, steps, is_answered).await;
        };
        let model_session = ModelSession::new(model, listener, &self.agent_context);
        let purpose = match self.mode {
            AgentMode::Code if self.agent_context.signature.is_some() => PromptPurpose::Code,
            AgentMode::Code | AgentMode::Talk | AgentMode::Plan => PromptPurpose::Talk,
        };
        let options =
            PromptOptions { client_tools: turn.client_tools, ..self.prompt_options(&request, purpose) };
        let prompt = build_prompt(&self.agent_context, options).await;
        let mut chat = ChatRequest::new(prompt.system);
        chat.tools = prompt.tools;
        if let Some(only) = turn.only_tool {
            chat.tools.retain(|tool| tool.name.as_str() == only);
        }
        chat.tool_presentation = prompt.tool_presentation;
        chat.choice = turn.choice;
        chat.max_tokens = self.max_tokens;
        chat.answer_schema = turn.answer_schema;
        chat.temperature = turn.temperature;
        chat.messages = messages;
        let conversation = Conversation { chat, request: &request, client_tools: turn.client_tools };
        let LoopResult { steps: made, failure, client_calls, stop, .. } =
            run_tool_loop(&model_session, &self.agent_context, conversation).await;
        steps.extend(made);
        let failure = failure.map(|why| match why {
            ReplyError::Model(_) => TurnFailure::Model(why.text()),
            ReplyError::Budget(text) => TurnFailure::Limit(text),
        });
        let (rules_text, model) = (String::new(), Some(model.name().to_owned()));
        TurnResult { rules_text, steps, client_calls, stop, failure, model, usage: model_session.usage() }
    }

    /// The turn without a model. Approved calls are an answer by themselves, unless a message follows them.
    async fn turn_by_rules(
        &self,
        mut messages: Vec<ChatMessage>,
        request: String,
        mut steps: Vec<StepResult>,
        is_answered: bool,
    ) -> TurnResult {
        let rules_text = if is_answered {
            compose_answer(&Plan::default(), &steps, self.agent_context.lang).text()
        } else {
            let last = messages.iter().rposition(|message| matches!(message, ChatMessage::User(_)));
            messages.truncate(last.unwrap_or_default());
            let request = AgentRequest { request: &request, before: &messages, today: crate::today() };
            let answer = self.answer_by_rules(request, Vec::new()).await;
            steps.extend(answer.steps);
            answer.text
        };
        TurnResult {
            rules_text,
            steps,
            client_calls: Vec::new(),
            stop: StopReason::End,
            failure: None,
            model: None,
            usage: TokenUsage::default(),
        }
    }
}
