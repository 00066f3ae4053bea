//! Turns of agents for principals, such as the clients of the OpenAI-compatible endpoint. The tools of the agent are those that
//! a profile shows to the principal, and each call is decided and recorded like a call of an MCP client.

use std::sync::Arc;

use toolhub_agent::{Agent, AgentContext, CallSupervisor, DenyAll, SignatureText, TurnRequest, TurnResult};
use toolhub_core::finder::{SearchResult, ToolFinder};
use toolhub_core::lang::LocalizedText;
use toolhub_core::model::ReplyListener;
use toolhub_core::outcome::OutcomeVerification;
use toolhub_core::ports::ToolCaller;
use toolhub_core::{
    BoxFuture, CallBy, CallerHandle, Coercion, Event, EventKind, EventSink, Lang, Outcome, Principal,
    RUN_SCRIPT, RawJson, RawObject, Source, Tool, ToolCall, ToolError, ToolName, ToolOutput,
};
use toolhub_engine::{Catalog, CatalogEntry, MAX_SUGGESTIONS, similar_names};
use toolhub_mcp_gateway::{Backend as _, GatewayCall, RpcError};

use super::Gateways;
use super::backend::HubBackend;
use super::direct::silent_caller;
use super::prepared_call::{PreparedCall, ScriptRole};
use super::target_kind::TargetKind;
use super::tool_lookup::{ToolLookup, ToolUse};
use super::view::{ToolTarget, View};
use crate::agent_setup::AskError;
use crate::settings::AgentSettings;
use crate::{AskOptions, Hub};

/// A turn of an agent for a principal.
pub struct AgentTurn<'a> {
    /// The principal for which the agent acts.
    pub principal: &'a Arc<Principal>,
    /// The profile; `None` for the default profile.
    pub profile: Option<&'a str>,
    /// The agent of the configuration; `None` for the default agent.
    pub agent: Option<&'a str>,
    /// Which tools the client requested.
    pub selection: &'a (dyn Fn(&Tool) -> bool + Send + Sync),
    /// Instructions of the client, which follow those of the owner.
    pub instructions: Option<&'a str>,
    /// Token limit of one reply.
    pub max_tokens: Option<u32>,
    /// The id under which the calls are recorded.
    pub conversation: &'a str,
    /// The conversation.
    pub request: TurnRequest<'a>,
    /// Decides about calls.
    pub supervisor: &'a dyn CallSupervisor,
    /// Receives the text of the model while it is streamed.
    pub listener: ReplyListener<'a>,
    /// Is called when a reply of the model is complete.
    pub replied: &'a (dyn Fn() + Send + Sync),
    /// The language of messages to the client.
    pub lang: Lang,
}

impl std::fmt::Debug for AgentTurn<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentTurn").field("principal", &self.principal).finish_non_exhaustive()
    }
}

/// Why a turn could not begin.
#[derive(Debug, Clone)]
pub enum TurnError {
    /// The principal may not use the profile, or there is no such profile.
    NoProfile,
    /// The agent or its model is not available.
    Agent(AskError),
    /// The model cannot be reached.
    Unreachable(LocalizedText),
}

impl Gateways {
    /// The name of the model that an agent uses; `None` if rules answer.
    pub async fn model_of_agent(&self, agent: Option<&str>) -> Result<Option<String>, TurnError> {
        let hub = self.hub();
        let settings = hub.agent_settings(agent).map_err(TurnError::Agent)?;
        let (model, why) =
            hub.model_for(&AskOptions::default(), &settings).await.map_err(TurnError::Agent)?;
        match why {
            Some(why) => Err(TurnError::Unreachable(why)),
            None => Ok(model.map(|model| model.name().to_owned())),
        }
    }

    /// Whether a principal may use a profile: the default profile if none is named.
    pub fn may_use_profile(&self, profile: Option<&str>, principal: &Principal) -> bool {
        self.usable_backend(profile, principal).is_some()
    }

    /// The tools that a profile shows to a principal, as their sources define them.
    pub fn tools_of_principal(&self, profile: Option<&str>, principal: &Arc<Principal>) -> Vec<Tool> {
        let Some(backend) = self.usable_backend(profile, principal) else { return Vec::new() };
        let view = backend.view(&backend.access_of(principal));
        let catalog = self.hub().catalog();
        let visible = catalog.iter().filter(|entry| view.name_of(&entry.tool).is_some());
        visible.map(|entry| entry.tool.clone()).collect()
    }

    /// The definition of a tool of the catalog as a profile offers it to a principal; `None` if it is not offered.
    pub fn offered_definition(
        &self,
        profile: Option<&str>,
        principal: &Arc<Principal>,
        tool: &Tool,
    ) -> Option<RawJson> {
        let backend = self.usable_backend(profile, principal)?;
        let view = backend.view(&backend.access_of(principal));
        Some(view.targets.get(view.name_of(tool)?)?.definition.clone())
    }

    /// Identifies a tool, see [`Hub::tool_identity`].
    pub fn tool_identity(&self, tool: &Tool) -> String {
        self.hub().tool_identity(tool)
    }

    /// Takes a turn of an agent. Dropping the future cancels it and its calls.
    pub async fn take_turn(&self, turn: AgentTurn<'_>) -> Result<TurnResult, TurnError> {
        let backend = self.usable_backend(turn.profile, turn.principal).ok_or(TurnError::NoProfile)?;
        let hub = self.hub();
        let settings = hub.agent_settings(turn.agent).map_err(TurnError::Agent)?;
        let options = AskOptions {
            conversation: Some(turn.conversation.to_owned()),
            lang: turn.lang,
            ..AskOptions::default()
        };
        let (model, unreachable) = hub.model_for(&options, &settings).await.map_err(TurnError::Agent)?;
        if let Some(why) = unreachable {
            return Err(TurnError::Unreachable(why));
        }
        backend.wait_until_listed().await;
        let tools = PrincipalTools::new(backend, &turn);
        let events = ReplyEvents { hub, replied: turn.replied };
        let agent = Agent {
            agent_context: AgentContext {
                caller: &tools,
                finder: &tools,
                catalog: Arc::clone(&tools.catalog),
                unavailable: Vec::new(),
                events: &events,
                supervisor: Some(turn.supervisor),
                signature: tools.signature(hub),
                ..hub.agent_context(&settings, &options, &DenyAll)
            },
            model: model.as_deref(),
            mode: settings.mode.map(Into::into).unwrap_or_default(),
            instructions: instructions(&settings, turn.instructions),
            // Arguments of earlier calls may be those of other principals.
            examples: Default::default(),
            max_tokens: turn.max_tokens,
        };
        Ok(agent.take_turn(turn.request, turn.listener).await)
    }
}

/// The instructions of the owner, then those of the client.
fn instructions(settings: &AgentSettings, client: Option<&str>) -> Option<String> {
    let parts: Vec<&str> = settings.instructions.as_deref().into_iter().chain(client).collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

/// Forwards events, and signals when a reply is complete.
struct ReplyEvents<'a> {
    hub: &'a Hub,
    replied: &'a (dyn Fn() + Send + Sync),
}

impl EventSink for ReplyEvents<'_> {
    fn emit(&self, event: Event) {
        if matches!(event.kind, EventKind::ModelReplied { .. } | EventKind::ModelFailed { .. }) {
            (self.replied)();
        }
        self.hub.events.emit(event);
    }
}

/// The tools of an agent that acts for a principal.
struct PrincipalTools<'a> {
    backend: &'a HubBackend,
    view: Arc<View>,
    /// The tools that the principal sees and the client requested, with the definitions that clients see.
    catalog: Arc<Catalog>,
    caller: CallerHandle,
}

impl<'a> PrincipalTools<'a> {
    fn new(backend: &'a HubBackend, turn: &AgentTurn<'_>) -> Self {
        let view = backend.view(&backend.access_of(turn.principal));
        // The model and the checks of its calls see the definitions that clients see, not those of the servers.
        let is_selected = |entry: &CatalogEntry| (turn.selection)(&entry.tool);
        let catalog = Arc::new(view.shown_catalog().filtered(is_selected));
        let caller = silent_caller(Arc::clone(turn.principal));
        Self { backend, catalog, view, caller }
    }

    /// How tools are described for scripts, if the principal may run them.
    fn signature(&self, hub: &Hub) -> Option<SignatureText> {
        let mut named = self.catalog.named(RUN_SCRIPT);
        let has_scripts = named.any(|entry| entry.tool.source == Source::Native) && hub.run_script.is_some();
        has_scripts.then_some(crate::script::signature_of as SignatureText)
    }

    /// The offered name and the target of a call.
    fn target(&self, call: &ToolCall) -> Option<(&str, ToolTarget)> {
        let source = call.source.as_deref();
        let is_admitted =
            |entry: &&Arc<CatalogEntry>| source.is_none_or(|source| entry.tool.source.to_string() == source);
        let entry = match call.by {
            CallBy::Name => self.catalog.named(call.tool.as_str()).find(is_admitted),
            CallBy::Capability => {
                let tagged = self.catalog.tagged(call.tool.as_str()).flat_map(|(.., entries)| entries);
                tagged.filter(is_admitted).find(|entry| entry.declares_all(&call.arguments))
            }
        }?;
        let name = self.view.name_of(&entry.tool)?;
        let target = match source {
            Some(_) => self.view.target_of(&entry.tool)?,
            None => self.view.targets.get(name)?.clone(),
        };
        Some((name, target))
    }

    async fn run(&self, call: ToolCall) -> Outcome {
        let (id, tool) = (call.id.clone(), call.tool.clone());
        let Some((name, target)) = self.target(&call) else {
            let error = ToolError::failed(LocalizedText::new(
                format!("there is no tool `{tool}`"),
                format!("没有工具 `{tool}`"),
            ));
            return Outcome::refused(id, tool, error);
        };
        // The agent replaces every valid `call_tool` by the call that it contains, and approvals are decided for that one. An invalid
        // one must not become valid by a correction after the decision.
        if target.kind == TargetKind::Call {
            let error = ToolError::failed(LocalizedText::new(
                "`call_tool` needs `name` (a string) and `arguments` (an object)",
                "`call_tool` 需要 `name`（字符串）和 `arguments`（对象）",
            ));
            return Outcome::refused(id, tool, error);
        }
        let gateway_call =
            GatewayCall { name: name.to_owned(), arguments: call.arguments, caller: self.caller.clone() };
        let is_plain = matches!(target.kind, TargetKind::Plain) || call.nested.is_some();
        if !is_plain {
            let answer = self.backend.dispatch(&self.view, &target, gateway_call).await;
            return outcome_of(answer, id, tool);
        }
        let prepared = self.backend.prepared(&target, gateway_call);
        let script =
            ScriptRole { nested: call.nested, parent: call.parent, budget: call.budget, is_of_turn: true };
        // Models write nearly correct arguments.
        let coercion = if call.coercion == Coercion::On { Coercion::On } else { prepared.coercion };
        let prepared = PreparedCall { script, coercion, ..prepared };
        match self.backend.run_for_outcome(&self.view, &target, prepared).await {
            Ok(outcome) => outcome,
            Err(refusal) => outcome_of(refusal.into_response(), id, tool),
        }
    }
}

/// The outcome of a call that a control tool answered, or that was refused.
fn outcome_of(answer: Result<RawJson, RpcError>, id: toolhub_core::CallId, tool: ToolName) -> Outcome {
    let failed = |text: String| ToolError::failed(LocalizedText::from(text));
    let result = match answer {
        Ok(answer) => {
            let is_error = answer
                .object()
                .is_some_and(|answer| answer.get("isError").is_some_and(|flag| flag.get() == "true"));
            match ToolOutput::from_raw(answer) {
                Some(output) if is_error => Err(failed(output.texts().0.join("\n"))),
                Some(output) => Ok(output),
                None => Err(ToolError::Internal),
            }
        }
        Err(error) => Err(failed(error.message)),
    };
    match result {
        Ok(output) => Outcome { result: Ok(output), ..Outcome::refused(id, tool, ToolError::Internal) },
        Err(error) => Outcome::refused(id, tool, error),
    }
}

impl ToolCaller for PrincipalTools<'_> {
    fn call(&self, call: ToolCall) -> BoxFuture<'_, Outcome> {
        Box::pin(self.run(call))
    }

    fn verify<'a>(
        &'a self,
        call: &'a ToolCall,
        outcome: &'a Outcome,
    ) -> BoxFuture<'a, Option<OutcomeVerification>> {
        ToolCaller::verify(&*self.backend.hub, call, outcome)
    }
}

impl ToolFinder for PrincipalTools<'_> {
    fn search<'a>(&'a self, request: &'a str, limit: usize) -> BoxFuture<'a, SearchResult> {
        Box::pin(self.backend.hub.search_among(request, limit, Arc::clone(&self.catalog)))
    }

    fn describe(&self, name: &str) -> Vec<RawObject> {
        self.catalog.named(name).map(|entry| entry.describe()).collect()
    }

    fn similar_names(&self, name: &str) -> Vec<String> {
        similar_names(name, self.catalog.names(), MAX_SUGGESTIONS)
    }

    fn note_unknown_tool(&self, name: &str) {
        let access = self.backend.access_of_caller(&self.caller);
        self.backend.note_if_hidden(&self.view, &access, &ToolLookup::named(ToolUse::Call, name));
    }
}
