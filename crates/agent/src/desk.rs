//! What an agent works with: who runs calls, who finds tools, which tools it may use, and who is asked before something is
//! destroyed.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use toolhub_core::error::UnknownTool;
use toolhub_core::finder::ToolFinder;
use toolhub_core::lang::{Lang, Say as _, Text};
use toolhub_core::ports::ToolCaller;
use toolhub_core::text::cut;
use toolhub_core::{
    BoxFuture, CallBy, CallId, Event, EventKind, EventSink, Outcome, RawJson, ToolCall, ToolError, ToolName,
};
use toolhub_engine::brief::Lengths;
use toolhub_engine::{Catalog, Entry, Policy};

use crate::absolute::absolute;
use crate::allowed::Allowed;
use crate::change_summary::ChangeSummary;
use crate::server_choice::ServerChoice;

/// How much of a request is remembered with its calls, in characters.
const REMEMBERED: usize = 1_000;

/// Somebody who may be asked before a tool destroys something.
pub trait Permission: Send + Sync {
    /// Whether the call may be made.
    fn allow<'a>(&'a self, tool: &'a ToolName, arguments: &'a RawJson) -> BoxFuture<'a, Consent>;
}

/// What somebody said to that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// It may be made.
    Given,
    /// It may not.
    Refused,
    /// There is nobody to be asked.
    Nobody,
}

/// Nobody is there to be asked: what destroys is not run.
#[derive(Debug, Clone, Copy, Default)]
pub struct NobodyThere;

impl Permission for NobodyThere {
    fn allow<'a>(&'a self, _: &'a ToolName, _: &'a RawJson) -> BoxFuture<'a, Consent> {
        Box::pin(async { Consent::Nobody })
    }
}

/// Whoever asked has agreed beforehand.
#[derive(Debug, Clone, Copy, Default)]
pub struct AgreedBefore;

impl Permission for AgreedBefore {
    fn allow<'a>(&'a self, _: &'a ToolName, _: &'a RawJson) -> BoxFuture<'a, Consent> {
        Box::pin(async { Consent::Given })
    }
}

/// How far an agent may go for one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// How often a model is asked.
    pub rounds: u32,
    /// How long all of it may take.
    pub time: Duration,
    /// Tokens that a model may read and write.
    pub tokens: u64,
    /// Tokens of the prompt that tell of tools.
    pub prompt_tokens: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { rounds: 10, time: Duration::from_secs(300), tokens: 200_000, prompt_tokens: 3_000 }
    }
}

/// What an agent works with.
pub struct Desk<'a> {
    /// Who runs calls.
    pub caller: &'a dyn ToolCaller,
    /// Who finds tools.
    pub finder: &'a dyn ToolFinder,
    /// The tools there are.
    pub catalog: Arc<Catalog>,
    /// How calls are routed: which servers the owner declared equivalent.
    pub policy: Arc<Policy>,
    /// Configured servers that have no tools now: disabled, or not listed.
    pub unavailable: Vec<String>,
    /// Who hears what happens.
    pub events: &'a dyn EventSink,
    /// Who is asked before something is destroyed.
    pub permission: &'a dyn Permission,
    /// The tools that may be used.
    pub allowed: Allowed,
    /// How much of a result a model is shown.
    pub lengths: Lengths,
    /// How far it may go.
    pub budget: Budget,
    /// The conversation that all belongs to.
    pub conversation: Option<Arc<str>>,
    /// The folder that relative paths of a request are meant from.
    pub folder: PathBuf,
    /// The language for people.
    pub lang: Lang,
    /// Milliseconds that the user took to answer questions.
    pub waited: Arc<AtomicU64>,
}

impl std::fmt::Debug for Desk<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desk")
            .field("allowed", &self.allowed)
            .field("budget", &self.budget)
            .finish_non_exhaustive()
    }
}

impl Desk<'_> {
    /// Tells the listeners of something.
    pub(crate) fn tell(&self, kind: EventKind) {
        self.events.emit(Event::now(None, kind));
    }

    /// The tool of that name, or of `server__tool`, that would be called first.
    pub(crate) fn tool(&self, name: &str) -> Option<Arc<Entry>> {
        self.servers().tool(name).map(|(entry, _)| Arc::clone(entry))
    }

    /// Which server is meant, where several offer a tool.
    pub(crate) fn servers(&self) -> ServerChoice<'_> {
        ServerChoice { catalog: &self.catalog, policy: &self.policy, unavailable: &self.unavailable }
    }

    /// Runs a call that serves `request`, if the agent may use the tool and, for a destructive one, the user agrees.
    /// Also returns how long the user took to answer: that is no time of the call.
    pub(crate) async fn call(&self, call: ToolCall, request: &str) -> (Outcome, Duration) {
        let mut call = self.servers().resolved(call);
        let asked = Instant::now();
        let permitted = self.permitted(&call, request).await;
        let waited = asked.elapsed();
        self.waited.fetch_add(u64::try_from(waited.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
        let outcome = match permitted {
            Ok(()) => self.run(&mut call, request).await,
            Err(error) => Outcome::refused(call.id, call.tool, error),
        };
        (outcome, waited)
    }

    async fn run(&self, call: &mut ToolCall, request: &str) -> Outcome {
        call.conversation.clone_from(&self.conversation);
        call.request = Some(cut(request, REMEMBERED).unwrap_or_else(|| request.to_owned()));
        let outcome = self.caller.call(call.clone()).await;
        match absolute(&outcome, &call.arguments, &self.folder) {
            Some(arguments) => {
                self.caller.call(ToolCall { id: CallId::fresh(), arguments, ..call.clone() }).await
            }
            None => outcome,
        }
    }

    async fn permitted(&self, call: &ToolCall, request: &str) -> Result<(), ToolError> {
        let name = &call.tool;
        let servers = self.servers();
        let tools = servers.reachable(call);
        let forbidden = match call.by {
            CallBy::Name => (!self.allowed.has(name.as_str())).then_some(name),
            CallBy::Capability => {
                tools.iter().map(|entry| entry.tool.name()).find(|name| !self.allowed.has(name.as_str()))
            }
        };
        if let Some(name) = forbidden {
            return Err(ToolError::failed(Text::new(
                format!("`{name}` is not among the tools of this agent"),
                format!("`{name}` 不在该智能体可用的工具之内"),
            )));
        }
        // What is not in the catalog was never checked: a server may list it while the call is made.
        if call.by == CallBy::Name && tools.is_empty() {
            let near = self.finder.near(name.as_str());
            let near = near.into_iter().filter(|near| self.allowed.has(near)).collect();
            let unknown = UnknownTool { tool: name.to_string(), near, ..UnknownTool::default() };
            return Err(ToolError::UnknownTool(Box::new(unknown)));
        }
        if let Some(why) = servers.refusal(call, request) {
            return Err(ToolError::failed(why));
        }
        if !tools.iter().any(|entry| entry.tool.hints().destructive == Some(true)) {
            return Ok(());
        }
        let shown = servers.shown_name(call);
        let change = ChangeSummary::new(&shown, &call.arguments).text();
        let said = |en: fn(String) -> String, zh: fn(String) -> String| {
            Text::new(en(change.say(Lang::En)), zh(change.say(Lang::Zh)))
        };
        match self.permission.allow(&shown, &call.arguments).await {
            Consent::Given => Ok(()),
            Consent::Refused => Err(ToolError::failed(said(
                |change| format!("not run: {change}, and you did not agree"),
                |change| format!("没有执行：{change}，而你没有同意"),
            ))),
            Consent::Nobody => Err(ToolError::failed(said(
                |change| format!("not run: {change}, and there is no terminal to ask at; agree with `--yes`"),
                |change| format!("没有执行：{change}，而这里没有可询问的终端；请用 `--yes` 表示同意"),
            ))),
        }
    }

    /// What a model, or an answer, is shown of an outcome.
    pub(crate) fn brief(&self, outcome: &Outcome) -> Outcome {
        let place = outcome.source();
        let mut named = self.catalog.named(outcome.tool.as_str());
        let entry = named.find(|entry| Some(&entry.tool.source) == place);
        let tags = entry.map_or_else(|| vec![outcome.tool.to_string()], |entry| entry.tags().to_vec());
        self.lengths.shorten(outcome.clone(), &tags)
    }
}
