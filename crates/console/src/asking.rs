//! Requests to the agent from the console: a stream of its steps, and the confirmations that it waits for.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::Response;
use serde_json::json;
use tokio::sync::mpsc;
use toolhub::{AskOptions, ChangeSummary, Confirmation, Gateways, PermissionDecision, ReplyDelta};
use toolhub_core::call_log::{CallQuery, CallRecord};
use toolhub_core::{BoxFuture, Lang, Localize as _, Principal, RawJson, ToolName};

use crate::event_response::{self, PendingAnswers, StreamEvent};

/// Capacity of the channel of events. Pieces of text that do not fit are dropped: the answer has the whole text.
const CHANNEL_CAPACITY: usize = 256;
/// How often new calls of the conversation are looked for.
const CALL_POLL_INTERVAL: Duration = Duration::from_millis(300);
/// How long a confirmation is waited for.
const CONFIRMATION_TIMEOUT: Duration = Duration::from_secs(600);
/// Maximum number of calls of a conversation that are shown as steps.
const MAX_SHOWN_CALLS: usize = 100;

/// A request to the agent.
pub(crate) struct AgentPrompt {
    pub(crate) text: String,
    pub(crate) conversation: String,
    pub(crate) lang: Lang,
}

/// Asks the person at the page.
struct PageConfirmation {
    pending: Arc<PendingAnswers<bool>>,
    events: mpsc::Sender<StreamEvent>,
    lang: Lang,
}

impl Confirmation for PageConfirmation {
    fn allow<'a>(&'a self, tool: &'a ToolName, arguments: &'a RawJson) -> BoxFuture<'a, PermissionDecision> {
        Box::pin(async move {
            let Some(mut question) = self.pending.ask(Principal::local().id(), Box::new(|_| Ok(()))) else {
                return PermissionDecision::NoUser;
            };
            let summary = ChangeSummary::new(tool, arguments);
            let data = json!({
                "id": question.id,
                "tool": tool.as_str(),
                "text": summary.text().localize(self.lang),
                "deletes": summary.deletes,
                "arguments": arguments,
            });
            let sent = self.events.send(StreamEvent::new("confirm", &data)).await.is_ok();
            let answer = match sent {
                true => tokio::time::timeout(CONFIRMATION_TIMEOUT, question.answer()).await,
                false => Ok(Some(false)),
            };
            match answer {
                Ok(Some(true)) => PermissionDecision::Granted,
                Ok(_) => PermissionDecision::Denied,
                Err(_) => PermissionDecision::NoUser,
            }
        })
    }
}

/// Runs a request of the local user, and streams what happens. The request is cancelled when the stream is dropped, or when the
/// credential of the request ends.
pub(crate) fn ask(
    gateways: &Arc<Gateways>,
    pending: &Arc<PendingAnswers<bool>>,
    prompt: AgentPrompt,
    credential_end: impl Future<Output = ()> + Send + 'static,
) -> Response<Body> {
    let (sender, receiver) = mpsc::channel(CHANNEL_CAPACITY);
    let work = run(Arc::clone(gateways), Arc::clone(pending), prompt, sender);
    let work = async move {
        tokio::select! {
            () = work => {}
            () = credential_end => {}
        }
    };
    event_response::respond(receiver, work)
}

async fn run(
    gateways: Arc<Gateways>,
    pending: Arc<PendingAnswers<bool>>,
    prompt: AgentPrompt,
    events: mpsc::Sender<StreamEvent>,
) {
    let AgentPrompt { text, conversation, lang } = prompt;
    let start = json!({ "conversation": conversation });
    let _ = events.send(StreamEvent::new("start", &start)).await;
    let options = AskOptions { conversation: Some(conversation.clone()), lang, ..AskOptions::default() };
    let confirmation = PageConfirmation { pending, events: events.clone(), lang };
    let on_delta = |delta: ReplyDelta| {
        if let ReplyDelta::Text(text) = delta {
            let _ = events.try_send(StreamEvent::new("delta", &json!({ "text": text })));
        }
    };
    let mut steps = Steps::new(&gateways, &conversation, &events).await;
    let answer = async { gateways.hub().ask(&text, &options, &confirmation, &on_delta).await };
    let answer = tokio::select! {
        answer = answer => answer,
        () = steps.follow() => return,
    };
    // The last ones may have ended since they were looked up.
    steps.announce().await;
    let data = match answer {
        Ok(answer) => serde_json::from_str(answer.to_json(lang).into_raw().get()).unwrap_or_default(),
        Err(error) => json!({ "success": false, "answer": error.to_string(), "steps": [] }),
    };
    let _ = events.send(StreamEvent::new("answer", &data)).await;
}

/// Announces the calls of a conversation as they begin and end.
struct Steps<'a> {
    gateways: &'a Gateways,
    conversation: &'a str,
    events: &'a mpsc::Sender<StreamEvent>,
    /// The announced calls, each with its status.
    known: HashSet<(String, &'static str)>,
}

impl<'a> Steps<'a> {
    /// Calls of earlier requests of the conversation are not announced.
    async fn new(
        gateways: &'a Gateways,
        conversation: &'a str,
        events: &'a mpsc::Sender<StreamEvent>,
    ) -> Self {
        let mut steps = Self { gateways, conversation, events, known: HashSet::new() };
        steps.known = steps.read().await.iter().map(Self::identity).collect();
        steps
    }

    fn identity(record: &CallRecord) -> (String, &'static str) {
        (record.start.record.to_string(), record.status.name())
    }

    async fn read(&self) -> Vec<CallRecord> {
        let query = CallQuery {
            conversation: Some(self.conversation.to_owned()),
            limit: Some(MAX_SHOWN_CALLS),
            ..CallQuery::default()
        };
        self.gateways.hub().calls(query).await.unwrap_or_default()
    }

    /// Never ends by itself.
    async fn follow(&mut self) {
        loop {
            tokio::time::sleep(CALL_POLL_INTERVAL).await;
            self.announce().await;
        }
    }

    /// Announces what has changed.
    async fn announce(&mut self) {
        for record in self.read().await.iter().rev() {
            let (id, status) = Self::identity(record);
            if self.known.insert((id.clone(), status)) {
                let data = json!({ "id": id, "tool": record.start.tool.as_str(), "status": status });
                let _ = self.events.send(StreamEvent::new("step", &data)).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn confirmation_is_answered_once() {
        let (pending, (sender, mut receiver)) = (Arc::new(PendingAnswers::default()), mpsc::channel(1));
        let page = PageConfirmation { pending: Arc::clone(&pending), events: sender, lang: Lang::En };
        let (tool, arguments) = (ToolName::new("delete_file"), RawJson::empty_object());
        let answer = async {
            let event = receiver.recv().await.unwrap();
            let id = event.data()["id"].as_str().unwrap().to_owned();
            assert_eq!(pending.answer("other", "local", true), Ok(false));
            assert_eq!(pending.answer(&id, "local", true), Ok(true));
            assert_eq!(pending.answer(&id, "local", true), Ok(false));
        };
        let (decision, ()) = tokio::join!(page.allow(&tool, &arguments), answer);
        assert_eq!(decision, PermissionDecision::Granted);
        // A page that is gone allows nothing.
        drop(receiver);
        assert_eq!(page.allow(&tool, &arguments).await, PermissionDecision::Denied);
        assert!(pending.is_empty());
        // A page that goes away while it is asked leaves nothing behind.
        let (sender, _receiver) = mpsc::channel(1);
        let page = PageConfirmation { pending: Arc::clone(&pending), events: sender, lang: Lang::En };
        let asked = tokio::time::timeout(Duration::from_millis(20), page.allow(&tool, &arguments));
        assert!(asked.await.is_err() && pending.is_empty());
    }
}
