//! Performs the actions for a request, and sends the default response if they sent none.

use std::{future::pending, sync::Arc};

use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::{
    action::Action,
    default_responses,
    message::{self, Fault, Message, Params},
    peer::Peer,
    player_state::PlayerState,
    request_check::{Era, Verdict},
    response_writer::ResponseWriter,
    shuffle::Turn,
};

/// A request or notification in progress.
#[derive(Debug)]
pub(super) struct ActionRunner {
    pub(super) player_state: Arc<PlayerState>,
    pub(super) peer: Arc<Peer>,
    pub(super) era: Era,
    pub(super) message: Message,
    pub(super) params: Params,
    pub(super) response_writer: ResponseWriter,
    pub(super) run_state: RunState,
}

/// State between actions.
#[derive(Debug, Default)]
pub(super) struct RunState {
    /// No default response is needed.
    pub(super) answered: bool,
    pub(super) twice: bool,
    pub(super) wrong_id: Option<String>,
    pub(super) progress: u64,
    /// The client's response to the last server request.
    pub(super) answer: Option<String>,
    /// While it is held, other requests of a shuffled group wait.
    pub(super) turn: Option<Turn>,
    /// Replaces the default response if the request was rejected.
    pub(super) refusal: Option<Fault>,
}

impl ActionRunner {
    /// Runs to the end, or until the request is cancelled: then nothing more is sent for it.
    pub(super) async fn run(mut self, verdict: Verdict, cancelled: CancellationToken) {
        self.run_state.refusal = verdict.refusal;
        let completed = tokio::select! {
            biased;
            () = cancelled.cancelled() => false,
            () = self.perform(&verdict.actions) => true,
        };
        if let Some(http) = self.response_writer.http() {
            if completed { http.finish() } else { http.abandon() }
        }
        if let Some(id) = self.message.id() {
            self.player_state.in_flight.end(&self.peer.session, id);
        }
    }

    async fn perform(&mut self, actions: &[Action]) {
        self.all(actions).await;
        if !self.run_state.answered && self.message.id.is_some() {
            self.default_answer().await;
        }
    }

    pub(super) async fn all(&mut self, actions: &[Action]) {
        for action in actions {
            // An action may contain nested actions.
            Box::pin(self.act(action)).await;
        }
    }

    /// Sends a result of the script, verbatim.
    pub(super) async fn result(&mut self, result: &str) {
        if self.message.method() == "initialize" {
            self.open();
        }
        let result = message::one_line(result);
        self.reply(|id| message::result(id, &result)).await;
    }

    /// Sends a tool result with one text block.
    pub(super) async fn text(&mut self, text: &str, is_error: bool) {
        let result = message::text_result(text, is_error);
        let result = default_responses::complete(&self.player_state.scenario, self.era, &result);
        self.reply(|id| message::result(id, &result)).await;
    }

    pub(super) async fn fault(&mut self, fault: &Fault) {
        if let Some(http) = self.response_writer.http() {
            http.suggest_status(fault.status);
        }
        self.reply(|id| fault.response(Some(id))).await;
    }

    pub(super) async fn default_answer(&mut self) {
        if let Some(fault) = self.run_state.refusal.clone() {
            return self.fault(&fault).await;
        }
        if self.era == Era::Modern && self.message.method() == "subscriptions/listen" {
            self.acknowledge().await;
            pending::<()>().await;
        }
        match default_responses::default(&self.player_state.scenario, self.era, &self.message, &self.params) {
            Ok(result) => self.result(&result).await,
            Err(fault) => self.fault(&fault).await,
        }
    }

    /// 2026-07-28, basic/patterns/subscriptions: acknowledges the supported subset, with the id of the subscription.
    pub(super) async fn acknowledge(&mut self) {
        let subscribed =
            self.params.notifications.as_ref().is_some_and(|filter| filter["toolsListChanged"] == true);
        let filter = if subscribed { r#"{"toolsListChanged":true}"# } else { "{}" };
        let meta = self.subscription();
        let params = format!(r#"{{{meta},"notifications":{filter}}}"#);
        let text = message::notification("notifications/subscriptions/acknowledged", Some(&params));
        self.response_writer.message(&text).await;
    }

    /// The parameters of a notification; on a subscription they include its id.
    pub(super) fn notification_params(&self, params: Option<&RawValue>) -> Option<String> {
        let written = params.map(|raw| message::one_line(raw.get()));
        if self.era == Era::Legacy || self.message.method() != "subscriptions/listen" {
            return written;
        }
        let members = written.as_deref().and_then(|text| text.trim().strip_prefix('{')).unwrap_or("}");
        let comma = if members.trim_start().starts_with('}') { "" } else { "," };
        Some(format!("{{{}{comma}{members}", self.subscription()))
    }

    fn subscription(&self) -> String {
        let id = self.message.id().unwrap_or("null");
        format!(r#""_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}"#)
    }

    /// Advances the handshake; over HTTP opens a session.
    fn open(&mut self) {
        self.peer.open();
        if !self.player_state.scenario.session || self.era == Era::Modern {
            return;
        }
        if let Some(http) = self.response_writer.http() {
            http.header("mcp-session-id", &self.player_state.sessions.open());
        }
    }

    async fn reply(&mut self, render: impl Fn(&str) -> String) {
        self.run_state.answered = true;
        let Some(id) = self.message.id().map(str::to_owned) else { return };
        let id = self.run_state.wrong_id.take().unwrap_or(id);
        let text = render(&id);
        self.response_writer.message(&text).await;
        if std::mem::take(&mut self.run_state.twice) {
            self.response_writer.message(&text).await;
        }
    }
}
