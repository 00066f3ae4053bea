//! A call of a tool or prompt, including requests for input. Fixtures are written as steps that request input or
//! finish; this module selects the mechanism of the era: modern clients get an input-required result and call again,
//! legacy clients get server requests during their call.

use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    ClientCapabilities, ElicitResult, ElicitationAction, ErrorData, InputRequest, InputRequests,
    InputRequiredResult, InputResponses, JsonObject, LoggingLevel, ProtocolVersion, ServerRequest,
};
use rmcp::service::RequestContext;
use serde_json::Value;

use crate::input_requests::input_requests;
use crate::server_state::{ServerState, Session};

/// Timeout of a server request to a legacy client.
const INPUT_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of rounds with a legacy client; a modern client limits them itself.
const MAX_ROUNDS: usize = 8;

/// Responses and state from earlier rounds.
#[derive(Debug, Default)]
pub(crate) struct InputAnswers {
    pub(crate) responses: InputResponses,
    pub(crate) state: Option<String>,
}

/// A call, as seen by its fixture.
pub(crate) struct Exchange {
    pub(crate) context: RequestContext<RoleServer>,
    pub(crate) arguments: JsonObject,
    pub(crate) answers: InputAnswers,
    pub(crate) server_state: Arc<ServerState>,
    pub(crate) session: Arc<Session>,
}

/// The result of a step.
pub(crate) enum Step<R> {
    Ask(InputRequiredResult),
    Done(R),
}

impl<R> Step<R> {
    /// Requests these inputs, without state.
    pub(crate) fn ask<const N: usize>(requested: [(&str, Value); N]) -> Result<Self, ErrorData> {
        Ok(Self::Ask(InputRequiredResult::from_input_requests(input_requests(requested)?)))
    }
}

impl Exchange {
    pub(crate) fn is_modern(&self) -> bool {
        is_modern(&self.context)
    }

    /// The capabilities of the client.
    pub(crate) fn capabilities(&self) -> ClientCapabilities {
        self.context.client_capabilities().unwrap_or_default()
    }

    /// The minimum log level requested by the client, if any.
    pub(crate) fn least_level(&self) -> Option<LoggingLevel> {
        if self.is_modern() { self.context.meta.log_level() } else { Some(self.session.level()) }
    }

    /// A required string argument.
    pub(crate) fn text(&self, name: &str) -> Result<&str, ErrorData> {
        let found = self.arguments.get(name).and_then(Value::as_str);
        found.ok_or_else(|| ErrorData::invalid_params(format!("`{name}` must be a text"), None))
    }

    /// The elicitation response; `None` if it is missing or of another type.
    pub(crate) fn elicited(&self, key: &str) -> Option<ElicitResult> {
        serde_json::from_value(self.answers.responses.get(key)?.clone()).ok()
    }

    /// A field of an accepted form. A declined form is an error, so that it is not requested again.
    pub(crate) fn field(&self, key: &str, field: &str) -> Result<Option<Value>, ErrorData> {
        match self.elicited(key) {
            Some(answer) if answer.action == ElicitationAction::Accept => {
                Ok(answer.content.and_then(|content| content.get(field).cloned()))
            }
            Some(_) => Err(ErrorData::invalid_request(format!("`{key}` was declined"), None)),
            None => Ok(None),
        }
    }

    /// The text of the sampling response; `None` if it is missing or of another type.
    pub(crate) fn sampled(&self, key: &str) -> Option<&str> {
        self.answers.responses.get(key)?.pointer("/content/text")?.as_str()
    }

    /// The roots; `None` if they are missing or of another type.
    pub(crate) fn roots(&self, key: &str) -> Option<Vec<&str>> {
        let roots = self.answers.responses.get(key)?.get("roots")?.as_array()?;
        roots.iter().map(|root| root.get("uri")?.as_str()).collect()
    }

    /// Runs steps until the fixture finishes, or requires input that the client provides by calling again.
    pub(crate) async fn take<R>(
        &mut self,
        step: fn(&Self) -> Result<Step<R>, ErrorData>,
    ) -> Result<Step<R>, ErrorData> {
        for _ in 0..MAX_ROUNDS {
            let requested = match step(self)? {
                Step::Ask(requested) => requested,
                done @ Step::Done(_) => return Ok(done),
            };
            let input_requests = requested.input_requests.clone().unwrap_or_default();
            self.expect_capabilities(&input_requests)?;
            if self.is_modern() {
                return Ok(Step::Ask(requested));
            }
            self.answers =
                InputAnswers { responses: self.ask(input_requests).await?, state: requested.request_state };
        }
        Err(ErrorData::invalid_request(format!("no usable answer in {MAX_ROUNDS} rounds"), None))
    }

    /// Input is only requested if the client declared the capability (2026-07-28, missing required capabilities).
    fn expect_capabilities(&self, input_requests: &InputRequests) -> Result<(), ErrorData> {
        let declared = self.capabilities();
        let mut missing = ClientCapabilities::default();
        for input_request in input_requests.values() {
            match input_request {
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

    /// Sends the requests to a legacy client, one after another.
    async fn ask(&self, input_requests: InputRequests) -> Result<InputResponses, ErrorData> {
        let mut responses = InputResponses::new();
        for (key, input_request) in input_requests {
            let request = match input_request {
                InputRequest::CreateMessage(request) => ServerRequest::CreateMessageRequest(request),
                InputRequest::Elicitation(request) => ServerRequest::ElicitRequest(request),
                InputRequest::ListRoots(request) => ServerRequest::ListRootsRequest(request),
                _ => return Err(ErrorData::internal_error("a question that has no legacy request", None)),
            };
            let answer = tokio::time::timeout(INPUT_TIMEOUT, self.context.peer.send_request(request))
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
