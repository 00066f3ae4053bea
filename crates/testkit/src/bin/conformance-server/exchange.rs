//! One call of a tool or prompt, with the questions it may put to its caller. Fixtures are written as steps that ask
//! or finish; here each era's way to ask is chosen: modern callers get the questions as a result and call again, legacy
//! callers are asked while their call waits.

use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    ClientCapabilities, ElicitResult, ElicitationAction, ErrorData, InputRequest, InputRequests,
    InputRequiredResult, InputResponses, JsonObject, LoggingLevel, ProtocolVersion, ServerRequest,
};
use rmcp::service::RequestContext;
use serde_json::Value;

use crate::questions::questions;
use crate::world::{Session, World};

/// How long a legacy caller may take over one question.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a legacy caller is asked before the call fails: a modern one decides this for itself.
const ROUNDS: usize = 8;

/// What the caller brings along from the rounds before.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    pub(crate) responses: InputResponses,
    pub(crate) state: Option<String>,
}

/// One call, as its fixture sees it.
pub(crate) struct Exchange {
    pub(crate) context: RequestContext<RoleServer>,
    pub(crate) arguments: JsonObject,
    pub(crate) answers: Answers,
    pub(crate) world: Arc<World>,
    pub(crate) session: Arc<Session>,
}

/// What a fixture makes of the answers so far.
pub(crate) enum Step<R> {
    Ask(InputRequiredResult),
    Done(R),
}

impl<R> Step<R> {
    /// Asks these, with nothing for the caller to carry.
    pub(crate) fn ask<const N: usize>(asked: [(&str, Value); N]) -> Result<Self, ErrorData> {
        Ok(Self::Ask(InputRequiredResult::from_input_requests(questions(asked)?)))
    }
}

impl Exchange {
    pub(crate) fn is_modern(&self) -> bool {
        is_modern(&self.context)
    }

    /// What the caller can do.
    pub(crate) fn capabilities(&self) -> ClientCapabilities {
        self.context.client_capabilities().unwrap_or_default()
    }

    /// The least level that the caller wants to hear of, if it wants to hear anything.
    pub(crate) fn least_level(&self) -> Option<LoggingLevel> {
        if self.is_modern() { self.context.meta.log_level() } else { Some(self.session.level()) }
    }

    /// An argument that has to be there and be a text.
    pub(crate) fn text(&self, name: &str) -> Result<&str, ErrorData> {
        let found = self.arguments.get(name).and_then(Value::as_str);
        found.ok_or_else(|| ErrorData::invalid_params(format!("`{name}` must be a text"), None))
    }

    /// A person's answer, unless it is missing or no answer to such a question.
    pub(crate) fn elicited(&self, key: &str) -> Option<ElicitResult> {
        serde_json::from_value(self.answers.responses.get(key)?.clone()).ok()
    }

    /// One field of a form that a person has filled in. A person who does not want to is not asked again.
    pub(crate) fn field(&self, key: &str, field: &str) -> Result<Option<Value>, ErrorData> {
        match self.elicited(key) {
            Some(answer) if answer.action == ElicitationAction::Accept => {
                Ok(answer.content.and_then(|content| content.get(field).cloned()))
            }
            Some(_) => Err(ErrorData::invalid_request(format!("`{key}` was declined"), None)),
            None => Ok(None),
        }
    }

    /// What a model said, unless it is missing or no such thing.
    pub(crate) fn sampled(&self, key: &str) -> Option<&str> {
        self.answers.responses.get(key)?.pointer("/content/text")?.as_str()
    }

    /// Where the caller works, unless that is missing or no such thing.
    pub(crate) fn roots(&self, key: &str) -> Option<Vec<&str>> {
        let roots = self.answers.responses.get(key)?.get("roots")?.as_array()?;
        roots.iter().map(|root| root.get("uri")?.as_str()).collect()
    }

    /// Takes steps until the fixture is done, or has questions that the caller answers by calling again.
    pub(crate) async fn take<R>(
        &mut self,
        step: fn(&Self) -> Result<Step<R>, ErrorData>,
    ) -> Result<Step<R>, ErrorData> {
        for _ in 0..ROUNDS {
            let asked = match step(self)? {
                Step::Ask(asked) => asked,
                done @ Step::Done(_) => return Ok(done),
            };
            let questions = asked.input_requests.clone().unwrap_or_default();
            self.expect_capabilities(&questions)?;
            if self.is_modern() {
                return Ok(Step::Ask(asked));
            }
            self.answers = Answers { responses: self.ask(questions).await?, state: asked.request_state };
        }
        Err(ErrorData::invalid_request(format!("no usable answer in {ROUNDS} rounds"), None))
    }

    /// A caller is only asked what it said it can answer (2026-07-28, missing required capabilities).
    fn expect_capabilities(&self, questions: &InputRequests) -> Result<(), ErrorData> {
        let declared = self.capabilities();
        let mut missing = ClientCapabilities::default();
        for question in questions.values() {
            match question {
                InputRequest::CreateMessage(_) if declared.sampling.is_none() => {
                    missing.sampling = Some(Default::default());
                }
                InputRequest::Elicitation(_) if declared.elicitation.is_none() => {
                    missing.elicitation = Some(Default::default());
                }
                InputRequest::ListRoots(_) if declared.roots.is_none() => {
                    missing.roots = Some(Default::default());
                }
                _ => {}
            }
        }
        if missing == ClientCapabilities::default() {
            return Ok(());
        }
        Err(ErrorData::missing_required_client_capability(missing))
    }

    /// Puts the questions to a legacy caller, one after the other.
    async fn ask(&self, questions: InputRequests) -> Result<InputResponses, ErrorData> {
        let mut responses = InputResponses::new();
        for (key, question) in questions {
            let request = match question {
                InputRequest::CreateMessage(request) => ServerRequest::CreateMessageRequest(request),
                InputRequest::Elicitation(request) => ServerRequest::ElicitRequest(request),
                InputRequest::ListRoots(request) => ServerRequest::ListRootsRequest(request),
                _ => return Err(ErrorData::internal_error("a question that has no legacy request", None)),
            };
            let answer = tokio::time::timeout(PATIENCE, self.context.peer.send_request(request))
                .await
                .map_err(|_| ErrorData::internal_error("the client did not answer in time", None))?
                .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
            let answer = serde_json::to_value(answer)
                .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
            responses.insert(key, answer);
        }
        Ok(responses)
    }
}

/// Whether a request belongs to the stateless era.
pub(crate) fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}
