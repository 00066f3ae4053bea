//! Answers requests in natural language: sets up an agent of the configuration, and stores the conversation.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use toolhub_agent::{
    Agent, AgentContext, AgentMode, AgentRequest, Answer, Confirmation, DenyAll, Plan, SignatureText,
    planned_by_rules_note,
};
use toolhub_core::BoxFuture;
use toolhub_core::call_log::{CallQuery, CallStatus, RecordId};
use toolhub_core::conversation::{ConversationSummary, ConversationTurn, TurnQuery, TurnRole};
use toolhub_core::lang::{Lang, LocalizedText};
use toolhub_core::model::{ChatMessage, LanguageModel, ReplyDelta, ReplyListener};
use toolhub_core::ports::StoreError;
use toolhub_core::{RawJson, ToolName};
use toolhub_llm::discover::NoModel;

use crate::hub::Hub;
use crate::settings::{AgentSettings, DEFAULT_AGENT};

/// The number of recent calls that are searched for examples.
const MAX_EXAMPLE_CALLS: usize = 300;
/// The number of turns of a conversation that a model receives.
const MAX_TURNS: usize = 20;

/// The model that answers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ModelSelection {
    /// The configured or detected model, if there is one.
    #[default]
    Default,
    /// The model with that name, at the default endpoint.
    Named(String),
    /// No model: requests are planned by rules.
    None,
}

/// The options of a request.
#[derive(Debug, Clone, Default)]
pub struct AskOptions {
    /// The agent of the configuration; `default` if `None`.
    pub agent: Option<String>,
    /// The model.
    pub model: ModelSelection,
    /// How it uses its model; overrides the configuration.
    pub mode: Option<AgentMode>,
    /// The id of the conversation, whose earlier turns the model receives.
    pub conversation: Option<String>,
    /// The language of messages to the user.
    pub lang: Lang,
}

/// Why a request could not be started.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AskError {
    /// The config has no agent of that name.
    #[error("there is no agent `{name}` in the config: {known}")]
    UnknownAgent {
        /// The name.
        name: String,
        /// The configured names.
        known: String,
    },
    /// The named model is not available.
    #[error("{0}")]
    NoModel(LocalizedText),
}

impl Hub {
    /// Answers a request in natural language: with a model if there is one, otherwise by rules. `listener` receives the output of
    /// the model while it is streamed.
    pub fn ask<'a>(
        &'a self,
        request: &'a str,
        options: &'a AskOptions,
        confirmation: &'a dyn Confirmation,
        listener: &'a (dyn Fn(ReplyDelta) + Send + Sync),
    ) -> BoxFuture<'a, Result<Answer, AskError>> {
        Box::pin(async move {
            let settings = self.agent_settings(options.agent.as_deref())?;
            let (model, unreachable) = self.model_for(options, &settings).await?;
            let agent = self.agent(&settings, model.as_deref(), options, confirmation).await;
            let before = self.earlier_messages(options.conversation.as_deref()).await;
            let agent_request = AgentRequest { request, before: &before, today: toolhub_agent::today() };
            let listener: ReplyListener<'_> = listener;
            let mut answer = agent.ask(agent_request, listener).await;
            if let Some(why) = unreachable {
                answer.notes.insert(0, planned_by_rules_note(&why));
            }
            if agent.mode == AgentMode::Code {
                answer.notes.extend(self.code_mode_note(agent.model.is_some()));
            }
            self.remember(request, &answer, options.conversation.as_deref()).await;
            Ok(answer)
        })
    }

    /// Why code mode had no effect on a request; `None` if it had.
    fn code_mode_note(&self, has_model: bool) -> Option<LocalizedText> {
        match (has_model, &self.run_script) {
            (true, Some(_)) => None,
            (false, _) => Some(LocalizedText::new(
                "the mode `code` had no effect: only a model writes scripts, and there is none (`toolhub doctor`)",
                "模式 `code` 没有作用：脚本由模型编写，而这里没有模型（见 `toolhub doctor`）",
            )),
            (true, None) => Some(LocalizedText::new(
                "the mode `code` had no effect: `run_script` is disabled (`[script]` and `[native]` in the config)",
                "模式 `code` 没有作用：`run_script` 已停用（见配置的 `[script]` 和 `[native]`）",
            )),
        }
    }

    /// Plans a request without running anything: with a model if there is one, otherwise by rules. Returns an error text if the
    /// model has made no usable plan.
    pub fn plan<'a>(
        &'a self,
        request: &'a str,
        options: &'a AskOptions,
    ) -> BoxFuture<'a, Result<Result<Plan, LocalizedText>, AskError>> {
        Box::pin(async move {
            let settings = self.agent_settings(options.agent.as_deref())?;
            let (model, _) = self.model_for(options, &settings).await?;
            let agent = self.agent(&settings, model.as_deref(), options, &DenyAll).await;
            let before = self.earlier_messages(options.conversation.as_deref()).await;
            let today = toolhub_agent::today();
            Ok(agent.plan(AgentRequest { request, before: &before, today }).await)
        })
    }

    /// The agent of these settings. Lists the tools of servers that were never listed, which can be found only then.
    async fn agent<'a>(
        &'a self,
        settings: &AgentSettings,
        model: Option<&'a dyn LanguageModel>,
        options: &AskOptions,
        confirmation: &'a dyn Confirmation,
    ) -> Agent<'a> {
        self.list_missing().await;
        self.refresh_server_skills().await;
        Agent {
            agent_context: self.agent_context(settings, options, confirmation),
            model,
            mode: options.mode.or(settings.mode.map(Into::into)).unwrap_or_default(),
            instructions: settings.instructions.clone(),
            examples: self.examples().await,
            max_tokens: None,
        }
    }

    /// The context of an agent.
    pub fn agent_context<'a>(
        &'a self,
        settings: &AgentSettings,
        options: &AskOptions,
        confirmation: &'a dyn Confirmation,
    ) -> AgentContext<'a> {
        let catalog = self.catalog();
        let has_tools = |id: &str| catalog.iter().any(|entry| entry.tool.source.to_string() == id);
        let ids = self.servers().into_iter().map(|view| view.spec.id.to_string());
        let unavailable = ids.filter(|id| !has_tools(id)).collect();
        AgentContext {
            caller: self,
            finder: self.finder.as_ref(),
            catalog,
            policy: self.engine.policy(),
            unavailable,
            events: self.events.as_ref(),
            confirmation,
            supervisor: None,
            allowlist: settings.allowlist(),
            output_limits: self.settings.limits.result.output_limits(),
            budget: settings.budget(),
            conversation: options.conversation.as_deref().map(Arc::from),
            folder: std::env::current_dir().unwrap_or_default(),
            lang: options.lang,
            signature: self.run_script.is_some().then_some(crate::script::signature_of as SignatureText),
            waited: Default::default(),
        }
    }

    /// The settings of an agent; of the default agent if `name` is `None`.
    pub fn agent_settings(&self, name: Option<&str>) -> Result<AgentSettings, AskError> {
        let agents = &self.settings.agents;
        let configured = agents.get(name.unwrap_or(DEFAULT_AGENT)).cloned();
        match (configured, name) {
            (Some(configured), _) => Ok(configured),
            (None, None) => Ok(AgentSettings::default()),
            (None, Some(name)) => {
                let agent_names: Vec<String> = agents.keys().map(|name| format!("`{name}`")).collect();
                let agent_names = match agent_names.is_empty() {
                    true => format!("add `[agents.{name}]`"),
                    false => format!("it has {}", agent_names.join(", ")),
                };
                Err(AskError::UnknownAgent { name: name.to_owned(), known: agent_names })
            }
        }
    }

    /// The model to use, or why the configured endpoint is unavailable.
    pub(crate) async fn model_for(
        &self,
        options: &AskOptions,
        settings: &AgentSettings,
    ) -> Result<(Option<Arc<dyn LanguageModel>>, Option<LocalizedText>), AskError> {
        let name = match &options.model {
            ModelSelection::None => return Ok((None, None)),
            ModelSelection::Named(name) => Some(name),
            ModelSelection::Default => settings.model.as_ref(),
        };
        let model = match name {
            Some(name) => self.model_named(name).await,
            None => self.chosen_model().await.map(|chosen| Arc::clone(&chosen.model)),
        };
        match model {
            Ok(model) => Ok((Some(model), None)),
            // Without a model, rules plan the request. A model that was named explicitly is required, and an invalid setting is
            // an error.
            Err(NoModel::NotSetUp { .. }) if name.is_none() => Ok((None, None)),
            Err(NoModel::Unreachable { why }) if name.is_none() => Ok((None, Some(why))),
            Err(none) => Err(AskError::NoModel(none.why().clone())),
        }
    }

    /// The arguments of the last successful call of each tool.
    pub async fn examples(&self) -> HashMap<ToolName, RawJson> {
        let query = CallQuery {
            status: Some(CallStatus::Succeeded),
            limit: Some(MAX_EXAMPLE_CALLS),
            ..CallQuery::default()
        };
        let mut examples = HashMap::new();
        for call in self.calls(query).await.unwrap_or_default() {
            // Truncated arguments are not used as examples.
            if !call.start.arguments.get().starts_with("{\"$truncated\"") {
                examples.entry(call.start.tool).or_insert(call.start.arguments);
            }
        }
        examples
    }

    async fn earlier_messages(&self, conversation: Option<&str>) -> Vec<ChatMessage> {
        let (Some(store), Some(conversation)) = (&self.store, conversation) else { return Vec::new() };
        let query = TurnQuery {
            conversation: Some(conversation.to_owned()),
            limit: Some(MAX_TURNS),
            ..TurnQuery::default()
        };
        let turns = store.turns(query).await.unwrap_or_default();
        let messages = turns.into_iter().filter_map(|turn| match turn.role {
            TurnRole::User => Some(ChatMessage::User(turn.text)),
            TurnRole::Assistant => Some(ChatMessage::Assistant { text: turn.text, calls: Vec::new() }),
            TurnRole::Tool => None,
        });
        // A conversation must begin with a user message.
        messages.skip_while(|message| !matches!(message, ChatMessage::User(_))).collect()
    }

    async fn remember(&self, request: &str, answer: &Answer, conversation: Option<&str>) {
        let (Some(store), Some(conversation)) = (&self.store, conversation) else { return };
        for (role, text) in [(TurnRole::User, request), (TurnRole::Assistant, answer.text.as_str())] {
            let turn = ConversationTurn {
                conversation: conversation.to_owned(),
                role,
                text: text.to_owned(),
                at: SystemTime::now(),
            };
            // A failure of the store does not invalidate the answer.
            let _ = store.append_turn(turn).await;
        }
    }

    /// The stored conversations, the one with the newest turn first.
    pub async fn conversations(&self, limit: Option<usize>) -> Result<Vec<ConversationSummary>, StoreError> {
        match &self.store {
            Some(store) => store.conversations(limit).await,
            None => Ok(Vec::new()),
        }
    }

    /// An id for a new conversation.
    pub fn new_conversation() -> String {
        RecordId::generate().to_string()
    }
}
