//! Calls of "Try it": progress, log messages and questions of the server reach the page while the call runs.

use std::sync::Arc;

use serde::Serialize;
use serde_json::json;
use tokio::sync::mpsc;
use toolhub::{Catalog, DirectCall, DirectClient, Gateways};
use toolhub_core::caller::{CLIENT_ANSWER_TIMEOUT, ClientResponse};
use toolhub_core::error::METHOD_NOT_FOUND;
use toolhub_core::lang::LocalizedText;
use toolhub_core::tool::{Tool, ToolDefinition};
use toolhub_core::{BoxFuture, Lang, Localize as _, RawJson, RawObject, Source, ToolError};
use toolhub_mcp_gateway::BudgetPermit;

use crate::api::tools::call_result;
use crate::event_response::{AnswerCheck, PendingAnswers, StreamEvent};

/// Capacity of the channel of events. Progress and log messages that do not fit are dropped.
pub(crate) const CHANNEL_CAPACITY: usize = 256;
/// Longer progress and log messages are not shown: a page that reads slowly would keep them in memory.
const MAX_NOTICE_BYTES: usize = 8 << 10;
/// The JSON-RPC error for a question that was not answered.
const NOT_ANSWERED: i64 = -1;
/// The questions that a person at a page can answer.
const QUESTIONS: [&str; 2] = ["elicitation/create", "sampling/createMessage"];

/// The page that makes a call.
pub(crate) struct PageClient {
    pub(crate) pending: Arc<PendingAnswers<ClientResponse>>,
    pub(crate) events: mpsc::Sender<StreamEvent>,
    pub(crate) principal: Arc<str>,
}

impl PageClient {
    /// Sends an event if there is room.
    fn announce(&self, name: &'static str, data: &impl Serialize) {
        let _ = self.events.try_send(StreamEvent::new(name, data));
    }
}

/// A notification or a question of the server.
#[derive(Serialize)]
struct ServerMessage<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    method: &'a str,
    params: Option<&'a RawJson>,
}

/// Checks the content of an accepted form against the schema of the question.
fn content_check(params: Option<&RawJson>) -> AnswerCheck<ClientResponse> {
    let schema = params.and_then(|params| params.object()?.get("requestedSchema").cloned());
    let Some(schema) = schema else { return Box::new(|_| Ok(())) };
    let form = RawObject::default().with("name", "answer").with("inputSchema", schema).into_raw();
    let form = ToolDefinition::parse(form).ok().map(|form| Catalog::new([Tool::new(Source::Native, form)]));
    Box::new(move |answer| {
        let members = answer.as_ref().ok().and_then(RawJson::object).unwrap_or_default();
        let is_accepted = members.get("action").and_then(|action| action.decode::<String>().ok()).as_deref()
            == Some("accept");
        let entry = form.as_ref().and_then(|form| form.named("answer").next());
        let Some(entry) = entry.filter(|_| is_accepted) else { return Ok(()) };
        let content = members.get("content").cloned().unwrap_or_else(RawJson::empty_object);
        match entry.check(&content) {
            Err(ToolError::InvalidArguments { problems, .. }) => {
                let text =
                    |lang| problems.iter().map(|one| one.localize(lang)).collect::<Vec<_>>().join("; ");
                Err(LocalizedText::new(text(Lang::En), text(Lang::Zh)))
            }
            // A server whose schema cannot be used gets what the person wrote.
            _ => Ok(()),
        }
    })
}

impl DirectClient for PageClient {
    fn capabilities(&self) -> RawJson {
        let modes = RawObject::default().with("form", RawObject::default()).with("url", RawObject::default());
        RawObject::default().with("elicitation", modes).with("sampling", RawObject::default()).into_raw()
    }

    fn progress(&self, params: &RawJson) {
        if params.get().len() > MAX_NOTICE_BYTES {
            return;
        }
        // The token is a number of the hub, not of the page.
        let mut members = params.object().unwrap_or_default();
        members.retain(|name| name != "progressToken");
        self.announce("progress", &members.into_raw());
    }

    fn notify(&self, method: &str, params: Option<&RawJson>) {
        if params.is_some_and(|params| params.get().len() > MAX_NOTICE_BYTES) {
            return;
        }
        self.announce("notice", &ServerMessage { id: None, method, params });
    }

    fn ask(&self, method: String, params: Option<RawJson>) -> BoxFuture<'_, ClientResponse> {
        Box::pin(async move {
            if !QUESTIONS.contains(&method.as_str()) {
                return Err((METHOD_NOT_FOUND, format!("the console does not support {method}")));
            }
            let unanswered = || (NOT_ANSWERED, "the question was not answered".to_owned());
            let mut question =
                self.pending.ask(&self.principal, content_check(params.as_ref())).ok_or_else(unanswered)?;
            let (id, params) = (Some(question.id.as_str()), params.as_ref());
            let event = StreamEvent::new("ask", &ServerMessage { id, method: &method, params });
            // Never dropped: the call waits for the answer.
            self.events.send(event).await.map_err(|_| unanswered())?;
            let answer = tokio::select! {
                answer = tokio::time::timeout(CLIENT_ANSWER_TIMEOUT, question.answer()) => answer.ok().flatten(),
                // The page is gone: the call was cancelled with it, but the server's request outlives it.
                () = self.events.closed() => None,
            };
            answer.unwrap_or_else(|| Err(unanswered()))
        })
    }
}

/// Runs a call and sends its result as the last event. The permit is kept until then.
pub(crate) async fn run(
    gateways: Arc<Gateways>,
    call: DirectCall,
    client: PageClient,
    _permit: BudgetPermit,
) {
    let events = client.events.clone();
    let answer = gateways.call_for(call, Arc::new(client)).await;
    let event = match answer {
        Some(answer) => StreamEvent::new("result", &call_result(answer)),
        // The profile was removed since the request began.
        None => StreamEvent::new("result", &json!({ "success": false, "error": "there is no such tool" })),
    };
    let _ = events.send(event).await;
}
