//! Builds the prompt: task and tools, within a token budget. Deterministic.

mod code;
mod skills;
mod texts;
mod tokens;
mod tool_text;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use toolhub_core::control_tool::GET_CONVERSATION_HISTORY;
use toolhub_core::lang::Lang;
use toolhub_core::model::{OfferedTool, ToolPresentation};
use toolhub_core::tool::{ApprovalStatus, Tool};
use toolhub_core::{ControlProperty, ControlTool, RUN_SCRIPT, RawJson, Source, ToolName, USE_SKILL};
use toolhub_engine::CatalogEntry;

pub use tokens::estimate_tokens;

use crate::agent_context::AgentContext;
use crate::allowlist::ToolAllowlist;
use crate::server_choice::ServerChoice;

/// Tools that are always shown, in this order.
const CORE_TOOLS: [&str; 4] = ["search_web", "calculate", "get_time", GET_CONVERSATION_HISTORY];
/// Maximum number of search results.
const MAX_RELEVANT_TOOLS: usize = 50;
/// Maximum number of tools beside the core ones in a prompt for planning.
const MAX_PLANNING_TOOLS: usize = 10;

/// The purpose of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptPurpose {
    /// A conversation with tool calls.
    Talk,
    /// A plan.
    Plan,
    /// A conversation with scripts that call tools.
    Code,
}

/// The inputs of a prompt.
#[derive(Debug, Clone, Copy)]
pub struct PromptOptions<'a> {
    /// The purpose.
    pub purpose: PromptPurpose,
    /// The request, if there is one: it decides which tools are shown.
    pub query: Option<&'a str>,
    /// How tools are passed to the model.
    pub tool_presentation: ToolPresentation,
    /// The owner's additional instructions.
    pub instructions: Option<&'a str>,
    /// The token budget for tools.
    pub budget: usize,
    /// The language of the prompt.
    pub lang: Lang,
    /// Arguments of successful calls, by tool.
    pub examples: &'a HashMap<ToolName, RawJson>,
    /// Functions of the client, which are shown in any case.
    pub client_tools: &'a [OfferedTool],
}

/// A prompt.
#[derive(Debug, Clone)]
pub struct Prompt {
    /// The instructions.
    pub system: String,
    /// The tools that are shown.
    pub tools: Vec<OfferedTool>,
    /// How the tools are passed to the model.
    pub tool_presentation: ToolPresentation,
    /// The number of usable tools.
    pub total: usize,
    /// Estimated tokens, including definitions that are sent separately.
    pub tokens: usize,
}

/// Builds the prompt from the tools of the agent's context.
pub async fn build_prompt(agent_context: &AgentContext<'_>, options: PromptOptions<'_>) -> Prompt {
    let relevant = match options.query {
        Some(query) => agent_context.finder.search(query, MAX_RELEVANT_TOOLS).await.hits,
        None => Vec::new(),
    };
    let relevant: Vec<&str> = relevant.iter().map(|found| found.tool.name().as_str()).collect();
    if let (PromptPurpose::Code, Some(signature)) = (options.purpose, agent_context.signature) {
        let (section, total) = code::section(agent_context, &relevant, signature, &options);
        return code_prompt(agent_context, options, &section, total);
    }
    build_prompt_with(agent_context.servers(), &agent_context.allowlist, &relevant, options)
}

/// The prompt for scripts: three tools, and the section on the tools that scripts can call.
fn code_prompt(
    agent_context: &AgentContext<'_>,
    options: PromptOptions<'_>,
    section: &str,
    total: usize,
) -> Prompt {
    let mut builder = PromptBuilder::new(options);
    for name in ControlTool::names_with(ControlProperty::CodeMode) {
        let entry = agent_context.catalog.named(name).find(|entry| entry.tool.source == Source::Native);
        let is_allowed = name == RUN_SCRIPT || agent_context.allowlist.has(name);
        builder.add(entry.filter(|_| is_allowed).map(|entry| entry.tool.clone()), Cost::Free);
    }
    let skill_tool = agent_context
        .catalog
        .named(USE_SKILL)
        .find(|entry| entry.tool.source == Source::Skill && agent_context.allowlist.has(USE_SKILL));
    if let Some(entry) = skill_tool {
        builder.skills = skills::section(&entry.tool, options.budget, options.lang);
        builder.add(Some(entry.tool.clone()), Cost::Free);
    }
    builder.skills.push_str(section);
    builder.into_prompt(total)
}

/// Builds the prompt with the tools that are known to be relevant, best first.
pub fn build_prompt_with(
    servers: ServerChoice<'_>,
    allowlist: &ToolAllowlist,
    relevant: &[&str],
    options: PromptOptions<'_>,
) -> Prompt {
    let catalog = servers.catalog;
    let usable = |name: &str| {
        let mut named =
            catalog.named(name).filter(|entry| entry.tool.approval != ApprovalStatus::Quarantined);
        named.next().filter(|_| allowlist.has(name)).map(|entry| entry.tool.clone())
    };
    // If several servers offer a tool, each is shown as `server__tool`: the model chooses, not the order of the config.
    let offered = |name: &str| -> Vec<Tool> {
        let rivals = servers.rivals(name).into_iter();
        let rivals =
            rivals.filter(|entry| entry.tool.approval != ApprovalStatus::Quarantined && allowlist.has(name));
        let named = |entry: &Arc<CatalogEntry>| {
            let name = format!("{}__{name}", entry.tool.source);
            Tool { definition: entry.tool.definition.renamed(&name).into(), ..entry.tool.clone() }
        };
        let rivals: Vec<Tool> = rivals.map(named).collect();
        if rivals.is_empty() { usable(name).into_iter().collect() } else { rivals }
    };
    let names: HashSet<&str> = catalog.names().filter(|name| usable(name).is_some()).collect();
    let total = names.iter().map(|name| offered(name).len()).sum();
    let mut rest: Vec<&str> = names.into_iter().collect();
    rest.sort_unstable();
    // A plan is text, whatever the model can do besides.
    let (max_tools, tool_presentation) = match options.purpose {
        PromptPurpose::Talk | PromptPurpose::Code => (usize::MAX, options.tool_presentation),
        PromptPurpose::Plan => (MAX_PLANNING_TOOLS, ToolPresentation::InSystemPrompt),
    };
    let options = PromptOptions { tool_presentation, ..options };
    let mut builder = PromptBuilder::new(options);
    for name in CORE_TOOLS {
        builder.add(usable(name), Cost::Free);
    }
    // A plan is made once, before anything was read: instructions are for talking.
    if options.purpose == PromptPurpose::Talk
        && let Some(tool) = usable(USE_SKILL).filter(|tool| tool.source == Source::Skill)
    {
        builder.skills = skills::section(&tool, options.budget, options.lang);
        builder.budget = builder.budget.saturating_sub(estimate_tokens(&builder.skills));
        builder.add(Some(tool), Cost::Free);
    }
    let always = builder.tools.len();
    // These tools find and call the others; they are shown if not all tools are.
    let discovery_tools: Vec<&str> = ControlTool::names_with(ControlProperty::SearchMode).collect();
    let discovery_cost: usize =
        discovery_tools.iter().filter_map(|name| usable(name)).map(|tool| builder.cost(&tool)).sum();
    let is_added_separately =
        |name: &&str| discovery_tools.contains(name) || [USE_SKILL, RUN_SCRIPT].contains(name);
    // What reaches the others must fit too, unless all are shown in the end.
    builder.budget = builder.budget.saturating_sub(discovery_cost);
    // With a request, what has nothing to do with it only distracts.
    let rest = if options.query.is_some() && !relevant.is_empty() { Vec::new() } else { rest };
    for name in relevant.iter().copied().chain(rest).filter(|name| !is_added_separately(name)) {
        if builder.tools.len() - always >= max_tools {
            break;
        }
        for tool in offered(name) {
            builder.add(Some(tool), Cost::Counted);
        }
    }
    if builder.tools.len() + discovery_tools.len() < total || options.purpose == PromptPurpose::Talk {
        for name in discovery_tools {
            builder.add(usable(name), Cost::Free);
        }
    }
    builder.into_prompt(total)
}

#[derive(Clone, Copy)]
enum Cost {
    /// It is shown in any case.
    Free,
    /// It is shown if it fits.
    Counted,
}

struct PromptBuilder<'a> {
    budget: usize,
    seen: HashSet<ToolName>,
    tools: Vec<(Tool, String)>,
    /// The prompt text about skills.
    skills: String,
    options: PromptOptions<'a>,
}

impl<'a> PromptBuilder<'a> {
    fn new(options: PromptOptions<'a>) -> Self {
        let (seen, tools, skills) = (HashSet::new(), Vec::new(), String::new());
        Self { budget: options.budget, seen, tools, skills, options }
    }

    fn text(&self, tool: &Tool) -> String {
        let PromptOptions { tool_presentation, examples, lang, purpose, .. } = self.options;
        match tool_presentation {
            ToolPresentation::InSystemPrompt => {
                let example = examples.get(tool.name());
                let example = example.map(|arguments| tool_text::Example { arguments, purpose });
                tool_text::tool_text(tool, example.as_ref(), lang)
            }
            ToolPresentation::Native => {
                let (name, schema) = (tool.name(), tool.definition.input_schema().get());
                format!("{name} {} {schema}", tool_text::described(tool))
            }
        }
    }

    fn cost(&self, tool: &Tool) -> usize {
        estimate_tokens(&self.text(tool))
    }

    fn add(&mut self, tool: Option<Tool>, cost: Cost) {
        let Some(tool) = tool else { return };
        if self.seen.contains(tool.name()) {
            return;
        }
        let text = self.text(&tool);
        let size = estimate_tokens(&text);
        if matches!(cost, Cost::Counted) && size > self.budget {
            return;
        }
        self.budget = self.budget.saturating_sub(size);
        self.seen.insert(tool.name().clone());
        self.tools.push((tool, text));
    }

    fn into_prompt(self, total: usize) -> Prompt {
        let PromptOptions { purpose, tool_presentation, instructions, lang, client_tools, .. } = self.options;
        let mut system = String::new();
        if let Some(instructions) = instructions {
            system.push_str(instructions.trim());
            system.push_str("\n\n");
        }
        if purpose != PromptPurpose::Plan {
            system.push_str(texts::rules(lang));
        }
        system.push_str(&self.skills);
        let mut tokens_apart = 0;
        match tool_presentation {
            ToolPresentation::Native => {
                let client_texts = client_tools.iter().map(|tool| estimate_tokens(&client_text(tool)));
                tokens_apart =
                    self.tools.iter().map(|(_, text)| estimate_tokens(text)).chain(client_texts).sum();
            }
            ToolPresentation::InSystemPrompt => {
                system.push_str(lang.choose("\nTools:\n\n", "\n工具：\n\n"));
                for (_, text) in &self.tools {
                    system.push_str(text);
                    system.push('\n');
                }
                for tool in client_tools {
                    system.push_str(&client_text(tool));
                }
            }
        }
        if purpose != PromptPurpose::Code {
            system.push_str(&texts::count(self.tools.len(), total, lang));
        }
        match (purpose, tool_presentation) {
            (PromptPurpose::Plan, _) => system.push_str(texts::planning(lang)),
            (_, ToolPresentation::InSystemPrompt) => system.push_str(texts::format(lang)),
            (_, ToolPresentation::Native) => {}
        }
        let offered = |tool: &Tool| OfferedTool {
            name: tool.name().clone(),
            description: tool_text::described(tool),
            schema: tool.definition.input_schema().clone(),
        };
        let is_hidden = |tool: &Tool| client_tools.iter().any(|client| client.name == *tool.name());
        let own = self.tools.iter().filter(|(tool, _)| !is_hidden(tool));
        let tools = own.map(|(tool, _)| offered(tool)).chain(client_tools.iter().cloned()).collect();
        let tokens = estimate_tokens(&system) + tokens_apart;
        Prompt { system, tools, tool_presentation, total, tokens }
    }
}

/// A function of the client as text: its description is not shortened.
fn client_text(tool: &OfferedTool) -> String {
    let OfferedTool { name, description, schema } = tool;
    format!("**{name}**: {description}\n{}\n\n", schema.get())
}
