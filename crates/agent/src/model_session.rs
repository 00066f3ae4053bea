//! Sends requests to a model within a budget of rounds, time and tokens. The reply is streamed to a listener.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use toolhub_core::lang::{Lang, Localize as _, LocalizedText};
use toolhub_core::model::{ChatReply, ChatRequest, LanguageModel, ModelError, ReplyListener, TokenUsage};
use toolhub_core::{EventKind, EventSink};

use crate::agent_context::{AgentBudget, AgentContext};

/// A request is not sent if less time than this is left.
const MIN_TIME_LEFT: Duration = Duration::from_secs(1);

/// Why there is no reply from the model.
#[derive(Debug, Clone)]
pub(crate) enum ReplyError {
    /// The model returned an error.
    Model(ModelError),
    /// The budget is exhausted.
    Budget(LocalizedText),
}

impl ReplyError {
    pub(crate) fn text(&self) -> LocalizedText {
        match self {
            Self::Model(error) => LocalizedText::new(error.localize(Lang::En), error.localize(Lang::Zh)),
            Self::Budget(text) => text.clone(),
        }
    }
}

/// The exchange with a model for one request.
pub(crate) struct ModelSession<'a> {
    model: &'a dyn LanguageModel,
    listener: ReplyListener<'a>,
    events: &'a dyn EventSink,
    budget: AgentBudget,
    until: Instant,
    /// Time that the user took to answer questions, in milliseconds. It does not count against the budget.
    waited: Arc<AtomicU64>,
    spent: Mutex<BudgetUsage>,
}

#[derive(Debug, Clone, Copy, Default)]
struct BudgetUsage {
    rounds: u32,
    usage: TokenUsage,
}

impl<'a> ModelSession<'a> {
    pub(crate) fn new(
        model: &'a dyn LanguageModel,
        listener: ReplyListener<'a>,
        agent_context: &AgentContext<'a>,
    ) -> Self {
        Self {
            model,
            listener,
            events: agent_context.events,
            budget: agent_context.budget,
            until: Instant::now() + agent_context.budget.time,
            waited: Arc::clone(&agent_context.waited),
            spent: Mutex::default(),
        }
    }

    pub(crate) fn model(&self) -> &'a dyn LanguageModel {
        self.model
    }

    /// Token usage so far.
    pub(crate) fn usage(&self) -> TokenUsage {
        self.spent().usage
    }

    /// The number of requests sent so far.
    pub(crate) fn rounds(&self) -> u32 {
        self.spent().rounds
    }

    /// The number of requests that may still be sent.
    pub(crate) fn rounds_left(&self) -> u32 {
        self.budget.rounds.saturating_sub(self.spent().rounds)
    }

    /// Sends a request and streams the reply to the listener.
    pub(crate) async fn ask(
        &self,
        request: ChatRequest,
        purpose: LocalizedText,
    ) -> Result<ChatReply, ReplyError> {
        self.ask_for(request, purpose, self.listener).await
    }

    /// Sends a request for an intermediate result, which is not streamed to the listener.
    pub(crate) async fn ask_quietly(
        &self,
        request: ChatRequest,
        purpose: LocalizedText,
    ) -> Result<ChatReply, ReplyError> {
        self.ask_for(request, purpose, &|_| {}).await
    }

    async fn ask_for(
        &self,
        mut request: ChatRequest,
        purpose: LocalizedText,
        listener: ReplyListener<'_>,
    ) -> Result<ChatReply, ReplyError> {
        let waited = Duration::from_millis(self.waited.load(Ordering::Relaxed));
        let remaining = (self.until + waited).saturating_duration_since(Instant::now());
        let spent = self.spent();
        let over = |en: &str, zh: &str| Err(ReplyError::Budget(LocalizedText::new(en, zh)));
        if remaining < MIN_TIME_LEFT {
            return over("the time for this request is used up", "该请求的时间已用完");
        }
        if spent.rounds >= self.budget.rounds {
            return over(
                "the limit of model requests for this request is reached",
                "该请求询问模型的次数已用完",
            );
        }
        if spent.usage.input + spent.usage.output >= self.budget.tokens {
            return over("the tokens for this request are used up", "该请求的 token 已用完");
        }
        request.timeout = Some(request.timeout.map_or(remaining, |timeout| timeout.min(remaining)));
        let model = self.model.name().to_owned();
        let emit = |kind| self.events.emit(toolhub_core::Event::now(None, kind));
        emit(EventKind::ModelRequested { model, purpose });
        let started = Instant::now();
        let reply = self.model.chat(&request, listener).await;
        self.count(reply.as_ref().ok().and_then(|reply| reply.usage).unwrap_or_default());
        match reply {
            Ok(reply) => {
                let tokens = reply.usage.map(|usage| (usage.input, usage.output));
                emit(EventKind::ModelReplied { took: started.elapsed(), tokens });
                Ok(reply)
            }
            Err(error) => {
                let failure = ReplyError::Model(error);
                emit(EventKind::ModelFailed { why: failure.text() });
                Err(failure)
            }
        }
    }

    fn spent(&self) -> BudgetUsage {
        *self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, usage: TokenUsage) {
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        spent.rounds += 1;
        spent.usage.input += usage.input;
        spent.usage.cached += usage.cached;
        spent.usage.output += usage.output;
    }
}
