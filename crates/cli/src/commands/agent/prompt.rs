//! `toolhub prompt`: the exact prompt for a model, and its approximate number of tokens.

use toolhub::{AskOptions, DenyAll, Hub};
use toolhub_agent::prompt::{Prompt, PromptOptions, PromptPurpose, build_prompt};
use toolhub_core::model::{OfferedTool, ToolPresentation};
use toolhub_core::{Lang, RawJson, RawObject};
use toolhub_llm::ToolCalls;

use crate::app::App;
use crate::args::ask::{FormatArg, PromptArgs};
use crate::exit::{Exit, UsageError};
use crate::render::plural::plural;

pub(crate) async fn run(app: &App, args: PromptArgs) -> anyhow::Result<Exit> {
    let hub = app.hub().await?;
    let settings = hub
        .agent_settings(args.agent.as_deref())
        .map_err(|error| anyhow::Error::from(UsageError(error.to_string())))?;
    let options = AskOptions { lang: app.lang(), ..AskOptions::default() };
    let agent_context = hub.agent_context(&settings, &options, &DenyAll);
    let examples = hub.examples().await;
    let prompt_options = PromptOptions {
        purpose: if args.plan { PromptPurpose::Plan } else { PromptPurpose::Talk },
        query: args.query.as_deref(),
        tool_presentation: format(args.format, hub),
        instructions: settings.instructions.as_deref(),
        budget: args.budget.unwrap_or(agent_context.budget.prompt_tokens),
        lang: detect_language(app, args.query.as_deref()),
        examples: &examples,
        client_tools: &[],
    };
    let prompt = build_prompt(&agent_context, prompt_options).await;
    show(app, &prompt);
    Ok(Exit::Done)
}

/// The given format; otherwise that of the configured model; text without a model.
fn format(requested: Option<FormatArg>, hub: &Hub) -> ToolPresentation {
    let configured = hub
        .settings()
        .llm
        .as_ref()
        .filter(|llm| llm.is_enabled())
        .map(|llm| llm.tool_calls.unwrap_or_default());
    match (requested, configured) {
        (Some(FormatArg::Text), _) | (None, None | Some(ToolCalls::Text)) => ToolPresentation::InSystemPrompt,
        (Some(FormatArg::Native), _) | (None, Some(ToolCalls::Native)) => ToolPresentation::Native,
    }
}

fn detect_language(app: &App, query: Option<&str>) -> Lang {
    match query {
        Some(query) => toolhub_agent::detect_language(query),
        None => app.lang(),
    }
}

fn show(app: &App, prompt: &Prompt) {
    let apart = prompt.tool_presentation == ToolPresentation::Native;
    let definition = |tool: &OfferedTool| {
        RawObject::default()
            .with("name", tool.name.as_str())
            .with("description", tool.description.as_str())
            .with("parameters", tool.schema.clone())
    };
    let tools: Vec<RawObject> = prompt.tools.iter().map(definition).collect();
    let (tool_count, total, tokens) = (prompt.tools.len(), prompt.total, prompt.tokens);
    if app.screen.json {
        let value = RawObject::default()
            .with("system", prompt.system.as_str())
            .with("tools", RawJson::of(&tools))
            .with("sent_apart", apart)
            .with("shown", RawJson::of(&tool_count))
            .with("total", RawJson::of(&total))
            .with("tokens", RawJson::of(&tokens));
        app.screen.json(&value.into_raw());
        return;
    }
    app.screen.verbatim(&prompt.system);
    if apart {
        for tool in tools {
            app.screen.verbatim(tool.into_raw().get());
        }
    }
    app.screen.note(&app.lang().choose(
        format!("{tool_count} of {}, about {tokens} tokens", plural(total, "tool")),
        format!("{total} 个工具中的 {tool_count} 个，约 {tokens} token"),
    ));
}
