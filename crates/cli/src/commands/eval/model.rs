//! `toolhub eval plan --model`: plans by a language model, with tools from a file that are never called.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::civil::Date;
use toolhub_agent::{
    Agent, AgentBudget, AgentContext, AgentMode, AgentRequest, DenyAll, Plan, ToolAllowlist,
};
use toolhub_core::finder::{SearchResult, ToolFinder};
use toolhub_core::lang::LocalizedText;
use toolhub_core::model::LanguageModel;
use toolhub_core::outcome::OutcomeVerification;
use toolhub_core::ports::{NullSink, ToolCaller};
use toolhub_core::{BoxFuture, Lang, Outcome, RawObject, Tool, ToolCall, ToolError};
use toolhub_engine::{Catalog, OutputLimits};
use toolhub_search::ToolIndex;

use crate::commands::eval::index_search::search_index;

/// A model, and the tools for its plans.
pub(crate) struct ModelPlanner {
    pub(crate) model: Arc<dyn LanguageModel>,
    catalog: Arc<Catalog>,
    finder: IndexFinder,
}

impl ModelPlanner {
    pub(crate) fn new(model: Arc<dyn LanguageModel>, tools: Vec<Tool>, index: ToolIndex) -> Self {
        Self { model, catalog: Arc::new(Catalog::new(tools)), finder: IndexFinder(index) }
    }

    pub(crate) async fn plan(&self, request: &str, today: Date) -> Result<Plan, LocalizedText> {
        let agent_context = AgentContext {
            caller: &NoCaller,
            finder: &self.finder,
            catalog: Arc::clone(&self.catalog),
            policy: Default::default(),
            unavailable: Vec::new(),
            events: &NullSink,
            confirmation: &DenyAll,
            supervisor: None,
            allowlist: ToolAllowlist::default(),
            output_limits: OutputLimits::default(),
            budget: AgentBudget::default(),
            conversation: None,
            folder: std::env::current_dir().unwrap_or_default(),
            lang: Lang::En,
            signature: None,
            waited: Default::default(),
        };
        let agent = Agent {
            agent_context,
            model: Some(self.model.as_ref()),
            mode: AgentMode::Plan,
            instructions: None,
            examples: HashMap::new(),
            max_tokens: None,
        };
        agent.plan(AgentRequest { request, before: &[], today }).await
    }
}

/// A tool finder over an index.
struct IndexFinder(ToolIndex);

impl ToolFinder for IndexFinder {
    fn search<'a>(&'a self, request: &'a str, limit: usize) -> BoxFuture<'a, SearchResult> {
        Box::pin(async move { search_index(&self.0, request, limit) })
    }

    fn describe(&self, _: &str) -> Vec<RawObject> {
        Vec::new()
    }

    fn similar_names(&self, _: &str) -> Vec<String> {
        Vec::new()
    }
}

/// A tool caller that refuses all calls.
struct NoCaller;

impl ToolCaller for NoCaller {
    fn call(&self, call: ToolCall) -> BoxFuture<'_, Outcome> {
        Box::pin(async move { Outcome::refused(call.id, call.tool, ToolError::Cancelled) })
    }

    fn verify<'a>(&'a self, _: &'a ToolCall, _: &'a Outcome) -> BoxFuture<'a, Option<OutcomeVerification>> {
        Box::pin(async { None })
    }
}
