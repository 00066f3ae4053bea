//! Runs a turn of an agent for a request.

use std::sync::Arc;

use toolhub::{AgentTurn, Gateways, TurnError, TurnFailure, TurnRequest, TurnResult};
use toolhub_core::lang::{Lang, Localize as _, LocalizedText};
use toolhub_core::model::{ModelCall, ReplyDelta, ToolChoice};
use toolhub_core::{CallId, Principal, RawJson, Tool};

use crate::conversation::Messages;
use crate::supervisor::TurnSupervisor;
use crate::turn_event::{EndStatus, TurnEnd, TurnEvent};
use crate::turn_log::TurnLog;

/// The language of messages to clients, which are programs.
pub(crate) const LANG: Lang = Lang::En;

/// A turn that is ready to run.
pub(crate) struct Turn {
    pub(crate) gateways: Arc<Gateways>,
    pub(crate) principal: Arc<Principal>,
    pub(crate) profile: Option<String>,
    /// The agent; `None` for the default agent.
    pub(crate) agent: Option<String>,
    /// The id under which the calls are recorded.
    pub(crate) conversation: String,
    pub(crate) messages: Messages,
    /// The calls that the client has approved.
    pub(crate) approved: Vec<ModelCall>,
    pub(crate) choice: ToolChoice,
    pub(crate) only_tool: Option<String>,
    pub(crate) instructions: Option<String>,
    pub(crate) max_tokens: Option<u32>,
    pub(crate) temperature: Option<f32>,
    pub(crate) answer_schema: Option<(String, RawJson)>,
    pub(crate) supervisor: TurnSupervisor,
}

impl Turn {
    /// The output of the turn.
    pub(crate) fn log(&self) -> Arc<TurnLog> {
        Arc::clone(&self.supervisor.log)
    }

    /// Runs the turn. Dropping the future cancels it and its calls.
    pub(crate) async fn run(self) -> TurnEnd {
        let log = self.log();
        let listener = |delta: ReplyDelta| match delta {
            ReplyDelta::Text(text) => log.feed(TurnEvent::Text(text)),
            ReplyDelta::Thought(text) => log.feed(TurnEvent::Thought(text)),
            ReplyDelta::ToolCallStarted(_) => {}
        };
        let tools = &self.supervisor.tools;
        let instructions = instructions(self.instructions, self.messages.instructions);
        let request = TurnRequest {
            messages: self.messages.before,
            approved: self.approved,
            after: self.messages.after,
            client_tools: &tools.functions,
            choice: self.choice,
            only_tool: self.only_tool.as_deref(),
            answer_schema: self.answer_schema,
            temperature: self.temperature,
        };
        let turn = AgentTurn {
            principal: &self.principal,
            profile: self.profile.as_deref(),
            agent: self.agent.as_deref(),
            selection: &|tool: &Tool| tools.admits(tool),
            instructions: instructions.as_deref(),
            max_tokens: self.max_tokens,
            conversation: &self.conversation,
            request,
            supervisor: &self.supervisor,
            listener: &listener,
            replied: &|| log.feed(TurnEvent::ReplyEnded),
            lang: LANG,
        };
        let taken = tokio::select! {
            biased;
            why = log.full() => return limited(why),
            taken = Box::pin(self.gateways.take_turn(turn)) => taken,
        };
        match taken {
            Ok(result) => end_of(result, &log),
            Err(error) => {
                let status = EndStatus::Failed(turn_error(&error).localize(LANG));
                TurnEnd { client_calls: Vec::new(), status, usage: Default::default() }
            }
        }
    }
}

fn instructions(of_request: Option<String>, of_messages: Vec<String>) -> Option<String> {
    let parts: Vec<String> = of_request.into_iter().chain(of_messages).collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

fn end_of(result: TurnResult, log: &TurnLog) -> TurnEnd {
    let TurnResult { rules_text, client_calls, stop, failure, usage, .. } = result;
    if !rules_text.is_empty() {
        log.feed(TurnEvent::Text(rules_text));
    }
    let status = match failure {
        None => EndStatus::Complete(stop),
        Some(TurnFailure::Limit(why)) => EndStatus::Limit(why.localize(LANG)),
        Some(TurnFailure::Model(why)) => EndStatus::Failed(why.localize(LANG)),
    };
    // Without all of the calls, the client could not continue: it is given none.
    let arguments: usize = client_calls.iter().map(|call| call.arguments.get().len()).sum();
    if let Err(why) = log.reserve(arguments) {
        return TurnEnd { usage, ..limited(why) };
    }
    // Some models reuse ids, by which clients return results.
    let client_calls = client_calls
        .into_iter()
        .map(|call| ModelCall { id: CallId::new(format!("call_{}", crate::new_key())), ..call })
        .collect();
    TurnEnd { client_calls, status, usage }
}

/// The end of a turn that reached a limit of its output.
fn limited(why: String) -> TurnEnd {
    TurnEnd { client_calls: Vec::new(), status: EndStatus::Limit(why), usage: Default::default() }
}

/// Why a turn could not begin.
pub(crate) fn turn_error(error: &TurnError) -> LocalizedText {
    match error {
        TurnError::NoProfile => {
            LocalizedText::new("there is no such profile for this key", "此密钥没有该配置方案")
        }
        TurnError::Agent(error) => error.to_string().into(),
        TurnError::Unreachable(why) => why.clone(),
    }
}
