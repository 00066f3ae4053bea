//! The prompt of an agent that writes scripts: the signatures of relevant tools, and the tools that find and run the others.

use std::collections::HashSet;

use toolhub_core::lang::Lang;
use toolhub_core::model::ToolPresentation;

use super::{PromptOptions, estimate_tokens, texts};
use crate::agent_context::{AgentContext, SignatureText};
use crate::script_call::AgentTool;

/// Characters of one signature.
const SIGNATURE_CHARS: usize = 500;
/// Characters of the description of a tool.
const DESCRIPTION_CHARS: usize = 120;

/// The section on tools in scripts, within the token budget, and how many tools it shows. The best come first.
pub(super) fn section(
    agent_context: &AgentContext<'_>,
    relevant: &[&str],
    signature: SignatureText,
    options: &PromptOptions<'_>,
) -> (String, usize) {
    let all = agent_context.script_tools();
    let is_relevant = |tool: &&AgentTool| relevant.contains(&tool.name());
    let mut order: Vec<&AgentTool> = all.iter().filter(is_relevant).collect();
    order.sort_by_key(|tool| relevant.iter().position(|name| *name == tool.name()));
    // With a request, what has nothing to do with it only distracts; without one, or with few tools, all are shown.
    if relevant.is_empty() {
        order.extend(&all);
    }
    let mut seen = HashSet::new();
    let (mut lines, mut left) = (String::new(), options.budget);
    for tool in order.into_iter().filter(|tool| seen.insert(tool.shown.name.as_str())) {
        let line = line(tool, signature);
        let cost = estimate_tokens(&line);
        if cost > left {
            continue;
        }
        left -= cost;
        lines.push_str(&line);
    }
    let shown = lines.lines().filter(|line| line.starts_with("- ")).count();
    let more = all.len().saturating_sub(shown);
    let mut text = texts::scripts(options.lang).to_owned();
    if options.tool_presentation == ToolPresentation::InSystemPrompt {
        text.push_str(texts::fenced_scripts(options.lang));
    }
    text.push_str(options.lang.choose("\nTools in scripts:\n", "\n脚本中的工具：\n"));
    text.push_str(&lines);
    if more > 0 {
        text.push_str(&more_tools(more, options.lang));
    }
    (text, all.len())
}

fn more_tools(more: usize, lang: Lang) -> String {
    lang.choose(
        format!("({more} more tools: search_tools finds them)\n"),
        format!("（还有 {more} 个工具：可用 search_tools 查找）\n"),
    )
}

fn line(tool: &AgentTool, signature: SignatureText) -> String {
    let definition = tool.shown.definition.object().unwrap_or_default();
    let description = definition.get("description").and_then(|text| text.decode::<String>().ok());
    let description = description.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    let description = toolhub_core::text::truncate(&description, DESCRIPTION_CHARS).unwrap_or(description);
    format!("- {}: {description}\n", signature(&tool.shown, SIGNATURE_CHARS))
}
