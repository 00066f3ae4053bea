//! The context of an agent: tool caller, tool finder, allowed tools, and the permission check for destructive calls.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use toolhub_core::error::UnknownTool;
use toolhub_core::finder::ToolFinder;
use toolhub_core::lang::{Lang, Localize as _, LocalizedText};
use toolhub_core::millis::duration_millis;
use toolhub_core::ports::ToolCaller;
use toolhub_core::text::truncate;
use toolhub_core::{
    BoxFuture, CallBy, CallId, Event, EventKind, EventSink, NestedTool, Outcome, RawJson, ToolCall,
    ToolError, ToolName,
};
use toolhub_engine::brief::OutputLimits;
use toolhub_engine::{Catalog, CatalogEntry, RoutingPolicy};

use crate::absolute_path::{absolute_path, hint_absolute_path};
use crate::allowlist::ToolAllowlist;
use crate::change_summary::ChangeSummary;
use crate::server_choice::ServerChoice;
use crate::supervision::{CallDecision, CallSupervisor, SupervisedCall};

/// Length to which a request is truncated when it is stored with its calls, in characters.
const MAX_STORED_REQUEST_CHARS: usize = 1_000;

/// Describes tools to a model that writes scripts: the TypeScript signature of a tool, in about so many characters.
pub type SignatureText = fn(&NestedTool, usize) -> String;

/// Asks the user for permission before a destructive call.
pub trait Confirmation: Send + Sync {
    /// Returns whether the call may be made.
    fn allow<'a>(&'a self, tool: &'a ToolName, arguments: &'a RawJson) -> BoxFuture<'a, PermissionDecision>;
}

/// The result of a permission check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PermissionDecision {
    /// The call may be made.
    Granted,
    /// The call may not be made.
    Denied,
    /// No user is connected to confirm the call.
    NoUser,
}

/// Confirmation without a user: destructive calls are not run.
#[derive(Debug, Clone, Copy, Default)]
pub struct DenyAll;

impl Confirmation for DenyAll {
    fn allow<'a>(&'a self, _: &'a ToolName, _: &'a RawJson) -> BoxFuture<'a, PermissionDecision> {
        Box::pin(async { PermissionDecision::NoUser })
    }
}

/// Confirmation for a user who has agreed in advance: all calls are allowed.
#[derive(Debug, Clone, Copy, Default)]
pub struct AllowAll;

impl Confirmation for AllowAll {
    fn allow<'a>(&'a self, _: &'a ToolName, _: &'a RawJson) -> BoxFuture<'a, PermissionDecision> {
        Box::pin(async { PermissionDecision::Granted })
    }
}

/// Limits for one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentBudget {
    /// Maximum number of requests to the model.
    pub rounds: u32,
    /// Maximum total duration.
    pub time: Duration,
    /// Maximum number of tokens, input and output.
    pub tokens: u64,
    /// Maximum number of prompt tokens for tool descriptions.
    pub prompt_tokens: usize,
}

impl Default for AgentBudget {
    fn default() -> Self {
        Self { rounds: 10, time: Duration::from_secs(300), tokens: 200_000, prompt_tokens: 3_000 }
    }
}

/// The context of an agent.
pub struct AgentContext<'a> {
    /// Runs calls.
    pub caller: &'a dyn ToolCaller,
    /// Finds tools.
    pub finder: &'a dyn ToolFinder,
    /// The available tools.
    pub catalog: Arc<Catalog>,
    /// Routing policy: the servers that the owner declared equivalent.
    pub policy: Arc<RoutingPolicy>,
    /// Configured servers that have no tools now: disabled, or not listed.
    pub unavailable: Vec<String>,
    /// Receives events.
    pub events: &'a dyn EventSink,
    /// Confirms destructive calls.
    pub confirmation: &'a dyn Confirmation,
    /// Decides about every call, instead of the confirmation.
    pub supervisor: Option<&'a dyn CallSupervisor>,
    /// The tools that may be used.
    pub allowlist: ToolAllowlist,
    /// Truncation limits for results in a prompt.
    pub output_limits: OutputLimits,
    /// Limits for one request.
    pub budget: AgentBudget,
    /// The conversation that the calls belong to.
    pub conversation: Option<Arc<str>>,
    /// The folder against which relative paths of a request are resolved.
    pub folder: PathBuf,
    /// The language of messages to the user.
    pub lang: Lang,
    /// Describes tools for scripts; `None` if scripts cannot be run.
    pub signature: Option<SignatureText>,
    /// Total time that the user took to answer questions, in milliseconds.
    pub waited: Arc<AtomicU64>,
}

impl std::fmt::Debug for AgentContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentContext")
            .field("allowlist", &self.allowlist)
            .field("budget", &self.budget)
            .finish_non_exhaustive()
    }
}

impl AgentContext<'_> {
    /// Emits an event.
    pub(crate) fn emit(&self, kind: EventKind) {
        self.events.emit(Event::now(None, kind));
    }

    /// The first tool of that name, or of `server__tool`.
    pub(crate) fn tool(&self, name: &str) -> Option<Arc<CatalogEntry>> {
        self.servers().tool(name).map(|(entry, _)| Arc::clone(entry))
    }

    /// Selects a server if several offer a tool.
    pub(crate) fn servers(&self) -> ServerChoice<'_> {
        ServerChoice { catalog: &self.catalog, policy: &self.policy, unavailable: &self.unavailable }
    }

    /// Runs a call for `request`, if the agent may use the tool and, for a destructive tool, the user agrees. Also returns
    /// how long the user took to answer, which does not count as duration of the call.
    pub(crate) async fn call(&self, call: ToolCall, request: &str) -> (Outcome, Duration) {
        let mut call = self.servers().resolved(call);
        let started = Instant::now();
        let permitted = self.permitted(&call, request).await;
        let waited = started.elapsed();
        self.waited.fetch_add(duration_millis(waited), Ordering::Relaxed);
        let outcome = match permitted {
            Ok(()) => {
                let outcome = self.run(&mut call, request).await;
                let outcome = self.with_absolute_path(&call, outcome, request).await;
                if let Some(supervisor) = self.supervisor_of(&call) {
                    supervisor.finished(&call, &self.brief(&outcome)).await;
                }
                outcome
            }
            Err(error) => Outcome::refused(call.id, call.tool, error),
        };
        (outcome, waited)
    }

    /// The supervisor, if it is notified of this call.
    fn supervisor_of(&self, call: &ToolCall) -> Option<&dyn CallSupervisor> {
        self.supervisor.filter(|_| call.parent.is_none())
    }

    async fn run(&self, call: &mut ToolCall, request: &str) -> Outcome {
        call.conversation.clone_from(&self.conversation);
        call.request =
            Some(truncate(request, MAX_STORED_REQUEST_CHARS).unwrap_or_else(|| request.to_owned()));
        if self.runs_script(call) {
            return self.run_script(call, request).await;
        }
        self.caller.call(call.clone()).await
    }

    /// Repeats a call that was rejected because of a relative path, with the absolute path, if the tool may be repeated and the
    /// new call is permitted without asking anyone. Otherwise the error names the absolute path.
    async fn with_absolute_path(&self, call: &ToolCall, mut outcome: Outcome, request: &str) -> Outcome {
        let Some(arguments) = absolute_path(&outcome, &call.arguments, &self.folder) else { return outcome };
        let servers = self.servers();
        let tools = servers.reachable(call);
        let may_repeat_unasked =
            |entry: &&Arc<CatalogEntry>| entry.tool.hints().may_repeat() && !entry.tool.needs_confirmation();
        let may_repeat =
            self.supervisor.is_none() && !tools.is_empty() && tools.iter().all(may_repeat_unasked);
        let again = ToolCall { id: CallId::generate(), arguments, ..call.clone() };
        if may_repeat && self.permitted(&again, request).await.is_ok() {
            return self.caller.call(again).await;
        }
        hint_absolute_path(&mut outcome, &call.arguments, &again.arguments);
        outcome
    }

    async fn permitted(&self, call: &ToolCall, request: &str) -> Result<(), ToolError> {
        let name = &call.tool;
        let servers = self.servers();
        let tools = servers.reachable(call);
        let forbidden = match call.by {
            CallBy::Name => (!self.allowlist.has(name.as_str())).then_some(name),
            CallBy::Capability => {
                tools.iter().map(|entry| entry.tool.name()).find(|name| !self.allowlist.has(name.as_str()))
            }
        };
        // A script reaches only tools that are allowed.
        let is_script = self.catalog.is_run_script(call);
        if let Some(name) = forbidden.filter(|_| !is_script) {
            return Err(ToolError::failed(LocalizedText::new(
                format!("`{name}` is not among the tools of this agent"),
                format!("`{name}` 不在该智能体可用的工具之内"),
            )));
        }
        // A tool outside the catalog has no checked hints, and a server may list it while the call is being made: reject it.
        if call.by == CallBy::Name && tools.is_empty() {
            self.finder.note_unknown_tool(name.as_str());
            let near = self.finder.similar_names(name.as_str());
            let near = near.into_iter().filter(|near| self.allowlist.has(near)).collect();
            let unknown = UnknownTool { tool: name.to_string(), near, ..UnknownTool::default() };
            return Err(ToolError::UnknownTool(Box::new(unknown)));
        }
        if let Some(why) = servers.refusal(call, request) {
            return Err(ToolError::failed(why));
        }
        if let Some(supervisor) = self.supervisor.filter(|_| call.parent.is_some()) {
            let call = SupervisedCall { call, tools: &tools };
            return match supervisor.permits_in_script(call).await {
                true => Ok(()),
                false => Err(ToolError::failed(LocalizedText::new(
                    format!("not run: `{name}` needs an approval that a script cannot ask for here"),
                    format!("`{name}` 需要批准，而脚本在此处无法请求批准，因此没有执行"),
                ))),
            };
        }
        if let Some(supervisor) = self.supervisor_of(call) {
            return match supervisor.decide(SupervisedCall { call, tools: &tools }).await {
                CallDecision::Run => Ok(()),
                CallDecision::Refuse(why) => Err(ToolError::failed(why)),
                CallDecision::Defer => Err(ToolError::failed(LocalizedText::new(
                    format!("`{name}` waits for approval"),
                    format!("`{name}` 等待审批"),
                ))),
            };
        }
        if !tools.iter().any(|entry| entry.tool.needs_confirmation()) {
            return Ok(());
        }
        let display_name = servers.shown_name(call);
        let change = ChangeSummary::new(&display_name, &call.arguments).text();
        let refusal = |en: fn(String) -> String, zh: fn(String) -> String| {
            LocalizedText::new(en(change.localize(Lang::En)), zh(change.localize(Lang::Zh)))
        };
        match self.confirmation.allow(&display_name, &call.arguments).await {
            PermissionDecision::Granted => Ok(()),
            PermissionDecision::Denied => Err(ToolError::failed(refusal(
                |change| format!("not run: {change}, and you did not agree"),
                |change| format!("{change}，而你没有同意，因此没有执行"),
            ))),
            PermissionDecision::NoUser => Err(ToolError::failed(refusal(
                |change| {
                    format!(
                        "not run: {change}, and there is no terminal for the confirmation; confirm with `--yes`"
                    )
                },
                |change| format!("{change}，而这里没有可供确认的终端，因此没有执行；请用 `--yes` 确认"),
            ))),
        }
    }

    /// The outcome, truncated for a prompt or an answer.
    pub(crate) fn brief(&self, outcome: &Outcome) -> Outcome {
        let source = outcome.source();
        let mut named = self.catalog.named(outcome.tool.as_str());
        let entry = named.find(|entry| Some(&entry.tool.source) == source);
        let tags = entry.map_or_else(|| vec![outcome.tool.to_string()], |entry| entry.tags().to_vec());
        self.output_limits.shorten(outcome.clone(), &tags)
    }
}
